/* swish.c - x * sigmoid(alpha * x): Swish where the opset has it, else com.microsoft QuickGelu. */
#include "base/error.h"
#include "pass/pattern.h"
#include "tensor/scalar.h"

enum { SCALED = 1 };

static const ort_pattern_form forms[] = {
    {"(Mul x (Sigmoid x))", 0},
    {"(Mul x (Sigmoid (Mul x #a)))", SCALED},
};

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    const ort_tensor *a = f->flags & SCALED ? ort_match_constant(m, c->graph, "a") : NULL;
    double factor = 1;
    const ort_node *root = m->nodes[0];
    if (a && !ort_tensor_one_f64(a, &factor)) {
        ort_pass_note(c, root, "the factor of x isn't one number");
        return ORT_OK;
    }
    ort_id x = ort_match_value(m, "x");
    bool is_float = ort_match_type(m, c->graph, "x")->dtype == ORT_DTYPE_FLOAT;
    ort_attr attr = {.name = "alpha", .type = ORT_ATTR_FLOAT,
                     .f = (float)factor};
    ort_node_spec spec = {.domain = ONNX, .op_type = "Swish", .inputs = &x, .input_count = 1,
                          .set = &attr, .set_count = 1};
    if (c->portable)
        spec.opset = ort_pass_opset(c, root, ONNX, "Swish", 24);
    if (!spec.opset && is_float) {
        spec.domain = MS;
        spec.op_type = "QuickGelu";
        spec.opset = ort_pass_opset(c, root, MS, "QuickGelu", 1);
    }
    if (!spec.opset)
        return ORT_OK;
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_swish = {
    .name = "swish", .level = 2, .doc = "x * sigmoid(a x) becomes Swish or QuickGelu",
    .apply = apply};
