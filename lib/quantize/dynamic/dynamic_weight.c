/* dynamic_weight.c - weights as codes: found behind captures and transposes, each quantized once
 * however many nodes read it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "quantize/balance.h"
#include "quantize/dynamic/dynamic_parts.h"
#include "quantize/results.h"
#include "quantize/shares.h"
#include "quantize/strips.h"

/* ---- finding */

static bool swaps_matrix(const ort_node *node)
{
    size_t count = 0;
    const int64_t *perm = ort_node_ints(node, "perm", &count);
    return !perm || (count == 2 && perm[0] == 1 && perm[1] == 0);
}

const ort_tensor *ort_dynamic_constant(const ort_graph *graph, ort_id id, ort_graph **owner,
                                       ort_id *own, bool *turned)
{
    enum { STEPS = 32 };
    *turned = false;
    for (int step = 0; id != ORT_ID_NONE && step < STEPS; step++) {
        const ort_graph_value *v = graph->values.data[id];
        const ort_node *node = ort_edit_producer(graph, id);
        if (v->outer != ORT_ID_NONE && graph->parent) {
            id = v->outer;
            graph = graph->parent;
        } else if (ort_edit_is(node, ONNX, "Identity")) {
            id = node->inputs[0];
        } else if (ort_edit_is(node, ONNX, "Transpose") && swaps_matrix(node) &&
                   ort_fact_ranked(graph, node->inputs[0], 2)) {
            *turned = !*turned;
            id = node->inputs[0];
        } else {
            const ort_tensor *t = ort_fact_constant(graph, id);
            *owner = (ort_graph *)(uintptr_t)graph;
            *own = id;
            return t && t->dtype == ORT_DTYPE_FLOAT ? t : NULL;
        }
    }
    return NULL;
}

static size_t find(const ort_dynamic *d, const ort_dynamic_weight *w)
{
    size_t k = 0;
    while (k < d->weights.count &&
           (d->weights.data[k].graph != w->graph || d->weights.data[k].id != w->id ||
            d->weights.data[k].channels != w->channels || d->weights.data[k].inner != w->inner ||
            d->weights.data[k].symmetric != w->symmetric))
        k++;
    return k;
}

const char *ort_dynamic_take(ort_dynamic *d, ort_dynamic_unit *u, int slot, int first, int last,
                             bool turned, bool symmetric)
{
    ort_dynamic_weight w = {
        .outer = 1, .channels = 1, .inner = 1, .axis = first, .symmetric = symmetric};
    bool behind;
    if (!ort_dynamic_constant(u->graph, u->node->inputs[slot], &w.graph, &w.id, &behind))
        return "its weight isn't a float constant";
    const ort_tensor *t = w.graph->values.data[w.id]->fact.value;
    for (int i = 0; i < t->shape.rank; i++)
        *(i < first && last > first ? &w.outer : i < last ? &w.channels : &w.inner) *=
            t->shape.dim[i];
    if (ort_tensor_count(t) == 0)
        return "its weight is empty";
    if (ort_quantize_is_result(w.graph, w.id))
        return ort_quantize_result_stays;
    w.symmetric = symmetric || d->options->symmetric_weights;
    size_t k = find(d, &w);
    if (k == d->weights.count) {
        if (!ort_strips_finite(d->model, t))
            return "its weight isn't finite";
        if (!ort_vec_push(&d->weights, w)) {
            d->no_memory = true;
            return "no memory";
        }
    }
    u->weights[u->weight_count++] = k;
    u->turned = u->turned || turned;
    return NULL;
}

void ort_dynamic_want_nearest(ort_dynamic *d, const ort_dynamic_unit *u, bool whole)
{
    for (int k = 0; k < u->weight_count; k++) {
        d->weights.data[u->weights[k]].nearest = true;
        d->weights.data[u->weights[k]].whole |= whole;
    }
}

/* ---- quantizing */

