/* merge_moves.c - two moves of data in a row become one, or none.
 *
 *     Transpose p, Transpose q      Transpose of p[q]
 *     Reshape and its kin, Reshape  the last one (its shape copies no dimension: no 0)
 *     the same, Squeeze, Unsqueeze, Flatten, Reshape with 0
 *                                   one Reshape, when a constant can say its shape
 *     Unsqueeze, Unsqueeze          one Unsqueeze, when it can't
 *     Unsqueeze, Squeeze            nothing, when the shape is the first one's again
 *     Cast a->b, Cast b->c          Cast a->c, when b holds every a exactly
 *     Concat, Concat                one Concat, on the same axis
 *
 * The first stays when others read it. A Transpose that moves only dims of 1 is a Reshape's kin.
 */
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/facts/perm.h"
#include "pass/facts/reshape_groups.h"
#include "pass/pass.h"

static ort_node *before(const ort_graph *graph, const ort_node *node, int slot)
{
    return slot < node->input_count ? ort_edit_producer(graph, node->inputs[slot]) : NULL;
}

/* ---- transposes */

static ort_status merge_transposes(ort_pass_context *c, ort_node *node, int *changes,
                                   ort_error *err)
{
    ort_node *first = before(c->graph, node, 0);
    int64_t list[ORT_MAX_RANK];
    ort_perm p, q;
    if (!ort_edit_is(first, ONNX, "Transpose") || !ort_perm_of_node(c->graph, first, &p) ||
        !ort_perm_of_node(c->graph, node, &q))
        return ORT_OK;
    p = ort_perm_then(&p, &q);
    ort_attr perm = ort_perm_attr(&p, list);
    ort_node_set_input(c->graph, node, 0, first->inputs[0]);
    ++*changes;
    return ort_edit_set_attr(c->graph, node, &perm, err);
}

/* ---- reshapes */

static bool is_reshape(const ort_node *node)
{
    return ort_edit_is(node, ONNX, "Reshape") || ort_edit_is(node, ONNX, "Flatten") ||
           ort_edit_is(node, ONNX, "Squeeze") || ort_edit_is(node, ONNX, "Unsqueeze");
}

/* The elements stay in order: only dims of 1 move. */
static bool is_idle_transpose(const ort_graph *graph, const ort_node *node)
{
    ort_perm p;
    int last = -1;
    if (!ort_edit_is(node, ONNX, "Transpose") || !ort_perm_of_node(graph, node, &p))
        return false;
    const ort_type *in = &graph->values.data[node->inputs[0]]->fact.type;
    if (in->kind != ORT_TYPE_TENSOR || in->rank < 0)
        return false;
    for (int i = 0; i < p.rank; i++) {
        ort_dim dim = in->dim[p.to[i]];
        if (ort_dim_known(dim) && dim.size == 1)
            continue;
        if (p.to[i] < last)
            return false;
        last = p.to[i];
    }
    return true;
}

static bool keeps_order(const ort_graph *graph, const ort_node *node)
{
    return is_reshape(node) || is_idle_transpose(graph, node);
}

/* A Reshape whose result depends on the number of elements alone. */
static bool absolute(const ort_graph *graph, const ort_node *node)
{
    const ort_tensor *shape = ort_edit_constant(graph, node, 1);
    if (!ort_edit_is(node, ONNX, "Reshape") || !shape || !shape->data)
        return false;
    for (int64_t i = 0; i < ort_tensor_count(shape); i++)
        if (!ort_tensor_get_i64(shape, i))
            return false;
    return true;
}

