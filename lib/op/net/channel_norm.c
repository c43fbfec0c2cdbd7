/* channel_norm.c - normalizations over a tensor seen as [batch][channel][inner]:
 * BatchNormalization, InstanceNormalization, GroupNormalization, LRN, and the legacy ImageScaler.
 *
 * Each becomes y = a * x + b with one (a, b) per channel or per (batch, channel): the statistics
 * are formed first (in double across blocks), then rows are scaled by one kernel call. Types other
 * than f32 take rows through f32 scratch, doubles through plain loops.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/move.h"
#include "op/shared/unary_apply.h"

typedef enum channel_kind { BATCH, INSTANCE, GROUP, SCALER } channel_kind;

typedef struct channel_state {
    channel_kind kind;
    float epsilon, momentum, scale;
    int64_t groups;
    bool training, spatial, per_group; /* per_group: opset 18 scales groups, not channels */
    bool tests; /* opset 6: no training */
    ort_floats bias;
    /* BatchNormalization with constant parameters: y = a * x + b, ready for so many channels. */
    int64_t ready;
    double *a, *b;
    float *fa, *fb;
} channel_state;

static const ort_bind channel_bind[] = {
    ORT_BIND(channel_state, epsilon, ORT_MAYBE),
    ORT_BIND(channel_state, momentum, ORT_MAYBE),
    ORT_BIND(channel_state, scale, ORT_MAYBE),
    ORT_BIND_AS(channel_state, groups, "num_groups", ORT_ELSE(1)),
    ORT_BIND(channel_state, spatial, ORT_ELSE(1)),
    ORT_BIND_AS(channel_state, training, "training_mode", ORT_MAYBE),
    ORT_BIND_AS(channel_state, tests, "is_test", ORT_MAYBE),
    ORT_BIND(channel_state, bias, ORT_MAYBE), {0}};

typedef struct channel_plan {
    int64_t batch, channels, inner;
} channel_plan;

typedef struct channel_job {
    const channel_state *state;
    const channel_plan *plan;
    const ort_call *call;
    const ort_vmath_kernels *math;
    const ort_tensor *x;
    ort_tensor *y;
    double *a, *b;       /* per channel, or per (batch, channel) */
    bool per_batch;
    float *fa, *fb;      /* the same in f32 */
} channel_job;

#define TASK_GRAIN 32768

/* ---- loads and statistics */

/* Sum of x, and of (x - center)^2, over n elements from `at`. */
static void sums(const channel_job *job, int64_t at, int64_t n, double center, double *sum,
                 double *square)
{
    const ort_tensor *x = job->x;
    float block[ORT_WIDEN_BLOCK];
    if (x->dtype == ORT_DTYPE_DOUBLE) {
        const double *v = (const double *)x->data + at;
        for (int64_t i = 0; i < n; i++) {
            if (sum)
                *sum += v[i];
            else
                *square += (v[i] - center) * (v[i] - center);
        }
        return;
    }
    for (int64_t i = 0; i < n; i += ORT_WIDEN_BLOCK) {
        int64_t count = ort_min_i64(ORT_WIDEN_BLOCK, n - i);
        const float *v = (const float *)x->data + at + i;
        if (x->dtype == ORT_DTYPE_FLOAT)
            count = n; /* all of it at once */
        else
            ort_widen(job->math, x->dtype, (const uint16_t *)x->data + at + i, block,
                      (size_t)count);
        if (x->dtype != ORT_DTYPE_FLOAT)
            v = block;
        if (sum)
            *sum += job->math->reduce[ORT_ACCUM_SUM](v, (size_t)count);
        else
            *square += job->math->sum_square_diff(v, (size_t)count, (float)center);
        if (count == n)
            break;
    }
}

/* Mean and population variance of a contiguous run. */
static void run_statistics(const channel_job *job, int64_t at, int64_t n, double *mean,
                           double *variance)
{
    double sum = 0, square = 0;
    sums(job, at, n, 0, &sum, NULL);
    *mean = sum / (double)n;
    sums(job, at, n, *mean, NULL, &square);
    *variance = square / (double)n;
}

static void channel_statistics(const channel_job *job, int64_t c, double *mean, double *variance)
{
    const channel_plan *p = job->plan;
    double sum = 0, square = 0, count = (double)(p->batch * p->inner);
    for (int64_t n = 0; n < p->batch; n++)
        sums(job, (n * p->channels + c) * p->inner, p->inner, 0, &sum, NULL);
    *mean = sum / count;
    for (int64_t n = 0; n < p->batch; n++)
        sums(job, (n * p->channels + c) * p->inner, p->inner, *mean, NULL, &square);
    *variance = square / count;
}

