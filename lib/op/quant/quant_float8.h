/* quant_float8.h - QLinearMatMul when a, b or y is of a float8 kind: in floats, rounded once. */
#ifndef ORT_OP_QUANT_QUANT_FLOAT8_H
#define ORT_OP_QUANT_QUANT_FLOAT8_H

#include "op/shared/matmul_shape.h"

static inline bool ort_is_float8(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT8E4M3FN || dtype == ORT_DTYPE_FLOAT8E4M3FNUZ ||
           dtype == ORT_DTYPE_FLOAT8E5M2 || dtype == ORT_DTYPE_FLOAT8E5M2FNUZ;
}

/* The shape and run phases for a described product; scales and zero points have been checked to
 * have one element, or one for each row (of a and y) or column (of b). */
ort_status ort_qlinear_f8_shape(ort_shaping *s, const matmul_plan *plan, ort_error *err);
ort_status ort_qlinear_f8_run(ort_call *call, const matmul_plan *plan, ort_error *err);

#endif
