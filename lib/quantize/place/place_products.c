/* place_products.c - what a product multiplies with: its weight, also behind a Transpose, and the
 * axis of output channels in it.
 */
#include "op/edit.h"
#include "quantize/place/place.h"

static const ort_type *type_of(const ort_graph *graph, ort_id id)
{
    return &graph->values.data[id]->fact.type;
}

static const ort_tensor *constant(const ort_graph *graph, ort_id id)
{
    return id == ORT_ID_NONE ? NULL : graph->values.data[id]->fact.value;
}

/* Depthwise, an output channel is an input channel; in other groups it has no axis of its own. */
static int transposed_axis(const ort_graph *graph, const ort_node *node)
{
    const ort_type *w = type_of(graph, node->inputs[1]);
    int64_t group = ort_node_int(node, "group", 1);
    if (group == 1)
        return 1;
    return ort_type_rank(w) > 1 && ort_dim_is(w->dim[0], group) && ort_dim_is(w->dim[1], 1) ? 0
                                                                                           : -1;
}

bool ort_place_is_product(const ort_graph *graph, const ort_node *node, ort_place_product *product)
{
    if (!ort_edit_is_any(node, "Conv|ConvTranspose|Gemm|MatMul"))
        return false;
    *product = (ort_place_product){1, -1, -1};
    if (ort_edit_is(node, ONNX, "MatMul")) {
        product->axis = ort_type_rank(type_of(graph, node->inputs[1])) == 2 ? 1 : -1;
        return true;
    }
    if (node->input_count > 2 && node->inputs[2] != ORT_ID_NONE)
        product->bias = 2;
    if (ort_edit_is(node, ONNX, "Conv"))
        product->axis = 0;
    else if (ort_edit_is(node, ONNX, "ConvTranspose"))
        product->axis = transposed_axis(graph, node);
    else
        product->axis = ort_node_int(node, "transB", 0) ? 0 : 1;
    return true;
}

/* The axis before a Transpose of what is axis `axis` behind it. */
static int axis_before(const ort_node *transpose, int axis, int rank)
{
    size_t count = 0;
    const int64_t *perm = ort_node_ints(transpose, "perm", &count);
    if (axis < 0 || axis >= rank)
        return -1;
    return perm && count == (size_t)rank ? (int)perm[axis] : rank - 1 - axis;
}

bool ort_place_weight_of(const ort_graph *graph, const ort_node *node, ort_place_weight *weight)
{
    ort_place_product product;
    if (!ort_place_is_product(graph, node, &product))
        return false;
    ort_id id = node->inputs[product.weight];
    const ort_node *before = ort_edit_producer(graph, id);
    const ort_tensor *turned = ort_edit_is(before, ONNX, "Transpose")
                                   ? constant(graph, before->inputs[0]) : NULL;
    if (turned && turned->dtype == ORT_DTYPE_FLOAT) {
        int axis = axis_before(before, product.axis, turned->shape.rank);
        *weight = (ort_place_weight){before->inputs[0], axis, before};
        return true;
    }
    *weight = (ort_place_weight){id, product.axis, NULL};
    return constant(graph, id);
}
