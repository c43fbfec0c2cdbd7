/* convert.c - elementwise conversion between numeric element types, ONNX Cast semantics.
 *
 * Pairs with float32 that models use have direct loops. Everything else goes through blocks of one
 * of two exact intermediates: double for floating-point sources (every such type fits), int64 for
 * integer ones, so each conversion rounds once. Strings are in tensor_cast.c. Data may be
 * unaligned. */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "tensor/tensor.h"

/* Element types as they lie in a mapped file: any alignment. */
typedef float f32_any __attribute__((aligned(1), may_alias));
typedef double f64_any __attribute__((aligned(1), may_alias));
typedef int16_t i16_any __attribute__((aligned(1), may_alias));
typedef int32_t i32_any __attribute__((aligned(1), may_alias));
typedef int64_t i64_any __attribute__((aligned(1), may_alias));
typedef uint16_t u16_any __attribute__((aligned(1), may_alias));
typedef uint32_t u32_any __attribute__((aligned(1), may_alias));
typedef uint64_t u64_any __attribute__((aligned(1), may_alias));

enum { BLOCK = 512 };

/* Float to integer as x86 converts: toward zero, the smallest value when out of range. Narrower
 * targets take the low bits of the 32-bit result, uint32 those of the 64-bit one. */
static int32_t f64_to_i32(double v)
{
    return v > -2147483649.0 && v < 2147483648.0 ? (int32_t)v : INT32_MIN;
}

static int64_t f64_to_i64(double v)
{
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

static uint64_t f64_to_u64(double v)
{
    return v >= 0x1p63 && v < 0x1p64 ? (uint64_t)v : (uint64_t)f64_to_i64(v);
}

/* --------------------------------------------------------------------- float32 pairs, directly */

#define CONVERT(name, to, from, expression)                                                        \
    static void name(void *out, const void *in, int64_t count)                                     \
    {                                                                                              \
        to *d = out;                                                                               \
        const from *s = in;                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                      \
            from x = s[i];                                                                         \
            d[i] = (expression);                                                                   \
        }                                                                                          \
    }

static void f16_to_f32(void *out, const void *in, int64_t count)
{
    ort_f16s_to_f32(in, out, (size_t)count);
}
CONVERT(bf16_to_f32, f32_any, u16_any, ort_bf16_to_f32(x))
CONVERT(f64_to_f32, f32_any, f64_any, (float)x)
CONVERT(i32_to_f32, f32_any, i32_any, (float)x)
CONVERT(i64_to_f32, f32_any, i64_any, (float)x)
CONVERT(u8_to_f32, f32_any, uint8_t, (float)x)
CONVERT(i8_to_f32, f32_any, int8_t, (float)x)
CONVERT(bool_to_f32, f32_any, uint8_t, x ? 1.0f : 0.0f)
CONVERT(f32_to_f16, u16_any, f32_any, ort_f32_to_f16(x))
CONVERT(f32_to_bf16, u16_any, f32_any, ort_f32_to_bf16(x))
CONVERT(f32_to_f64, f64_any, f32_any, (double)x)
CONVERT(f32_to_i32, i32_any, f32_any,
        x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN)
CONVERT(f32_to_i64, i64_any, f32_any, x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN)
CONVERT(f32_to_u8, uint8_t, f32_any,
        (uint8_t)(x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : 0))
CONVERT(f32_to_i8, int8_t, f32_any,
        (int8_t)(x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : 0))
CONVERT(f32_to_bool, uint8_t, f32_any, x != 0.0f)
CONVERT(i32_to_i64, i64_any, i32_any, x)
CONVERT(i64_to_i32, i32_any, i64_any, (int32_t)x)
CONVERT(bool_to_i64, i64_any, uint8_t, x != 0)
CONVERT(bool_to_i32, i32_any, uint8_t, x != 0)

typedef void convert_fn(void *out, const void *in, int64_t count);

