/* quant_pairs.c - a DequantizeLinear whose result is quantized again to the same codes is removed,
 * together with the QuantizeLinear.
 *
 *     DequantizeLinear, QuantizeLinear       nothing
 *     QuantizeLinear, DequantizeLinear, QuantizeLinear, DequantizeLinear
 *                                            the first pair: what is between them is the above
 *
 * Type, scales, zero points and axis must be the same (quant_pair.h says why this is exact); other
 * pairs change values. The DequantizeLinear stays when other nodes read it.
 */
#include "graph/uses.h"
#include "op/edit.h"
#include "pass/numbers/quant_pair.h"

static bool is_small_integer(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT8 || dtype == ORT_DTYPE_UINT8 || dtype == ORT_DTYPE_INT16 ||
           dtype == ORT_DTYPE_UINT16 || dtype == ORT_DTYPE_INT4 || dtype == ORT_DTYPE_UINT4;
}

static bool undo(ort_pass_context *c, ort_node *node)
{
    ort_quant q, d;
    if (!ort_quant_read(c->graph, node, "QuantizeLinear", &q) || !is_small_integer(q.dtype) ||
        !ort_quant_read(c->graph, ort_edit_producer(c->graph, node->inputs[0]),
                        "DequantizeLinear", &d))
        return false;
    if (!ort_quant_same(&q, &d)) {
        ort_pass_note(c, node, "the codes before it have other parameters");
        return false;
    }
    if (c->graph->values.data[node->outputs[0]]->is_output) {
        ort_pass_note(c, node, "its codes are a result of the graph");
        return false;
    }
    ort_graph_replace_uses(c->graph, node->outputs[0], d.node->inputs[0]);
    ort_graph_remove_node(c->graph, node);
    return true;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
        *changes += undo(c, node);
    return ORT_OK;
}

const ort_pass ort_pass_quant_pairs = {
    .name = "quant_pairs",
    .level = 1,
    .doc = "codes that become numbers and the same codes again stay what they are",
    .apply = apply,
};
