/* matmul_form.c - transposes and scales around a product go into it.
 *
 *     MatMul(s A^T, B), s MatMul(A, B), ...     FusedMatMul of com.microsoft: transA, transB, alpha
 *     MatMul(Transpose(A, 1,2,0,3), B)          the same with transBatchA
 *     the same of two matrices                  Gemm without C (opset 11)
 *
 * A transpose is one of the last two dimensions, or puts the first dimension before the last, or
 * both; a scale one constant number. What others read stays, so it isn't taken. After the attention
 * pass, whose products these would be. No table of rows: what is peeled off is composed, scales in
 * double, where a row each would round alpha each time.
 */
#include <math.h>

#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/facts/perm.h"
#include "pass/pass.h"
#include "tensor/scalar.h"

enum { LAST = 1, BATCH = 2 }; /* what the operator does to an operand: trans, transBatch */

typedef struct product {
    ort_node *node, *last; /* last: the scale after it, or the node */
    ort_id inputs[2];
    int turned[2]; /* LAST, BATCH */
    double alpha;
    ort_node *gone[12];
    int gone_count;
} product;

/* out.dim[i] = in.dim[perm.to[i]] */
static ort_perm perm_of(int turned, int rank)
{
    ort_perm p = {.rank = rank};
    for (int i = 0; i < rank; i++)
        p.to[i] = turned & BATCH && i < rank - 1 ? (i + 1) % (rank - 1) : i;
    if (turned & LAST) {
        int last = p.to[rank - 1];
        p.to[rank - 1] = p.to[rank - 2];
        p.to[rank - 2] = last;
    }
    return p;
}

/* Numbers of constant codes, as they are once constants were folded: quant_forms.c turns these. */
static bool is_coded(const ort_graph *graph, ort_id id)
{
    const ort_node *d = ort_edit_producer(graph, id);
    return ort_edit_is(d, ONNX, "DequantizeLinear") && !ort_node_attr_int(d, "block_size") &&
           ort_fact_value(graph, d->inputs[0]);
}

/* What the operator must do to the Transpose's input, when it does `turned` to its result; -1: it
 * can't. Batches have to be there, and the same in both operands. */
static int turned_by(const ort_pass_context *c, const product *p, int at, const ort_node *node)
{
    ort_perm have;
    int rank = ort_fact_type(c->graph, p->inputs[at])->rank;
    if (!ort_edit_is(node, ONNX, "Transpose") || is_coded(c->graph, node->inputs[0]) ||
        !ort_perm_of_node(c->graph, node, &have))
        return -1;
    ort_perm now = perm_of(p->turned[at], rank);
    now = ort_perm_then(&have, &now);
    bool batches = rank > 2 && ort_fact_type(c->graph, p->inputs[1 - at])->rank == rank;
    int most = batches ? LAST | BATCH : LAST;
    for (int turned = 0; turned <= most; turned++) {
        ort_perm wanted = perm_of(turned, rank);
        if (ort_perm_equal(&now, &wanted))
            return turned;
    }
    return -1;
}

/* x * number, x / number: the slot of x, whose shape the result has; -1: it is neither. */
static int scale_of(const ort_graph *graph, const ort_node *node, double *factor)
{
    bool mul = ort_edit_is(node, ONNX, "Mul");
    if (!mul && !ort_edit_is(node, ONNX, "Div"))
        return -1;
    for (int slot = 0; slot < (mul ? 2 : 1); slot++) {
        const ort_tensor *t = ort_edit_constant(graph, node, 1 - slot);
        double number;
        const ort_type *x = ort_fact_type(graph, node->inputs[slot]);
        if (!ort_tensor_one_f64(t, &number) || ort_type_rank(x) < 2 || t->shape.rank > x->rank)
            continue;
        *factor = mul ? number : 1 / number;
        return isfinite(*factor) ? slot : -1;
    }
    return -1;
}

static bool take(product *p, ort_node *node)
{
    if (p->gone_count == (int)(sizeof p->gone / sizeof *p->gone))
        return false;
    p->gone[p->gone_count++] = node;
    return true;
}

