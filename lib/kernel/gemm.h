/* gemm.h - kernels of matrix products, convolutions, windows (depthwise, pooling) and integer
 * products.
 *
 * The tile kernels compute C[m][n] = A[m][k] * B[k][n] for one block that the caller sized for the
 * caches; they loop over micro tiles of `mr` rows by `nr` columns themselves. A is row-major and
 * never packed. B is addressed so that one kernel serves packed panels, plain row-major matrices
 * and convolution input without im2col:
 *
 *     element (kk, column j) of panel p  =  b[p * b_panel + step + j]
 *     step = b_offset ? b_offset[kk] : kk * b_step
 *
 * where a panel is `nr` neighbouring columns. Packed: [n/nr][k][nr], b_step = nr, b_panel =
 * k_total * nr, the last panel padded with zeros. Plain row-major: b_step = ldb, b_panel = nr.
 * Columns at and beyond n are never read in the unpacked forms, and never written.
 *
 * All results depend on the operands only, not on how callers cut m and n (k is always summed in
 * ascending order in one accumulator per element within one call).
 */
#ifndef ORT_KERNEL_GEMM_H
#define ORT_KERNEL_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* C = clamp(alpha * A * B + add + row_bias[i] + col_bias[j], lo, hi); NaN stays NaN. add may be
 * NULL or equal c. No pointer needs alignment beyond its element's. */
typedef struct ort_tile_f32 {
    const float *a;
    const void *b; /* floats; for f16 and bf16 numbers of 16 bits, packed */
    int64_t lda, b_step, b_panel;
    const int64_t *b_offset;
    float *c;
    int64_t ldc;
    const float *add;
    int64_t ldadd;
    const float *row_bias, *col_bias; /* NULL: none */
    float alpha, lo, hi;              /* -INFINITY, INFINITY: no clamp */
    const void *ahead; /* packed B of as many columns that is read next: fetched; or NULL */
    int64_t part; /* where ort_gemm_parts is above 1: k is summed in parts of so many, in order, the
                   * first added to add, each other to the sum by then; 0: in one. Without alpha,
                   * biases and b_offset. */
} ort_tile_f32;

/* Blocks of rows by all columns over one part of k, in pieces that any thread may take: of a panel
 * of columns, or where `pieces` isn't 1 of some of the blocks. B is packed. */
typedef struct ort_tiles_f32 {
    ort_tile_f32 t; /* of the first row and column and the part's first k; no b_offset, no ahead */
    int64_t m, n, depth;
    const void *rows;        /* of A, split block by block */
    int64_t pieces;          /* of a panel */
    int64_t ahead;           /* how many panels are taken by others till this thread takes one */
    const float *b_after;    /* of the next part of k, where the panels end; or NULL */
    int64_t (*next)(void *arg); /* number of a piece that nobody has, or -1 */
    void (*done)(void *arg, int64_t piece); /* once its sums are in c; or NULL */
    void *arg;
} ort_tiles_f32;

/* Rows for which B of 16 bits is widened at each load; more pay for widening a panel once. */
#define ORT_HALF_ROWS 4

/* C = alpha * A * B + add. */
typedef struct ort_tile_f64 {
    const double *a, *b;
    int64_t lda, b_step, b_panel;
    const int64_t *b_offset;
    double *c;
    int64_t ldc;
    const double *add;
    int64_t ldadd;
    double alpha;
} ort_tile_f64;

/* Integer products modulo 2^32: C = A * B + add. An element of a and b holds a few integers of
 * neighbouring k (ort_gemm_kernels.i16 and .bytes). k, lda and steps count elements. */
typedef struct ort_tile_i32 {
    const int32_t *a;
    const void *b;
    int64_t lda, b_step, b_panel;
    const int64_t *b_offset;
    int32_t *c;
    int64_t ldc;
    const int32_t *add;
    int64_t ldadd;
    bool far; /* C is more than caches hold: stores may pass them by */
    const int32_t *first_halved, *halved; /* bytes_fours: of two vectors a panel; of all */
    const void *halves;
} ort_tile_i32;

/* Sliding window over prepared rows: out[r * out_row + i] = op over t of in[offset[t] + r * in_row
 * + i], i < n, r < rows. Reads exactly those elements. */
typedef struct ort_taps_f32 {
    int64_t taps;
    const int64_t *offset;
    const float *weight; /* NULL: all ones */
    const float *in;
    int64_t in_row;
    float *out;
    int64_t out_row;
    float bias, lo, hi;  /* sum: clamp(bias + sum weight * in) */
} ort_taps_f32;

