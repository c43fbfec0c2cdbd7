/* quant_scaled.c - numbers that scale what codes give go into the scales of codes: alpha and beta
 * of a Gemm, since products of codes have neither, and a factor before a QuantizeLinear (session).
 *
 *     Gemm(a, DequantizeLinear(b, s, z), c, alpha, beta)
 *     Gemm(a, DequantizeLinear(b, alpha s, z), beta c)
 *
 *     QuantizeLinear(number x AveragePool(DequantizeLinear(a)), s, z)
 *     QuantizeLinear(AveragePool(DequantizeLinear(a)), s / number, z)    of means, products
 *
 * The codes stay as they are, also where another product reads them by other scales. Of a bias that
 * is codes, too, its scale takes beta. A scale that would not be a normal number above zero stays.
 */
#include <math.h>

#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"
#include "tensor/scalar.h"

static bool is_factor(float x)
{
    return isnormal(x) && x > 0;
}

/* Normal numbers above zero, times x as well? */
static bool can_scale(const ort_tensor *scale, float x)
{
    for (int64_t i = 0; i < ort_tensor_count(scale); i++)
        if (!is_factor((float)ort_tensor_get_f64(scale, i)) ||
            !is_factor((float)ort_tensor_get_f64(scale, i) * x))
            return false;
    return true;
}

/* Of constants; of codes that another DequantizeLinear reads, as well. */
static bool reads_codes(const ort_graph *graph, ort_id id, ort_quant *q)
{
    return ort_quant_read(graph, ort_edit_producer(graph, id), "DequantizeLinear", q);
}

static const ort_tensor *floats_of(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    return t && t->data && t->dtype == ORT_DTYPE_FLOAT ? t : NULL;
}

typedef struct scaled {
    ort_node *node;
    float alpha, beta;
    ort_quant weights, bias;      /* bias.node NULL: floats, or none */
    const ort_tensor *bias_floats;
    bool drops_bias;              /* beta is 0 */
} scaled;

/* Why alpha and beta stay, or NULL. */
static const char *check(const ort_graph *graph, scaled *s)
{
    const bool biased = ort_edit_input(s->node, 2) != ORT_ID_NONE;
    s->drops_bias = biased && s->beta == 0;
    if (s->alpha != 1 && (!is_factor(s->alpha) || !can_scale(s->weights.scale, s->alpha)))
        return "alpha times a scale isn't a normal number above zero";
    if (!biased || s->drops_bias || s->beta == 1)
        return NULL;
    s->bias_floats = floats_of(graph, s->node, 2);
    if (s->bias_floats)
        return isfinite(s->beta) ? NULL : "beta isn't finite";
    if (!reads_codes(graph, s->node->inputs[2], &s->bias))
        return "its bias is computed, and beta isn't 1";
    return is_factor(s->beta) && can_scale(s->bias.scale, s->beta)
               ? NULL : "beta times a scale isn't a normal number above zero";
}

static ort_status add_floats(ort_graph *graph, const ort_tensor *t, ort_id of, float factor,
                             ort_id *id, ort_error *err)
{
    ort_tensor made;
    const float *from = t->data;
    ORT_TRY(ort_edit_new_constant(graph, graph->values.data[of]->name, ORT_DTYPE_FLOAT, &t->shape,
                                  &made, id, err));
    for (int64_t i = 0; i < ort_tensor_count(t); i++)
        ((float *)made.data)[i] = from[i] * factor;
    return ORT_OK;
}

