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
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
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

/* Reshape, Flatten, Squeeze or Unsqueeze. */
static bool is_reshape(const ort_node *node)
{
    return ort_node_has_trait(node, ORT_TRAIT_ALIAS) && !ort_edit_is(node, ONNX, "Identity");
}

/* The elements stay in order: only dims of 1 move. */
static bool is_idle_transpose(const ort_graph *graph, const ort_node *node)
{
    ort_perm p;
    int last = -1;
    if (!ort_edit_is(node, ONNX, "Transpose") || !ort_perm_of_node(graph, node, &p))
        return false;
    const ort_type *in = ort_fact_tensor(graph, node->inputs[0]);
    for (int i = 0; in && i < p.rank; i++) {
        if (ort_dim_is(in->dim[p.to[i]], 1))
            continue;
        if (p.to[i] < last)
            return false;
        last = p.to[i];
    }
    return in != NULL;
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

/* `second` of the result of `first` as one Reshape. */
static ort_status join_reshapes(ort_pass_context *c, ort_node *first, ort_node *second,
                                const int64_t *list, int count, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_id inputs[2] = {first->inputs[0]};
    ORT_TRY(ort_constant_named(graph, "new_shape", list, count, &inputs[1], err));
    ort_node_spec spec = {.op_type = "Reshape", .inputs = inputs, .input_count = 2,
                          .origin = ort_edit_origin(graph, first, second)};
    return ort_edit_replace(graph, second, NULL, &spec, err);
}

/* Constant axes of an Unsqueeze as a set of the axes of its result. */
static bool unsqueezed(const ort_graph *graph, const ort_node *node, bool *set, int *rank)
{
    const ort_type *type = ort_fact_tensor(graph, node->outputs[0]);
    int64_t axes[ORT_MAX_RANK];
    if (!ort_edit_is(node, ONNX, "Unsqueeze") || !type)
        return false;
    *rank = type->rank;
    int count = ort_fact_axes(graph, node, 1, *rank, axes);
    memset(set, 0, sizeof *set * ORT_MAX_RANK);
    for (int i = 0; i < count; i++)
        set[axes[i]] = true;
    return count >= 0;
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
        ort_attr axes = ort_attr_ints("axes", list, count);
        return ort_edit_set_attr(graph, second, &axes, err);
    }
    ort_id id;
    ORT_TRY(ort_constant_named(graph, "axes", list, count, &id, err));
    ort_node_set_input(graph, second, 1, id);
    return ort_node_infer(graph, second, err);
}

/* There and back again: uses of the second become those of what the first had. */
static bool undo(ort_graph *graph, const ort_node *first, ort_node *second)
{
    if (!ort_facts_same_shape(ort_fact_type(graph, first->inputs[0]),
                              ort_fact_type(graph, second->outputs[0])) ||
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
    const ort_type *type = ort_fact_type(graph, node->outputs[0]);
    if (ort_edit_only_reader(graph, first->outputs[0]) != node ||
        ort_model_opset(graph->model, ONNX) < 5)
        return ORT_OK;
    if (!ort_reshape_says(ort_fact_type(graph, first->inputs[0]), type, list))
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
    ort_dtype from = ort_fact_type(c->graph, first->inputs[0])->dtype;
    ort_dtype middle = ort_fact_type(c->graph, node->inputs[0])->dtype;
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
    const ort_type *type = ort_fact_type(graph, node->outputs[0]);
    for (int i = 0; i < node->input_count; i++) {
        ort_node *inner = before(graph, node, i);
        ort_id inputs[MAX_INPUTS];
        int count = 0;
        if (!ort_edit_is(inner, ONNX, "Concat") || ort_type_rank(type) <= 0 ||
            ort_edit_only_reader(graph, inner->outputs[0]) != node ||
            node->input_count + inner->input_count - 1 > MAX_INPUTS)
            continue;
        if (ort_fact_axis(node, type->rank) != ort_fact_axis(inner, type->rank))
            continue;
        for (int k = 0; k < node->input_count; k++)
            if (k != i)
                inputs[count++] = node->inputs[k];
            else
                for (int n = 0; n < inner->input_count; n++)
                    inputs[count++] = inner->inputs[n];
        ort_node_spec spec = {.op_type = "Concat", .name = node->name, .inputs = inputs,
                              .input_count = count, .attrs = node->attrs,
                              .attr_count = node->attr_count};
        ++*changes;
        return ort_edit_replace(graph, inner, node, &spec, err);
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
