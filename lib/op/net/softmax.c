/* softmax.c - Softmax, LogSoftmax, Hardmax.
 *
 * Before opset 13 the axis splits the tensor into a matrix whose rows are normalized; since then
 * only the axis itself is. Either way the tensor is [outer][length][inner]: rows when inner is 1,
 * else columns, which the kernels take a vector at a time. f32 runs in place on the kernels,
 * 16-bit floats through f32 scratch, doubles in plain loops.
 *
 * Softmax of float16 alone doesn't round once: as in the function body that ONNX gives the
 * operator (Exp, ReduceSum, Div in the tensor's type), the exponentials and their sum are float16.
 * Rounded once, it is more exact and fails one recorded test, in 2 of 192 elements by 1.2e-3 where
 * 1e-3 is allowed (test_attention_4d_causal_fp16_expanded): both can't be had.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"
#include "op/shared/unary_apply.h"

typedef enum softmax_kind { SOFTMAX, LOG_SOFTMAX, HARDMAX } softmax_kind;

typedef struct softmax_state {
    softmax_kind kind;
    bool flatten; /* before opset 13 */
    int64_t axis;
} softmax_state;

static const ort_bind softmax_bind[] = {ORT_BIND(softmax_state, axis), {0}};

typedef struct softmax_plan {
    int64_t outer, length, inner;
    int64_t columns;  /* inner columns of a task */
    int64_t per_task; /* rows of a task when inner is 1 */
} softmax_plan;

typedef struct softmax_job {
    const softmax_state *state;
    const softmax_plan *plan;
    const ort_vmath_kernels *math;
    const ort_call *call;
    const ort_tensor *x;
    ort_tensor *y;
} softmax_job;

#define TASK_GRAIN 16384

/* ---- one column of `length` elements `step` apart */

static void column_f64(softmax_kind kind, const double *x, double *y, int64_t length, int64_t step)
{
    double max = -INFINITY, sum = 0;
    int64_t best = 0;
    for (int64_t i = 0; i < length; i++)
        if (!(x[i * step] <= max) && !isnan(max)) {
            max = x[i * step];
            best = i;
        }
    if (kind == HARDMAX) {
        for (int64_t i = 0; i < length; i++)
            y[i * step] = i == best ? 1.0 : 0.0;
        return;
    }
    for (int64_t i = 0; i < length; i++)
        sum += exp(x[i * step] - max);
    double log_sum = log(sum);
    for (int64_t i = 0; i < length; i++) {
        double d = x[i * step] - max;
        y[i * step] = kind == LOG_SOFTMAX ? d - log_sum : exp(d) / sum;
    }
}

static void hard_f32(const float *x, float *y, int64_t length, int64_t step)
{
    int64_t best = 0;
    for (int64_t i = 1; i < length; i++)
        if (x[i * step] > x[best * step])
            best = i;
    for (int64_t i = 0; i < length; i++)
        y[i * step] = i == best ? 1.0f : 0.0f;
}

/* n columns of f32; stride: between rows of the column. */
static void columns_f32(const softmax_job *job, const float *x, float *y, int64_t stride, int64_t n)
{
    size_t length = (size_t)job->plan->length;
    switch (job->state->kind) {
    case SOFTMAX:
        if (stride == 1)
            job->math->softmax(x, y, length);
        else
            job->math->softmax_columns(x, y, length, (size_t)stride, (size_t)n);
        break;
    case LOG_SOFTMAX:
        if (stride == 1)
            job->math->log_softmax(x, y, length);
        else
            job->math->log_softmax_columns(x, y, length, (size_t)stride, (size_t)n);
        break;
    default:
        for (int64_t j = 0; j < n; j++)
            hard_f32(x + j, y + j, (int64_t)length, stride);
    }
}

/* Rows shorter than a vector: as columns, a vector of rows at a time, through a transposed copy. */
enum { SHORT_ROW = 8, SHORT_ROWS = 64 };
static void short_rows(const softmax_job *job, const float *x, float *y, int64_t rows)
{
    float block[SHORT_ROW * SHORT_ROWS];
    int64_t length = job->plan->length, n;
    for (int64_t first = 0; first < rows; first += n, x += n * length, y += n * length) {
        n = ort_min_i64(SHORT_ROWS, rows - first);
        for (int64_t i = 0; i < length; i++)
            for (int64_t j = 0; j < n; j++)
                block[i * SHORT_ROWS + j] = x[j * length + i];
        if (job->state->kind == SOFTMAX)
            job->math->softmax_columns(block, block, (size_t)length, SHORT_ROWS, (size_t)n);
        else
            job->math->log_softmax_columns(block, block, (size_t)length, SHORT_ROWS, (size_t)n);
        for (int64_t i = 0; i < length; i++)
            for (int64_t j = 0; j < n; j++)
                y[j * length + i] = block[i * SHORT_ROWS + j];
    }
}

