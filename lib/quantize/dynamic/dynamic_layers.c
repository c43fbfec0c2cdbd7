/* dynamic_layers.c - LSTM, Attention and tables of rows, on codes. */
#include <string.h>

#include "base/error.h"
#include "quantize/dynamic/dynamic_parts.h"

enum { SMALL_LAYER = 4096, SMALL_TABLE = 16384 };

/* ---- LSTM -> DynamicQuantizeLSTM, which reads weights as [directions, inputs, 4 * hidden] */

enum { LSTM_INPUTS = 8 };

static const char *read_lstm(ort_dynamic *d, ort_dynamic_unit *u)
{
    const ort_node *node = u->node;
    int64_t numbers = 0;
    if (!ort_dynamic_is_float(u->graph, node->inputs[0]))
        return "its numbers aren't of type float";
    if (ort_node_int(node, "layout", 0))
        return "the batch is its first axis";
    if (ort_node_int(node, "output_sequence", 1) != 1 || node->opset < 7)
        return "it is of an opset before 7";
    for (int slot = 1; slot <= 2; slot++) {
        ort_graph *owner;
        ort_id own;
        bool behind;
        const ort_tensor *t =
            ort_dynamic_constant(u->graph, node->inputs[slot], &owner, &own, &behind);
        if (!t || behind || t->shape.rank != 3)
            return "its weights are computed";
        numbers += ort_tensor_count(t);
    }
    if (numbers < SMALL_LAYER && !d->options->small)
        return "too small to gain";
    const int last = d->options->per_tensor ? 1 : 2;
    const char *why = ort_dynamic_take(d, u, 1, 0, last, true, true);
    if (!why)
        why = ort_dynamic_take(d, u, 2, 0, last, true, true);
    if (!why)
        ort_dynamic_want_nearest(d, u, true);
    return why;
}

static ort_status write_lstm(ort_dynamic *d, const ort_dynamic_unit *u, ort_error *err)
{
    const ort_type *w = &u->graph->values.data[u->node->inputs[1]]->fact.type;
    const ort_shape shape = {.rank = d->options->per_tensor ? 1 : 2,
                             .dim = {w->dim[0].size, w->dim[1].size}};
    ort_id inputs[LSTM_INPUTS + 4];
    for (int i = 0; i < LSTM_INPUTS; i++)
        inputs[i] = ort_edit_input(u->node, i);
    for (int k = 0; k < 2; k++) {
        ort_dynamic_codes codes;
        ORT_TRY(ort_dynamic_codes_of(d, u, k, &shape, 1, true, &codes, err));
        inputs[1 + k] = codes.codes;
        inputs[LSTM_INPUTS + 2 * k] = codes.scale;
        inputs[LSTM_INPUTS + 2 * k + 1] = codes.zero;
    }
    const ort_dynamic_new lstm = {.domain = MS, .op_type = "DynamicQuantizeLSTM", .what = "quant",
                                  .inputs = inputs, .input_count = LSTM_INPUTS + 4,
                                  .keeps_attrs = true, .last = true};
    return ort_dynamic_add(u, &lstm, NULL, err);
}

/* ---- Attention -> QAttention */

enum { BIAS = 2, MASK = 3, PAST = 4, SCORES_BIAS = 5, LENGTH = 6 };

static const char *read_attention(ort_dynamic *d, ort_dynamic_unit *u)
{
    const ort_node *node = u->node;
    ort_graph *owner;
    ort_id own;
    bool behind;
    if (!ort_dynamic_is_float(u->graph, node->inputs[0]))
        return "its numbers aren't of type float";
    const ort_tensor *w = ort_dynamic_constant(u->graph, node->inputs[1], &owner, &own, &behind);
    if (!w || behind || w->shape.rank != 2)
        return "its weight is computed";
    if (ort_node_attr(node, "qkv_hidden_sizes") || ort_node_int(node, "do_rotary", 0) ||
        ort_node_int(node, "past_present_share_buffer", 0) ||
        ort_edit_input(node, SCORES_BIAS) != ORT_ID_NONE ||
        ort_edit_input(node, LENGTH) != ORT_ID_NONE)
        return "QAttention has no qkv_hidden_sizes, rotation, attention_bias or shared buffer";
    if (ort_tensor_count(w) < SMALL_LAYER && !d->options->small)
        return "too small to gain";
    return d->options->per_tensor ? ort_dynamic_take(d, u, 1, 0, 0, false, true)
                                  : ort_dynamic_take(d, u, 1, 1, 2, false, true);
}

