/* symbolic.c - elements of integer tensors that inference follows as numbers or expressions. */
#include "op/shared/move.h"

ort_dtype ort_infer_dtype(const ort_infer *x, int input)
{
    const ort_fact *fact = ort_infer_in(x, input);
    return fact && fact->type.kind == ORT_TYPE_TENSOR ? fact->type.dtype : ORT_DTYPE_UNDEFINED;
}

int ort_infer_elements(const ort_infer *x, int input, ort_dim *out)
{
    ort_dtype dtype = ort_infer_dtype(x, input);
    if (dtype != ORT_DTYPE_INT64 && dtype != ORT_DTYPE_INT32)
        return -1;
    int count = ort_infer_int_count(x, input);
    if (count < 0 || count > ORT_SYMBOLIC_MAX)
        return -1;
    for (int i = 0; i < count; i++)
        if (!ort_infer_int(x, input, i, &out[i]))
            out[i] = ort_dim_unknown();
    return count;
}

bool ort_infer_any_known(const ort_dim *elements, int count)
{
    for (int i = 0; i < count; i++)
        if (elements[i].expr != ORT_DIM_UNKNOWN)
            return true;
    return count == 0;
}

void ort_infer_pass_symbolic(ort_infer *x, int input, int output)
{
    ort_dim elements[ORT_SYMBOLIC_MAX];
    const ort_type *type = &x->out[output].type;
    int count;
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 0 || type->rank > 1)
        return;
    count = ort_infer_elements(x, input, elements);
    if (count >= 0 && ort_infer_any_known(elements, count))
        ort_infer_set_symbolic(x, output, elements, count);
}
