/* histogram.h - what a value held over all samples, in memory that doesn't grow with them.
 *
 * Bins are a power of two wide and begin at multiples of it, so that two neighbours make one of the
 * next width, exactly. The width is the least with which ORT_HISTOGRAM_BINS bins reach from the
 * least number to the largest, 0 included. So a histogram is a function of the numbers alone:
 * neither their order, nor how samples are batched, nor which of several histograms they were
 * counted in before these were merged changes a bit of it.
 */
#ifndef ORT_QUANTIZE_HISTOGRAM_H
#define ORT_QUANTIZE_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "kernel/extremes.h"

enum { ORT_HISTOGRAM_BINS = 4096 };

/* Zeroed, with or without bins, it is empty. */
typedef struct ort_histogram {
    uint64_t count;      /* finite numbers, zeros included */
    uint64_t zeros;      /* and denormals, as runs flush them; bins don't count them */
    uint64_t not_finite; /* infinite or NaN: not in the range, nor in the bins */
    float least, most;   /* of the finite ones and 0 */
    int exponent;        /* bin k counts numbers in [k, k + 1) * 2^exponent */
    uint64_t *bins;      /* [ORT_HISTOGRAM_BINS], bin k at k modulo their number; the caller's, or
                          * NULL: the range alone is kept */
} ort_histogram;

/* pool: who shares the work of many numbers, or NULL. */
void ort_histogram_add(ort_histogram *h, const float *x, size_t n, ort_pool *pool);
/* Numbers of which an operator found these; of one without bins. */
void ort_histogram_add_extremes(ort_histogram *h, const ort_extremes *found);
/* What both have seen; with bins where both have them. */
void ort_histogram_merge(ort_histogram *h, const ort_histogram *other);
/* The bins [*first, *first + the number returned) hold all that was counted; 0 for none. */
int ort_histogram_span(const ort_histogram *h, int *first);
static inline uint64_t ort_histogram_bin(const ort_histogram *h, int k)
{
    return h->bins[(unsigned)k % ORT_HISTOGRAM_BINS];
}

/* The ends of finite numbers alone, 0 not among them; denormals count as 0. */
typedef struct ort_ends {
    float least, most;
    uint64_t finite;
} ort_ends;
#define ORT_ENDS_INIT {__builtin_inff(), -__builtin_inff(), 0}
void ort_ends_add(ort_ends *ends, const float *x, size_t n);

/* The width that a range has, and with it the bins: for readers of files. */
int ort_histogram_exponent(float least, float most);

#endif
