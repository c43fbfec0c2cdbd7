/* mish.c - x tanh(log(1 + e^x)) becomes Mish, where the opset has it (18). */
#include "base/error.h"
#include "pass/pattern.h"

static const ort_pattern_form forms[] = {
    {"(Mul x (Tanh (Softplus x)))", 0},
    {"(Mul x (Tanh (Log (Add (Exp x) 1))))", 0},
};

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    ort_id x = ort_match_value(m, "x");
    ort_node_spec spec = {.domain = ONNX, .op_type = "Mish", .inputs = &x, .input_count = 1};
    spec.opset = ort_pass_opset(c, m->nodes[0], ONNX, "Mish", 18);
    if (!spec.opset)
        return ORT_OK;
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_mish = {
    .name = "mish", .level = 2, .doc = "x tanh(softplus(x)) becomes Mish", .apply = apply};
