/* determinant.c - Det: determinants of a batch of square matrices, by elimination with row pivots
 * in double precision. Invariant: matrices are independent tasks, each in its thread's scratch. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/move.h"

static ort_status det_infer(ort_infer *x, ort_error *err)
{
    ort_infer_set_dtype(x, 0, ort_infer_dtype(x, 0));
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    if (in->rank < 2)
        return ort_infer_fail(x, err, "the input has rank %d; 2 or more is needed", in->rank);
    if (ort_dim_differ(in->dim[in->rank - 1], in->dim[in->rank - 2]))
        return ort_infer_fail(x, err, "the matrices are not square");
    ort_infer_set_type(x, 0, in->dtype, in->rank - 2, in->dim);
    return ORT_OK;
}

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
    for (int64_t k = 0; k < n; k++) {
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

static const ort_op_impl det_impl = {det_infer, NULL, det_shape, det_run, NULL};

const ort_op ort_ops_determinant[] = {
    {ONNX, "Det", 11, "X:T -> Y:T", "T:F", "", 0, &det_impl},
    {ONNX, "Det", 22, "X:T -> Y:T", "T:F,bf16", "", 0, &det_impl},
    {0},
};
