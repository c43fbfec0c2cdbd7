/* halves.c - 16-bit floats as floats and back. */
#include "op/shared/halves.h"

#include "base/checked.h"

void ort_widen(const ort_vmath_kernels *math, ort_dtype dtype, const void *x, float *y, size_t n)
{
    if (dtype == ORT_DTYPE_FLOAT16)
        math->f16_to_f32(x, y, n);
    else
        math->bf16_to_f32(x, y, n);
}

void ort_narrow(const ort_vmath_kernels *math, ort_dtype dtype, const float *x, void *y, size_t n)
{
    if (dtype == ORT_DTYPE_FLOAT16)
        math->f32_to_f16(x, y, n);
    else
        math->f32_to_bf16(x, y, n);
}

/* ---- tensors */

typedef struct widening {
    const ort_kernels *k;
    ort_dtype dtype;
    const void *narrow_in;
    void *narrow_out;
    float *wide;
    bool widen;
} widening;

enum { WIDEN_GRAIN = 1 << 15 };

static void task_widen(void *arg, int64_t first, int64_t end, int thread)
{
    const widening *w = arg;
    size_t n = (size_t)(end - first);
    bool f16 = w->dtype == ORT_DTYPE_FLOAT16;
    if (w->widen) {
        const uint16_t *from = (const uint16_t *)w->narrow_in + first;
        (f16 ? w->k->math.f16_to_f32 : w->k->math.bf16_to_f32)(from, w->wide + first, n);
    } else {
        uint16_t *to = (uint16_t *)w->narrow_out + first;
        (f16 ? w->k->math.f32_to_f16 : w->k->math.f32_to_bf16)(w->wide + first, to, n);
    }
}

void ort_call_widen(const ort_call *call, const ort_tensor *t, float *wide)
{
    widening w = {call->k, t->dtype, t->data, NULL, wide, true};
    ort_call_range(call, ort_tensor_count(t), WIDEN_GRAIN, task_widen, &w);
}

void ort_call_narrow(const ort_call *call, const float *wide, ort_tensor *t)
{
    widening w = {call->k, t->dtype, NULL, t->data, (float *)(uintptr_t)wide, false};
    ort_call_range(call, ort_tensor_count(t), WIDEN_GRAIN, task_widen, &w);
}
