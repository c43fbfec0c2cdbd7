/* qdq.c - Q and DQ nodes for values, codes for weights and biases, and readers that take those.
 *
 *     x -> QuantizeLinear -> DequantizeLinear -> x'        what is computed
 *     codes -> DequantizeLinear -> w'                      weights; biases, in int32
 *
 * Nodes on codes read x'. So does every other reader of what such a node computes, which then never
 * leaves codes; what is computed in float stays exact for those.
 */
#include "quantize/qdq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"

typedef struct twin {
    ort_id value;         /* the dequantized form, or ORT_ID_NONE */
    ort_id scale, zero;   /* of a grid */
    const float *scales;  /* of a weight's channels */
    int64_t channels;
    int axis;             /* -1: one scale */
} twin;

typedef struct writer {
    ort_graph *graph;
    const ort_placement *place;
    const ort_qdq_options *options;
    twin *twins;          /* by value that the graph had */
    size_t value_count, node_count; /* that the graph had */
} writer;

static const char *name_of(const writer *w, ort_id id)
{
    return w->graph->values.data[id]->name;
}

static const char *joined(const writer *w, const char *stem, const char *what)
{
    return ort_arena_printf(&w->graph->model->arena, "%s_%s", stem, what);
}

static ort_status constant_of(writer *w, const char *stem, const char *what, ort_dtype dtype,
                              int rank, int64_t count, ort_tensor *tensor, ort_id *id,
                              ort_error *err)
{
    ort_shape shape = {.rank = rank, .dim = {count}};
    const char *name = joined(w, stem, what);
    if (!name)
        return ort_error_memory(err, strlen(stem));
    return ort_edit_new_constant(w->graph, name, dtype, &shape, tensor, id, err);
}

static void put_code(ort_tensor *t, int64_t i, int code)
{
    ort_tensor_set_f64(t, i, code);
}

static ort_status add_linear(writer *w, const char *op_type, const char *stem, const ort_id in[3],
                             int axis, ort_id *result, ort_error *err)
{
    const char *name = joined(w, stem, op_type);
    ort_attr attr = ort_attr_int("axis", axis);
    ort_id out = name ? ort_graph_add_value(w->graph, name) : ORT_ID_NONE;
    ort_node *node;
    if (out == ORT_ID_NONE)
        return ort_error_memory(err, strlen(stem));
    ort_node_spec spec = {.domain = "", .op_type = op_type, .name = name_of(w, out), .inputs = in,
                          .input_count = 3, .outputs = &out, .output_count = 1, .set = &attr,
                          .set_count = axis >= 0};
    *result = out;
    return ort_edit_add_node(w->graph, &spec, &node, err);
}

/* ---- grids of activations */

static ort_status write_grid(writer *w, ort_id root, ort_error *err)
{
    twin *t = &w->twins[root];
    ort_tensor scale, zero;
    if (t->scale != ORT_ID_NONE)
        return ORT_OK;
    const ort_grid grid = w->options->grids[root];
    ORT_TRY(constant_of(w, name_of(w, root), "scale", ORT_DTYPE_FLOAT, 0, 0, &scale, &t->scale,
                        err));
    ORT_TRY(constant_of(w, name_of(w, root), "zero_point", w->options->activations.dtype, 0, 0,
                        &zero, &t->zero, err));
    *(float *)scale.data = grid.scale;
    put_code(&zero, 0, grid.zero_point);
    return ORT_OK;
}

static ort_id root_of(const writer *w, ort_id id)
{
    while (w->place->values[id].grid != id)
        id = w->place->values[id].grid;
    return id;
}

static ort_status write_pair(writer *w, ort_id id, ort_error *err)
{
    ort_id root = root_of(w, id), codes;
    ORT_TRY(write_grid(w, root, err));
    const twin *grid = &w->twins[root];
    ORT_TRY(add_linear(w, "QuantizeLinear", name_of(w, id),
                       (const ort_id[]){id, grid->scale, grid->zero}, -1, &codes, err));
    return add_linear(w, "DequantizeLinear", name_of(w, id),
                      (const ort_id[]){codes, grid->scale, grid->zero}, -1, &w->twins[id].value,
                      err);
}

/* ---- constants */

typedef struct channels {
    int64_t outer, count, inner; /* a tensor as [outer][count][inner] */
} channels;

static channels channels_of(const ort_tensor *t, int axis)
{
    channels c = {1, 1, ort_tensor_count(t)};
    if (axis < 0)
        return c;
    c.count = t->shape.dim[axis];
    c.inner = 1;
    for (int i = 0; i < t->shape.rank; i++)
        *(i < axis ? &c.outer : i > axis ? &c.inner : &c.count) *= i == axis ? 1 : t->shape.dim[i];
    return c;
}

/* One channel of a weight, gathered; its grid, and its codes. */
typedef struct weight {
    const ort_tensor *from;
    ort_tensor to;
    channels c;
    const ort_codes_range *codes;
    bool fits;       /* the best grid, not that of the range */
    double least_scale; /* what its bias needs, or 0 */
    float *line;     /* [outer * inner] */
} weight;

