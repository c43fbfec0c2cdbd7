/* quant_sink.c - DequantizeLinear goes behind operators that only move elements, QuantizeLinear
 * before a Split.
 *
 *     DequantizeLinear, move      the move on the codes, DequantizeLinear
 *     DequantizeLinear, Pad       the same, where it pads with 0: that is the zero point
 *     DequantizeLinear, Resize    linear ones too, before a QuantizeLinear of the same scale, which
 *                                 rounds as they do
 *     Split, QuantizeLinear of    QuantizeLinear, the Split on the codes
 *     one grid behind each part
 *
 * Moves are exact: a code stands for the same number wherever it lies. So codes of one scale reach
 * a QuantizeLinear of another through moves (quant_tables.c then makes a table of the two), and
 * rows of a quantized table are dequantized after they were gathered. Done where a QuantizeLinear
 * follows; level 3, since onnxruntime looks for float operators between the two. quant_reach.c does
 * it before products.
 */
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"

enum {
    DEPTH = 8,
    READERS = 256, /* that are asked: a node may read one value any number of times */
};

/* Do numbers of this value become codes again, elementwise operators and moves in between? left:
 * readers to ask. */
static bool is_coded_later(const ort_graph *graph, ort_id id, int depth, int *left)
{
    ort_readers readers = ort_readers_of(graph, id);
    ort_node *node;
    while ((node = ort_readers_next(&readers)) && --*left > 0) {
        if (ort_edit_is(node, ONNX, "QuantizeLinear"))
            return true;
        if (depth > 0 && node->output_count > 0 && node->outputs[0] != ORT_ID_NONE &&
            (ort_node_has_trait(node, ORT_TRAIT_ELEMENTWISE) || ort_quant_moved(node)) &&
            is_coded_later(graph, node->outputs[0], depth - 1, left))
            return true;
    }
    return false;
}

/* A Pad with zeros. */
static bool pads_zero(const ort_graph *graph, const ort_node *node)
{
    double number = 0;
    return ort_edit_is(node, ONNX, "Pad") && node->opset >= 13 && node->input_count > 1 &&
           ort_node_attr_is(node, "mode", "constant") &&
           (ort_edit_input(node, 2) == ORT_ID_NONE || ort_fact_number(graph, node, 2, &number)) &&
           number == 0;
}

/* A Resize between neighbours: on codes it rounds to the nearest one, halves to even. */
static bool is_mean(const ort_node *node)
{
    return ort_edit_is(node, ONNX, "Resize") && node->opset >= 11 &&
           ort_node_attr_is(node, "mode", "linear") &&
           !ort_node_attr_is(node, "coordinate_transformation_mode", "tf_crop_and_resize");
}

bool ort_quant_reads_codes(const ort_graph *graph, const ort_node *move, int inputs,
                           ort_quant *first)
{
    ort_quant other;
    for (int i = 0; i < inputs; i++)
        if (!ort_quant_read(graph, ort_edit_producer(graph, move->inputs[i]), "DequantizeLinear",
                            i ? &other : first) ||
            (i && !ort_quant_same(first, &other)))
            return false;
    for (int k = 0; k < move->output_count; k++)
        if (move->outputs[k] == ORT_ID_NONE ||
            ort_fact_type(graph, move->outputs[k])->dtype != ORT_DTYPE_FLOAT)
            return false;
    return ort_quant_is_byte(first->dtype) && ort_quant_is_plain(first) &&
           ort_quant_same(first, first);
}

static bool is_wanted(const ort_graph *graph, const ort_node *move, const ort_quant *d)
{
    ort_quant q;
    if (is_mean(move)) { /* not through others: its rounding is that of the QuantizeLinear */
        ort_node *reader = ort_edit_only_reader(graph, move->outputs[0]);
        return ort_quant_read(graph, reader, "QuantizeLinear", &q) && ort_quant_same(&q, d);
    }
    if (ort_edit_is(move, ONNX, "Gather") && ort_edit_constant(graph, d->node, 0))
        return true;
    int left = READERS;
    for (int k = 0; k < move->output_count; k++)
        if (is_coded_later(graph, move->outputs[k], DEPTH, &left))
            return true;
    return false;
}

