/* bytes_moves.c - channels that only move, in the layout of bytes. Concat, Split, Slice, Gather and
 * the Reshape, Transpose, Reshape of a channel shuffle aren't run one after the other: each value
 * notes which channels of which others it is made of, and one BytesChannels makes it when something
 * else reads it.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include "base/checked.h"
#include "base/error.h"
#include "op/shared/codes.h"
#include "provider/cpu/bytes_layout.h"
#include "tensor/scalar.h"

static int64_t channels_of(const ort_graph *graph, ort_id value)
{
    return ort_fact_type(graph, value)->dim[1].size;
}

static bool is_axis(const ort_graph *graph, ort_id value, int64_t axis)
{
    return axis == 1 || axis == 1 - ort_fact_type(graph, value)->rank;
}

/* ---- which nodes */

static bool same_but_channels(const ort_type *a, const ort_type *b)
{
    for (int d = 0; d < a->rank; d++)
        if (a->rank != b->rank || (d != 1 && !ort_dim_equal(a->dim[d], b->dim[d])))
            return false;
    return true;
}

static bool is_number(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    return t && ort_tensor_count(t) == 1;
}

/* A QLinearConcat has scale and zero, then X, scale, zero of each part. */
static bool is_coded(const ort_node *concat)
{
    return concat->op_type[0] == 'Q';
}

static int parts_of(const ort_node *concat)
{
    return is_coded(concat) ? (concat->input_count - 2) / 3 : concat->input_count;
}

static int part_slot(const ort_node *concat, int part)
{
    return is_coded(concat) ? 3 * part + 2 : part;
}

static bool joins(const ort_graph *graph, const ort_node *node)
{
    const ort_type *y = ort_fact_type(graph, node->outputs[0]);
    if (!is_axis(graph, node->outputs[0], ort_node_attr_int(node, "axis")))
        return false;
    for (int i = 0; i < parts_of(node); i++) {
        ort_id in = node->inputs[part_slot(node, i)];
        if (in == ORT_ID_NONE || !ort_bytes_is_value(graph, in) ||
            !same_but_channels(ort_fact_type(graph, in), y))
            return false;
    }
    for (int i = 0; is_coded(node) && i < node->input_count; i++)
        if (i % 3 != 2 && !is_number(graph, node, i))
            return false;
    return true;
}

/* The one number of a constant. */
static bool number_of(const ort_graph *graph, const ort_node *node, int slot, int64_t *number)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    return ort_tensor_one_i64(t, number);
}

/* Slice of channels alone, by constants. */
static bool slices(const ort_graph *graph, const ort_node *node, int64_t *start, int64_t *step)
{
    int64_t axis;
    *step = 1;
    if (node->opset < 10 || node->input_count < 4 || !number_of(graph, node, 1, start) ||
        !number_of(graph, node, 3, &axis) || !is_axis(graph, node->inputs[0], axis) ||
        (ort_edit_input(node, 4) != ORT_ID_NONE && !number_of(graph, node, 4, step)))
        return false;
    const int64_t all = channels_of(graph, node->inputs[0]);
    *start += *start < 0 ? all : 0;
    *start = ort_max_i64(0, ort_min_i64(*start, *step < 0 ? all - 1 : all));
    return *step != 0;
}

static bool gathers(const ort_graph *graph, const ort_node *node)
{
    const ort_tensor *index = ort_edit_constant(graph, node, 1);
    return index && index->shape.rank == 1 &&
           is_axis(graph, node->inputs[0], ort_node_attr_int(node, "axis"));
}

