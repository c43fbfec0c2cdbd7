/* spread_pairs.h - planes of two input channels in the layout of spread.h, side by side: an element
 * is a pair of int16, as integer convolutions multiply it.
 */
#ifndef ORT_OP_SHARED_SPREAD_PAIRS_H
#define ORT_OP_SHARED_SPREAD_PAIRS_H

#include "op/shared/spread.h"

/* Elements `at`, `at + stride`, ... of two planes, as `count` pairs. */
typedef void ort_pair_line(const void *planes, int64_t at, int64_t stride, int64_t count,
                           int16_t *out);
/* Those planes, with the number of padding, into `out` (channel pairs). */
void ort_spread_pairs(const ort_spread *s, ort_pair_line *line, const void *planes, int16_t pad,
                      int32_t *out);

#endif