/* ---- scaling */

static void scale_row(const channel_job *job, int64_t at, int64_t n, int64_t k)
{
    ort_dtype dtype = job->x->dtype;
    if (dtype == ORT_DTYPE_FLOAT) {
        job->math->scale_bias_row((const float *)job->x->data + at, (float *)job->y->data + at,
                                  (size_t)n, job->fa[k], job->fb[k]);
    } else if (dtype == ORT_DTYPE_DOUBLE) {
        const double *x = (const double *)job->x->data + at;
        double *y = (double *)job->y->data + at;
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * job->a[k] + job->b[k];
    } else {
        float block[ORT_WIDEN_BLOCK];
        for (int64_t i = 0; i < n; i += ORT_WIDEN_BLOCK) {
            size_t count = (size_t)ort_min_i64(ORT_WIDEN_BLOCK, n - i);
            ort_widen(job->math, dtype, (const uint16_t *)job->x->data + at + i, block, count);
            job->math->scale_bias_row(block, block, count, job->fa[k], job->fb[k]);
            ort_narrow(job->math, dtype, block, (uint16_t *)job->y->data + at + i, count);
        }
    }
}

static void scale_task(void *arg, int64_t first, int64_t end, int thread)
{
    const channel_job *job = arg;
    const channel_plan *p = job->plan;
    for (int64_t row = first; row < end; row++)
        scale_row(job, row * p->inner, p->inner, job->per_batch ? row : row % p->channels);
}

/* Channels lie side by side: a row of the batch is scaled element by element. */
static void vector_task(void *arg, int64_t first, int64_t end, int thread)
{
    const channel_job *job = arg;
    int64_t c = job->plan->channels;
    for (int64_t n = first; n < end; n++)
        job->math->scale_bias((const float *)job->x->data + n * c, job->fa, job->fb,
                              (float *)job->y->data + n * c, (size_t)c);
}

static void scale_all(ort_call *call, channel_job *job)
{
    const channel_plan *p = job->plan;
    int64_t count = p->channels * (job->per_batch ? p->batch : 1);
    for (int64_t i = 0; i < count && job->a != job->state->a; i++) {
        job->fa[i] = (float)job->a[i];
        job->fb[i] = (float)job->b[i];
    }
    if (p->inner == 1 && !job->per_batch && job->x->dtype == ORT_DTYPE_FLOAT) {
        ort_call_range(call, p->batch, ort_max_i64(1, TASK_GRAIN / p->channels), vector_task, job);
        return;
    }
    ort_call_range(call, p->batch * p->channels, ort_max_i64(1, TASK_GRAIN / p->inner), scale_task,
                   job);
}

/* y = (x - mean) / sqrt(variance + epsilon) * scale + bias as a * x + b */
static void set_affine(const channel_job *job, int64_t k, double mean, double variance,
                       double scale,
                       double bias)
{
    double inverse = scale / sqrt(variance + (double)job->state->epsilon);
    job->a[k] = inverse;
    job->b[k] = bias - mean * inverse;
}

/* ---- shared phases */

static ort_status channel_shape(ort_shaping *s, ort_error *err)
{
    const channel_state *state = s->state;
    const ort_shape *x = &s->in[0]->shape;
    channel_plan *plan = ort_arena_alloc(s->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    if (x->rank < 2 && state->kind != BATCH)
        return ort_error_set(err, ORT_ERROR_MODEL, "the input needs two axes or more, has %d",
                             x->rank);
    plan->batch = x->rank > 0 ? x->dim[0] : 1;
    plan->channels = x->rank > 1 ? x->dim[1] : 1;
    plan->inner = ort_shape_count_range(x, x->rank < 2 ? x->rank : 2, x->rank);
    if (state->kind == BATCH && !state->spatial) { /* a statistic per activation */
        plan->channels *= plan->inner;
        plan->inner = 1;
    }
    int64_t want = state->kind == GROUP && state->per_group ? state->groups : plan->channels;
    int operands = state->kind == BATCH ? 5 : state->kind == SCALER ? 1 : 3;
    for (int k = 1; k < operands; k++)
        if (k >= s->in_count || !s->in[k] || ort_tensor_count(s->in[k]) != want)
            return ort_error_set(err, ORT_ERROR_MODEL, "input %d needs %lld elements, one per %s",
                                 k,
                                 (long long)want, want == plan->channels ? "channel" : "group");
    if (state->kind == GROUP && (state->groups < 1 || plan->channels % state->groups))
        return ort_error_set(err, ORT_ERROR_MODEL, "%lld channels don't divide into %lld groups",
                             (long long)plan->channels, (long long)state->groups);
    if (state->kind == SCALER && (int64_t)state->bias.count != plan->channels)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "attribute bias has %zu values for %lld channels",
                             state->bias.count, (long long)plan->channels);
    int64_t sets = state->kind == INSTANCE || state->kind == GROUP ? plan->batch : 1;
    s->workspace_bytes = (size_t)(sets * plan->channels) * 2 * (sizeof(double) + sizeof(float));
    s->plan_state = plan;
    return ORT_OK;
}

