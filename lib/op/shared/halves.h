/* halves.h - 16-bit floats as floats and back, one rounding: pieces in the hand of a task, and
 * whole tensors. */
#ifndef ORT_OP_SHARED_HALVES_H
#define ORT_OP_SHARED_HALVES_H

#include "op/op.h"

/* Elements of the f32 blocks through which 16-bit floats go. */
#define ORT_WIDEN_BLOCK 1024

/* Float view of 16-bit elements: count <= ORT_WIDEN_BLOCK. dtype is FLOAT16 or BFLOAT16. */
void ort_widen(const ort_vmath_kernels *math, ort_dtype dtype, const void *x, float *y, size_t n);
void ort_narrow(const ort_vmath_kernels *math, ort_dtype dtype, const float *x, void *y, size_t n);

/* A contiguous f16 or bf16 tensor to floats and back (one rounding), on the call's pool. */
void ort_call_widen(const ort_call *call, const ort_tensor *t, float *wide);
void ort_call_narrow(const ort_call *call, const float *wide, ort_tensor *t);

#endif
