/* gptq_factor.c - H = G^T G by panels of rows, from the last one up. Products of panels are those
 * of the environment's kernels; rows of a panel are parted among threads by columns.
 */
#pragma GCC optimize("O3") /* vectorize the rows */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "quantize/weights/gptq.h"

enum { PANEL = 128, SLAB = 512, CHUNK = 64 };

typedef struct factoring {
    ort_env *env;
    float *h;      /* [k][k]; G below the diagonal where it is done */
    int64_t k;
    int64_t first, end; /* rows of the panel */
    float floor;   /* pivots are at least this: what damping alone makes them */
    float *panel;  /* [rows of the panel][first]: G left of the panel's square */
} factoring;

/* ---- order, damping */

typedef struct keyed {
    float key;
    int32_t at;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key ? -1 : 1) : x->at < y->at ? -1 : 1;
}

/* Of the half that is there. */
static float entry(const ort_moment *m, int64_t i, int64_t j)
{
    return i > j ? m->sum[i * m->k + j] : m->sum[j * m->k + i];
}

static ort_status permute(ort_moment *m, ort_error *err)
{
    const int64_t k = m->k;
    keyed *keys = malloc((size_t)k * sizeof *keys);
    float *row = malloc((size_t)k * sizeof *row), *h = malloc((size_t)(k * k) * sizeof *h);
    m->order = malloc((size_t)k * sizeof *m->order);
    const bool ok = keys && row && h && m->order;
    for (int64_t i = 0; ok && i < k; i++)
        keys[i] = (keyed){m->sum[i * k + i], (int32_t)i};
    if (ok)
        qsort(keys, (size_t)k, sizeof *keys, by_key);
    for (int64_t i = 0; ok && i < k; i++)
        m->order[i] = keys[i].at;
    for (int64_t i = 0; ok && i < k; i++)
        for (int64_t j = 0; j < k; j++)
            h[i * k + j] = entry(m, m->order[i], m->order[j]);
    free(keys);
    free(row);
    if (!ok) {
        free(h);
        return ort_error_memory(err, (size_t)(k * k) * sizeof *h);
    }
    memcpy(m->sum, h, (size_t)(k * k) * sizeof *h);
    free(h);
    return ORT_OK;
}

/* H is scaled so that its diagonal has the mean 1. Returns what was added to each. */
static float damp(ort_moment *m, double damping)
{
    const int64_t k = m->k;
    double mean = 0;
    for (int64_t i = 0; i < k; i++)
        mean += (double)m->sum[i * k + i];
    mean /= (double)k;
    const float scale = mean > 0 && isfinite(mean) ? (float)(1 / mean) : 0;
    for (int64_t i = 0; i < k * k; i++)
        m->sum[i] *= scale;
    for (int64_t i = 0; i < k; i++)
        m->sum[i * k + i] += (float)damping;
    return (float)damping;
}

/* ---- a panel */

/* Rows of the panel, the last one first, in columns [from, to). In the square of the panel the
 * diagonal is in double, and columns end at it. */
static void panel_rows(const factoring *f, int64_t from, int64_t to, bool square)
{
    const int64_t k = f->k;
    for (int64_t i = f->end - 1; i >= f->first; i--) {
        float *row = f->h + i * k;
        for (int64_t r = i + 1; r < f->end; r++) {
            const float *later = f->h + r * k, weight = later[i];
            const int64_t end = square && i + 1 < to ? i + 1 : to;
            for (int64_t c = from; c < end; c++)
                row[c] -= weight * later[c];
        }
        if (square)
            row[i] = sqrtf(row[i] > f->floor ? row[i] : f->floor);
        const float pivot = row[i], back = 1.0f / pivot;
        for (int64_t c = from; c < (square ? i : to); c++)
            row[c] *= back;
    }
}

static void panel_task(void *arg, size_t task, int thread)
{
    const factoring *f = arg;
    const int64_t from = (int64_t)task * CHUNK;
    (void)thread;
    panel_rows(f, from, from + CHUNK < f->first ? from + CHUNK : f->first, false);
}

typedef struct subtracting {
    float *to;
    const float *from;
    int64_t stride, columns;
} subtracting;

static void subtract_row(void *arg, size_t row, int thread)
{
    const subtracting *s = arg;
    float *to = s->to + (int64_t)row * s->stride;
    const float *from = s->from + (int64_t)row * s->columns;
    (void)thread;
    for (int64_t i = 0; i < s->columns; i++)
        to[i] -= from[i];
}

/* What is above the panel loses the products of its columns; slabs of rows, up to the diagonal. */
static ort_status subtract(const factoring *f, float *left, float *right, ort_error *err)
{
    const int64_t rows = f->end - f->first;
    for (int64_t at = 0; at < f->first; at += SLAB) {
        const int64_t some = f->first - at < SLAB ? f->first - at : SLAB, width = at + some;
        ort_value *product;
        for (int64_t i = 0; i < rows; i++) {
            const float *row = f->h + (f->first + i) * f->k;
            memcpy(left + i * some, row + at, (size_t)some * sizeof *row);
            memcpy(right + i * width, row, (size_t)width * sizeof *row);
        }
        ORT_TRY(ort_moments_multiply(f->env, left, true, right, some, rows, width, &product, err));
        subtracting s = {f->h + at * f->k, ort_value_data(product), f->k, width};
        ort_pool_run(f->env->pool, (size_t)some, subtract_row, &s);
        ort_value_free(product);
    }
    return ORT_OK;
}

ort_status ort_gptq_factor(ort_env *env, ort_moment *moment, double damping, bool ordered,
                           ort_error *err)
{
    ort_status status = ORT_OK;
    if (ordered)
        ORT_TRY(permute(moment, err));
    factoring f = {.env = env, .k = moment->k, .h = moment->sum, .end = moment->k};
    f.floor = damp(moment, damping);
    float *left = malloc((size_t)PANEL * SLAB * sizeof *left);
    float *right = malloc((size_t)(PANEL * f.k) * sizeof *right);
    if (!left || !right)
        status = ort_error_memory(err, (size_t)(PANEL * f.k) * sizeof *right);
    while (status == ORT_OK && f.end > 0) {
        f.first = f.end > PANEL ? f.end - PANEL : 0;
        panel_rows(&f, f.first, f.end, true);
        ort_pool_run(env->pool, (size_t)((f.first + CHUNK - 1) / CHUNK), panel_task, &f);
        status = subtract(&f, left, right, err);
        f.end = f.first;
    }
    free(left);
    free(right);
    moment->factored = true;
    return status;
}