ort_status ort_dynamic_constant_of(ort_graph *graph, const char *stem, const char *what,
                                   ort_dtype dtype, const ort_shape *shape, ort_tensor *tensor,
                                   ort_id *id, ort_error *err)
{
    char name[512];
    snprintf(name, sizeof name, "%.480s_%s", stem, what);
    return ort_edit_new_constant(graph, name, dtype, shape, tensor, id, err);
}

typedef struct coding {
    const ort_dynamic *d;
    ort_dynamic_weight *w;
    uint8_t *to;
    int64_t rows, columns; /* to: turned, matrices of so many; 0: as the weight lies */
    int64_t plane;         /* numbers of a filter plane; 1 of a matrix */
    int64_t *pairs;        /* [channels] */
    bool failed;           /* set by any thread: no memory */
} coding;

static int64_t place_of(const coding *c, int64_t at)
{
    if (!c->rows)
        return at;
    int64_t matrix = at / (c->rows * c->columns), in = at % (c->rows * c->columns);
    return matrix * c->rows * c->columns + in % c->columns * c->rows + in / c->columns;
}

/* Sums of two neighbouring products of a byte without a sign and these codes that leave 16 bits. */
static bool saturates(int a, int b)
{
    return 255 * (a + b) > INT16_MAX || 255 * (a + b) < INT16_MIN;
}

/* Codes of a line, each the nearest or, unless they are to be so, balanced. False: no memory. */
static bool code_line(const coding *c, const ort_codes_range *codes, ort_grid grid,
                      const float *line, int64_t n, int *code)
{
    for (int64_t i = 0; i < n; i++)
        code[i] = ort_grid_code(codes, grid, line[i]);
    if (c->d->options->plain_weights || c->w->nearest)
        return true;
    const ort_balance_room room = {malloc((size_t)n * sizeof *room.error),
                                   malloc((size_t)n * sizeof *room.heap)};
    const bool done = room.error && room.heap;
    if (done)
        ort_balance_line(codes, grid, line, n, c->plane, NULL, code, &room);
    free(room.error);
    free(room.heap);
    return done;
}

static void code_channel(void *arg, int64_t k, const float *line, int thread)
{
    coding *c = arg;
    ort_dynamic_weight *w = c->w;
    const ort_codes_range *codes = w->symmetric ? &c->d->symmetric : &c->d->codes;
    const int64_t n = w->outer * w->inner;
    float least = 0, most = 0;
    (void)thread;
    for (int64_t i = 0; i < n; i++) {
        least = line[i] < least ? line[i] : least;
        most = line[i] > most ? line[i] : most;
    }
    ort_grid grid = c->d->options->plain_weights || w->whole
                        ? ort_grid_of(codes, least, most)
                        : ort_grid_fit(codes, line, n, 1, NULL);
    w->scale[k] = grid.scale;
    w->zero[k] = grid.zero_point;
    int *code = malloc((size_t)n * sizeof *code);
    if (!code || !code_line(c, codes, grid, line, n, code)) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        free(code);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (i / w->inner * w->channels + k) * w->inner + i % w->inner;
        c->to[place_of(c, at)] = (uint8_t)code[i];
        if (i % 2)
            c->pairs[k] += saturates(code[i - 1], code[i]);
    }
    free(code);
}

/* As the weight lies, not as its codes will. */
static int64_t plane_of(const ort_dynamic_weight *w, const ort_tensor *from)
{
    int64_t plane = 1;
    for (int i = 2; i < from->shape.rank && w->axis == 0; i++)
        plane *= from->shape.dim[i];
    return plane;
}

