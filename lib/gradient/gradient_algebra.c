/* gradient_algebra.c - derivatives of products of matrices, reductions and softmax. */
#include <string.h>

#include "gradient/gradient.h"

/* ---- products */

static ort_id swap_last(ort_emit *g, ort_id value, int rank)
{
    int64_t perm[ORT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return ort_emit_transpose(g, value, perm, rank);
}

/* A vector counts as a matrix of one row (first factor) or one column (second factor). */
static void matmul_back(ort_emit *g, const ort_node *node)
{
    ort_id a = node->inputs[0], b = node->inputs[1], gy = ort_grad_of(g, node, 0);
    int rank_a = ort_emit_rank(g, a), rank_b = ort_emit_rank(g, b);
    if (rank_b == 1) {
        b = ort_emit_formula(g, "(Unsqueeze b [1])", "b", b);
        gy = ort_emit_formula(g, "(Unsqueeze g [-1])", "g", gy);
    }
    if (rank_a == 1) {
        a = ort_emit_formula(g, "(Unsqueeze a [0])", "a", a);
        gy = ort_emit_formula(g, "(Unsqueeze g [-2])", "g", gy);
    }
    if (ort_grad_wants(g, node, 0)) {
        ort_id right = swap_last(g, b, rank_b == 1 ? 2 : rank_b);
        ort_grad_add(g, node, 0,
                     ort_emit_formula(g, "(ReshapeLike (SumTo (MatMul g right) a) x)",
                                      "g right a x", gy, right, a, node->inputs[0]));
    }
    if (ort_grad_wants(g, node, 1)) {
        ort_id left = swap_last(g, a, rank_a == 1 ? 2 : rank_a);
        ort_grad_add(g, node, 1,
                     ort_emit_formula(g, "(ReshapeLike (SumTo (MatMul left g) b) x)",
                                      "g left b x", gy, left, b, node->inputs[1]));
    }
}

/* alpha * op(p) * op(q) */
static ort_id gemm(ort_emit *g, ort_id p, ort_id q, bool transpose_p, bool transpose_q)
{
    return ort_emit_formula(g, "(Gemm p q alpha=$alpha transA=$tp transB=$tq)", "p q $tp $tq", p,
                            q, (double)transpose_p, (double)transpose_q);
}

static void gemm_back(ort_emit *g, const ort_node *node)
{
    ort_id a = node->inputs[0], b = node->inputs[1], gy = ort_grad_of(g, node, 0);
    bool ta = ort_node_attr_int(node, "transA") != 0, tb = ort_node_attr_int(node, "transB") != 0;
    if (ort_grad_wants(g, node, 0))
        ort_grad_add(g, node, 0, ta ? gemm(g, b, gy, tb, true) : gemm(g, gy, b, false, !tb));
    if (ort_grad_wants(g, node, 1))
        ort_grad_add(g, node, 1, tb ? gemm(g, gy, a, true, ta) : gemm(g, a, gy, !ta, false));
    if (ort_grad_wants(g, node, 2))
        ort_grad_add_summed(g, node, 2, ort_grad_text(g, node, "g * $beta"));
}

/* ---- reductions */

/* Is nothing reduced, or (noop: false) everything? */
static bool is_over(const ort_emit *g, const ort_node *node, bool noop)
{
    const ort_tensor *fixed = ort_edit_constant(g->graph, node, 1);
    size_t count;
    ort_node_ints(node, "axes", &count);
    bool empty = ort_edit_input(node, 1) == ORT_ID_NONE ? !count
                                                        : fixed && !ort_tensor_count(fixed);
    return empty && noop == (ort_node_attr_int(node, "noop_with_empty_axes") != 0);
}

/* A value of the reduced shape, so that it broadcasts against the input. */
static ort_id widen(ort_emit *g, const ort_node *node, ort_id value)
{
    if (ort_node_attr_int(node, "keepdims") || is_over(g, node, true) || is_over(g, node, false))
        return value; /* a scalar broadcasts as it is */
    return ort_emit_formula(g, "(Unsqueeze v $axes)", "v axes", value, ort_edit_input(node, 1));
}

/* Slopes, of the widened gradient g, the result y (widened when it is a tensor to compare with),
 * the input a and the axes. */
static const struct {
    const char *op_type, *slope;
    bool wide;
} reductions[] = {
    {"ReduceL1", "g * (Sign a)", false},
    {"ReduceL2", "a * (Where (Greater y 0) (g / y) 0)", true},
    {"ReduceLogSum", "g / (Exp y)", true},
    {"ReduceLogSumExp", "g * (Exp (a - y))", true},
    {"ReduceMax", "m = (CastLike (Equal a y) a); g * m / (ReduceSum m $axes)", true},
    {"ReduceMean", "g * (Count y g) / (Count a g)", false},
    {"ReduceMin", "m = (CastLike (Equal a y) a); g * m / (ReduceSum m $axes)", true},
    {"ReduceSum", "g", false},
    {"ReduceSumSquare", "2 * g * a", false},
};

static void reduce_back(ort_emit *g, const ort_node *node)
{
    ort_id x = node->inputs[0], y = node->outputs[0], slope = ort_grad_of(g, node, 0);
    bool extreme = !strcmp(node->op_type, "ReduceMax") || !strcmp(node->op_type, "ReduceMin");
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (!strcmp(reductions[i].op_type, node->op_type) &&
            !(extreme && is_over(g, node, true)))
            slope = ort_emit_formula(g, reductions[i].slope, "g y a axes", widen(g, node, slope),
                                     reductions[i].wide ? widen(g, node, y) : y, x,
                                     ort_edit_input(node, 1));
    ort_grad_add(g, node, 0, ort_emit_expand(g, slope, x));
}

/* ---- softmax */

/* From opset 13 on one axis; before that all from `axis` on are one. */
static void softmax_back(ort_emit *g, const ort_node *node)
{
    bool one = node->opset >= 13;
    int rank = ort_emit_rank(g, node->inputs[0]), count = 0;
    int64_t axis = ort_emit_axis(g, node, rank), axes[ORT_MAX_RANK];
    do {
        axes[count] = axis + count;
        count++;
    } while (!one && axis + count < rank);
    const char *text = !strcmp(node->op_type, "LogSoftmax")
                           ? "g - (ReduceSum g $axes) * (Exp y)"
                           : "(g - (ReduceSum (g * y) $axes)) * y";
    ort_grad_add(g, node, 0, ort_emit_formula(g, text, "g y $axes[]", ort_grad_of(g, node, 0),
                                              node->outputs[0], axes, count));
}

/* ---- sums along an axis */

static void cumsum_back(ort_emit *g, const ort_node *node)
{
    bool turned = !ort_node_attr_int(node, "reverse");
    ort_grad_add(g, node, 0,
                 ort_emit_formula(g, "(CumSum g axis exclusive=$exclusive reverse=$turned)",
                                  "g axis $turned", ort_grad_of(g, node, 0), node->inputs[1],
                                  (double)turned));
}

const ort_grad_rule ort_grad_algebra[] = {
    {.op_type = "CumSum", .back = cumsum_back},
    {.op_type = "Gemm", .back = gemm_back},
    {.op_type = "LogSoftmax", .back = softmax_back},
    {.op_type = "MatMul", .back = matmul_back},
    {.op_type = "ReduceL1", .back = reduce_back},
    {.op_type = "ReduceL2", .back = reduce_back},
    {.op_type = "ReduceLogSum", .back = reduce_back},
    {.op_type = "ReduceLogSumExp", .back = reduce_back},
    {.op_type = "ReduceMax", .back = reduce_back},
    {.op_type = "ReduceMean", .back = reduce_back},
    {.op_type = "ReduceMin", .back = reduce_back},
    {.op_type = "ReduceSum", .back = reduce_back},
    {.op_type = "ReduceSumSquare", .back = reduce_back},
    {.op_type = "Softmax", .back = softmax_back},
    {.op_type = NULL},
};
