/* quant_bias.c - the codes of a bias (quant_bias.h). A float bias is rounded to them; that is
 * refused where a code is coarser than those of the result, or does not fit. */
#include "pass/numbers/quant_bias.h"

#include <math.h>

#include "base/error.h"
#include "pass/facts/facts.h"

static double scale_at(const ort_tensor *scale, int64_t channel)
{
    return ort_tensor_get_f64(scale, ort_tensor_count(scale) == 1 ? 0 : channel);
}

static double bias_scale(const ort_quant_product *p, int64_t channel)
{
    return ort_quant_scale(p->x) * scale_at(p->w->scale, channel);
}

/* What the bias input holds: a constant of floats, or codes with their parameters. */
typedef struct source {
    const ort_tensor *data, *scale, *zero;
    ort_id codes; /* or ORT_ID_NONE */
} source;

static bool read_source(const ort_graph *graph, const ort_node *node, int slot, source *b)
{
    ort_node *producer = ort_edit_producer(graph, node->inputs[slot]);
    *b = (source){.data = ort_edit_constant(graph, node, slot), .codes = ORT_ID_NONE};
    if (ort_edit_is(producer, ONNX, "DequantizeLinear")) {
        b->codes = producer->inputs[0];
        b->data = ort_edit_constant(graph, producer, 0);
        b->scale = ort_edit_constant(graph, producer, 1);
        b->zero = ort_edit_constant(graph, producer, 2);
        if (!b->scale || !b->scale->data || ort_node_attr_int(producer, "block_size") ||
            (ort_edit_input(producer, 2) != ORT_ID_NONE && !b->zero))
            return false;
    }
    return b->data && b->data->data;
}

static bool has_channels(const source *b, int64_t channels)
{
    return ort_tensor_is_row(b->data, channels) &&
           (!b->scale || ort_tensor_count(b->scale) == 1 ||
            ort_tensor_count(b->scale) == channels);
}

/* As a float. */
static double value_at(const source *b, int64_t i)
{
    double v = ort_tensor_get_f64(b->data, i);
    if (b->zero)
        v -= scale_at(b->zero, i);
    return b->scale ? v * scale_at(b->scale, i) : v;
}

/* The codes are wanted ones already? Then they are shared. */
static bool is_coded(const ort_quant_product *p, const source *b)
{
    if (b->codes == ORT_ID_NONE || b->data->dtype != ORT_DTYPE_INT32)
        return false;
    for (int64_t i = 0; b->zero && i < ort_tensor_count(b->zero); i++)
        if (ort_tensor_get_i64(b->zero, i))
            return false;
    for (int64_t i = 0; i < ort_tensor_count(b->data); i++) {
        double have = scale_at(b->scale, i);
        if (fabs(have - bias_scale(p, i)) > 1e-5 * have)
            return false;
    }
    return true;
}

/* The reason why not, or NULL. */
static const char *make_codes(const ort_quant_product *p, const source *b, ort_tensor *codes)
{
    for (int64_t i = 0; i < ort_tensor_count(codes); i++) {
        double code = rint(value_at(b, i) / bias_scale(p, i));
        if (!(fabs(code) <= 1 << 30))
            return "the bias is too large for its codes";
        if (!(fabs(bias_scale(p, i)) <= ort_quant_scale(p->out)))
            return "codes of the bias would be too coarse";
        ort_tensor_set_i64(codes, i, (int64_t)code);
    }
    return NULL;
}

ort_status ort_quant_bias(ort_graph *graph, const ort_node *node, const ort_quant_product *p,
                          ort_id *id, const char **why, ort_error *err)
{
    source b;
    ort_value *codes = NULL;
    *why = "the bias isn't one constant per channel";
    if (!read_source(graph, node, p->slot, &b) || !has_channels(&b, p->channels))
        return ORT_OK;
    *why = NULL;
    if (is_coded(p, &b)) {
        *id = b.codes;
        return ORT_OK;
    }
    *why = "the bias isn't codes of the product's scale, and no scale of results bounds others";
    if (!p->out->scale)
        return ORT_OK;
    ORT_TRY(ort_value_new_tensor_(ORT_DTYPE_INT32, &b.data->shape, &codes, err));
    *why = make_codes(p, &b, &codes->tensor);
    const char *name = graph->values.data[node->inputs[p->slot]]->name;
    ort_status status =
        *why ? ORT_OK : ort_edit_add_constant(graph, name, &codes->tensor, id, err);
    ort_value_free(codes);
    return status;
}
