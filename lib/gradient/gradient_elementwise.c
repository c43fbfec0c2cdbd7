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
    outputs[0] = ort_emit_formula(
        g,
        ort_node_attr_is(node, "approximate", "tanh")
            ? "0.5 * a * (1 + (Tanh (0.79788456080286535588 * (a + 0.044715 * a * a * a))))"
            : "0.5 * a * (1 + (Erf (a * 0.70710678118654752440)))",
        "a", node->inputs[0]);
}

/* The exponent may be of another element type than the base. */
static void pow_back(ort_emit *g, const ort_node *node)
{
    ort_id gy = ort_grad_of(g, node, 0), a = node->inputs[0], raw = node->inputs[1];
    ort_id b = ort_emit_cast(g, raw, ort_emit_type(g, a)->dtype), slope;
    if (ort_grad_wants(g, node, 0))
        ort_grad_add_summed(g, node, 0,
                            ort_emit_formula(g, "g * b * (Pow a (b - 1))", "g a b", gy, a, b));
    if (!ort_grad_wants(g, node, 1))
        return;
    slope = ort_emit_formula(g, "g * y * (Log (Where (Greater a 0) a 1))", "g y a", gy,
                             node->outputs[0], a);
    ort_grad_add_summed(g, node, 1, ort_emit_cast(g, slope, ort_emit_type(g, raw)->dtype));
}

static void cast_back(ort_emit *g, const ort_node *node)
{
    ort_id gy = ort_grad_of(g, node, 0);
    ort_grad_add(g, node, 0, ort_emit_cast(g, gy, ort_emit_type(g, node->inputs[0])->dtype));
}

/* x where it wins, equal ones share. */
static void extreme_back(ort_emit *g, const ort_node *node)
{
    ort_id y = node->outputs[0], gy = ort_grad_of(g, node, 0), winners = ORT_ID_NONE;
    ort_dtype dtype = ort_emit_type(g, y)->dtype;
    for (int i = 0; i < node->input_count; i++) {
        ort_id wins = ort_emit_cast(g, ort_emit_op2(g, "Equal", node->inputs[i], y), dtype);
        winners = winners == ORT_ID_NONE ? wins : ort_emit_op2(g, "Add", winners, wins);
    }
    ort_id share = ort_emit_op2(g, "Div", gy, winners);
    for (int i = 0; i < node->input_count; i++)
        if (ort_grad_wants(g, node, i)) {
            ort_id wins = ort_emit_op2(g, "Equal", node->inputs[i], y);
            ort_grad_add_summed(g, node, i,
                                ort_emit_op3(g, "Where", wins, share, ort_emit_number(g, y, 0)));
        }
}

static void sum_back(ort_emit *g, const ort_node *node)
{
    ort_id gy = ort_grad_of(g, node, 0);
    if (!strcmp(node->op_type, "Mean"))
        gy = ort_emit_op2(g, "Div", gy, ort_emit_number(g, gy, node->input_count));
    for (int i = 0; i < node->input_count; i++)
        if (ort_grad_wants(g, node, i))
            ort_grad_add_summed(g, node, i, gy);
}

static void where_back(ort_emit *g, const ort_node *node)
{
    ort_id gy = ort_grad_of(g, node, 0), zero = ort_emit_number(g, gy, 0);
    ort_id condition = node->inputs[0];
    if (ort_grad_wants(g, node, 1))
        ort_grad_add_summed(g, node, 1, ort_emit_op3(g, "Where", condition, gy, zero));
    if (ort_grad_wants(g, node, 2))
        ort_grad_add_summed(g, node, 2, ort_emit_op3(g, "Where", condition, zero, gy));
}

/* min(max(x, low), high): the upper bound has the last word. */
static void clip_back(ort_emit *g, const ort_node *node)
{
    ort_id gy = ort_grad_of(g, node, 0), zero = ort_emit_number(g, gy, 0), x = node->inputs[0];
    ort_id low = ort_emit_in(node, 1), high = ort_emit_in(node, 2), gx = gy;
    ort_id raised = low == ORT_ID_NONE ? x : ort_emit_op2(g, "Max", x, low);
    if (high != ORT_ID_NONE) {
        ort_id above = ort_emit_op2(g, "Greater", raised, high);
        gx = ort_emit_op3(g, "Where", above, zero, gx);
        if (ort_grad_wants(g, node, 2))
            ort_grad_add_summed(g, node, 2, ort_emit_op3(g, "Where", above, gy, zero));
    }
    if (low != ORT_ID_NONE) {
        ort_id below = ort_emit_op2(g, "Less", x, low);
        if (ort_grad_wants(g, node, 1))
            ort_grad_add_summed(g, node, 1, ort_emit_op3(g, "Where", below, gx, zero));
        gx = ort_emit_op3(g, "Where", below, zero, gx);
    }
    ort_grad_add(g, node, 0, gx);
}

/* Not training: the identity. Training: the same mask again. */
static void dropout_back(ort_emit *g, const ort_node *node)
{
    ort_id training = ort_emit_in(node, 2), ratio = ort_emit_in(node, 1);
    ort_id gy = ort_grad_of(g, node, 0);
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
    ort_id mask = ort_emit_cast(g, node->outputs[1], ort_emit_type(g, gy)->dtype);
    ort_id rate = ratio == ORT_ID_NONE
                      ? ort_emit_number(g, gy, 0.5)
                      : ort_emit_cast(g, ratio, ort_emit_type(g, gy)->dtype);
    /* A ratio of 0, or no training: the mask is all ones and nothing is scaled. */
    ort_id scaled = ort_emit_formula(g, "g * m / (1 - r)", "g m r", gy, mask, rate);
    ort_grad_add(g, node, 0, ort_emit_op3(g, "Where", training, scaled, gy));
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
    {.op_type = "Cast", .back = cast_back},
    {.op_type = "CastLike", .back = cast_back},
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
    {.op_type = "Pow", .back = pow_back},
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
    {.op_type = "Where", .back = where_back},
    {.op_type = NULL},
};
