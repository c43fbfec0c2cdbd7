/* code_grid.h - scales and zero points: which numbers the codes of an integer type stand for.
 *
 * Code q stands for (q - zero_point) * scale (ONNX, DequantizeLinear). A number x has the code
 * round(x / scale) + zero_point, half to even, saturated (ONNX, QuantizeLinear); the division is
 * one of floats.
 */
#ifndef ORT_QUANTIZE_CODE_GRID_H
#define ORT_QUANTIZE_CODE_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "ort.h"

/* The codes that are used of a type. */
typedef struct ort_codes_range {
    ort_dtype dtype; /* INT8, UINT8, INT16, UINT16, INT4, UINT4, INT2, UINT2, of float8 */
    int least, most; /* of float8, whose codes are numbers themselves: its ends */
    bool symmetric;  /* the zero point is the middle: 0, or 128 of uint8 */
} ort_codes_range;

/* Symmetric codes of a signed type leave out its least one, so that -x and x are alike. reduced:
 * 7 bits of 8, whose sums of pairs of products fit 16 bits on processors that saturate there.
 * False: no such type. */
bool ort_codes_range_of(ort_dtype dtype, bool symmetric, bool reduced, ort_codes_range *range);

static inline bool ort_codes_same(const ort_codes_range *a, const ort_codes_range *b)
{
    return a->dtype == b->dtype && a->least == b->least && a->most == b->most &&
           a->symmetric == b->symmetric;
}

typedef struct ort_grid {
    float scale; /* > 0 */
    int zero_point;
} ort_grid;

/* The grid whose ends are next to [least, most], which is widened to hold 0:
 *   scale = (most - least) / (codes - 1), zero_point = round(least code - least / scale)
 * and for symmetric ones scale = max(-least, most) / (most code - zero_point). A range without
 * extent has scale 1. */
ort_grid ort_grid_of(const ort_codes_range *codes, float least, float most);

int ort_grid_code(const ort_codes_range *codes, ort_grid grid, float x);
static inline float ort_grid_number(ort_grid grid, int code)
{
    return (float)(code - grid.zero_point) * grid.scale;
}

/* The grid of n numbers x[i * stride] with the least sum of squared errors, among those of ranges
 * that are their own range, made narrower step by step. sum (or NULL): that sum. */
ort_grid ort_grid_fit(const ort_codes_range *codes, const float *x, int64_t n, int64_t stride,
                      double *sum);

#endif
