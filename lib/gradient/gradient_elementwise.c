/* gradient_elementwise.c - derivatives of operators that work element by element, as formulas.
 *
 * Where a function has a kink the derivative is the one of the branch that the operator's own
 * definition takes there; Abs has 0, and equal maxima or minima share.
 */
#include <string.h>

#include "gradient/gradient.h"
#include "tensor/scalar.h"

static void gelu_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    outputs[0] = ort_grad_same(
        g, node,
        ort_node_attr_is(node, "approximate", "tanh")
            ? "0.5 * a * (1 + (Tanh (0.79788456080286535588 * (a + 0.044715 * a * a * a))))"
            : "0.5 * a * (1 + (Erf (a * 0.70710678118654752440)))");
}

/* x where it wins, equal ones share. */
static void extreme_back(ort_emit *g, const ort_node *node)
{
    ort_id y = node->outputs[0], share = ORT_ID_NONE;
    for (int i = 0; i < node->input_count; i++)
        share = ort_emit_formula(g, "s + (CastLike (Equal x y) y)", "x y s", node->inputs[i], y,
                                 share);
    share = ort_emit_formula(g, "g / s", "g s", ort_grad_of(g, node, 0), share);
    for (int i = 0; i < node->input_count; i++)
        if (ort_grad_wants(g, node, i))
            ort_grad_add_summed(g, node, i,
                                ort_emit_formula(g, "(Where (Equal x y) s 0)", "x y s",
                                                 node->inputs[i], y, share));
}

static void sum_back(ort_emit *g, const ort_node *node)
{
    ort_id gy = ort_grad_of(g, node, 0);
    if (!strcmp(node->op_type, "Mean"))
        gy = ort_emit_formula(g, "g / $n", "g $n", gy, (double)node->input_count);
    for (int i = 0; i < node->input_count; i++)
        if (ort_grad_wants(g, node, i))
            ort_grad_add_summed(g, node, i, gy);
}

/* min(max(x, low), high): the upper bound has the last word. */
static void clip_back(ort_emit *g, const ort_node *node)
{
    ort_id x = node->inputs[0], low = ort_edit_input(node, 1), high = ort_edit_input(node, 2);
    ort_id gx = ort_grad_of(g, node, 0);
    if (ort_grad_wants(g, node, 2))
        ort_grad_add_summed(g, node, 2,
                            ort_grad_text(g, node, "(Where (Greater (Max a b) c) g 0)"));
    if (high != ORT_ID_NONE)
        gx = ort_grad_text(g, node, "(Where (Greater (Max a b) c) 0 g)");
    if (ort_grad_wants(g, node, 1))
        ort_grad_add_summed(g, node, 1, ort_emit_formula(g, "(Where (Less x low) g 0)", "x low g",
                                                         x, low, gx));
    if (low != ORT_ID_NONE)
        gx = ort_emit_formula(g, "(Where (Less x low) 0 g)", "x low g", x, low, gx);
    ort_grad_add(g, node, 0, gx);
}

/* Not training: the identity. Training: the same mask again. */
static void dropout_back(ort_emit *g, const ort_node *node)
{
    ort_id training = ort_edit_input(node, 2), gy = ort_grad_of(g, node, 0);
    const ort_tensor *fixed = ort_edit_constant(g->graph, node, 2);
    if (ort_grad_wants(g, node, 1)) {
        ort_emit_refuse(g, "there is no gradient for its ratio");
        return;
    }
    int64_t trains;
    if (training == ORT_ID_NONE || (ort_tensor_one_i64(fixed, &trains) && !trains)) {
        ort_grad_add(g, node, 0, gy);
        return;
    }
    if (node->output_count < 2 || node->outputs[1] == ORT_ID_NONE) {
        ort_emit_refuse(g, "it may be training and doesn't give its mask; name its second output");
        return;
    }
    ort_id ratio = ort_edit_input(node, 1);
    ort_id rate = ratio == ORT_ID_NONE ? ort_emit_number(g, gy, 0.5) : ratio;
    /* A ratio of 0, or no training: the mask is all ones and nothing is scaled. */
    ort_grad_add(g, node, 0, ort_emit_formula(g, "(Where training (g * (CastLike mask g) / "
                                              "(1 - (CastLike rate g))) g)",
                                              "training g mask rate", training, gy,
                                              node->outputs[1], rate));
}

