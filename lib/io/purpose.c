/* purpose.c - which input or output a value is for, and what its type says of the value
 * (purpose.h).
 */
#include "io/purpose.h"

#include <string.h>

#include "base/error.h"

const ort_purpose *ort_purpose_find(const ort_read_options *options, const char *name,
                                    size_t position)
{
    for (size_t i = 0; name[0] && i < options->purpose_count; i++)
        if (!strcmp(options->purposes[i].name, name))
            return &options->purposes[i];
    return !name[0] && position < options->purpose_count ? &options->purposes[position] : NULL;
}

ort_dtype ort_purpose_dtype(const ort_read_options *options, const ort_purpose *purpose)
{
    const ort_type_info *type = purpose ? purpose->type : NULL;
    if (options->dtype != ORT_DTYPE_UNDEFINED || !type)
        return options->dtype;
    while (type->element) /* of elements, items or a map's values */
        type = type->element;
    return type->dtype;
}

void ort_purpose_fit_single(const ort_purpose *purpose, ort_value *value)
{
    const ort_type_info *type = purpose ? purpose->type : NULL;
    if (!type || !value || value->kind != ORT_KIND_TENSOR || type->kind != ORT_TYPE_TENSOR ||
        ort_tensor_count(&value->tensor) != 1 || type->rank < 0 || type->rank > ORT_MAX_RANK)
        return;
    value->tensor.shape.rank = type->rank;
    for (int i = 0; i < type->rank; i++)
        value->tensor.shape.dim[i] = 1;
}

ort_status ort_purpose_shape(const ort_read_options *options, int64_t count, ort_shape *shape,
                             ort_error *err)
{
    int64_t product = 1;
    int open = -1;
    if (options->rank > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_USAGE, "a shape has at most %d sizes", ORT_MAX_RANK);
    *shape = options->rank < 0 ? (ort_shape){1, {count}}
                               : ort_shape_make(options->rank, options->dims);
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] == -1 && open >= 0)
            return ort_error_set(err, ORT_ERROR_USAGE, "only one size of a shape can be -1");
        if (shape->dim[i] == -1)
            open = i;
        else if (shape->dim[i] < 0 || __builtin_mul_overflow(product, shape->dim[i], &product))
            return ort_error_set(err, ORT_ERROR_USAGE, "the shape has an impossible size");
    }
    if (open >= 0)
        shape->dim[open] = product ? count / product : 0;
    return ORT_OK;
}
