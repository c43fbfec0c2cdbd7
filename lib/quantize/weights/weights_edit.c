/* weights_edit.c - nodes that read codes in place of those that read weights.
 *
 *     nbits  MatMulNBits(a, codes, scales, zeros, bias), GatherBlockQuantized(codes, indices, ...)
 *     qdq    codes -> DequantizeLinear (blocks along K) -> the node as it was
 *
 * MatMulNBits takes codes as [N][blocks][bytes], GatherBlockQuantized the same bytes as rows: where
 * both read them, a Reshape stands between.
 */
#include <string.h>

#include "base/error.h"
#include "graph/strip.h"
#include "op/spacer.h"
#include "quantize/weights/weights.h"

static ort_status rows_of(ort_weight *w, ort_id *id, ort_error *err)
{
    const int64_t dims[2] = {0, -1}, two = 2;
    ort_tensor shape;
    ort_id inputs[2] = {w->codes, ORT_ID_NONE};
    if (!w->has_product) { /* stored as rows */
        *id = w->codes;
        return ORT_OK;
    }
    if (w->rows == ORT_ID_NONE) {
        const ort_shape form = ort_shape_make(1, &two);
        ORT_TRY(ort_edit_new_constant(w->graph, "", ORT_DTYPE_INT64, &form, &shape, &inputs[1],
                                      err));
        memcpy(shape.data, dims, sizeof dims);
        ORT_TRY(ort_edit_add_result(w->graph, "Reshape", inputs, 2, NULL, 0, &w->rows, err));
    }
    *id = w->rows;
    return ORT_OK;
}

static ort_status gather_rows(const ort_weights *ws, ort_weight *w, ort_node *node, ort_error *err)
{
    ort_id inputs[4] = {ORT_ID_NONE, node->inputs[1], w->scales, w->zeros};
    const ort_attr set[4] = {
        ort_attr_int("bits", ws->options.bits), ort_attr_int("block_size", w->shape.block),
        ort_attr_int("gather_axis", 0), ort_attr_int("quantize_axis", 1)};
    ORT_TRY(rows_of(w, &inputs[0], err));
    ort_node_spec spec = {.domain = MS, .op_type = "GatherBlockQuantized", .inputs = inputs,
                          .input_count = 4, .set = set, .set_count = 4};
    return ort_edit_replace(w->graph, node, NULL, &spec, err);
}

static ort_status add_scaled(ort_graph *graph, ort_id of, float factor, ort_id *id, ort_error *err)
{
    const ort_tensor *from = ort_graph_weight(graph, of);
    ort_tensor made;
    if (!from)
        return ort_error_memory(err, 0);
    ORT_TRY(ort_edit_new_constant(graph, graph->values.data[of]->name, ORT_DTYPE_FLOAT,
                                  &from->shape, &made, id, err));
    for (int64_t i = 0; i < ort_tensor_count(from); i++)
        ((float *)made.data)[i] = ((const float *)from->data)[i] * factor;
    return ORT_OK;
}

static size_t count_readers(const ort_weights *ws, const ort_weight *w)
{
    size_t count = 0;
    for (size_t i = 0; i < ws->readers.count; i++)
        count += ws->readers.data[i].weight == (size_t)(w - ws->weights.data) &&
                 !ws->readers.data[i].why;
    return count;
}

/* alpha of a Gemm goes into the scales of a weight that it alone reads, else into what it
 * multiplies; beta into the bias. */
static ort_status take_factors(const ort_weights *ws, const ort_weight *w, const ort_node *node,
                               ort_id *inputs, ort_error *err)
{
    enum { LEFT = 0, SCALES = 2, BIAS = 5 };
    const float alpha = ort_node_float(node, "alpha", 1), beta = ort_node_float(node, "beta", 1);
    const ort_shape one = {0};
    ort_tensor factor;
    ort_id in[2] = {inputs[LEFT], ORT_ID_NONE};
    if (inputs[BIAS] != ORT_ID_NONE && beta != 1)
        ORT_TRY(add_scaled(w->graph, inputs[BIAS], beta, &inputs[BIAS], err));
    if (alpha == 1)
        return ORT_OK;
    if (alpha > 0 && count_readers(ws, w) == 1)
        return add_scaled(w->graph, inputs[SCALES], alpha, &inputs[SCALES], err);
    ORT_TRY(ort_edit_new_constant(w->graph, "alpha", ORT_DTYPE_FLOAT, &one, &factor, &in[1], err));
    *(float *)factor.data = alpha;
    return ort_edit_add_result(w->graph, "Mul", in, 2, NULL, 0, &inputs[LEFT], err);
}

