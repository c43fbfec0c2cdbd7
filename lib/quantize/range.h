/* range.h - which part of what a value held its codes cover. */
#ifndef ORT_QUANTIZE_RANGE_H
#define ORT_QUANTIZE_RANGE_H

#include "quantize/code_grid.h"
#include "quantize/histogram.h"

typedef struct ort_range {
    float least, most; /* 0 among them */
} ort_range;

/* ORT_OBSERVE_ENTROPY: the least Kullback-Leibler divergence (Migacz, "8-bit Inference with
 * TensorRT", 2017). percentile: of the numbers that stay in the range, in (0, 100]; half of the
 * others lie beyond each end, or, for symmetric codes, all beyond the ends of [-most, most]. A
 * histogram without bins gives all of its range. */
ort_range ort_range_choose(const ort_histogram *h, ort_observer observer, double percentile,
                           const ort_codes_range *codes);

#endif