static ort_status code_weight(const ort_dynamic *d, ort_dynamic_weight *w, const ort_tensor *from,
                              ort_tensor *codes, ort_error *err)
{
    const ort_shape *shape = &codes->shape;
    const int64_t n = w->outer * w->inner;
    const ort_channels channels = {w->outer, w->channels, w->inner};
    ort_arena *arena = &d->model->arena;
    coding c = {.d = d, .w = w, .to = codes->data, .plane = plane_of(w, from)};
    if (!w->plain) { /* of the shape that it has now, swapped */
        c.rows = shape->dim[shape->rank - 1];
        c.columns = shape->dim[shape->rank - 2];
    }
    w->scale = ort_arena_array(arena, (size_t)w->channels, sizeof *w->scale);
    w->zero = ort_arena_array(arena, (size_t)w->channels, sizeof *w->zero);
    c.pairs = calloc((size_t)w->channels, sizeof *c.pairs);
    ort_status status = w->scale && w->zero && c.pairs
                            ? ort_lines_each(d->model, from, &channels, d->pool, code_channel, &c,
                                             err)
                            : ort_error_memory(err, (size_t)w->channels * sizeof *c.pairs);
    if (c.failed)
        status = ort_error_memory(err, (size_t)n * sizeof(int));
    double pairs = 0;
    for (int64_t k = 0; status == ORT_OK && k < w->channels; k++)
        pairs += (double)c.pairs[k];
    w->pairs = codes->dtype == ORT_DTYPE_INT8 && n > 1
                   ? pairs / ((double)w->channels * (double)(n / 2))
                   : 0;
    free(c.pairs);
    return status;
}

static void turn(ort_shape *shape)
{
    int64_t last = shape->dim[shape->rank - 1];
    shape->dim[shape->rank - 1] = shape->dim[shape->rank - 2];
    shape->dim[shape->rank - 2] = last;
}

static bool is_even(const ort_dynamic_weight *w)
{
    for (int64_t k = 1; k < w->channels; k++)
        if (w->zero[k] != w->zero[0])
            return false;
    return true;
}

static void put_zeros(const ort_dynamic_weight *w, ort_tensor *zeros)
{
    for (int64_t k = 0; k < ort_tensor_count(zeros); k++)
        ((uint8_t *)zeros->data)[k] = (uint8_t)w->zero[w->channels == 1 ? 0 : k];
}

static ort_status write_weight(ort_dynamic *d, ort_dynamic_weight *w, ort_error *err)
{
    const ort_tensor *t = w->graph->values.data[w->id]->fact.value;
    const char *stem = w->graph->values.data[w->id]->name;
    ort_shape shape = t->shape, vector = {.rank = w->channels > 1, .dim = {w->channels}};
    ort_tensor codes, scales, zeros;
    ort_id id;
    if (!w->plain)
        turn(&shape);
    ORT_TRY(ort_dynamic_constant_of(w->graph, stem, "quantized", d->codes.dtype, &shape, &codes,
                                    &id, err));
    *(w->plain ? &w->codes : &w->codes_turned) = id;
    ORT_TRY(code_weight(d, w, t, &codes, err));
    ort_model_forget(d->model, codes.data, ort_tensor_bytes(&codes));
    ORT_TRY(ort_dynamic_constant_of(w->graph, stem, "scale", ORT_DTYPE_FLOAT, &vector, &scales,
                                    &w->scales, err));
    memcpy(scales.data, w->scale, (size_t)w->channels * sizeof *w->scale);
    w->written = true;
    if (is_even(w) && w->zero[0] == 0)
        return ORT_OK;
    if (is_even(w))
        vector.rank = 0;
    ORT_TRY(ort_dynamic_constant_of(w->graph, stem, "zero_point", d->codes.dtype, &vector, &zeros,
                                    &w->zeros, err));
    put_zeros(w, &zeros);
    return ORT_OK;
}

static double count_of(const ort_dynamic_weight *w)
{
    return w->plain + w->turned ? ort_dynamic_numbers(w) : 0;
}

static ort_status write_all(ort_dynamic *d, ort_error *err)
{
    ort_shares shares = {d->options->on_share, d->options->share_arg};
    double total = 0;
    for (size_t k = 0; k < d->weights.count; k++)
        total += count_of(&d->weights.data[k]);
    ort_shares_begin(&shares, "quantizing", total);
    for (size_t k = 0; k < d->weights.count; k++) {
        ort_dynamic_weight *w = &d->weights.data[k];
        w->codes = w->codes_turned = w->scales = w->zeros = ORT_ID_NONE;
        if (w->plain + w->turned)
            ORT_TRY(write_weight(d, w, err));
        ort_shares_add(&shares, count_of(w));
    }
    return ORT_OK;
}

