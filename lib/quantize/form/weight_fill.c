/* weight_fill.c - grids and codes of a weight (weight_fill.h): channels are shared out to threads,
 * and none depends on another, so that the codes are the same for any number of them.
 */
#include "quantize/form/weight_fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "quantize/balance.h"
#include "quantize/code_types.h"
#include "quantize/pairs.h"
#include "quantize/strips.h"

typedef struct coding {
    const ort_qdq_weight *weight;
    ort_channels of;  /* channels whose sums are balanced */
    int64_t plane;    /* numbers of a filter plane */
    ort_grid *grids;  /* [channels of scales] */
    float *wider;     /* [of.count]: scales that their pairs need of one grid, or NULL */
    bool balances;
    ort_tensor to;
    bool failed;      /* set by any task: no memory */
} coding;

/* ---- grids */

static bool fits(const ort_qdq_weight *weight)
{
    return weight->fit && !ort_codes_are_floats(weight->codes.dtype);
}

/* line: where products add numbers in pairs it holds them as they lie. */
static void find_grid(const coding *q, int64_t k, const float *line, int64_t n, bool pairs)
{
    const ort_qdq_weight *weight = q->weight;
    float least = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        least = line[i] < least ? line[i] : least;
        most = line[i] > most ? line[i] : most;
    }
    ort_grid grid = fits(weight) ? ort_grid_fit(&weight->codes, line, n, 1, NULL)
                                 : ort_grid_of(&weight->codes, least, most);
    if (pairs)
        grid = ort_pairs_widen(&weight->codes, &weight->pairs, line, n, grid);
    if ((double)grid.scale < weight->least_scales[k])
        grid.scale = (float)weight->least_scales[k];
    q->grids[k] = grid;
}

/* Numbers of a channel, 0 for what isn't finite, and what is made of them. */
typedef struct room {
    float *finite;
    int *code;
    ort_balance_room balance;
} room;

static void close_room(room *r)
{
    free(r->finite);
    free(r->code);
    free(r->balance.error);
    free(r->balance.heap);
}

/* False: no memory. */
static bool open_room(coding *q, bool balances, bool codes, room *r, const float *line, int64_t n)
{
    const size_t count = (size_t)n + 1;
    *r = (room){.finite = malloc(count * sizeof *r->finite)};
    if (codes)
        r->code = malloc(count * sizeof *r->code);
    if (balances) {
        r->balance.error = malloc(count * sizeof *r->balance.error);
        r->balance.heap = malloc(count * sizeof *r->balance.heap);
    }
    if (!r->finite || (codes && !r->code) ||
        (balances && (!r->balance.error || !r->balance.heap))) {
        __atomic_store_n(&q->failed, true, __ATOMIC_RELAXED);
        close_room(r);
        return false;
    }
    for (int64_t i = 0; i < n; i++)
        r->finite[i] = isfinite(line[i]) ? line[i] : 0;
    return true;
}

/* The whole tensor as one line: it has one grid. */
static void grid_task(void *arg, int64_t k, const float *line, int thread)
{
    coding *q = arg;
    const int64_t n = ort_tensor_count(&q->to);
    const bool pairs = q->weight->sums < 0 && q->weight->pairs.channels > 0;
    room r;
    (void)thread;
    if (!open_room(q, false, false, &r, line, n))
        return;
    find_grid(q, k, r.finite, n, pairs);
    close_room(&r);
}

/* Lines of a weight with one grid: each writes what it needs of it. */
static void widen_task(void *arg, int64_t k, const float *line, int thread)
{
    coding *q = arg;
    const int64_t n = q->of.outer * q->of.inner;
    room r;
    (void)thread;
    if (!open_room(q, false, false, &r, line, n))
        return;
    const ort_qdq_weight *weight = q->weight;
    q->wider[k] = ort_pairs_widen(&weight->codes, &weight->pairs, r.finite, n, q->grids[0]).scale;
    close_room(&r);
}

/* ---- codes */

/* Number i of channel k lies there. */
static int64_t place_of(const coding *q, int64_t k, int64_t i)
{
    return (i / q->of.inner * q->of.count + k) * q->of.inner + i % q->of.inner;
}

static void put_codes(coding *q, int64_t k, const int *code, int64_t n)
{
    const bool bytes = q->to.dtype == ORT_DTYPE_INT8 || q->to.dtype == ORT_DTYPE_UINT8;
    uint8_t *to = q->to.data;
    for (int64_t i = 0; i < n && bytes; i++)
        to[place_of(q, k, i)] = (uint8_t)code[i];
    for (int64_t i = 0; i < n && !bytes; i++)
        ort_tensor_set_f64(&q->to, place_of(q, k, i), code[i]);
}

