/* histogram.c - counting in two passes over a block that stays in cache: its range, then its bins.
 */
#include "quantize/histogram.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum {
    BLOCK = 16384,
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

static void add_block(ort_histogram *h, const float *x, int n)
{
    float least = 0, most = 0;
    int finite = 0, zeros = 0;
    for (int i = 0; i < n; i++) {
        bool is = fabsf(x[i]) <= FLT_MAX; /* false for NaN */
        float v = is ? x[i] : 0;
        finite += is;
        zeros += x[i] == 0;
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    h->count += (uint64_t)finite;
    h->zeros += (uint64_t)zeros;
    h->not_finite += (uint64_t)(n - finite);
    widen(h, least, most);
    if (!h->bins || finite == zeros)
        return;
    const double inverse = ldexp(1, -h->exponent);
    if (n < FEW) {
        for (int i = 0; i < n; i++)
            if (x[i] != 0 && fabsf(x[i]) <= FLT_MAX)
                h->bins[(unsigned)bin_of(x[i], inverse) % ORT_HISTOGRAM_BINS]++;
        return;
    }
    /* Two, so that equal neighbours don't wait for each other. */
    uint32_t counts[2][ORT_HISTOGRAM_BINS] = {{0}};
    for (int i = 0; i < n; i++)
        if (x[i] != 0 && fabsf(x[i]) <= FLT_MAX)
            counts[i % 2][(unsigned)bin_of(x[i], inverse) % ORT_HISTOGRAM_BINS]++;
    for (int k = 0; k < ORT_HISTOGRAM_BINS; k++)
        h->bins[k] += counts[0][k] + counts[1][k];
}

void ort_histogram_add(ort_histogram *h, const float *x, size_t n)
{
    for (size_t done = 0; done < n; done += BLOCK)
        add_block(h, x + done, (int)(n - done < BLOCK ? n - done : BLOCK));
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
