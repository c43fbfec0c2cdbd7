/* scalar.h - the number that a tensor of one element stands for.
 *
 * Invariant: no element is read of a tensor that has none, or whose data isn't known. Operators and
 * passes read single numbers through here alone (make lint refuses other reads of a first element).
 */
#ifndef ORT_TENSOR_SCALAR_H
#define ORT_TENSOR_SCALAR_H

#include "tensor/tensor.h"

/* Has it exactly one element, of numbers or bools, and known? t may be NULL. Runs ask this of each
 * scale and zero point: inline, and without a general count. */
static inline bool ort_tensor_is_one(const ort_tensor *t)
{
    const uint32_t no_numbers = 1u << ORT_DTYPE_UNDEFINED | 1u << ORT_DTYPE_STRING |
                                1u << ORT_DTYPE_COMPLEX64 | 1u << ORT_DTYPE_COMPLEX128;
    if (!t || !t->data || (no_numbers >> (unsigned)t->dtype & 1))
        return false;
    for (int d = 0; d < t->shape.rank; d++)
        if (t->shape.dim[d] != 1)
            return false;
    return true;
}

/* That number; false, *number untouched, when there is none. */
bool ort_tensor_one_i64_(const ort_tensor *t, int64_t *number);
static inline bool ort_tensor_one_i64(const ort_tensor *t, int64_t *number)
{
    if (!ort_tensor_is_one(t))
        return false;
    switch (t->dtype) {
    case ORT_DTYPE_INT8: *number = *(const int8_t *)t->data; return true;
    case ORT_DTYPE_UINT8: *number = *(const uint8_t *)t->data; return true;
    default: return ort_tensor_one_i64_(t, number);
    }
}
bool ort_tensor_one_f64(const ort_tensor *t, double *number);

/* Of a tensor of floats: its number; false, *number untouched, when there is none. */
static inline bool ort_tensor_one_f32(const ort_tensor *t, float *number)
{
    bool one = ort_tensor_is_one(t) && t->dtype == ORT_DTYPE_FLOAT;
    if (one)
        *number = *(const float *)t->data;
    return one;
}

/* The same in the element type itself: `element` has room for its bytes (8 bits and more). */
bool ort_tensor_one(const ort_tensor *t, void *element);

#endif
