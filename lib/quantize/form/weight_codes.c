/* weight_codes.c - a weight has one copy in codes for each form that its readers want: most often
 * one, also where layers share it.
 *
 *     codes -> DequantizeLinear [-> Transpose] -> product
 *     int32 codes of the product's scale -> DequantizeLinear -> its bias
 *     codes -> Gather -> Cast -> Mul <- Gather <- scales of rows        a table
 */
#include "quantize/form/weight_codes.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "quantize/code_types.h"
#include "quantize/strips.h"
#include "quantize/form/weight_fill.h"

/* ---- one weight */

static ort_qdq_weight *find_weight(ort_qdq_writer *w, ort_id id, const ort_codes_range *codes,
                                   int axis)
{
    for (size_t i = 0; i < w->weights.count; i++) {
        ort_qdq_weight *q = &w->weights.data[i];
        if (q->id == id && q->axis == axis && ort_codes_same(&q->codes, codes))
            return q;
    }
    return NULL;
}

/* sums: the axis of output channels, whatever has a scale of its own. */
static ort_status note_weight(ort_qdq_writer *w, ort_id id, const ort_weight_form *form, int axis,
                              int sums, ort_qdq_weight **weight, ort_error *err)
{
    const ort_tensor *t = w->graph->values.data[id]->fact.value;
    *weight = find_weight(w, id, &form->codes, axis);
    if (*weight)
        return ORT_OK;
    ort_qdq_weight q = {.id = id, .codes = form->codes, .fit = form->fit, .axis = axis,
                        .sums = sums, .channels = ort_channels_of(t, axis).count,
                        .code_id = ORT_ID_NONE,
                        .scale = ORT_ID_NONE, .zero = ORT_ID_NONE, .numbers = ORT_ID_NONE,
                        .turned_from = ORT_ID_NONE, .turned = ORT_ID_NONE};
    q.least_scales = calloc((size_t)q.channels + 1, sizeof *q.least_scales);
    if (!q.least_scales || !ort_vec_push(&w->weights, q)) {
        free(q.least_scales);
        return ort_error_memory(err, (size_t)q.channels * sizeof *q.least_scales);
    }
    *weight = &w->weights.data[w->weights.count - 1];
    return ORT_OK;
}

void ort_weights_release(ort_qdq_writer *w)
{
    for (size_t i = 0; i < w->weights.count; i++)
        free(w->weights.data[i].least_scales);
    ort_vec_release(&w->weights);
}

static ort_status dequantize(ort_qdq_writer *w, ort_qdq_weight *weight, ort_error *err)
{
    if (weight->numbers != ORT_ID_NONE)
        return ORT_OK;
    return ort_qdq_add_linear(w, "DequantizeLinear", ort_qdq_name(w, weight->id),
                              (const ort_id[]){weight->code_id, weight->scale, weight->zero},
                              weight->axis, &weight->numbers, err);
}

ort_status ort_weights_constant(ort_qdq_writer *w, ort_id id, int form, ort_id *numbers,
                                ort_error *err)
{
    ort_weight_form own = {.codes = w->options->plan->forms.data[form].codes, .per_tensor = true,
                           .fit = true};
    const int rank = w->graph->values.data[id]->fact.value->shape.rank;
    ort_qdq_weight *weight;
    ORT_TRY(note_weight(w, id, &own, -1, rank > 2 ? 0 : -1, &weight, err));
    if (weight->code_id == ORT_ID_NONE)
        ORT_TRY(ort_weight_fill(w, weight, err));
    ORT_TRY(dequantize(w, weight, err));
    *numbers = weight->numbers;
    return ORT_OK;
}

/* ---- products */

/* A node on codes with a weight, and what it is multiplied with. */
typedef struct product {
    ort_node *node;
    ort_place_product slots;
    ort_place_weight weight;
    ort_weight_form form;
    int axis; /* of scales, in the stored tensor; -1: one */
    const ort_tensor *bias;
    float input_scale;
    float alpha, beta; /* of a Gemm: they go into the scales of its weight, and into its bias */
    bool keeps;        /* them, and is computed in float by others */
} product;

