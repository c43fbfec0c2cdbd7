/* dtype.c - the table of element types. Rows stand at the index of their ONNX number. */
#include "tensor/dtype.h"

#include <string.h>

#include "tensor/tensor.h"

static const ort_dtype_row rows[ORT_DTYPE_COUNT] = {
    {ORT_DTYPE_UNDEFINED, "undefined", "?", 0, ORT_CLASS_NONE, NULL, NULL},
    {ORT_DTYPE_FLOAT, "float", "f32", 32, ORT_CLASS_FLOAT, "f4", "F32"},
    {ORT_DTYPE_UINT8, "uint8", "u8", 8, ORT_CLASS_UINT, "u1", "U8"},
    {ORT_DTYPE_INT8, "int8", "i8", 8, ORT_CLASS_INT, "i1", "I8"},
    {ORT_DTYPE_UINT16, "uint16", "u16", 16, ORT_CLASS_UINT, "u2", "U16"},
    {ORT_DTYPE_INT16, "int16", "i16", 16, ORT_CLASS_INT, "i2", "I16"},
    {ORT_DTYPE_INT32, "int32", "i32", 32, ORT_CLASS_INT, "i4", "I32"},
    {ORT_DTYPE_INT64, "int64", "i64", 64, ORT_CLASS_INT, "i8", "I64"},
    {ORT_DTYPE_STRING, "string", "str", (int)sizeof(ort_string) * 8, ORT_CLASS_STRING, NULL, NULL},
    {ORT_DTYPE_BOOL, "bool", "bool", 8, ORT_CLASS_BOOL, "b1", "BOOL"},
    {ORT_DTYPE_FLOAT16, "float16", "f16", 16, ORT_CLASS_FLOAT, "f2", "F16"},
    {ORT_DTYPE_DOUBLE, "double", "f64", 64, ORT_CLASS_FLOAT, "f8", "F64"},
    {ORT_DTYPE_UINT32, "uint32", "u32", 32, ORT_CLASS_UINT, "u4", "U32"},
    {ORT_DTYPE_UINT64, "uint64", "u64", 64, ORT_CLASS_UINT, "u8", "U64"},
    {ORT_DTYPE_COMPLEX64, "complex64", "c64", 64, ORT_CLASS_COMPLEX, "c8", "C64"},
    {ORT_DTYPE_COMPLEX128, "complex128", "c128", 128, ORT_CLASS_COMPLEX, "c16", NULL},
    {ORT_DTYPE_BFLOAT16, "bfloat16", "bf16", 16, ORT_CLASS_FLOAT, NULL, "BF16"},
    {ORT_DTYPE_FLOAT8E4M3FN, "float8e4m3fn", "f8e4m3fn", 8, ORT_CLASS_FLOAT, NULL, "F8_E4M3"},
    {ORT_DTYPE_FLOAT8E4M3FNUZ, "float8e4m3fnuz", "f8e4m3fnuz", 8, ORT_CLASS_FLOAT, NULL,
     "F8_E4M3FNUZ"},
    {ORT_DTYPE_FLOAT8E5M2, "float8e5m2", "f8e5m2", 8, ORT_CLASS_FLOAT, NULL, "F8_E5M2"},
    {ORT_DTYPE_FLOAT8E5M2FNUZ, "float8e5m2fnuz", "f8e5m2fnuz", 8, ORT_CLASS_FLOAT, NULL,
     "F8_E5M2FNUZ"},
    {ORT_DTYPE_UINT4, "uint4", "u4", 4, ORT_CLASS_UINT, NULL, NULL},
    {ORT_DTYPE_INT4, "int4", "i4", 4, ORT_CLASS_INT, NULL, NULL},
    {ORT_DTYPE_FLOAT4E2M1, "float4e2m1", "f4e2m1", 4, ORT_CLASS_FLOAT, NULL, "F4"},
    {ORT_DTYPE_FLOAT8E8M0, "float8e8m0", "f8e8m0", 8, ORT_CLASS_FLOAT, NULL, "F8_E8M0"},
    {ORT_DTYPE_UINT2, "uint2", "u2", 2, ORT_CLASS_UINT, NULL, NULL},
    {ORT_DTYPE_INT2, "int2", "i2", 2, ORT_CLASS_INT, NULL, NULL},
    {ORT_DTYPE_FLOAT6E2M3, "float6e2m3", "f6e2m3", 6, ORT_CLASS_FLOAT, NULL, "F6_E2M3"},
    {ORT_DTYPE_FLOAT6E3M2, "float6e3m2", "f6e3m2", 6, ORT_CLASS_FLOAT, NULL, "F6_E3M2"},
};

static const struct {
    const char *alias;
    ort_dtype dtype;
} aliases[] = {
    {"float32", ORT_DTYPE_FLOAT},    {"float64", ORT_DTYPE_DOUBLE}, {"half", ORT_DTYPE_FLOAT16},
    {"str", ORT_DTYPE_STRING},       {"boolean", ORT_DTYPE_BOOL},   {"fp32", ORT_DTYPE_FLOAT},
    {"fp16", ORT_DTYPE_FLOAT16},     {"fp64", ORT_DTYPE_DOUBLE},    {"byte", ORT_DTYPE_UINT8},
    {"float8_e4m3fn", ORT_DTYPE_FLOAT8E4M3FN},
    {"float8_e4m3fnuz", ORT_DTYPE_FLOAT8E4M3FNUZ},
    {"float8_e5m2", ORT_DTYPE_FLOAT8E5M2},
    {"float8_e5m2fnuz", ORT_DTYPE_FLOAT8E5M2FNUZ},
    {"float8_e8m0fnu", ORT_DTYPE_FLOAT8E8M0},
    {"float4_e2m1fn", ORT_DTYPE_FLOAT4E2M1},
    {"float6_e2m3fn", ORT_DTYPE_FLOAT6E2M3},
    {"float6_e3m2fn", ORT_DTYPE_FLOAT6E3M2},
};

const ort_dtype_row *ort_dtype_get(ort_dtype dtype)
{
    return &rows[(unsigned)dtype < ORT_DTYPE_COUNT ? dtype : ORT_DTYPE_UNDEFINED];
}

ort_dtype ort_dtype_find(const char *name)
{
    if (!name)
        return ORT_DTYPE_UNDEFINED;
    for (int i = 1; i < ORT_DTYPE_COUNT; i++)
        if (!strcmp(rows[i].name, name) || !strcmp(rows[i].code, name))
            return rows[i].id;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (!strcmp(aliases[i].alias, name))
            return aliases[i].dtype;
    return ORT_DTYPE_UNDEFINED;
}

bool ort_dtype_bytes(ort_dtype dtype, int64_t count, size_t *bytes)
{
    if (count < 0)
        return false;
    size_t bits = (size_t)ort_dtype_get(dtype)->bits;
    if (bits >= 8)
        return !__builtin_mul_overflow((size_t)count, bits / 8, bytes) && *bytes <= PTRDIFF_MAX;
    /* Whole bytes and the rest apart, so that count * bits can't overflow. */
    *bytes = (size_t)count / 8 * bits + ((size_t)count % 8 * bits + 7) / 8;
    return *bytes <= PTRDIFF_MAX;
}

const char *ort_dtype_name(ort_dtype dtype)
{
    return ort_dtype_get(dtype)->name;
}

ort_dtype ort_dtype_parse(const char *name)
{
    if (!name)
        return ORT_DTYPE_UNDEFINED;
    return ort_dtype_find(name);
}

int ort_dtype_bits(ort_dtype dtype)
{
    return ort_dtype_get(dtype)->bits;
}