bool ort_bytes_shuffles(const ort_graph *graph, const ort_node *last, ort_node *before[2])
{
    ort_node *turn = ort_edit_producer(graph, last->inputs[0]);
    size_t rank = 0;
    if (!ort_edit_is(last, ONNX, "Reshape") || !ort_edit_is(turn, ONNX, "Transpose") ||
        ort_edit_only_reader(graph, turn->outputs[0]) != last)
        return false;
    ort_node *divide = ort_edit_producer(graph, turn->inputs[0]);
    const int64_t *perm = ort_node_ints(turn, "perm", &rank);
    if (!ort_edit_is(divide, ONNX, "Reshape") || rank < 4 || perm[0] != 0 || perm[1] != 2 ||
        perm[2] != 1 || ort_edit_only_reader(graph, divide->outputs[0]) != turn)
        return false;
    for (int64_t i = 3; i < (int64_t)rank; i++)
        if (perm[i] != i)
            return false;
    const ort_type *x = ort_fact_type(graph, divide->inputs[0]);
    const ort_type *parts = ort_fact_type(graph, divide->outputs[0]);
    if (!ort_bytes_is_value(graph, divide->inputs[0]) ||
        !ort_facts_same_shape(x, ort_fact_type(graph, last->outputs[0])) ||
        !ort_dim_equal(parts->dim[0], x->dim[0]) || !ort_dim_known(parts->dim[1]) ||
        !ort_dim_known(parts->dim[2]) ||
        parts->dim[1].size * parts->dim[2].size != x->dim[1].size)
        return false;
    before[0] = divide;
    before[1] = turn;
    return true;
}

bool ort_bytes_moves(const ort_graph *graph, const ort_node *node)
{
    int64_t start, step;
    ort_node *before[2];
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] == ORT_ID_NONE || !ort_bytes_is_value(graph, node->outputs[i]))
            return false;
    if (ort_edit_is_any(node, "Concat|ms.QLinearConcat"))
        return joins(graph, node);
    if (ort_bytes_shuffles(graph, node, before))
        return true;
    if (!ort_bytes_is_value(graph, node->inputs[0]) ||
        !same_but_channels(ort_fact_type(graph, node->inputs[0]),
                           ort_fact_type(graph, node->outputs[0])))
        return false;
    if (ort_edit_is(node, ONNX, "Split"))
        return is_axis(graph, node->inputs[0], ort_node_attr_int(node, "axis"));
    if (ort_edit_is(node, ONNX, "Slice"))
        return slices(graph, node, &start, &step);
    return ort_edit_is(node, ONNX, "Gather") && gathers(graph, node);
}

/* ---- what values are made of */

static ort_bytes_moved *new_moved(ort_arena *space, int sources, int64_t channels)
{
    ort_bytes_moved *m = ort_arena_alloc(space, sizeof *m);
    if (!m)
        return NULL;
    *m = (ort_bytes_moved){sources, ort_arena_array(space, (size_t)sources, sizeof *m->source),
                           ort_arena_array(space, (size_t)sources, sizeof *m->table), channels,
                           ort_arena_array(space, (size_t)channels, sizeof *m->from)};
    return m->source && m->table && m->from ? m : NULL;
}

/* `value` is what `from` picks of the channels of x; of what x is made of, where x isn't made. */
static ort_status note_picked(ort_bytes_layout *l, ort_id x, ort_id value, const int64_t *from,
                              ort_error *err)
{
    const int64_t channels = channels_of(l->edit.graph, value);
    const ort_bytes_moved *below = l->edit.blocked_of[x] == ORT_ID_NONE ? l->moved[x] : NULL;
    ort_bytes_moved *m = new_moved(l->space, below ? below->count : 1, channels);
    if (!m)
        return ort_error_memory(err, (size_t)channels * sizeof *from);
    for (int i = 0; i < m->count; i++) {
        m->source[i] = below ? below->source[i] : x;
        m->table[i] = below ? below->table[i] : NULL;
    }
    for (int64_t c = 0; c < channels; c++)
        m->from[c] = below ? below->from[from[c]] : from[c];
    l->moved[value] = m;
    return ORT_OK;
}

