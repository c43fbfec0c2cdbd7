/* grids.h - grids of blocks of weights, of 2 to 8 bits, of one tier: code q stands for
 * (q - zero) * scale.
 *
 * Blocks are fitted side by side, a lane each: number i of lane l is x[i * ORT_BLOCK_LANES + l].
 * All arithmetic is that of single floats in one order, nothing fused, so that every tier gives the
 * same bits.
 */
#ifndef ORT_KERNEL_GRIDS_H
#define ORT_KERNEL_GRIDS_H

#include <stdbool.h>
#include <stdint.h>

#include "ort.h"

enum { ORT_BLOCK_LANES = 16 };

typedef struct ort_block_form {
    int bits;        /* codes are 0 .. 2^bits - 1 */
    bool symmetric;  /* zero is 2^(bits - 1) */
    ort_dtype scale; /* FLOAT, FLOAT16 or BFLOAT16: scales are numbers of it */
} ort_block_form;

typedef struct ort_block_grid {
    float scale[ORT_BLOCK_LANES]; /* may be negative: the larger end is then where codes reach */
    float zero[ORT_BLOCK_LANES];  /* whole */
} ort_block_grid;

/* Rows of a matrix whose errors later rows make up for: row r pays
 *     back[r] * (owed[r] + sum of factor[j * rows + r] * error of row j, j < r in order)
 * before it is rounded. */
typedef struct ort_block_debt {
    int rows;
    const float *factor; /* [rows][rows] */
    const float *back;   /* [rows] */
    float *owed;         /* [rows][ORT_BLOCK_LANES], written over */
} ort_block_debt;

typedef struct ort_grid_kernels {
    /* The grid with the least squared error of n numbers that was found: ranges of several widths,
     * each followed to the best line through its codes, and back to the codes of that line.
     * importance[n] (or NULL) weighs the squares. */
    void (*fit)(const ort_block_form *form, const float *x, const float *importance, int64_t n,
                ort_block_grid *grid);
    /* From a fitted grid on to one with a smaller sum of |error|^p, p = 3/4: a few large errors
     * cost less there than in squares. Half-quadratic splitting as in HQQ (Badri & Shaji 2023): x
     * is taken for codes plus sparse errors, which are shrunk and subtracted in turn. A lane for
     * which no step is better keeps its grid. */
    void (*refine)(const ort_block_form *form, const float *x, int64_t n, ort_block_grid *grid);
    /* codes[n * ORT_BLOCK_LANES] of the nearest numbers. */
    void (*codes)(const ort_block_form *form, const ort_block_grid *grid, const float *x,
                  int64_t n, uint8_t *codes);
    /* The sum of squared errors of each lane. */
    void (*errors)(const ort_block_form *form, const ort_block_grid *grid, const float *x,
                   int64_t n, float *errors);
    /* y[r][lane] += factor[r * stride + j] * x[j][lane], r < rows, j < n in order. */
    void (*owe)(const float *factor, int64_t stride, int rows, const float *x, int64_t n,
                float *y);
    /* x[rows][ORT_BLOCK_LANES] becomes what it is when all that is owed is paid without rounding,
     * and owed the errors that later rows see then. */
    void (*pay)(const ort_block_debt *debt, float *x);
    /* ... and rounded row after row, each to its grid: codes[rows][ORT_BLOCK_LANES]; x becomes the
     * errors that later rows make up for. */
    void (*pay_codes)(const ort_block_form *form, const ort_block_grid *const *grids,
                      const ort_block_debt *debt, float *x, uint8_t *codes);
} ort_grid_kernels;

/* Each fills or overrides members of the table; called by dispatch.c, worst tier first. */
void ort_grid_plug_scalar(ort_grid_kernels *table);
void ort_grid_plug_avx2(ort_grid_kernels *table);
void ort_grid_plug_avx512(ort_grid_kernels *table);

#endif
