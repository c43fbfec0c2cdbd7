/* format_limits.c - what the writer of a format says of values that the format has no room for, and
 * which formats have it. */
#include "io/format.h"

ort_status ort_format_single(const ort_tensors *tensors, const char *format,
                             const ort_tensor **tensor, ort_error *err)
{
    if (tensors->list.count != 1)
        return ort_error_set(err, ORT_ERROR_DATA, "%s holds one tensor, there are %zu; .npz and "
                             ".safetensors hold many", format, tensors->list.count);
    const ort_value *value = tensors->list.data[0].value;
    if (!value || value->kind != ORT_KIND_TENSOR)
        return ort_error_set(err, ORT_ERROR_DATA, "%s holds tensors only; .json, .npz and .pb hold "
                             "sequences and maps", format);
    *tensor = &value->tensor;
    return ORT_OK;
}

ort_status ort_format_lacks(ort_error *err, const char *format, ort_dtype dtype)
{
    return ort_error_set(err, ORT_ERROR_DATA, "%s has no element type %s; .npz, .pb and .json have "
                         "it%s", format, ort_dtype_name(dtype),
                         ort_dtype_get(dtype)->safetensors ? ", and .safetensors" : "");
}
