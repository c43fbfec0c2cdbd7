/* matrix.h - threaded matrix products for every operator family.
 *
 * C[m][n] = A[m][k] * B[k][n], row-major. A is read in place; B is packed once (a constant, in
 * prepare) or per run into workspace. Tasks divide rows and columns alone and k is never split
 * between them: results are bit-identical for every thread count.
 *
 * Products of many rows by packed B go to the tier's tiles (kernel/gemm.h: f32_tiles), if the
 * operator has memory for them: which product does follows from its shape alone.
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

/* A product of floats. B is packed, or it lies anywhere. */
typedef struct ort_product_f32 {
    int64_t m, n, depth;
    const float *a;
    int64_t lda;
    const void *packed; /* B as ort_matrix_pack_* left it; NULL: it is b */
    ort_dtype form;     /* of packed: float16 and bfloat16 in 16 bits, which are widened on the way
                         * (and give the bits that floats would); else float */
    const float *b;     /* element (kk, j) = b[kk * row + j * column] */
    int64_t row, column;
    void *space;        /* ort_matrix_space_f32(...) bytes, into which b is packed where that pays;
                         * NULL: it is read where it lies, best for few rows; column is 1 */
    void *tiles;        /* ort_matrix_tiles_f32(...) bytes for each thread, tiles_step apart, or
                         * with notes ort_matrix_fewer_f32(...); NULL: neither */
    size_t tiles_step;
    void *notes;        /* ort_matrix_notes_f32(...) bytes, 64-byte aligned, that were zeroed when B
                         * was packed; NULL: direct sums */
    void *split;        /* with tiles: ort_matrix_split_f32(...) bytes */
    bool backwards;     /* few rows by packed B on one thread: from the last columns on, with the
                         * same results. Of a B that the cache can't hold, read again and again, by
                         * turns forwards and backwards, a cache full is there each time. */
    float *c;
    int64_t ldc;
    const ort_epilogue *epilogue;
} ort_product_f32;

/* C = alpha * A*B + add, B packed; add may be c itself, or NULL. */
typedef struct ort_product_f64 {
    int64_t m, n, depth;
    const double *a;
    int64_t lda;
    const double *packed;
    double *c;
    int64_t ldc;
    double alpha;
    const double *add;
    int64_t ldadd;
} ort_product_f64;

/* Bytes of B[k][n] packed for these kernels; false when the product overflows. */
bool ort_matrix_packed_bytes_f32(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
bool ort_matrix_packed_bytes_16(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
bool ort_matrix_packed_bytes_f64(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
/* Bytes for a B that changes every run; 0 where it needn't be packed (row-major with few rows),
 * SIZE_MAX when the product overflows. */
size_t ort_matrix_space_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth,
                            int64_t column);
/* Bytes for a product on tiles; 0 where floats are as fast. `packed`: B is, or will be. */
size_t ort_matrix_tiles_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth, bool packed);
/* With these, bytes for its rows as tiles read them, which threads share: a multiple of 64. */
size_t ort_matrix_split_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth, bool packed);
/* Bytes for each thread of a product that takes fewer multiply-adds: by crossed sums
 * (kernel/crossed.h) a third, in Strassen's way (kernel/strassen.h) an eighth; 0 where direct sums
 * are as fast. */
size_t ort_matrix_fewer_f32(const ort_kernels *k, int64_t m, int64_t n, int64_t depth);
/* Bytes for what such products note of a constant B; 0 where none is multiplied so. */
size_t ort_matrix_notes_f32(const ort_kernels *k, int64_t depth, int64_t n);
/* Pack B, whose element (kk, j) is b[kk * row + j * column]; single-threaded. `packed` should be
 * 64-byte aligned. A transposed B is row = 1, column = its row stride. */
void ort_matrix_pack_f32(const ort_kernels *k, int64_t depth, int64_t n, const float *b,
                         int64_t row, int64_t column, float *packed);
/* The same past the caches, of what is packed once for a session: `depth` of `depth_total` rows. */
void ort_matrix_stream_f32(const ort_kernels *k, int64_t depth, int64_t n, const float *b,
                           int64_t row, int64_t column, int64_t depth_total, float *packed);
void ort_matrix_pack_f64(const ort_kernels *k, int64_t depth, int64_t n, const double *b,
                         int64_t row, int64_t column, double *packed);
void ort_matrix_pack_16(const ort_kernels *k, int64_t depth, int64_t n, const uint16_t *b,
                        int64_t row, int64_t column, uint16_t *packed);

/* The product on this thread only: for use inside a task. */
void ort_matrix_block_f32(const ort_kernels *k, const ort_product_f32 *p);
void ort_matrix_block_f64(const ort_kernels *k, const ort_product_f64 *p);
/* The product on the call's pool. */
void ort_matrix_multiply_f32(const ort_call *call, const ort_product_f32 *p);
void ort_matrix_multiply_f64(const ort_call *call, const ort_product_f64 *p);

#endif
