/* rnn_f64.c - the recurrences in double, activations from the C library. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/sequence/rnn_common.h"
#include "op/shared/matrix.h"

#define REAL double
#define CORE ort_rnn_core_f64
#define PACKED_BYTES ort_matrix_packed_bytes_f64
#define PACK ort_matrix_pack_f64
#define RUN_BYTES NULL
#define PRODUCT ort_product_f64
#define LSTM_GATES(k) NULL
#define GRU_GATES(k) NULL

static void to_real(const ort_tensor *t, int64_t first, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = ort_tensor_get_f64(t, first + i);
}

/* The same where they lie, at any alignment, if they are doubles; else in `temporary`. */
static const double *as_real(const ort_tensor *t, int64_t first, int64_t count, double *temporary)
{
    if (t->dtype == ORT_DTYPE_DOUBLE)
        return (const double *)t->data + first;
    to_real(t, first, count, temporary);
    return temporary;
}

static double activation(const ort_rnn_activation *act, double x)
{
    double a = act->alpha, b = act->beta;
    switch (act->function) {
    case ORT_UNARY_RELU:
        return x < 0 ? 0 : x;
    case ORT_UNARY_TANH:
        return tanh(x);
    case ORT_UNARY_SIGMOID:
        return 1 / (1 + exp(-x));
    case ORT_UNARY_LINEAR:
        return a * x + b;
    case ORT_UNARY_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case ORT_UNARY_THRESHOLDED_RELU:
        return x > a ? x : 0;
    case ORT_UNARY_SCALED_TANH:
        return a * tanh(b * x);
    case ORT_UNARY_HARD_SIGMOID:
        return fmin(fmax(a * x + b, 0), 1);
    case ORT_UNARY_ELU:
        return x < 0 ? a * expm1(x) : x;
    case ORT_UNARY_SOFTSIGN:
        return x / (1 + fabs(x));
    default: /* ORT_UNARY_SOFTPLUS */
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
}

static void act_row(const ort_kernels *k, const ort_rnn_activation *act, double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = activation(act, v[i]);
}

static void clip_row(const ort_kernels *k, double *v, int64_t n, double limit)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = v[i] < -limit ? -limit : v[i] > limit ? limit : v[i];
}

static void mul_row(const ort_kernels *k, double *y, const double *a, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

static void mul_add_row(const ort_kernels *k, double *y, const double *a, const double *b,
                        int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = y[i] * a[i] + b[i];
}

static void add_mul_row(const ort_kernels *k, double *y, const double *a, const double *b,
                        int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += a[i] * b[i];
}

static void multiply(const ort_call *call, bool pooled, bool odd, PRODUCT *p, bool add)
{
    p->alpha = 1;
    p->add = add ? p->c : NULL;
    p->ldadd = p->ldc;
    if (pooled)
        ort_matrix_multiply_f64(call, p);
    else
        ort_matrix_block_f64(call->k, p);
}

static void input_product(const ort_rnn_run *run, PRODUCT *p, const double *bias)
{
    for (int64_t i = 0; i < p->m; i++)
        memcpy(p->c + i * p->ldc, bias, (size_t)p->n * sizeof *bias);
    multiply(run->call, true, false, p, true);
}

#include "op/sequence/rnn_core.inc"
