/* opset_axes.c - conversion of what works along axes: reductions, softmax, slices, splits, pads,
 * shapes. Before opset 11 an axis couldn't count from the end. */
#include <string.h>

#include "opset/opset.h"

/* ---- axes that count from the end */

/* The rank that axes of this node refer to; -1: not known. */
static int axis_rank(const ort_opset_step *s, int extra)
{
    int rank = ort_opset_rank(s, s->node->inputs[0]);
    return rank < 0 ? -1 : rank + extra;
}

static void lift_axis(ort_opset_step *s, int extra)
{
    const ort_attr *attr = ort_node_attr(s->node, "axis");
    int rank = axis_rank(s, extra);
    if (!attr || attr->type != ORT_ATTR_INT || attr->i >= 0)
        return;
    if (rank < 0)
        ort_opset_block(s, "axis %lld counts from the end of a tensor of unknown rank",
                        (long long)attr->i);
    else
        ort_opset_set_int(s, "axis", attr->i + rank);
}

static void lift_axes(ort_opset_step *s, int extra)
{
    size_t count;
    const int64_t *axes = ort_node_ints(s->node, "axes", &count);
    int64_t lifted[ORT_MAX_RANK];
    int rank = axis_rank(s, extra);
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any = any || axes[i] < 0;
    if (!any || count > ORT_MAX_RANK)
        return;
    if (rank < 0) {
        ort_opset_block(s, "axes count from the end of a tensor of unknown rank");
        return;
    }
    for (size_t i = 0; i < count; i++)
        lifted[i] = axes[i] + (axes[i] < 0 ? rank : 0);
    ort_opset_set_ints(s, "axes", lifted, (int)count);
}

static void positive_axis(ort_opset_step *s) { lift_axis(s, 0); }
static void positive_axis_of_result(ort_opset_step *s) { lift_axis(s, 1); }
static void positive_axes(ort_opset_step *s) { lift_axes(s, 0); }

static void positive_axes_of_result(ort_opset_step *s)
{
    size_t count;
    ort_node_ints(s->node, "axes", &count);
    lift_axes(s, (int)count);
}

/* ---- reductions */

/* Over no axis at all the reduction goes, what else the operator computes stays. */
static void reduce_over_nothing(ort_opset_step *s)
{
    static const char *const left[][2] = {{"ReduceL1", "(Abs a)"}, {"ReduceL2", "(Abs a)"},
                                          {"ReduceLogSum", "(Log a)"},
                                          {"ReduceSumSquare", "a * a"}};
    const char *text = "(Identity a)";
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (!strcmp(s->node->op_type, left[i][0]))
            text = left[i][1];
    ort_opset_replace_text(s, text);
}

/* An empty list of axes means all of them as an attribute; as an input it may mean none. */
static void reduce_down(ort_opset_step *s)
{
    const ort_tensor *axes = ort_opset_constant(s, 1);
    bool absent = ort_opset_in(s, 1) == ORT_ID_NONE || (axes && !ort_tensor_count(axes));
    if (!ort_node_attr_int(s->node, "noop_with_empty_axes"))
        return;
    if (!absent && !axes)
        return; /* computed: a blocker anyway */
    if (absent)
        reduce_over_nothing(s);
    else
        ort_opset_drop(s, "noop_with_empty_axes");
}

/* ---- softmax: one axis from opset 13 on, all from `axis` on before */

static void softmax_up(ort_opset_step *s)
{
    ort_id x = s->node->inputs[0];
    int rank = ort_opset_rank(s, x);
    int64_t axis = ort_node_attr_int(s->node, "axis");
    bool last = axis == -1 || (rank > 0 && axis == rank - 1);
    for (int64_t i = axis + 1; rank > 0 && axis >= 0 && i < rank && !last; i++) {
        last = ort_opset_dim(s, x, (int)i) == 1;
        if (!last)
            break;
    }
    if (last) {
        ort_opset_set_int(s, "axis", axis);
        return;
    }
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "(Reshape (_ (Flatten x axis=$axis) axis=1) "
                                             "(Dims x))", "x $axis", x, (double)axis));
}

static void softmax_down(ort_opset_step *s)
{
    ort_id x = s->node->inputs[0];
    int rank = ort_opset_rank(s, x);
    int64_t axis = ort_node_attr_int(s->node, "axis"), perm[ORT_MAX_RANK];
    bool last = axis == -1 || (rank > 0 && axis == rank - 1);
    if (last || (rank < 0 && axis < 0)) {
        ort_opset_set_int(s, "axis", axis);
        if (!last)
            ort_opset_block(s, "softmax along one axis of a tensor of unknown rank");
        return;
    }
    if (rank < 0) {
        ort_opset_block(s, "softmax along one axis of a tensor of unknown rank");
        return;
    }
    axis += axis < 0 ? rank : 0;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[axis] = rank - 1; /* its own inverse */
    perm[rank - 1] = axis;
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "(Transpose (_ (Transpose x perm=$perm) "
                                             "axis=$last) perm=$perm)", "x $last $perm[]", x,
                                             (double)rank - 1, perm, rank));
}

