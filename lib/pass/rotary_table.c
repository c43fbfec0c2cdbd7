/* rotary_table.c - reading and writing tables of cosines and sines (rotary_table.h). A whole table,
 * of D numbers for each token, is made of h = D/2 ones by
 *
 *     Concat(f, f)                                                  halves
 *     Reshape(Concat(Unsqueeze f, Unsqueeze f)),
 *     Reshape(Expand or Tile(Unsqueeze f))                          pairs
 *
 * and then by elementwise operators, which are written again for f alone; or rows of a constant are
 * picked by a Gather; or it is a constant itself.
 */
#include "pass/rotary_table.h"

#include "base/error.h"
#include "pass/attention_match.h"
#include "pass/constants.h"
#include "pass/dim_source.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return &c->graph->values.data[id]->fact.type;
}

static bool is_last(int64_t axis, int rank)
{
    return axis == -1 || axis == rank - 1;
}

static bool is_one(ort_dim dim)
{
    return ort_dim_known(dim) && dim.size == 1;
}

/* ---- reading */

static bool is_unary(const ort_pass_context *c, const ort_node *node, int *slot)
{
    static const char *const names[] = {"Cos", "Sin", "Cast", "Identity", "Neg"};
    *slot = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ort_edit_is(node, ONNX, names[i]))
            return true;
    for (int i = 0; ort_edit_is(node, ONNX, "Mul") && i < 2; i++) {
        const ort_tensor *factor = ort_edit_constant(c->graph, node, 1 - i);
        *slot = i;
        if (factor && ort_tensor_count(factor) == 1 && factor->shape.rank <= 1)
            return true;
    }
    return false;
}

/* What [B,S,D] (or [S,D]) was given a dimension of 1 for the heads, or ORT_ID_NONE. */
static ort_id without_heads(const ort_pass_context *c, ort_id id, int head_axis)
{
    const ort_node *node = ort_edit_producer(c->graph, id);
    if ((!ort_edit_is(node, ONNX, "Unsqueeze") && !ort_edit_is(node, ONNX, "Reshape")) ||
        !ort_attention_ranked(c->graph, id, 4) ||
        !ort_attention_ranked(c->graph, node->inputs[0], 3))
        return ORT_ID_NONE;
    const ort_type *wide = type_of(c, id), *flat = type_of(c, node->inputs[0]);
    for (int d = 0; d < 3; d++)
        if (!ort_dim_equal(flat->dim[d], wide->dim[d < head_axis ? d : d + 1]))
            return ORT_ID_NONE;
    return node->inputs[0];
}

/* The f [..., h] that `id` [..., h, 1] was made of, its 1 for the heads there or not. */
static ort_id unsqueezed(const ort_pass_context *c, ort_id id, int head)
{
    const ort_node *node = ort_edit_producer(c->graph, id);
    if (!ort_edit_is(node, ONNX, "Unsqueeze") && !ort_edit_is(node, ONNX, "Reshape"))
        return ORT_ID_NONE;
    const ort_type *wide = type_of(c, id), *flat = type_of(c, node->inputs[0]);
    if (wide->kind != ORT_TYPE_TENSOR || flat->kind != ORT_TYPE_TENSOR || wide->rank < 3 ||
        !is_one(wide->dim[wide->rank - 1]))
        return ORT_ID_NONE;
    bool headless = wide->rank == 5 && flat->rank == 3 && is_one(wide->dim[head]);
    if (!headless && wide->rank != flat->rank + 1)
        return ORT_ID_NONE;
    for (int d = 0; d < flat->rank; d++)
        if (!ort_dim_equal(flat->dim[d], wide->dim[headless && d >= head ? d + 1 : d]))
            return ORT_ID_NONE;
    return node->inputs[0];
}