/* The bias of a product whose codes can stand for it: a vector, one number an output channel. */
static const ort_tensor *bias_of(const ort_qdq_writer *w, const product *p, int64_t outputs)
{
    const ort_node *node = p->node;
    const ort_tensor *bias = p->slots.bias < 0 ? NULL
                             : w->graph->values.data[node->inputs[p->slots.bias]]->fact.value;
    return bias && bias->dtype == ORT_DTYPE_FLOAT && bias->shape.rank == 1 &&
                   bias->shape.dim[0] == outputs && !ort_codes_are_floats(p->form.codes.dtype)
               ? bias
               : NULL;
}

static void read_factors(product *p)
{
    const ort_node *node = p->node;
    p->alpha = p->beta = 1;
    if (!ort_edit_is(node, ONNX, "Gemm"))
        return;
    const float alpha = ort_node_float(node, "alpha", 1), beta = ort_node_float(node, "beta", 1);
    p->keeps = (alpha != 1 && (!isnormal(alpha) || alpha < 0)) || !isfinite(beta) ||
               (beta != 1 && p->slots.bias >= 0 && !p->bias);
    if (p->keeps) {
        p->bias = NULL;
        return;
    }
    p->alpha = alpha;
    p->beta = beta;
}

static bool is_float8(const ort_qdq_writer *w, int form)
{
    return ort_codes_are_floats(w->options->plan->forms.data[form].codes.dtype);
}

/* Bytes by int8 without a zero point, unless they may be cut. */
static bool is_paired(const ort_qdq_writer *w, const product *p)
{
    const int form = ort_code_plan_form(w->options->plan, p->node, 0);
    const ort_dtype of = w->options->plan->forms.data[form].codes.dtype;
    return p->form.in_pairs && (of == ORT_DTYPE_UINT8 || of == ORT_DTYPE_INT8);
}

/* Which of a product's numbers are added in twos. */
static ort_pairs pairs_of(const ort_qdq_writer *w, const product *p, const ort_tensor *t)
{
    const int rank = t->shape.rank, axis = p->weight.axis;
    if (!is_paired(w, p) || rank < 2 || (p->weight.transpose && rank != 2))
        return (ort_pairs){.plane = 1};
    if (!strstr(p->node->op_type, "Conv")) /* a stack of matrices lies in one line */
        return ort_pairs_of_filters(1, 1, t->shape.dim[axis < 0 ? rank - 2 : 1 - axis],
                                    axis < 0 ? t->shape.dim[rank - 1] : 1);
    const bool turned = ort_edit_is(p->node, ONNX, "ConvTranspose");
    const int64_t groups = ort_node_int(p->node, "group", 1), first = t->shape.dim[0] / groups;
    int64_t plane = 1;
    for (int i = axis < 0 ? 1 : 2; i < rank; i++)
        plane *= t->shape.dim[i];
    return ort_pairs_of_filters(groups, turned ? t->shape.dim[1] : first,
                                turned ? first : t->shape.dim[1], plane);
}

static bool read_product(ort_qdq_writer *w, ort_node *node, product *p)
{
    const ort_graph *graph = w->graph;
    *p = (product){.node = node};
    if (w->place->nodes[node->id].part != ORT_PART_PRODUCT ||
        !ort_place_is_product(graph, node, &p->slots) ||
        !ort_place_weight_of(graph, node, &p->weight) || !w->place->values[p->weight.id].weight)
        return false;
    const ort_tensor *t = graph->values.data[p->weight.id]->fact.value;
    p->form = ort_code_plan_weights(w->options->plan, node);
    p->axis = p->form.per_tensor || t->shape.rank < 2 ? -1 : p->weight.axis;
    int form = ort_code_plan_form(w->options->plan, node, 0);
    int at = ort_qdq_grid_of(w, node->inputs[0], form);
    int64_t outputs = p->weight.axis >= 0 ? t->shape.dim[p->weight.axis] : -1;
    p->input_scale = at < 0 ? 1 : w->pairs.data[at].grid.scale;
    p->bias = is_float8(w, form) ? NULL : bias_of(w, p, outputs);
    read_factors(p);
    return true;
}

