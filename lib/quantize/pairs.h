/* pairs.h - weights of int8 beside each other whose products no processor cuts when it adds them.
 *
 * Without instructions that add four products of bytes exactly (VNNI), onnxruntime and OpenVINO
 * multiply bytes without a sign by int8 and add two products in 16 bits, saturated (VPMADDUBSW,
 * Intel SDM vol. 2B). 255 (a + b) leaves them where two weights of one sign, whose products are
 * added so, are more than 128 together. Codes that keep to that are exact there on any input.
 */
#ifndef ORT_QUANTIZE_PAIRS_H
#define ORT_QUANTIZE_PAIRS_H

#include "quantize/code_grid.h"

enum { ORT_PAIR_MOST = 128 };

/* Which numbers of a line (all that one output channel multiplies, planes of taps one behind the
 * other) are added in twos: those of two input channels at one tap; where channels are odd also
 * those that follow each other when all channels of a tap lie before those of the next. */
typedef struct ort_pairs {
    int64_t channels; /* 0: none */
    int64_t plane;    /* taps of a filter; 1 of a matrix */
} ort_pairs;

/* Of filters in groups: nobody adds those of one channel and one filter a group (depthwise) so. A
 * matrix is one group of filters of one tap. */
static inline ort_pairs ort_pairs_of_filters(int64_t groups, int64_t filters, int64_t channels,
                                             int64_t plane)
{
    const bool depthwise = groups > 1 && filters == 1 && channels == 1;
    return (ort_pairs){depthwise ? 0 : channels, plane};
}

/* The other numbers that number i of a line is added to: how many, 0 to 2. */
int ort_pairs_of(const ort_pairs *pairs, int64_t i, int64_t other[2]);
static inline bool ort_pair_fits(int a, int b)
{
    return a + b <= ORT_PAIR_MOST && a + b >= -ORT_PAIR_MOST;
}

/* A symmetric grid, made wider where codes of a line don't fit in pairs. */
ort_grid ort_pairs_widen(const ort_codes_range *codes, const ort_pairs *pairs, const float *x,
                         int64_t n, ort_grid grid);
/* Codes of a line that don't fit in pairs all the same become smaller, both by as much. */
void ort_pairs_lower(const ort_pairs *pairs, ort_grid grid, const float *x, int64_t n, int *code);

#endif
