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
    if (g->status != ORT_OK)
        return;
    if (rank_b == 1) {
        b = ort_emit_unsqueeze(g, b, (const int64_t[]){1}, 1);
        gy = ort_emit_unsqueeze(g, gy, (const int64_t[]){-1}, 1);
    }
    if (rank_a == 1) {
        a = ort_emit_unsqueeze(g, a, (const int64_t[]){0}, 1);
        gy = ort_emit_unsqueeze(g, gy, (const int64_t[]){-2}, 1);
    }
    if (ort_grad_wants(g, node, 0)) {
        ort_id right = swap_last(g, b, rank_b == 1 ? 2 : rank_b);
        ort_id sum = ort_emit_sum_to(g, ort_emit_op2(g, "MatMul", gy, right), a);
        ort_grad_add(g, node, 0, ort_emit_reshape_like(g, sum, node->inputs[0]));
    }
    if (ort_grad_wants(g, node, 1)) {
        ort_id left = swap_last(g, a, rank_a == 1 ? 2 : rank_a);
        ort_id sum = ort_emit_sum_to(g, ort_emit_op2(g, "MatMul", left, gy), b);
        ort_grad_add(g, node, 1, ort_emit_reshape_like(g, sum, node->inputs[1]));
    }
}

/* alpha * op(p) * op(q) */
static ort_id gemm(ort_emit *g, ort_id p, ort_id q, float alpha, bool transpose_p, bool transpose_q)
{
    ort_attr attrs[] = {{.name = "alpha", .type = ORT_ATTR_FLOAT, .f = alpha},
                        ort_emit_int_attr("transA", transpose_p),
                        ort_emit_int_attr("transB", transpose_q)};
    return ort_emit_op(g, "Gemm", (const ort_id[]){p, q}, 2, attrs, 3);
}

static void gemm_back(ort_emit *g, const ort_node *node)
{
    ort_id a = node->inputs[0], b = node->inputs[1], gy = ort_grad_of(g, node, 0);
    float alpha = ort_node_attr_float(node, "alpha");
    bool ta = ort_node_attr_int(node, "transA") != 0, tb = ort_node_attr_int(node, "transB") != 0;
    if (ort_grad_wants(g, node, 0))
        ort_grad_add(g, node, 0,
                     ta ? gemm(g, b, gy, alpha, tb, true) : gemm(g, gy, b, alpha, false, !tb));
    if (ort_grad_wants(g, node, 1))
        ort_grad_add(g, node, 1,
                     tb ? gemm(g, gy, a, alpha, true, ta) : gemm(g, a, gy, alpha, !ta, false));
    if (ort_grad_wants(g, node, 2))
        ort_grad_add_summed(g, node, 2, ort_emit_formula(g, "g * $beta", "g", gy));
}

/* ---- reductions */

typedef struct reduction {
    const int64_t *list; /* the axes when they are an attribute */
    int count;
    ort_id axes;         /* when they are an input, else ORT_ID_NONE */
    bool all, none, keepdims;
} reduction;

static reduction read_reduction(ort_emit *g, const ort_node *node)
{
    size_t count = 0;
    reduction r = {.axes = ort_emit_in(node, 1), .keepdims = ort_node_attr_int(node, "keepdims")};
    const ort_tensor *fixed = ort_edit_constant(g->graph, node, 1);
    bool noop = ort_node_int(node, "noop_with_empty_axes", 0) != 0;
    r.list = ort_node_ints(node, "axes", &count);
    r.count = (int)count;
    bool empty = r.axes == ORT_ID_NONE ? !r.count : fixed && !ort_tensor_count(fixed);
    r.none = empty && noop;
    r.all = empty && !noop;
    return r;
}

/* A value of the reduced shape, so that it broadcasts against the input. */
static ort_id widen(ort_emit *g, const reduction *r, ort_id value)
{
    if (r->keepdims || r->all || r->none)
        return value; /* a scalar broadcasts as it is */
    if (r->axes != ORT_ID_NONE)
        return ort_emit_op2(g, "Unsqueeze", value, r->axes);
    return ort_emit_unsqueeze(g, value, r->list, r->count);
}

