/* opset_expand.c - operators spelled in older ones, below the version that brought them, and those
 * that were on trial until opset 9, above. Many have such a form among the rules of differentiation
 * already (ort_grad_rule). */
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
        outputs[0] = ort_grad_same(&s->g, s->node, rule->same);
    ort_opset_replace(s, outputs, 4);
}

/* ---- attributes that rows give no default: 1 */

static void scaled(ort_opset_step *s, const char *text)
{
    ort_opset_replace_by(s, ort_emit_formula(&s->g, text, "a $alpha $beta", s->node->inputs[0],
                                             (double)ort_node_float(s->node, "alpha", 1),
                                             (double)ort_node_float(s->node, "beta", 1)));
}

static void scaled_tanh(ort_opset_step *s) { scaled(s, "$alpha * (Tanh ($beta * a))"); }
static void scaled_softplus(ort_opset_step *s) { scaled(s, "$alpha * (Softplus ($beta * a))"); }

/* x scale + bias, one bias per channel. */
static void image_scaler(ort_opset_step *s)
{
    size_t count;
    const float *bias = ort_node_floats(s->node, "bias", &count);
    ort_id list = count ? ort_opset_add_floats(s, bias, (int)count) : ORT_ID_NONE;
    ort_opset_replace_by(s, ort_emit_formula(&s->g, count ? "a * $scale + (Unsqueeze (CastLike "
                                                            "list a) [1 2])" : "a * $scale",
                                             "a list", s->node->inputs[0], list));
}

/* ---- bounds that are computed were no attributes */

static void clip_down_11(ort_opset_step *s)
{
    bool fixed = (ort_opset_in(s, 1) == ORT_ID_NONE || ort_opset_constant(s, 1)) &&
                 (ort_opset_in(s, 2) == ORT_ID_NONE || ort_opset_constant(s, 2));
    if (!fixed)
        ort_opset_replace_text(s, "(Min (Max a b) c)");
}

/* ---- of more element types than before */

#define CELU "$alpha * (Elu (a / $alpha))"

static void celu_down_28(ort_opset_step *s)
{
    if (ort_opset_dtype(s, s->node->inputs[0]) != ORT_DTYPE_FLOAT)
        ort_opset_replace_text(s, CELU);
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
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "(CastLike (Range p q r) a)", "p q r a", in[0],
                                             in[1], in[2], s->node->inputs[0]));
}

/* ---- remainders: floats had to take the sign of the dividend */

static void mod_down_28(ort_opset_step *s)
{
    if (ort_dtype_is_real(ort_opset_dtype(s, s->node->inputs[0])) &&
        !ort_node_attr_int(s->node, "fmod"))
        ort_opset_replace_text(s, "r = (Mod a b fmod=1); opposite = (Xor (Less r 0) (Less b 0));"
                                  "(Where (And (Not (Equal r 0)) opposite) (r + b) r)");
}

/* ---- triangles of matrices */

static void trilu(ort_opset_step *s)
{
    ort_id x = s->node->inputs[0];
    int rank = ort_opset_rank(s, x);
    if (rank < 2) {
        ort_opset_block(s, "its input is of unknown rank");
        return;
    }
    ort_id rows = ort_opset_positions(s, x, rank - 2);
    ort_id columns = ort_opset_positions(s, x, rank - 1), k = ort_opset_in(s, 1);
    if (k != ORT_ID_NONE)
        k = ort_emit_formula(&s->g, "(Reshape k [])", "k", k);
    const char *text = ort_node_attr_int(s->node, "upper")
                           ? "(Where (Not (Less columns ((Unsqueeze rows [1]) + k))) x 0)"
                           : "(Where (Not (Greater columns ((Unsqueeze rows [1]) + k))) x 0)";
    ort_opset_replace_by(s, ort_emit_formula(&s->g, text, "x rows columns k", x, rows, columns, k));
}

/* ---- constants of a computed shape */

static void constant_of_shape(ort_opset_step *s)
{
    const ort_tensor *value = ort_node_tensor(s->node, "value");
    uint64_t zero[2] = {0};
    ort_tensor scalar = {.dtype = value ? value->dtype : ORT_DTYPE_FLOAT,
                         .data = value ? value->data : zero};
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "(Expand v shape)", "v shape",
                                             ort_emit_tensor(&s->g, &scalar),
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
    const char *text = "m = (ReduceMean a $axes); q = (ReduceMean (a * a) $axes);"
                       "(a - m) / ((Sqrt (q - m * m)) + 0.000000001)";
    ort_opset_replace_by(s, ort_emit_formula(&s->g, text, "a $axes[]", s->node->inputs[0],
                                             axes ? axes : usual, axes ? (int)count : 3));
}

const ort_opset_rule ort_opset_expand[] = {
    {"Affine", 10, .text_up = "$alpha * a + $beta"},
    {"Celu", 12, .text_down = CELU},
    {"Celu", 28, NULL, celu_down_28},
    {"Clip", 11, NULL, clip_down_11},
    {"ConstantOfShape", 9, NULL, constant_of_shape},
    {"DynamicSlice", 10, .text_up = "(Slice a b c d)"},
    {"Gelu", 20, NULL, spelled},
    {"GreaterOrEqual", 12, .text_down = "(Or (Greater a b) (Equal a b))"},
    {"GroupNormalization", 18, NULL, spelled},
    {"GroupNormalization", 21, NULL, spelled},
    {"HardSwish", 14, .text_down = "a * (HardSigmoid a alpha=0.16666667 beta=0.5)"},
    {"ImageScaler", 10, image_scaler, NULL},
    {"LayerNormalization", 17, NULL, spelled},
    {"LessOrEqual", 12, .text_down = "(Or (Less a b) (Equal a b))"},
    {"MeanVarianceNormalization", 9, NULL, mean_variance},
    {"Mish", 18, NULL, spelled},
    {"Mod", 28, NULL, mod_down_28},
    {"NegativeLogLikelihoodLoss", 12, NULL, spelled},
    {"ParametricSoftplus", 10, scaled_softplus, NULL},
    {"RMSNormalization", 23, NULL, spelled},
    {"Range", 27, NULL, range_down_27},
    {"ScaledTanh", 10, scaled_tanh, NULL},
    {"Scale", 10, .text_up = "a * $scale"},
    {"Scan", 9, scan_up_9, scan_down_9},
    {"Shrink", 9, .text_down = "above = (CastLike (Greater a $lambd) a);"
                               "below = (CastLike (Less a -$lambd) a);"
                               "above * (a - $bias) + below * (a + $bias)"},
    {"SoftmaxCrossEntropyLoss", 12, NULL, spelled},
    {"SwiGLU", 28, .text_down = "(Swish a alpha=$alpha) * b"},
    {"Swish", 24, NULL, spelled},
    {"ThresholdedRelu", 10, .text_down = "(Where (Greater a $alpha) a 0)"},
    {"Trilu", 14, NULL, trilu},
    {0},
};