static ort_status multiply(const ort_weights *ws, const ort_weight *w, ort_node *node,
                           ort_error *err)
{
    const bool gemm = ort_edit_is(node, ONNX, "Gemm");
    ort_id inputs[6] = {node->inputs[0], w->codes, w->scales, w->zeros, ORT_ID_NONE,
                        gemm ? ort_edit_input(node, 2) : ORT_ID_NONE};
    if (gemm)
        ORT_TRY(take_factors(ws, w, node, inputs, err));
    const ort_attr set[5] = {
        ort_attr_int("K", w->shape.k), ort_attr_int("N", w->shape.n),
        ort_attr_int("bits", ws->options.bits), ort_attr_int("block_size", w->shape.block),
        ort_attr_int("accuracy_level", ws->options.accuracy_level)};
    ort_node_spec spec = {.domain = MS, .op_type = "MatMulNBits", .inputs = inputs,
                          .input_count = 6, .set = set,
                          .set_count = ws->options.accuracy_level ? 5 : 4};
    return ort_edit_replace(w->graph, node, NULL, &spec, err);
}

/* Four codes are a byte; where a row isn't a whole number of them, onnxruntime 1.31 would take
 * DequantizeLinear and MatMul for an operator that reads other codes. */
static bool is_ragged(const ort_weight *w)
{
    const ort_type *codes = ort_fact_type(w->graph, w->codes);
    return ort_dtype_bits(codes->dtype) == 2 && codes->dim[codes->rank - 1].size % 4 != 0;
}

/* One DequantizeLinear a weight; a Transpose behind it stays, a Gemm that turns goes on turning. */
static ort_status dequantize(ort_weight *w, ort_error *err)
{
    char name[512];
    if (w->value != ORT_ID_NONE)
        return ORT_OK;
    snprintf(name, sizeof name, "%.480s_dequantized", w->graph->values.data[w->id]->name);
    const ort_id inputs[3] = {w->codes, w->scales, w->zeros};
    const ort_attr set[2] = {ort_attr_int("axis", w->turned),
                             ort_attr_int("block_size", w->shape.block)};
    ort_node *node;
    w->value = ort_graph_add_value(w->graph, name);
    if (w->value == ORT_ID_NONE)
        return ort_error_memory(err, sizeof name);
    ort_node_spec spec = {.domain = ONNX, .op_type = "DequantizeLinear",
                          .name = w->graph->values.data[w->value]->name, /* unique */
                          .inputs = inputs, .input_count = w->zeros == ORT_ID_NONE ? 2 : 3,
                          .outputs = &w->value, .output_count = 1, .set = set, .set_count = 2};
    ORT_TRY(ort_edit_add_node(w->graph, &spec, &node, err));
    return is_ragged(w) ? ort_spacer_of(w->graph, &w->value, err) : ORT_OK;
}

static ort_status read_dequantized(ort_weight *w, ort_weight_reader *r, ort_error *err)
{
    const int slot = !r->table;
    ort_node *node = r->node, *turn = ort_edit_producer(w->graph, node->inputs[slot]);
    ORT_TRY(dequantize(w, err));
    if (node->inputs[slot] == w->id) {
        ort_node_set_input(w->graph, node, slot, w->value);
        return ORT_OK;
    }
    if (turn && turn->inputs[0] == w->id)
        ort_node_set_input(w->graph, turn, 0, w->value);
    return ORT_OK;
}

/* What nobody reads any more, from the end: a Transpose goes before what it turned. */
static void sweep(ort_graph *graph)
{
    for (size_t i = graph->order.count; i-- > 0;) {
        ort_node *node = graph->nodes.data[graph->order.data[i]];
        for (int b = 0; b < node->body_count && !node->removed; b++)
            sweep(node->bodies[b]);
        if (node->removed || !(ort_node_is_constant(node) || ort_edit_is(node, ONNX, "Transpose")))
            continue;
        const ort_graph_value *result = graph->values.data[node->outputs[0]];
        if (!result->use_count && !result->is_output)
            ort_graph_remove_node(graph, node);
    }
    (void)ort_graph_drop_initializers(graph);
}

static ort_status finish(ort_graph *graph, ort_error *err)
{
    ort_node *node;
    ORT_TRY(ort_edit_finish(graph, err));
    ORT_EACH_NODE(graph, node)
        for (int b = 0; b < node->body_count; b++)
            ORT_TRY(finish(node->bodies[b], err));
    return ORT_OK;
}

ort_status ort_low_bits_edit(ort_weights *w, ort_error *err)
{
    for (size_t i = 0; i < w->readers.count; i++) {
        ort_weight_reader *r = &w->readers.data[i];
        ort_weight *weight = r->weight == SIZE_MAX ? NULL : &w->weights.data[r->weight];
        if (r->why || !weight)
            continue;
        if (w->options.form == ORT_WEIGHTS_QDQ)
            ORT_TRY(read_dequantized(weight, r, err));
        else if (r->table)
            ORT_TRY(gather_rows(w, weight, r->node, err));
        else
            ORT_TRY(multiply(w, weight, r->node, err));
    }
    ORT_TRY(finish(w->model->graph, err));
    sweep(w->model->graph);
    return finish(w->model->graph, err);
}