/* Softmax of a row whose elements stand in `row`, to float16 numbers in `y`. A sum beyond float16
 * is not rounded. */
static void softmax_f16(const ort_vmath_kernels *math, float *row, uint16_t *y, size_t length)
{
    float max = -INFINITY;
    double sum = 0;
    for (size_t i = 0; i < length; i++)
        max = row[i] > max ? row[i] : max;
    math->exp_sum(row, row, length, max);
    math->f32_to_f16(row, y, length);
    math->f16_to_f32(y, row, length);
    for (size_t i = 0; i < length; i++)
        sum += (double)row[i];
    float total = ort_f16_to_f32(ort_f32_to_f16((float)sum));
    if (isinf(total))
        total = (float)sum;
    for (size_t i = 0; i < length; i++)
        row[i] /= total;
    math->f32_to_f16(row, y, length);
}

/* n columns at `at`, each brought to a row of the scratch: numbers, then float16 results. */
static void softmax_columns_f16(const softmax_job *job, int64_t at, int64_t n, float *row)
{
    const uint16_t *x = (const uint16_t *)job->x->data + at;
    uint16_t *y = (uint16_t *)job->y->data + at;
    int64_t length = job->plan->length, stride = job->plan->inner;
    uint16_t *result = (uint16_t *)(void *)(row + length);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < length; i++)
            row[i] = ort_f16_to_f32(x[i * stride + j]);
        softmax_f16(job->math, row, result, (size_t)length);
        for (int64_t i = 0; i < length; i++)
            y[i * stride + j] = result[i];
    }
}

/* 16-bit floats: the columns lie packed in f32 scratch of length * n elements. */
static void columns_half(const softmax_job *job, int64_t at, int64_t n, int thread)
{
    const softmax_plan *plan = job->plan;
    float *block = ort_call_scratch(job->call, thread);
    const uint16_t *x = (const uint16_t *)job->x->data + at;
    uint16_t *y = (uint16_t *)job->y->data + at;
    bool stepwise = job->state->kind == SOFTMAX && job->x->dtype == ORT_DTYPE_FLOAT16;
    if (stepwise && plan->inner > 1) {
        softmax_columns_f16(job, at, n, block);
        return;
    }
    if (plan->inner == 1) {
        ort_widen(job->math, job->x->dtype, x, block, (size_t)plan->length);
        if (stepwise) {
            softmax_f16(job->math, block, y, (size_t)plan->length);
            return;
        }
        columns_f32(job, block, block, 1, 1);
        ort_narrow(job->math, job->x->dtype, block, y, (size_t)plan->length);
        return;
    }
    for (int64_t i = 0; i < plan->length; i++)
        ort_widen(job->math, job->x->dtype, x + i * plan->inner, block + i * n, (size_t)n);
    columns_f32(job, block, block, n, n);
    for (int64_t i = 0; i < plan->length; i++)
        ort_narrow(job->math, job->x->dtype, block + i * n, y + i * plan->inner, (size_t)n);
}

static void run_columns(const softmax_job *job, int64_t at, int64_t n, int thread)
{
    int64_t stride = job->plan->inner;
    if (job->x->dtype == ORT_DTYPE_FLOAT)
        columns_f32(job, (const float *)job->x->data + at, (float *)job->y->data + at, stride, n);
    else if (job->x->dtype == ORT_DTYPE_DOUBLE)
        for (int64_t j = 0; j < n; j++)
            column_f64(job->state->kind, (const double *)job->x->data + at + j,
                       (double *)job->y->data + at + j, job->plan->length, stride);
    else
        columns_half(job, at, n, thread);
}

static void rows_task(void *arg, int64_t first, int64_t end, int thread)
{
    const softmax_job *job = arg;
    const softmax_plan *plan = job->plan;
    bool f32 = job->x->dtype == ORT_DTYPE_FLOAT;
    if (f32 && job->state->kind != HARDMAX && plan->length <= SHORT_ROW &&
        plan->outer >= SHORT_ROW) {
        short_rows(job, (const float *)job->x->data + first * plan->length,
                   (float *)job->y->data + first * plan->length, end - first);
        return;
    }
    for (int64_t row = first; row < end; row++)
        if (f32 && job->state->kind == SOFTMAX)
            job->math->softmax((const float *)job->x->data + row * plan->length,
                               (float *)job->y->data + row * plan->length, (size_t)plan->length);
        else
            run_columns(job, row * plan->length, 1, thread);
}