static ort_grid quantize_channel(weight *w, int64_t k, double least_scale)
{
    int64_t n = 0;
    float least = 0, most = 0;
    for (int64_t o = 0; o < w->c.outer; o++)
        for (int64_t i = 0; i < w->c.inner; i++) {
            float v = ((const float *)w->from->data)[(o * w->c.count + k) * w->c.inner + i];
            v = isfinite(v) ? v : 0;
            least = v < least ? v : least;
            most = v > most ? v : most;
            w->line[n++] = v;
        }
    ort_grid grid = w->fits ? ort_grid_fit(w->codes, w->line, n, 1, NULL)
                            : ort_grid_of(w->codes, least, most);
    if ((double)grid.scale < least_scale)
        grid.scale = (float)least_scale;
    n = 0;
    for (int64_t o = 0; o < w->c.outer; o++)
        for (int64_t i = 0; i < w->c.inner; i++)
            put_code(&w->to, (o * w->c.count + k) * w->c.inner + i,
                     ort_grid_code(w->codes, grid, w->line[n++]));
    return grid;
}

/* A bias has codes of the scale of its products: 30 bits must hold them. */
static double scale_for_bias(const ort_tensor *bias, int64_t k, double input_scale)
{
    if (!bias || k >= ort_tensor_count(bias))
        return 0;
    return fabs((double)((const float *)bias->data)[k]) / input_scale / (double)(1 << 30);
}

static ort_status quantize_weight(writer *w, ort_id id, const ort_codes_range *codes, bool fits,
                                  int axis, const ort_tensor *bias, double input_scale,
                                  ort_error *err)
{
    twin *t = &w->twins[id];
    const char *stem = name_of(w, id);
    weight q = {.from = ort_graph_weight(w->graph, id), .codes = codes, .fits = fits};
    ort_tensor scale, zero;
    ort_id code_id;
    const char *name = joined(w, stem, "codes");
    if (!q.from || !name)
        return ort_error_memory(err, 0);
    q.c = channels_of(q.from, axis);
    int rank = axis >= 0;
    ORT_TRY(ort_edit_new_constant(w->graph, name, codes->dtype, &q.from->shape, &q.to, &code_id,
                                  err));
    ORT_TRY(constant_of(w, stem, "scale", ORT_DTYPE_FLOAT, rank, q.c.count, &scale, &t->scale,
                        err));
    ORT_TRY(constant_of(w, stem, "zero_point", codes->dtype, rank, q.c.count, &zero, &t->zero,
                        err));
    q.line = malloc((size_t)(q.c.outer * q.c.inner + 1) * sizeof *q.line);
    if (!q.line)
        return ort_error_memory(err, sizeof *q.line);
    for (int64_t k = 0; k < q.c.count; k++) {
        double need = axis < 0 ? 0 : scale_for_bias(bias, k, input_scale);
        for (int64_t b = 0; axis < 0 && bias && b < ort_tensor_count(bias); b++)
            need = fmax(need, scale_for_bias(bias, b, input_scale));
        ort_grid grid = quantize_channel(&q, k, need);
        ((float *)scale.data)[k] = grid.scale;
        put_code(&zero, k, grid.zero_point);
    }
    free(q.line);
    t->scales = scale.data;
    t->channels = q.c.count;
    t->axis = axis;
    return add_linear(w, "DequantizeLinear", stem, (const ort_id[]){code_id, t->scale, t->zero},
                      axis, &t->value, err);
}

/* round(bias / (scale of the input * scale of the weight)), ONNX's QLinearConv. */
static ort_status write_bias(writer *w, ort_node *node, int slot, float input_scale,
                             const twin *weights, ort_error *err)
{
    ort_id id = node->inputs[slot], codes, scale_id, zero_id, result;
    const ort_tensor *bias = ort_graph_weight(w->graph, id);
    ort_tensor code, scale, zero;
    if (!bias)
        return ort_error_memory(err, 0);
    int64_t n = ort_tensor_count(bias);
    bool each = weights->axis >= 0;
    const char *stem = name_of(w, id);
    ORT_TRY(constant_of(w, stem, "codes", ORT_DTYPE_INT32, 1, n, &code, &codes, err));
    ORT_TRY(constant_of(w, stem, "scale", ORT_DTYPE_FLOAT, each, n, &scale, &scale_id, err));
    ORT_TRY(constant_of(w, stem, "zero_point", ORT_DTYPE_INT32, each, n, &zero, &zero_id, err));
    for (int64_t i = 0; i < n; i++) {
        float s = input_scale * weights->scales[each ? i : 0];
        double q = nearbyint((double)((const float *)bias->data)[i] / (double)s);
        ((int32_t *)code.data)[i] = (int32_t)fmin(fmax(q, INT32_MIN), INT32_MAX);
        ((float *)scale.data)[each ? i : 0] = s;
        ((int32_t *)zero.data)[each ? i : 0] = 0;
    }
    ORT_TRY(add_linear(w, "DequantizeLinear", stem, (const ort_id[]){codes, scale_id, zero_id},
                       each ? 0 : -1, &result, err));
    ort_node_set_input(w->graph, node, slot, result);
    return ORT_OK;
}

