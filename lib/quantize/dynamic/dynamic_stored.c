/* dynamic_stored.c - weights of nodes that stay float, as codes in the file alone:
 *
 *     (Cast(codes) - zero points) * scales
 *
 * which every runtime computes once, when it loads the model: the node runs as before, and its
 * weight takes a quarter of the file. What is multiplied isn't rounded, so that this costs less
 * than a product of bytes would.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "quantize/dynamic/dynamic_parts.h"

/* Of a net of convolutions most would be rounded for a product or two: its weights stay. So do
 * those of a model of which nothing becomes integer. */
static bool pays(const ort_dynamic *d)
{
    double integer = 0, stored = 0;
    for (size_t k = 0; k < d->units.count; k++) {
        const ort_dynamic_unit *u = &d->units.data[k];
        for (int i = 0; i < u->weight_count; i++)
            *(u->stored ? &stored : &integer) +=
                ort_dynamic_numbers(&d->weights.data[u->weights[i]]);
    }
    return integer > stored;
}

ort_status ort_dynamic_settle_stored(ort_dynamic *d, ort_error *err)
{
    const bool stores = pays(d);
    size_t left = 0;
    for (size_t k = 0; k < d->units.count; k++) {
        const ort_dynamic_unit *u = &d->units.data[k];
        if (u->stored) {
            char why[256];
            snprintf(why, sizeof why, "%s%s", u->stored,
                     stores ? "; its weight lies in the file as codes" : "");
            if (!ort_quantize_notes_stays(d->notes, u->note, why))
                return ort_error_memory(err, sizeof why);
        }
        if (!u->stored || stores)
            d->units.data[left++] = *u;
    }
    d->units.count = left;
    return ORT_OK;
}

/* One number of all, or one a channel, where these lie. */
static ort_shape shape_of(const ort_dynamic_weight *w, bool single)
{
    const ort_type *type = &w->graph->values.data[w->id]->fact.type;
    ort_shape shape = {.rank = single ? 0 : type->rank};
    int64_t channels = w->channels;
    for (int i = 0; i < shape.rank; i++) {
        shape.dim[i] = i >= w->axis && channels > 1 ? type->dim[i].size : 1;
        channels = i >= w->axis ? channels / type->dim[i].size : channels;
    }
    return shape;
}

typedef struct written {
    const ort_dynamic_weight *w;
    const char *stem;
} written;

static ort_status add(const written *n, const char *op_type, const char *what,
                      const ort_id *inputs, int count, ort_id *result, ort_error *err)
{
    char name[512];
    const ort_attr to = ort_attr_int("to", ORT_DTYPE_FLOAT);
    snprintf(name, sizeof name, "%.480s_%s", n->stem, what);
    const ort_id out = ort_graph_add_value(n->w->graph, name);
    if (out == ORT_ID_NONE)
        return ort_error_memory(err, sizeof name);
    const ort_node_spec spec = {.domain = ONNX, .op_type = op_type,
                                .name = n->w->graph->values.data[out]->name, /* unique */
                                .inputs = inputs, .input_count = count, .outputs = &out,
                                .output_count = 1, .set = &to, .set_count = count == 1};
    ORT_TRY(ort_edit_add_node(n->w->graph, &spec, NULL, err));
    *result = out; /* may be among the inputs */
    return ORT_OK;
}

/* Numbers of channels as a float constant: the zero points, or the scales. */
static ort_status numbers(const written *n, bool zeros, bool single, ort_id *id, ort_error *err)
{
    const ort_shape shape = shape_of(n->w, single);
    ort_tensor t;
    ORT_TRY(ort_dynamic_constant_of(n->w->graph, n->stem, zeros ? "zero_point" : "scale",
                                    ORT_DTYPE_FLOAT, &shape, &t, id, err));
    for (int64_t k = 0; k < ort_tensor_count(&t); k++)
        ((float *)t.data)[k] = zeros ? (float)n->w->zero[k] : n->w->scale[k];
    return ORT_OK;
}

ort_status ort_dynamic_write_stored(ort_dynamic *d, const ort_dynamic_unit *u, ort_error *err)
{
    ort_dynamic_weight *w = &d->weights.data[u->weights[0]];
    const written n = {w, w->graph->values.data[w->id]->name};
    ort_id in[2], result;
    bool even = true;
    if (w->restored)
        return ORT_OK;
    w->restored = true;
    for (int64_t k = 1; k < w->channels; k++)
        even = even && w->zero[k] == w->zero[0];
    ORT_TRY(add(&n, "Cast", "cast", &w->codes, 1, &in[0], err));
    if (!even || w->zero[0]) {
        ORT_TRY(numbers(&n, true, even, &in[1], err));
        ORT_TRY(add(&n, "Sub", "sub", in, 2, &in[0], err));
    }
    ORT_TRY(numbers(&n, false, w->channels == 1, &in[1], err));
    ORT_TRY(add(&n, "Mul", "mul", in, 2, &result, err));
    ort_graph_replace_uses(w->graph, w->id, result);
    return ORT_OK;
}