static convert_fn *find_direct(ort_dtype to, ort_dtype from)
{
    static const struct {
        ort_dtype to, from;
        convert_fn *fn;
    } table[] = {
        {ORT_DTYPE_FLOAT, ORT_DTYPE_FLOAT16, f16_to_f32},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_BFLOAT16, bf16_to_f32},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_DOUBLE, f64_to_f32},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_INT32, i32_to_f32},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_INT64, i64_to_f32},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_UINT8, u8_to_f32},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_INT8, i8_to_f32},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_BOOL, bool_to_f32},
        {ORT_DTYPE_FLOAT16, ORT_DTYPE_FLOAT, f32_to_f16},
        {ORT_DTYPE_BFLOAT16, ORT_DTYPE_FLOAT, f32_to_bf16},
        {ORT_DTYPE_DOUBLE, ORT_DTYPE_FLOAT, f32_to_f64},
        {ORT_DTYPE_INT32, ORT_DTYPE_FLOAT, f32_to_i32},
        {ORT_DTYPE_INT64, ORT_DTYPE_FLOAT, f32_to_i64},
        {ORT_DTYPE_UINT8, ORT_DTYPE_FLOAT, f32_to_u8},
        {ORT_DTYPE_INT8, ORT_DTYPE_FLOAT, f32_to_i8},
        {ORT_DTYPE_BOOL, ORT_DTYPE_FLOAT, f32_to_bool},
        {ORT_DTYPE_INT64, ORT_DTYPE_INT32, i32_to_i64},
        {ORT_DTYPE_INT32, ORT_DTYPE_INT64, i64_to_i32},
        {ORT_DTYPE_INT64, ORT_DTYPE_BOOL, bool_to_i64},
        {ORT_DTYPE_INT32, ORT_DTYPE_BOOL, bool_to_i32},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].to == to && table[i].from == from)
            return table[i].fn;
    return NULL;
}

/* ------------------------------------------------------------- blocks of an exact intermediate */

#define EACH(expression)                                                                           \
    do {                                                                                           \
        for (int64_t i = 0; i < count; i++)                                                        \
            (expression);                                                                          \
        return;                                                                                    \
    } while (0)

static uint8_t narrow_code(const ort_tensor *t, int64_t index, int bits)
{
    return bits == 8 ? ((const uint8_t *)t->data)[index]
                     : (uint8_t)ort_packed_get(t->data, (size_t)index, bits);
}

static void set_narrow_code(ort_tensor *t, int64_t index, int bits, unsigned code)
{
    if (bits == 8)
        ((uint8_t *)t->data)[index] = (uint8_t)code;
    else
        ort_packed_set(t->data, (size_t)index, bits, code);
}

static void load_f64(const ort_tensor *t, int64_t first, int64_t count, double *out)
{
    switch (t->dtype) {
    case ORT_DTYPE_FLOAT: EACH(out[i] = ((const f32_any *)t->data)[first + i]);
    case ORT_DTYPE_DOUBLE: EACH(out[i] = ((const f64_any *)t->data)[first + i]);
    case ORT_DTYPE_FLOAT16: EACH(out[i] = ort_f16_to_f32(((const u16_any *)t->data)[first + i]));
    case ORT_DTYPE_BFLOAT16: EACH(out[i] = ort_bf16_to_f32(((const u16_any *)t->data)[first + i]));
    default: break;
    }
    int bits = ort_dtype_get(t->dtype)->bits;
    EACH(out[i] = ort_minifloat_to_f32(t->dtype, narrow_code(t, first + i, bits)));
}

/* uint64 keeps its bits: the reader of the block knows the source type. */
static void load_i64(const ort_tensor *t, int64_t first, int64_t count, int64_t *out)
{
    const char *data = t->data;
    switch (t->dtype) {
    case ORT_DTYPE_INT64:
    case ORT_DTYPE_UINT64: EACH(out[i] = ((const i64_any *)data)[first + i]);
    case ORT_DTYPE_INT32: EACH(out[i] = ((const i32_any *)data)[first + i]);
    case ORT_DTYPE_UINT32: EACH(out[i] = ((const u32_any *)data)[first + i]);
    case ORT_DTYPE_INT16: EACH(out[i] = ((const i16_any *)data)[first + i]);
    case ORT_DTYPE_UINT16: EACH(out[i] = ((const u16_any *)data)[first + i]);
    case ORT_DTYPE_INT8: EACH(out[i] = ((const int8_t *)data)[first + i]);
    case ORT_DTYPE_UINT8: EACH(out[i] = ((const uint8_t *)data)[first + i]);
    case ORT_DTYPE_BOOL: EACH(out[i] = ((const uint8_t *)data)[first + i] != 0);
    default: break;
    }
    const ort_dtype_row *row = ort_dtype_get(t->dtype);
    if (row->class_ == ORT_CLASS_INT)
        EACH(out[i] = ort_sign_extend(narrow_code(t, first + i, row->bits), row->bits));
    EACH(out[i] = narrow_code(t, first + i, row->bits));
}

