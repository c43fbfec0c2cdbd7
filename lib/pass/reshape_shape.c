/* reshape_shape.c - the shape of a Reshape as a constant, where inference knows its elements as
 * dimensions: a number stays, a dimension of the input in the same place is 0 (copied), one that
 * remains is -1. What computed the shape then goes when nobody else reads it.
 *
 *     Shape, Gather, Concat ... -> Reshape      [0, -1, 12, 64] -> Reshape
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

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(c->graph, node)
    {
        int64_t list[ORT_MAX_RANK];
        if (!ort_edit_is(node, ONNX, "Reshape") || node->input_count < 2 ||
            ort_node_int(node, "allowzero", 0))
            continue;
        const ort_graph_value *shape = ort_graph_value_at(c->graph, node->inputs[1]);
        const ort_graph_value *in = ort_graph_value_at(c->graph, node->inputs[0]);
        const ort_fact *fact = shape ? &shape->fact : NULL;
        if (!in || !fact || fact->value || !fact->symbolic || shape->is_input ||
            fact->type.rank != 1 || fact->symbolic_count > ORT_MAX_RANK ||
            in->fact.type.kind != ORT_TYPE_TENSOR || in->fact.type.rank < 0)
            continue;
        if (!express(fact, &in->fact.type, list)) {
            ort_pass_note(c, node, "its shape has more than one open dimension");
            continue;
        }
        ORT_TRY(fix(c, node, list, fact->symbolic_count, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_reshape_shape = {
    .name = "reshape_shape",
    .level = 1,
    .exact = true,
    .doc = "a Reshape to computed dimensions gets a constant shape with 0 and -1",
    .apply = apply,
};