static bool same_shape(const ort_type *a, const ort_type *b)
{
    if (a->kind != ORT_TYPE_TENSOR || b->kind != ORT_TYPE_TENSOR || a->rank < 0 ||
        a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (!ort_dim_equal(a->dim[d], b->dim[d]))
            return false;
    return true;
}

/* `second` of the result of `first` as one Reshape. */
static ort_status join_reshapes(ort_pass_context *c, ort_node *first, ort_node *second,
                                const int64_t *list, int count, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_tensor t = {.dtype = ORT_DTYPE_INT64, .shape = {.rank = 1, .dim = {count}},
                    .data = (void *)(uintptr_t)list};
    ort_id inputs[2] = {first->inputs[0]}, output = second->outputs[0];
    ORT_TRY(ort_edit_add_constant(graph, "new_shape", &t, &inputs[1], err));
    ort_node_spec spec = {.domain = ONNX, .op_type = "Reshape", .name = second->name,
                          .inputs = inputs, .input_count = 2, .outputs = &output,
                          .output_count = 1, .origin = ort_edit_origin(graph, first, second)};
    ort_graph_remove_node(graph, second);
    return ort_edit_add_node(graph, &spec, NULL, err);
}

/* Constant axes of an Unsqueeze as a set of the axes of its result. */
static bool unsqueezed(const ort_graph *graph, const ort_node *node, bool *axes, int *rank)
{
    size_t count = 0;
    const int64_t *list = ort_node_ints(node, "axes", &count);
    const ort_tensor *given = ort_edit_constant(graph, node, 1);
    const ort_type *type = &graph->values.data[node->outputs[0]]->fact.type;
    if (!ort_edit_is(node, ONNX, "Unsqueeze") || (!list && (!given || !given->data)) ||
        type->kind != ORT_TYPE_TENSOR || type->rank < 0)
        return false;
    count = list ? count : (size_t)ort_tensor_count(given);
    *rank = type->rank;
    memset(axes, 0, sizeof *axes * ORT_MAX_RANK);
    for (size_t i = 0; i < count; i++) {
        int64_t axis = list ? list[i] : ort_tensor_get_i64(given, (int64_t)i);
        axis += axis < 0 ? *rank : 0;
        if (axis < 0 || axis >= *rank)
            return false;
        axes[axis] = true;
    }
    return true;
}

static ort_status join_unsqueezes(ort_pass_context *c, ort_node *first, ort_node *second,
                                  int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    bool inner[ORT_MAX_RANK], outer[ORT_MAX_RANK];
    int64_t list[ORT_MAX_RANK];
    int inner_rank, rank, count = 0;
    if (!unsqueezed(graph, first, inner, &inner_rank) || !unsqueezed(graph, second, outer, &rank))
        return ORT_OK;
    for (int i = 0, k = 0; i < rank; i++)
        if (outer[i] || (k < inner_rank && inner[k++]))
            list[count++] = i;
    ++*changes;
    ort_node_set_input(graph, second, 0, first->inputs[0]);
    if (second->input_count < 2) {
        ort_attr axes = {.name = "axes", .type = ORT_ATTR_INTS, .ints = list,
                         .count = (size_t)count};
        return ort_edit_set_attr(graph, second, &axes, err);
    }
    ort_tensor t = {.dtype = ORT_DTYPE_INT64, .shape = {.rank = 1, .dim = {count}}, .data = list};
    ort_id id;
    ORT_TRY(ort_edit_add_constant(graph, "axes", &t, &id, err));
    ort_node_set_input(graph, second, 1, id);
    return ort_node_infer(graph, second, err);
}

/* There and back again: uses of the second become those of what the first had. */
static bool undo(ort_graph *graph, const ort_node *first, ort_node *second)
{
    if (!same_shape(&graph->values.data[first->inputs[0]]->fact.type,
                    &graph->values.data[second->outputs[0]]->fact.type) ||
        graph->values.data[second->outputs[0]]->is_output)
        return false;
    ort_graph_replace_uses(graph, second->outputs[0], first->inputs[0]);
    ort_graph_remove_node(graph, second);
    return true;
}

static ort_status merge_reshapes(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_node *first = before(graph, node, 0);
    int64_t list[ORT_MAX_RANK];
    if (!keeps_order(graph, first))
        return ORT_OK;
    if (undo(graph, first, node)) {
        ++*changes;
        return ORT_OK;
    }
    if (absolute(graph, node)) {
        ort_node_set_input(graph, node, 0, first->inputs[0]);
        ++*changes;
        return ort_node_infer(graph, node, err);
    }
    const ort_type *type = &graph->values.data[node->outputs[0]]->fact.type;
    if (ort_edit_only_reader(graph, first->outputs[0]) != node ||
        ort_model_opset(graph->model, ONNX) < 5)
        return ORT_OK;
    if (!ort_reshape_says(&graph->values.data[first->inputs[0]]->fact.type, type, list))
        return join_unsqueezes(c, first, node, changes, err);
    ++*changes;
    return join_reshapes(c, first, node, list, type->rank, err);
}

/* ---- casts */

/* Bits of integers that an element type holds exactly: of a float its significand. Negative:
 * signed. 0: not a number type that this table knows. */
static int exact_bits(ort_dtype dtype)
{
    switch (dtype) {
    case ORT_DTYPE_BOOL: return 1;
    case ORT_DTYPE_UINT8: return 8;
    case ORT_DTYPE_UINT16: return 16;
    case ORT_DTYPE_UINT32: return 32;
    case ORT_DTYPE_UINT64: return 64;
    case ORT_DTYPE_INT8: return -7;
    case ORT_DTYPE_INT16: return -15;
    case ORT_DTYPE_INT32: return -31;
    case ORT_DTYPE_INT64: return -63;
    default: return 0;
    }
}

static int float_bits(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_DOUBLE ? 53 : dtype == ORT_DTYPE_FLOAT ? 24 : 0;
}

/* Does `to` hold every value of `from` exactly? */
static bool holds(ort_dtype to, ort_dtype from)
{
    int a = exact_bits(from), b = exact_bits(to);
    int magnitude = a < 0 ? -a : a;
    if (to == from)
        return true;
    if (a && b)
        return a > 0 ? (b > 0 ? b >= a : -b >= a) : b < 0 && b <= a;
    if (a)
        return float_bits(to) >= magnitude;
    if (from == ORT_DTYPE_FLOAT16 || from == ORT_DTYPE_BFLOAT16)
        return to == ORT_DTYPE_FLOAT || to == ORT_DTYPE_DOUBLE;
    return from == ORT_DTYPE_FLOAT && to == ORT_DTYPE_DOUBLE;
}

static ort_status merge_casts(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_node *first = before(c->graph, node, 0);
    if (!ort_edit_is(first, ONNX, "Cast"))
        return ORT_OK;
    ort_dtype from = c->graph->values.data[first->inputs[0]]->fact.type.dtype;
    ort_dtype middle = c->graph->values.data[node->inputs[0]]->fact.type.dtype;
    if (from == ORT_DTYPE_UNDEFINED || middle == ORT_DTYPE_UNDEFINED || !holds(middle, from)) {
        ort_pass_note(c, node, "the cast before it doesn't keep every value");
        return ORT_OK;
    }
    ort_node_set_input(c->graph, node, 0, first->inputs[0]);
    ++*changes;
    return ort_node_infer(c->graph, node, err);
}

/* ---- concats */

enum { MAX_INPUTS = 64 };

static ort_status merge_concats(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    const ort_type *type = &graph->values.data[node->outputs[0]]->fact.type;
    for (int i = 0; i < node->input_count; i++) {
        ort_node *inner = before(graph, node, i);
        ort_id inputs[MAX_INPUTS];
        int count = 0;
        if (!ort_edit_is(inner, ONNX, "Concat") || type->kind != ORT_TYPE_TENSOR ||
            type->rank <= 0 || ort_edit_only_reader(graph, inner->outputs[0]) != node ||
            node->input_count + inner->input_count - 1 > MAX_INPUTS)
            continue;
        int64_t a = ort_node_int(node, "axis", 0), b = ort_node_int(inner, "axis", 0);
        if ((a < 0 ? a + type->rank : a) != (b < 0 ? b + type->rank : b))
            continue;
        for (int k = 0; k < node->input_count; k++)
            if (k != i)
                inputs[count++] = node->inputs[k];
            else
                for (int n = 0; n < inner->input_count; n++)
                    inputs[count++] = inner->inputs[n];
        ort_node_spec spec = {.domain = ONNX, .op_type = "Concat", .name = node->name,
                              .inputs = inputs, .input_count = count, .outputs = node->outputs,
                              .output_count = 1, .attrs = node->attrs,
                              .attr_count = node->attr_count,
                              .origin = ort_edit_origin(graph, inner, node)};
        ort_graph_remove_node(graph, node);
        ort_graph_remove_node(graph, inner);
        ++*changes;
        return ort_edit_add_node(graph, &spec, NULL, err);
    }
    return ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (is_reshape(node) || (is_idle_transpose(c->graph, node) &&
                                 is_reshape(before(c->graph, node, 0))))
            ORT_TRY(merge_reshapes(c, node, changes, err));
        else if (ort_edit_is(node, ONNX, "Transpose"))
            ORT_TRY(merge_transposes(c, node, changes, err));
        else if (ort_edit_is(node, ONNX, "Cast"))
            ORT_TRY(merge_casts(c, node, changes, err));
        else if (ort_edit_is(node, ONNX, "Concat"))
            ORT_TRY(merge_concats(c, node, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_merge_moves = {
    .name = "merge_moves",
    .level = 1,
    .exact = true,
    .doc = "two transposes, reshapes, casts or concats in a row become one",
    .apply = apply,
};
