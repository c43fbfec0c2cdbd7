/* extremes.h - the ends of the range of numbers that come in parts, from several threads. */
#ifndef ORT_KERNEL_EXTREMES_H
#define ORT_KERNEL_EXTREMES_H

#include <stddef.h>
#include <stdint.h>

/* Least and most: of the finite numbers and 0. Zeros: and denormals, among the finite ones. */
typedef struct ort_extremes {
    float least, most;
    uint64_t count, finite, zeros;
} ort_extremes;

/* What one thread found: threads don't share lines. */
typedef struct ort_extremes_part {
    _Alignas(64) ort_extremes found;
} ort_extremes_part;

/* At most INT32_MAX numbers more. */
void ort_extremes_add(ort_extremes *e, const float *x, size_t n);
ort_extremes ort_extremes_sum(const ort_extremes_part *parts, int count);

#endif
