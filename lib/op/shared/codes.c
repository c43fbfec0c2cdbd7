/* codes.c - scales and zero points of 8-bit codes, tables of 256 (codes.h). */
#include "op/shared/codes.h"

#include "tensor/scalar.h"

ort_codes ort_codes_read(const ort_tensor *scale, const ort_tensor *zero, ort_dtype dtype)
{
    ort_codes codes = {0, 0, dtype == ORT_DTYPE_INT8};
    int64_t point = 0;
    ort_tensor_one_f32(scale, &codes.scale);
    ort_tensor_one_i64(zero, &point);
    codes.zero = (int)point;
    return codes;
}

ort_codes ort_codes_of(const ort_call *call, ort_dtype dtype, int scale, int zero)
{
    return ort_codes_read(ort_call_in(call, scale), ort_call_in(call, zero), dtype);
}

bool ort_codes_known(const ort_prep *p, ort_dtype dtype, int scale, int zero, ort_codes *codes)
{
    const ort_tensor *s = ort_prep_constant(p, scale), *z = ort_prep_constant(p, zero);
    *codes = ort_codes_read(s, z, dtype);
    return ort_tensor_is_one(s) &&
           (ort_prep_dtype(p, zero) == ORT_DTYPE_UNDEFINED || ort_tensor_is_one(z));
}

ort_status ort_codes_need_single(const ort_shaping *s, const int *inputs, int count, ort_error *err)
{
    for (int i = 0; i < count; i++) {
        const ort_tensor *t = inputs[i] < s->in_count ? s->in[inputs[i]] : NULL;
        if (t && ort_tensor_count(t) != 1)
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "input %d (a scale or zero point) has %lld elements, needs 1",
                                 inputs[i], (long long)ort_tensor_count(t));
    }
    return ORT_OK;
}

ort_byte_sum ort_codes_sum(const ort_codes *a, const ort_codes *b, const ort_codes *y)
{
    float a_ratio = a->scale / y->scale, b_ratio = b->scale / y->scale;
    float a_part = a_ratio * (float)a->zero, b_part = b_ratio * (float)b->zero;
    return (ort_byte_sum){a_ratio, b_ratio, (float)y->zero - (a_part + b_part), y->is_signed};
}

void ort_codes_values(const ort_codes *codes, float values[256])
{
    for (int i = 0; i < 256; i++)
        values[i] = (float)((codes->is_signed ? (int8_t)i : i) - codes->zero) * codes->scale;
}

void ort_codes_numbers(const ort_kernels *k, const ort_codes *codes, const uint8_t *bytes,
                       float *values, int64_t n)
{
    if (codes->is_signed)
        k->math.dequantize_s8((const int8_t *)bytes, values, (size_t)n, codes->scale, codes->zero);
    else
        k->math.dequantize_u8(bytes, values, (size_t)n, codes->scale, codes->zero);
}

void ort_codes_quantize(const ort_kernels *k, const ort_codes *codes, const float *values,
                        uint8_t *bytes, int64_t n)
{
    if (codes->is_signed)
        k->math.quantize_s8(values, (int8_t *)bytes, (size_t)n, codes->scale, codes->zero);
    else
        k->math.quantize_u8(values, bytes, (size_t)n, codes->scale, codes->zero);
}

bool ort_codes_table(const ort_codes *from, const ort_codes *to, uint8_t table[256])
{
    float values[256];
    bool same = true;
    ort_codes_values(from, values);
    ort_codes_quantize(ort_kernels_get("scalar"), to, values, table, 256);
    for (int i = 0; i < 256; i++)
        same = same && table[i] == i;
    return same;
}

void ort_codes_give(const ort_kernels *k, ort_dtype dtype, float scale, int zero,
                    const float *values, void *codes, int64_t n)
{
    switch ((int)dtype) {
    case ORT_DTYPE_UINT16: k->math.quantize_u16(values, codes, (size_t)n, scale, zero); break;
    case ORT_DTYPE_INT16: k->math.quantize_s16(values, codes, (size_t)n, scale, zero); break;
    case ORT_DTYPE_UINT8: k->math.quantize_u8(values, codes, (size_t)n, scale, zero); break;
    default: k->math.quantize_s8(values, codes, (size_t)n, scale, zero);
    }
}

void ort_codes_take(const ort_kernels *k, ort_dtype dtype, float scale, int zero,
                    const void *codes, float *values, int64_t n)
{
    switch ((int)dtype) {
    case ORT_DTYPE_UINT16: k->math.dequantize_u16(codes, values, (size_t)n, scale, zero); break;
    case ORT_DTYPE_INT16: k->math.dequantize_s16(codes, values, (size_t)n, scale, zero); break;
    case ORT_DTYPE_UINT8: k->math.dequantize_u8(codes, values, (size_t)n, scale, zero); break;
    default: k->math.dequantize_s8(codes, values, (size_t)n, scale, zero);
    }
}
