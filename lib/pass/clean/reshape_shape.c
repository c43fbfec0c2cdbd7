/* reshape_shape.c - the shape of a Reshape as a constant, where inference knows its elements as
 * dimensions: a number stays, a dimension of the input in the same place is 0 (copied), one that
 * remains is -1. What computed the shape then goes when nobody else reads it.
 *
 *     Shape, Gather, Concat ... -> Reshape      [0, -1, 12, 64] -> Reshape
 *
 * The shape of an Expand likewise: 1 wherever the result has the dimension that came in.
 *
 *     Shape, Equal, Where, Concat ... -> Expand      [1, 1, 4, 1, 1] -> Expand
 */
#include "base/error.h"
#include "op/edit.h"
#include "pass/pass.h"

/* The constant form of the wanted shape in `out`; false when two dimensions would be open. */
static bool express(const ort_fact *shape, const ort_type *in, int64_t *list)
{
    int open = 0;
    for (int i = 0; i < shape->symbolic_count; i++) {
        ort_dim wanted = shape->symbolic[i];
        bool copies = i < in->rank && !ort_dim_known(wanted) &&
                      ort_dim_equal(wanted, in->dim[i]);
        if (ort_dim_known(wanted) && wanted.size == 0)
            return false; /* 0 would copy */
        if (ort_dim_known(wanted))
            list[i] = wanted.size;
        else
            list[i] = copies ? 0 : -1;
        open += list[i] == -1;
    }
    return open <= 1;
}

static ort_status fix(ort_pass_context *c, ort_node *node, const int64_t *list, int count,
                      ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_tensor t = {.dtype = ORT_DTYPE_INT64, .shape = {.rank = 1, .dim = {count}},
                    .data = (void *)(uintptr_t)list};
    ort_id id;
    ORT_TRY(ort_edit_add_constant(graph, graph->values.data[node->inputs[1]]->name, &t, &id, err));
    ort_node_set_input(graph, node, 1, id);
    return ort_node_infer(graph, node, err);
}

/* Does the slot hold a shape that is computed? */
static const ort_graph_value *computed_shape(const ort_graph *graph, const ort_node *node)
{
    const ort_graph_value *shape =
        node->input_count > 1 ? ort_graph_value_at(graph, node->inputs[1]) : NULL;
    return shape && !shape->fact.value && !shape->is_input ? shape : NULL;
}

static bool is_ranked(const ort_type *type)
{
    return type->kind == ORT_TYPE_TENSOR && type->rank >= 0;
}

static ort_status fix_reshape(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    int64_t list[ORT_MAX_RANK];
    const ort_graph_value *shape = computed_shape(c->graph, node);
    const ort_graph_value *in = ort_graph_value_at(c->graph, node->inputs[0]);
    const ort_fact *fact = shape ? &shape->fact : NULL;
    if (!in || !fact || !fact->symbolic || fact->type.rank != 1 ||
        fact->symbolic_count > ORT_MAX_RANK || !is_ranked(&in->fact.type) ||
        ort_node_int(node, "allowzero", 0))
        return ORT_OK;
    if (!express(fact, &in->fact.type, list)) {
        ort_pass_note(c, node, "its shape has more than one open dimension");
        return ORT_OK;
    }
    ++*changes;
    return fix(c, node, list, fact->symbolic_count, err);
}

static ort_status fix_expand(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    int64_t list[ORT_MAX_RANK];
    const ort_graph_value *in = ort_graph_value_at(c->graph, node->inputs[0]);
    const ort_type *to = &c->graph->values.data[node->outputs[0]]->fact.type;
    if (!computed_shape(c->graph, node) || !in || !is_ranked(&in->fact.type) || !is_ranked(to))
        return ORT_OK;
    int skip = to->rank - in->fact.type.rank;
    for (int d = 0; d < to->rank; d++) {
        bool kept = d >= skip && ort_dim_equal(to->dim[d], in->fact.type.dim[d - skip]);
        if (!kept && !ort_dim_known(to->dim[d])) {
            ort_pass_note(c, node, "dimension %d of its result isn't known, nor that of its input",
                          d);
            return ORT_OK;
        }
        list[d] = kept ? 1 : to->dim[d].size;
    }
    ++*changes;
    return fix(c, node, list, to->rank, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (ort_edit_is(node, ONNX, "Reshape"))
            ORT_TRY(fix_reshape(c, node, changes, err));
        else if (ort_edit_is(node, ONNX, "Expand"))
            ORT_TRY(fix_expand(c, node, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_reshape_shape = {
    .name = "reshape_shape",
    .level = 1,
    .exact = true,
    .doc = "a Reshape or Expand to computed dimensions gets a constant shape",
    .apply = apply,
};