static channel_job make_job(ort_call *call)
{
    channel_job job = {.state = call->state,
                       .plan = call->plan_state,
                       .call = call,
                       .math = &call->k->math,
                       .x = ort_call_in(call, 0),
                       .y = ort_call_out(call, 0)};
    job.per_batch = job.state->kind == INSTANCE || job.state->kind == GROUP;
    int64_t count = job.plan->channels * (job.per_batch ? job.plan->batch : 1);
    job.a = call->workspace;
    job.b = job.a + count;
    job.fa = (float *)(void *)(job.b + count);
    job.fb = job.fa + count;
    return job;
}

/* ---- BatchNormalization */

static ort_status batch_infer(ort_infer *x, ort_error *err)
{
    if (x->op->since >= 14 && x->out_count > 1 && !ort_node_attr_int(x->node, "training_mode"))
        return ort_infer_fail(x, err, "it gives %d outputs, but only training_mode has more than 1",
                              x->out_count);
    for (int i = 1; i < x->out_count; i++) /* where the mean doesn't tell, X does */
        x->out[i].type.dim[0] = ort_dim_merge(x->out[i].type.dim[0], ort_infer_dim(x, 0, 1));
    return ORT_OK;
}

/* Of GroupNormalization: scale and bias are per group in opset 18, per channel since 21. */
static ort_status group_infer(ort_infer *x, ort_error *err)
{
    int64_t groups = x->op->variant == GROUP ? ort_node_attr_int(x->node, "num_groups") : 1;
    ort_dim channels = ort_infer_dim(x, 0, 1);
    if (groups < 1 || (ort_dim_known(channels) && channels.size % groups != 0))
        return ort_infer_fail(x, err, "num_groups is %lld, which doesn't divide the channels",
                              (long long)groups);
    ort_dim wanted = x->op->variant == GROUP && x->op->since < 21 ? ort_dim_of(groups) : channels;
    for (int i = 1; i < 3; i++) {
        ort_dim have = ort_infer_dim(x, i, 0);
        if (ort_dim_known(have) && ort_dim_known(wanted) && have.size != wanted.size)
            return ort_infer_fail(x, err, "input %d has %lld elements, needs %lld", i,
                                  (long long)have.size, (long long)wanted.size);
    }
    return ORT_OK;
}

static ort_status batch_constants(ort_prep *p, channel_state *s, ort_error *err)
{
    const ort_tensor *t[5] = {NULL};
    for (int k = 1; k < 5; k++) {
        t[k] = ort_prep_constant(p, k);
        if (!t[k] || ort_tensor_count(t[k]) != ort_tensor_count(t[1]))
            return ORT_OK;
    }
    size_t n = (size_t)ort_tensor_count(t[1]);
    s->a = ort_arena_array(p->arena, n + 1, sizeof *s->a);
    s->b = ort_arena_array(p->arena, n + 1, sizeof *s->b);
    s->fa = ort_arena_array(p->arena, n + 1, sizeof *s->fa);
    s->fb = ort_arena_array(p->arena, n + 1, sizeof *s->fb);
    if (!s->a || !s->b || !s->fa || !s->fb)
        return ort_error_memory(err, n * 24);
    channel_job job = {.state = s, .a = s->a, .b = s->b};
    for (size_t c = 0; c < n; c++) {
        int64_t i = (int64_t)c;
        set_affine(&job, i, ort_tensor_get_f64(t[3], i), ort_tensor_get_f64(t[4], i),
                   ort_tensor_get_f64(t[1], i), ort_tensor_get_f64(t[2], i));
        s->fa[c] = (float)s->a[c];
        s->fb[c] = (float)s->b[c];
    }
    s->ready = (int64_t)n;
    return ORT_OK;
}