/* By codes of the layout those of the layout. */
static ort_status make_table(ort_arena *space, const ort_codes *from, const ort_codes *to,
                             const uint8_t **table, ort_error *err)
{
    uint8_t plain[256], *made = ort_arena_alloc(space, sizeof plain);
    const int in = from->is_signed ? 128 : 0, out = to->is_signed ? 128 : 0;
    if (!made)
        return ort_error_memory(err, sizeof plain);
    ort_codes_table(from, to, plain);
    *table = NULL;
    for (int i = 0; i < 256; i++) {
        made[i ^ in] = plain[i] ^ (uint8_t)out;
        if ((i ^ in) != made[i ^ in])
            *table = made;
    }
    return ORT_OK;
}

/* Scale and zero point in this slot and the next, of the codes of a value. */
static ort_codes codes_of(const ort_graph *graph, const ort_node *node, int slot, ort_id value)
{
    return ort_codes_read(ort_edit_constant(graph, node, slot),
                          ort_edit_constant(graph, node, slot + 1),
                          ort_fact_type(graph, value)->dtype);
}

static ort_status note_joined(ort_bytes_layout *l, const ort_node *node, ort_error *err)
{
    const ort_graph *graph = l->edit.graph;
    const ort_id y = node->outputs[0];
    const bool coded = is_coded(node);
    const ort_codes to = coded ? codes_of(graph, node, 0, y) : (ort_codes){0};
    ort_bytes_moved *m = new_moved(l->space, parts_of(node), channels_of(graph, y));
    if (!m)
        return ort_error_memory(err, sizeof *m);
    for (int i = 0; i < m->count; i++) {
        const int slot = part_slot(node, i);
        m->source[i] = node->inputs[slot];
        m->table[i] = NULL;
        if (coded) {
            const ort_codes from = codes_of(graph, node, slot + 1, node->inputs[slot]);
            ORT_TRY(make_table(l->space, &from, &to, &m->table[i], err));
        }
    }
    for (int64_t c = 0; c < m->channels; c++)
        m->from[c] = c;
    l->moved[y] = m;
    return ORT_OK;
}

/* Channel c of output `first` channels behind the first output's. */
static int64_t picked(const ort_graph *graph, const ort_node *node, int64_t first, int64_t c)
{
    int64_t start, step;
    ort_node *before[2];
    if (ort_edit_is(node, ONNX, "Slice") && slices(graph, node, &start, &step))
        return start + c * step;
    if (ort_edit_is(node, ONNX, "Gather")) {
        int64_t at = ort_tensor_get_i64(ort_edit_constant(graph, node, 1), c);
        return at < 0 ? at + channels_of(graph, node->inputs[0]) : at;
    }
    if (ort_bytes_shuffles(graph, node, before)) {
        const ort_type *parts = ort_fact_type(graph, before[0]->outputs[0]);
        int64_t groups = parts->dim[1].size, each = parts->dim[2].size;
        return c % groups * each + c / groups;
    }
    return first + c;
}

ort_status ort_bytes_note_move(ort_bytes_layout *l, const ort_node *node, ort_error *err)
{
    const ort_graph *graph = l->edit.graph;
    ort_node *before[2];
    int64_t first = 0;
    if (ort_edit_is_any(node, "Concat|ms.QLinearConcat"))
        return note_joined(l, node, err);
    const ort_id x = ort_bytes_shuffles(graph, node, before) ? before[0]->inputs[0]
                                                              : node->inputs[0];
    const int64_t all = channels_of(graph, x);
    for (int i = 0; i < node->output_count; i++) {
        const int64_t channels = channels_of(graph, node->outputs[i]);
        int64_t *from = ort_arena_array(l->space, (size_t)channels, sizeof *from);
        if (!from)
            return ort_error_memory(err, (size_t)channels * sizeof *from);
        for (int64_t c = 0; c < channels; c++) {
            from[c] = picked(graph, node, first, c);
            if (from[c] < 0 || from[c] >= all)
                return ort_error_set(err, ORT_ERROR_MODEL, "'%s' picks channels that aren't there",
                                     node->name);
        }
        ORT_TRY(note_picked(l, x, node->outputs[i], from, err));
        first += channels;
    }
    return ORT_OK;
}

