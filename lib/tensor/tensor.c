/* tensor.c - element access by row-major index for every numeric type, and copies.
 *
 * These are the slow, general ways in: one switch per element. Data may be unaligned (weights are
 * used where they lie in a file), so wide elements go through memcpy. */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "tensor/tensor.h"

bool ort_tensor_aligned(const ort_tensor *t)
{
    int bits = ort_dtype_get(t->dtype)->bits;
    if (bits > 64) /* complex128; complex64 is moved as one word */
        bits = 64;
    return bits <= 8 || (uintptr_t)t->data % ((size_t)bits / 8) == 0;
}

size_t ort_tensor_bytes(const ort_tensor *t)
{
    size_t bytes = 0;
    if (!ort_dtype_bytes(t->dtype, ort_tensor_count(t), &bytes))
        return PTRDIFF_MAX; /* shapes are checked where they come from; nobody can allocate that */
    return bytes;
}

/* Elements from the start of the data to row-major element `index`. */
static size_t element_offset(const ort_tensor *t, int64_t index)
{
    if (!t->stride)
        return (size_t)index;
    int64_t offset = 0;
    for (int i = t->shape.rank - 1; i >= 0; i--) {
        offset += index % t->shape.dim[i] * t->stride[i];
        index /= t->shape.dim[i];
    }
    return (size_t)offset;
}

static unsigned load_narrow(const ort_tensor *t, size_t at, int bits)
{
    return bits == 8 ? ((const uint8_t *)t->data)[at] : ort_packed_get(t->data, at, bits);
}

#define LOAD(type)                                                                                 \
    type v;                                                                                        \
    memcpy(&v, (const char *)t->data + at * sizeof v, sizeof v)

double ort_tensor_get_f64(const ort_tensor *t, int64_t index)
{
    size_t at = element_offset(t, index);
    switch (t->dtype) {
    case ORT_DTYPE_FLOAT: { LOAD(float); return v; }
    case ORT_DTYPE_DOUBLE: { LOAD(double); return v; }
    case ORT_DTYPE_FLOAT16: { LOAD(uint16_t); return ort_f16_to_f32(v); }
    case ORT_DTYPE_BFLOAT16: { LOAD(uint16_t); return ort_bf16_to_f32(v); }
    case ORT_DTYPE_UINT64: { LOAD(uint64_t); return (double)v; }
    default: break;
    }
    const ort_dtype_row *row = ort_dtype_get(t->dtype);
    if (row->class_ == ORT_CLASS_FLOAT)
        return ort_minifloat_to_f32(t->dtype, (uint8_t)load_narrow(t, at, row->bits));
    return (double)ort_tensor_get_i64(t, index);
}

/* Truncated toward zero; out of range and NaN give INT64_MIN, as x86 conversions do. Values from
 * 2^63 to 2^64 keep their unsigned bits. */
static int64_t truncate_f64(double v)
{
    if (v >= -0x1p63 && v < 0x1p63)
        return (int64_t)v;
    return v >= 0x1p63 && v < 0x1p64 ? (int64_t)(uint64_t)v : INT64_MIN;
}

int64_t ort_tensor_get_i64(const ort_tensor *t, int64_t index)
{
    size_t at = element_offset(t, index);
    switch (t->dtype) {
    case ORT_DTYPE_UINT8:
    case ORT_DTYPE_BOOL: { LOAD(uint8_t); return v; }
    case ORT_DTYPE_INT8: { LOAD(int8_t); return v; }
    case ORT_DTYPE_UINT16: { LOAD(uint16_t); return v; }
    case ORT_DTYPE_INT16: { LOAD(int16_t); return v; }
    case ORT_DTYPE_INT32: { LOAD(int32_t); return v; }
    case ORT_DTYPE_UINT32: { LOAD(uint32_t); return v; }
    case ORT_DTYPE_INT64:
    case ORT_DTYPE_UINT64: { LOAD(int64_t); return v; }
    case ORT_DTYPE_UINT4:
    case ORT_DTYPE_UINT2: return load_narrow(t, at, ort_dtype_get(t->dtype)->bits);
    case ORT_DTYPE_INT4: return ort_sign_extend(load_narrow(t, at, 4), 4);
    case ORT_DTYPE_INT2: return ort_sign_extend(load_narrow(t, at, 2), 2);
    case ORT_DTYPE_UNDEFINED:
    case ORT_DTYPE_STRING:
    case ORT_DTYPE_COMPLEX64:
    case ORT_DTYPE_COMPLEX128: assert(!"no single number"); return 0;
    default: return truncate_f64(ort_tensor_get_f64(t, index));
    }
}

