/* coded_convs.c - a convolution of codes whose result nobody wants as codes multiplies them all the
 * same:
 *
 *     Conv(DequantizeLinear(x), DequantizeLinear(#w), #bias) [Relu | Clip]       BytesConvFloat
 *
 * on the products of the layout of bytes: their sums are exact, and are scaled and shifted once.
 * Other activations that its FusedConv has follow as nodes of their own; where codes follow these,
 * bytes_layout.c takes them in again. Level 3: nothing of this is saved.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "op/blocked/bytes_op.h"
#include "op/edit.h"
#include "pass/facts/facts.h"
#include "provider/cpu/float_convs.h"
#include "tensor/scalar.h"

typedef struct coded_conv {
    ort_node *conv, *x, *w, *b; /* b: the DequantizeLinear of its bias, or NULL */
    const ort_tensor *w_scale;
    float x_scale;
    double low, high;
    const char *act; /* the operator that follows, or NULL, */
    ort_attr of_act[2]; /* and its attributes */
    int of_act_count;
} coded_conv;

static bool is_byte(const ort_graph *graph, ort_id id)
{
    const ort_dtype dtype = ort_fact_type(graph, id)->dtype;
    return dtype == ORT_DTYPE_UINT8 || dtype == ORT_DTYPE_INT8;
}

/* One float scale, and one zero point of the codes' type, or none. */
static bool has_one_grid(const ort_graph *graph, const ort_node *dequantize, float *scale)
{
    const ort_tensor *s = ort_edit_constant(graph, dequantize, 1);
    const ort_tensor *zero = ort_edit_constant(graph, dequantize, 2);
    return s && s->dtype == ORT_DTYPE_FLOAT && ort_tensor_count(s) == 1 &&
           ort_tensor_one_f32(s, scale) &&
           (ort_edit_input(dequantize, 2) == ORT_ID_NONE || (zero && ort_tensor_count(zero) == 1));
}

/* The scales of a weight: one, or one for each filter. */
static const ort_tensor *scales_of(const ort_graph *graph, const ort_node *dequantize,
                                   int64_t maps)
{
    const ort_tensor *s = ort_edit_constant(graph, dequantize, 1);
    if (!s || s->dtype != ORT_DTYPE_FLOAT ||
        (ort_node_has(dequantize, "block_size") && ort_node_attr_int(dequantize, "block_size")))
        return NULL;
    const bool each = s->shape.rank == 1 && ort_tensor_count(s) == maps &&
                      (maps == 1 || ort_node_attr_int(dequantize, "axis") == 0);
    return each || ort_tensor_count(s) == 1 ? s : NULL;
}

/* False: an activation that stays with it. */
static bool read_activation(const ort_node *conv, coded_conv *c)
{
    ort_attr own;
    c->low = -INFINITY;
    c->high = INFINITY;
    if (ort_edit_is(conv, ONNX, "Conv"))
        return true;
    const char *name = ort_node_string(conv, "activation", "");
    const ort_attr *params = ort_edit_attr(conv, "activation_params", &own);
    if (!strcmp(name, "Relu")) {
        c->low = 0;
    } else if (!strcmp(name, "Clip") && params && params->count == 2) {
        c->low = (double)params->floats[0];
        c->high = (double)params->floats[1];
    } else if (!strcmp(name, "Sigmoid") || !strcmp(name, "Tanh")) {
        c->act = name;
    } else if (!strcmp(name, "LeakyRelu") || !strcmp(name, "HardSigmoid")) {
        c->act = name;
        c->of_act_count = *name == 'L' ? 1 : 2;
        if (!params || params->count != (size_t)c->of_act_count)
            return false;
        c->of_act[0] = ort_attr_float("alpha", (double)params->floats[0]);
        if (c->of_act_count > 1)
            c->of_act[1] = ort_attr_float("beta", (double)params->floats[1]);
    } else {
        return !*name;
    }
    return true;
}

