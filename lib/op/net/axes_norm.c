/* axes_norm.c - normalizations over chosen axes: LpNormalization, MeanVarianceNormalization.
 *
 * f32 whose reduced axes end in contiguous runs (the last axis, or all but the channels) or that
 * reduces one axis over columns goes through the kernels; one strided loop in double serves the
 * rest.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/reduce_plan.h"

enum { MEAN_VARIANCE, LP };

typedef struct axes_state {
    bool lp;
    bool across_channels, divides; /* divides: by the deviation; else only the mean goes */
    int64_t p, axis;
    ort_ints axes;
} axes_state;

static const ort_bind axes_bind[] = {
    ORT_BIND(axes_state, p, ORT_WITHIN(1, 2), ORT_ELSE(2)),
    ORT_BIND(axes_state, axis, ORT_MAYBE),
    ORT_BIND(axes_state, axes, ORT_MAYBE),
    ORT_BIND(axes_state, across_channels, ORT_MAYBE),
    ORT_BIND_AS(axes_state, divides, "normalize_variance", ORT_ELSE(1)), {0}};

typedef struct axes_job {
    const axes_state *state;
    const ort_reduce_plan *plan;
    const ort_vmath_kernels *math;
    const ort_tensor *x;
    ort_tensor *y;
} axes_job;

/* MeanVarianceNormalization had flags and images alone until opset 8. */
static ort_status axes_prepare(ort_prep *p, ort_error *err)
{
    static const int64_t image_axes[] = {0, 2, 3, 1}; /* the last one: across channels */
    axes_state *s = p->state;
    s->lp = p->op->variant == LP;
    if (s->lp)
        s->axes = (ort_ints){&s->axis, 1};
    else if (p->op->since < 9)
        s->axes = (ort_ints){image_axes, s->across_channels ? 4 : 3};
    return ORT_OK;
}

static ort_status axes_shape(ort_shaping *sh, ort_error *err)
{
    const axes_state *s = sh->state;
    const ort_shape *shape = &sh->in[0]->shape;
    ort_reduce_plan *plan = ort_arena_alloc(sh->arena, sizeof *plan);
    bool reduced[ORT_MAX_RANK] = {false};
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    for (size_t i = 0; i < s->axes.count; i++) {
        int64_t axis = s->axes.ptr[i] < 0 ? s->axes.ptr[i] + shape->rank : s->axes.ptr[i];
        if (axis < 0 || axis >= shape->rank)
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "axis %lld is outside the %d axes of the input",
                                 (long long)s->axes.ptr[i], shape->rank);
        reduced[axis] = true;
    }
    ort_reduce_plan_make(plan, shape, reduced);
    sh->plan_state = plan;
    return ORT_OK;
}

static double get(const ort_tensor *t, int64_t i)
{
    return t->dtype == ORT_DTYPE_FLOAT ? (double)((const float *)t->data)[i]
                                       : ort_tensor_get_f64(t, i);
}

/* As the function body of the specification has it. */
static double mean_divisor(const axes_job *job, double total)
{
    return job->state->divides ? sqrt(total / (double)job->plan->reduced.total) + 1e-9 : 1;
}

/* One kept index: y = (x - center) / divisor. */
static void normalize_group(const axes_job *job, int64_t base)
{
    const ort_axes *r = &job->plan->reduced;
    double center = 0, total = 0, divisor;
    for (int64_t i = 0; i < r->total && !job->state->lp; i++)
        center += get(job->x, base + ort_axes_offset(r, r->count, i)) / (double)r->total;
    for (int64_t i = 0; i < r->total; i++) {
        double d = get(job->x, base + ort_axes_offset(r, r->count, i)) - center;
        total += job->state->lp && job->state->p == 1 ? fabs(d) : d * d;
    }
    if (job->state->lp)
        divisor = job->state->p == 1 ? total : sqrt(total);
    else
        divisor = mean_divisor(job, total);
    for (int64_t i = 0; i < r->total; i++) {
        int64_t at = base + ort_axes_offset(r, r->count, i);
        double d = get(job->x, at) - center;
        ort_tensor_set_f64(job->y, at, divisor == 0 ? 0 : d / divisor);
    }
}

static void axes_task(void *arg, int64_t first, int64_t end, int thread)
{
    const axes_job *job = arg;
    const ort_axes *kept = &job->plan->kept;
    for (int64_t i = first; i < end; i++)
        normalize_group(job, ort_axes_offset(kept, kept->count, i));
}

/* ---- f32, runs */

