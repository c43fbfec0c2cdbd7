/* dynamic_range.h - scale and zero point of bytes whose range is found in a run. */
#ifndef ORT_OP_SHARED_DYNAMIC_RANGE_H
#define ORT_OP_SHARED_DYNAMIC_RANGE_H

#include <math.h>

/* Of uint8, for numbers from `low` to `high`, by DynamicQuantizeLinear's formula: the range takes
 * in zero, scale = (high - low) / 255, and the zero point is -low / scale, rounded to even and kept
 * within 0 to 255. An infinite range has no such point (NaN): 255, as onnxruntime has it. */
static inline int ort_dynamic_range(float low, float high, float *scale)
{
    low = fminf(low, 0.0f);
    high = fmaxf(high, 0.0f);
    *scale = low == high ? 1.0f : (high - low) / 255.0f;
    float zero = -low / *scale;
    return zero < 255.0f ? (int)rintf(fmaxf(zero, 0.0f)) : 255;
}

#endif
