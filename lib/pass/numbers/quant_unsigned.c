/* quant_unsigned.c - activations of int8 become uint8 in a file for others, and in a net that has
 * activations of both.
 *
 *     QuantizeLinear(x, s, z: int8), DequantizeLinear(., s', z': int8)
 *     QuantizeLinear(x, s, z + 128: uint8), DequantizeLinear(., s', z' + 128: uint8)
 *
 * Each code becomes the one 128 above it, rounding and saturation are the same: exact. x86 has the
 * instructions for uint8 by int8, so that onnxruntime does this by itself when it finds float
 * operators between the pair; operators on int8 codes it runs as they are, several times slower.
 * With uint8 the file may hold integer operators (quant_units.c) and loses nothing. Codes that
 * somebody else reads, as a result of the graph, stay what they are. NNCF writes uint8 where
 * numbers aren't negative, and int8 elsewhere; most operators on codes have one type.
 */
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"
#include "op/edit.h"
#include "pass/numbers/quant_pair.h"

enum { SHIFT = 128 };

/* Only DequantizeLinear, and all of their parameters known? */
static bool is_private(const ort_graph *graph, ort_id codes)
{
    const ort_graph_value *value = graph->values.data[codes];
    ort_readers readers = ort_readers_of(graph, codes);
    ort_node *node;
    ort_quant d;
    while ((node = ort_readers_next(&readers)))
        if (!ort_quant_read(graph, node, "DequantizeLinear", &d) || node->inputs[0] != codes ||
            node->inputs[1] == codes || !ort_quant_is_plain(&d))
            return false;
    return !value->is_output && value->use_count > 0;
}

/* Zero points made in this graph, by number: most nets have one for all of their activations. */
typedef struct zeros {
    ort_id plain[256]; /* those of rank 0; ORT_ID_NONE: none so far */
} zeros;

/* The zero point of q, shifted, with the shape of its scale. */
static ort_status shifted_zero(ort_pass_context *c, const ort_quant *q, zeros *made, ort_id *id,
                               ort_error *err)
{
    ort_tensor zero;
    int64_t number = ort_quant_zero(q) + SHIFT;
    bool shared = q->scale->shape.rank == 0 && number >= 0 && number < 256;
    if (shared && made->plain[number] != ORT_ID_NONE) {
        *id = made->plain[number];
        return ORT_OK;
    }
    ORT_TRY(ort_edit_new_constant(c->graph, "zero_point", ORT_DTYPE_UINT8, &q->scale->shape, &zero,
                                  id, err));
    ort_tensor_set_i64(&zero, 0, number);
    if (shared)
        made->plain[number] = *id;
    return ORT_OK;
}

/* The same node with another zero point and other codes. */
static ort_status replace(ort_pass_context *c, const ort_quant *q, zeros *made, ort_id input,
                          ort_id output, ort_error *err)
{
    ort_node *node = q->node;
    ort_id zero;
    ORT_TRY(shifted_zero(c, q, made, &zero, err));
    ort_id inputs[3] = {input, node->inputs[1], zero};
    ort_attr type = ort_attr_int("output_dtype", ORT_DTYPE_UINT8);
    bool typed = ort_edit_is(node, ONNX, "QuantizeLinear") && ort_node_attr_int(node, type.name);
    ort_node_spec spec = ort_edit_again(node);
    spec.inputs = inputs;
    spec.input_count = 3;
    spec.outputs = &output;
    spec.set = &type;
    spec.set_count = typed;
    ort_graph_remove_node(c->graph, node);
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status shift(ort_pass_context *c, const ort_quant *q, zeros *made, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_id old = q->node->outputs[0];
    ort_id codes = ort_graph_add_value(graph, graph->values.data[old]->name);
    ort_node *node;
    if (codes == ORT_ID_NONE)
        return ort_error_memory(err, sizeof codes);
    ORT_TRY(replace(c, q, made, q->node->inputs[0], codes, err));
    ort_readers readers = ort_readers_of(graph, old);
    while ((node = ort_readers_next(&readers))) {
        ort_quant d;
        if (ort_quant_read(graph, node, "DequantizeLinear", &d))
            ORT_TRY(replace(c, &d, made, codes, node->outputs[0], err));
    }
    return ORT_OK;
}

/* Activations of both types, and all of int8 may change? */
static bool is_mixed(const ort_graph *graph)
{
    bool has_unsigned = false;
    ort_node *node;
    ort_quant q;
    ORT_EACH_NODE(graph, node)
    {
        if (!ort_quant_read(graph, node, "QuantizeLinear", &q) || !ort_quant_is_plain(&q))
            continue;
        has_unsigned = has_unsigned || q.dtype == ORT_DTYPE_UINT8;
        if (q.dtype == ORT_DTYPE_INT8 && !is_private(graph, node->outputs[0]))
            return false;
    }
    return has_unsigned;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    size_t count = c->graph->order.count;
    zeros made;
    if (!c->portable && !is_mixed(c->graph))
        return ORT_OK;
    for (int i = 0; i < 256; i++)
        made.plain[i] = ORT_ID_NONE;
    for (size_t i = 0; i < count; i++) {
        ort_node *node = c->graph->nodes.data[c->graph->order.data[i]];
        ort_quant q;
        if (!ort_quant_read(c->graph, node, "QuantizeLinear", &q) || q.dtype != ORT_DTYPE_INT8 ||
            !ort_quant_is_plain(&q))
            continue;
        if (!is_private(c->graph, node->outputs[0])) {
            ort_pass_note(c, node, "its int8 codes have other readers than DequantizeLinear");
            continue;
        }
        ORT_TRY(shift(c, &q, &made, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_quant_unsigned = {
    .name = "quant_unsigned",
    .level = 2,
    .exact = true,
    .doc = "activations of int8 become uint8, for which x86 has the instructions",
    .apply = apply,
};
