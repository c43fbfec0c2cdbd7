/* determinant.c - Det, and Inverse of com.microsoft: a batch of square matrices, by elimination
 * with row pivots in double precision. Invariant: matrices are independent tasks, each in its
 * thread's scratch.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/move.h"

static ort_status det_shape(ort_shaping *s, ort_error *err)
{
    const ort_shape *in = &s->in[0]->shape;
    size_t n = (size_t)in->dim[in->rank - 1], count;
    if (!ort_mul_size(n, n, &count) || !ort_mul_size(count, sizeof(double), &s->thread_bytes))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

static double determinant(double *a, int64_t n)
{
    double det = 1;
    ort_pace pace = {0};
    for (int64_t k = 0; k < n; k++) {
        if (ort_pace_over(&pace, (uint64_t)((n - k) * (n - k))))
            return det;
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k]))
                best = i;
        if (a[best * n + k] == 0)
            return 0;
        for (int64_t j = k; best != k && j < n; j++) {
            double t = a[k * n + j];
            a[k * n + j] = a[best * n + j];
            a[best * n + j] = t;
        }
        det *= best != k ? -a[k * n + k] : a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
        }
    }
    return det;
}

static void det_task(void *arg, size_t task, int thread)
{
    const ort_call *call = arg;
    const ort_tensor *in = ort_call_in(call, 0);
    int64_t n = in->shape.dim[in->shape.rank - 1], first = (int64_t)task * n * n;
    double *a = ort_call_scratch(call, thread);
    for (int64_t i = 0; i < n * n; i++)
        a[i] = ort_tensor_get_f64(in, first + i);
    ort_tensor_set_f64(ort_call_out(call, 0), (int64_t)task, determinant(a, n));
}

static ort_status det_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    if (in->shape.dim[in->shape.rank - 1] != in->shape.dim[in->shape.rank - 2])
        return ort_call_fail(call, err, "the matrices are not square");
    ort_call_parallel(call, (size_t)ort_tensor_count(ort_call_out(call, 0)), det_task, call);
    return ORT_OK;
}

static const ort_op_impl det_impl = {
    .rule = "[A..,N,N] -> [A..]", .shape = det_shape, .run = det_run,
};

/* ---- Inverse */

static ort_status inverse_shape(ort_shaping *s, ort_error *err)
{
    ORT_TRY(det_shape(s, err));
    return ort_mul_size(s->thread_bytes, 2, &s->thread_bytes) ? ORT_OK
                                                              : ort_error_memory(err, SIZE_MAX);
}

static void swap_rows(double *a, int64_t width, int64_t i, int64_t j)
{
    for (int64_t c = 0; i != j && c < width; c++) {
        double t = a[i * width + c];
        a[i * width + c] = a[j * width + c];
        a[j * width + c] = t;
    }
}

/* Gauss-Jordan on [matrix | identity], rows of 2n: the right half becomes the inverse. A pivot of
 * 0 leaves infinities, as a division by 0 does. */
static void invert(double *a, int64_t n)
{
    int64_t width = 2 * n;
    ort_pace pace = {0};
    for (int64_t k = 0; k < n; k++) {
        if (ort_pace_over(&pace, (uint64_t)(width * n)))
            return;
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * width + k]) > fabs(a[best * width + k]))
                best = i;
        swap_rows(a, width, k, best);
        double pivot = a[k * width + k];
        for (int64_t j = k; j < width; j++)
            a[k * width + j] /= pivot;
        for (int64_t i = 0; i < n; i++) {
            double f = i == k ? 0.0 : a[i * width + k];
            for (int64_t j = k; f != 0.0 && j < width; j++)
                a[i * width + j] -= f * a[k * width + j];
        }
    }
}

static void inverse_task(void *arg, size_t task, int thread)
{
    const ort_call *call = arg;
    const ort_tensor *in = ort_call_in(call, 0);
    int64_t n = in->shape.dim[in->shape.rank - 1], first = (int64_t)task * n * n;
    double *a = ort_call_scratch(call, thread);
    for (int64_t i = 0; i < n * n; i++) {
        a[i / n * 2 * n + i % n] = ort_tensor_get_f64(in, first + i);
        a[i / n * 2 * n + n + i % n] = i / n == i % n ? 1.0 : 0.0;
    }
    invert(a, n);
    for (int64_t i = 0; i < n * n; i++)
        ort_tensor_set_f64(ort_call_out(call, 0), first + i, a[i / n * 2 * n + n + i % n]);
}

static ort_status inverse_run(ort_call *call, ort_error *err)
{
    const ort_shape *in = &ort_call_in(call, 0)->shape;
    if (in->dim[in->rank - 1] != in->dim[in->rank - 2])
        return ort_call_fail(call, err, "the matrices are not square");
    ort_call_parallel(call, (size_t)ort_shape_count_range(in, 0, in->rank - 2), inverse_task, call);
    return ORT_OK;
}

static const ort_op_impl inverse_impl = {
    .rule = "[A..,N,N] -> [A..,N,N]", .shape = inverse_shape, .run = inverse_run,
};

const ort_op ort_ops_determinant[] = {
    {ONNX, "Det", 11, "X:T -> Y:T", "T:F", "", 0, &det_impl, .history = "22:T+bf16"},
    {MS, "Inverse", 1, "X:T -> Y:T", "T:F", "", 0, &inverse_impl},
    {0},
};
