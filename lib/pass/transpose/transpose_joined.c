/* transpose_joined.c - a Transpose of an image whose pixels all become one row of a matrix product
 * is removed by reordering the product's weights.
 *
 *     Transpose(x: N,C,H,W -> N,H,W,C), Reshape [N, H*W*C], MatMul w [H*W*C, M]
 *     Reshape [N, C*H*W], MatMul w' [C*H*W, M]
 *
 * Keras writes this between the last convolution and the first dense layer.
 */
#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/constants.h"
#include "pass/facts/reshape_groups.h"
#include "pass/transpose/transpose_table.h"

/* MatMul or Gemm of the value as its rows with a constant matrix that may change. */
static bool takes_rows(const ort_graph *graph, const ort_node *node, ort_id id)
{
    bool gemm = ort_edit_is(node, ONNX, "Gemm");
    if ((!gemm && !ort_edit_is(node, ONNX, "MatMul")) || node->inputs[0] != id ||
        node->inputs[1] == id || (gemm && ort_node_attr_int(node, "transA")) ||
        ort_edit_input(node, 2) == id)
        return false;
    return ort_constant_moves(graph, node->inputs[1]) && ort_fact_ranked(graph, node->inputs[1], 2);
}

static bool all_take_rows(const ort_graph *graph, ort_id id)
{
    ort_readers readers = ort_readers_of(graph, id);
    const ort_node *node;
    bool any = false;
    if (graph->values.data[id]->is_output)
        return false;
    while ((node = ort_readers_next(&readers))) {
        if (!takes_rows(graph, node, id))
            return false;
        any = true;
    }
    return any;
}

bool ort_joins_for_products(const ort_graph *graph, const ort_node *node, const ort_perm *p,
                            ort_joined *joined)
{
    const ort_type *in = ort_fact_type(graph, node->inputs[0]);
    const ort_type *out = ort_fact_type(graph, node->outputs[0]);
    ort_perm inverse = ort_perm_inverse(p);
    ort_groups groups;
    int last = -1, place[ORT_MAX_RANK], next = 0;
    if (out->rank < 1 || !ort_groups_of(graph->model->dims, in, out, &groups) ||
        groups.out.of[out->rank - 1] < 0 || !all_take_rows(graph, node->outputs[0]))
        return false;
    int group = groups.out.of[out->rank - 1];
    for (int axis = 0; axis < out->rank - 1; axis++)
        if (groups.out.of[axis] == group)
            return false;
    for (int k = 0; k < in->rank; k++) { /* what isn't joined comes first, in its order */
        int axis = inverse.to[k];
        if (groups.in.of[axis] == group) {
            place[axis] = next++;
        } else if (groups.in.of[axis] >= 0) {
            if (next || axis < last)
                return false;
            last = axis;
        }
    }
    joined->order = (ort_perm){.rank = 0};
    for (int axis = 0; axis < in->rank; axis++) {
        if (groups.in.of[axis] != group)
            continue;
        if (!ort_dim_known(in->dim[axis]))
            return false;
        joined->dim[joined->order.rank] = in->dim[axis].size;
        joined->order.to[joined->order.rank++] = place[axis];
    }
    return joined->order.rank < ORT_MAX_RANK;
}

static ort_status turn_rows(ort_graph *graph, ort_node *product, const ort_joined *joined,
                            ort_error *err)
{
    const ort_graph_value *weight = graph->values.data[product->inputs[1]];
    const ort_tensor *t = weight->fact.value;
    int count = joined->order.rank;
    bool columns = ort_edit_is(product, ONNX, "Gemm") && ort_node_attr_int(product, "transB");
    ort_perm p = {.rank = count + 1};
    ort_shape full = {.rank = count + 1};
    p.to[columns ? 0 : count] = columns ? 0 : count;
    full.dim[columns ? 0 : count] = t->shape.dim[columns ? 0 : 1];
    for (int i = 0; i < count; i++) {
        p.to[i + columns] = joined->order.to[i] + columns;
        full.dim[i + columns] = joined->dim[i];
    }
    ort_id made;
    ORT_TRY(ort_tensor_permuted(graph, weight->name, t, &full, &p, true, &made, err));
    ort_node_set_input(graph, product, 1, made);
    return ORT_OK;
}

ort_status ort_join_weights(ort_graph *graph, const ort_node *node, const ort_joined *joined,
                            ort_id *row, ort_error *err)
{
    ort_readers readers = ort_readers_of(graph, node->outputs[0]);
    ort_node *product;
    *row = ort_graph_add_value(graph, graph->values.data[node->outputs[0]]->name);
    if (*row == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *row);
    while ((product = ort_readers_next(&readers))) {
        ORT_TRY(turn_rows(graph, product, joined, err));
        ort_node_set_input(graph, product, 0, *row);
    }
    return ORT_OK;
}