static ort_status channel_prepare(ort_prep *p, ort_error *err)
{
    channel_state *s = p->state;
    ORT_TRY(ort_prep_need_real(p, 0, err));
    s->kind = (channel_kind)p->op->variant;
    s->per_group = s->kind == GROUP && p->op->since < 21;
    if (p->op->since < 14) /* the extra outputs asked for training */
        s->training = p->out_count > 1 && !s->tests;
    return s->kind == BATCH && !s->training ? batch_constants(p, s, err) : ORT_OK;
}

static void put(ort_tensor *t, int64_t index, double value)
{
    if (t)
        ort_tensor_set_f64(t, index, value);
}

static ort_status batch_run(ort_call *call, ort_error *err)
{
    channel_job job = make_job(call);
    const channel_state *s = job.state;
    const ort_tensor *scale = ort_call_in(call, 1), *bias = ort_call_in(call, 2);
    const ort_tensor *mean = ort_call_in(call, 3), *variance = ort_call_in(call, 4);
    double momentum = (double)s->momentum;
    if (ort_tensor_count(job.x) == 0)
        return ORT_OK;
    if (s->ready == job.plan->channels) {
        job.a = s->a;
        job.b = s->b;
        job.fa = s->fa;
        job.fb = s->fb;
        scale_all(call, &job);
        return ORT_OK;
    }
    for (int64_t c = 0; c < job.plan->channels; c++) {
        double m = ort_tensor_get_f64(mean, c), v = ort_tensor_get_f64(variance, c);
        if (s->training) {
            double now_mean, now_variance;
            channel_statistics(&job, c, &now_mean, &now_variance);
            put(ort_call_out(call, 1), c, m * momentum + now_mean * (1 - momentum));
            put(ort_call_out(call, 2), c, v * momentum + now_variance * (1 - momentum));
            put(ort_call_out(call, 3), c, now_mean);
            put(ort_call_out(call, 4), c, now_variance);
            m = now_mean;
            v = now_variance;
        }
        set_affine(&job, c, m, v, ort_tensor_get_f64(scale, c), ort_tensor_get_f64(bias, c));
    }
    scale_all(call, &job);
    return ORT_OK;
}

/* ---- InstanceNormalization, GroupNormalization: statistics per batch element */

static void group_task(void *arg, size_t task, int thread)
{
    const channel_job *job = arg;
    const channel_state *s = job->state;
    const channel_plan *p = job->plan;
    const ort_tensor *scale = ort_call_in(job->call, 1), *bias = ort_call_in(job->call, 2);
    int64_t groups = s->kind == GROUP ? s->groups : p->channels, size = p->channels / groups;
    int64_t group = (int64_t)task % groups, first = (int64_t)task * size; /* batch * channels + c */
    double mean, variance;
    run_statistics(job, first * p->inner, size * p->inner, &mean, &variance);
    for (int64_t k = 0; k < size; k++) {
        int64_t c = s->per_group ? group : group * size + k;
        set_affine(job, first + k, mean, variance, ort_tensor_get_f64(scale, c),
                   ort_tensor_get_f64(bias, c));
    }
}

static ort_status group_run(ort_call *call, ort_error *err)
{
    channel_job job = make_job(call);
    if (ort_tensor_count(job.x) == 0)
        return ORT_OK;
    int64_t groups = job.state->kind == GROUP ? job.state->groups : job.plan->channels;
    ort_call_parallel(call, (size_t)(job.plan->batch * groups), group_task, &job);
    scale_all(call, &job);
    return ORT_OK;
}

static ort_status scaler_run(ort_call *call, ort_error *err)
{
    channel_job job = make_job(call);
    if (ort_tensor_count(job.x) == 0)
        return ORT_OK;
    for (int64_t c = 0; c < job.plan->channels; c++) {
        job.a[c] = (double)job.state->scale;
        job.b[c] = (double)job.state->bias.ptr[c];
    }
    scale_all(call, &job);
    return ORT_OK;
}

static void channel_cost(const ort_infer *x, ort_cost *cost)
{
    ort_elementwise_cost(x, cost);
    cost->flops *= 2;
}