/* f of a table whose pairs are of one number. */
static ort_id half_of_pairs(const ort_pass_context *c, const ort_node *reshape, int head)
{
    if (!ort_edit_is(reshape, ONNX, "Reshape"))
        return ORT_ID_NONE;
    const ort_node *both = ort_edit_producer(c->graph, reshape->inputs[0]);
    const ort_type *wide = type_of(c, reshape->inputs[0]);
    const ort_type *whole = type_of(c, reshape->outputs[0]);
    if (!both || wide->kind != ORT_TYPE_TENSOR || whole->kind != ORT_TYPE_TENSOR ||
        wide->rank != whole->rank + 1 || !ort_dim_known(wide->dim[wide->rank - 1]) ||
        wide->dim[wide->rank - 1].size != 2)
        return ORT_ID_NONE;
    for (int d = 0; d < whole->rank - 1; d++)
        if (!ort_dim_equal(wide->dim[d], whole->dim[d]))
            return ORT_ID_NONE;
    bool same = ort_edit_is(both, ONNX, "Concat") && both->input_count == 2 &&
                both->inputs[0] == both->inputs[1] &&
                is_last(ort_node_int(both, "axis", 0), wide->rank);
    if (ort_edit_is(both, ONNX, "Concat") && both->input_count == 2 && !same &&
        is_last(ort_node_int(both, "axis", 0), wide->rank)) {
        ort_id f = unsqueezed(c, both->inputs[0], head);
        return f == unsqueezed(c, both->inputs[1], head) ? f : ORT_ID_NONE;
    }
    bool repeats = ort_edit_is(both, ONNX, "Expand") || ort_edit_is(both, ONNX, "Tile");
    ort_id f = same || repeats ? unsqueezed(c, both->inputs[0], head) : ORT_ID_NONE;
    if (f == ORT_ID_NONE || same)
        return f;
    for (int d = 0; d < whole->rank - 1; d++) /* it repeats the last dimension alone */
        if (!ort_dim_equal(type_of(c, both->inputs[0])->dim[d], wide->dim[d]))
            return ORT_ID_NONE;
    return f;
}

static ort_id half_of(const ort_pass_context *c, const ort_node *node, int head,
                      ort_rotary_spread spread)
{
    if (spread == ORT_ROTARY_PAIRS)
        return half_of_pairs(c, node, head);
    return ort_edit_is(node, ONNX, "Concat") && node->input_count == 2 &&
                   node->inputs[0] == node->inputs[1] &&
                   type_of(c, node->outputs[0])->kind == ORT_TYPE_TENSOR &&
                   is_last(ort_node_int(node, "axis", 0), type_of(c, node->outputs[0])->rank)
               ? node->inputs[0]
               : ORT_ID_NONE;
}

/* Do both elements of each pair of these rows have one number? */
static bool is_spread(const ort_tensor *t, int64_t width, ort_rotary_spread spread)
{
    int64_t count = ort_tensor_count(t), half = width / 2;
    bool pairs = spread == ORT_ROTARY_PAIRS;
    int64_t step = pairs ? 2 : 1, other = pairs ? 1 : half;
    if (!t->data || t->stride || t->dtype == ORT_DTYPE_STRING)
        return false;
    for (int64_t r = 0; r < count && spread != ORT_ROTARY_ONCE; r += width)
        for (int64_t i = 0; i < half; i++)
            if (ort_tensor_get_f64(t, r + i * step) != ort_tensor_get_f64(t, r + i * step + other))
                return false;
    return true;
}

static int64_t width_of(const ort_type *x, ort_rotary_spread spread)
{
    return spread == ORT_ROTARY_ONCE ? x->dim[3].size / 2 : x->dim[3].size;
}

/* Does it broadcast onto x with one number for all heads? */
static bool table_fits(const ort_type *type, const ort_type *x, bool rows_first,
                       ort_rotary_spread spread, bool *one_batch)
{
    ort_dim dim[4];
    int head = rows_first ? 2 : 1, seq = rows_first ? 1 : 2;
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 2 || type->rank > 4)
        return false;
    for (int d = 0; d < 4; d++)
        dim[d] = d < 4 - type->rank ? ort_dim_of(1) : type->dim[d - (4 - type->rank)];
    *one_batch = is_one(dim[0]) && !is_one(x->dim[0]);
    return is_one(dim[head]) && ort_dim_equal(dim[seq], x->dim[seq]) &&
           (*one_batch || ort_dim_equal(dim[0], x->dim[0])) && ort_dim_known(dim[3]) &&
           dim[3].size == width_of(x, spread);
}

