/* activation.c - recognizing activations that fused operators carry as attributes. Only those that
 * onnxruntime's FusedConv and FusedGemm know: a saved model must load there. */
#include "pass/fuse/activation.h"

#include <float.h>

#include "pass/facts/facts.h"

static const struct {
    const char *op_type;
    int param_count;
} rows[] = {
    {"Relu", 0},      {"Sigmoid", 0},     {"Tanh", 0},
    {"LeakyRelu", 1}, {"HardSigmoid", 2}, {"Clip", 2},
};

static bool read_params(const ort_graph *graph, const ort_node *node, ort_fused_activation *a)
{
    static const char *const names[2] = {"alpha", "beta"};
    double low = -(double)FLT_MAX, high = (double)FLT_MAX;
    if (ort_edit_is(node, ONNX, "Clip")) {
        bool known = ort_fact_bounds(graph, node, &low, &high);
        a->params[0] = (float)low;
        a->params[1] = (float)high;
        return known;
    }
    for (int i = 0; i < a->param_count; i++)
        a->params[i] = ort_node_attr_float(node, names[i]);
    return true;
}

ort_node *ort_activation_after(const ort_pass_context *c, const ort_node *node,
                               ort_fused_activation *a)
{
    ort_node *next = ort_edit_only_reader(c->graph, node->outputs[0]);
    for (size_t i = 0; next && i < sizeof rows / sizeof *rows; i++) {
        if (!ort_edit_is(next, ONNX, rows[i].op_type) || next->inputs[0] != node->outputs[0])
            continue;
        *a = (ort_fused_activation){.name = rows[i].op_type, .param_count = rows[i].param_count};
        if (read_params(c->graph, next, a))
            return next;
        ort_pass_note(c, next, "its bounds aren't constant");
    }
    return NULL;
}

int ort_activation_attrs(const ort_fused_activation *a, ort_attr set[2])
{
    set[0] = ort_attr_string("activation", a->name);
    set[1] = (ort_attr){.name = "activation_params", .type = ORT_ATTR_FLOATS,
                        .floats = a->params, .count = (size_t)a->param_count};
    return a->param_count ? 2 : 1;
}
