/* adaptive_rounding.c - a task for each filter: its errors, and the slope of the form at them. */
#include "quantize/effort/adaptive_rounding.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "quantize/pairs.h"

enum { PASSES = 12, VECTOR = 16 };

/* A part of the mean diagonal is added to all of it: few rows say less than they seem to. */
static const double damping = 0.01;

typedef struct adapting {
    ort_layer *layer;
    int least, most; /* codes */
    ort_pairs pairs;
    float *scratch;  /* [threads][2][width] */
} adapting;

/* Sums of products become means, of differences where `centered`, in both halves. */
static void finish_square(ort_layer *l, bool centered)
{
    for (int64_t g = 0; g < l->groups; g++) {
        float *h = l->square + g * l->length * l->width;
        const double *sum = l->sum + g * l->width;
        const double inverse = 1 / (double)l->rows;
        double trace = 0;
        for (int64_t i = 0; i < l->length; i++) {
            for (int64_t k = i; k < l->length; k++) {
                double mean = h[i * l->width + k] * inverse;
                mean -= centered ? sum[i] * inverse * sum[k] * inverse : 0;
                h[i * l->width + k] = h[k * l->width + i] = (float)mean;
            }
            for (int64_t k = l->length; k < l->width; k++)
                h[i * l->width + k] = 0;
            trace += h[i * l->width + i];
        }
        for (int64_t i = 0; i < l->length; i++)
            h[i * l->width + i] += (float)(damping * trace / (double)l->length);
    }
}

static void move(float *slope, const float *line, float by, int64_t width)
{
    for (int64_t k = 0; k < width; k += VECTOR)
        for (int j = 0; j < VECTOR; j++)
            slope[k + j] += by * line[k + j];
}

static ort_pairs pairs_of(const ort_layer *l)
{
    if (l->codes.dtype != ORT_DTYPE_INT8)
        return (ort_pairs){.plane = 1};
    return l->windows ? ort_pairs_of_filters(l->groups, l->filters, l->channels,
                                             l->kernel[0] * l->kernel[1])
                      : ort_pairs_of_filters(1, l->filters, l->length, 1);
}

static int code_at(const ort_layer *l, int64_t filter, int64_t k)
{
    return (int)ort_tensor_get_f64(&l->codes, filter + k * l->number_step);
}

static bool fits_in_pairs(const adapting *a, int64_t filter, int64_t k, int code)
{
    int64_t other[2];
    for (int i = ort_pairs_of(&a->pairs, k, other); i-- > 0;)
        if (!ort_pair_fits(code, code_at(a->layer, filter, other[i])))
            return false;
    return true;
}

static void adapt_filter(void *arg, size_t task, int thread)
{
    const adapting *a = arg;
    ort_layer *l = a->layer;
    const int64_t m = (int64_t)task, at = m * l->filter_step;
    const float *h = l->square + m / l->filters * l->length * l->width;
    float *error = a->scratch + (int64_t)thread * 2 * l->width, *slope = error + l->width;
    const int64_t of = ort_tensor_count(l->scales) > 1 ? m : 0;
    const float scale = (float)ort_tensor_get_f64(l->scales, of);
    const float zero = l->zeros ? (float)ort_tensor_get_f64(l->zeros, of) : 0;
    for (int64_t k = 0; k < l->width; k++)
        error[k] = slope[k] = 0;
    for (int64_t k = 0; k < l->length; k++) {
        float code = (float)code_at(l, at, k);
        error[k] = (code - zero) * scale - l->weight[at + k * l->number_step];
        move(slope, h + k * l->width, error[k], l->width);
    }
    for (int pass = 0, moved = 1; pass < PASSES && moved; pass++) {
        moved = 0;
        for (int64_t k = 0; k < l->length; k++) {
            float by = slope[k] > 0 ? -scale : scale, own = h[k * l->width + k];
            int code = code_at(l, at, k) + (by > 0 ? 1 : -1);
            float gain = by * (2 * slope[k] + by * own);
            if (!(gain < 0) || code < a->least || code > a->most ||
                fabsf(error[k] + by) > 1.5f * scale || !fits_in_pairs(a, at, k, code))
                continue;
            ort_tensor_set_f64(&l->codes, at + k * l->number_step, code);
            error[k] += by;
            move(slope, h + k * l->width, by, l->width);
            moved = 1;
        }
    }
}

ort_status ort_adapt_rounding(ort_layer *l, bool centered, bool full_range, ort_pool *pool,
                              ort_error *err)
{
    ort_codes_range range;
    const int threads = pool ? ort_pool_threads(pool) : 1;
    if (l->rows < ort_rounding_rows(l) || !ort_codes_range_of(l->codes.dtype, true, false, &range))
        return ORT_OK;
    adapting a = {l, range.least, range.most, full_range ? (ort_pairs){0, 1} : pairs_of(l),
                  malloc((size_t)(threads * 2 * l->width) * sizeof(float))};
    if (!a.scratch)
        return ort_error_memory(err, (size_t)(threads * 2 * l->width) * sizeof(float));
    finish_square(l, centered);
    ort_pool_run(pool, (size_t)(l->groups * l->filters), adapt_filter, &a);
    free(a.scratch);
    return ORT_OK;
}
