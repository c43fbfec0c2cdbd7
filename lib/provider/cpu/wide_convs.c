/* wide_convs.c - a convolution of 16-bit codes by 8-bit weights multiplies the codes:
 *
 *     Conv(DequantizeLinear(x), DequantizeLinear(#w), #bias)
 *         [Relu | Clip] [a function of one number] [QuantizeLinear]                     WideConv
 *
 * x is int16 or uint16 of one scale, weights have one or one for each filter. Where codes follow,
 * whatever their type, no float is stored in between; the function is then applied to what float
 * operators would have (op/quant/wide_conv.c). Level 3: nothing of this is saved.
 */
#include <math.h>

#include "base/error.h"
#include "op/shared/fused.h"
#include "op/shared/unary_apply.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"
#include "provider/cpu/float_convs.h"

enum { STEPS = 4 };

typedef struct wide_conv {
    ort_node *conv;
    ort_node *steps[STEPS]; /* behind it */
    int count;
    ort_quant x, w, out;    /* out.node: NULL where the result stays float */
    double low, high;
    int act;                /* an ort_unary, or -1 */
    float act_a, act_b;
} wide_conv;

/* ---- what follows */

/* An activation that is part of the convolution; false: an unknown one. */
static bool read_own(wide_conv *c)
{
    ort_attr own;
    ort_epilogue e = ort_epilogue_none();
    const ort_attr *params = ort_edit_attr(c->conv, "activation_params", &own);
    if (!ort_edit_is(c->conv, ONNX, "Conv") &&
        !ort_epilogue_activate(&e, ort_node_string(c->conv, "activation", ""),
                               params ? params->floats : NULL, params ? params->count : 0))
        return false;
    c->low = (double)e.lo;
    c->high = (double)e.hi;
    c->act = e.act;
    c->act_a = e.act_a;
    c->act_b = e.act_b;
    return true;
}

/* The numbers of a Relu or Clip. */
static bool bounds_of(const ort_graph *graph, const ort_node *node, double *low, double *high)
{
    *low = ort_edit_is(node, ONNX, "Relu") ? 0 : -INFINITY;
    *high = INFINITY;
    return ort_edit_is(node, ONNX, "Relu") ||
           (ort_edit_is(node, ONNX, "Clip") && ort_fact_bounds(graph, node, low, high));
}

static bool is_unbounded(const wide_conv *c)
{
    return isinf(c->low) && isinf(c->high);
}

/* Does the convolution do what this node does? */
static bool take(const ort_graph *graph, wide_conv *c, const ort_node *node)
{
    double low, high;
    ort_unary id = ORT_UNARY_COUNT;
    float a = 0, b = 0;
    if (!node || c->count == STEPS || c->act >= 0)
        return false;
    if (is_unbounded(c) && bounds_of(graph, node, &low, &high)) {
        c->low = low;
        c->high = high;
        return true;
    }
    if (node->input_count != 1 || node->output_count != 1 || !node->op ||
        !ort_unary_of_node(node, &id, &a, &b))
        return false;
    c->act = (int)id;
    c->act_a = a;
    c->act_b = b;
    return true;
}

static void read_steps(const ort_graph *graph, wide_conv *c)
{
    ort_node *node = ort_edit_only_reader(graph, c->conv->outputs[0]);
    while (take(graph, c, node)) {
        c->steps[c->count++] = node;
        node = ort_edit_only_reader(graph, node->outputs[0]);
    }
    if (ort_quant_read(graph, node, "QuantizeLinear", &c->out) && ort_quant_is_plain(&c->out) &&
        (ort_quant_is_byte(c->out.dtype) || ort_quant_is_wide(c->out.dtype)))
        c->steps[c->count++] = node;
    else
        c->out.node = NULL;
}

/* ---- what fits */

static bool fits_weight(const ort_graph *graph, const wide_conv *c)
{
    const ort_tensor *w = ort_edit_constant(graph, c->w.node, 0);
    const int64_t group = ort_node_attr_int(c->conv, "group");
    return w && w->data && w->shape.rank >= 3 && w->shape.rank <= 5 && ort_tensor_count(w) > 0 &&
           group > 0 && w->shape.dim[0] % group == 0;
}

static bool fits_scales(const ort_graph *graph, const wide_conv *c)
{
    const ort_tensor *w = ort_edit_constant(graph, c->w.node, 0);
    return ort_quant_is_plain(&c->w) || (ort_axis_in(c->w.axis, w->shape.rank) == 0 &&
                                         ort_tensor_count(c->w.scale) == w->shape.dim[0]);
}

