/* gelu.c - Gelu spelled in elementwise operators.
 *
 *     x/2 (1 + erf(x / sqrt 2))                              Gelu, com.microsoft Gelu
 *     x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))          Gelu approximate=tanh, FastGelu
 *
 * The halves and twos may stand elsewhere. The ONNX operator where the opset has it (20), else
 * com.microsoft's, which is for float.
 */
#include "base/error.h"
#include "pass/pattern.h"

enum { TANH = 1 };

#define ERF_DIV "(Add (Erf (Div x 1.41421356)) 1)"
#define ERF_MUL "(Add (Erf (Mul x 0.70710678)) 1)"
#define TANH_OF(inner) "(Add (Tanh " inner ") 1)"
#define CUBE_POW TANH_OF("(Mul (Add x (Mul (Pow x 3) 0.044715)) 0.79788456)")
#define CUBE_MUL TANH_OF("(Mul (Add x (Mul (Mul x (Mul x x)) 0.044715)) 0.79788456)")
#define CUBE_IN TANH_OF("(Mul (Add x (Mul (Mul (Mul x 0.044715) x) x)) 0.79788456)")
#define FACTORED TANH_OF("(Mul (Mul x 0.79788456) (Add (Mul (Mul x 0.044715) x) 1))")
#define FACTORED_MUL TANH_OF("(Mul (Mul x 0.79788456) (Add (Mul (Mul x x) 0.044715) 1))")
#define FACTORED_POW TANH_OF("(Mul (Mul x 0.79788456) (Add (Mul (Pow x 2) 0.044715) 1))")

/* The half goes with x, with the bracket, or comes last, there as a quotient, too. */
#define FOUR(bracket, flags)                                                                       \
    {"(Mul (Mul x 0.5) " bracket ")", flags}, {"(Mul x (Mul " bracket " 0.5))", flags},            \
        {"(Mul (Mul x " bracket ") 0.5)", flags}, {"(Div (Mul x " bracket ") 2)", flags}

static const ort_pattern_form forms[] = {
    FOUR(ERF_DIV, 0),     FOUR(ERF_MUL, 0),     FOUR(CUBE_POW, TANH),
    FOUR(CUBE_MUL, TANH), FOUR(CUBE_IN, TANH),  FOUR(FACTORED, TANH),
    FOUR(FACTORED_MUL, TANH), FOUR(FACTORED_POW, TANH),
};

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    bool tanh = f->flags & TANH;
    ort_id x = ort_match_value(m, "x");
    ort_attr approximate = {.name = "approximate", .type = ORT_ATTR_STRING, .s = {"tanh", 4}};
    ort_node_spec spec = {.domain = ONNX, .op_type = "Gelu", .inputs = &x, .input_count = 1,
                          .set = &approximate, .set_count = tanh ? 1 : 0};
    spec.opset = ort_pass_opset(c, m->nodes[0], ONNX, "Gelu", 20);
    if (!spec.opset && ort_match_type(m, c->graph, "x")->dtype == ORT_DTYPE_FLOAT) {
        spec.domain = MS;
        spec.op_type = tanh ? "FastGelu" : "Gelu";
        spec.set_count = 0;
        spec.opset = ort_pass_opset(c, m->nodes[0], MS, spec.op_type, 1);
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

const ort_pass ort_pass_gelu = {
    .name = "gelu",
    .level = 2,
    .doc = "Gelu spelled with Erf or Tanh becomes one node",
    .apply = apply,
};
