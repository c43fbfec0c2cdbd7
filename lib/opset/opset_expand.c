/* opset_expand.c - operators spelled in older ones, below the version that brought them. Many have
 * such a form among the rules of differentiation already (ort_grad_rule). */
#include <string.h>

#include "opset/opset.h"

/* ---- what the rules of differentiation spell */

static void spelled(ort_opset_step *s)
{
    const ort_grad_rule *rule = ort_grad_find_rule(s->node);
    ort_id outputs[4] = {ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE};
    if (!rule || (!rule->expand && !rule->same) || s->node->output_count > 4)
        return;
    if (rule->expand)
        rule->expand(&s->g, s->node, outputs);
    else
        outputs[0] = ort_emit_formula(&s->g, rule->same, "a b c", s->node->inputs[0],
                                      ort_opset_in(s, 1), ort_opset_in(s, 2));
    ort_opset_replace(s, outputs, 4);
}

/* ---- formulas of the inputs a, b and float attributes */

static const struct {
    const char *op_type, *formula;
} formulas[] = {
    {"Affine", "$alpha * a + $beta"},
    {"Celu", "$alpha * (Elu (a / $alpha))"},
    {"GreaterOrEqual", "(Or (Greater a b) (Equal a b))"},
    {"HardSwish", "a * (HardSigmoid a alpha=0.16666667 beta=0.5)"},
    {"LessOrEqual", "(Or (Less a b) (Equal a b))"},
    {"Scale", "a * $scale"},
    {"SwiGLU", "(Swish a alpha=$alpha) * b"},
    {"ThresholdedRelu", "(Where (Greater a $alpha) a 0)"},
};

static void by_formula(ort_opset_step *s)
{
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        if (!strcmp(formulas[i].op_type, s->node->op_type))
            ort_opset_replace_by(s, ort_emit_formula(&s->g, formulas[i].formula, "a b",
                                                     s->node->inputs[0], ort_opset_in(s, 1)));
}

/* alpha f(beta x); an attribute left out is 1. */
static void scaled(ort_opset_step *s)
{
    ort_id x = s->node->inputs[0];
    ort_id alpha = ort_emit_number(&s->g, x, (double)ort_node_float(s->node, "alpha", 1));
    ort_id beta = ort_emit_number(&s->g, x, (double)ort_node_float(s->node, "beta", 1));
    bool tanh = !strcmp(s->node->op_type, "ScaledTanh");
    const char *formula = tanh ? "p * (Tanh (q * x))" : "p * (Softplus (q * x))";
    ort_opset_replace_by(s, ort_emit_formula(&s->g, formula, "x p q", x, alpha, beta));
}

/* x scale + bias, one bias per channel. */
static void image_scaler(ort_opset_step *s)
{
    static const int64_t axes[] = {1, 2};
    size_t count;
    const float *bias = ort_node_floats(s->node, "bias", &count);
    ort_id y = ort_emit_formula(&s->g, "x * $scale", "x", s->node->inputs[0]);
    if (count) {
        ort_id list = ort_emit_cast(&s->g, ort_opset_add_floats(s, bias, (int)count),
                                    ort_opset_dtype(s, y));
        y = ort_emit_op2(&s->g, "Add", y, ort_emit_unsqueeze(&s->g, list, axes, 2));
    }
    ort_opset_replace_by(s, y);
}

static void shrink(ort_opset_step *s)
{
    ort_dtype dtype = ort_opset_dtype(s, s->node->inputs[0]);
    ort_id x = s->node->inputs[0];
    ort_id above = ort_emit_cast(&s->g, ort_emit_formula(&s->g, "(Greater x $lambd)", "x", x),
                                 dtype);
    ort_id below = ort_emit_cast(&s->g, ort_emit_formula(&s->g, "(Less x -$lambd)", "x", x), dtype);
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "p * (x - $bias) + n * (x + $bias)", "x p n", x,
                                             above, below));
}

/* ---- bounds that are computed were no attributes */

static void clip_down_11(ort_opset_step *s)
{
    ort_id low = ort_opset_in(s, 1), high = ort_opset_in(s, 2), y = s->node->inputs[0];
    bool fixed = (low == ORT_ID_NONE || ort_opset_constant(s, 1)) &&
                 (high == ORT_ID_NONE || ort_opset_constant(s, 2));
    if (fixed)
        return;
    if (low != ORT_ID_NONE)
        y = ort_emit_op2(&s->g, "Max", y, low);
    if (high != ORT_ID_NONE)
        y = ort_emit_op2(&s->g, "Min", y, high);
    ort_opset_replace_by(s, y);
}

/* ---- of more element types than before */

static void celu_down_28(ort_opset_step *s)
{
    if (ort_opset_dtype(s, s->node->inputs[0]) != ORT_DTYPE_FLOAT)
        by_formula(s);
}

/* Halves are counted in float. */
static void range_down_27(ort_opset_step *s)
{
    ort_dtype dtype = ort_opset_dtype(s, s->node->inputs[0]);
    ort_id in[3];
    if (dtype != ORT_DTYPE_FLOAT16 && dtype != ORT_DTYPE_BFLOAT16)
        return;
    for (int i = 0; i < 3; i++)
        in[i] = ort_emit_cast(&s->g, s->node->inputs[i], ORT_DTYPE_FLOAT);
    ort_opset_replace_by(s, ort_emit_cast(&s->g, ort_emit_op(&s->g, "Range", in, 3, NULL, 0),
                                          dtype));
}

