/* matrix_tiles.h - the matrix products of matrix.h that run on the tiles of a tier, by crossed
 * sums, or in Strassen's way. */
#ifndef ORT_OP_SHARED_MATRIX_TILES_H
#define ORT_OP_SHARED_MATRIX_TILES_H

#include "op/shared/matrix.h"

/* Whether tiles are the faster way. */
bool ort_tiles_pay(const ort_kernels *k, int64_t m, int64_t n, int64_t depth);
/* p, whose B is packed in floats at `b` and whose tiles and split rows have space: on the call's
 * pool, or on this thread. */
void ort_tiles_multiply(const ort_call *call, const ort_product_f32 *p, const float *b);
void ort_tiles_block(const ort_kernels *k, const ort_product_f32 *p, const float *b);

/* Some rows and columns of p, whose B is packed, as sums of all k in order; the first column begins
 * a panel. */
typedef void ort_direct_f32(const ort_kernels *k, const ort_product_f32 *p, int64_t row,
                            int64_t rows, int64_t column, int64_t columns);
/* Bytes for each thread, and for what is noted of B (matrix.h); 0 where direct sums are as fast. */
size_t ort_crossed_space(const ort_kernels *k, int64_t m, int64_t n, int64_t depth);
size_t ort_crossed_notes(const ort_kernels *k, int64_t depth, int64_t n);
size_t ort_strassen_space(const ort_kernels *k, int64_t m, int64_t n, int64_t depth);
size_t ort_strassen_notes(const ort_kernels *k, int64_t depth, int64_t n);
/* Whether p goes that way, which its sizes, its space and what is noted decide; and it does, but
 * for what doesn't suit it: on the call's pool, or on this thread. */
bool ort_crossed_takes(const ort_kernels *k, const ort_product_f32 *p);
void ort_crossed_multiply(const ort_call *call, const ort_product_f32 *p, ort_direct_f32 *direct);
void ort_crossed_block(const ort_kernels *k, const ort_product_f32 *p, ort_direct_f32 *direct);
bool ort_strassen_takes(const ort_kernels *k, const ort_product_f32 *p);
void ort_strassen_multiply(const ort_call *call, const ort_product_f32 *p, ort_direct_f32 *direct);
void ort_strassen_block(const ort_kernels *k, const ort_product_f32 *p, ort_direct_f32 *direct);

/* e with the one row that it adds as a matrix whose rows are 0 apart. */
ort_epilogue ort_matrix_plainer(const ort_epilogue *e);
/* The activation that is applied last to [m][n] of c, if any. */
void ort_matrix_activate(const ort_kernels *k, int64_t m, int64_t n, float *c, int64_t ldc,
                           const ort_epilogue *e);

#endif