static void columns_task(void *arg, size_t task, int thread)
{
    const softmax_job *job = arg;
    const softmax_plan *plan = job->plan;
    int64_t blocks = (plan->inner + plan->columns - 1) / plan->columns;
    int64_t outer = (int64_t)task / blocks, column = (int64_t)task % blocks * plan->columns;
    run_columns(job, outer * plan->length * plan->inner + column,
                ort_min_i64(plan->columns, plan->inner - column), thread);
}

/* ---- phases */

static ort_status softmax_infer(ort_infer *x, ort_error *err)
{
    int axis;
    int64_t value = ort_node_attr_int(x->node, "axis");
    if (x->op->since >= 13 && ort_infer_in_ranked(x, 0) && x->in[0]->type.rank == 0)
        return ort_infer_fail(x, err, "the input is a scalar: it has no axis");
    /* A flattening axis may be the rank itself: rows of one element. */
    if (ort_infer_in_ranked(x, 0) && x->in[0]->type.rank > 0 &&
        !(x->op->since < 13 && value == x->in[0]->type.rank))
        ORT_TRY(ort_infer_axis(x, value, x->in[0]->type.rank, &axis, err));
    return ORT_OK;
}

static ort_status softmax_prepare(ort_prep *p, ort_error *err)
{
    softmax_state *s = p->state;
    s->kind = (softmax_kind)p->op->variant;
    s->flatten = p->op->since < 13;
    return ORT_OK;
}

static ort_status softmax_shape(ort_shaping *sh, ort_error *err)
{
    const softmax_state *s = sh->state;
    const ort_shape *shape = &sh->in[0]->shape;
    softmax_plan *plan = ort_arena_alloc(sh->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    int axis = (int)(s->axis < 0 ? s->axis + shape->rank : s->axis);
    if (axis < 0 || axis > shape->rank)
        axis = shape->rank;
    plan->outer = ort_shape_count_range(shape, 0, axis);
    plan->inner = 1;
    if (s->flatten) {
        plan->length = ort_shape_count_range(shape, axis, shape->rank);
    } else {
        plan->length = axis < shape->rank ? shape->dim[axis] : 1;
        plan->inner = axis < shape->rank ? ort_shape_count_range(shape, axis + 1, shape->rank) : 1;
    }
    int64_t length = ort_max_i64(1, plan->length);
    plan->per_task = ort_max_i64(1, TASK_GRAIN / length);
    plan->columns = ort_max_i64(64, ort_min_i64(1024, TASK_GRAIN / length / 64 * 64));
    if (sh->in[0]->dtype != ORT_DTYPE_FLOAT && sh->in[0]->dtype != ORT_DTYPE_DOUBLE)
        sh->thread_bytes = (size_t)length * sizeof(float) *
                           (size_t)(plan->inner == 1 ? 1 : ort_min_i64(plan->columns, plan->inner));
    /* inner > 1 leaves two rows at least, as softmax_columns_f16 needs */
    sh->plan_state = plan;
    return ORT_OK;
}

static ort_status softmax_run(ort_call *call, ort_error *err)
{
    const softmax_plan *plan = call->plan_state;
    softmax_job job = {call->state, plan, &call->k->math, call, ort_call_in(call, 0),
                       ort_call_out(call, 0)};
    if (ort_tensor_count(job.x) == 0)
        return ORT_OK;
    int64_t blocks = (plan->inner + plan->columns - 1) / plan->columns;
    if (plan->inner == 1)
        ort_call_range(call, plan->outer, plan->per_task, rows_task, &job);
    else
        ort_call_parallel(call, (size_t)(plan->outer * blocks), columns_task, &job);
    return ORT_OK;
}

static void softmax_cost(const ort_infer *x, ort_cost *cost)
{
    ort_elementwise_cost(x, cost);
    cost->flops *= 10;
}

static const ort_op_impl softmax_impl = {
    .state = sizeof(softmax_state), .bind = softmax_bind, .rule = "same", .infer = softmax_infer,
    .prepare = softmax_prepare, .shape = softmax_shape, .run = softmax_run, .cost = softmax_cost,
};

#define ROWS(name, kind)                                                                           \
    {ONNX, name, 1, "input:T -> output:T", "T:F", "axis:i=1", ORT_TRAIT_INPLACE, &softmax_impl,    \
     .history = "11", .variant = kind},                                                            \
    {ONNX, name, 13, "input:T -> output:T", "T:F,bf16", "axis:i=-1", ORT_TRAIT_INPLACE,            \
     &softmax_impl, .variant = kind}

const ort_op ort_ops_softmax[] = {
    ROWS("Softmax", SOFTMAX),
    ROWS("LogSoftmax", LOG_SOFTMAX),
    ROWS("Hardmax", HARDMAX),
    {0},
};
