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

#include "quantize/code_grid.h"
#include "tensor/tensor.h"

typedef struct ort_balance {
    const ort_tensor *numbers;       /* floats */
    const ort_codes_range *codes;
    const ort_tensor *scales, *zeros; /* one, or one a channel */
    int axis;                        /* of channels; -1: unknown */
} ort_balance;

/* codes: of the numbers, rounded to the nearest; changed. */
ort_status ort_balance_codes(const ort_balance *b, ort_tensor *codes, ort_error *err);

#endif