/* Transposes and scales of one operand, read by the product alone. */
static void peel_operand(const ort_pass_context *c, product *p, int at)
{
    const ort_graph *graph = c->graph;
    const ort_node *reader = p->node;
    for (;;) {
        double factor;
        ort_node *node = ort_edit_producer(graph, p->inputs[at]);
        int slot = node ? scale_of(graph, node, &factor) : -1;
        int turned = node ? turned_by(c, p, at, node) : -1;
        if (slot < 0 && turned < 0)
            return;
        if (ort_edit_only_reader(graph, p->inputs[at]) != reader) {
            ort_pass_note(c, p->node, "the %s of an operand has another reader", node->op_type);
            return;
        }
        if (!take(p, node))
            return;
        if (turned >= 0)
            p->turned[at] = turned;
        else
            p->alpha *= factor;
        p->inputs[at] = node->inputs[turned >= 0 ? 0 : slot];
        reader = node;
    }
}

static void peel_result(const ort_graph *graph, product *p)
{
    double factor;
    ort_node *node;
    while ((node = ort_edit_only_reader(graph, p->last->outputs[0]))) {
        int slot = scale_of(graph, node, &factor);
        if (slot < 0 || node->inputs[slot] != p->last->outputs[0] || !take(p, node))
            return;
        p->alpha *= factor;
        p->last = node;
    }
}

static bool read_product(const ort_pass_context *c, ort_node *node, product *p)
{
    const ort_graph *graph = c->graph;
    bool gemm = ort_edit_is(node, ONNX, "Gemm") && ort_edit_input(node, 2) == ORT_ID_NONE;
    bool fused = gemm || ort_edit_is(node, MS, "FusedMatMul");
    if (!fused && !ort_edit_is(node, ONNX, "MatMul"))
        return false; /* it may have no inputs */
    *p = (product){.node = node, .last = node, .inputs = {node->inputs[0], node->inputs[1]},
                   .alpha = fused ? (double)ort_node_attr_float(node, "alpha") : 1};
    const ort_type *a = ort_fact_type(graph, p->inputs[0]);
    if (ort_type_rank(a) < 2 || ort_type_rank(ort_fact_type(graph, p->inputs[1])) < 2)
        return false;
    if (a->dtype != ORT_DTYPE_FLOAT && a->dtype != ORT_DTYPE_DOUBLE)
        return false;
    static const char *const last[2] = {"transA", "transB"};
    static const char *const batch[2] = {"transBatchA", "transBatchB"};
    for (int at = 0; at < 2 && fused; at++)
        p->turned[at] = (ort_node_attr_int(node, last[at]) ? LAST : 0) |
                        (ort_node_attr_int(node, batch[at]) ? BATCH : 0);
    for (int at = 0; at < 2 && node->inputs[0] != node->inputs[1]; at++)
        peel_operand(c, p, at);
    peel_result(graph, p);
    return p->gone_count > 0;
}

static ort_status write(ort_pass_context *c, const product *p, bool gemm, int opset,
                        ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_attr set[5] = {ort_attr_float("alpha", p->alpha),
                       ort_attr_int("transA", (p->turned[0] & LAST) != 0),
                       ort_attr_int("transB", (p->turned[1] & LAST) != 0),
                       ort_attr_int("transBatchA", (p->turned[0] & BATCH) != 0),
                       ort_attr_int("transBatchB", (p->turned[1] & BATCH) != 0)};
    ort_node_spec spec = {.domain = gemm ? ONNX : MS, .op_type = gemm ? "Gemm" : "FusedMatMul",
                          .inputs = p->inputs, .input_count = 2, .outputs = p->last->outputs,
                          .output_count = 1, .set = set,
                          .set_count = (p->turned[0] | p->turned[1]) & BATCH ? 5 : 3,
                          .opset = opset,
                          .origin = ort_edit_origin(graph, p->gone[0], p->node)};
    for (int i = 0; i < p->gone_count; i++)
        ort_graph_remove_node(graph, p->gone[i]);
    return ort_edit_replace(graph, p->node, NULL, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    product p;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (node->input_count < 2 || !read_product(c, node, &p))
            continue;
        bool gemm = ort_model_opset(c->graph->model, ONNX) >= 11 &&
                    ort_fact_ranked(c->graph, p.inputs[0], 2) &&
                    ort_fact_ranked(c->graph, p.inputs[1], 2);
        int opset = gemm ? (int)ort_model_opset(c->graph->model, ONNX)
                         : ort_pass_opset(c, node, MS, "FusedMatMul", 1);
        if (!opset)
            continue;
        ++*changes;
        ORT_TRY(write(c, &p, gemm, opset, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_matmul_form = {
    .name = "matmul_form",
    .level = 2,
    .doc = "transposes and scales of a MatMul go into FusedMatMul or Gemm",
    .apply = apply,
};