static void code_task(void *arg, int64_t k, const float *line, int thread)
{
    coding *q = arg;
    const bool each = q->weight->axis >= 0, pairs = q->weight->pairs.channels > 0;
    const int64_t n = q->of.outer * q->of.inner;
    const ort_codes_range *codes = &q->weight->codes;
    room r;
    (void)thread;
    if (!open_room(q, q->balances, q->balances || pairs, &r, line, n))
        return;
    if (each)
        find_grid(q, k, r.finite, n, pairs);
    const ort_grid grid = q->grids[each ? k : 0];
    for (int64_t i = 0; i < n && !r.code; i++)
        ort_qdq_put(&q->to, place_of(q, k, i), codes, grid, r.finite[i]);
    for (int64_t i = 0; i < n && r.code; i++)
        r.code[i] = ort_grid_code(codes, grid, r.finite[i]);
    if (pairs)
        ort_pairs_lower(&q->weight->pairs, grid, r.finite, n, r.code);
    if (q->balances)
        ort_balance_line(codes, grid, line, n, q->plane, pairs ? &q->weight->pairs : NULL, r.code,
                         &r.balance);
    if (r.code)
        put_codes(q, k, r.code, n);
    close_room(&r);
}

/* May several threads write channels beside each other? Not into one byte. */
static bool is_shared(const coding *q)
{
    const int64_t bits = ort_dtype_get(q->to.dtype)->bits;
    return q->of.inner * bits % 8 == 0 || q->of.count * q->of.inner * bits % 8 == 0;
}

static ort_status code(const ort_qdq_writer *w, coding *q, const ort_tensor *from, ort_error *err)
{
    const ort_model *model = w->graph->model;
    const ort_channels one = ort_channels_of(from, -1);
    ort_pool *pool = w->options->pool;
    if (q->weight->axis < 0)
        ORT_TRY(ort_lines_each(model, from, &one, NULL, grid_task, q, err));
    if (!q->failed && q->wider) {
        ORT_TRY(ort_lines_each(model, from, &q->of, pool, widen_task, q, err));
        for (int64_t k = 0; k < q->of.count; k++)
            q->grids[0].scale = fmaxf(q->grids[0].scale, q->wider[k]);
    }
    if (!q->failed)
        ORT_TRY(ort_lines_each(model, from, &q->of, is_shared(q) ? pool : NULL, code_task, q,
                               err));
    return q->failed ? ort_error_memory(err, sizeof(float) * (size_t)(q->of.outer * q->of.inner))
                     : ORT_OK;
}

/* ---- a weight */

static int64_t plane_of(const ort_tensor *t)
{
    int64_t plane = 1;
    for (int i = 2; i < t->shape.rank; i++)
        plane *= t->shape.dim[i];
    return plane;
}

static bool is_shifted(const ort_grid *grids, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (grids[k].zero_point != 0)
            return true;
    return false;
}

static ort_status keep_grids(ort_qdq_writer *w, ort_qdq_weight *weight, const coding *q,
                             ort_error *err)
{
    const char *stem = ort_qdq_name(w, weight->id);
    const int rank = weight->axis >= 0;
    ort_tensor scale, zero;
    ORT_TRY(ort_qdq_constant(w, stem, "scale", ORT_DTYPE_FLOAT, rank, weight->channels, &scale,
                             &weight->scale, err));
    for (int64_t k = 0; k < weight->channels; k++)
        ((float *)scale.data)[k] = q->grids[k].scale;
    weight->scales = scale.data;
    if (q->to.shape.rank > 2 && !is_shifted(q->grids, weight->channels))
        return ORT_OK; /* a Conv needs no zeros; onnxruntime leaves a Gemm without them in float */
    ORT_TRY(ort_qdq_constant(w, stem, "zero_point", weight->codes.dtype, rank, weight->channels,
                             &zero, &weight->zero, err));
    for (int64_t k = 0; k < weight->channels; k++)
        ort_tensor_set_f64(&zero, k, q->grids[k].zero_point);
    return ORT_OK;
}

ort_status ort_weight_fill(ort_qdq_writer *w, ort_qdq_weight *weight, ort_error *err)
{
    const ort_tensor *from = w->graph->values.data[weight->id]->fact.value;
    const char *name = ort_qdq_joined(w, ort_qdq_name(w, weight->id), "codes");
    coding q = {.weight = weight, .plane = plane_of(from), .balances = fits(weight)};
    q.of = ort_channels_of(from, weight->axis >= 0 ? weight->axis : weight->sums);
    q.grids = calloc((size_t)weight->channels + 1, sizeof *q.grids);
    const bool pairs_lines = weight->axis < 0 && weight->sums >= 0 && weight->pairs.channels > 0;
    if (pairs_lines)
        q.wider = calloc((size_t)q.of.count + 1, sizeof *q.wider);
    ort_status status = name && q.grids && (q.wider || !pairs_lines)
                            ? ORT_OK : ort_error_memory(err, sizeof *q.grids);
    if (status == ORT_OK)
        status = ort_edit_new_constant(w->graph, name, weight->codes.dtype, &from->shape, &q.to,
                                       &weight->code_id, err);
    if (status == ORT_OK)
        status = code(w, &q, from, err);
    if (status == ORT_OK)
        status = keep_grids(w, weight, &q, err);
    if (status == ORT_OK)
        ort_model_forget(w->graph->model, q.to.data, ort_tensor_bytes(&q.to));
    free(q.wider);
    free(q.grids);
    return status;
}