/* A bias has codes of the scale of its products: 30 bits must hold them, and the scale must be a
 * normal number. */
static double scale_for_bias(const product *p, float bias)
{
    const double input_scale = (double)p->input_scale * (double)p->alpha;
    double scale = fabs((double)bias * (double)p->beta) / input_scale / (double)(1 << 30);
    return fmax(scale, (double)FLT_MIN / input_scale);
}

static ort_status note_product(ort_qdq_writer *w, const product *p, ort_error *err)
{
    ort_qdq_weight *weight;
    const ort_tensor *t = w->graph->values.data[p->weight.id]->fact.value;
    const ort_pairs pairs = pairs_of(w, p, t);
    ORT_TRY(note_weight(w, p->weight.id, &p->form, p->axis, p->weight.axis, &weight, err));
    if (pairs.channels > 0)
        weight->pairs = pairs;
    for (int64_t i = 0; p->bias && i < ort_tensor_count(p->bias); i++) {
        double *least = &weight->least_scales[p->axis < 0 ? 0 : i];
        float bias; /* aligned for no type */
        memcpy(&bias, (const char *)p->bias->data + (size_t)i * sizeof bias, sizeof bias);
        *least = fmax(*least, scale_for_bias(p, bias));
    }
    return ORT_OK;
}

/* round(bias / (scale of the input * scale of the weight)), ONNX's QLinearConv. */
static ort_status write_bias(ort_qdq_writer *w, const product *p, const ort_qdq_weight *weight,
                             ort_error *err)
{
    ort_id id = p->node->inputs[p->slots.bias], codes, scale_id, result;
    const ort_tensor *bias = ort_graph_weight(w->graph, id);
    ort_tensor code, scale;
    if (!bias)
        return ort_error_memory(err, 0);
    int64_t n = ort_tensor_count(bias);
    bool each = weight->axis >= 0;
    const char *stem = ort_qdq_name(w, id);
    ORT_TRY(ort_qdq_constant(w, stem, "codes", ORT_DTYPE_INT32, 1, n, &code, &codes, err));
    ORT_TRY(ort_qdq_constant(w, stem, "scale", ORT_DTYPE_FLOAT, each, n, &scale, &scale_id, err));
    for (int64_t i = 0; i < n; i++) {
        float s = p->input_scale * (weight->scales[each ? i : 0] * p->alpha);
        double q = nearbyint((double)((const float *)bias->data)[i] * (double)p->beta / (double)s);
        ((int32_t *)code.data)[i] = (int32_t)fmin(fmax(q, INT32_MIN), INT32_MAX);
        ((float *)scale.data)[each ? i : 0] = s;
    }
    ORT_TRY(ort_qdq_add_linear(w, "DequantizeLinear", stem,
                               (const ort_id[]){codes, scale_id, ORT_ID_NONE}, each ? 0 : -1,
                               &result, err));
    ort_node_set_input(w->graph, p->node, p->slots.bias, result);
    return ORT_OK;
}

/* A weight that a Transpose turns: its twin turns the dequantized one. */
static ort_status turn(ort_qdq_writer *w, const ort_node *transpose, ort_qdq_weight *weight,
                       ort_id *numbers, ort_error *err)
{
    const bool shared = *numbers == weight->numbers;
    const ort_id in = *numbers;
    if (shared && weight->turned_from == transpose->outputs[0]) {
        *numbers = weight->turned;
        return ORT_OK;
    }
    *numbers = ort_graph_add_value(w->graph, ort_qdq_name(w, transpose->outputs[0]));
    if (*numbers == ORT_ID_NONE)
        return ort_error_memory(err, 1);
    ort_node_spec spec = ort_edit_again(transpose);
    spec.inputs = &in;
    spec.outputs = numbers;
    if (shared) {
        weight->turned_from = transpose->outputs[0];
        weight->turned = *numbers;
    }
    return ort_edit_add_node(w->graph, &spec, NULL, err);
}