/* QAttention can't do without one. */
static ort_status no_bias(const ort_dynamic_unit *u, ort_id *bias, ort_error *err)
{
    const ort_type *w = &u->graph->values.data[u->node->inputs[1]]->fact.type;
    const ort_shape shape = {.rank = 1, .dim = {w->dim[1].size}};
    ort_tensor zeros;
    ORT_TRY(ort_dynamic_constant_of(u->graph, u->graph->values.data[u->node->inputs[1]]->name,
                                    "bias", ORT_DTYPE_FLOAT, &shape, &zeros, bias, err));
    memset(zeros.data, 0, ort_tensor_bytes(&zeros));
    return ORT_OK;
}

/* Attributes that both operators have alike; the others have their defaults here. */
static int attention_attrs(const ort_node *node, ort_attr *set)
{
    static const char *const names[] = {"num_heads", "unidirectional", "mask_filter_value",
                                        "scale"};
    int count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ort_node_attr(node, names[i]))
            set[count++] = *ort_node_attr(node, names[i]);
    return count;
}

static ort_status write_attention(ort_dynamic *d, const ort_dynamic_unit *u, ort_error *err)
{
    ort_attr set[4];
    ort_dynamic_bytes x;
    ort_dynamic_codes w;
    ort_id bias = ort_edit_input(u->node, BIAS);
    ORT_TRY(ort_dynamic_bytes_of(d, u->graph, u->node->inputs[0], &x, err));
    ORT_TRY(ort_dynamic_codes_of(d, u, 0, NULL, 1, false, &w, err));
    if (bias == ORT_ID_NONE)
        ORT_TRY(no_bias(u, &bias, err));
    const ort_id inputs[] = {x.codes, w.codes, bias, x.scale, w.scale,
                             ort_edit_input(u->node, MASK), x.zero, w.zero,
                             ort_edit_input(u->node, PAST)};
    const ort_dynamic_new attention = {.domain = MS, .op_type = "QAttention", .what = "quant",
                                       .inputs = inputs, .input_count = 9, .set = set,
                                       .set_count = attention_attrs(u->node, set), .last = true};
    return ort_dynamic_add(u, &attention, NULL, err);
}

/* ---- Gather of rows: codes are gathered, and each row's scale; or rows are multiplied by those of
 * columns, where a product has these codes */

/* Scales of the columns of a matrix. */
static bool has_columns(const ort_dynamic_weight *w)
{
    return w->inner == 1 && w->axis == 1 && w->outer > 1;
}

static const char *read_gather(ort_dynamic *d, ort_dynamic_unit *u)
{
    ort_graph *owner;
    ort_id own;
    bool behind;
    const ort_tensor *t = ort_dynamic_constant(u->graph, u->node->inputs[0], &owner, &own, &behind);
    if (!t || t->shape.rank < 2)
        return ""; /* no table of rows */
    if (d->options->float_tables)
        return "tables stay float";
    if (behind || ort_node_int(u->node, "axis", 0) != 0)
        return "it doesn't look up rows";
    if (ort_tensor_count(t) < SMALL_TABLE && !d->options->small)
        return "too small to gain";
    const int last = d->options->per_tensor ? 0 : 1;
    const char *why = ort_dynamic_take(d, u, 0, 0, last, false, false);
    if (!why)
        ort_dynamic_want_nearest(d, u, false);
    return why;
}

/* Rows of a table of one number a row, behind so many dims; of scales or zero points. */
static ort_status gather_numbers(const ort_dynamic_unit *u, const char *what, const ort_tensor *t,
                                 ort_id table, ort_id *rows, ort_error *err)
{
    const ort_dynamic_new gather = {.op_type = "Gather", .what = what,
                                    .inputs = (const ort_id[]){table, u->node->inputs[1]},
                                    .input_count = 2};
    if (t->shape.rank < 2) { /* one of all, or one a column */
        *rows = table;
        return ORT_OK;
    }
    return ort_dynamic_add(u, &gather, rows, err);
}

