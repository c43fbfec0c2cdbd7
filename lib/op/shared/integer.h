/* integer.h - exact products of 8-bit matrices, for every quantized operator.
 *
 * Bytes are widened to int16 with their zero point taken off, in pairs along k, and summed in
 * int32 (modulo 2^32): no saturation anywhere, any mix of signs and zero points. A tile of sums is
 * handed to a finish function while it is in cache.
 */
#ifndef ORT_OP_SHARED_INTEGER_H
#define ORT_OP_SHARED_INTEGER_H

#include "op/op.h"

/* An 8-bit matrix: element (i, j) at data[i * row + j * column]. */
typedef struct ort_bytes {
    const void *data;
    bool is_signed;
    int64_t row, column;
} ort_bytes;

/* Zero points: NULL data is 0; count 1 serves all, else zero of i is element i % count. A tensor
 * without elements has NULL and 0, which the operator refuses. */
typedef struct ort_zeros {
    const void *data;
    bool is_signed;
    int64_t count;
} ort_zeros;

ort_bytes ort_bytes_of(const ort_tensor *t, int64_t row, int64_t column);
ort_zeros ort_zeros_of(const ort_tensor *t); /* t may be NULL */
static inline int ort_zero_at(const ort_zeros *z, int64_t i)
{
    if (!z->data)
        return 0;
    i = z->count == 1 ? 0 : i % z->count;
    return z->is_signed ? ((const int8_t *)z->data)[i] : ((const uint8_t *)z->data)[i];
}

/* Bytes of A[m][depth] widened, and of B[depth][n] packed; false on overflow. */
bool ort_integer_rows_bytes(int64_t m, int64_t depth, size_t *bytes);
bool ort_integer_packed_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
/* Zero points of A are per row, of B per column. */
void ort_integer_rows(const ort_call *call, int64_t m, int64_t depth, const ort_bytes *a,
                      const ort_zeros *zeros, void *rows);
void ort_integer_pack(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                      const ort_zeros *zeros, void *packed);

/* Sums of rows [row, row + m) and columns [column, column + n), with row stride ld. */
typedef void ort_integer_finish(void *arg, int64_t row, int64_t column, int64_t m, int64_t n,
                                const int32_t *sums, int64_t ld);
/* Scratch per thread that the product needs. */
size_t ort_integer_thread_bytes(const ort_kernels *k);
void ort_integer_multiply(const ort_call *call, int64_t m, int64_t n, int64_t depth,
                          const void *rows, const void *packed, ort_integer_finish *finish,
                          void *arg);

#endif
