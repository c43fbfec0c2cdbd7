/* quant_wide.c - products of 16-bit codes with 8-bit weights work on the codes.
 *
 *     DequantizeLinear of int16 or uint16 and of 8-bit weights, MatMul or Gemm, QuantizeLinear if
 *     there is one                                                                   WideMatMul
 *
 * Sums are exact (op/quant/integer_wide.h), and weights keep a byte each. Level 3: the operator is
 * never saved.
 */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"

enum { DEPTH_MOST = 33025 }; /* products whose sum is exact (op/quant/integer_wide.h) */

/* The weights' axis of one scale for each column, and that of the sum. */
static void weight_axes(const ort_node *node, int *columns, int *depth)
{
    const bool turned = ort_edit_is(node, ONNX, "Gemm") && ort_node_attr_int(node, "transB");
    *columns = turned ? 0 : 1;
    *depth = turned ? 1 : 0;
}

/* NULL, or why the product stays in float. */
static const char *check(const ort_graph *graph, const ort_node *node, const ort_quant *a,
                         const ort_quant *w)
{
    const ort_tensor *codes = ort_edit_constant(graph, w->node, 0);
    int columns, depth;
    weight_axes(node, &columns, &depth);
    if (!ort_quant_is_plain(a))
        return "16-bit codes have several scales";
    if (!codes || codes->shape.rank != 2)
        return "weights beside 16-bit codes aren't a constant matrix";
    if (codes->shape.dim[depth] > DEPTH_MOST)
        return "sums of 16-bit codes would be too long to be exact";
    if (!ort_quant_is_plain(w) && ort_axis_in(w->axis, 2) != columns)
        return "the scales of the weights aren't one per channel";
    if (!ort_edit_is(node, ONNX, "Gemm"))
        return NULL;
    if (ort_node_attr_float(node, "alpha") != 1 || ort_node_attr_float(node, "beta") != 1)
        return "alpha or beta isn't 1";
    const ort_type *bias = ort_edit_input(node, 2) == ORT_ID_NONE
                               ? NULL : ort_fact_tensor(graph, node->inputs[2]);
    if (ort_edit_input(node, 2) != ORT_ID_NONE &&
        (!bias || bias->rank != 1 || !ort_dim_is(bias->dim[0], codes->shape.dim[columns])))
        return "the bias isn't one row";
    return NULL;
}

/* The codes that alone are made of the result; NULL: floats are read. */
static ort_node *coder_of(const ort_graph *graph, const ort_node *node, ort_quant *q)
{
    ort_node *reader = ort_edit_only_reader(graph, node->outputs[0]);
    return ort_quant_read(graph, reader, "QuantizeLinear", q) && ort_quant_is_plain(q) &&
                   (ort_quant_is_byte(q->dtype) || ort_quant_is_wide(q->dtype))
               ? reader : NULL;
}

static ort_status fuse(ort_pass_context *c, ort_node *node, const ort_quant *a, const ort_quant *w,
                       ort_error *err)
{
    const bool gemm = ort_edit_is(node, ONNX, "Gemm");
    const ort_id numbers[2] = {node->inputs[0], node->inputs[1]};
    ort_quant out;
    ort_node *coder = coder_of(c->graph, node, &out);
    ort_id inputs[9] = {a->node->inputs[0], w->node->inputs[0], a->node->inputs[1],
                        w->node->inputs[1], ort_edit_input(a->node, 2),
                        ort_edit_input(w->node, 2), gemm ? ort_edit_input(node, 2) : ORT_ID_NONE,
                        ORT_ID_NONE, ORT_ID_NONE};
    ort_attr set[2] = {ort_attr_int("transA", gemm ? ort_node_attr_int(node, "transA") : 0),
                       ort_attr_int("transB", gemm ? ort_node_attr_int(node, "transB") : 0)};
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "WideMatMul", .inputs = inputs,
                          .input_count = 9, .set = set, .set_count = 2};
    if (coder) {
        inputs[7] = out.node->inputs[1];
        ORT_TRY(ort_quant_zero_input(c->graph, &out, &inputs[8], err));
    }
    ORT_TRY(ort_edit_replace(c->graph, node, coder, &spec, err));
    ort_quant_drop_unread(c->graph, numbers[0]);
    ort_quant_drop_unread(c->graph, numbers[1]);
    return ORT_OK;
}

static ort_status try_at(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_quant a, w;
    if (!ort_edit_is_any(node, "MatMul|Gemm") || node->output_count != 1 ||
        !ort_quant_read(c->graph, ort_edit_producer(c->graph, node->inputs[0]), "DequantizeLinear",
                        &a) ||
        !ort_quant_is_wide(a.dtype) ||
        !ort_quant_read(c->graph, ort_edit_producer(c->graph, node->inputs[1]), "DequantizeLinear",
                        &w) ||
        !ort_quant_is_byte(w.dtype))
        return ORT_OK;
    const char *why = check(c->graph, node, &a, &w);
    if (why) {
        ort_pass_note(c, node, "%s", why);
        return ORT_OK;
    }
    ++*changes;
    return fuse(c, node, &a, &w, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
        ORT_TRY(try_at(c, node, changes, err));
    return ORT_OK;
}

const ort_pass ort_pass_quant_wide = {
    .name = "quant_wide",
    .level = 3,
    .doc = "products of 16-bit codes with 8-bit weights work on the codes",
    .apply = apply,
};
