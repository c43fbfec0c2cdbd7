/* scalar.h - the number that a tensor of one element stands for.
 *
 * Invariant: no element is read of a tensor that has none, or whose data isn't known. Operators and
 * passes read single numbers through here alone (make lint refuses other reads of a first element).
 */
#ifndef ORT_TENSOR_SCALAR_H
#define ORT_TENSOR_SCALAR_H

#include "tensor/tensor.h"

/* Has it exactly one element, of numbers or bools, and known? t may be NULL. */
bool ort_tensor_is_one(const ort_tensor *t);
/* That number; false, *number untouched, when there is none. */
bool ort_tensor_one_i64(const ort_tensor *t, int64_t *number);
bool ort_tensor_one_f64(const ort_tensor *t, double *number);
/* The same in the element type itself: `element` has room for its bytes (8 bits and more). */
bool ort_tensor_one(const ort_tensor *t, void *element);

#endif