/* The numbers of the same codes, alpha times as large. */
static ort_status dequantize_scaled(ort_qdq_writer *w, const ort_qdq_weight *weight, float alpha,
                                    ort_id *numbers, ort_error *err)
{
    const char *stem = ort_qdq_name(w, weight->id);
    ort_id id;
    ort_tensor scale;
    ORT_TRY(ort_qdq_constant(w, stem, "alpha_scale", ORT_DTYPE_FLOAT, weight->axis >= 0,
                             weight->channels, &scale, &id, err));
    for (int64_t k = 0; k < weight->channels; k++)
        ((float *)scale.data)[k] = weight->scales[k] * alpha;
    return ort_qdq_add_linear(w, "DequantizeLinear", stem,
                              (const ort_id[]){weight->code_id, id, weight->zero}, weight->axis,
                              numbers, err);
}

static ort_status drop_factors(ort_qdq_writer *w, const product *p, ort_error *err)
{
    static const char *const names[] = {"alpha", "beta"};
    for (int i = 0; i < 2; i++) {
        const ort_attr one = ort_attr_float(names[i], 1);
        if (ort_node_float(p->node, names[i], 1) != 1)
            ORT_TRY(ort_edit_set_attr(w->graph, p->node, &one, err));
    }
    return ORT_OK;
}

static ort_status write_product(ort_qdq_writer *w, const product *p, ort_error *err)
{
    ort_qdq_weight *weight = find_weight(w, p->weight.id, &p->form.codes, p->axis);
    ort_id numbers;
    if (p->alpha != 1) {
        ORT_TRY(dequantize_scaled(w, weight, p->alpha, &numbers, err));
    } else {
        ORT_TRY(dequantize(w, weight, err));
        numbers = weight->numbers;
    }
    if (!p->keeps && ort_edit_is(p->node, ONNX, "Gemm"))
        ORT_TRY(drop_factors(w, p, err));
    if (p->weight.transpose)
        ORT_TRY(turn(w, p->weight.transpose, weight, &numbers, err));
    ort_node_set_input(w->graph, p->node, p->slots.weight, numbers);
    return p->bias ? write_bias(w, p, weight, err) : ORT_OK;
}

/* ---- tables */

static bool is_table(const ort_qdq_writer *w, const ort_node *node)
{
    return w->place->nodes[node->id].part == ORT_PART_TABLE;
}

/* Rows of int8, a scale each, whatever products have: they are looked up, not multiplied. A
 * product that shares the table with these codes shares the copy; else the table takes those of
 * one that has bytes with scales of columns, or a single one. */
static ort_weight_form table_form(const ort_qdq_writer *w, const ort_node *node)
{
    ort_weight_form form = ort_code_plan_weights(w->options->plan, node);
    ort_codes_range_of(ORT_DTYPE_INT8, true, false, &form.codes);
    return form;
}

static ort_qdq_weight *table_of(ort_qdq_writer *w, const ort_node *node)
{
    const ort_weight_form form = table_form(w, node);
    ort_qdq_weight *own = find_weight(w, node->inputs[0], &form.codes, 0);
    for (size_t i = 0; i < w->weights.count && !own; i++) {
        ort_qdq_weight *q = &w->weights.data[i];
        if (q->id == node->inputs[0] &&
            (q->codes.dtype == ORT_DTYPE_INT8 || q->codes.dtype == ORT_DTYPE_UINT8))
            own = q;
    }
    return own;
}