/* int32 accumulators to 8 bits: q = clamp(round_even((acc + bias) * scale) + zero, lo, hi),
 * element i; bias and scale are arrays of n when per_column, otherwise one value each. */
typedef struct ort_requant {
    const int32_t *bias; /* NULL: none */
    const float *scale;
    bool per_column;
    int32_t zero, lo, hi; /* lo and hi within the output type: -128..127 or 0..255 */
} ort_requant;

/* Weights of a few bits in blocks along k: y[row][j] = sum over k of a[row][k] *
 * (q[j][k] - zero) * scale + bias[j]. Columns come in groups of `lanes` (nbits_lanes below). A word
 * holds 32 / bits weights of one, neighbours along k, in 8 / bits parts: part s, from bit s * bits
 * on, has in each byte one weight, and four neighbours in all.
 *
 *     words  [group][words][lanes]     scale, zero  [group][blocks][lanes]
 *
 * A row of words is cut into runs, each as long as a block or a part of it: run_words words, of 128
 * weights at most; block_runs runs are a block. */
typedef struct ort_nbits {
    const int32_t *words;
    int bits;                               /* 2, 4 or 8 */
    int middle;                             /* zero point of all weights where there is no zero */
    const float *scale;                     /* NULL: scale_half */
    const uint16_t *scale_half;             /* float16 */
    const float *zero;                      /* NULL: zero_byte, or none */
    const uint8_t *zero_byte;
    const float *bias;                      /* [n] or NULL */
    int64_t n, row_words, run_words, block_runs;
    int64_t rows;
    int digits;                             /* 1 or 3 bytes an element of a */
    const int32_t *fixed;                   /* [rows][fixed_row], by nbits_fix */
    const float *units, *sums;              /* [rows][runs] */
    int64_t fixed_row;
    float *y;
    int64_t y_row;
} ort_nbits;

/* A window of whole numbers on a plane of them, two taps of a row in a word. Output i reads, for
 * row r of the window, pairs of elements from x + row[r] + i * stride on. Up to ORT_WINDOW16_MORE
 * elements behind those of the last output are read, and outputs behind it are written, for
 * nothing. */
typedef struct ort_window16 {
    const int16_t *x;
    const int64_t *row;         /* elements */
    int64_t rows, pairs;        /* ort_window16_pairs(columns, stride) */
    int64_t stride;             /* 1 or 2 */
    const int32_t *w;           /* [row][pair][2] words of two int16: of an output that begins with
                                   an even element, and of stride 1 with an odd one */
    int64_t count;
    int32_t bias;
    int32_t *sums;              /* with the bias; NULL: */
    uint16_t *codes;            /* clamp((float)sum * ratio, low, high), half to even, + zero */
    float ratio, low, high;     /* bounds are whole numbers, with zero those of 16 bits */
    int32_t zero;
} ort_window16;

enum { ORT_WINDOW16_MORE = 128 };

static inline int64_t ort_window16_pairs(int64_t columns, int64_t stride)
{
    return stride == 1 ? columns / 2 + 1 : (columns + 1) / 2;
}

/* A pair of rows of A for Strassen's product (kernel/strassen.h). */
typedef struct ort_strassen_row {
    const float *first, *second;  /* NULL: zeros */
    int64_t half;                 /* from one half of a row to the other */
    float by_first, by_second;    /* powers of two */
    float *out;                   /* left operands, `step` from one to the next */
    int64_t step;
    bool in_place;                /* without A11, A12 and A22 */
} ort_strassen_row;

/* Its seven products of one pair of panels. */
typedef struct ort_strassen_sums {
    const float *products;        /* [7][rows][nr] */
    int64_t rows, low;            /* pairs of rows; with a second one */
    const float *first, *second;  /* by what rows of C are multiplied */
} ort_strassen_sums;

typedef struct ort_strassen_kernels {
    /* The largest magnitude; `ahead` is what is read next. */
    float (*most)(int64_t n, const float *a, const float *ahead);
    /* Does no column of a panel differ by more than ORT_STRASSEN_UNEVEN from the other panel's? By
     * their largest magnitudes. */
    bool (*even)(int64_t k, const float *left, const float *right);
    void (*rows)(int64_t k, const ort_strassen_row *row); /* k of a half */
    /* f32 of one whole panel, B being t->b - less, both packed: it is written to `formed` by the
     * first rows, less_rows of them, and read there by the others. m is no less. */
    void (*less)(int64_t m, int64_t k, const ort_tile_f32 *t, const float *less, float *formed);
    int less_rows;
    /* Both panels of C, and what follows, as t has it for the corner: false where a sum isn't
     * finite. */
    bool (*finish)(const ort_strassen_sums *s, const ort_tile_f32 *t);
} ort_strassen_kernels;