static const ort_op_impl batch_impl = {
    .state = sizeof(channel_state), .bind = channel_bind,
    .rule = "[..] [_] [_] [C] [_] -> [..] [C] [C] [C] [C]",
    .infer = batch_infer, .prepare = channel_prepare, .shape = channel_shape, .run = batch_run,
    .cost = channel_cost,
};
static const ort_op_impl group_impl = {
    .state = sizeof(channel_state), .bind = channel_bind, .rule = "[..] [_] [_] -> [..]",
    .infer = group_infer, .prepare = channel_prepare, .shape = channel_shape, .run = group_run,
    .cost = channel_cost,
};
static const ort_op_impl scaler_impl = {
    .state = sizeof(channel_state), .bind = channel_bind,
    .rule = "same", .prepare = channel_prepare, .shape = channel_shape, .run = scaler_run,
    .cost = channel_cost,
};

/* ---- LRN */

typedef struct lrn_state {
    int64_t size;
    float alpha, beta, bias;
} lrn_state;

static const ort_bind lrn_bind[] = {
    ORT_BIND(lrn_state, size, ORT_FROM(1)),
    ORT_BIND(lrn_state, alpha),
    ORT_BIND(lrn_state, beta),
    ORT_BIND(lrn_state, bias), {0}};

typedef struct lrn_job {
    const lrn_state *state;
    const ort_vmath_kernels *math;
    const ort_tensor *x;
    ort_tensor *y;
    int64_t channels, inner, blocks;
} lrn_job;

/* y = x / base^beta in place of base; the usual exponent needs no pow. */
static void lrn_divide(const lrn_job *job, const float *x, float *base, float *y, size_t n)
{
    float root[ORT_WIDEN_BLOCK], beta = job->state->beta;
    if (beta == 0.75f) {
        job->math->unary[ORT_UNARY_SQRT](base, base, n, 0, 0);
        job->math->unary[ORT_UNARY_SQRT](base, root, n, 0, 0);
        job->math->binary[ORT_BINARY_MUL](base, root, base, n, ORT_FORM_VV);
    } else {
        job->math->binary[ORT_BINARY_POW](base, &beta, base, n, ORT_FORM_VS);
    }
    job->math->binary[ORT_BINARY_DIV](x, base, y, n, ORT_FORM_VV);
}

static void lrn_task(void *arg, size_t task, int thread)
{
    const lrn_job *job = arg;
    const lrn_state *s = job->state;
    int64_t column = (int64_t)task % job->blocks * ORT_WIDEN_BLOCK;
    int64_t batch = (int64_t)task / job->blocks * job->channels * job->inner;
    int64_t n = ort_min_i64(ORT_WIDEN_BLOCK, job->inner - column);
    int64_t before = (s->size - 1) / 2, after = s->size - 1 - before;
    float sum[ORT_WIDEN_BLOCK], row[ORT_WIDEN_BLOCK];
    ort_pace pace = {0};
    for (int64_t c = 0; c < job->channels; c++) {
        int64_t first = ort_max_i64(0, c - before), last = ort_min_i64(job->channels - 1,
                                                                       c + after);
        if (ort_pace_over(&pace, (uint64_t)(n * (last - first + 2))))
            return;
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (int64_t k = first; k <= last; k++) {
            ort_tensor_to_f32(job->x, batch + k * job->inner + column, n, row);
            job->math->accumulate[ORT_ACCUM_SUM_SQUARE](sum, row, 1, 0, (size_t)n);
        }
        job->math->unary[ORT_UNARY_LINEAR](sum, sum, (size_t)n, s->alpha / (float)s->size, s->bias);
        ort_tensor_to_f32(job->x, batch + c * job->inner + column, n, row);
        lrn_divide(job, row, sum, row, (size_t)n);
        ort_tensor_from_f32(row, job->y, batch + c * job->inner + column, n);
    }
}

/* Doubles keep their precision: task as above. */
static void lrn_task_f64(void *arg, size_t task, int thread)
{
    const lrn_job *job = arg;
    const lrn_state *s = job->state;
    int64_t column = (int64_t)task % job->blocks * ORT_WIDEN_BLOCK;
    int64_t batch = (int64_t)task / job->blocks * job->channels * job->inner;
    int64_t end = ort_min_i64(column + ORT_WIDEN_BLOCK, job->inner);
    int64_t before = (s->size - 1) / 2, after = s->size - 1 - before;
    double share = (double)s->alpha / (double)s->size;
    ort_pace pace = {0};
    for (int64_t c = 0; c < job->channels; c++) {
        int64_t first = ort_max_i64(0, c - before);
        int64_t last = ort_min_i64(job->channels - 1, c + after);
        if (ort_pace_over(&pace, (uint64_t)((end - column) * (last - first + 2))))
            return;
        const double *x = (const double *)job->x->data + batch;
        double *y = (double *)job->y->data + batch + c * job->inner;
        for (int64_t i = column; i < end; i++) {
            double sum = 0;
            for (int64_t k = first; k <= last; k++)
                sum += x[k * job->inner + i] * x[k * job->inner + i];
            y[i] = x[c * job->inner + i] / pow((double)s->bias + share * sum, (double)s->beta);
        }
    }
}

