/* gradient_norms.c - normalizations and losses, differentiated as the operators that their
 * definitions in the ONNX specification are made of. float16 and bfloat16 compute in float, as the
 * kernels do.
 */
#include <string.h>

#include "gradient/gradient.h"

/* The element type that statistics are computed in. */
static ort_dtype wide_type(const ort_emit *g, ort_id x)
{
    ort_dtype dtype = ort_emit_type(g, x)->dtype;
    return dtype == ORT_DTYPE_DOUBLE ? dtype : ORT_DTYPE_FLOAT;
}

static int range(int64_t *axes, int first, int last)
{
    for (int i = first; i < last; i++)
        axes[i - first] = i;
    return last > first ? last - first : 0;
}

/* A value per channel [C] as [C, 1, ...], so that it broadcasts against rank `rank`. */
static ort_id per_channel(ort_emit *g, ort_id value, int rank, ort_dtype dtype)
{
    int64_t axes[ORT_MAX_RANK];
    return ort_emit_unsqueeze(g, ort_emit_cast(g, value, dtype), axes, range(axes, 1, rank - 1));
}

/* (x - mean) / sqrt(var + epsilon) over these axes; also 1 / sqrt and the mean, when asked for. */
static ort_id standardize(ort_emit *g, ort_id x, const int64_t *axes, int count, ort_id *mean,
                          ort_id *inverse)
{
    ort_id middle = ort_emit_reduce(g, "ReduceMean", x, axes, count, true);
    ort_id off = ort_emit_op2(g, "Sub", x, middle);
    ort_id variance = ort_emit_reduce(g, "ReduceMean", ort_emit_op2(g, "Mul", off, off), axes,
                                      count, true);
    ort_id scale = ort_emit_formula(g, "1 / (Sqrt (v + $epsilon))", "v", variance);
    if (mean)
        *mean = middle;
    if (inverse)
        *inverse = scale;
    return ort_emit_op2(g, "Mul", off, scale);
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
    ort_dtype dtype = ort_emit_type(g, node->inputs[0])->dtype;
    ort_id bias = ort_emit_in(node, 2), mean, inverse;
    ort_id x = ort_emit_cast(g, node->inputs[0], wide_type(g, node->inputs[0]));
    ort_id y = ort_emit_cast(g, standardize(g, x, axes, count, &mean, &inverse), dtype);
    y = ort_emit_op2(g, "Mul", y, node->inputs[1]);
    give(g, node, outputs, 0, bias == ORT_ID_NONE ? y : ort_emit_op2(g, "Add", y, bias));
    give(g, node, outputs, 1, mean);
    give(g, node, outputs, 2, inverse);
}

static void rms_norm_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    int64_t axes[ORT_MAX_RANK];
    int count = last_axes(g, node, axes);
    ort_id x = ort_emit_cast(g, node->inputs[0], wide_type(g, node->inputs[0]));
    ort_id square = ort_emit_reduce(g, "ReduceMean", ort_emit_op2(g, "Mul", x, x), axes, count,
                                    true);
    ort_id y = ort_emit_formula(g, "x / (Sqrt (s + $epsilon))", "x s", x, square);
    ort_dtype scale = ort_emit_type(g, node->inputs[1])->dtype;
    give(g, node, outputs, 0,
         ort_emit_op2(g, "Mul", ort_emit_cast(g, y, scale), node->inputs[1]));
}

/* ---- per channel */

static ort_id scale_and_shift(ort_emit *g, const ort_node *node, ort_id normal, int rank,
                              ort_dtype wide)
{
    ort_id scale = per_channel(g, node->inputs[1], rank, wide);
    ort_id bias = per_channel(g, node->inputs[2], rank, wide);
    return ort_emit_formula(g, "x * s + b", "x s b", normal, scale, bias);
}

/* Training: the statistics of the batch; they move the running ones by momentum. */
static void batch_norm_training(ort_emit *g, const ort_node *node, ort_id *outputs, ort_id x,
                                int rank)
{
    int64_t axes[ORT_MAX_RANK] = {0};
    int count = 1 + range(axes + 1, 2, rank);
    ort_dtype wide = wide_type(g, node->inputs[0]);
    ort_id means = ort_emit_reduce(g, "ReduceMean", x, axes, count, false);
    ort_id off = ort_emit_op2(g, "Sub", x, per_channel(g, means, rank, wide));
    ort_id variances = ort_emit_reduce(g, "ReduceMean", ort_emit_op2(g, "Mul", off, off), axes,
                                       count, false);
    ort_id normal = ort_emit_formula(g, "x / (Sqrt (v + $epsilon))", "x v", off,
                                     per_channel(g, variances, rank, wide));
    give(g, node, outputs, 0, scale_and_shift(g, node, normal, rank, wide));
    const char *move = "r * $momentum + n * (1 - $momentum)";
    give(g, node, outputs, 1,
         ort_emit_formula(g, move, "r n", ort_emit_cast(g, node->inputs[3], wide), means));
    give(g, node, outputs, 2,
         ort_emit_formula(g, move, "r n", ort_emit_cast(g, node->inputs[4], wide), variances));
}