/* ---- made when they are read */

static ort_status add_tables(ort_bytes_layout *l, const ort_bytes_moved *m, ort_id *tables,
                             ort_error *err)
{
    ort_shape shape = {2, {m->count, 256}};
    ort_tensor made;
    bool any = false;
    *tables = ORT_ID_NONE;
    for (int i = 0; i < m->count; i++)
        any = any || m->table[i];
    if (!any)
        return ORT_OK;
    ORT_TRY(ort_edit_new_constant(l->edit.graph, "tables", ORT_DTYPE_UINT8, &shape, &made, tables,
                                  err));
    for (int64_t i = 0; i < (int64_t)m->count * 256; i++)
        ((uint8_t *)made.data)[i] = m->table[i / 256] ? m->table[i / 256][i % 256] : (uint8_t)i;
    return ORT_OK;
}

/* BytesChannels of `count` inputs, the first of which are its tables or NONE. */
static ort_status add_channels(ort_bytes_layout *l, const ort_id *inputs, int count,
                               const int64_t *channels, const int64_t *from, int64_t from_count,
                               ort_id like, ort_id *made, ort_error *err)
{
    const size_t numbers = (size_t)(count - 1 + from_count);
    int64_t *kept = ort_arena_array(&l->edit.graph->model->arena, numbers, sizeof *kept);
    *made = ort_layout_value(&l->edit, like);
    if (!kept || *made == ORT_ID_NONE)
        return ort_error_memory(err, numbers * sizeof *kept);
    memcpy(kept, channels, (size_t)(count - 1) * sizeof *kept);
    memcpy(kept + count - 1, from, (size_t)from_count * sizeof *kept);
    const ort_attr set[] = {ort_attr_ints("channels", kept, count - 1),
                            ort_attr_ints("from", kept + count - 1, (int)from_count)};
    return ort_layout_node(&l->edit, NULL, "BytesChannels", inputs, count, *made, set, 2, err);
}

ort_status ort_bytes_pick(ort_bytes_layout *l, ort_id blocked, int64_t channels,
                          const int64_t *from, int64_t count, ort_id like, ort_id *picked,
                          ort_error *err)
{
    const ort_id inputs[] = {ORT_ID_NONE, blocked};
    return add_channels(l, inputs, 2, &channels, from, count, like, picked, err);
}

static ort_status make_moved(ort_bytes_layout *l, ort_id value, const ort_bytes_moved *m,
                             ort_error *err)
{
    ort_id *inputs = ort_arena_array(l->space, (size_t)m->count + 1, sizeof *inputs), made;
    int64_t *channels = ort_arena_array(l->space, (size_t)m->count, sizeof *channels);
    if (!inputs || !channels)
        return ort_error_memory(err, (size_t)m->count * sizeof *channels);
    for (int i = 0; i < m->count; i++) {
        channels[i] = channels_of(l->edit.graph, m->source[i]);
        ORT_TRY(ort_bytes_form(l, m->source[i], &inputs[i + 1], err));
    }
    ORT_TRY(add_tables(l, m, &inputs[0], err));
    ORT_TRY(add_channels(l, inputs, m->count + 1, channels, m->from, m->channels, value, &made,
                         err));
    l->edit.blocked_of[value] = made;
    return ORT_OK;
}

ort_status ort_bytes_form(ort_bytes_layout *l, ort_id value, ort_id *blocked, ort_error *err)
{
    if (l->edit.blocked_of[value] == ORT_ID_NONE && l->moved[value])
        ORT_TRY(make_moved(l, value, l->moved[value], err));
    return ort_layout_input(&l->edit, value, "BlockBytes", blocked, err);
}
