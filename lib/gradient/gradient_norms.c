/* gradient_norms.c - normalizations and losses, differentiated as the operators that their
 * definitions in the ONNX specification are made of. float16 and bfloat16 compute in float, as the
 * kernels do.
 */
#include <string.h>

#include "gradient/gradient.h"

/* x in the element type that statistics are computed in. */
static ort_id widen(ort_emit *g, ort_id x)
{
    bool wide = ort_emit_type(g, x)->dtype == ORT_DTYPE_DOUBLE;
    return wide ? x : ort_emit_cast(g, x, ORT_DTYPE_FLOAT);
}

static int range(int64_t *axes, int first, int last)
{
    for (int i = first; i < last; i++)
        axes[i - first] = i;
    return last > first ? last - first : 0;
}

/* A value per channel [C] as [C, 1, ...] of x's type, so that it broadcasts against rank `rank`. */
static ort_id per_channel(ort_emit *g, ort_id value, int rank, ort_id x)
{
    int64_t axes[ORT_MAX_RANK];
    int count = range(axes, 1, rank - 1);
    return ort_emit_formula(g, count ? "(Unsqueeze (CastLike v x) $axes)" : "(CastLike v x)",
                            "v x $axes[]", value, x, axes, count);
}

/* 1 / sqrt(var + epsilon) over these axes, of what is left of x without its mean. */
static ort_id inverse_of(ort_emit *g, ort_id off, const int64_t *axes, int count)
{
    return ort_emit_formula(g, "1 / (Sqrt ((ReduceMean (d * d) $axes) + $epsilon))", "d $axes[]",
                            off, axes, count);
}

static ort_id standardize(ort_emit *g, ort_id x, const int64_t *axes, int count)
{
    ort_id off = ort_emit_formula(g, "x - (ReduceMean x $axes)", "x $axes[]", x, axes, count);
    return ort_emit_formula(g, "d * r", "d r", off, inverse_of(g, off, axes, count));
}

/* ---- over the last axes */

static int last_axes(ort_emit *g, const ort_node *node, int64_t *axes)
{
    int rank = ort_emit_rank(g, node->inputs[0]);
    return range(axes, ort_emit_axis(g, node, rank), rank);
}

static void give(ort_emit *g, const ort_node *node, ort_id *outputs, int slot, ort_id value)
{
    if (slot < node->output_count && node->outputs[slot] != ORT_ID_NONE)
        outputs[slot] = ort_emit_cast(g, value, ort_emit_type(g, node->outputs[slot])->dtype);
}

static void layer_norm_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    int64_t axes[ORT_MAX_RANK];
    int count = last_axes(g, node, axes);
    ort_id x = widen(g, node->inputs[0]);
    ort_id mean = ort_emit_formula(g, "(ReduceMean x $axes)", "x $axes[]", x, axes, count);
    ort_id off = ort_emit_formula(g, "x - m", "x m", x, mean);
    ort_id inverse = inverse_of(g, off, axes, count);
    give(g, node, outputs, 0,
         ort_emit_formula(g, "(CastLike (d * r) a) * b + c", "d r a b c", off, inverse,
                          node->inputs[0], node->inputs[1], ort_edit_input(node, 2)));
    give(g, node, outputs, 1, mean);
    give(g, node, outputs, 2, inverse);
}

static void rms_norm_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    int64_t axes[ORT_MAX_RANK];
    int count = last_axes(g, node, axes);
    give(g, node, outputs, 0,
         ort_emit_formula(g, "y = x / (Sqrt ((ReduceMean (x * x) $axes) + $epsilon));"
                          "(CastLike y b) * b", "x b $axes[]", widen(g, node->inputs[0]),
                          node->inputs[1], axes, count));
}

/* ---- per channel */

static ort_id scale_and_shift(ort_emit *g, const ort_node *node, ort_id normal, int rank)
{
    return ort_emit_formula(g, "x * s + b", "x s b", normal,
                            per_channel(g, node->inputs[1], rank, normal),
                            per_channel(g, node->inputs[2], rank, normal));
}

/* Training: the statistics of the batch; they move the running ones by momentum. */
static void batch_norm_training(ort_emit *g, const ort_node *node, ort_id *outputs, ort_id x,
                                int rank)
{
    static const char *const mean_of = "(ReduceMean x $axes keepdims=0)";
    static const char *const move = "(CastLike r n) * $momentum + n * (1 - $momentum)";
    int64_t axes[ORT_MAX_RANK] = {0};
    int count = 1 + range(axes + 1, 2, rank);
    ort_id means = ort_emit_formula(g, mean_of, "x $axes[]", x, axes, count);
    ort_id off = ort_emit_formula(g, "x - m", "x m", x, per_channel(g, means, rank, x));
    ort_id square = ort_emit_formula(g, "d * d", "d", off);
    ort_id variances = ort_emit_formula(g, mean_of, "x $axes[]", square, axes, count);
    ort_id normal = ort_emit_formula(g, "x / (Sqrt (v + $epsilon))", "x v", off,
                                     per_channel(g, variances, rank, x));
    give(g, node, outputs, 0, scale_and_shift(g, node, normal, rank));
    give(g, node, outputs, 1, ort_emit_formula(g, move, "r n", node->inputs[3], means));
    give(g, node, outputs, 2, ort_emit_formula(g, move, "r n", node->inputs[4], variances));
}