static void store_f64(ort_tensor *t, int64_t first, int64_t count, const double *in,
                      const ort_cast_options *options)
{
    char *data = t->data;
    switch (t->dtype) {
    case ORT_DTYPE_FLOAT: EACH(((f32_any *)data)[first + i] = (float)in[i]);
    case ORT_DTYPE_DOUBLE: EACH(((f64_any *)data)[first + i] = in[i]);
    case ORT_DTYPE_FLOAT16: EACH(((u16_any *)data)[first + i] = ort_f64_to_f16(in[i]));
    case ORT_DTYPE_BFLOAT16: EACH(((u16_any *)data)[first + i] = ort_f64_to_bf16(in[i]));
    case ORT_DTYPE_INT64: EACH(((i64_any *)data)[first + i] = f64_to_i64(in[i]));
    case ORT_DTYPE_UINT64: EACH(((u64_any *)data)[first + i] = f64_to_u64(in[i]));
    case ORT_DTYPE_INT32: EACH(((i32_any *)data)[first + i] = f64_to_i32(in[i]));
    case ORT_DTYPE_UINT32: EACH(((u32_any *)data)[first + i] = (uint32_t)f64_to_i64(in[i]));
    case ORT_DTYPE_INT16:
    case ORT_DTYPE_UINT16: EACH(((u16_any *)data)[first + i] = (uint16_t)f64_to_i32(in[i]));
    case ORT_DTYPE_INT8:
    case ORT_DTYPE_UINT8: EACH(((uint8_t *)data)[first + i] = (uint8_t)f64_to_i32(in[i]));
    case ORT_DTYPE_BOOL: EACH(((uint8_t *)data)[first + i] = in[i] != 0);
    case ORT_DTYPE_FLOAT8E8M0:
        EACH(((uint8_t *)data)[first + i] = ort_f32_to_e8m0((float)in[i], options->round_mode,
                                                            options->saturate));
    default: break;
    }
    const ort_dtype_row *row = ort_dtype_get(t->dtype);
    if (row->class_ == ORT_CLASS_FLOAT)
        EACH(set_narrow_code(t, first + i, row->bits,
                             ort_f64_to_minifloat(t->dtype, in[i], options->saturate)));
    EACH(set_narrow_code(t, first + i, row->bits,
                         (unsigned)f64_to_i32(in[i]) & ((1u << row->bits) - 1)));
}

static float i64_as_f32(int64_t v, bool is_unsigned)
{
    return is_unsigned ? (float)(uint64_t)v : (float)v;
}

static void store_i64(ort_tensor *t, int64_t first, int64_t count, const int64_t *in,
                      bool is_unsigned, const ort_cast_options *options)
{
    char *data = t->data;
    switch (t->dtype) {
    case ORT_DTYPE_FLOAT:
        EACH(((f32_any *)data)[first + i] = i64_as_f32(in[i], is_unsigned));
    case ORT_DTYPE_DOUBLE:
        EACH(((f64_any *)data)[first + i] = is_unsigned ? (double)(uint64_t)in[i]
                                                        : (double)in[i]);
    case ORT_DTYPE_FLOAT16:
        EACH(((u16_any *)data)[first + i] = ort_f32_to_f16(i64_as_f32(in[i], is_unsigned)));
    case ORT_DTYPE_BFLOAT16:
        EACH(((u16_any *)data)[first + i] = ort_f32_to_bf16(i64_as_f32(in[i], is_unsigned)));
    case ORT_DTYPE_INT64:
    case ORT_DTYPE_UINT64: EACH(((i64_any *)data)[first + i] = in[i]);
    case ORT_DTYPE_INT32:
    case ORT_DTYPE_UINT32: EACH(((u32_any *)data)[first + i] = (uint32_t)in[i]);
    case ORT_DTYPE_INT16:
    case ORT_DTYPE_UINT16: EACH(((u16_any *)data)[first + i] = (uint16_t)in[i]);
    case ORT_DTYPE_INT8:
    case ORT_DTYPE_UINT8: EACH(((uint8_t *)data)[first + i] = (uint8_t)in[i]);
    case ORT_DTYPE_BOOL: EACH(((uint8_t *)data)[first + i] = in[i] != 0);
    case ORT_DTYPE_FLOAT8E8M0:
        EACH(((uint8_t *)data)[first + i] = ort_f32_to_e8m0(i64_as_f32(in[i], is_unsigned),
                                                            options->round_mode,
                                                            options->saturate));
    default: break;
    }
    const ort_dtype_row *row = ort_dtype_get(t->dtype);
    if (row->class_ == ORT_CLASS_FLOAT)
        EACH(set_narrow_code(t, first + i, row->bits,
                             ort_f32_to_minifloat(t->dtype, i64_as_f32(in[i], is_unsigned),
                                                  options->saturate)));
    EACH(set_narrow_code(t, first + i, row->bits, (unsigned)in[i] & ((1u << row->bits) - 1)));
}

static void cast_numbers(ort_tensor *dst, const ort_tensor *src, int64_t count,
                         const ort_cast_options *options)
{
    bool from_float = ort_dtype_get(src->dtype)->class_ == ORT_CLASS_FLOAT;
    union {
        double f64[BLOCK];
        int64_t i64[BLOCK];
    } block;
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t size = count - first < BLOCK ? count - first : BLOCK;
        if (from_float) {
            load_f64(src, first, size, block.f64);
            store_f64(dst, first, size, block.f64, options);
        } else {
            load_i64(src, first, size, block.i64);
            store_i64(dst, first, size, block.i64, src->dtype == ORT_DTYPE_UINT64, options);
        }
    }
}