/* Why a convolution of codes stays float; NULL: it needn't. */
static const char *read_conv(const ort_graph *graph, ort_node *conv, void *found)
{
    coded_conv *c = found;
    *c = (coded_conv){.conv = conv, .x = ort_dequantizer_of(graph, conv, 0),
                      .w = ort_dequantizer_of(graph, conv, 1),
                      .b = ort_dequantizer_of(graph, conv, 2)};
    const ort_tensor *w = ort_edit_constant(graph, c->w, 0);
    const ort_tensor *zero = ort_edit_constant(graph, c->w, 2);
    if (!w || !is_byte(graph, c->w->inputs[0]) || !is_byte(graph, c->x->inputs[0]) ||
        (ort_edit_input(c->w, 2) != ORT_ID_NONE && !zero))
        return "its weight isn't constant bytes";
    if (!has_one_grid(graph, c->x, &c->x_scale))
        return "the scale of input 0 isn't one constant";
    if (!(c->w_scale = scales_of(graph, c->w, w->shape.dim[0])))
        return "the scales of its weight aren't constants of its filters";
    if (ort_edit_input(conv, 3) != ORT_ID_NONE)
        return "it takes in a sum";
    if (!ort_float_conv_knows_bias(graph, conv))
        return "its bias isn't constant";
    if (!read_activation(conv, c))
        return "its activation is part of it";
    return ort_float_conv_stays(conv, ort_fact_type(graph, c->x->inputs[0]), w, zero);
}

/* The scale of its sums. */
static ort_status make_scale(ort_graph *graph, const coded_conv *c, ort_id *id, ort_error *err)
{
    const ort_shape shape = {1, {ort_tensor_count(c->w_scale)}};
    ort_tensor made;
    ORT_TRY(ort_edit_new_constant(graph, "scale", ORT_DTYPE_FLOAT, &shape, &made, id, err));
    for (int64_t i = 0; i < shape.dim[0]; i++)
        ((float *)made.data)[i] = c->x_scale * (float)ort_tensor_get_f64(c->w_scale, i);
    return ORT_OK;
}

static void drop(ort_graph *graph, ort_node *node)
{
    const ort_graph_value *v = node ? graph->values.data[node->outputs[0]] : NULL;
    if (v && !v->use_count && !v->is_output)
        ort_graph_remove_node(graph, node);
}

/* What follows it, from `between` to `out`. */
static ort_status add_activation(ort_layout *l, const coded_conv *c, const ort_node *like,
                                 ort_id between, ort_id out, ort_error *err)
{
    const ort_node_spec spec = {.domain = "", .op_type = c->act, .name = like->name,
                                .inputs = &between, .input_count = 1, .outputs = &out,
                                .output_count = 1, .origin = like->origin,
                                .set = c->of_act, .set_count = c->of_act_count};
    return ort_edit_add_node(l->graph, &spec, NULL, err);
}

static ort_status replace(ort_layout *l, void *found, ort_error *err)
{
    const coded_conv *c = found;
    ort_graph *graph = l->graph;
    const ort_id out = c->conv->outputs[0];
    ort_float_conv made = {.inputs = {c->x->inputs[0], c->w->inputs[0], ORT_ID_NONE, ORT_ID_NONE,
                                      ort_edit_input(c->x, 2), ORT_ID_NONE,
                                      ort_edit_input(c->w, 2), ORT_ID_NONE},
                           .low = c->low, .high = c->high};
    ORT_TRY(ort_float_conv_bias(graph, c->conv, &made.inputs[2], err));
    ORT_TRY(make_scale(graph, c, &made.inputs[3], err));
    ort_node like = *c->conv;
    ort_graph_remove_node(graph, c->conv);
    drop(graph, c->x);
    drop(graph, c->w);
    drop(graph, c->b);
    if (!c->act)
        return ort_float_conv_add(l, &like, &made, out, err);
    const ort_id between = ort_layout_value(l, out);
    if (between == ORT_ID_NONE)
        return ort_error_memory(err, sizeof between);
    ORT_TRY(ort_float_conv_add(l, &like, &made, between, err));
    return add_activation(l, c, &like, between, out, err);
}

static bool concerns(const ort_graph *graph, const ort_node *node)
{
    return ort_edit_is_any(node, "Conv|ms.FusedConv") && ort_dequantizer_of(graph, node, 0) &&
           ort_dequantizer_of(graph, node, 1);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    static const ort_float_convs kind = {concerns, read_conv, replace};
    coded_conv found;
    return ort_float_convs_apply(c, &kind, &found, changes, err);
}

const ort_pass ort_pass_coded_convs = {
    .name = "coded_convs",
    .level = 3,
    .doc = "convolutions of codes whose result stays float multiply bytes (cpu only)",
    .apply = apply,
};
