/* fused.c - names of activations to epilogues. Parameters stand in the order in which the ONNX
 * operator lists its attributes alphabetically (alpha, beta; Clip: min, max). */
#include "op/shared/fused.h"

#include <math.h>
#include <string.h>

typedef struct activation_row {
    const char *name;
    int act;     /* ort_unary, -1: only a clamp */
    float a, b;  /* defaults */
} activation_row;

static const activation_row rows[] = {
    {"Relu", -1, 0.0f, INFINITY},
    {"Clip", -1, -INFINITY, INFINITY},
    {"LeakyRelu", ORT_UNARY_LEAKY_RELU, 0.01f, 0.0f},
    {"Sigmoid", ORT_UNARY_SIGMOID, 0.0f, 0.0f},
    {"Tanh", ORT_UNARY_TANH, 0.0f, 0.0f},
    {"HardSigmoid", ORT_UNARY_HARD_SIGMOID, 0.2f, 0.5f},
    {"HardSwish", ORT_UNARY_HARD_SWISH, 0.0f, 0.0f},
    {"Elu", ORT_UNARY_ELU, 1.0f, 0.0f},
    {"Selu", ORT_UNARY_SELU, 1.67326319f, 1.05070102f},
    {"Celu", ORT_UNARY_CELU, 1.0f, 0.0f},
    {"Softplus", ORT_UNARY_SOFTPLUS, 0.0f, 0.0f},
    {"Softsign", ORT_UNARY_SOFTSIGN, 0.0f, 0.0f},
    {"ThresholdedRelu", ORT_UNARY_THRESHOLDED_RELU, 1.0f, 0.0f},
    {"Gelu", ORT_UNARY_GELU, 0.0f, 0.0f},
    {"QuickGelu", ORT_UNARY_SWISH, 1.702f, 0.0f},
    {"Swish", ORT_UNARY_SWISH, 1.0f, 0.0f},
    {"Mish", ORT_UNARY_MISH, 0.0f, 0.0f},
    {"Erf", ORT_UNARY_ERF, 0.0f, 0.0f},
};

bool ort_epilogue_activate(ort_epilogue *e, const char *name, const float *params, size_t count)
{
    if (name[0] == '\0' || !strcmp(name, "Identity"))
        return true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const activation_row *row = &rows[i];
        if (strcmp(row->name, name))
            continue;
        float a = row->a, b = row->b;
        if (count > 0 && strcmp(name, "Relu"))
            a = params[0];
        if (count > 1 && strcmp(name, "Relu"))
            b = params[1];
        if (row->act < 0) {
            e->lo = a;
            e->hi = b;
        } else {
            e->act = row->act;
            e->act_a = a;
            e->act_b = b;
        }
        return true;
    }
    return false;
}

ort_status ort_epilogue_bind(const ort_node *node, void *epilogue, ort_error *err)
{
    static const char *const names[] = {"activation_alpha", "activation_beta", "activation_gamma"};
    const ort_attr *name = ort_node_attr_of(node, "activation", ORT_ATTR_STRING), *number;
    size_t count = 0;
    const float *list = ort_node_floats(node, "activation_params", &count);
    ort_epilogue *e = epilogue;
    float single[3];
    if (!list) {
        while (count < 3 && (number = ort_node_attr_of(node, names[count], ORT_ATTR_FLOAT)))
            single[count++] = number->f;
        list = single;
    }
    *e = ort_epilogue_none();
    if (!name || ort_epilogue_activate(e, name->s.ptr, list, count))
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                         "activation '%s' isn't implemented; known are Relu, Clip, LeakyRelu, "
                         "Sigmoid, Tanh, HardSigmoid, Elu and their kin", name->s.ptr);
}