static void batch_norm_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    int rank = ort_emit_rank(g, node->inputs[0]);
    ort_dtype wide = wide_type(g, node->inputs[0]);
    ort_id x = ort_emit_cast(g, node->inputs[0], wide);
    if (ort_node_int(node, "training_mode", 0)) {
        batch_norm_training(g, node, outputs, x, rank);
        return;
    }
    if (node->output_count > 1) {
        ort_emit_refuse(g, "it computes statistics in a form older than opset 14");
        return;
    }
    ort_id normal = ort_emit_formula(g, "(x - m) / (Sqrt (v + $epsilon))", "x m v", x,
                                     per_channel(g, node->inputs[3], rank, wide),
                                     per_channel(g, node->inputs[4], rank, wide));
    give(g, node, outputs, 0, scale_and_shift(g, node, normal, rank, wide));
}

static void instance_norm_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    int64_t axes[ORT_MAX_RANK];
    int rank = ort_emit_rank(g, node->inputs[0]), count = range(axes, 2, rank);
    ort_dtype wide = wide_type(g, node->inputs[0]);
    ort_id x = ort_emit_cast(g, node->inputs[0], wide);
    ort_id normal = standardize(g, x, axes, count, NULL, NULL);
    give(g, node, outputs, 0, scale_and_shift(g, node, normal, rank, wide));
}

static void group_norm_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    static const int64_t last[] = {2};
    int rank = ort_emit_rank(g, node->inputs[0]);
    ort_dtype wide = wide_type(g, node->inputs[0]);
    int64_t groups[] = {0, ort_node_int(node, "num_groups", 1), -1};
    ort_id x = ort_emit_cast(g, node->inputs[0], wide);
    ort_id by_group = ort_emit_reshape(g, x, ort_emit_ints(g, groups, 3));
    ort_id normal = standardize(g, by_group, last, 1, NULL, NULL);
    if (node->op->since < 21) /* scale and bias were of groups */
        normal = scale_and_shift(g, node, normal, 3, wide);
    normal = ort_emit_reshape_like(g, normal, x);
    if (node->op->since >= 21)
        normal = scale_and_shift(g, node, normal, rank, wide);
    give(g, node, outputs, 0, normal);
}

/* ---- losses */

/* The loss of log probabilities [N, C, ...] at labels [N, ...]. */
static ort_id likelihood_loss(ort_emit *g, const ort_node *node, ort_id log_prob)
{
    static const int64_t class_axis[] = {1};
    static const int64_t bits[] = {0, 1};
    const char *reduction = ort_node_string(node, "reduction", "mean");
    ort_attr axis = ort_emit_int_attr("axis", 1);
    ort_dtype dtype = ort_emit_type(g, log_prob)->dtype;
    ort_id labels = ort_emit_cast(g, node->inputs[1], ORT_DTYPE_INT64);
    ort_id weights = ort_emit_in(node, 2), weight = ORT_ID_NONE;
    if (ort_node_has(node, "ignore_index")) {
        ort_id ignored = ort_emit_int(g, ort_node_int(node, "ignore_index", 0));
        ort_id counts = ort_emit_op1(g, "Not", ort_emit_op2(g, "Equal", labels, ignored));
        labels = ort_emit_op3(g, "Where", counts, labels, ort_emit_int(g, 0));
        weight = ort_emit_cast(g, counts, dtype);
    }
    if (weights != ORT_ID_NONE) {
        ort_id own = ort_emit_op2(g, "Gather", weights, labels);
        weight = weight == ORT_ID_NONE ? own : ort_emit_op2(g, "Mul", weight, own);
    }
    ort_id in[] = {labels, ort_emit_dims(g, log_prob, 1, 2), ort_emit_ints(g, bits, 2)};
    ort_id chosen = ort_emit_cast(g, ort_emit_op(g, "OneHot", in, 3, &axis, 1), dtype);
    ort_id loss = ort_emit_op1(g, "Neg",
                               ort_emit_reduce(g, "ReduceSum",
                                               ort_emit_op2(g, "Mul", log_prob, chosen),
                                               class_axis, 1, false));
    if (weight != ORT_ID_NONE)
        loss = ort_emit_op2(g, "Mul", loss, weight);
    if (!strcmp(reduction, "none"))
        return loss;
    if (!strcmp(reduction, "sum") || weight == ORT_ID_NONE)
        return ort_emit_reduce(g, reduction[0] == 's' ? "ReduceSum" : "ReduceMean", loss, NULL, 0,
                               false);
    return ort_emit_op2(g, "Div", ort_emit_reduce(g, "ReduceSum", loss, NULL, 0, false),
                        ort_emit_reduce(g, "ReduceSum", weight, NULL, 0, false));
}

static void likelihood_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    give(g, node, outputs, 0, likelihood_loss(g, node, node->inputs[0]));
}

static void cross_entropy_expand(ort_emit *g, const ort_node *node, ort_id *outputs)
{
    static const int64_t class_axis[] = {1};
    ort_id x = node->inputs[0];
    ort_id norm = ort_emit_reduce(g, "ReduceLogSumExp", x, class_axis, 1, true);
    ort_id log_prob = ort_emit_op2(g, "Sub", x, norm);
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