/* The numbers of the same codes by other scales. */
static ort_status rescale(ort_graph *graph, const ort_quant *q, float factor, ort_id *numbers,
                          ort_error *err)
{
    ort_id inputs[3] = {q->node->inputs[0], ORT_ID_NONE, ort_edit_input(q->node, 2)};
    ORT_TRY(add_floats(graph, q->scale, q->node->inputs[1], factor, &inputs[1], err));
    *numbers = ort_graph_add_value(graph, graph->values.data[q->node->outputs[0]]->name);
    if (*numbers == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *numbers);
    ort_node_spec spec = ort_edit_again(q->node);
    spec.inputs = inputs;
    spec.input_count = inputs[2] == ORT_ID_NONE ? 2 : 3;
    spec.outputs = numbers;
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status fold(ort_graph *graph, const scaled *s, ort_error *err)
{
    ort_node *node = s->node;
    ort_id was[3], in[3];
    for (int i = 0; i < 3; i++)
        was[i] = in[i] = ort_edit_input(node, i);
    if (s->alpha != 1)
        ORT_TRY(rescale(graph, &s->weights, s->alpha, &in[1], err));
    if (s->bias_floats)
        ORT_TRY(add_floats(graph, s->bias_floats, was[2], s->beta, &in[2], err));
    else if (s->bias.node)
        ORT_TRY(rescale(graph, &s->bias, s->beta, &in[2], err));
    else if (s->drops_bias)
        in[2] = ORT_ID_NONE;
    const ort_attr ones[2] = {ort_attr_float("alpha", 1), ort_attr_float("beta", 1)};
    ort_node_spec spec = ort_edit_again(node);
    spec.inputs = in;
    spec.input_count = in[2] == ORT_ID_NONE ? 2 : 3;
    spec.set = ones;
    spec.set_count = 2;
    ORT_TRY(ort_edit_replace(graph, node, NULL, &spec, err));
    for (int i = 1; i < 3; i++)
        if (was[i] != in[i] && was[i] != ORT_ID_NONE)
            ort_quant_drop_unread(graph, was[i]);
    return ORT_OK;
}

static ort_status try_at(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    scaled s = {.node = node};
    ort_quant a;
    if (!ort_edit_is(node, ONNX, "Gemm"))
        return ORT_OK;
    s.alpha = ort_node_attr_float(node, "alpha");
    s.beta = ort_node_attr_float(node, "beta");
    if ((s.alpha == 1 && (s.beta == 1 || ort_edit_input(node, 2) == ORT_ID_NONE)) ||
        !reads_codes(c->graph, node->inputs[0], &a) ||
        !reads_codes(c->graph, node->inputs[1], &s.weights))
        return ORT_OK;
    const char *why = check(c->graph, &s);
    if (why) {
        ort_pass_note(c, node, "%s", why);
        return ORT_OK;
    }
    ++*changes;
    return fold(c->graph, &s, err);
}

/* ---- a factor before a QuantizeLinear */

/* x * number, x / number: the slot of x; -1: it is neither. */
static int factor_of(const ort_graph *graph, const ort_node *node, double *factor)
{
    const bool mul = ort_edit_is(node, ONNX, "Mul");
    double number;
    for (int slot = 0; (mul || ort_edit_is(node, ONNX, "Div")) && slot < (mul ? 2 : 1); slot++) {
        const ort_tensor *t = floats_of(graph, node, 1 - slot);
        if (!t || !ort_tensor_one_f64(t, &number) ||
            !ort_facts_same_shape(ort_fact_type(graph, node->inputs[slot]),
                                  ort_fact_type(graph, node->outputs[0])))
            continue;
        *factor = mul ? number : 1 / number;
        return slot;
    }
    return -1;
}

/* PyTorch's writers have it behind means that a device computes in another way, and behind the
 * scores of attention. */
static ort_status take_factor(ort_pass_context *c, ort_node *quantize, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_node *mul = ort_edit_producer(graph, quantize->inputs[0]);
    double factor = 0;
    ort_quant q;
    ort_tensor made;
    const int slot = mul && !c->portable ? factor_of(graph, mul, &factor) : -1;
    const ort_node *before = slot < 0 ? NULL : ort_edit_producer(graph, mul->inputs[slot]);
    if (!ort_edit_is_any(before, "Conv|ConvTranspose|MatMul|Gemm|AveragePool|GlobalAveragePool|"
                                 "ReduceMean") ||
        ort_edit_only_reader(graph, mul->inputs[slot]) != mul ||
        ort_edit_only_reader(graph, mul->outputs[0]) != quantize ||
        !ort_fact_is_coded(graph, before->inputs[0]) ||
        !ort_quant_read(graph, quantize, "QuantizeLinear", &q) || !ort_quant_is_plain(&q))
        return ORT_OK;
    const float scale = (float)(ort_quant_scale(&q) / factor);
    if (!is_factor(scale))
        return ORT_OK;
    ort_id inputs[3] = {mul->inputs[slot], ORT_ID_NONE, ort_edit_input(quantize, 2)};
    ORT_TRY(ort_edit_new_constant(graph, graph->values.data[quantize->inputs[1]]->name,
                                  ORT_DTYPE_FLOAT, &q.scale->shape, &made, &inputs[1], err));
    ort_tensor_set_f64(&made, 0, (double)scale);
    ort_node_spec spec = ort_edit_again(quantize);
    spec.inputs = inputs;
    ++*changes;
    return ort_edit_replace(graph, mul, quantize, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (ort_edit_is(node, ONNX, "QuantizeLinear"))
            ORT_TRY(take_factor(c, node, changes, err));
        else
            ORT_TRY(try_at(c, node, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_quant_scaled = {
    .name = "quant_scaled",
    .level = 2,
    .doc = "alpha and beta of products of codes, and factors of their results, go into scales",
    .apply = apply,
};