static ort_id sum_again(ort_emit *g, const reduction *r, ort_id value)
{
    if (r->none)
        return value;
    if (r->all || r->axes == ORT_ID_NONE)
        return ort_emit_reduce(g, "ReduceSum", value, r->list, r->all ? 0 : r->count, true);
    return ort_emit_reduce_by(g, "ReduceSum", value, r->axes, true);
}

/* What the slope is written with: of the widened gradient and result, and the input. */
static const char *reduction_slope(const char *op_type)
{
    static const struct {
        const char *name, *slope;
    } slopes[] = {
        {"ReduceL1", "g * (Sign a)"},
        {"ReduceL2", "a * (Where (Greater y 0) (g / y) 0)"},
        {"ReduceLogSum", "g / (Exp y)"},
        {"ReduceLogSumExp", "g * (Exp (a - y))"},
        {"ReduceSum", "g"},
        {"ReduceSumSquare", "2 * g * a"},
    };
    for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++)
        if (!strcmp(slopes[i].name, op_type))
            return slopes[i].slope;
    return NULL;
}

static void reduce_back(ort_emit *g, const ort_node *node)
{
    reduction r = read_reduction(g, node);
    ort_id x = node->inputs[0], gy = widen(g, &r, ort_grad_of(g, node, 0));
    ort_id y = node->outputs[0], slope;
    const char *formula = reduction_slope(node->op_type);
    if (formula) {
        slope = ort_emit_formula(g, formula, "g y a", gy,
                                 strcmp(formula, "g") ? widen(g, &r, y) : y, x);
    } else if (!strcmp(node->op_type, "ReduceMean")) {
        slope = ort_emit_formula(g, "g * m / n", "g m n", gy, ort_emit_count(g, y, gy),
                                 ort_emit_count(g, x, gy));
    } else { /* ReduceMax, ReduceMin: equal ones share */
        ort_id wins = ort_emit_op2(g, "Equal", x, widen(g, &r, y));
        ort_id mask = ort_emit_cast(g, wins, ort_emit_type(g, x)->dtype);
        slope = ort_emit_formula(g, "g * m / n", "g m n", gy, mask, sum_again(g, &r, mask));
    }
    ort_grad_add(g, node, 0, ort_emit_expand(g, slope, x));
}

/* ---- softmax */

/* From opset 13 on one axis; before that all from `axis` on are one. */
static void softmax_back(ort_emit *g, const ort_node *node)
{
    bool one = node->opset >= 13;
    int rank = ort_emit_rank(g, node->inputs[0]), count = 0;
    int64_t axis = ort_emit_axis(g, node, rank), axes[ORT_MAX_RANK];
    ort_id gy = ort_grad_of(g, node, 0), y = node->outputs[0];
    axes[count++] = axis;
    while (!one && axis + count < rank) {
        axes[count] = axis + count;
        count++;
    }
    if (!strcmp(node->op_type, "LogSoftmax")) {
        ort_id sum = ort_emit_reduce(g, "ReduceSum", gy, axes, count, true);
        ort_grad_add(g, node, 0, ort_emit_formula(g, "g - s * (Exp y)", "g s y", gy, sum, y));
    } else {
        ort_id product = ort_emit_op2(g, "Mul", gy, y);
        ort_id sum = ort_emit_reduce(g, "ReduceSum", product, axes, count, true);
        ort_grad_add(g, node, 0, ort_emit_formula(g, "(g - s) * y", "g s y", gy, sum, y));
    }
}

/* ---- sums along an axis */

static void cumsum_back(ort_emit *g, const ort_node *node)
{
    ort_attr attrs[] = {ort_emit_int_attr("exclusive", ort_node_attr_int(node, "exclusive")),
                        ort_emit_int_attr("reverse", !ort_node_attr_int(node, "reverse"))};
    ort_id in[] = {ort_grad_of(g, node, 0), node->inputs[1]};
    ort_grad_add(g, node, 0, ort_emit_op(g, "CumSum", in, 2, attrs, 2));
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