ort_status ort_dynamic_write_weights(ort_dynamic *d, ort_error *err)
{
    for (size_t k = 0; k < d->units.count; k++)
        for (int i = 0; i < d->units.data[k].weight_count; i++) {
            ort_dynamic_weight *w = &d->weights.data[d->units.data[k].weights[i]];
            const bool turned = d->units.data[k].turned && !d->units.data[k].stored;
            ++*(turned ? &w->turned : &w->plain);
        }
    return write_all(d, err);
}

/* ---- for a node */

/* The value of an outer graph as this one knows it. */
static ort_status bring(ort_graph *graph, const ort_graph *owner, ort_id *id, ort_error *err)
{
    if (graph == owner || *id == ORT_ID_NONE)
        return ORT_OK;
    ORT_TRY(bring(graph->parent, owner, id, err));
    *id = ort_graph_capture(graph, *id);
    return *id == ORT_ID_NONE ? ort_error_memory(err, sizeof *id) : ORT_OK;
}

/* Others read the codes as they lie. */
static ort_status turn_codes(ort_dynamic_weight *w, ort_error *err)
{
    int64_t perm[ORT_MAX_RANK];
    if (w->codes_turned != ORT_ID_NONE)
        return ORT_OK;
    const int rank = w->graph->values.data[w->codes]->fact.type.rank;
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    const ort_attr attr = ort_attr_ints("perm", perm, rank);
    return ort_edit_add_result(w->graph, "Transpose", &w->codes, 1, &attr, 1, &w->codes_turned,
                               err);
}

static ort_status shaped(const ort_dynamic_weight *w, ort_graph *graph, const ort_shape *shape,
                         double factor, ort_id *id, ort_error *err)
{
    const char *stem = w->graph->values.data[w->id]->name;
    ort_tensor t;
    ORT_TRY(ort_dynamic_constant_of(graph, stem, "scale", ORT_DTYPE_FLOAT, shape, &t, id, err));
    for (int64_t k = 0; k < ort_tensor_count(&t); k++)
        ((float *)t.data)[k] =
            (float)((double)w->scale[w->channels == 1 ? 0 : k] * factor);
    return ORT_OK;
}

static ort_status shaped_zero(const ort_dynamic *d, const ort_dynamic_weight *w, ort_graph *graph,
                              const ort_shape *shape, ort_id *id, ort_error *err)
{
    const char *stem = w->graph->values.data[w->id]->name;
    ort_tensor t;
    ORT_TRY(ort_dynamic_constant_of(graph, stem, "zero_point", d->codes.dtype, shape, &t, id,
                                    err));
    put_zeros(w, &t);
    return ORT_OK;
}

ort_status ort_dynamic_codes_of(ort_dynamic *d, const ort_dynamic_unit *u, int which,
                                const ort_shape *shape, double factor, bool with_zero,
                                ort_dynamic_codes *result, ort_error *err)
{
    ort_dynamic_weight *w = &d->weights.data[u->weights[which]];
    const ort_shape vector = {.rank = w->channels > 1, .dim = {w->channels}};
    if (u->turned)
        ORT_TRY(turn_codes(w, err));
    result->codes = u->turned ? w->codes_turned : w->codes;
    result->scale = w->scales;
    result->zero = w->zeros;
    ORT_TRY(bring(u->graph, w->graph, &result->codes, err));
    if (shape || factor != 1)
        ORT_TRY(shaped(w, u->graph, shape ? shape : &vector, factor, &result->scale, err));
    else
        ORT_TRY(bring(u->graph, w->graph, &result->scale, err));
    if (with_zero)
        return shaped_zero(d, w, u->graph, shape ? shape : &vector, &result->zero, err);
    return bring(u->graph, w->graph, &result->zero, err);
}