/* The bias of a product whose codes can stand for it: a vector, one number an output channel. */
static const ort_tensor *bias_of(const writer *w, const ort_node *node,
                                 const ort_place_product *product, int64_t outputs)
{
    const ort_tensor *bias = product->bias < 0 ? NULL
                             : w->graph->values.data[node->inputs[product->bias]]->fact.value;
    bool scaled = ort_edit_is(node, ONNX, "Gemm") &&
                  (ort_node_float(node, "alpha", 1) != 1 || ort_node_float(node, "beta", 1) != 1);
    return bias && bias->dtype == ORT_DTYPE_FLOAT && bias->shape.rank == 1 && !scaled &&
                   bias->shape.dim[0] == outputs
               ? bias
               : NULL;
}

static ort_status write_product(writer *w, ort_node *node, ort_error *err)
{
    ort_place_product product;
    if (!ort_place_is_product(w->graph, node, &product))
        return ORT_OK;
    ort_id id = node->inputs[product.weight];
    const ort_tensor *t = w->graph->values.data[id]->fact.value;
    if (!t || !w->place->values[id].weight)
        return ORT_OK;
    int axis = w->options->per_tensor || t->shape.rank < 2 ? -1 : product.axis;
    int64_t outputs = product.axis >= 0 ? t->shape.dim[product.axis] : -1;
    const ort_tensor *bias = bias_of(w, node, &product, outputs);
    float input = w->options->grids[root_of(w, node->inputs[0])].scale;
    twin *own = &w->twins[id];
    if (own->value == ORT_ID_NONE || own->axis != axis)
        ORT_TRY(quantize_weight(w, id, &w->options->weights, w->options->fit_weights, axis, bias,
                                (double)input, err));
    ort_node_set_input(w->graph, node, product.weight, own->value);
    return bias ? write_bias(w, node, product.bias, input, own, err) : ORT_OK;
}

/* ---- readers */

static bool on_codes(const writer *w, ort_id node)
{
    return node != ORT_ID_NONE && node < w->node_count &&
           w->place->nodes[node].part != ORT_PART_FLOAT;
}

static void rewire(writer *w, ort_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i];
        if (id == ORT_ID_NONE || id >= w->value_count || w->twins[id].value == ORT_ID_NONE)
            continue;
        if (w->place->values[id].coded &&
            (ort_place_reads(w->graph, node, i) && on_codes(w, node->id) ? true
             : on_codes(w, ort_graph_producer(w->graph, id))))
            ort_node_set_input(w->graph, node, i, w->twins[id].value);
    }
}

/* Constants that nobody reads any more. */
static void sweep(ort_graph *graph)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_graph_value *v = graph->values.data[graph->initializers.data[i]];
        if (v->use_count > 0 || v->is_output || v->is_input)
            graph->initializers.data[kept++] = graph->initializers.data[i];
    }
    graph->initializers.count = kept;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        ort_node *node = graph->nodes.data[i];
        if (!node->removed && ort_node_is_constant(node) &&
            graph->values.data[node->outputs[0]]->use_count == 0)
            ort_graph_remove_node(graph, node);
    }
}

static ort_status write_all(writer *w, ort_error *err)
{
    const size_t nodes = w->graph->order.count;
    for (size_t i = 0; i < nodes; i++) /* weights first: biases ask for their scales */
        ORT_TRY(write_product(w, w->graph->nodes.data[w->graph->order.data[i]], err));
    for (size_t id = 0; id < w->value_count; id++) {
        if (!w->place->values[id].coded)
            continue;
        if (w->graph->values.data[id]->fact.value)
            ORT_TRY(quantize_weight(w, (ort_id)id, &w->options->activations, true, -1, NULL, 1,
                                    err));
        else
            ORT_TRY(write_pair(w, (ort_id)id, err));
    }
    for (size_t i = 0; i < nodes; i++)
        rewire(w, w->graph->nodes.data[w->graph->order.data[i]]);
    ORT_TRY(ort_edit_finish(w->graph, err));
    sweep(w->graph);
    return ort_edit_finish(w->graph, err);
}

ort_status ort_qdq_write(ort_graph *graph, const ort_placement *place,
                         const ort_qdq_options *options, ort_error *err)
{
    writer w = {.graph = graph, .place = place, .options = options,
                .value_count = graph->values.count, .node_count = graph->nodes.count};
    w.twins = malloc((w.value_count + 1) * sizeof *w.twins);
    if (!w.twins)
        return ort_error_memory(err, w.value_count * sizeof *w.twins);
    for (size_t i = 0; i < w.value_count; i++)
        w.twins[i] = (twin){.value = ORT_ID_NONE, .scale = ORT_ID_NONE, .zero = ORT_ID_NONE};
    ort_status status = write_all(&w, err);
    free(w.twins);
    return status;
}
