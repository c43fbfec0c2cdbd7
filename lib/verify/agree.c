/* agree.c - the comparison that verification and the search for a first difference share. A bound
 * relative to each element alone would ask more of sums that cancel than float can give; the
 * largest value of the tensor sets the scale. */
#include "verify/agree.h"

#include <math.h>

#include "base/error.h"

/* A tensor that the value holds, itself or as an item or a map's values: all are of one type. NULL
 * when it holds none. */
static const ort_tensor *leaf(const ort_value *value)
{
    while (value && value->kind != ORT_KIND_TENSOR)
        value = value->count == 0 ? NULL : value->items[value->kind == ORT_KIND_MAP];
    return value ? &value->tensor : NULL;
}

bool ort_agree_is_float(const ort_value *value)
{
    const ort_tensor *t = leaf(value);
    return t && ort_dtype_get(t->dtype)->class_ == ORT_CLASS_FLOAT;
}

bool ort_agree_is_empty(const ort_value *value)
{
    return value->kind == ORT_KIND_TENSOR ? ort_tensor_count(&value->tensor) == 0
                                          : value->count == 0;
}

double ort_agree_magnitude(const ort_value *value)
{
    double largest = -1;
    if (value->kind == ORT_KIND_MAP)
        return ort_agree_magnitude(value->items[1]);
    for (size_t i = 0; value->kind != ORT_KIND_TENSOR && i < value->count; i++)
        largest = fmax(largest, ort_agree_magnitude(value->items[i]));
    for (int64_t i = 0; value->kind == ORT_KIND_TENSOR && i < ort_tensor_count(&value->tensor);
         i++) {
        double x = fabs(ort_tensor_get_f64(&value->tensor, i));
        if (isfinite(x) && x > largest)
            largest = x;
    }
    return largest;
}

static bool is_narrow(const ort_value *v)
{
    const ort_tensor *t = leaf(v);
    return t && (t->dtype == ORT_DTYPE_FLOAT16 || t->dtype == ORT_DTYPE_BFLOAT16);
}

static ort_status widen(const ort_value *v, ort_value **wide, ort_error *err)
{
    ORT_TRY(ort_value_new_tensor_(ORT_DTYPE_DOUBLE, &v->tensor.shape, wide, err));
    for (int64_t i = 0; i < ort_tensor_count(&v->tensor); i++)
        ((double *)(*wide)->tensor.data)[i] = ort_tensor_get_f64(&v->tensor, i);
    return ORT_OK;
}

static bool is_code(const ort_value *v)
{
    return v->kind == ORT_KIND_TENSOR &&
           (v->tensor.dtype == ORT_DTYPE_INT8 || v->tensor.dtype == ORT_DTYPE_UINT8);
}

static double tolerance_of(const ort_value *a, const ort_value *b, const ort_agreement *how)
{
    bool narrow = is_narrow(a) || (ort_agree_is_float(b) && is_narrow(b));
    if (how->codes > how->tolerance)
        return how->codes;
    double most = fmax(how->tolerance, ORT_AGREE_NARROW_MOST);
    return narrow ? fmin(how->tolerance * ORT_AGREE_NARROW, most) : how->tolerance;
}

ort_status ort_agree_compare(const ort_value *a, const ort_value *b, const ort_agreement *how,
                             ort_difference *difference, ort_error *err)
{
    ort_compare_options options = ORT_COMPARE_OPTIONS_INIT;
    ort_value *wide_a = NULL, *wide_b = NULL;
    ort_status status = ORT_OK;
    bool both = ort_agree_is_float(a) && ort_agree_is_float(b);
    bool mixed = both && a->kind == ORT_KIND_TENSOR && b->kind == ORT_KIND_TENSOR &&
                 a->tensor.dtype != b->tensor.dtype;
    if (ort_agree_is_float(a)) {
        double scale = ort_agree_magnitude(a);
        options.rtol = tolerance_of(a, b, how);
        options.atol = how->atol + options.rtol * (scale > 0 ? scale : 0);
    } else if (is_code(a)) {
        options.atol = how->codes * 255;
    }
    if (mixed)
        status = widen(a, &wide_a, err);
    if (mixed && status == ORT_OK)
        status = widen(b, &wide_b, err);
    if (status == ORT_OK)
        status = ort_value_compare_(mixed ? wide_b : b, mixed ? wide_a : a, &options, difference,
                                    err);
    ort_value_free(wide_a);
    ort_value_free(wide_b);
    return status;
}
