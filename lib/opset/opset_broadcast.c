/* opset_broadcast.c - conversion of broadcasting: before opset 7 the second input alone was
 * broadcast, from an axis on, and only when an attribute said so; Max, Min, Mean and Sum began to
 * with opset 8.
 */
#include <string.h>

#include "opset/opset.h"

/* [B] of opset 6 lies along A's dims from `axis` on: it gets ones behind it. */
static void binary_up_7(ort_opset_step *s)
{
    const ort_attr *axis = ort_node_attr(s->node, "axis");
    int a = ort_opset_rank(s, s->node->inputs[0]), b = ort_opset_rank(s, s->node->inputs[1]);
    int64_t axes[ORT_MAX_RANK];
    int count = 0;
    if (axis && ort_node_attr_int(s->node, "broadcast")) {
        if (a < 0 || b < 0) {
            ort_opset_block(s, "'axis' with tensors of unknown rank");
            return;
        }
        int64_t first = axis->i < 0 ? axis->i + a : axis->i;
        for (int64_t i = first + b; i < a; i++) {
            axes[count] = b + count;
            count++;
        }
    }
    ort_opset_drop(s, "axis");
    ort_opset_drop(s, "broadcast");
    if (count)
        ort_opset_set_input(s, 1, ort_emit_unsqueeze(&s->g, s->node->inputs[1], axes, count));
}

/* A list of slopes was one per channel. */
static void prelu_up_7(ort_opset_step *s)
{
    ort_id slope = s->node->inputs[1];
    int rank = ort_opset_rank(s, s->node->inputs[0]);
    int64_t axes[ORT_MAX_RANK];
    int count = 0;
    if (ort_opset_rank(s, slope) != 1 || ort_opset_dim(s, slope, 0) == 1)
        return;
    if (rank < 0) {
        ort_opset_block(s, "slopes per channel of a tensor of unknown rank");
        return;
    }
    for (int i = 2; i < rank; i++) {
        axes[count] = 1 + count;
        count++;
    }
    if (count)
        ort_opset_set_input(s, 1, ort_emit_unsqueeze(&s->g, slope, axes, count));
}

/* All inputs had one shape. */
static bool same_shapes(const ort_opset_step *s)
{
    const ort_type *first = ort_emit_type(&s->g, s->node->inputs[0]);
    for (int i = 1; i < s->node->input_count; i++)
        if (!ort_facts_same_shape(ort_emit_type(&s->g, s->node->inputs[i]), first))
            return false;
    return true;
}

/* Sum and Mean as additions, which broadcast already. */
static void sum_down_8(ort_opset_step *s)
{
    ort_id sum = s->node->inputs[0];
    if (same_shapes(s))
        return;
    for (int i = 1; i < s->node->input_count; i++)
        sum = ort_emit_formula(&s->g, "a + b", "a b", sum, s->node->inputs[i]);
    if (!strcmp(s->node->op_type, "Mean"))
        sum = ort_emit_formula(&s->g, "a / $n", "a $n", sum, (double)s->node->input_count);
    ort_opset_replace_by(s, sum);
}

/* The larger of two as a sum: what is compared broadcasts, and so does what is added; but NaN and
 * infinities would not come out, so that unequal shapes stay a blocker. */
static void extreme_down_8(ort_opset_step *s)
{
    if (!same_shapes(s))
        ort_opset_block(s, "its inputs are of different shapes, which were not broadcast before");
}

static void drop_broadcast(ort_opset_step *s) { ort_opset_drop(s, "broadcast"); }

/* What is added had to be given. */
static void gemm_down_11(ort_opset_step *s)
{
    if (ort_opset_in(s, 2) == ORT_ID_NONE)
        ort_opset_set_input(s, 2, ort_emit_number(&s->g, s->node->inputs[0], 0));
}

/* The exponent had the type of the base. */
static void pow_down_12(ort_opset_step *s)
{
    ort_dtype base = ort_opset_dtype(s, s->node->inputs[0]);
    ort_dtype exponent = ort_opset_dtype(s, s->node->inputs[1]);
    if (base == exponent || !base || !exponent)
        return;
    if (base == ORT_DTYPE_INT32 || base == ORT_DTYPE_INT64)
        return; /* of a type that the older rows lack */
    ort_opset_set_input(s, 1, ort_emit_cast(&s->g, s->node->inputs[1], base));
}

const ort_opset_rule ort_opset_broadcast[] = {
    {"Add", 7, binary_up_7, NULL},
    {"And", 7, binary_up_7, NULL},
    {"Div", 7, binary_up_7, NULL},
    {"Equal", 7, binary_up_7, NULL},
    {"Gemm", 7, drop_broadcast, NULL},
    {"Gemm", 11, NULL, gemm_down_11},
    {"Greater", 7, binary_up_7, NULL},
    {"Less", 7, binary_up_7, NULL},
    {"Max", 8, NULL, extreme_down_8},
    {"Mean", 8, NULL, sum_down_8},
    {"Min", 8, NULL, extreme_down_8},
    {"Mul", 7, binary_up_7, NULL},
    {"Or", 7, binary_up_7, NULL},
    {"PRelu", 7, prelu_up_7, NULL},
    {"Pow", 7, binary_up_7, NULL},
    {"Pow", 12, NULL, pow_down_12},
    {"Sub", 7, binary_up_7, NULL},
    {"Sum", 8, NULL, sum_down_8},
    {"Xor", 7, binary_up_7, NULL},
    {0},
};
