/* rotary_table.c - reading tables of cosines and sines (rotary_table.h). A whole table,
 * of D numbers for each token, is made of h = D/2 ones by
 *
 *     Concat(f, f)                                                  halves
 *     Reshape(Concat(Unsqueeze f, Unsqueeze f)),
 *     Reshape(Expand or Tile(Unsqueeze f))                          pairs
 *
 * and then by elementwise operators, which are written again for f alone; or rows of a constant, or
 * of its first ones by a Slice, are picked by a Gather; or it is a constant itself.
 */
#include "pass/attention/rotary_table.h"

#include "pass/attention/heads.h"
#include "pass/facts/facts.h"
#include "pass/facts/slice_cut.h"
#include "tensor/scalar.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return ort_fact_type(c->graph, id);
}

/* ---- reading */

/* An elementwise operator of one value, and maybe a number; of ai.onnx, as it is written again. */
static bool is_unary(const ort_pass_context *c, const ort_node *node, int *slot)
{
    *slot = 0;
    if (!ort_node_has_trait(node, ORT_TRAIT_ELEMENTWISE) || strcmp(node->op->domain, ONNX))
        return ort_edit_is(node, ONNX, "Identity");
    for (int i = 0; node->input_count == 2 && i < 2; i++) {
        const ort_tensor *number = ort_edit_constant(c->graph, node, 1 - i);
        *slot = i;
        if (number && ort_tensor_count(number) == 1 && number->shape.rank <= 1)
            return true;
    }
    return node->input_count == 1;
}

/* What `id`, lying so, was made of by Reshapes and their kin; or ORT_ID_NONE. x is the axis of 1
 * for the heads, or tokens before it; p the two numbers of a pair. */
static ort_id made_of(const ort_pass_context *c, ort_id id, const char *lie, const char *of)
{
    return ort_heads_back(c->graph, ort_heads_at(c->graph, id, lie, false), of).id;
}

/* What [B,S,D] was given a dimension of 1 for the heads, or ORT_ID_NONE. */
static ort_id without_heads(const ort_pass_context *c, ort_id id)
{
    return made_of(c, id, "b x s d", "b s d|b x d");
}

/* The f [..., h] that `id` [..., h, 1] was made of, its 1 for the heads there or not. */
static ort_id unsqueezed(const ort_pass_context *c, ort_id id)
{
    static const char *const lies[][2] = {
        {"s d p", "s d"}, {"b s d p", "b s d"}, {"b x s d p", "b x s d|b s d|b x d"}};
    int rank = ort_type_rank(type_of(c, id));
    return rank < 3 || rank > 5 ? ORT_ID_NONE
                                : made_of(c, id, lies[rank - 3][0], lies[rank - 3][1]);
}

static bool joins_last(const ort_pass_context *c, const ort_node *concat)
{
    return ort_edit_is(concat, ONNX, "Concat") &&
           type_of(c, concat->outputs[0])->kind == ORT_TYPE_TENSOR &&
           ort_fact_along_last(concat, type_of(c, concat->outputs[0])->rank);
}

/* [..., h, 1] of which this is two, side by side along the last axis; or ORT_ID_NONE. */
static ort_id doubled(const ort_pass_context *c, const ort_node *node)
{
    const ort_type *wide = type_of(c, node->outputs[0]);
    bool repeats = ort_edit_is(node, ONNX, "Expand") || ort_edit_is(node, ONNX, "Tile");
    if (joins_last(c, node) && node->input_count == 2) {
        ort_id f = unsqueezed(c, node->inputs[0]);
        return f == unsqueezed(c, node->inputs[1]) ? f : ORT_ID_NONE;
    }
    for (int d = 0; repeats && d < wide->rank - 1; d++) /* it repeats the last dimension alone */
        repeats = ort_dim_equal(type_of(c, node->inputs[0])->dim[d], wide->dim[d]);
    return repeats ? unsqueezed(c, node->inputs[0]) : ORT_ID_NONE;
}

/* f of a table whose pairs are of one number. */
static ort_id half_of_pairs(const ort_pass_context *c, ort_id id)
{
    static const char *const lies[][2] = {
        {"s dp", "s d p"}, {"b s dp", "b s d p"}, {"b x s dp", "b x s d p"}};
    int rank = ort_type_rank(type_of(c, id));
    ort_id pairs = rank < 2 || rank > 4
                       ? ORT_ID_NONE
                       : made_of(c, id, lies[rank - 2][0], lies[rank - 2][1]);
    const ort_node *both = pairs == ORT_ID_NONE ? NULL : ort_edit_producer(c->graph, pairs);
    return both && ort_dim_is(type_of(c, pairs)->dim[rank], 2) ? doubled(c, both) : ORT_ID_NONE;
}

/* The same, spelled column by column: a Split of f, each part repeated, all put together. */
static ort_id half_of_columns(const ort_pass_context *c, const ort_node *concat)
{
    ort_part part = {.of = ORT_ID_NONE};
    if (!joins_last(c, concat))
        return ORT_ID_NONE;
    for (int i = 0; i < concat->input_count; i++) {
        ort_id f = half_of_pairs(c, concat->inputs[i]), of = part.of;
        part = f == ORT_ID_NONE ? part : ort_part_of(c->graph, f);
        if (f == ORT_ID_NONE || part.of == ORT_ID_NONE || (i && part.of != of) ||
            part.start != i || part.end != i + 1 || part.step != 1 || part.taken ||
            type_of(c, part.of)->rank != type_of(c, concat->outputs[0])->rank ||
            part.axis != type_of(c, part.of)->rank - 1)
            return ORT_ID_NONE;
    }
    const ort_type *type = part.of == ORT_ID_NONE ? NULL : type_of(c, part.of);
    return type && ort_dim_is(type->dim[type->rank - 1], concat->input_count) ? part.of
                                                                              : ORT_ID_NONE;
}