/* Why it stays float; NULL: it needn't. */
static const char *read_conv(const ort_graph *graph, wide_conv *c)
{
    if (!ort_quant_is_plain(&c->x))
        return "not integer: 16-bit codes have several scales";
    if (!ort_quant_read(graph, ort_edit_producer(graph, c->conv->inputs[1]), "DequantizeLinear",
                        &c->w) || !ort_quant_is_byte(c->w.dtype))
        return "not integer: weights beside 16-bit codes aren't bytes with constant scales";
    if (!fits_weight(graph, c))
        return "not integer: weights beside 16-bit codes aren't constants of up to three axes";
    if (!fits_scales(graph, c))
        return "not integer: the scales of the weights aren't one per channel";
    if (ort_edit_input(c->conv, 3) != ORT_ID_NONE)
        return "not integer: it takes in a sum";
    if (!ort_float_conv_knows_bias(graph, c->conv))
        return "not integer: its bias isn't constant";
    return read_own(c) ? NULL : "not integer: its activation has no form behind codes";
}

/* ---- the node */

static ort_status replace(ort_graph *graph, const wide_conv *c, ort_error *err)
{
    static const char *const shared[] = {"auto_pad", "dilations", "group", "kernel_shape", "pads",
                                         "strides"};
    enum { SHARED = sizeof shared / sizeof *shared, OWN = 5 };
    ort_attr set[SHARED + OWN];
    int count = 0;
    for (int i = 0; i < SHARED; i++) {
        const ort_attr *attr = ort_node_has(c->conv, shared[i])
                                   ? ort_edit_attr(c->conv, shared[i], &set[count]) : NULL;
        if (attr)
            set[count++] = *attr;
    }
    set[count++] = ort_attr_float("low", c->low);
    set[count++] = ort_attr_float("high", c->high);
    set[count++] = ort_attr_int("act", c->act);
    set[count++] = ort_attr_float("act_a", (double)c->act_a);
    set[count++] = ort_attr_float("act_b", (double)c->act_b);
    ort_node *last = c->count ? c->steps[c->count - 1] : c->conv;
    ort_node merged = *c->conv;
    ort_id read[3], out = last->outputs[0];
    ort_id inputs[9] = {c->x.node->inputs[0], c->x.node->inputs[1], ort_edit_input(c->x.node, 2),
                        c->w.node->inputs[0], c->w.node->inputs[1], ort_edit_input(c->w.node, 2),
                        ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE};
    if (c->out.node) {
        inputs[6] = c->out.node->inputs[1];
        ORT_TRY(ort_quant_zero_input(graph, &c->out, &inputs[7], err));
    }
    ORT_TRY(ort_float_conv_bias(graph, c->conv, &inputs[8], err));
    for (int i = 0; i < 3; i++)
        read[i] = ort_edit_input(c->conv, i);
    for (int i = 0; i < c->count; i++)
        merged.origin = ort_edit_origin(graph, &merged, c->steps[i]);
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "WideConv", .name = c->conv->name,
                          .inputs = inputs, .input_count = inputs[8] == ORT_ID_NONE ? 8 : 9,
                          .outputs = &out, .output_count = 1, .set = set, .set_count = count,
                          .origin = merged.origin};
    while (spec.input_count && inputs[spec.input_count - 1] == ORT_ID_NONE)
        spec.input_count--;
    for (int i = c->count - 1; i >= 0; i--)
        ort_graph_remove_node(graph, c->steps[i]);
    ort_graph_remove_node(graph, c->conv);
    ORT_TRY(ort_edit_add_node(graph, &spec, NULL, err));
    for (int i = 0; i < 3; i++)
        if (read[i] != ORT_ID_NONE)
            ort_quant_drop_unread(graph, read[i]);
    return ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    if (!c->target || c->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        wide_conv found = {.conv = node};
        if (!ort_edit_is_any(node, "Conv|ms.FusedConv") ||
            !ort_quant_read(c->graph, ort_edit_producer(c->graph, node->inputs[0]),
                            "DequantizeLinear", &found.x) ||
            !ort_quant_is_wide(found.x.dtype))
            continue;
        const char *why = read_conv(c->graph, &found);
        if (why) {
            ort_pass_note(c, node, "%s", why);
            continue;
        }
        read_steps(c->graph, &found);
        ORT_TRY(replace(c->graph, &found, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_wide_convs = {
    .name = "wide_convs",
    .level = 3,
    .doc = "convolutions of 16-bit codes by 8-bit weights multiply the codes (cpu only)",
    .apply = apply,
};