/* Rows of a constant that a Gather picks for each token. */
static bool read_gather(const ort_pass_context *c, const ort_node *node, int64_t width,
                        ort_rotary_table *t)
{
    t->rows = ort_edit_constant(c->graph, node, 0);
    const ort_type *positions = type_of(c, node->inputs[1]);
    if (!t->rows || t->rows->shape.rank != 2 || t->rows->shape.dim[1] != width ||
        ort_node_int(node, "axis", 0) != 0 || positions->kind != ORT_TYPE_TENSOR ||
        positions->rank != 2 || positions->dtype != ORT_DTYPE_INT64 || t->one_batch ||
        !is_spread(t->rows, width, t->spread))
        return false;
    t->positions = node->inputs[1];
    return true;
}

/* A whole that is computed, its dimension for heads anywhere on the way. */
static bool read_chain(const ort_pass_context *c, ort_id id, int head, int64_t width,
                       ort_rotary_table *t)
{
    for (int step = 0; step < 9; step++) {
        int slot;
        ort_id flat = without_heads(c, id, head);
        const ort_node *node = ort_edit_producer(c->graph, id);
        if (flat != ORT_ID_NONE) {
            id = flat;
            continue;
        }
        if (ort_edit_is(node, ONNX, "Gather") && t->count == 0 &&
            ort_attention_ranked(c->graph, id, 3))
            if (read_gather(c, node, width, t))
                return true;
        t->rows = NULL;
        t->half = t->spread == ORT_ROTARY_ONCE ? id : node ? half_of(c, node, head, t->spread)
                                                           : ORT_ID_NONE;
        if (t->half != ORT_ID_NONE)
            break;
        if (!node || t->count == 6 || !is_unary(c, node, &slot))
            return false;
        t->chain[t->count++] = node;
        id = node->inputs[slot];
    }
    ort_id flat = t->half == ORT_ID_NONE ? ORT_ID_NONE : without_heads(c, t->half, head);
    t->half = flat == ORT_ID_NONE ? t->half : flat;
    return t->half != ORT_ID_NONE;
}

bool ort_rotary_read_table(const ort_pass_context *c, ort_id id, const ort_type *x,
                           bool rows_first, ort_rotary_spread spread, ort_rotary_table *t)
{
    int head = rows_first ? 2 : 1, seq = rows_first ? 1 : 2;
    const ort_graph_value *value = c->graph->values.data[id];
    *t = (ort_rotary_table){.spread = spread, .head = head, .half = ORT_ID_NONE,
                             .positions = ORT_ID_NONE};
    if (!table_fits(&value->fact.type, x, rows_first, spread, &t->one_batch))
        return false;
    if (value->fact.value && !value->is_input) {
        t->rows = value->fact.value;
        return (t->one_batch || is_one(x->dim[0])) &&
               is_spread(t->rows, width_of(x, spread), spread);
    }
    if (!read_chain(c, id, head, width_of(x, spread), t))
        return false;
    if (t->rows)
        return true;
    const ort_type *half = type_of(c, t->half);
    int rank = half->kind == ORT_TYPE_TENSOR ? half->rank : 0;
    if (rank == 4) /* the dimension for heads goes when it is written */
        return is_one(half->dim[head]);
    return rank >= 2 && rank <= 3 && ort_dim_equal(half->dim[rank - 2], x->dim[seq]);
}

bool ort_rotary_alike(const ort_rotary_table *a, const ort_rotary_table *b)
{
    return !a->rows == !b->rows && a->positions == b->positions && a->one_batch == b->one_batch;
}

/* ---- writing */

/* opset: from which on it can be written so; 0: any. */
static ort_status add(ort_pass_context *c, const char *op_type, const ort_id *inputs, int count,
                      const ort_attr *set, int set_count, int opset, ort_id *result,
                      ort_error *err)
{
    int have = (int)ort_model_opset(c->graph->model, ONNX);
    *result = ort_graph_add_value(c->graph, "");
    if (*result == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *result);
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .name = "", .inputs = inputs,
                          .input_count = count, .outputs = result, .output_count = 1, .set = set,
                          .set_count = set_count, .opset = have < opset ? opset : 0};
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

