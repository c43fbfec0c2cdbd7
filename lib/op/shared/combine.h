/* combine.h - dst[i] = dst[i] OP src[i] for every element type that has the operation: what the
 * reductions of the scatter operators and Col2Im are made of. */
#ifndef ORT_OP_SHARED_COMBINE_H
#define ORT_OP_SHARED_COMBINE_H

#include "tensor/tensor.h"

typedef enum ort_combine {
    ORT_COMBINE_NONE, /* dst = src */
    ORT_COMBINE_ADD,  /* bool: or; integers wrap */
    ORT_COMBINE_MUL,  /* bool: and */
    ORT_COMBINE_MAX,  /* NaN wins */
    ORT_COMBINE_MIN,
} ort_combine;
#define ORT_COMBINE_WORDS "none add mul max min" /* what attributes call them */

typedef void ort_combine_fn(void *dst, const void *src, int64_t count);

/* NULL when the type has no such operation (strings, max of complex, packed types). 16-bit floats
 * round after each step, as repeated indices of a scatter do. Not for ORT_COMBINE_NONE. */
ort_combine_fn *ort_combine_get(ort_dtype dtype, ort_combine op);

#endif
