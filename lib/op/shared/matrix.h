/* matrix.h - threaded matrix products for every operator family.
 *
 * C[m][n] = A[m][k] * B[k][n], row-major. A is read in place; B is packed once (a constant, in
 * prepare) or per run into workspace. The task grid depends on the sizes alone and k is never
 * split between tasks: results are bit-identical for every thread count.
 */
#ifndef ORT_OP_SHARED_MATRIX_H
#define ORT_OP_SHARED_MATRIX_H

#include "op/op.h"

/* What follows the product: C = act(clamp(alpha * A*B + add + row_bias[i] + col_bias[j], lo, hi)).
 * A NULL epilogue is the plain product; start from ort_epilogue_none(). */
typedef struct ort_epilogue {
    float alpha, lo, hi;
    const float *add; /* [m][n] with row stride ldadd; may be c itself: accumulate; NULL: none */
    int64_t ldadd;
    const float *row_bias, *col_bias;
    int act;          /* an ort_unary that is applied last, -1: none */
    float act_a, act_b;
} ort_epilogue;

ort_epilogue ort_epilogue_none(void);

/* Bytes of B[k][n] packed for these kernels; false when the product overflows. */
bool ort_matrix_packed_bytes_f32(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
bool ort_matrix_packed_bytes_16(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
bool ort_matrix_packed_bytes_f64(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
/* Pack B, whose element (kk, j) is b[kk * row + j * column]; single-threaded. `packed` should be
 * 64-byte aligned. A transposed B is row = 1, column = its row stride. */
void ort_matrix_pack_f32(const ort_kernels *k, int64_t depth, int64_t n, const float *b,
                         int64_t row, int64_t column, float *packed);
void ort_matrix_pack_f64(const ort_kernels *k, int64_t depth, int64_t n, const double *b,
                         int64_t row, int64_t column, double *packed);

/* The product on this thread only: for use inside a task. */
void ort_matrix_block_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth, const float *a,
                          int64_t lda, const float *packed, float *c, int64_t ldc,
                          const ort_epilogue *epilogue);
void ort_matrix_block_f64(const ort_kernels *k, int64_t m, int64_t n, int64_t depth,
                          const double *a, int64_t lda, const double *packed, double *c,
                          int64_t ldc, double alpha, const double *add, int64_t ldadd);
/* B packed in the form of its numbers: float, or float16 and bfloat16 in 16 bits, which are widened
 * on the way (and give the bits that floats would). */
void ort_matrix_pack_16(const ort_kernels *k, int64_t depth, int64_t n, const uint16_t *b,
                        int64_t row, int64_t column, uint16_t *packed);
void ort_matrix_block_form(const ort_kernels *k, int64_t m, int64_t n, int64_t depth,
                           const float *a, int64_t lda, ort_dtype form, const void *packed,
                           float *c, int64_t ldc, const ort_epilogue *epilogue);
/* The same on a B that isn't packed: element (kk, j) = b[kk * ldb + j] (row stride ldb, columns
 * side by side). Best for few rows. */
void ort_matrix_block_plain_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth,
                                const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
                                int64_t ldc, const ort_epilogue *epilogue);

/* The product on the call's pool, B packed. */
void ort_matrix_multiply_f32(const ort_call *call, int64_t m, int64_t n, int64_t depth,
                             const float *a, int64_t lda, const float *packed, float *c,
                             int64_t ldc, const ort_epilogue *epilogue);
void ort_matrix_multiply_form(const ort_call *call, int64_t m, int64_t n, int64_t depth,
                              const float *a, int64_t lda, ort_dtype form, const void *packed,
                              float *c, int64_t ldc, const ort_epilogue *epilogue);
void ort_matrix_multiply_f64(const ort_call *call, int64_t m, int64_t n, int64_t depth,
                             const double *a, int64_t lda, const double *packed, double *c,
                             int64_t ldc, double alpha, const double *add, int64_t ldadd);

/* The product of a B that changes every run: element (kk, j) = b[kk * row + j * column]. `space`
 * holds ort_matrix_space_f32(...) bytes (0 when row-major with few rows needs none), from the
 * workspace. */
size_t ort_matrix_space_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth,
                            int64_t column);
void ort_matrix_multiply_unpacked_f32(const ort_call *call, int64_t m, int64_t n, int64_t depth,
                                      const float *a, int64_t lda, const float *b, int64_t row,
                                      int64_t column, float *c, int64_t ldc, void *space,
                                      const ort_epilogue *epilogue);

#endif
