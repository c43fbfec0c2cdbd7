/* strassen.h - products of floats by seven products of half the rows, columns and depth: one level
 * of Strassen's algorithm in Winograd's form.
 *
 *     S1 = A21 + A22   S2 = S1 - A11    S3 = A11 - A21   S4 = A12 - S2
 *     T1 = B12 - B11   T2 = B22 - T1    T3 = B22 - B12   T4 = T2 - B21
 *     P1 = A11 B11     P2 = A12 B21     P3 = S4 B22      P4 = A22 T4
 *     P5 = S1 T1       P6 = S2 T2       P7 = S3 T3       U2 = P1 + P6    U3 = U2 + P7
 *     C11 = P1 + P2    C12 = U2 + P5 + P3    C21 = U3 - P4    C22 = U3 + P5
 *
 * Rows are taken by blocks, whose halves are paired, columns by pairs of panels, and a row's halves
 * along k. The seven left operands of a block are written once, or read where they lie, and serve
 * all columns. Those of B are differences that the first rows of a product form as they read it
 * (ort_strassen_kernels.less), a part of k at a time: packed B stays as it is.
 *
 * Errors. Let a be the largest magnitude of a pair of rows of A, b that of a pair of columns of B,
 * h = depth / 2, u = 2^-24, and g u the bound of the relative error of a sum of h products as the
 * kernel forms it (g <= h; blocks of 128 have g <= 128 + h / 128). To the first order, in units of
 * h a b u: S1, T1, S3, T3 are at most 2 a (or b) and off by 2 u, S2 and T2 3 and 5, S4 and T4 4 and
 * 9. So P1 and P2 are off by g, P5 and P7 by 4 g + 2 * 2 + 2 * 2, P6 by 9 g + 3 * 5 + 5 * 3, P3 and
 * P4 by 4 g + 9. C12, C21 and C22 are sums of four of these, 18 g + 47 at most, and their three
 * additions add 10 + 14 + 18. Each element of C is off by at most
 *
 *     (9 g + 45) depth a b u.
 *
 * A direct sum is off by g u of the sum of magnitudes of its own products, which may be far less
 * than depth a b: where rows, columns or parts of k differ much in size. So each row is multiplied
 * by a power of two, which is exact, that brings it to the size of the other of its pair (a is less
 * than twice the largest magnitude of either), and pairs of columns that differ by more than
 * ORT_STRASSEN_UNEVEN are left to direct sums, as are pairs of rows that differ by more than 2^100.
 * A row of zeros gives zeros. What is lost for large and small numbers within one row stays: the
 * error is one of the norms of a row and a column.
 *
 * A row or column that isn't finite would spoil those that it is paired with, and sums may overflow
 * where those of a direct product don't. The results show both, and are then computed directly.
 */
#ifndef ORT_KERNEL_STRASSEN_H
#define ORT_KERNEL_STRASSEN_H

#include "kernel/gemm.h"

/* How a product is cut: by its sizes alone. */
typedef struct ort_strassen {
    const ort_gemm_kernels *k;
    int64_t m, n, depth; /* even */
    int64_t blocks, most;      /* of rows; pairs of a block, at most */
    int64_t pairs;             /* of panels; columns beyond them are left */
    int64_t half, part, step;  /* of k: summed at once, and multiplied at once */
} ort_strassen;

ort_strassen ort_strassen_of(const ort_gemm_kernels *k, int64_t m, int64_t n, int64_t depth);
/* Of the space that a thread needs, 64-byte aligned. */
size_t ort_strassen_bytes(const ort_strassen *s);

static inline int64_t ort_strassen_first_row(const ort_strassen *s, int64_t block)
{
    return s->m * block / s->blocks;
}

/* The left operands of a block of rows of A: three of them where they lie, if in_place. */
typedef struct ort_strassen_left {
    const float *a;
    int64_t lda;
    bool in_place, suits;
} ort_strassen_left;

/* These, the others in `space`, which serve all its pairs of panels unless !suits. */
ort_strassen_left ort_strassen_rows(const ort_strassen *s, int64_t block, const float *a,
                                    int64_t lda, void *space);
/* Their products by a pair of panels of packed B, the first of which begins at b: t has C's corner
 * of that block and pair, and what follows. ahead: the pair that is read next, or NULL. False where
 * C has to be computed directly. */
bool ort_strassen_pair(const ort_strassen *s, int64_t block, const ort_strassen_left *left,
                       const float *b, const ort_tile_f32 *t, const float *ahead, void *space);

#endif
