/* scalar.c - single numbers (scalar.h). */
#include "tensor/scalar.h"

#include <string.h>

bool ort_tensor_one_i64_(const ort_tensor *t, int64_t *number)
{
    *number = ort_tensor_get_i64(t, 0);
    return true;
}

bool ort_tensor_one_f64(const ort_tensor *t, double *number)
{
    bool one = ort_tensor_is_one(t);
    if (one)
        *number = ort_tensor_get_f64(t, 0);
    return one;
}

bool ort_tensor_one(const ort_tensor *t, void *element)
{
    bool one = ort_tensor_is_one(t);
    if (one)
        memcpy(element, t->data, ort_tensor_bytes(t));
    return one;
}