/* Do products alone that have it in other codes, or by other scales, multiply the table? */
static bool has_other_codes(const ort_qdq_writer *w, const ort_node *table)
{
    const ort_weight_form own = table_form(w, table);
    const ort_node *node;
    ort_place_weight weight;
    bool other = false;
    ORT_EACH_NODE(w->graph, node)
    {
        if (w->place->nodes[node->id].part != ORT_PART_PRODUCT ||
            !ort_place_weight_of(w->graph, node, &weight) || weight.id != table->inputs[0])
            continue;
        const ort_weight_form form = ort_code_plan_weights(w->options->plan, node);
        if (!form.per_tensor && weight.axis == 0 && ort_codes_same(&form.codes, &own.codes))
            return false;
        other = true;
    }
    return other;
}

static ort_status note_table(ort_qdq_writer *w, const ort_node *node, ort_error *err)
{
    const ort_weight_form form = table_form(w, node);
    ort_qdq_weight *weight = table_of(w, node);
    return weight ? ORT_OK : note_weight(w, node->inputs[0], &form, 0, 0, &weight, err);
}

static ort_status gather(ort_qdq_writer *w, const ort_node *node, ort_id data, ort_id *result,
                         ort_error *err)
{
    const ort_id in[] = {data, node->inputs[1]};
    ort_attr axis = ort_attr_int("axis", 0);
    return ort_edit_add_result(w->graph, "Gather", in, 2, &axis, 1, result, err);
}

/* Scales or zero points of the numbers that are looked up, as floats: of each row, of all columns,
 * or one of all. */
static ort_status row_numbers(ort_qdq_writer *w, const ort_node *node, const ort_qdq_weight *weight,
                              bool zeros, ort_id *result, ort_error *err)
{
    const bool rows = weight->axis == 0;
    const ort_shape shape = rows ? (ort_shape){.rank = 2, .dim = {weight->channels, 1}}
                                 : (ort_shape){.rank = weight->axis > 0, .dim = {weight->channels}};
    const ort_tensor *from = zeros ? w->graph->values.data[weight->zero]->fact.value : NULL;
    const char *name = ort_qdq_joined(w, ort_qdq_name(w, weight->id),
                                      zeros ? "row_zero" : "row_scale");
    ort_tensor numbers;
    ort_id id;
    if (!name)
        return ort_error_memory(err, 0);
    ORT_TRY(ort_edit_new_constant(w->graph, name, ORT_DTYPE_FLOAT, &shape, &numbers, &id, err));
    for (int64_t k = 0; k < weight->channels; k++)
        ((float *)numbers.data)[k] = zeros ? (float)ort_tensor_get_f64(from, k)
                                           : weight->scales[k];
    *result = id;
    return rows ? gather(w, node, id, result, err) : ORT_OK;
}

static bool is_shifted(const ort_qdq_writer *w, const ort_qdq_weight *weight)
{
    const ort_tensor *zero = weight->zero == ORT_ID_NONE
                                 ? NULL : w->graph->values.data[weight->zero]->fact.value;
    for (int64_t k = 0; zero && k < ort_tensor_count(zero); k++)
        if (ort_tensor_get_i64(zero, k) != 0)
            return true;
    return false;
}

static ort_status write_table(ort_qdq_writer *w, ort_node *node, ort_error *err)
{
    const ort_qdq_weight *weight = table_of(w, node);
    ort_id in[2], codes;
    ORT_TRY(gather(w, node, weight->code_id, &codes, err));
    ort_id factors;
    ORT_TRY(row_numbers(w, node, weight, false, &factors, err));
    ort_attr to = ort_attr_int("to", ORT_DTYPE_FLOAT);
    ORT_TRY(ort_edit_add_result(w->graph, "Cast", &codes, 1, &to, 1, &in[0], err));
    if (is_shifted(w, weight)) {
        ORT_TRY(row_numbers(w, node, weight, true, &in[1], err));
        ORT_TRY(ort_edit_add_result(w->graph, "Sub", in, 2, NULL, 0, &in[0], err));
    }
    in[1] = factors;
    const ort_id out = node->outputs[0];
    ort_node_spec spec = {.domain = ONNX, .op_type = "Mul", .name = node->name, .inputs = in,
                          .input_count = 2, .outputs = &out, .output_count = 1};
    ort_graph_remove_node(w->graph, node);
    return ort_edit_add_node(w->graph, &spec, NULL, err);
}