/* One number of each pair of a constant's rows. */
static ort_status half_rows(ort_pass_context *c, const ort_rotary_table *t, int64_t half,
                            bool batched, ort_id *id, ort_error *err)
{
    ort_value *made = NULL;
    int64_t width = t->spread == ORT_ROTARY_ONCE ? half : 2 * half;
    int64_t step = t->spread == ORT_ROTARY_PAIRS ? 2 : 1;
    int64_t count = ort_tensor_count(t->rows) / width;
    ort_shape shape = batched ? ort_shape_make(3, (const int64_t[]){1, count, half})
                              : ort_shape_make(2, (const int64_t[]){count, half});
    ORT_TRY(ort_value_new_tensor_(t->rows->dtype, &shape, &made, err));
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0; i < half; i++)
            ort_tensor_set_f64(&made->tensor, r * half + i,
                               ort_tensor_get_f64(t->rows, r * width + i * step));
    ort_status status = ort_edit_add_constant(c->graph, "", &made->tensor, id, err);
    ort_value_free(made);
    return status;
}

/* f as [B,S,h] or [1,S,h]. */
static ort_status flat_half(ort_pass_context *c, const ort_rotary_table *t, ort_id *id,
                            ort_error *err)
{
    const ort_type *type = type_of(c, t->half);
    int64_t list[3] = {type->rank == 2, t->head == 2 && type->rank == 4 ? 0 : -1,
                       type->dim[type->rank - 1].size};
    ort_id inputs[2] = {t->half};
    *id = t->half;
    if (type->rank == 3)
        return ORT_OK;
    ORT_TRY(ort_constant_list(c->graph, list, 3, &inputs[1], err));
    return add(c, "Reshape", inputs, 2, NULL, 0, 0, id, err);
}

/* The operators from f to the whole, for f alone. Layers share them, once merged. */
static ort_status copy_chain(ort_pass_context *c, const ort_rotary_table *t, ort_id *id,
                             ort_error *err)
{
    for (int i = t->count; i-- > 0;) {
        const ort_node *old = t->chain[i];
        int slot;
        ort_id inputs[2] = {old->inputs[0], old->input_count > 1 ? old->inputs[1] : ORT_ID_NONE};
        (void)is_unary(c, old, &slot);
        inputs[slot] = *id;
        ort_id made = ort_graph_add_value(c->graph, "");
        if (made == ORT_ID_NONE)
            return ort_error_memory(err, sizeof made);
        ort_node_spec spec = {.domain = ONNX, .op_type = old->op_type, .name = "",
                              .inputs = inputs, .input_count = old->input_count,
                              .outputs = &made, .output_count = 1, .attrs = old->attrs,
                              .attr_count = old->attr_count, .opset = old->opset,
                              .origin = old->origin};
        ORT_TRY(ort_edit_add_node(c->graph, &spec, NULL, err));
        *id = made;
    }
    return ORT_OK;
}

/* [1,S,h] for each of B. */
static ort_status repeat(ort_pass_context *c, const ort_type *x, ort_id source, ort_id *id,
                         ort_error *err)
{
    ort_id shape, size, one, expand[2] = {*id};
    int64_t list[3] = {1, 1, 1}, axis = 0;
    if (ort_dim_known(x->dim[0])) {
        list[0] = x->dim[0].size;
        ORT_TRY(ort_constant_list(c->graph, list, 3, &expand[1], err));
        return add(c, "Expand", expand, 2, NULL, 0, 0, id, err);
    }
    (void)ort_dim_source(c, x->dim[0], &source, &axis);
    ort_attr ends[2] = {{.name = "start", .type = ORT_ATTR_INT, .i = axis},
                        {.name = "end", .type = ORT_ATTR_INT, .i = axis + 1}};
    ORT_TRY(add(c, "Shape", &source, 1, ends, 2, 15, &size, err));
    ORT_TRY(ort_constant_list(c->graph, list, 2, &one, err));
    ort_attr along = {.name = "axis", .type = ORT_ATTR_INT, .i = 0};
    ORT_TRY(add(c, "Concat", (ort_id[]){size, one}, 2, &along, 1, 0, &shape, err));
    expand[1] = shape;
    return add(c, "Expand", expand, 2, NULL, 0, 0, id, err);
}