static void batch_norm_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    int rank = ort_emit_rank(g, node->inputs[0]);
    ort_id x = widen(g, node->inputs[0]);
    if (ort_node_attr_int(node, "training_mode")) {
        batch_norm_training(g, node, outputs, x, rank);
        return;
    }
    if (node->output_count > 1) {
        ort_emit_refuse(g, "it computes statistics in a form older than opset 14");
        return;
    }
    ort_id normal = ort_emit_formula(g, "(x - m) / (Sqrt (v + $epsilon))", "x m v", x,
                                     per_channel(g, node->inputs[3], rank, x),
                                     per_channel(g, node->inputs[4], rank, x));
    give(g, node, outputs, 0, scale_and_shift(g, node, normal, rank));
}

static void instance_norm_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    int64_t axes[ORT_MAX_RANK];
    int rank = ort_emit_rank(g, node->inputs[0]), count = range(axes, 2, rank);
    ort_id normal = standardize(g, widen(g, node->inputs[0]), axes, count);
    give(g, node, outputs, 0, scale_and_shift(g, node, normal, rank));
}

static void group_norm_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    static const int64_t last[] = {2};
    int rank = ort_emit_rank(g, node->inputs[0]);
    ort_id x = widen(g, node->inputs[0]);
    ort_id by_group = ort_emit_formula(g, "(Reshape x [0 $num_groups -1])", "x", x);
    ort_id normal = standardize(g, by_group, last, 1);
    if (node->op->since < 21) /* scale and bias were of groups */
        normal = scale_and_shift(g, node, normal, 3);
    normal = ort_emit_reshape_like(g, normal, x);
    if (node->op->since >= 21)
        normal = scale_and_shift(g, node, normal, rank);
    give(g, node, outputs, 0, normal);
}

/* ---- losses */

/* The loss of log probabilities p [N, C, ...] at labels [N, ...]. */
static ort_id likelihood_loss(ort_emit *g, const ort_node *node, ort_id p)
{
    ort_id labels = ort_emit_cast(g, node->inputs[1], ORT_DTYPE_INT64), weight = ORT_ID_NONE;
    ort_id weights = ort_edit_input(node, 2);
    if (ort_node_has(node, "ignore_index")) {
        ort_id counts = ort_emit_formula(g, "(Not (Equal labels $ignore_index))", "labels", labels);
        labels = ort_emit_formula(g, "(Where counts labels @0)", "counts labels", counts, labels);
        weight = ort_emit_formula(g, "(CastLike counts p)", "counts p", counts, p);
    }
    if (weights != ORT_ID_NONE)
        weight = ort_emit_formula(g, "w * (Gather weights labels)", "w weights labels", weight,
                                  weights, labels);
    ort_id loss = ort_emit_formula(g, "chosen = (CastLike (OneHot l (Dims p 1 2) [0 1] axis=1) p);"
                                   "-(ReduceSum (p * chosen) [1] keepdims=0) * w", "p l w", p,
                                   labels, weight);
    if (ort_node_attr_is(node, "reduction", "none"))
        return loss;
    bool sum = ort_node_attr_is(node, "reduction", "sum");
    return ort_emit_formula(g, sum                      ? "(ReduceSum y keepdims=0)"
                               : weight == ORT_ID_NONE ? "(ReduceMean y keepdims=0)"
                                 : "(ReduceSum y keepdims=0) / (ReduceSum w keepdims=0)", "y w",
                            loss, weight);
}

static void likelihood_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    give(g, node, outputs, 0, likelihood_loss(g, node, node->inputs[0]));
}

static void cross_entropy_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    ort_id log_prob = ort_grad_same(g, node, "a - (ReduceLogSumExp a [1])");
    give(g, node, outputs, 0, likelihood_loss(g, node, log_prob));
    give(g, node, outputs, 1, log_prob);
}

const ort_grad_rule ort_grad_norms[] = {
    {.op_type = "BatchNormalization", .expand = batch_norm_expand},
    {.op_type = "GroupNormalization", .expand = group_norm_expand},
    {.op_type = "InstanceNormalization", .expand = instance_norm_expand},
    {.op_type = "LayerNormalization", .expand = layer_norm_expand},
    {.op_type = "NegativeLogLikelihoodLoss", .expand = likelihood_expand},
    {.op_type = "RMSNormalization", .expand = rms_norm_expand},
    {.op_type = "SoftmaxCrossEntropyLoss", .expand = cross_entropy_expand},
    {.op_type = NULL},
};