/* ---- split */

static void split_up_18(ort_opset_step *s)
{
    if (ort_opset_in(s, 1) == ORT_ID_NONE && s->node->output_count > 1)
        ort_opset_set_int(s, "num_outputs", s->node->output_count);
    else if (ort_opset_in(s, 1) == ORT_ID_NONE)
        ort_opset_set_int(s, "num_outputs", 1);
}

/* Equal parts, the last one smaller: before, parts that aren't equal had to be given. */
static void split_down_18(ort_opset_step *s)
{
    int64_t parts = ort_node_attr_int(s->node, "num_outputs");
    int rank = ort_opset_rank(s, s->node->inputs[0]);
    int64_t axis = ort_node_attr_int(s->node, "axis"), sizes[64];
    if (!parts)
        return;
    int64_t total = rank < 0 ? -1
                             : ort_opset_dim(s, s->node->inputs[0],
                                             (int)(axis < 0 ? axis + rank : axis));
    int64_t each = total < 0 ? 0 : (total + parts - 1) / parts;
    if (total < 0 || parts > 64) {
        ort_opset_block(s, "'num_outputs' splits a dimension of unknown size");
        return;
    }
    ort_opset_drop(s, "num_outputs");
    if (total % parts == 0)
        return;
    for (int64_t i = 0; i < parts; i++)
        sizes[i] = i < parts - 1 ? each : total - each * (parts - 1);
    ort_opset_set_input(s, 1, ort_emit_ints(&s->g, sizes, (int)parts));
}

/* ---- slice */

static void slice_down_10(ort_opset_step *s)
{
    int64_t steps[ORT_MAX_RANK], axes[ORT_MAX_RANK];
    int count = 0, rank = ort_opset_rank(s, s->node->inputs[0]);
    bool negative = false;
    if (ort_opset_in(s, 4) != ORT_ID_NONE) {
        if (!ort_opset_ints(s, 4, steps, ORT_MAX_RANK, &count)) {
            ort_opset_block(s, "'steps' is computed, and steps were 1 before");
            return;
        }
        for (int i = 0; i < count; i++)
            if (steps[i] != 1) {
                ort_opset_block(s, "a step is %lld, steps were 1 before", (long long)steps[i]);
                return;
            }
        ort_opset_set_input(s, 4, ORT_ID_NONE);
    }
    if (!ort_opset_ints(s, 3, axes, ORT_MAX_RANK, &count))
        return;
    for (int i = 0; i < count; i++) {
        negative = negative || axes[i] < 0;
        axes[i] += axes[i] < 0 ? rank : 0;
    }
    if (negative && rank < 0)
        ort_opset_block(s, "axes count from the end of a tensor of unknown rank");
    else if (negative)
        ort_opset_set_input(s, 3, ort_emit_ints(&s->g, axes, count));
}

/* ---- pad */

/* The pads of some axes as those of all. */
static void pad_down_18(ort_opset_step *s)
{
    int64_t axes[ORT_MAX_RANK], some[2 * ORT_MAX_RANK], all[2 * ORT_MAX_RANK] = {0};
    int count = 0, pads = 0, rank = ort_opset_rank(s, s->node->inputs[0]);
    if (ort_opset_in(s, 3) == ORT_ID_NONE)
        return;
    if (!ort_opset_ints(s, 3, axes, ORT_MAX_RANK, &count) ||
        !ort_opset_ints(s, 1, some, 2 * ORT_MAX_RANK, &pads) || rank < 0 || pads != 2 * count) {
        ort_opset_block(s, "'axes' with pads, axes or a rank known at run time only");
        return;
    }
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] + (axes[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank)
            return;
        all[axis] = some[i];
        all[rank + axis] = some[count + i];
    }
    ort_opset_set_input(s, 1, ort_emit_ints(&s->g, all, 2 * rank));
    ort_opset_set_input(s, 3, ORT_ID_NONE);
}

static void pad_down_19(ort_opset_step *s)
{
    if (ort_node_attr_is(s->node, "mode", "wrap"))
        ort_opset_block(s, "mode 'wrap' isn't there before");
}

/* ---- shapes */

static void reshape_down_14(ort_opset_step *s)
{
    int64_t target[ORT_MAX_RANK];
    int count = 0;
    bool zero = !ort_opset_ints(s, 1, target, ORT_MAX_RANK, &count);
    if (!ort_node_attr_int(s->node, "allowzero"))
        return;
    for (int i = 0; i < count; i++)
        zero = zero || target[i] == 0;
    if (zero)
        ort_opset_block(s, "'allowzero' with a shape that has or may have a zero");
    else
        ort_opset_drop(s, "allowzero");
}