ort_status ort_rotary_write_table(ort_pass_context *c, const ort_rotary_table *t,
                                  const ort_type *x, ort_id source, ort_id *id, ort_error *err)
{
    int64_t half = x->dim[3].size / 2;
    if (t->rows && t->positions != ORT_ID_NONE)
        return half_rows(c, t, half, false, id, err);
    if (t->rows) {
        ORT_TRY(half_rows(c, t, half, true, id, err));
    } else {
        ORT_TRY(flat_half(c, t, id, err));
        ORT_TRY(copy_chain(c, t, id, err));
    }
    return t->one_batch ? repeat(c, x, source, id, err) : ORT_OK;
}

/* ---- rows of com.microsoft */

/* 0, 1, 2 ... as [B,S] of this [B,S,h]; with B = 1 the number of the first, [1]. */
static ort_status number_rows(ort_pass_context *c, ort_id rows, ort_id *positions, ort_error *err)
{
    const ort_type *type = type_of(c, rows);
    const int64_t zero = 0, one = 1;
    ort_id shape, size, range[3], reshape[2];
    if (type->rank == 2 || is_one(type->dim[0]))
        return ort_constant_list(c->graph, &zero, 1, positions, err);
    ort_attr ends[2] = {{.name = "start", .type = ORT_ATTR_INT, .i = 0},
                        {.name = "end", .type = ORT_ATTR_INT, .i = 2}};
    ort_attr flat = {.name = "keepdims", .type = ORT_ATTR_INT, .i = 0};
    ort_tensor number = {.dtype = ORT_DTYPE_INT64, .shape = {.rank = 0},
                         .data = (void *)(uintptr_t)&zero};
    ORT_TRY(add(c, "Shape", &rows, 1, ends, 2, 15, &shape, err));
    ORT_TRY(add(c, "ReduceProd", &shape, 1, &flat, 1, 0, &size, err));
    ORT_TRY(ort_edit_add_constant(c->graph, "", &number, &range[0], err));
    number.data = (void *)(uintptr_t)&one;
    ORT_TRY(ort_edit_add_constant(c->graph, "", &number, &range[2], err));
    range[1] = size;
    ORT_TRY(add(c, "Range", range, 3, NULL, 0, 0, &reshape[0], err));
    reshape[1] = shape;
    return add(c, "Reshape", reshape, 2, NULL, 0, 0, positions, err);
}

/* [B,S,h] as [B*S,h]; a table of rows stays. */
static ort_status lay_rows(ort_pass_context *c, ort_id *rows, ort_error *err)
{
    const ort_type *type = type_of(c, *rows);
    ort_id inputs[2] = {*rows};
    if (type->rank == 2)
        return ORT_OK;
    const int64_t list[2] = {-1, type->dim[2].size};
    ORT_TRY(ort_constant_list(c->graph, list, 2, &inputs[1], err));
    return add(c, "Reshape", inputs, 2, NULL, 0, 0, rows, err);
}

const char *ort_rotary_microsoft_fits(const ort_pass_context *c, const ort_type *x,
                                      const ort_rotary_table *t)
{
    if (x->dtype != ORT_DTYPE_FLOAT)
        return "com.microsoft RotaryEmbedding would fit if it were float";
    if (t->rows || t->one_batch)
        return NULL;
    const ort_type *half = type_of(c, t->half);
    if (!ort_dim_known(half->dim[half->rank - 1]))
        return "the table's width isn't known";
    return ort_model_opset(c->graph->model, ONNX) < 15
               ? "what numbers the rows of its table came with opset 15" : NULL;
}

ort_status ort_rotary_write_rows(ort_pass_context *c, const ort_rotary_table tables[2],
                                 ort_id ids[2], ort_id *positions, ort_error *err)
{
    *positions = tables[0].positions;
    for (int i = 0; i < 2; i++) {
        const ort_rotary_table *t = &tables[i];
        int64_t width;
        if (t->rows) {
            width = t->rows->shape.dim[t->rows->shape.rank - 1];
            ORT_TRY(half_rows(c, t, t->spread == ORT_ROTARY_ONCE ? width : width / 2, false,
                              &ids[i], err));
            continue;
        }
        ORT_TRY(flat_half(c, t, &ids[i], err));
        ORT_TRY(copy_chain(c, t, &ids[i], err));
    }
    if (*positions == ORT_ID_NONE)
        ORT_TRY(number_rows(c, ids[0], positions, err));
    for (int i = 0; i < 2; i++)
        ORT_TRY(lay_rows(c, &ids[i], err));
    return ORT_OK;
}