static ort_id half_of(const ort_pass_context *c, const ort_node *node, ort_rotary_spread spread)
{
    if (spread == ORT_ROTARY_PAIRS) {
        ort_id f = half_of_columns(c, node);
        return f == ORT_ID_NONE ? half_of_pairs(c, node->outputs[0]) : f;
    }
    return joins_last(c, node) && node->input_count == 2 && node->inputs[0] == node->inputs[1]
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
    *one_batch = ort_dim_is(dim[0], 1) && !ort_dim_is(x->dim[0], 1);
    return ort_dim_is(dim[head], 1) && ort_dim_equal(dim[seq], x->dim[seq]) &&
           (*one_batch || ort_dim_equal(dim[0], x->dim[0])) && ort_dim_known(dim[3]) &&
           dim[3].size == width_of(x, spread);
}

/* Does it take whole rows? */
static bool slices_rows(const ort_pass_context *c, const ort_node *slice)
{
    int64_t axis;
    const ort_type *out = type_of(c, slice->outputs[0]);
    return ort_edit_is(slice, ONNX, "Slice") && slice->opset >= 10 && slice->input_count > 3 &&
           ort_tensor_one_i64(ort_edit_constant(c->graph, slice, 3), &axis) && !axis &&
           out->kind == ORT_TYPE_TENSOR && out->rank == 2;
}

/* Rows of a constant that a Gather picks for each token. */
static bool read_gather(const ort_pass_context *c, const ort_node *node, int64_t width,
                        ort_rotary_table *t)
{
    const ort_node *slice = ort_edit_producer(c->graph, node->inputs[0]);
    const ort_type *positions = type_of(c, node->inputs[1]);
    t->slice = slice && slices_rows(c, slice) ? slice : NULL;
    t->rows = ort_edit_constant(c->graph, t->slice ? slice : node, 0);
    if (!t->rows || t->rows->shape.rank != 2 || t->rows->shape.dim[1] != width ||
        ort_node_attr_int(node, "axis") != 0 || positions->kind != ORT_TYPE_TENSOR ||
        positions->rank != 2 || positions->dtype != ORT_DTYPE_INT64 ||
        !is_spread(t->rows, width, t->spread)) {
        t->slice = NULL;
        return false;
    }
    *(t->one_batch ? &t->picked : &t->positions) = node->inputs[1];
    return true;
}

/* A whole that is computed, its dimension for heads anywhere on the way. */
static bool read_chain(const ort_pass_context *c, ort_id id, int64_t width, ort_rotary_table *t)
{
    for (int step = 0; step < 9; step++) {
        int slot;
        ort_id flat = without_heads(c, id);
        const ort_node *node = ort_edit_producer(c->graph, id);
        if (flat != ORT_ID_NONE) {
            id = flat;
            continue;
        }
        if (ort_edit_is(node, ONNX, "Gather") && t->count == 0 &&
            ort_fact_ranked(c->graph, id, 3))
            if (read_gather(c, node, width, t))
                return true;
        t->rows = NULL;
        t->half = t->spread == ORT_ROTARY_ONCE ? id : node ? half_of(c, node, t->spread)
                                                           : ORT_ID_NONE;
        if (t->half != ORT_ID_NONE)
            break;
        if (!node || t->count == 6 || !is_unary(c, node, &slot))
            return false;
        t->slot[t->count] = slot;
        t->chain[t->count++] = node;
        id = node->inputs[slot];
    }
    ort_id flat = t->half == ORT_ID_NONE ? ORT_ID_NONE : without_heads(c, t->half);
    t->half = flat == ORT_ID_NONE ? t->half : flat;
    return t->half != ORT_ID_NONE;
}

bool ort_rotary_read_table(const ort_pass_context *c, ort_id id, const ort_type *x,
                           bool rows_first, ort_rotary_spread spread, ort_rotary_table *t)
{
    int head = rows_first ? 2 : 1, seq = rows_first ? 1 : 2;
    const ort_graph_value *value = c->graph->values.data[id];
    *t = (ort_rotary_table){.spread = spread, .head = head, .half = ORT_ID_NONE,
                             .positions = ORT_ID_NONE, .picked = ORT_ID_NONE};
    if (!table_fits(&value->fact.type, x, rows_first, spread, &t->one_batch))
        return false;
    if (value->fact.value && !value->is_input) {
        t->rows = value->fact.value;
        return (t->one_batch || ort_dim_is(x->dim[0], 1)) &&
               is_spread(t->rows, width_of(x, spread), spread);
    }
    if (!read_chain(c, id, width_of(x, spread), t))
        return false;
    if (t->rows)
        return true;
    const ort_type *half = type_of(c, t->half);
    int rank = half->kind == ORT_TYPE_TENSOR ? half->rank : 0;
    if (rank == 4) /* the dimension for heads goes when it is written */
        return ort_dim_is(half->dim[head], 1);
    return rank >= 2 && rank <= 3 && ort_dim_equal(half->dim[rank - 2], x->dim[seq]);
}

bool ort_rotary_alike(const ort_rotary_table *a, const ort_rotary_table *b)
{
    return !a->rows == !b->rows && a->positions == b->positions && a->one_batch == b->one_batch &&
           a->picked == b->picked && !a->slice == !b->slice &&
           (!a->slice || (a->slice->inputs[1] == b->slice->inputs[1] &&
                          a->slice->inputs[2] == b->slice->inputs[2]));
}