/* ---- recurrent layers */

static ort_qdq_weight *recurrent_weight(ort_qdq_writer *w, const ort_node *node, int slot)
{
    ort_weight_form form = ort_code_plan_weights(w->options->plan, node);
    return find_weight(w, node->inputs[slot], &form.codes,
                       form.per_tensor ? -1 : ORT_RECURRENT_AXIS);
}

static ort_status note_recurrent(ort_qdq_writer *w, const ort_node *node, ort_error *err)
{
    ort_weight_form form = ort_code_plan_weights(w->options->plan, node);
    ort_qdq_weight *weight;
    for (int k = 0; k < 2; k++)
        ORT_TRY(note_weight(w, node->inputs[ORT_RECURRENT_WEIGHT + k], &form,
                            form.per_tensor ? -1 : ORT_RECURRENT_AXIS, ORT_RECURRENT_AXIS,
                            &weight, err));
    return ORT_OK;
}

static ort_status write_recurrent(ort_qdq_writer *w, ort_node *node, ort_error *err)
{
    for (int slot = ORT_RECURRENT_WEIGHT; slot < ORT_RECURRENT_WEIGHT + 2; slot++) {
        ort_qdq_weight *weight = recurrent_weight(w, node, slot);
        ORT_TRY(dequantize(w, weight, err));
        ort_node_set_input(w->graph, node, slot, weight->numbers);
    }
    return ORT_OK;
}

/* ---- all of them */

static double count_of(const ort_qdq_writer *w, size_t weight)
{
    const ort_id id = w->weights.data[weight].id;
    return (double)ort_tensor_count(w->graph->values.data[id]->fact.value);
}

static ort_status fill_all(ort_qdq_writer *w, ort_error *err)
{
    ort_shares *shares = w->options->shares;
    double total = 0;
    for (size_t i = 0; i < w->weights.count; i++)
        total += count_of(w, i);
    ort_shares_begin(shares, "quantizing", total);
    for (size_t i = 0; i < w->weights.count; i++) {
        const double count = count_of(w, i);
        ORT_TRY(ort_weight_fill(w, &w->weights.data[i], err));
        ort_shares_add(shares, count);
    }
    return ORT_OK;
}

ort_status ort_weights_write(ort_qdq_writer *w, ort_error *err)
{
    const size_t nodes = w->graph->order.count;
    const ort_place_node *parts = w->place->nodes;
    product p;
    for (size_t i = 0; i < nodes; i++) {
        ort_node *node = w->graph->nodes.data[w->graph->order.data[i]];
        if (is_table(w, node) && !has_other_codes(w, node))
            ORT_TRY(note_table(w, node, err));
        else if (parts[node->id].weights)
            ORT_TRY(note_recurrent(w, node, err));
        else if (read_product(w, node, &p))
            ORT_TRY(note_product(w, &p, err));
    }
    for (size_t i = 0; i < nodes; i++) {
        const ort_node *node = w->graph->nodes.data[w->graph->order.data[i]];
        if (is_table(w, node)) /* takes the codes of a product, where it has none */
            ORT_TRY(note_table(w, node, err));
    }
    ORT_TRY(fill_all(w, err));
    for (size_t i = 0; i < nodes; i++) {
        ort_node *node = w->graph->nodes.data[w->graph->order.data[i]];
        if (is_table(w, node))
            ORT_TRY(write_table(w, node, err));
        else if (parts[node->id].weights)
            ORT_TRY(write_recurrent(w, node, err));
        else if (read_product(w, node, &p))
            ORT_TRY(write_product(w, &p, err));
    }
    return ORT_OK;
}