/* Codes, moved, and their DequantizeLinear. */
static ort_status sink(ort_graph *graph, ort_node *move, int inputs, const ort_quant *d,
                       ort_error *err)
{
    ort_arena *arena = &graph->model->arena;
    int in_count = ort_edit_is(move, ONNX, "Pad") && move->input_count < 3 ? 3 : move->input_count;
    ort_id *in = ort_arena_array(arena, (size_t)in_count, sizeof *in);
    ort_id *out = ort_arena_array(arena, (size_t)move->output_count, sizeof *out);
    if (!in || !out)
        return ort_error_memory(err, sizeof *in);
    for (int i = 0; i < in_count; i++)
        in[i] = i < inputs ? ort_edit_producer(graph, move->inputs[i])->inputs[0]
                           : ort_edit_input(move, i);
    if (ort_edit_is(move, ONNX, "Pad")) {
        ort_shape scalar = {0, {0}};
        ort_tensor zero;
        ORT_TRY(ort_edit_new_constant(graph, "zero_point", d->dtype, &scalar, &zero, &in[2], err));
        ort_tensor_set_i64(&zero, 0, ort_quant_zero(d));
    }
    for (int k = 0; k < move->output_count; k++) {
        out[k] = ort_graph_add_value(graph, graph->values.data[move->outputs[k]]->name);
        if (out[k] == ORT_ID_NONE)
            return ort_error_memory(err, sizeof *out);
    }
    ort_node_spec spec = ort_edit_again(move);
    spec.inputs = in;
    spec.input_count = in_count;
    spec.outputs = out;
    ort_graph_remove_node(graph, move);
    ORT_TRY(ort_edit_add_node(graph, &spec, NULL, err));
    for (int k = 0; k < move->output_count; k++) {
        ort_id codes[3] = {out[k], d->node->inputs[1], ort_edit_input(d->node, 2)};
        spec = ort_edit_again(d->node);
        spec.inputs = codes;
        spec.outputs = &move->outputs[k];
        ORT_TRY(ort_edit_add_node(graph, &spec, NULL, err));
    }
    return ORT_OK;
}

ort_status ort_quant_sink(ort_pass_context *c, ort_node *move, int inputs, const ort_quant *d,
                          ort_error *err)
{
    ORT_TRY(sink(c->graph, move, inputs, d, err));
    for (int i = 0; i < inputs; i++)
        ort_quant_drop_unread(c->graph, move->inputs[i]);
    return ORT_OK;
}

/* ---- before a Split */

/* Do parts become codes of one grid, *first, and nothing else? */
static bool parts_are_coded(const ort_graph *graph, const ort_node *split, ort_quant *first)
{
    ort_quant other;
    for (int k = 0; k < split->output_count; k++) {
        ort_node *reader = split->outputs[k] == ORT_ID_NONE
                               ? NULL : ort_edit_only_reader(graph, split->outputs[k]);
        if (!reader || reader->inputs[0] != split->outputs[k] ||
            !ort_quant_read(graph, reader, "QuantizeLinear", k ? &other : first) ||
            (k && !ort_quant_same(first, &other)))
            return false;
    }
    return split->output_count > 0 && ort_quant_is_plain(first) && ort_quant_same(first, first) &&
           ort_quant_is_byte(first->dtype);
}

static ort_status quantize_before(ort_graph *graph, ort_node *split, const ort_quant *q,
                                  ort_error *err)
{
    ort_arena *arena = &graph->model->arena;
    const int parts = split->output_count;
    ort_id *in = ort_arena_array(arena, (size_t)split->input_count, sizeof *in);
    ort_id *out = ort_arena_array(arena, (size_t)parts, sizeof *out);
    ort_id codes = ort_graph_add_value(graph, graph->values.data[split->inputs[0]]->name);
    if (!in || !out || codes == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *in);
    ort_id numbers[3] = {split->inputs[0], q->node->inputs[1], ort_edit_input(q->node, 2)};
    ort_node_spec first = ort_edit_again(q->node), second = ort_edit_again(split);
    first.inputs = numbers;
    first.outputs = &codes;
    memcpy(in, split->inputs, (size_t)split->input_count * sizeof *in);
    in[0] = codes;
    second.inputs = in;
    second.outputs = out;
    for (int k = 0; k < parts; k++) {
        ort_node *coder = ort_edit_only_reader(graph, split->outputs[k]);
        out[k] = coder->outputs[0];
        ort_graph_remove_node(graph, coder);
    }
    ort_graph_remove_node(graph, split);
    ORT_TRY(ort_edit_add_node(graph, &first, NULL, err));
    return ort_edit_add_node(graph, &second, NULL, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_quant d;
        if (ort_edit_is(node, ONNX, "Split") && parts_are_coded(c->graph, node, &d)) {
            ORT_TRY(quantize_before(c->graph, node, &d, err));
            ++*changes;
            continue;
        }
        bool one = pads_zero(c->graph, node) || is_mean(node);
        int inputs = one ? 1 : ort_quant_moved(node);
        if (!inputs || !ort_quant_reads_codes(c->graph, node, inputs, &d) ||
            !is_wanted(c->graph, node, &d))
            continue;
        ORT_TRY(ort_quant_sink(c, node, inputs, &d, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_quant_sink = {
    .name = "quant_sink",
    .level = 3,
    .doc = "DequantizeLinear goes behind what only moves elements, QuantizeLinear before a Split",
    .apply = apply,
};
