/* dtype.h - the element type registry: one const row per ONNX element type.
 * Numbers are those of TensorProto.DataType (onnx.proto); ort_dtype itself is public (ort.h). */
#ifndef ORT_TENSOR_DTYPE_H
#define ORT_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ort.h"

typedef enum ort_dtype_class {
    ORT_CLASS_NONE,
    ORT_CLASS_FLOAT,   /* IEEE and minifloats, bfloat16 */
    ORT_CLASS_INT,     /* signed */
    ORT_CLASS_UINT,
    ORT_CLASS_BOOL,
    ORT_CLASS_STRING,
    ORT_CLASS_COMPLEX,
} ort_dtype_class;

typedef struct ort_dtype_row {
    ort_dtype id;
    const char *name;      /* ONNX's lower-case name: "float", "int64", "float8e4m3fn" */
    const char *code;      /* short name in signatures and shapes: "f32", "i64", "f8e4m3fn" */
    int bits;              /* per element; sizeof(ort_string) * 8 for strings */
    ort_dtype_class class_;
    const char *numpy;     /* .npy descr without byte order ("f4"), NULL where numpy has none */
    const char *safetensors; /* "F32", NULL where the format has none */
} ort_dtype_row;

#define ORT_DTYPE_COUNT 29

/* The types that are integers of C, for what is instantiated for each: X(id, type, code). */
#define ORT_SIGNED_TYPES(X)                                                                        \
    X(INT8, int8_t, i8) X(INT16, int16_t, i16) X(INT32, int32_t, i32) X(INT64, int64_t, i64)
#define ORT_UNSIGNED_TYPES(X)                                                                      \
    X(UINT8, uint8_t, u8) X(UINT16, uint16_t, u16) X(UINT32, uint32_t, u32) X(UINT64, uint64_t, u64)
#define ORT_INTEGER_TYPES(X) ORT_SIGNED_TYPES(X) ORT_UNSIGNED_TYPES(X)

/* The row of `dtype`; the row of ORT_DTYPE_UNDEFINED for anything out of range. Never NULL. */
const ort_dtype_row *ort_dtype_get(ort_dtype dtype);
/* By ONNX name, code or numpy alias ("float32"); ORT_DTYPE_UNDEFINED when unknown. */
ort_dtype ort_dtype_find(const char *name);
/* Bytes of `count` packed elements (sub-byte types round up); false on overflow. */
bool ort_dtype_bytes(ort_dtype dtype, int64_t count, size_t *bytes);

#endif
