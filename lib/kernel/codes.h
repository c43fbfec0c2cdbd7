/* codes.h - 8-bit codes of one tier: functions by table, sums and products of two tensors, sums of
 * many codes, exponentials.
 *
 * Contract of every member: pointers need no alignment, counts are elements, nothing is read or
 * written past them; y may be x, a or b, no other overlap. Codes are raw bytes; where a sign
 * matters, is_signed says that they are int8. Every tier gives the same bits.
 */
#ifndef ORT_KERNEL_CODES_H
#define ORT_KERNEL_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y = round(fma(a, a_ratio, fma(b, b_ratio, fixed))), half to even, saturated. */
typedef struct ort_byte_sum {
    float a_ratio, b_ratio, fixed;
    bool is_signed;
} ort_byte_sum;

/* y = round((a - a_zero) * (b - b_zero) * ratio + zero), nothing fused, saturated. */
typedef struct ort_byte_product {
    int a_zero, b_zero;
    float ratio, zero;
    bool is_signed;
} ort_byte_product;

enum {
    ORT_BYTE_PLANES = 6,
    ORT_BYTE_ROW = 16, /* codes of multiply_rows */
};

/* exp of the differences to the largest code, as whole multiples of 2^-47: sums of them are exact
 * in any order (65,536 codes at least, and as many times more as 64 bits hold). */
typedef struct ort_byte_exps {
    uint64_t whole[256];                    /* by 255 - difference */
    uint8_t planes[ORT_BYTE_PLANES][256];   /* their bytes, the lowest ones first */
} ort_byte_exps;

/* A table of 256 as a line for each 16 of its entries, and the steps from there up to them:
 * base[h] + (slope[h] * l + fine[h] >> shift), and as many more as a code's bits in `more` are
 * worth, 1 and 2, of the halves h and l of the code, modulo 256. */
typedef struct ort_byte_lines {
    uint8_t base[16];
    int8_t slope[16], fine[16];
    int shift;
    int planes; /* of bits */
    uint8_t more[2][32];
} ort_byte_lines;

/* Whether lines give a table, as they do what activations make of codes. */
bool ort_byte_lines_of(const uint8_t *table, ort_byte_lines *lines);

typedef struct ort_code_kernels {
    /* y[i] = table[x[i]], of a table of 256 */
    void (*look_up)(const uint8_t *x, uint8_t *y, size_t n, const uint8_t *table);
    /* The same of a table that lines give, or NULL where that isn't faster. */
    void (*follow)(const uint8_t *x, uint8_t *y, size_t n, const ort_byte_lines *lines);
    /* y[i] = c[i] ? a[i] : b[i]; c is any number that isn't 0 for true */
    void (*choose)(const uint8_t *c, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n);
    void (*add)(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n, const ort_byte_sum *s);
    void (*multiply)(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n,
                     const ort_byte_product *p);
    /* The same of rows of ORT_BYTE_ROW, each with the one of b. y may be a. */
    void (*multiply_rows)(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t rows,
                          const ort_byte_product *p);
    int64_t (*sum)(const uint8_t *x, size_t n, bool is_signed);
    int64_t (*sum_squares)(const uint8_t *x, size_t n, bool is_signed);
    /* sums[j] += x[r * stride + j] for r in [0, rows), j in [0, n) */
    void (*add_rows)(int32_t *sums, const uint8_t *x, size_t rows, size_t stride, size_t n,
                     bool is_signed);
    /* The largest of x[i] ^ flip; n >= 1. Flipped by 128, codes of int8 are 128 above what they
     * are; by 255 besides, the largest is 255 less the smallest. */
    int (*largest)(const uint8_t *x, size_t n, uint8_t flip);
    /* The sum of whole[(x[i] ^ flip) + 255 - top], none above top. */
    uint64_t (*exp_sum)(const uint8_t *x, size_t n, int top, uint8_t flip,
                        const ort_byte_exps *exps);
    /* y[i] = round(x[i] * factor) + zero, half to even, saturated; products beyond 10^6, and those
     * that are no number, count as that */
    void (*round_f64)(const double *x, double factor, int zero, bool is_signed, uint8_t *y,
                      size_t n);
} ort_code_kernels;

/* Each fills or overrides members of the table; called by dispatch.c, worst tier first. */
void ort_code_plug_scalar(ort_code_kernels *table);
void ort_code_plug_avx2(ort_code_kernels *table);
void ort_code_plug_avx512(ort_code_kernels *table);

#endif