static void normalize_runs(const axes_job *job, int64_t base)
{
    const ort_axes *r = &job->plan->reduced;
    const float *x = (const float *)job->x->data + base;
    float *y = (float *)job->y->data + base;
    int64_t n = r->dim[r->count - 1], runs = r->total / n;
    double center = 0, total = 0, count = (double)r->total;
    bool lp = job->state->lp, one = job->state->p == 1;
    for (int64_t k = 0; k < runs && !lp; k++)
        center += job->math->reduce[ORT_ACCUM_SUM](x + ort_axes_offset(r, r->count - 1, k),
                                                   (size_t)n);
    center /= count;
    for (int64_t k = 0; k < runs; k++) {
        const float *v = x + ort_axes_offset(r, r->count - 1, k);
        total += !lp ? job->math->sum_square_diff(v, (size_t)n, (float)center)
                     : job->math->reduce[one ? ORT_ACCUM_SUM_ABS : ORT_ACCUM_SUM_SQUARE](v,
                                                                                         (size_t)n);
    }
    double divisor = !lp ? mean_divisor(job, total) : one ? total : sqrt(total);
    double a = divisor == 0 ? 0 : 1 / divisor;
    for (int64_t k = 0; k < runs; k++) {
        int64_t at = ort_axes_offset(r, r->count - 1, k);
        job->math->scale_bias_row(x + at, y + at, (size_t)n, (float)a, (float)(-center * a));
    }
}

static void runs_task(void *arg, int64_t first, int64_t end, int thread)
{
    const axes_job *job = arg;
    const ort_axes *kept = &job->plan->kept;
    for (int64_t i = first; i < end; i++)
        normalize_runs(job, ort_axes_offset(kept, kept->count, i));
}

/* ---- f32, LpNormalization down columns */

#define COLUMNS 512

static void columns_task(void *arg, size_t task, int thread)
{
    const axes_job *job = arg;
    const ort_axes *kept = &job->plan->kept, *r = &job->plan->reduced;
    int64_t inner = r->stride[0], blocks = (inner + COLUMNS - 1) / COLUMNS;
    int64_t column = (int64_t)task % blocks * COLUMNS, n = ort_min_i64(COLUMNS, inner - column);
    int64_t base = ort_axes_offset(kept, kept->count - 1, (int64_t)task / blocks) + column;
    const float *x = (const float *)job->x->data + base;
    float *y = (float *)job->y->data + base, norm[COLUMNS] = {0};
    job->math->accumulate[job->state->p == 1 ? ORT_ACCUM_SUM_ABS : ORT_ACCUM_SUM_SQUARE](
        norm, x, (size_t)r->total, (size_t)inner, (size_t)n);
    if (job->state->p == 2)
        job->math->unary[ORT_UNARY_SQRT](norm, norm, (size_t)n, 0, 0);
    for (int64_t j = 0; j < n; j++)
        norm[j] = norm[j] == 0 ? 1.0f : norm[j]; /* 0 stays 0 */
    for (int64_t i = 0; i < r->total; i++)
        job->math->binary[ORT_BINARY_DIV](x + i * inner, norm, y + i * inner, (size_t)n,
                                          ORT_FORM_VV);
}

static ort_status axes_run(ort_call *call, ort_error *err)
{
    const ort_reduce_plan *plan = call->plan_state;
    axes_job job = {call->state, plan, &call->k->math, ort_call_in(call, 0), ort_call_out(call, 0)};
    if (ort_tensor_count(job.x) == 0)
        return ORT_OK;
    int64_t grain = ort_max_i64(1, 32768 / plan->reduced.total);
    bool f32 = job.x->dtype == ORT_DTYPE_FLOAT;
    if (f32 && plan->inner_reduced) {
        ort_call_range(call, plan->kept.total, grain, runs_task, &job);
    } else if (f32 && job.state->lp && plan->reduced.count == 1 && plan->kept.count > 0) {
        int64_t inner = plan->reduced.stride[0], blocks = (inner + COLUMNS - 1) / COLUMNS;
        ort_call_parallel(call, (size_t)(plan->kept.total / inner * blocks), columns_task, &job);
    } else {
        ort_call_range(call, plan->kept.total, grain, axes_task, &job);
    }
    return ORT_OK;
}

static const ort_op_impl axes_impl = {
    .state = sizeof(axes_state), .bind = axes_bind,
    .rule = "same", .prepare = axes_prepare, .shape = axes_shape, .run = axes_run,
};

const ort_op ort_ops_axes_norm[] = {
    {ONNX, "LpNormalization", 1, "input:T -> output:T", "T:F", "axis:i=-1 p:i=2", 0, &axes_impl,
     .history = "22:T+bf16", .variant = LP},
    {ONNX, "MeanVarianceNormalization", 1, "input:T -> output:T", "T:F",
     "across_channels:i=0 normalize_variance:i=1", ORT_TRAIT_EXTENSION, &axes_impl},
    {ONNX, "MeanVarianceNormalization", 9, "X:T -> Y:T", "T:F", "axes:is=[0 2 3]", 0, &axes_impl,
     .history = "13:T+bf16"},
    {0},
};
