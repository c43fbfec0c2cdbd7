/* gelu.c - Gelu spelled in elementwise operators.
 *
 *     x/2 (1 + erf(x / sqrt 2))                              Gelu, com.microsoft Gelu
 *     x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))          Gelu approximate=tanh, FastGelu
 *
 * The ONNX operator where the opset has it (20), else com.microsoft's, which is for float.
 */
#include "base/error.h"
#include "pass/pattern.h"

typedef struct form {
    const char *text;
    bool tanh;
} form;

#define ERF_DIV "(Add (Erf (Div x 1.41421356)) 1)"
#define ERF_MUL "(Add (Erf (Mul x 0.70710678)) 1)"
#define TANH_OF(inner) "(Add (Tanh " inner ") 1)"
#define CUBE_POW TANH_OF("(Mul (Add x (Mul (Pow x 3) 0.044715)) 0.79788456)")
#define CUBE_MUL TANH_OF("(Mul (Add x (Mul (Mul x (Mul x x)) 0.044715)) 0.79788456)")
#define CUBE_IN TANH_OF("(Mul (Add x (Mul (Mul (Mul x 0.044715) x) x)) 0.79788456)")
#define FACTORED TANH_OF("(Mul (Mul x 0.79788456) (Add (Mul (Mul x 0.044715) x) 1))")

/* The half goes with x, with the bracket, or comes last. */
#define THREE(bracket, tanh)                                                                       \
    {"(Mul (Mul x 0.5) " bracket ")", tanh}, {"(Mul x (Mul " bracket " 0.5))", tanh},              \
        {"(Mul (Mul x " bracket ") 0.5)", tanh}

static const form forms[] = {
    THREE(ERF_DIV, false), THREE(ERF_MUL, false), THREE(CUBE_POW, true),
    THREE(CUBE_MUL, true), THREE(CUBE_IN, true),  THREE(FACTORED, true),
};
enum { FORMS = sizeof forms / sizeof *forms };

static ort_status fuse(ort_pass_context *c, const ort_match *m, bool tanh, int *changes,
                       ort_error *err)
{
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
    ort_pattern p[FORMS];
    ort_match m;
    ort_node *node;
    for (int i = 0; i < FORMS; i++)
        ort_pattern_parse(&p[i], forms[i].text);
    ORT_EACH_NODE(c->graph, node)
    {
        int i = ort_pattern_find(c, p, FORMS, node, &m);
        if (i >= 0)
            ORT_TRY(fuse(c, &m, forms[i].tanh, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_gelu = {
    .name = "gelu",
    .level = 2,
    .doc = "Gelu spelled with Erf or Tanh becomes one node",
    .apply = apply,
};
