/* quant_biased.c - a product of bytes with a bias whose result becomes codes gives these itself.
 *
 *     MatMulIntegerToFloat with a bias, moves, QuantizeLinear    CodeMatMul, moves
 *
 * A matrix that a row is added to is a Gemm, and that a QGemm (quant_units.c). A linear layer of a
 * batch of matrices has no operator of onnxruntime's: its floats would be written and read again.
 * The bias becomes codes of the product's scale as a Gemm's does, so that results may differ by one
 * code. Level 3: the operator is never saved.
 */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_bias.h"

enum { A, B, A_SCALE, B_SCALE, A_ZERO, B_ZERO, BIAS }; /* inputs of MatMulIntegerToFloat */

/* Its factors, as far as a bias asks; false: they aren't constants of whole columns. */
static bool read_factors(const ort_graph *graph, const ort_node *node, ort_quant *a, ort_quant *w,
                         int64_t *columns)
{
    const ort_tensor *b = ort_edit_constant(graph, node, B);
    *a = (ort_quant){.scale = ort_edit_constant(graph, node, A_SCALE)};
    *w = (ort_quant){.scale = ort_edit_constant(graph, node, B_SCALE)};
    if (!b || b->shape.rank != 2 || !a->scale || !w->scale || !ort_quant_is_plain(a) ||
        a->scale->dtype != ORT_DTYPE_FLOAT)
        return false;
    *columns = b->shape.dim[1];
    return ort_quant_is_plain(w) || ort_tensor_is_row(w->scale, *columns);
}

static ort_status fuse(ort_pass_context *c, ort_node *node, const ort_quant *q, ort_id bias,
                       ort_error *err)
{
    ort_id inputs[] = {node->inputs[A],       node->inputs[A_SCALE], node->inputs[A_ZERO],
                       node->inputs[B],       node->inputs[B_SCALE], node->inputs[B_ZERO],
                       bias,                  q->node->inputs[1],    ORT_ID_NONE};
    ORT_TRY(ort_quant_zero_input(c->graph, q, &inputs[8], err));
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "CodeMatMul", .inputs = inputs,
                          .input_count = 9};
    return ort_edit_replace(c->graph, node, q->node, &spec, err);
}

static ort_status try_at(ort_pass_context *c, ort_node *last, int *changes, ort_error *err)
{
    ort_quant q, a, w;
    ort_quant_product product = {.x = &a, .w = &w, .out = &q, .slot = BIAS};
    ort_node *node = ort_quant_source(c->graph, last);
    if (!ort_edit_is(node, MS, "MatMulIntegerToFloat") ||
        ort_edit_input(node, BIAS) == ORT_ID_NONE ||
        !ort_quant_read(c->graph, last, "QuantizeLinear", &q) || !ort_quant_is_byte(q.dtype) ||
        !ort_quant_is_plain(&q) || !read_factors(c->graph, node, &a, &w, &product.channels))
        return ORT_OK;
    if (node->outputs[0] != last->inputs[0]) {
        ++*changes;
        return ort_quant_swap(c, last, err);
    }
    ort_id bias = ORT_ID_NONE;
    const char *why;
    ORT_TRY(ort_quant_bias(c->graph, node, &product, &bias, &why, err));
    if (why) {
        ort_pass_note(c, node, "not integer: %s", why);
        return ORT_OK;
    }
    ++*changes;
    return fuse(c, node, &q, bias, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
        if (ort_edit_is(node, ONNX, "QuantizeLinear"))
            ORT_TRY(try_at(c, node, changes, err));
    return ORT_OK;
}

const ort_pass ort_pass_quant_biased = {
    .name = "quant_biased",
    .level = 3,
    .doc = "products of bytes with a bias, and what makes codes of them, become one node",
    .apply = apply,
};
