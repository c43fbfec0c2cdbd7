/* crossed.h - products of floats by Winograd's inner product (1968), for processors whose adders
 * stand beside their multipliers.
 *
 * Of each three k two are a pair, whose products are one product of two sums:
 *
 *     x0 y0 + x1 y1 = (x0 + y1) (x1 + y0) - x0 x1 - y0 y1
 *
 * The third is multiplied as it is. Where an addition takes no time of a multiply-add's, as on
 * Zen 4 (both pipes of either kind take one vector of 256 bits a cycle), three k take four
 * additions and four multiply-adds for two vectors of columns, and their time is that of two k.
 * What is taken away belongs to a row or to a column alone: the sums of a row's x0 x1 are made when
 * its numbers are copied, those of a column's y0 y1 when B is first multiplied, and a tile's sums
 * begin with both. Packed B stays as it is.
 *
 * Errors. Let x be a row of A and y a column of B, |x| and |y| their Euclidean norms, r their ratio
 * and u = 2^-24. What is summed is of magnitudes of (x0 + y1)^2 / 2 + (x1 + y0)^2 / 2, x0 x1,
 * y0 y1 and x2 y2, which add up to no more than
 *
 *     3/2 (|x|^2 + |y|^2) = 3/2 (r + 1/r) |x| |y|,
 *
 * and a sum is off by at most g u of that, g being what is added one after the other (two numbers
 * of three k, and one for each part of k), and by 4 u more for the roundings of the sums that are
 * multiplied. Direct sums are off by g u of the sum of |x_k y_k|, which |x| |y| bounds, too. So
 * each row is multiplied by a power of two, which is exact, that brings its norm between
 * 2^(e - 1/2) and 2^(e + 1/2), where e is of B as a whole. Panels with a column whose norm isn't
 * within a factor of 4 of 2^e are left to direct sums. Then r is at most 4 sqrt(2), and each
 * element is off by at most
 *
 *     8.75 (g + 4) |x| |y| u,
 *
 * and where the two norms are equal by a third of that.
 *
 * Convolutions of single pixels take channels in stretches, each with an exponent of its own; what
 * is added over them is bounded by the norms over all channels as well (Cauchy and Schwarz).
 *
 * A row of zeros gives zeros. Rows that hold what isn't finite, or numbers so large or small that
 * their squares aren't floats, are left to direct sums: no row and no column reaches another.
 */
#ifndef ORT_KERNEL_CROSSED_H
#define ORT_KERNEL_CROSSED_H

#include <math.h>

#include "kernel/blocked.h"
#include "kernel/gemm.h"

/* Norms of rows and of columns: of columns against 4^e. Exponents beyond are left alone. */
#define ORT_CROSSED_LEAST (1.0f / 16)
#define ORT_CROSSED_MOST 16.0f
enum { ORT_CROSSED_PART = 384, ORT_CROSSED_EXPONENT = 40 };

/* The exponent of the norms of columns, from the sums of their squares. */
typedef struct ort_crossed_norms {
    int64_t sum, count;
} ort_crossed_norms;

static inline void ort_crossed_add_norms(ort_crossed_norms *n, const float *squares, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (squares[i] > 0 && squares[i] < INFINITY) {
            n->sum += ilogbf(squares[i]);
            n->count++;
        }
}

/* False: none suits. */
static inline bool ort_crossed_middle(const ort_crossed_norms *n, int *middle)
{
    const double count = (double)n->count;
    *middle = n->count ? (int)lrint(((double)n->sum + 0.5 * count) / (2.0 * count)) : 0;
    return n->count > 0 && *middle <= ORT_CROSSED_EXPONENT && *middle >= -ORT_CROSSED_EXPONENT;
}

static inline bool ort_crossed_even(const float *squares, int64_t count, int middle)
{
    const float of = ldexpf(1, 2 * middle);
    bool even = true;
    for (int64_t i = 0; i < count; i++)
        even &= squares[i] >= of * ORT_CROSSED_LEAST && squares[i] <= of * ORT_CROSSED_MOST;
    return even;
}

extern const ort_crossed_kernels ort_crossed_avx512;
/* conv_crossed of blocks of 16, what it leaves to direct sums by `direct`. */
void ort_blocked_crossed_avx512(const ort_blocked_conv *conv, const ort_blocked_crossed *crossed,
                                void (*direct)(const ort_blocked_conv *));
bool ort_blocked_sparse_avx512(const float *x, int64_t channels, int64_t plane);

#endif
