/* combine.c - see combine.h. One body per operation, instantiated for each element type. */
#include "op/shared/combine.h"

#pragma GCC optimize("O3") /* vectorize */

#include <complex.h>
#include <math.h>
#include <string.h>

#include "base/num.h"

#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define FMAX(a, b) (isnan(a) || (a) > (b) ? (a) : (b))
#define FMIN(a, b) (isnan(a) || (a) < (b) ? (a) : (b))
#define OR(a, b) ((a) | (b))
#define AND(a, b) ((a) & (b))

#define COMBINE(name, type, wide, op)                                                              \
    static void name(void *dst, const void *src, int64_t count)                                    \
    {                                                                                              \
        type *d = dst;                                                                             \
        const type *s = src;                                                                       \
        for (int64_t i = 0; i < count; i++)                                                        \
            d[i] = (type)op((wide)d[i], (wide)s[i]);                                               \
    }

/* Sums and products are formed in the unsigned type: overflow wraps. */
#define INTEGER(code, type, unsigned_type)                                                         \
    COMBINE(add_##code, type, unsigned_type, ADD)                                                  \
    COMBINE(mul_##code, type, unsigned_type, MUL)                                                  \
    COMBINE(max_##code, type, type, MAX)                                                           \
    COMBINE(min_##code, type, type, MIN)

INTEGER(i8, int8_t, uint32_t)
INTEGER(i16, int16_t, uint32_t)
INTEGER(i32, int32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)
INTEGER(u8, uint8_t, uint32_t)
INTEGER(u16, uint16_t, uint32_t)
INTEGER(u32, uint32_t, uint32_t)
INTEGER(u64, uint64_t, uint64_t)

#define FLOATING(code, type)                                                                       \
    COMBINE(add_##code, type, type, ADD)                                                           \
    COMBINE(mul_##code, type, type, MUL)                                                           \
    COMBINE(max_##code, type, type, FMAX)                                                          \
    COMBINE(min_##code, type, type, FMIN)

FLOATING(f32, float)
FLOATING(f64, double)

#define HALF_OP(name, read, write, op)                                                             \
    static void name(void *dst, const void *src, int64_t count)                                    \
    {                                                                                              \
        uint16_t *d = dst;                                                                         \
        const uint16_t *s = src;                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            float a = read(d[i]), b = read(s[i]);                                                  \
            d[i] = write(op(a, b));                                                                \
        }                                                                                          \
    }

#define HALF(code, read, write)                                                                    \
    HALF_OP(add_##code, read, write, ADD)                                                          \
    HALF_OP(mul_##code, read, write, MUL)                                                          \
    HALF_OP(max_##code, read, write, FMAX)                                                         \
    HALF_OP(min_##code, read, write, FMIN)

HALF(f16, ort_f16_to_f32, ort_f32_to_f16)
HALF(bf16, ort_bf16_to_f32, ort_f32_to_bf16)

COMBINE(or_bool, uint8_t, unsigned, OR)
COMBINE(and_bool, uint8_t, unsigned, AND)
COMBINE(add_c64, float complex, float complex, ADD)
COMBINE(mul_c64, float complex, float complex, MUL)
COMBINE(add_c128, double complex, double complex, ADD)
COMBINE(mul_c128, double complex, double complex, MUL)

#define ROW(id, code) {id, {add_##code, mul_##code, max_##code, min_##code}}

static const struct {
    ort_dtype dtype;
    ort_combine_fn *fn[4]; /* add, mul, max, min */
} rows[] = {
    ROW(ORT_DTYPE_FLOAT, f32),   ROW(ORT_DTYPE_DOUBLE, f64),    ROW(ORT_DTYPE_FLOAT16, f16),
    ROW(ORT_DTYPE_BFLOAT16, bf16), ROW(ORT_DTYPE_INT8, i8),     ROW(ORT_DTYPE_INT16, i16),
    ROW(ORT_DTYPE_INT32, i32),   ROW(ORT_DTYPE_INT64, i64),     ROW(ORT_DTYPE_UINT8, u8),
    ROW(ORT_DTYPE_UINT16, u16),  ROW(ORT_DTYPE_UINT32, u32),    ROW(ORT_DTYPE_UINT64, u64),
    {ORT_DTYPE_BOOL, {or_bool, and_bool, or_bool, and_bool}},
    {ORT_DTYPE_COMPLEX64, {add_c64, mul_c64, NULL, NULL}},
    {ORT_DTYPE_COMPLEX128, {add_c128, mul_c128, NULL, NULL}},
};

ort_combine_fn *ort_combine_get(ort_dtype dtype, ort_combine op)
{
    assert(op != ORT_COMBINE_NONE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == dtype)
            return rows[i].fn[op - ORT_COMBINE_ADD];
    return NULL;
}
