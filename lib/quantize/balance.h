/* balance.h - roundings of a weight whose errors cancel in the sums that products make of them.
 *
 * What a product reads is alike in neighbouring taps of a filter, and after an activation mostly of
 * one sign: errors of codes that add up shift its result, those that cancel don't. As in Guo et
 * al., "SQuant: On-the-Fly Data-Free Quantization via Diagonal Hessian Approximation" (ICLR 2022),
 * codes that were rounded to the nearest go the other way, those nearest to the middle between two
 * first, until the errors of each filter plane add up to half a step at most, and then those of
 * each output channel.
 */
#ifndef ORT_QUANTIZE_BALANCE_H
#define ORT_QUANTIZE_BALANCE_H

#include "quantize/pairs.h"

typedef struct ort_balance_room { /* [numbers of a channel] each */
    float *error;
    int64_t *heap;
} ort_balance_room;

/* code[n]: of the numbers of a channel, rounded to the nearest; changed. plane: numbers of a filter
 * plane, which lie together; 1: there are none. What fits in pairs (or NULL) does so after it. */
void ort_balance_line(const ort_codes_range *codes, ort_grid grid, const float *numbers, int64_t n,
                      int64_t plane, const ort_pairs *pairs, int *code,
                      const ort_balance_room *room);

#endif
