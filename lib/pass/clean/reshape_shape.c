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
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
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
    const char *name = graph->values.data[node->inputs[1]]->name;
    ort_id id;
    ORT_TRY(ort_constant_named(graph, name, list, count, &id, err));
    ort_node_set_input(graph, node, 1, id);
    return ort_node_infer(graph, node, err);
}

/* Does the slot hold a shape that is computed? */
static const ort_graph_value *computed_shape(const ort_graph *graph, const ort_node *node)
{
    const ort_graph_value *shape = ort_graph_value_at(graph, ort_edit_input(node, 1));
    return shape && !shape->fact.value && !shape->is_input ? shape : NULL;
}

static ort_status fix_reshape(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    int64_t list[ORT_MAX_RANK];
    const ort_graph_value *shape = computed_shape(c->graph, node);
    const ort_type *in = ort_fact_tensor(c->graph, node->inputs[0]);
    const ort_fact *fact = shape ? &shape->fact : NULL;
    if (!in || !fact || !fact->symbolic || fact->type.rank != 1 ||
        fact->symbolic_count > ORT_MAX_RANK || ort_node_attr_int(node, "allowzero"))
        return ORT_OK;
    if (!express(fact, in, list)) {
        ort_pass_note(c, node, "its shape has more than one open dimension");
        return ORT_OK;
    }
    ++*changes;
    return fix(c, node, list, fact->symbolic_count, err);
}

static ort_status fix_expand(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    int64_t list[ORT_MAX_RANK];
    const ort_type *in = ort_fact_tensor(c->graph, node->inputs[0]);
    const ort_type *to = ort_fact_tensor(c->graph, node->outputs[0]);
    if (!computed_shape(c->graph, node) || !in || !to)
        return ORT_OK;
    int skip = to->rank - in->rank;
    for (int d = 0; d < to->rank; d++) {
        bool kept = d >= skip && ort_dim_equal(to->dim[d], in->dim[d - skip]);
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
