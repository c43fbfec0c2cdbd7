/* histogram.c - counting in two passes over a block that stays in cache: its range, then its bins.
 */
#include "quantize/seen/histogram.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"

enum {
    BLOCK = 16384,
    TASK = 4, /* blocks of one task */
    FEW = 1024, /* numbers for which counts of their own would cost more than they save */
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

static void count_few(uint64_t *bins, const float *x, int n, double inverse)
{
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) >= FLT_MIN && fabsf(x[i]) <= FLT_MAX)
            bins[(unsigned)bin_of(x[i], inverse) % ORT_HISTOGRAM_BINS]++;
}

/* Counts that are apart, so that equal neighbours don't wait for each other; of 16 bits, so that
 * the nearest cache holds them all. */
enum { APART = 4, LINE = 256 };
typedef uint16_t apart_counts[APART][ORT_HISTOGRAM_BINS];
static_assert(BLOCK / APART <= UINT16_MAX, "a block fits counts of 16 bits");

static void count_line(apart_counts counts, const uint16_t *at, int n)
{
    int i = 0;
    for (; i + APART <= n; i += APART) {
        counts[0][at[i]]++;
        counts[1][at[i + 1]]++;
        counts[2][at[i + 2]]++;
        counts[3][at[i + 3]]++;
    }
    for (; i < n; i++)
        counts[0][at[i]]++;
}

/* Numbers that bins don't count are in bin 0 first. */
static void count_block(const ort_vmath_kernels *math, uint64_t *bins, const float *x, int n,
                        const ort_scan *s, double inverse)
{
    apart_counts counts = {{0}};
    uint16_t at[LINE];
    for (int done = 0; done < n; done += LINE) {
        int count = n - done < LINE ? n - done : LINE;
        math->bins(x + done, (size_t)count, inverse, ORT_HISTOGRAM_BINS - 1, at);
        count_line(counts, at, count);
    }
    for (int k = 0; k < ORT_HISTOGRAM_BINS; k++)
        bins[k] += (uint64_t)(counts[0][k] + counts[1][k] + counts[2][k] + counts[3][k]);
    bins[0] -= (uint64_t)(n - s->finite + s->zeros);
}

void ort_histogram_add_extremes(ort_histogram *h, const ort_extremes *found)
{
    h->count += found->finite;
    h->zeros += found->zeros;
    h->not_finite += found->count - found->finite;
    widen(h, found->least, found->most);
}

static void take_scan(ort_histogram *h, const ort_scan *s, int n)
{
    const ort_extremes found = {s->least, s->most, (uint64_t)n, (uint64_t)s->finite,
                                (uint64_t)s->zeros};
    ort_histogram_add_extremes(h, &found);
}

static void add_block(const ort_vmath_kernels *math, ort_histogram *h, const float *x, int n)
{
    ort_scan s;
    math->scan(x, (size_t)n, &s);
    take_scan(h, &s, n);
    if (!h->bins || s.finite == s.zeros)
        return;
    const double inverse = ldexp(1, -h->exponent);
    if (n < FEW)
        count_few(h->bins, x, n, inverse);
    else
        count_block(math, h->bins, x, n, &s, inverse);
}

/* ---- with several threads: the ends of all first, so that each counts in bins of one width */

typedef struct shared {
    const ort_vmath_kernels *math;
    const float *x;
    size_t n;
    double inverse;
    ort_scan *scans; /* [blocks] */
    uint64_t *bins; /* [threads][ORT_HISTOGRAM_BINS] */
} shared;

static int block_size(const shared *s, size_t block)
{
    size_t left = s->n - block * BLOCK;
    return left < BLOCK ? (int)left : BLOCK;
}

static void scan_task(void *arg, size_t task, int thread)
{
    shared *s = arg;
    (void)thread;
    for (size_t b = task * TASK; b < (task + 1) * TASK && b * BLOCK < s->n; b++)
        s->math->scan(s->x + b * BLOCK, (size_t)block_size(s, b), &s->scans[b]);
}

static void count_task(void *arg, size_t task, int thread)
{
    shared *s = arg;
    uint64_t *bins = s->bins + (size_t)thread * ORT_HISTOGRAM_BINS;
    for (size_t b = task * TASK; b < (task + 1) * TASK && b * BLOCK < s->n; b++)
        if (s->scans[b].finite > s->scans[b].zeros)
            count_block(s->math, bins, s->x + b * BLOCK, block_size(s, b), &s->scans[b],
                        s->inverse);
}

static bool add_shared(const ort_vmath_kernels *math, ort_histogram *h, const float *x, size_t n,
                       ort_pool *pool)
{
    size_t blocks = (n + BLOCK - 1) / BLOCK, tasks = (blocks + TASK - 1) / TASK;
    size_t threads = (size_t)ort_pool_threads(pool);
    shared s = {.math = math, .x = x, .n = n, .scans = calloc(blocks, sizeof *s.scans),
                .bins = calloc(threads * ORT_HISTOGRAM_BINS, sizeof *s.bins)};
    bool done = s.scans && s.bins;
    if (done) {
        ort_pool_run(pool, tasks, scan_task, &s);
        for (size_t b = 0; b < blocks; b++)
            take_scan(h, &s.scans[b], block_size(&s, b));
        s.inverse = ldexp(1, -h->exponent);
        if (h->bins && h->least != h->most)
            ort_pool_run(pool, tasks, count_task, &s);
        for (size_t i = 0; i < threads * ORT_HISTOGRAM_BINS && h->bins; i++)
            h->bins[i % ORT_HISTOGRAM_BINS] += s.bins[i];
    }
    free(s.scans);
    free(s.bins);
    return done;
}

void ort_histogram_add(ort_histogram *h, const float *x, size_t n, ort_pool *pool)
{
    const ort_vmath_kernels *math = &ort_kernels_get(NULL)->math; /* the same bits on each tier */
    bool many = n > 2 * TASK * BLOCK && pool && ort_pool_threads(pool) > 1;
    if (many && add_shared(math, h, x, n, pool))
        return;
    for (size_t done = 0; done < n; done += BLOCK)
        add_block(math, h, x + done, (int)(n - done < BLOCK ? n - done : BLOCK));
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
