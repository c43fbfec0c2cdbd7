/* coded_rnns.c - recurrences whose weights a file dequantizes keep them as codes:
 *
 *     LSTM(x, DequantizeLinear(#w), DequantizeLinear(#r), ...)                     CodedLSTM
 *     LSTM(DequantizeLinear(x), DequantizeLinear(#w), DequantizeLinear(#r), ...)   CodedLSTM
 *
 * and GRU and RNN alike. Weights of 8 bits have one scale and zero point, one for each direction or
 * one for each row of gates; the operator wants them for each row of each direction. X may be codes
 * with one scale. What a file doesn't quantize, the state between steps above all, stays float.
 * Level 3: nothing of this is saved.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <string.h>

#include "op/edit.h"
#include "op/types.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"

enum { X, W, R, PLAIN_INPUTS = 8, W_SCALE = PLAIN_INPUTS, W_ZERO, R_SCALE, R_ZERO, X_SCALE, X_ZERO,
       INPUTS };

static const struct recurrence {
    const char *op_type, *coded;
} recurrences[] = {{"LSTM", "CodedLSTM"}, {"GRU", "CodedGRU"}, {"RNN", "CodedRNN"}};

typedef struct coded_rnn {
    ort_node *node;
    const struct recurrence *row;
    ort_quant x, w, r;         /* x.node is NULL where X stays float */
    int64_t directions, gates; /* rows of W and R in each direction */
} coded_rnn;

/* Scales of a weight: one, or along an axis of its rows. */
static bool fits_rows(const ort_quant *q, int64_t directions, int64_t gates)
{
    const int64_t axis = q->axis < 0 ? q->axis + 3 : q->axis, count = ort_tensor_count(q->scale);
    return count == 1 || (axis == 0 && count == directions) || (axis == 1 && count == gates);
}

/* Why a weight isn't codes for it; NULL: it is. */
static const char *read_weight(const ort_graph *graph, const ort_node *node, int slot,
                               ort_quant *q)
{
    ort_node *producer = ort_edit_producer(graph, node->inputs[slot]);
    const ort_tensor *codes = producer ? ort_edit_constant(graph, producer, 0) : NULL;
    if (!codes || !codes->data || codes->shape.rank != 3)
        return "its weights aren't constant codes";
    if (!ort_quant_read(graph, producer, "DequantizeLinear", q))
        return "the scales of its weights aren't float32 constants, or are of blocks";
    if (!ort_quant_is_byte(q->dtype))
        return "its weights haven't 8 bits";
    if (ort_tensor_count(codes) == 0)
        return "its weights are empty";
    return fits_rows(q, codes->shape.dim[0], codes->shape.dim[1])
               ? NULL : "its weights have scales along their columns";
}

/* X as codes, where it is dequantized by one scale. */
static void read_input(const ort_graph *graph, coded_rnn *c)
{
    ort_node *producer = ort_edit_producer(graph, c->node->inputs[X]);
    if (!ort_quant_read(graph, producer, "DequantizeLinear", &c->x) ||
        !ort_quant_is_byte(c->x.dtype) || !ort_quant_is_plain(&c->x))
        c->x.node = NULL;
}

static const char *read(const ort_graph *graph, coded_rnn *c)
{
    const char *why = read_weight(graph, c->node, W, &c->w);
    if (!why)
        why = read_weight(graph, c->node, R, &c->r);
    if (why)
        return why;
    const ort_tensor *w = ort_edit_constant(graph, c->w.node, 0);
    const ort_tensor *r = ort_edit_constant(graph, c->r.node, 0);
    c->directions = w->shape.dim[0];
    c->gates = w->shape.dim[1];
    if (r->shape.dim[0] != c->directions || r->shape.dim[1] != c->gates)
        return "the shapes of its weights don't fit";
    read_input(graph, c);
    return NULL;
}

/* The element for a row of a direction. */
static int64_t index_of(const coded_rnn *c, const ort_quant *q, int64_t direction, int64_t row)
{
    if (ort_quant_is_plain(q))
        return 0;
    return q->axis == 0 || q->axis == -3 ? direction : row;
}