#define STORE(type, number)                                                                        \
    do {                                                                                           \
        type v = (type)(number);                                                                   \
        memcpy((char *)t->data + at * sizeof v, &v, sizeof v);                                     \
    } while (0)

void ort_tensor_set_i64(ort_tensor *t, int64_t index, int64_t value)
{
    size_t at = element_offset(t, index);
    switch (t->dtype) {
    case ORT_DTYPE_BOOL: STORE(uint8_t, value != 0); return;
    case ORT_DTYPE_UINT8:
    case ORT_DTYPE_INT8: STORE(uint8_t, value); return;
    case ORT_DTYPE_UINT16:
    case ORT_DTYPE_INT16: STORE(uint16_t, value); return;
    case ORT_DTYPE_UINT32:
    case ORT_DTYPE_INT32: STORE(uint32_t, value); return;
    case ORT_DTYPE_UINT64:
    case ORT_DTYPE_INT64: STORE(int64_t, value); return;
    case ORT_DTYPE_UINT4:
    case ORT_DTYPE_INT4: ort_packed_set(t->data, at, 4, (unsigned)value & 15u); return;
    case ORT_DTYPE_UINT2:
    case ORT_DTYPE_INT2: ort_packed_set(t->data, at, 2, (unsigned)value & 3u); return;
    case ORT_DTYPE_FLOAT: STORE(float, value); return;
    case ORT_DTYPE_DOUBLE: STORE(double, value); return;
    default: ort_tensor_set_f64(t, index, (double)value); return;
    }
}

void ort_tensor_set_f64(ort_tensor *t, int64_t index, double value)
{
    size_t at = element_offset(t, index);
    const ort_dtype_row *row = ort_dtype_get(t->dtype);
    switch (t->dtype) {
    case ORT_DTYPE_FLOAT: STORE(float, value); return;
    case ORT_DTYPE_DOUBLE: STORE(double, value); return;
    case ORT_DTYPE_FLOAT16: STORE(uint16_t, ort_f64_to_f16(value)); return;
    case ORT_DTYPE_BFLOAT16: STORE(uint16_t, ort_f64_to_bf16(value)); return;
    case ORT_DTYPE_BOOL: STORE(uint8_t, value != 0); return;
    case ORT_DTYPE_UNDEFINED:
    case ORT_DTYPE_STRING:
    case ORT_DTYPE_COMPLEX64:
    case ORT_DTYPE_COMPLEX128: assert(!"no single number"); return;
    default: break;
    }
    if (row->class_ != ORT_CLASS_FLOAT) {
        ort_tensor_set_i64(t, index, truncate_f64(nearbyint(value)));
        return;
    }
    uint8_t code = ort_f64_to_minifloat(t->dtype, value, true);
    if (row->bits == 8)
        ((uint8_t *)t->data)[at] = code;
    else
        ort_packed_set(t->data, at, row->bits, code);
}

void ort_tensor_copy_data(ort_tensor *dst, const ort_tensor *src)
{
    assert(dst->dtype == src->dtype && ort_tensor_count(dst) == ort_tensor_count(src));
    assert(!dst->stride && !src->stride);
    size_t bytes = ort_tensor_bytes(src);
    if (bytes && dst->data != src->data)
        memmove(dst->data, src->data, bytes);
}
