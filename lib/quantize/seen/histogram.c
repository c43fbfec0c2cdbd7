/* histogram.c - counting line by line: the range of a line, which tells the width of bins, then its
 * bins.
 */
#include "quantize/seen/histogram.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"

enum {
    LINE = 1024,
    TASK = 65536, /* numbers of one task */
    LEAST_EXPONENT = -149, /* of the smallest float */
};

/* k of the bin that holds x: its floor in units of 2^exponent. Multiplying in double is exact. */
static inline int bin_of(float x, double inverse)
{
    double y = (double)x * inverse;
    int k = (int)y;
    return k - (y < (double)k);
}

static int exponent_for(float least, float most, int from)
{
    for (int e = from;; e++) {
        double inverse = ldexp(1, -e);
        double reach = floor((double)most * inverse) - floor((double)least * inverse);
        if (reach < ORT_HISTOGRAM_BINS)
            return e;
    }
}

int ort_histogram_exponent(float least, float most)
{
    return exponent_for(least, most, LEAST_EXPONENT);
}

int ort_histogram_span(const ort_histogram *h, int *first)
{
    double inverse = ldexp(1, -h->exponent);
    if (!h->bins || h->least == h->most)
        return 0;
    *first = bin_of(h->least, inverse);
    return bin_of(h->most, inverse) - *first + 1;
}

/* Bins of 2^exponent become bins of 2^to. */
static void coarsen(ort_histogram *h, int to)
{
    uint64_t wide[ORT_HISTOGRAM_BINS] = {0};
    int first = 0, count = ort_histogram_span(h, &first), shift = to - h->exponent;
    assert(shift >= 0);
    for (int k = first; k < first + count; k++) { /* rounds down: k may be below 0 */
        int coarse = shift > 30 ? -(k < 0) : k >> shift;
        wide[(unsigned)coarse % ORT_HISTOGRAM_BINS] += ort_histogram_bin(h, k);
    }
    memcpy(h->bins, wide, sizeof wide);
}

static void widen(ort_histogram *h, float least, float most)
{
    least = least < h->least ? least : h->least;
    most = most > h->most ? most : h->most;
    if (least == h->least && most == h->most)
        return;
    bool first = h->least == h->most; /* so far zeros, or nothing */
    int exponent = exponent_for(least, most, first ? LEAST_EXPONENT : h->exponent);
    if (h->bins && !first && exponent != h->exponent)
        coarsen(h, exponent);
    h->exponent = exponent;
    h->least = least;
    h->most = most;
}

/* ---- ends */

void ort_ends_add(ort_ends *ends, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float v = fabsf(x[i]) < FLT_MIN ? 0 : x[i];
        if (!(fabsf(v) <= FLT_MAX))
            continue;
        ends->least = v < ends->least ? v : ends->least;
        ends->most = v > ends->most ? v : ends->most;
        ends->finite++;
    }
}

/* ---- counting */

static void count(uint64_t *bins, const uint16_t *at, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        bins[at[i]]++;
        bins[at[i + 1]]++;
        bins[at[i + 2]]++;
        bins[at[i + 3]]++;
    }
    for (; i < n; i++)
        bins[at[i]]++;
}

void ort_histogram_add_extremes(ort_histogram *h, const ort_extremes *found)
{
    h->count += found->finite;
    h->zeros += found->zeros;
    h->not_finite += found->count - found->finite;
    widen(h, found->least, found->most);
}

static double inverse_of(int exponent)
{
    const uint64_t bits = (uint64_t)(1023 - exponent) << 52; /* 2^-exponent: it's no denormal */
    double inverse;
    memcpy(&inverse, &bits, sizeof inverse);
    return inverse;
}

static void add_line(const ort_vmath_kernels *math, ort_histogram *h, const float *x, size_t n)
{
    uint16_t at[LINE];
    ort_scan s;
    math->scan(x, n, &s);
    ort_histogram_add_extremes(h, &(ort_extremes){s.least, s.most, n, (uint64_t)s.finite,
                                                  (uint64_t)s.zeros});
    if (!h->bins || s.finite == s.zeros)
        return;
    math->bins(x, n, inverse_of(h->exponent), ORT_HISTOGRAM_BINS - 1, at);
    count(h->bins, at, s.finite - s.zeros);
}

/* What is counted stays in the nearest cache from its scan on. */
static void add(ort_histogram *h, const float *x, size_t n)
{
    const ort_vmath_kernels *math = &ort_kernels_get(NULL)->math; /* the same bits on each tier */
    const size_t line = h->bins ? LINE : TASK;
    for (size_t done = 0; done < n; done += line)
        add_line(math, h, x + done, n - done < line ? n - done : line);
}

void ort_histogram_merge(ort_histogram *h, const ort_histogram *other)
{
    h->count += other->count;
    h->zeros += other->zeros;
    h->not_finite += other->not_finite;
    widen(h, other->least, other->most);
    int first = 0, count = h->bins ? ort_histogram_span(other, &first) : 0;
    int shift = h->exponent - other->exponent;
    for (int k = first; k < first + count; k++) {
        int coarse = shift > 30 ? -(k < 0) : k >> shift;
        h->bins[(unsigned)coarse % ORT_HISTOGRAM_BINS] += ort_histogram_bin(other, k);
    }
}

/* ---- with several threads: a histogram of each, and then of all */

typedef struct own_part {
    _Alignas(64) ort_histogram histogram; /* threads don't share lines */
    uint64_t bins[ORT_HISTOGRAM_BINS];
} own_part;

typedef struct shared {
    const float *x;
    size_t n;
    own_part *parts; /* [threads] */
} shared;

static void add_task(void *arg, size_t task, int thread)
{
    const shared *s = arg;
    const size_t first = task * TASK, left = s->n - first;
    add(&s->parts[thread].histogram, s->x + first, left < TASK ? left : TASK);
}

static bool add_shared(ort_histogram *h, const float *x, size_t n, ort_pool *pool)
{
    const size_t threads = (size_t)ort_pool_threads(pool), bytes = threads * sizeof(own_part);
    shared s = {x, n, aligned_alloc(_Alignof(own_part), bytes)};
    if (!s.parts)
        return false;
    memset(s.parts, 0, bytes);
    for (size_t i = 0; i < threads; i++)
        s.parts[i].histogram.bins = h->bins ? s.parts[i].bins : NULL;
    ort_pool_run(pool, (n + TASK - 1) / TASK, add_task, &s);
    for (size_t i = 0; i < threads; i++)
        ort_histogram_merge(h, &s.parts[i].histogram);
    free(s.parts);
    return true;
}

void ort_histogram_add(ort_histogram *h, const float *x, size_t n, ort_pool *pool)
{
    const bool many = n > 2 * TASK && pool && ort_pool_threads(pool) > 1;
    if (!many || !add_shared(h, x, n, pool))
        add(h, x, n);
}