/* ---- remainders: floats had to take the sign of the dividend */

static void mod_down_28(ort_opset_step *s)
{
    ort_dtype dtype = ort_opset_dtype(s, s->node->inputs[0]);
    bool is_float = dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_DOUBLE ||
                    dtype == ORT_DTYPE_FLOAT16 || dtype == ORT_DTYPE_BFLOAT16;
    if (!is_float || ort_node_attr_int(s->node, "fmod"))
        return;
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "r = (Mod a b fmod=1);"
                                             "(Where (And (Not (Equal r 0)) (Xor (Less r 0) "
                                             "(Less b 0))) (r + b) r)", "a b",
                                             s->node->inputs[0], s->node->inputs[1]));
}

/* ---- triangles of matrices */

static void trilu(ort_opset_step *s)
{
    static const int64_t last[] = {1};
    ort_emit *g = &s->g;
    ort_id x = s->node->inputs[0], k = ort_opset_in(s, 1);
    int rank = ort_opset_rank(s, x);
    if (rank < 2) {
        ort_opset_block(s, "its input is of unknown rank");
        return;
    }
    ort_id rows = ort_emit_unsqueeze(g, ort_opset_positions(s, x, rank - 2), last, 1);
    ort_id columns = ort_opset_positions(s, x, rank - 1);
    if (k != ORT_ID_NONE)
        rows = ort_emit_op2(g, "Add", rows, ort_emit_reshape(g, k, ort_emit_ints(g, NULL, 0)));
    ort_id kept = ort_node_attr_int(s->node, "upper")
                      ? ort_emit_op1(g, "Not", ort_emit_op2(g, "Less", columns, rows))
                      : ort_emit_op1(g, "Not", ort_emit_op2(g, "Greater", columns, rows));
    ort_opset_replace_by(s, ort_emit_op3(g, "Where", kept, x, ort_emit_number(g, x, 0)));
}

/* ---- constants of a computed shape */

static void constant_of_shape(ort_opset_step *s)
{
    const ort_tensor *value = ort_node_tensor(s->node, "value");
    uint64_t zero[2] = {0};
    ort_tensor scalar = {.dtype = value ? value->dtype : ORT_DTYPE_FLOAT,
                         .data = value ? value->data : zero};
    ort_opset_replace_by(s, ort_emit_op2(&s->g, "Expand", ort_opset_add_tensor(s, &scalar),
                                         s->node->inputs[0]));
}

/* ---- Scan of opset 8 had a batch around its sequences */

static void scan_up_9(ort_opset_step *s)
{
    ort_opset_block(s, "it scans the sequences of a batch, and one at a time from opset 9 on");
}

static void scan_down_9(ort_opset_step *s)
{
    ort_opset_block(s, "it scans one sequence, and those of a batch before");
}

/* ---- mean and variance */

static void mean_variance(ort_opset_step *s)
{
    static const int64_t usual[] = {0, 2, 3};
    size_t count;
    const int64_t *axes = ort_node_ints(s->node, "axes", &count);
    ort_id x = s->node->inputs[0];
    if (!axes) {
        axes = usual;
        count = 3;
    }
    ort_id mean = ort_emit_reduce(&s->g, "ReduceMean", x, axes, (int)count, true);
    ort_id square = ort_emit_reduce(&s->g, "ReduceMean", ort_emit_op2(&s->g, "Mul", x, x), axes,
                                    (int)count, true);
    const char *formula = "(x - m) / ((Sqrt (q - m * m)) + 0.000000001)";
    ort_opset_replace_by(s, ort_emit_formula(&s->g, formula, "x m q", x, mean, square));
}

const ort_opset_rule ort_opset_expand[] = {
    {"Affine", 10, by_formula, NULL},
    {"Celu", 12, NULL, by_formula},
    {"Celu", 28, NULL, celu_down_28},
    {"Clip", 11, NULL, clip_down_11},
    {"ConstantOfShape", 9, NULL, constant_of_shape},
    {"Gelu", 20, NULL, spelled},
    {"GreaterOrEqual", 12, NULL, by_formula},
    {"GroupNormalization", 18, NULL, spelled},
    {"GroupNormalization", 21, NULL, spelled},
    {"HardSwish", 14, NULL, by_formula},
    {"ImageScaler", 10, image_scaler, NULL},
    {"LayerNormalization", 17, NULL, spelled},
    {"LessOrEqual", 12, NULL, by_formula},
    {"MeanVarianceNormalization", 9, NULL, mean_variance},
    {"Mish", 18, NULL, spelled},
    {"Mod", 28, NULL, mod_down_28},
    {"NegativeLogLikelihoodLoss", 12, NULL, spelled},
    {"ParametricSoftplus", 10, scaled, NULL},
    {"RMSNormalization", 23, NULL, spelled},
    {"Range", 27, NULL, range_down_27},
    {"ScaledTanh", 10, scaled, NULL},
    {"Scale", 10, by_formula, NULL},
    {"Scan", 9, scan_up_9, scan_down_9},
    {"Shrink", 9, NULL, shrink},
    {"SoftmaxCrossEntropyLoss", 12, NULL, spelled},
    {"SwiGLU", 28, NULL, by_formula},
    {"Swish", 24, NULL, spelled},
    {"ThresholdedRelu", 10, NULL, by_formula},
    {"Trilu", 14, NULL, trilu},
    {0},
};