static void shape_down_15(ort_opset_step *s)
{
    int64_t start = ort_node_attr_int(s->node, "start");
    int64_t end = ort_node_int(s->node, "end", INT64_MAX);
    if (start == 0 && !ort_node_has(s->node, "end")) {
        ort_opset_drop(s, "start");
        return;
    }
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "(Slice (Shape a) $start $end)",
                                             "a $start[] $end[]", s->node->inputs[0], &start, 1,
                                             &end, 1));
}

/* ---- indices */

static void scatter_up_11(ort_opset_step *s) { ort_opset_rename(s, "ScatterElements"); }

static void scatter_down_11(ort_opset_step *s)
{
    positive_axis(s);
    ort_opset_rename(s, "Scatter");
}

static void scatter_down_18(ort_opset_step *s)
{
    char how[20];
    ort_node_attr_text(s->node, "reduction", how, sizeof how);
    if (!strcmp(how, "max") || !strcmp(how, "min"))
        ort_opset_block(s, "reduction '%s' isn't there before", how);
}

/* The axis was counted from the front when left out, from the end later. */
static void dft_up_20(ort_opset_step *s)
{
    if (!ort_node_has(s->node, "axis"))
        ort_opset_set_int(s, "axis", 1);
}

static void dft_down_20(ort_opset_step *s)
{
    int64_t axis = -2;
    int count = 0, rank = ort_opset_rank(s, s->node->inputs[0]);
    if (ort_opset_in(s, 2) != ORT_ID_NONE && !ort_opset_ints(s, 2, &axis, 1, &count))
        return; /* computed: a blocker anyway */
    if (axis < 0 && rank < 0) {
        ort_opset_block(s, "its axis counts from the end of a tensor of unknown rank");
        return;
    }
    ort_opset_set_input(s, 2, ORT_ID_NONE);
    ort_opset_set_int(s, "axis", axis + (axis < 0 ? rank : 0));
}

const ort_opset_rule ort_opset_axes[] = {
    {"ArgMax", 11, NULL, positive_axis},
    {"ArgMin", 11, NULL, positive_axis},
    {"Compress", 11, NULL, positive_axis},
    {"Concat", 11, NULL, positive_axis},
    {"DFT", 20, dft_up_20, dft_down_20},
    {"Flatten", 11, NULL, positive_axis},
    {"Gather", 11, NULL, positive_axis},
    {"Hardmax", 11, NULL, positive_axis},
    {"Hardmax", 13, softmax_up, softmax_down},
    {"LogSoftmax", 11, NULL, positive_axis},
    {"LogSoftmax", 13, softmax_up, softmax_down},
    {"OneHot", 11, NULL, positive_axis_of_result},
    {"Pad", 18, NULL, pad_down_18},
    {"Pad", 19, NULL, pad_down_19},
    {"ReduceL1", 11, NULL, positive_axes},
    {"ReduceL1", 18, NULL, reduce_down},
    {"ReduceL2", 11, NULL, positive_axes},
    {"ReduceL2", 18, NULL, reduce_down},
    {"ReduceLogSum", 11, NULL, positive_axes},
    {"ReduceLogSum", 18, NULL, reduce_down},
    {"ReduceLogSumExp", 11, NULL, positive_axes},
    {"ReduceLogSumExp", 18, NULL, reduce_down},
    {"ReduceMax", 11, NULL, positive_axes},
    {"ReduceMax", 18, NULL, reduce_down},
    {"ReduceMean", 11, NULL, positive_axes},
    {"ReduceMean", 18, NULL, reduce_down},
    {"ReduceMin", 11, NULL, positive_axes},
    {"ReduceMin", 18, NULL, reduce_down},
    {"ReduceProd", 11, NULL, positive_axes},
    {"ReduceProd", 18, NULL, reduce_down},
    {"ReduceSum", 11, NULL, positive_axes},
    {"ReduceSum", 13, NULL, reduce_down},
    {"ReduceSumSquare", 11, NULL, positive_axes},
    {"ReduceSumSquare", 18, NULL, reduce_down},
    {"Reshape", 14, NULL, reshape_down_14},
    {"Scatter", 11, scatter_up_11, NULL},
    {"ScatterElements", 11, NULL, scatter_down_11},
    {"ScatterElements", 18, NULL, scatter_down_18},
    {"ScatterND", 18, NULL, scatter_down_18},
    {"Shape", 15, NULL, shape_down_15},
    {"Slice", 10, NULL, slice_down_10},
    {"Softmax", 11, NULL, positive_axis},
    {"Softmax", 13, softmax_up, softmax_down},
    {"Split", 11, NULL, positive_axis},
    {"Split", 18, split_up_18, split_down_18},
    {"Squeeze", 11, NULL, positive_axes},
    {"TopK", 11, NULL, positive_axis},
    {"Unsqueeze", 11, NULL, positive_axes_of_result},
    {0},
};