static ort_status subtract_zeros(ort_dynamic *d, const ort_dynamic_unit *u, const ort_shape *shape,
                                 ort_id *rows, ort_error *err)
{
    const ort_dynamic_weight *w = &d->weights.data[u->weights[0]];
    bool even = true;
    for (int64_t k = 1; k < w->channels; k++)
        even = even && w->zero[k] == w->zero[0];
    if (even && w->zero[0] == 0)
        return ORT_OK;
    const ort_shape one = {0};
    ort_tensor t;
    ort_id table, zeros;
    ORT_TRY(ort_dynamic_constant_of(u->graph, w->graph->values.data[w->id]->name, "zero_row",
                                    ORT_DTYPE_FLOAT, even ? &one : shape, &t, &table, err));
    for (int64_t k = 0; k < ort_tensor_count(&t); k++)
        ((float *)t.data)[k] = (float)w->zero[w->channels == 1 ? 0 : k];
    ORT_TRY(gather_numbers(u, "quant_zero", &t, table, &zeros, err));
    const ort_dynamic_new sub = {.op_type = "Sub", .what = "quant_sub",
                                 .inputs = (const ort_id[]){*rows, zeros}, .input_count = 2};
    return ort_dynamic_add(u, &sub, rows, err);
}

/* One of all; as the table, of one column; or a vector of columns. */
static ort_shape shape_of_scales(const ort_dynamic *d, const ort_dynamic_unit *u)
{
    const ort_dynamic_weight *w = &d->weights.data[u->weights[0]];
    const ort_type *table = &u->graph->values.data[u->node->inputs[0]]->fact.type;
    if (has_columns(w))
        return (ort_shape){.rank = 1, .dim = {w->channels}};
    ort_shape shape = {.rank = d->options->per_tensor ? 0 : table->rank};
    shape.dim[0] = table->dim[0].size;
    for (int i = 1; i < shape.rank; i++)
        shape.dim[i] = 1;
    return shape;
}

static ort_status write_gather(ort_dynamic *d, const ort_dynamic_unit *u, ort_error *err)
{
    const ort_shape shape = shape_of_scales(d, u);
    const ort_attr to = ort_attr_int("to", ORT_DTYPE_FLOAT);
    ort_dynamic_codes c;
    ort_id rows, real, scale;
    ORT_TRY(ort_dynamic_codes_of(d, u, 0, &shape, 1, false, &c, err));
    const ort_dynamic_new gather = {.op_type = "Gather", .what = "quant",
                                    .inputs = (const ort_id[]){c.codes, u->node->inputs[1]},
                                    .input_count = 2};
    ORT_TRY(ort_dynamic_add(u, &gather, &rows, err));
    const ort_dynamic_new cast = {.op_type = "Cast", .what = "quant_cast", .inputs = &rows,
                                  .input_count = 1, .set = &to, .set_count = 1};
    ORT_TRY(ort_dynamic_add(u, &cast, &real, err));
    ORT_TRY(subtract_zeros(d, u, &shape, &real, err));
    ORT_TRY(gather_numbers(u, "quant_scale", &(const ort_tensor){.shape = shape}, c.scale, &scale,
                           err));
    const ort_dynamic_new mul = {.op_type = "Mul", .what = "quant_mul",
                                 .inputs = (const ort_id[]){real, scale}, .input_count = 2,
                                 .last = true};
    return ort_dynamic_add(u, &mul, NULL, err);
}

void ort_dynamic_share_tables(ort_dynamic *d)
{
    for (size_t k = 0; k < d->units.count; k++) {
        ort_dynamic_unit *table = &d->units.data[k];
        for (size_t j = 0; j < d->units.count && table->row->write == write_gather; j++) {
            const ort_dynamic_unit *u = &d->units.data[j];
            const ort_dynamic_weight *rows = &d->weights.data[table->weights[0]];
            ort_dynamic_weight *w = &d->weights.data[u->weights[0]];
            if (u->weight_count != 1 || w->graph != rows->graph || w->id != rows->id ||
                !has_columns(w))
                continue;
            w->nearest = true;
            table->weights[0] = u->weights[0];
        }
    }
}

const ort_dynamic_row ort_dynamic_layers[] = {
    {ONNX, "LSTM", read_lstm, write_lstm, "DynamicQuantizeLSTM"},
    {MS, "Attention", read_attention, write_attention, "QAttention"},
    {ONNX, "Gather", read_gather, write_gather, "Gather of codes"},
    {ONNX, "GRU", .stays = "neither ONNX nor com.microsoft has one on codes"},
    {ONNX, "RNN", .stays = "neither ONNX nor com.microsoft has one on codes"},
    {MS, "EmbedLayerNormalization",
     .stays = "its form on codes has one scale a table, and codes for gamma and beta"},
    {0},
};
