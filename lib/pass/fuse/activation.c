/* activation.c - recognizing activations that fused operators carry as attributes. Only those that
 * onnxruntime's FusedConv and FusedGemm know: a saved model must load there. */
#include "pass/fuse/activation.h"

#include <math.h>
#include <string.h>

#include "op/edit.h"
#include "tensor/scalar.h"

typedef struct row {
    const char *op_type;
    int param_count;
    float alpha, beta; /* ONNX defaults */
} row;

static const row rows[] = {
    {"Relu", 0, 0, 0},           {"Sigmoid", 0, 0, 0},          {"Tanh", 0, 0, 0},
    {"LeakyRelu", 1, 0.01f, 0},  {"HardSigmoid", 2, 0.2f, 0.5f}, {"Clip", 2, 0, 0},
};

/* Bounds of a Clip: attributes before opset 11, constant inputs after. */
static bool clip_bounds(const ort_pass_context *c, const ort_node *node, float *bounds)
{
    bounds[0] = -3.402823466e+38f;
    bounds[1] = 3.402823466e+38f;
    if (node->opset < 11) {
        bounds[0] = ort_node_float(node, "min", bounds[0]);
        bounds[1] = ort_node_float(node, "max", bounds[1]);
        return true;
    }
    for (int i = 1; i < node->input_count && i < 3; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        double bound;
        if (!ort_tensor_one_f64(ort_edit_constant(c->graph, node, i), &bound))
            return false;
        bounds[i - 1] = (float)bound;
    }
    return !isnan(bounds[0]) && !isnan(bounds[1]);
}

bool ort_activation_match(const ort_pass_context *c, const ort_node *node,
                          ort_fused_activation *activation)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!ort_edit_is(node, ONNX, rows[i].op_type))
            continue;
        activation->name = rows[i].op_type;
        activation->param_count = rows[i].param_count;
        activation->params[0] = ort_node_float(node, "alpha", rows[i].alpha);
        activation->params[1] = ort_node_float(node, "beta", rows[i].beta);
        if (strcmp(rows[i].op_type, "Clip") || clip_bounds(c, node, activation->params))
            return true;
        ort_pass_note(c, node, "its bounds aren't constant");
        return false;
    }
    return false;
}
