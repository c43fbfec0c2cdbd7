/* integer_wide.h - exact products of 16-bit codes with 8-bit matrices, as floats or codes of them.
 *
 *     y[i][j] = scale[j] * sum_k (a[i][k] - za)(b[k][j] - zb[j]) + bias[j]
 *
 * The sum is exact, the rest double: the same bits on every tier and number of threads. Tiers that
 * multiply bytes by fours take a code as 256 h + l of two bytes, and its zero point likewise:
 * two products of bytes over one packed B. Those that multiply pairs of int16 take it as it is.
 */
#ifndef ORT_OP_QUANT_INTEGER_WIDE_H
#define ORT_OP_QUANT_INTEGER_WIDE_H

#include "op/op.h"

enum { ORT_WIDE_DEPTH = 33025 }; /* of what is exact: 2^31 / 255^2 */

typedef struct ort_wide_product {
    int64_t m, n, depth;        /* depth at most ORT_WIDE_DEPTH */
    const void *a;              /* int16 or uint16: element (i, k) at a[i * row + k * column] */
    bool is_signed;
    int64_t row, column;
    int zero;                   /* of a */
    const void *packed;         /* B with its zero points, by ort_integer_pack */
    void *space;                /* ort_wide_bytes() */
    const double *scale, *bias; /* of columns; no bias: NULL */
    void *y;                    /* [m][n] */
    ort_dtype to;               /* its type: floats, or codes by */
    float y_scale;
    int y_zero;
} ort_wide_product;

/* Bytes of the workspace; false on overflow. */
bool ort_wide_bytes(const ort_kernels *k, int64_t m, int64_t n, int64_t depth, size_t *bytes);
/* Scratch per thread. */
size_t ort_wide_thread_bytes(const ort_kernels *k);
void ort_wide_multiply(const ort_call *call, const ort_wide_product *p);

#endif