#define SLOPE(op, ...) {.op_type = op, .slope = {__VA_ARGS__}}

const ort_grad_rule ort_grad_elementwise[] = {
    SLOPE("Abs", "g * (Sign a)"),
    SLOPE("Acos", "-g / (Sqrt (1 - a * a))"),
    SLOPE("Acosh", "g / (Sqrt (a * a - 1))"),
    SLOPE("Add", "g", "g"),
    SLOPE("Asin", "g / (Sqrt (1 - a * a))"),
    SLOPE("Asinh", "g / (Sqrt (a * a + 1))"),
    SLOPE("Atan", "g / (1 + a * a)"),
    SLOPE("Atanh", "g / (1 - a * a)"),
    {.op_type = "Cast", .whole = "(CastLike g a)"},
    {.op_type = "CastLike", .whole = "(CastLike g a)"},
    {.op_type = "Ceil", .zero = true},
    SLOPE("Celu", "(Where (Greater a 0) g (g * (Exp (a / $alpha))))"),
    {.op_type = "Clip", .back = clip_back},
    SLOPE("Cos", "-g * (Sin a)"),
    SLOPE("Cosh", "g * (Sinh a)"),
    SLOPE("Div", "g / b", "-g * y / b"),
    {.op_type = "Dropout", .back = dropout_back},
    SLOPE("Elu", "(Where (Less a 0) (g * (y + $alpha)) g)"),
    SLOPE("Erf", "g * 1.12837916709551257390 * (Exp (-a * a))"),
    SLOPE("Exp", "g * y"),
    {.op_type = "Floor", .zero = true},
    {.op_type = "Gelu", .expand = gelu_expand},
    SLOPE("HardSigmoid", "(Where (And (Greater y 0) (Less y 1)) (g * $alpha) 0)"),
    SLOPE("HardSwish", "(Where (Less a -3) 0 (Where (Greater a 3) g (g * (2 * a + 3) / 6)))"),
    SLOPE("Identity", "g"),
    SLOPE("LeakyRelu", "(Where (Less a 0) (g * $alpha) g)"),
    SLOPE("Log", "g / a"),
    {.op_type = "Max", .back = extreme_back},
    {.op_type = "Mean", .back = sum_back},
    {.op_type = "Min", .back = extreme_back},
    {.op_type = "Mish", .same = "a * (Tanh (Softplus a))"},
    SLOPE("Mul", "g * b", "g * a"),
    SLOPE("Neg", "-g"),
    /* The exponent may be of another element type than the base. */
    SLOPE("Pow", "p = (CastLike b a); g * p * (Pow a (p - 1))",
          "(CastLike (g * y * (Log (Where (Greater a 0) a 1))) b)"),
    SLOPE("PRelu", "(Where (Less a 0) (g * b) g)", "(Where (Less a 0) (g * a) 0)"),
    SLOPE("Reciprocal", "-g * y * y"),
    SLOPE("Relu", "(Where (Greater a 0) g 0)"),
    {.op_type = "Round", .zero = true},
    SLOPE("Selu", "(Where (Greater a 0) (g * $gamma) (g * (y + $gamma * $alpha)))"),
    SLOPE("Shrink", "(Where (Greater (Abs a) $lambd) g 0)"),
    SLOPE("Sigmoid", "g * y * (1 - y)"),
    {.op_type = "Sign", .zero = true},
    SLOPE("Sin", "g * (Cos a)"),
    SLOPE("Sinh", "g * (Cosh a)"),
    SLOPE("Softplus", "g * (Sigmoid a)"),
    {.op_type = "Softsign", .same = "a / (1 + (Abs a))"},
    SLOPE("Sqrt", "g / (2 * y)"),
    SLOPE("Sub", "g", "-g"),
    {.op_type = "Sum", .back = sum_back},
    {.op_type = "Swish", .same = "a * (Sigmoid ($alpha * a))"},
    SLOPE("Tan", "g * (1 + y * y)"),
    SLOPE("Tanh", "g * (1 - y * y)"),
    SLOPE("ThresholdedRelu", "(Where (Greater a $alpha) g 0)"),
    SLOPE("Where", NULL, "(Where a g 0)", "(Where a 0 g)"),
    {.op_type = NULL},
};