/* Scales [D][G*H], and zero points unless all are 0. */
static ort_status make_grid(ort_graph *graph, const coded_rnn *c, const ort_quant *q, ort_id *scale,
                            ort_id *zero, ort_error *err)
{
    const ort_shape shape = {2, {c->directions, c->gates}};
    ort_tensor made, zeros;
    ORT_TRY(ort_edit_new_constant(graph, "scale", ORT_DTYPE_FLOAT, &shape, &made, scale, err));
    if (q->zero)
        ORT_TRY(ort_edit_new_constant(graph, "zero", q->dtype, &shape, &zeros, zero, err));
    for (int64_t d = 0, at = 0; d < c->directions; d++)
        for (int64_t row = 0; row < c->gates; row++, at++) {
            const int64_t i = index_of(c, q, d, row);
            ((float *)made.data)[at] = (float)ort_tensor_get_f64(q->scale, i);
            if (q->zero)
                ((uint8_t *)zeros.data)[at] = ((const uint8_t *)q->zero->data)[i];
        }
    return ORT_OK;
}

static ort_status replace(ort_graph *graph, const coded_rnn *c, ort_error *err)
{
    ort_id inputs[INPUTS], outputs[3];
    ort_node *node = c->node;
    for (int i = 0; i < INPUTS; i++)
        inputs[i] = i < PLAIN_INPUTS ? ort_edit_input(node, i) : ORT_ID_NONE;
    memcpy(outputs, node->outputs, (size_t)node->output_count * sizeof *outputs);
    inputs[W] = c->w.node->inputs[0];
    inputs[R] = c->r.node->inputs[0];
    ORT_TRY(make_grid(graph, c, &c->w, &inputs[W_SCALE], &inputs[W_ZERO], err));
    ORT_TRY(make_grid(graph, c, &c->r, &inputs[R_SCALE], &inputs[R_ZERO], err));
    if (c->x.node) {
        inputs[X] = c->x.node->inputs[0];
        inputs[X_SCALE] = c->x.node->inputs[1];
        inputs[X_ZERO] = ort_edit_input(c->x.node, 2);
    }
    ort_id read[] = {node->inputs[X], node->inputs[W], node->inputs[R]};
    ort_node_spec spec = ort_edit_again(node);
    spec.domain = ORT_INTERNAL;
    spec.op_type = c->row->coded;
    spec.inputs = inputs;
    spec.input_count = c->x.node ? INPUTS : X_SCALE;
    spec.outputs = outputs;
    spec.opset = 1;
    ort_graph_remove_node(graph, node);
    ORT_TRY(ort_edit_add_node(graph, &spec, NULL, err));
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        ort_quant_drop_unread(graph, read[i]);
    return ORT_OK;
}

/* The row of a recurrence with a dequantized weight; NULL: another node. */
static const struct recurrence *row_of(const ort_graph *graph, const ort_node *node)
{
    for (size_t i = 0; i < sizeof recurrences / sizeof *recurrences; i++)
        if (ort_edit_is(node, ONNX, recurrences[i].op_type) && node->input_count > R &&
            (ort_edit_is(ort_edit_producer(graph, node->inputs[W]), ONNX, "DequantizeLinear") ||
             ort_edit_is(ort_edit_producer(graph, node->inputs[R]), ONNX, "DequantizeLinear")))
            return &recurrences[i];
    return NULL;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    if (!c->target || c->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        coded_rnn found = {.node = node, .row = row_of(c->graph, node)};
        const char *why = found.row ? read(c->graph, &found) : NULL;
        if (why)
            ort_pass_note(c, node, "not integer: %s", why);
        if (!found.row || why)
            continue;
        ORT_TRY(replace(c->graph, &found, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_coded_rnns = {
    .name = "coded_rnns",
    .level = 3,
    .doc = "LSTM, GRU and RNN keep dequantized weights in 8 bits (cpu only)",
    .apply = apply,
};
