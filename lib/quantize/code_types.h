/* code_types.h - element types of codes: from which opset they exist, which go together. */
#ifndef ORT_QUANTIZE_CODE_TYPES_H
#define ORT_QUANTIZE_CODE_TYPES_H

#include "ort.h"

#define ORT_CODE_TYPES                                                                             \
    "int8, uint8, int16, uint16, int4, uint4, int2, uint2, float8e4m3fn, float8e4m3fnuz, "         \
    "float8e5m2, float8e5m2fnuz"

/* The first opset of ai.onnx whose QuantizeLinear and DequantizeLinear know the type, with scales
 * by channel; 0: it is no type of codes. */
int ort_codes_opset(ort_dtype dtype);
/* The first version of the format whose tensors have the type. */
int ort_codes_ir(ort_dtype dtype);
/* Codes that are numbers themselves, of steps that grow with them: without zero points. */
static inline bool ort_codes_are_floats(ort_dtype dtype)
{
    return dtype >= ORT_DTYPE_FLOAT8E4M3FN && dtype <= ORT_DTYPE_FLOAT8E5M2FNUZ;
}

#endif
