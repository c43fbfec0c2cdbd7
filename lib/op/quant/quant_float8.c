/* quant_float8.c - QLinearMatMul whose matrices are of float8 kinds, or of a float8 kind and bytes.
 *
 * y = quantize((a - a_zero) x (b - b_zero) * a_scale * b_scale), by the formula of QuantizeLinear:
 * divided by y_scale; to bytes rounded, then y_zero added; to float8 y_zero added, then rounded;
 * saturated both times. Differences and sums are floats, the result is rounded once.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "op/quant/quant_float8.h"
#include "op/shared/widened.h"

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

typedef struct f8_job {
    const ort_call *call;
    const matmul_plan *plan;
    int64_t a_first, b_first, y_first; /* of this batch entry */
    float *a, *y;                      /* [m][k], [m][n] */
} f8_job;

ort_status ort_qlinear_f8_shape(ort_shaping *s, const matmul_plan *plan, ort_error *err)
{
    size_t a, y, total;
    if (!ort_mul_size((size_t)plan->m, (size_t)plan->k, &a) ||
        !ort_mul_size((size_t)plan->m, (size_t)plan->n, &y) || !ort_add_size(a, y, &total) ||
        !ort_mul_size(total, sizeof(float), &s->workspace_bytes))
        return ort_error_memory(err, SIZE_MAX);
    s->thread_bytes = ort_widened_thread_bytes(s->k);
    return ORT_OK;
}

/* Element i of a tensor of one element or one for each i. */
static float each(const ort_call *call, int input, int64_t i)
{
    const ort_tensor *t = ort_call_in(call, input);
    return (float)ort_tensor_get_f64(t, ort_tensor_count(t) == 1 ? 0 : i % ort_tensor_count(t));
}

/* Rows of a by the length that row scales repeat with: m counts all rows of folded batches. */
static int64_t a_rows(const f8_job *job)
{
    const ort_shape *shape = &ort_call_in(job->call, A)->shape;
    return shape->rank > 1 ? shape->dim[shape->rank - 2] : 1;
}

static void a_row(void *arg, size_t task, int thread)
{
    const f8_job *job = arg;
    const matmul_plan *p = job->plan;
    int64_t row = (int64_t)task;
    float zero = each(job->call, A_ZERO, row % a_rows(job)), *out = job->a + row * p->k;
    for (int64_t i = 0; i < p->k; i++)
        out[i] = (float)ort_tensor_get_f64(ort_call_in(job->call, A),
                                           job->a_first + row * p->a_row + i * p->a_col) - zero;
}

static void b_column(const void *weight, int64_t column, int64_t first, int64_t n, float *out)
{
    const f8_job *job = weight;
    const matmul_plan *p = job->plan;
    float zero = each(job->call, B_ZERO, column);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)ort_tensor_get_f64(ort_call_in(job->call, B),
                                           job->b_first + (first + i) * p->b_row +
                                               column * p->b_col) - zero;
}

static void store(ort_tensor *y, int64_t at, float v, float zero)
{
    if (ort_is_float8(y->dtype)) {
        ((uint8_t *)y->data)[at] = ort_f32_to_minifloat((int)y->dtype, v + zero, true);
        return;
    }
    float low = y->dtype == ORT_DTYPE_INT8 ? -128 : 0;
    v = isnan(v) ? zero : fminf(fmaxf(rintf(v) + zero, low), low + 255);
    ort_tensor_set_f64(y, at, (double)v);
}

static void y_row(void *arg, size_t task, int thread)
{
    const f8_job *job = arg;
    const matmul_plan *p = job->plan;
    int64_t row = (int64_t)task % a_rows(job);
    const float *sums = job->y + (int64_t)task * p->n;
    float scale = each(job->call, A_SCALE, row), divisor = each(job->call, Y_SCALE, row);
    float zero = each(job->call, Y_ZERO, row);
    for (int64_t j = 0; j < p->n; j++)
        store(ort_call_out(job->call, 0), job->y_first + (int64_t)task * p->n + j,
              sums[j] * (scale * each(job->call, B_SCALE, j)) / divisor, zero);
}

ort_status ort_qlinear_f8_run(ort_call *call, const matmul_plan *plan, ort_error *err)
{
    f8_job job = {.call = call, .plan = plan, .a = call->workspace};
    job.y = job.a + plan->m * plan->k;
    ort_widened product = {.m = plan->m, .rows = plan->n, .depth = plan->k, .a = job.a,
                           .y = job.y, .row = b_column, .weight = &job};
    if (plan->k == 0) /* no products: sums of nothing */
        memset(job.y, 0, (size_t)(plan->m * plan->n) * sizeof *job.y);
    for (int64_t i = 0; i < plan->batch; i++) {
        job.a_first = matmul_offset(plan, plan->a_batch, i);
        job.b_first = matmul_offset(plan, plan->b_batch, i);
        job.y_first = i * plan->m * plan->n;
        ort_call_parallel(call, (size_t)plan->m, a_row, &job);
        ort_widened_multiply(call, &product);
        ort_call_parallel(call, (size_t)plan->m, y_row, &job);
    }
    return ORT_OK;
}