#define ORT_STRASSEN_UNEVEN 8.0f

/* Some rows by one whole panel, by crossed sums (kernel/crossed.h), and what follows:
 * C = clamp(back[i] * (row[i] + column[j] + sums) + bias[j] + add, lo, hi). */
typedef struct ort_crossed_tile {
    const float *a;           /* rows as `row` copied them, lda apart */
    int64_t lda;
    const float *b;           /* packed */
    const float *row, *column, *back;
    const float *bias, *add;  /* NULL: none; add may be c itself */
    int64_t ldadd;
    float *c;
    int64_t ldc;
    int64_t next;             /* in c and add, from one half of a row's columns to the other */
    float lo, hi;             /* -INFINITY, INFINITY: no clamp */
    const float *ahead;       /* fetched meanwhile: a line for each three k; never NULL */
} ort_crossed_tile;

typedef struct ort_crossed_kernels {
    int rows, rows_least;     /* of a tile */
    float (*squares)(int64_t n, const float *a); /* their sum */
    /* out = x * by, k of a part; what the row's sums begin with. Up to a vector beyond the k of out
     * is written and read. */
    float (*row)(int64_t k, float by, const float *x, float *out);
    /* What the sums of a panel's columns begin with, for each `part` of k [parts][nr], and the sums
     * of their squares [nr]. */
    void (*columns)(int64_t k, int64_t part, const float *b, float *begin, float *squares);
    void (*tile)(int64_t rows, int64_t k, const ort_crossed_tile *t);
} ort_crossed_kernels;

