/* quant_forms.c - forms of QuantizeLinear and DequantizeLinear that mean what a commoner one does.
 *
 *     QuantizeLinear, DequantizeLinear of com.microsoft      those of ai.onnx
 *     DequantizeLinear of weights, Transpose                 of the weights transposed
 *     DequantizeLinear of 4- or 2-bit weights                of bytes: the same numbers
 *
 * The last where a product reads them together with codes of 8 or 16 bits, in a session: its
 * operators multiply bytes. Other weights stay as small as they are. Before constant_fold, which
 * keeps the weights of ai.onnx's DequantizeLinear as codes, and transposes them.
 */
#include "base/error.h"
#include "graph/uses.h"
#include "op/edit.h"
#include "pass/facts/perm.h"
#include "pass/numbers/quant_pair.h"
#include "tensor/scalar.h"

static bool is_early(ort_dtype dtype)
{
    return ort_quant_is_byte(dtype) || dtype == ORT_DTYPE_INT32;
}

/* ---- com.microsoft */

/* The version of ai.onnx that has all that this one has. */
static int since(const ort_graph *graph, const ort_node *node, bool quantizes)
{
    ort_dtype coded = ort_fact_type(graph, quantizes ? node->outputs[0] : node->inputs[0])->dtype;
    ort_dtype number = ort_fact_type(graph, quantizes ? node->inputs[0] : node->outputs[0])->dtype;
    bool plain = !ort_node_has(node, "block_size") && !ort_node_has(node, "output_dtype") &&
                 !ort_node_has(node, "saturate");
    return plain && is_early(coded) && number == ORT_DTYPE_FLOAT ? 13 : 21;
}

static ort_status rename_node(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    bool quantizes = ort_edit_is(node, MS, "QuantizeLinear");
    if (!quantizes && !ort_edit_is(node, MS, "DequantizeLinear"))
        return ORT_OK;
    int opset = ort_pass_opset(c, node, ONNX, node->op_type, since(c->graph, node, quantizes));
    if (!opset)
        return ORT_OK;
    ort_node_spec spec = ort_edit_again(node);
    spec.domain = ONNX;
    spec.opset = opset;
    ++*changes;
    ort_graph_remove_node(c->graph, node);
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

/* ---- transposed weights */

/* PyTorch stores a linear layer's weights by results. */
static ort_status transpose_codes(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_quant q;
    ort_perm perm;
    if (!ort_edit_is(node, ONNX, "Transpose") ||
        !ort_quant_read(c->graph, ort_edit_producer(c->graph, node->inputs[0]), "DequantizeLinear",
                        &q) ||
        !ort_edit_constant(c->graph, q.node, 0) || !ort_perm_of_node(c->graph, node, &perm))
        return ORT_OK;
    bool plain = ort_quant_is_plain(&q);
    int axis = ort_axis_in(q.axis, perm.rank);
    if (axis < 0 && !plain)
        return ORT_OK;
    ort_id inputs[3] = {ORT_ID_NONE, q.node->inputs[1], ort_edit_input(q.node, 2)};
    ort_id numbers = node->inputs[0];
    ort_perm back = ort_perm_inverse(&perm);
    ORT_TRY(ort_constant_permuted(c->graph, q.node->inputs[0], &back, &inputs[0], err));
    ort_attr set = ort_attr_int("axis", plain ? 0 : back.to[axis]);
    ort_node_spec spec = ort_edit_again(q.node);
    spec.inputs = inputs;
    spec.outputs = node->outputs;
    spec.set = &set;
    spec.set_count = !plain;
    ++*changes;
    ort_graph_remove_node(c->graph, node);
    ORT_TRY(ort_edit_add_node(c->graph, &spec, NULL, err));
    ort_quant_drop_unread(c->graph, numbers);
    return ORT_OK;
}

/* ---- weights of few bits */

/* Does a product read these numbers together with codes of bytes, or a recurrence as weights? */
static bool multiplies(const ort_graph *graph, ort_id numbers)
{
    ort_readers readers = ort_readers_of(graph, numbers);
    ort_node *node;
    ort_quant q;
    while ((node = ort_readers_next(&readers)))
        if (ort_edit_is_any(node, "LSTM|GRU|RNN")
                ? node->inputs[1] == numbers || node->inputs[2] == numbers
                : ort_edit_is_any(node, "Conv|ConvTranspose|MatMul|Gemm") &&
                      node->inputs[1] == numbers &&
                      ort_quant_read(graph, ort_edit_producer(graph, node->inputs[0]),
                                     "DequantizeLinear", &q) &&
                      (ort_quant_is_byte(q.dtype) || ort_quant_is_wide(q.dtype)))
            return true;
    return false;
}

/* The same codes in int8, which all of them fit. */
static ort_status widen(ort_pass_context *c, const ort_tensor *codes, ort_id *id, ort_error *err)
{
    ort_tensor bytes;
    ORT_TRY(ort_edit_new_constant(c->graph, "", ORT_DTYPE_INT8, &codes->shape, &bytes, id, err));
    for (int64_t i = 0; i < ort_tensor_count(codes); i++)
        ort_tensor_set_i64(&bytes, i, ort_tensor_get_i64(codes, i));
    return ORT_OK;
}

static ort_status widen_weights(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_quant q;
    if (!ort_quant_read(c->graph, node, "DequantizeLinear", &q) ||
        ort_dtype_get(q.dtype)->bits > 4 || !multiplies(c->graph, node->outputs[0]))
        return ORT_OK;
    const ort_tensor *codes = ort_edit_constant(c->graph, node, 0);
    if (!codes || !codes->data)
        return ORT_OK;
    ort_id inputs[3] = {ORT_ID_NONE, node->inputs[1], ORT_ID_NONE};
    ORT_TRY(widen(c, codes, &inputs[0], err));
    if (q.zero)
        ORT_TRY(widen(c, q.zero, &inputs[2], err));
    ort_node_spec spec = ort_edit_again(node);
    spec.inputs = inputs;
    spec.input_count = q.zero ? 3 : 2;
    ++*changes;
    ort_graph_remove_node(c->graph, node);
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ORT_TRY(rename_node(c, node, changes, err));
        if (!node->removed)
            ORT_TRY(transpose_codes(c, node, changes, err));
        if (!c->portable && !node->removed)
            ORT_TRY(widen_weights(c, node, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_quant_forms = {
    .name = "quant_forms",
    .level = 1,
    .exact = true,
    .doc = "com.microsoft's QuantizeLinear and DequantizeLinear become those of ai.onnx",
    .apply = apply,
};