static ort_status lrn_run(ort_call *call, ort_error *err)
{
    lrn_job job = {call->state, &call->k->math, ort_call_in(call, 0), ort_call_out(call, 0), 0, 0,
                   0};
    const ort_shape *shape = &job.x->shape;
    if (shape->rank < 2)
        return ort_call_fail(call, err, "the input needs a channel axis, has rank %d", shape->rank);
    job.channels = shape->dim[1];
    job.inner = ort_shape_count_range(shape, 2, shape->rank);
    job.blocks = (job.inner + ORT_WIDEN_BLOCK - 1) / ORT_WIDEN_BLOCK;
    ort_call_parallel(call, (size_t)(shape->dim[0] * job.blocks),
                      job.x->dtype == ORT_DTYPE_DOUBLE ? lrn_task_f64 : lrn_task, &job);
    return ORT_OK;
}

static const ort_op_impl lrn_impl = {
    .state = sizeof(lrn_state), .bind = lrn_bind,
    .rule = "same", .run = lrn_run, .cost = channel_cost,
};

#define LRN_ATTRS "alpha:f=9.99999975e-05 beta:f=0.75 bias:f=1 size:i!"
#define EPSILON "epsilon:f=9.99999975e-06"
#define BATCH_OLD "X:T,scale:T,B:T,mean:T,var:T -> Y:T,mean?:T,var?:T,saved_mean?:T,saved_var?:T"

const ort_op ort_ops_channel_norm[] = {
    {ONNX, "BatchNormalization", 6, BATCH_OLD, "T:F",
     EPSILON " is_test:i=0 momentum:f=0.899999976 spatial:i=1", ORT_TRAIT_INPLACE, &batch_impl},
    {ONNX, "BatchNormalization", 7, BATCH_OLD, "T:F",
     EPSILON " momentum:f=0.899999976 spatial:i=1", ORT_TRAIT_INPLACE, &batch_impl},
    {ONNX, "BatchNormalization", 9, BATCH_OLD, "T:F", EPSILON " momentum:f=0.899999976",
     ORT_TRAIT_INPLACE, &batch_impl},
    {ONNX, "BatchNormalization", 14,
     "X:T,scale:T,B:T,input_mean:U,input_var:U -> Y:T,running_mean?:U,running_var?:U",
     "T:F,bf16 U:F,bf16", EPSILON " momentum:f=0.899999976 training_mode:i=0",
     ORT_TRAIT_INPLACE, &batch_impl},
    {ONNX, "BatchNormalization", 15,
     "X:T,scale:T1,B:T1,input_mean:T2,input_var:T2 -> Y:T,running_mean?:T2,running_var?:T2",
     "T:F,bf16 T1:F,bf16 T2:F,bf16", EPSILON " momentum:f=0.899999976 training_mode:i=0",
     ORT_TRAIT_INPLACE, &batch_impl},
    {ONNX, "InstanceNormalization", 6, "input:T,scale:T,B:T -> output:T", "T:F", EPSILON,
     ORT_TRAIT_INPLACE, &group_impl, .history = "22:T+bf16", .variant = INSTANCE},
    {ONNX, "GroupNormalization", 18, "X:T,scale:T,bias:T -> Y:T", "T:F,bf16",
     EPSILON " num_groups:i!", ORT_TRAIT_INPLACE | ORT_TRAIT_EXTENSION, &group_impl,
     .variant = GROUP},
    {ONNX, "GroupNormalization", 21, "X:T,scale:T,bias:T -> Y:T", "T:F,bf16",
     EPSILON " num_groups:i! stash_type:i=1", ORT_TRAIT_INPLACE, &group_impl, .variant = GROUP},
    {ONNX, "LRN", 1, "X:T -> Y:T", "T:F", LRN_ATTRS, 0, &lrn_impl, .history = "13:T+bf16"},
    {ONNX, "ImageScaler", 1, "input:T -> output:T", "T:F", "bias:fs scale:f=1",
     ORT_TRAIT_INPLACE | ORT_TRAIT_EXTENSION | ORT_TRAIT_TRIAL, &scaler_impl, .variant = SCALER},
    {0},
};
