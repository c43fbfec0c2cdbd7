/* purpose.c - which input or output a value is for, and what its type says of the value
 * (purpose.h).
 */
#include "io/purpose.h"

#include <string.h>

ort_purpose_type ort_purpose_parse(const ort_type_info *type)
{
    ort_purpose_type t = {.rank = -1};
    if (!type)
        return t;
    t.optional = type->kind == ORT_TYPE_OPTIONAL;
    t.tensor = type->kind == ORT_TYPE_TENSOR;
    t.rank = t.tensor ? type->rank : -1;
    while (type->element)
        type = type->element;
    t.dtype = type->dtype;
    return t;
}

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
    if (options->dtype != ORT_DTYPE_UNDEFINED || !purpose)
        return options->dtype;
    return ort_purpose_parse(purpose->type).dtype;
}

void ort_purpose_fit_single(const ort_purpose *purpose, ort_value *value)
{
    if (!purpose || !value || value->kind != ORT_KIND_TENSOR)
        return;
    ort_purpose_type type = ort_purpose_parse(purpose->type);
    if (ort_tensor_count(&value->tensor) != 1 || type.rank < 0 || type.rank > ORT_MAX_RANK)
        return;
    value->tensor.shape.rank = type.rank;
    for (int i = 0; i < type.rank; i++)
        value->tensor.shape.dim[i] = 1;
}
