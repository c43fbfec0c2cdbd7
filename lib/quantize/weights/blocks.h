/* blocks.h - grids of blocks of weights, of 2 to 8 bits: code q stands for (q - zero) * scale.
 *
 * Blocks are fitted side by side, a lane each: number i of lane l is x[i * ORT_BLOCK_LANES + l].
 * All arithmetic is that of single floats in one order, so that results are the same bits on every
 * machine, for any number of threads.
 */
#ifndef ORT_QUANTIZE_BLOCKS_H
#define ORT_QUANTIZE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "ort.h"

enum { ORT_BLOCK_LANES = 8 };

typedef struct ort_block_form {
    int bits;        /* codes are 0 .. 2^bits - 1 */
    bool symmetric;  /* zero is 2^(bits - 1) */
    ort_dtype scale; /* FLOAT, FLOAT16 or BFLOAT16: scales are numbers of it */
} ort_block_form;

typedef struct ort_block_grid {
    float scale[ORT_BLOCK_LANES]; /* may be negative: the larger end is then where codes reach */
    float zero[ORT_BLOCK_LANES];  /* whole */
} ort_block_grid;

/* The grid with the least squared error of n numbers that was found: ranges of several widths, each
 * followed to the best line through its codes, and back to the codes of that line. importance[n]
 * (or NULL) weighs the squares. */
void ort_block_fit(const ort_block_form *form, const float *x, const float *importance, int64_t n,
                   ort_block_grid *grid);

/* From a fitted grid on to one with a smaller sum of |error|^p, p = 3/4: a few large errors cost
 * less there than in squares. Half-quadratic splitting as in HQQ (Badri & Shaji 2023): x is taken
 * for codes plus sparse errors, which are shrunk and subtracted in turn. A lane for which no step
 * is better keeps its grid. */
void ort_block_refine(const ort_block_form *form, const float *x, int64_t n, ort_block_grid *grid);

/* codes[n * ORT_BLOCK_LANES] of the nearest numbers. */
void ort_block_codes(const ort_block_form *form, const ort_block_grid *grid, const float *x,
                     int64_t n, uint8_t *codes);

/* The sum of squared errors of each lane. */
void ort_block_errors(const ort_block_form *form, const ort_block_grid *grid, const float *x,
                      int64_t n, float *errors);

#endif