/* --------------------------------------------------------------------------------- complex -- */

static void load_complex(const ort_tensor *t, int64_t index, double out[2])
{
    if (t->dtype == ORT_DTYPE_COMPLEX64) {
        out[0] = ((const f32_any *)t->data)[2 * index];
        out[1] = ((const f32_any *)t->data)[2 * index + 1];
    } else if (t->dtype == ORT_DTYPE_COMPLEX128) {
        out[0] = ((const f64_any *)t->data)[2 * index];
        out[1] = ((const f64_any *)t->data)[2 * index + 1];
    } else {
        out[0] = ort_tensor_get_f64(t, index);
        out[1] = 0;
    }
}

/* Real to complex and back (the imaginary part is dropped). */
static void cast_complex(ort_tensor *dst, const ort_tensor *src, int64_t count,
                         const ort_cast_options *options)
{
    double v[2];
    for (int64_t i = 0; i < count; i++) {
        load_complex(src, i, v);
        if (dst->dtype == ORT_DTYPE_COMPLEX64) {
            ((f32_any *)dst->data)[2 * i] = (float)v[0];
            ((f32_any *)dst->data)[2 * i + 1] = (float)v[1];
        } else if (dst->dtype == ORT_DTYPE_COMPLEX128) {
            ((f64_any *)dst->data)[2 * i] = v[0];
            ((f64_any *)dst->data)[2 * i + 1] = v[1];
        } else {
            store_f64(dst, i, 1, v, options);
        }
    }
}

void ort_tensor_convert(ort_tensor *dst, const ort_tensor *src, const ort_cast_options *options)
{
    static const ort_cast_options defaults = {.saturate = true, .round_mode = 'u'};
    int64_t count = ort_tensor_count(src);
    if (!options)
        options = &defaults;
    if (dst->dtype == src->dtype) {
        ort_tensor_copy_data(dst, src);
        return;
    }
    convert_fn *direct = find_direct(dst->dtype, src->dtype);
    if (direct)
        direct(dst->data, src->data, count);
    else if (ort_dtype_get(dst->dtype)->class_ == ORT_CLASS_COMPLEX ||
             ort_dtype_get(src->dtype)->class_ == ORT_CLASS_COMPLEX)
        cast_complex(dst, src, count, options);
    else
        cast_numbers(dst, src, count, options);
}

/* ----------------------------------------------------------------------- bulk float32 access -- */

void ort_tensor_to_f32(const ort_tensor *src, int64_t first, int64_t count, float *out)
{
    if (!count) /* of no data, maybe */
        return;
    if (src->dtype == ORT_DTYPE_FLOAT) {
        memcpy(out, (const f32_any *)src->data + first, (size_t)count * sizeof *out);
        return;
    }
    const ort_dtype_row *row = ort_dtype_get(src->dtype);
    convert_fn *direct = find_direct(ORT_DTYPE_FLOAT, src->dtype);
    if (direct) {
        direct(out, (const char *)src->data + (size_t)first * ((size_t)row->bits / 8), count);
        return;
    }
    if (row->class_ == ORT_CLASS_FLOAT) {
        for (int64_t i = 0; i < count; i++)
            out[i] = ort_minifloat_to_f32(src->dtype, narrow_code(src, first + i, row->bits));
        return;
    }
    int64_t block[BLOCK];
    for (int64_t done = 0; done < count; done += BLOCK) {
        int64_t size = count - done < BLOCK ? count - done : BLOCK;
        load_i64(src, first + done, size, block);
        for (int64_t i = 0; i < size; i++)
            out[done + i] = i64_as_f32(block[i], src->dtype == ORT_DTYPE_UINT64);
    }
}

void ort_tensor_from_f32(const float *in, ort_tensor *dst, int64_t first, int64_t count)
{
    static const ort_cast_options plain = {.saturate = false, .round_mode = 'u'};
    const ort_dtype_row *row = ort_dtype_get(dst->dtype);
    if (!count)
        return;
    if (dst->dtype == ORT_DTYPE_FLOAT) {
        memcpy((f32_any *)dst->data + first, in, (size_t)count * sizeof *in);
        return;
    }
    convert_fn *direct = find_direct(dst->dtype, ORT_DTYPE_FLOAT);
    if (direct) {
        direct((char *)dst->data + (size_t)first * ((size_t)row->bits / 8), in, count);
        return;
    }
    double block[BLOCK];
    for (int64_t done = 0; done < count; done += BLOCK) {
        int64_t size = count - done < BLOCK ? count - done : BLOCK;
        for (int64_t i = 0; i < size; i++)
            block[i] = in[done + i];
        store_f64(dst, first + done, size, block, &plain);
    }
}
