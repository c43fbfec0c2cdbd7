/* coded_weights.c - see coded_weights.h. A product of codes whose weights became floats would be
 * one of floats. PyTorch leaves a BatchNormalization, and the factor that it trains with, behind
 * the convolution of a quantized net.
 */
#include "pass/fuse/coded_weights.h"

#include <math.h>

#include "base/error.h"
#include "pass/facts/facts.h"

static int result_axis(const ort_node *linear)
{
    if (ort_edit_is(linear, ONNX, "Conv"))
        return 0;
    if (ort_edit_is(linear, ONNX, "ConvTranspose"))
        return ort_node_attr_int(linear, "group") == 1 ? 1 : -1;
    return ort_edit_is(linear, ONNX, "Gemm") && ort_node_attr_int(linear, "transB") ? 0 : 1;
}

void ort_coded_weights_read(const ort_graph *graph, const ort_node *linear, ort_coded_weights *w)
{
    ort_node *node = ort_edit_producer(graph, linear->inputs[1]);
    *w = (ort_coded_weights){.node = NULL};
    const ort_tensor *codes = ort_edit_is(node, ONNX, "DequantizeLinear")
                                  ? ort_edit_constant(graph, node, 0) : NULL;
    if (codes && ort_fact_is_coded(graph, linear->inputs[0]))
        *w = (ort_coded_weights){node, codes, ort_edit_constant(graph, node, 1),
                                 ort_edit_constant(graph, node, 2), result_axis(linear)};
}

const char *ort_coded_weights_unless(const ort_graph *graph, const ort_coded_weights *w,
                                     const double *factors, int64_t count, bool portable)
{
    const ort_tensor *codes = w->codes;
    if (!w->scale || !w->scale->data || w->scale->dtype != ORT_DTYPE_FLOAT ||
        ort_node_attr_int(w->node, "block_size") ||
        (ort_edit_input(w->node, 2) != ORT_ID_NONE && (!w->zero || !w->zero->data)))
        return "the weights are codes by scales that aren't constant";
    const int64_t scales = ort_tensor_count(w->scale);
    if (w->axis < 0 || w->axis >= codes->shape.rank || codes->shape.dim[w->axis] != count ||
        (w->zero && ort_tensor_count(w->zero) != 1 && ort_tensor_count(w->zero) != scales) ||
        (scales != 1 && (scales != count || ort_axis_in(ort_node_attr_int(w->node, "axis"),
                                                        codes->shape.rank) != w->axis)))
        return "the weights are codes by scales that don't count results";
    for (int64_t i = 0; i < count; i++) {
        const double scale = ort_tensor_get_f64(w->scale, scales == 1 ? 0 : i) * factors[i];
        if (!isnormal((float)scale) || (portable && scale < 0))
            return "the weights are codes, whose scales would not be normal numbers above zero";
    }
    return NULL;
}

ort_status ort_coded_weights_scale(ort_graph *graph, const ort_coded_weights *w,
                                   const double *factors, int64_t count, ort_id *id,
                                   ort_error *err)
{
    const ort_shape shape = {1, {count}};
    const bool one = ort_tensor_count(w->scale) == 1;
    ort_id inputs[3] = {w->node->inputs[0], ORT_ID_NONE, ORT_ID_NONE};
    ort_tensor made;
    ORT_TRY(ort_edit_new_constant(graph, graph->values.data[w->node->inputs[1]]->name,
                                  ORT_DTYPE_FLOAT, &shape, &made, &inputs[1], err));
    for (int64_t i = 0; i < count; i++)
        ort_tensor_set_f64(&made, i, ort_tensor_get_f64(w->scale, one ? 0 : i) * factors[i]);
    if (w->zero) {
        const bool alone = ort_tensor_count(w->zero) == 1;
        ORT_TRY(ort_edit_new_constant(graph, "zero_point", w->zero->dtype, &shape, &made,
                                      &inputs[2], err));
        for (int64_t i = 0; i < count; i++)
            ort_tensor_set_i64(&made, i, ort_tensor_get_i64(w->zero, alone ? 0 : i));
    }
    *id = ort_graph_add_value(graph, graph->values.data[w->node->outputs[0]]->name);
    if (*id == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *id);
    const ort_attr axis = ort_attr_int("axis", w->axis);
    ort_node_spec spec = ort_edit_again(w->node);
    spec.inputs = inputs;
    spec.input_count = w->zero ? 3 : 2;
    spec.outputs = id;
    spec.set = &axis;
    spec.set_count = 1;
    return ort_edit_add_node(graph, &spec, NULL, err);
}