typedef struct ort_gemm_kernels {
    int mr, nr;         /* f32 micro tile */
    int mr64, nr64;     /* f64 */
    int mri, nri;       /* i16 and bytes */
    int tile_rows;      /* bytes_tiles: rows that it takes best at a time; 0: there is none */
    int word;           /* bytes: 2 or 4 of them, neighbours along k, are one element */
    int kc;             /* k per call that keeps one panel in the first-level cache */
    int whole_rows;     /* products of so many rows are summed in one call, faster; 0 where results
                         * of a row must not depend on how many there are */

    /* Multiply-adds in registers; returns the floating-point operations done. For measuring what
     * the machine can reach; *sink receives a number without meaning. */
    double (*multiply_adds)(int64_t rounds, float *sink);
    /* The same of the instructions that `bytes`, or `bytes_tiles`, is made of. */
    double (*byte_multiply_adds)(int64_t rounds, float *sink);
    /* And of those of f32_tiles, as operations of floats; NULL where that is. */
    double (*tile_multiply_adds)(int64_t rounds, float *sink);
    void (*f32)(int64_t m, int64_t n, int64_t k, const ort_tile_f32 *tile);
    /* The same of many rows where the tier has a faster way, else NULL, in sums as exact
     * (kernel/amx/thirds.h): rows in blocks of f32_tiles_rows, columns in panels, both counted from
     * the product's first on, and k in even parts of f32_tiles_depth at most, one after the other.
     * Results don't depend on who computes what of these. A block of rows of A is split once for
     * each part of k, f32_tiles_step bytes for every 32 of it and f32_tiles_more, 64-byte
     * aligned. */
    void (*f32_tiles_split)(int64_t m, int64_t k, const float *a, int64_t lda, void *to);
    void (*f32_tiles)(const ort_tiles_f32 *work, void *space);
    size_t f32_tiles_bytes; /* of space, 64-byte aligned */
    int f32_tiles_rows, f32_tiles_depth, f32_tiles_step, f32_tiles_more;
    /* The bits that f32 gives on a B whose numbers all are float16 or bfloat16, read in that form
     * (panels of nr, no b_offset). Meant for m up to ORT_HALF_ROWS. */
    void (*f16)(int64_t m, int64_t n, int64_t k, const ort_tile_f32 *tile);
    void (*bf16)(int64_t m, int64_t n, int64_t k, const ort_tile_f32 *tile);
    void (*f64)(int64_t m, int64_t n, int64_t k, const ort_tile_f64 *tile);
    ort_strassen_kernels strassen; /* empty where products are direct sums */
    ort_crossed_kernels crossed;   /* empty where additions take the time of multiply-adds */
    /* Elements of both hold two int16, in 32 bits. */
    void (*i16)(int64_t m, int64_t n, int64_t k_pairs, const ort_tile_i32 *tile);
    /* Unsigned bytes by signed ones, exactly. A word of B is `word` int8 in as many bytes; one of A
     * has 32 bits, of `word` uint8 (4), or of int16 that hold such a byte (2). B is packed. */
    void (*bytes)(int64_t m, int64_t n, int64_t k_words, const ort_tile_i32 *tile);
    /* The same of many rows, where the tier has a faster way than for few, else NULL. */
    void (*bytes_tiles)(int64_t m, int64_t n, int64_t k_words, const ort_tile_i32 *tile);
    /* Where `word` is 2, the same of words of four on both sides, if weights allow it, else NULL.
     * fours_pack turns panels of pack_bytes, k a multiple of 4 (or padded to one), into such, if no
     * more than `most` of their vectors of four-byte words have to be halved, and says so; halves
     * take 32 bytes each, `halved` has their words, and first_halved, of two vectors a panel and
     * one behind them, where those of each vector begin. */
    void (*bytes_fours)(int64_t m, int64_t n, int64_t k_words, const ort_tile_i32 *tile);
    bool (*fours_pack)(int64_t k_words, int64_t panels, int64_t most, void *panel,
                       int32_t *first_halved, int32_t *halved, void *halves);
    /* k bytes of a row of A to words for `bytes`, the last filled up with 0. Signed x is taken as
     * the unsigned x + 128. */
    void (*words_u8)(int64_t k, const void *x, bool is_signed, int32_t *out);
    /* Byte (kk, j) of B = b[kk * row + j * column] to words in panels of nri columns, filled up
     * with 0; the panels follow each other. Unsigned b is taken as the signed b - 128. */
    void (*pack_bytes)(int64_t k, int64_t n, const void *b, int64_t row, int64_t column,
                       bool is_signed, void *out);

    /* Element (kk, j) = b[kk * row + j * column]: k * n elements into panels of nr (nr64) columns,
     * panel stride k_total * nr; the last panel is zero padded. b is aligned for nothing. */
    void (*pack_f32)(int64_t k, int64_t n, const float *b, int64_t row, int64_t column,
                     int64_t k_total, float *out);
    void (*pack_f64)(int64_t k, int64_t n, const double *b, int64_t row, int64_t column,
                     int64_t k_total, double *out);
    void (*pack_16)(int64_t k, int64_t n, const uint16_t *b, int64_t row, int64_t column,
                    int64_t k_total, uint16_t *out);

    void (*taps_sum_f32)(int64_t rows, int64_t n, const ort_taps_f32 *taps);
    void (*taps_max_f32)(int64_t rows, int64_t n, const ort_taps_f32 *taps); /* NaN wins */
    /* Rows of `extent`: elements [first, first + count) of row r are in[r * in_row + i * stride],
     * i from 0, the others pad. */
    void (*spread_f32)(int64_t rows, int64_t extent, int64_t first, int64_t count, const float *in,
                       int64_t in_row, int64_t stride, float pad, float *out);

    /* out[i] = x[i] - zero, x of 8 bits. */
    void (*widen_s16)(int64_t n, const void *x, bool is_signed, int zero, int16_t *out);
    void (*widen_f32)(int64_t n, const void *x, bool is_signed, int zero, float *out);
    void (*round_f32)(int64_t n, const float *x, int32_t *out); /* may be the same memory */
    /* out[2i] = x[i * stride] - zero, out[2i + 1] the same of y; y NULL: 0. */
    void (*widen_pairs_s16)(int64_t n, const void *x, const void *y, int64_t stride, bool is_signed,
                            int zero, int16_t *out);
    void (*requant)(int64_t n, const int32_t *acc, const ort_requant *r, void *out);
    /* The same of m rows of sums, ld apart, to rows of bytes; more[i], or 0 if NULL, is added to
     * each sum of row i. */
    void (*requant_rows)(int64_t m, int64_t n, const int32_t *sums, int64_t ld,
                         const int32_t *more, const ort_requant *r, void *out, int64_t out_row);
    /* out[i] = (float)acc[i] * scale[i] + bias[i]; no bias: NULL. May be the same memory. */
    void (*scale_i32)(int64_t n, const int32_t *acc, const float *scale, const float *bias,
                      void *out);
    /* The bytes of codes of 16 bits. */
    void (*split_16)(int64_t n, const uint16_t *x, uint8_t *high, uint8_t *low);
    /* acc[i] += factor * x[i], exact where these are whole numbers below 2^53. */
    void (*wide_add)(int64_t n, double factor, const int32_t *x, double *acc);
    /* out[i] = acc[i] * scale[i] + bias[i], rounded to float in the end; no bias: NULL. */
    void (*wide_scale)(int64_t n, const double *acc, const double *scale, const double *bias,
                       float *out);
    void (*window16)(const ort_window16 *window);
    /* acc[i] -= by * x[i], modulo 2^32. */
    void (*subtract_i32)(int64_t n, int32_t by, const int32_t *x, int32_t *acc);
    int nbits_lanes;
    /* Rows [j, j + lanes) of [n][row_words] of `bits` each, the first in the low bits, into the
     * words of one group; rows beyond n are 0. */
    void (*nbits_pack)(int64_t n, int64_t row_words, int bits, const uint8_t *q, int64_t j,
                       int32_t *words);
    /* Columns [first, last), first a multiple of lanes, by rows in fixed point: w->digits bytes for
     * each element. 1: |error of a| <= (largest |a| of its run) / 254; 3: 2^-22 of it; beside that
     * sums round as those of floats. A row's results don't depend on the others. */
    void (*nbits)(int64_t first, int64_t last, const ort_nbits *w);
    /* k elements in fixed point, zeros up to the end of the row: a word of each digit for every
     * four, and behind them `digits` words a run; then units and sums of each run. False when one
     * isn't finite, or the largest of a run is beyond 2^+-100: such a row has to be multiplied in
     * floats. */
    bool (*nbits_fix)(int64_t k, const ort_nbits *w, const float *a, int32_t *fixed, float *units,
                      float *sums);
    /* The same of many rows, nbits_round_rows and more, that are rounded to bfloat16, as weights
     * are, where the tier has a way for it, else NULL: each product is off by less than 2^-8 +
     * 2^-18 of itself, which the half unit of one byte allows, too. Runs have 32 weights at least,
     * zero is NULL, scales are 0 or within 2^-60 and 2^60. nbits_round writes a row of `fixed`, of
     * 16 words for each 32 weights of a row, and fixed_row is a multiple of 16, odd ones being
     * kinder to caches; false where one isn't finite, or the largest is beyond 2^+-100. */
    bool (*nbits_round)(int64_t k, const ort_nbits *w, const float *a, int32_t *fixed);
    void (*nbits_rounded)(int64_t first, int64_t last, const ort_nbits *w);
    int nbits_round_rows;
    /* out[kk * step + c] = (weight k0 + kk of column c of the group - zero) * scale, kk < depth and
     * c < lanes; k0 is a multiple of 16. */
    void (*nbits_widen)(const ort_nbits *w, int64_t group, int64_t k0, int64_t depth, float *out,
                        int64_t step);
    float (*dot_f32)(int64_t n, const float *a, const float *b);
    /* out[j] = scale * (a . row j), j < count: rows of n elements, `row` from one to the next. */
    void (*dots_f32)(int64_t count, int64_t n, const float *a, const float *rows, int64_t row,
                     float scale, float *out);
    /* The same sums, unscaled, of four vectors `a_row` apart: out[j * out_row + i] = (vector i) .
     * (row j), i < 4. */
    void (*dots4_f32)(int64_t count, int64_t n, const float *a, int64_t a_row, const float *rows,
                      int64_t row, float *out, int64_t out_row);
    /* out[i] = sum over j < count of weights[j] * (element i of row j), i < n. */
    void (*blend_f32)(int64_t count, int64_t n, const float *weights, const float *rows,
                      int64_t row, float *out);
} ort_gemm_kernels;

/* How many parts of kc a call of f32 takes best: on vectors some, since B comes from the
 * second-level cache fast enough. Others than tiers of vectors take one. */
static inline int ort_gemm_parts(const ort_gemm_kernels *table)
{
    return table->nr >= 16 ? 3 : 1;
}

/* Does one micro tile of rows take all parts of a panel of B best, before the next panel? Measured
 * on 512 bits alone. */
static inline bool ort_gemm_whole_panels(const ort_gemm_kernels *table)
{
    return table->nr == 32;
}

/* Fill (scalar) or override members. Called once, by dispatch.c. */
void ort_gemm_plug_scalar(ort_gemm_kernels *table);
void ort_gemm_plug_avx2(ort_gemm_kernels *table);
void ort_gemm_plug_avxvnni(ort_gemm_kernels *table); /* over avx2 */
void ort_gemm_plug_avx512(ort_gemm_kernels *table);
void ort_gemm_plug_vnni(ort_gemm_kernels *table); /* over avx512 */
void ort_gemm_plug_amx(ort_gemm_kernels *table); /* over vnni */

#endif
