/* coded_weight.h - products of floats with constant weights that stay in 8 bits.
 *
 *     c[i][j] = sum over k of a[i][k] * (b[k][j] - zero[j]) * scale[j]  [+ bias[j]] [+ c[i][j]]
 *
 * This is what a float product by DequantizeLinear's result means, with a quarter of its bytes.
 * Rows of A are multiplied in fixed point of three bytes an element, whose error is below that of a
 * sum of floats, and sums of products are exact (kernel/nbits_fixed.inc, to which B is one block a
 * column). Many rows where the tier doesn't multiply bytes by fours, and rows that don't go into
 * fixed point, multiply columns that are widened to floats, a panel at a time.
 */
#ifndef ORT_OP_SHARED_CODED_WEIGHT_H
#define ORT_OP_SHARED_CODED_WEIGHT_H

#include "op/shared/integer.h"

typedef struct ort_coded_product {
    int64_t m, n, depth; /* none is 0 */
    const float *a;      /* [m][depth] without gaps */
    const void *packed;  /* B, by ort_coded_pack */
    const float *bias;   /* [n] or NULL */
    bool add;            /* to what c holds */
    float *c;
    int64_t ldc;
    void *space;         /* ort_coded_rows_bytes() */
} ort_coded_product;

/* Bytes of the workspace for A[m][depth], and of B[depth][n] packed; false on overflow. */
bool ort_coded_rows_bytes(const ort_kernels *k, int64_t m, int64_t depth, size_t *bytes);
bool ort_coded_packed_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
/* B has a row for each k; scale and zeros are one number a column (zeros: or one). `packed` is
 * aligned to 64 bytes. */
void ort_coded_pack(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                    const float *scale, const ort_zeros *zeros, void *packed);

/* Scratch per thread that the product needs. */
size_t ort_coded_thread_bytes(const ort_kernels *k);
void ort_coded_multiply(const ort_call *call, const ort_coded_product *p);

#endif
