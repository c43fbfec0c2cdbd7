/* layer_norm.c - normalization of rows: LayerNormalization, RMSNormalization, and the Simplified
 * and Skip forms of com.microsoft.
 *
 * A row is everything from `axis` on. f32 rows go straight through the kernel; f64 rows through
 * plain loops; every other type through f32 scratch, rounded once. Scale and bias are usually one
 * row; what merely broadcasts is expanded into scratch first.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/binary_apply.h"
#include "op/shared/move.h"
#include "op/shared/unary_apply.h"

typedef enum norm_kind { LAYER, RMS, SKIP, SKIP_RMS } norm_kind;

typedef struct norm_slots { /* inputs and outputs; -1: the operator has none */
    int scale, shift, bias, mean, inv, sum;
} norm_slots;

static const norm_slots slots[] = {
    [LAYER] = {1, 2, -1, 1, 2, -1},
    [RMS] = {1, -1, -1, -1, 1, -1},
    [SKIP] = {2, 3, 4, 1, 2, 3},
    [SKIP_RMS] = {2, -1, 3, 1, 2, 3},
};

typedef struct norm_state {
    bool rms, skip;
    int64_t axis;
    float epsilon;
    const norm_slots *at;
} norm_state;

static const ort_bind norm_bind[] = {
    ORT_BIND(norm_state, axis, ORT_ELSE(-1)), ORT_BIND(norm_state, epsilon), {0}};

typedef struct norm_plan {
    int axis;
    int64_t rows, length, rows_per_task;
    bool expand[2]; /* scale, shift: not f32, or not one value per element of a row */
} norm_plan;

typedef struct norm_job {
    const norm_state *state;
    const norm_plan *plan;
    const ort_call *call;
    const ort_vmath_kernels *math;
    const ort_tensor *x, *scale, *shift, *skip, *bias;
    ort_tensor *y, *mean, *inv, *sum;
} norm_job;

#define TASK_GRAIN 16384

/* Row `row` of an operand that broadcasts to x, as f32. */
static void expand_row(const norm_job *job, const ort_tensor *t, int64_t row, float *out)
{
    int64_t stride[ORT_MAX_RANK], base = 0, rest = row, length = job->plan->length;
    const ort_shape *shape = &job->x->shape;
    if (ort_tensor_count(t) == length) {
        ort_tensor_to_f32(t, 0, length, out);
        return;
    }
    ort_shape_broadcast_strides(&t->shape, shape, stride);
    for (int d = job->plan->axis - 1; d >= 0; d--) {
        base += rest % shape->dim[d] * stride[d];
        rest /= shape->dim[d];
    }
    for (int64_t i = 0; i < length; i++) {
        int64_t at = base, index = i;
        for (int d = shape->rank - 1; d >= job->plan->axis; d--) {
            at += index % shape->dim[d] * stride[d];
            index /= shape->dim[d];
        }
        out[i] = (float)ort_tensor_get_f64(t, at);
    }
}

static const float *operand_row(const norm_job *job, const ort_tensor *t, bool expand, int64_t row,
                                float *scratch)
{
    if (!t)
        return NULL;
    if (!expand)
        return t->data;
    expand_row(job, t, row, scratch);
    return scratch;
}

/* x + skip + bias, into the sum output when it is wanted. Skip rows repeat over the batch. */
static const float *sum_row(const norm_job *job, int64_t row, float *out, float *scratch)
{
    const norm_plan *plan = job->plan;
    int64_t n = plan->length, skip_rows = ort_tensor_count(job->skip) / n;
    ort_binary_fn *add = job->math->binary[ORT_BINARY_ADD];
    if (job->sum && job->sum->dtype == ORT_DTYPE_FLOAT)
        out = (float *)job->sum->data + row * n;
    if (job->x->dtype == ORT_DTYPE_FLOAT) {
        add((const float *)job->x->data + row * n,
            (const float *)job->skip->data + row % skip_rows * n, out, (size_t)n, ORT_FORM_VV);
    } else {
        ort_tensor_to_f32(job->x, row * n, n, out);
        ort_tensor_to_f32(job->skip, row % skip_rows * n, n, scratch);
        add(out, scratch, out, (size_t)n, ORT_FORM_VV);
    }
    if (job->bias) {
        ort_tensor_to_f32(job->bias, 0, n, scratch);
        add(out, scratch, out, (size_t)n, ORT_FORM_VV);
    }
    if (job->sum && job->sum->dtype != ORT_DTYPE_FLOAT)
        ort_tensor_from_f32(out, job->sum, row * n, n);
    return out;
}

static void put(ort_tensor *t, int64_t index, double value)
{
    if (t)
        ort_tensor_set_f64(t, index, value);
}

/* scratch: three rows of f32 */
static void norm_row(const norm_job *job, int64_t row, float *scratch)
{
    const norm_plan *plan = job->plan;
    const norm_state *s = job->state;
    int64_t n = plan->length;
    const float *x = (const float *)job->x->data + row * n;
    float *y = (float *)job->y->data + row * n, mean = 0, inv = 0;
    if (job->skip) {
        x = sum_row(job, row, scratch, scratch + n);
    } else if (job->x->dtype != ORT_DTYPE_FLOAT) {
        ort_tensor_to_f32(job->x, row * n, n, scratch);
        x = scratch;
    }
    const float *scale = operand_row(job, job->scale, plan->expand[0], row, scratch + n);
    const float *shift = operand_row(job, job->shift, plan->expand[1], row, scratch + 2 * n);
    if (job->y->dtype != ORT_DTYPE_FLOAT)
        y = scratch;
    if (s->rms)
        job->math->rms_norm(x, scale, y, (size_t)n, s->epsilon, &inv);
    else
        job->math->layer_norm(x, scale, shift, y, (size_t)n, s->epsilon, &mean, &inv);
    if (job->y->dtype != ORT_DTYPE_FLOAT)
        ort_tensor_from_f32(y, job->y, row * n, n);
    put(job->mean, row, (double)mean);
    put(job->inv, row, (double)inv);
}

static void norm_row_f64(const norm_job *job, int64_t row, float *scratch)
{
    int64_t n = job->plan->length;
    const double *x = (const double *)job->x->data + row * n;
    double *y = (double *)job->y->data + row * n, mean = 0, square = 0;
    bool one_row = ort_tensor_count(job->scale) == n && job->scale->dtype == ORT_DTYPE_DOUBLE &&
                   (!job->shift || ort_tensor_count(job->shift) == n);
    for (int64_t i = 0; i < n && !job->state->rms; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean);
    double inv = 1.0 / sqrt(square / (double)n + (double)job->state->epsilon);
    const float *scale = one_row ? NULL : operand_row(job, job->scale, true, row, scratch + n);
    const float *shift = one_row ? NULL : operand_row(job, job->shift, true, row, scratch + 2 * n);
    for (int64_t i = 0; i < n; i++) {
        double a = one_row ? ((const double *)job->scale->data)[i] : (double)scale[i];
        double b = !job->shift ? 0 : one_row ? ((const double *)job->shift->data)[i]
                                             : (double)shift[i];
        y[i] = (x[i] - mean) * inv * a + b;
    }
    put(job->mean, row, mean);
    put(job->inv, row, inv);
}

static void norm_task(void *arg, int64_t first, int64_t end, int thread)
{
    const norm_job *job = arg;
    bool f64 = job->x->dtype == ORT_DTYPE_DOUBLE && job->y->dtype == ORT_DTYPE_DOUBLE && !job->skip;
    for (int64_t row = first; row < end; row++)
        (f64 ? norm_row_f64 : norm_row)(job, row, ort_call_scratch(job->call, thread));
}

/* ---- phases */

static ort_status norm_infer(ort_infer *x, ort_error *err)
{
    bool skip = slots[x->op->variant].sum >= 0;
    ort_dtype dtype = ort_infer_dtype(x, 0), scale = ort_infer_dtype(x, 1);
    if (x->op->variant == RMS && scale != ORT_DTYPE_UNDEFINED) /* Y has the type of the scale */
        x->out[0].type.dtype = scale;
    if (!ort_infer_in_ranked(x, 0)) {
        for (int i = 1; i < x->out_count; i++)
            ort_infer_set_dtype(x, i, i == 3 ? dtype : ORT_DTYPE_FLOAT);
        return ORT_OK;
    }
    const ort_type *in = &x->in[0]->type;
    ort_dim dims[ORT_MAX_RANK];
    int axis = in->rank - 1;
    if (!skip && in->rank > 0)
        ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), in->rank, &axis, err));
    for (int d = 0; d < in->rank; d++)
        dims[d] = d < axis ? in->dim[d] : ort_dim_of(1);
    int64_t stash = ort_node_attr_int(x->node, "stash_type");
    ort_dtype statistics = stash == ORT_DTYPE_BFLOAT16 ? ORT_DTYPE_BFLOAT16 : ORT_DTYPE_FLOAT;
    for (int i = 1; i < x->out_count; i++)
        if (i == 3)
            x->out[3].type = *in;
        else
            ort_infer_set_type(x, i, statistics, in->rank, dims);
    return ORT_OK;
}

static ort_status norm_prepare(ort_prep *p, ort_error *err)
{
    norm_state *s = p->state;
    s->at = &slots[p->op->variant];
    s->skip = s->at->sum >= 0;
    s->rms = s->at->shift < 0;
    return ORT_OK;
}

static const ort_tensor *shaping_in(const ort_shaping *s, int index)
{
    return index >= 0 && index < s->in_count ? s->in[index] : NULL;
}

static ort_status check_operand(const ort_shape *x, const ort_tensor *t, const char *what,
                                ort_error *err)
{
    ort_shape both;
    char a[200], b[200];
    if (t && (!ort_shape_broadcast(x, &t->shape, &both) || !ort_shape_equal(&both, x)))
        return ort_error_set(err, ORT_ERROR_MODEL, "%s is %s, which doesn't broadcast to %s", what,
                             ort_shape_format(&t->shape, a, sizeof a),
                             ort_shape_format(x, b, sizeof b));
    return ORT_OK;
}

static ort_status norm_shape(ort_shaping *s, ort_error *err)
{
    const norm_state *state = s->state;
    const ort_tensor *x = s->in[0], *scale = shaping_in(s, state->at->scale);
    const ort_tensor *shift = shaping_in(s, state->at->shift);
    const ort_tensor *bias = shaping_in(s, state->at->bias);
    norm_plan *plan = ort_arena_alloc(s->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    int64_t axis = state->axis < 0 ? state->axis + x->shape.rank : state->axis;
    if (axis < 0 || axis >= x->shape.rank)
        return ort_error_set(err, ORT_ERROR_MODEL, "axis %lld is outside the %d axes of the input",
                             (long long)state->axis, x->shape.rank);
    plan->axis = (int)axis;
    plan->rows = ort_shape_count_range(&x->shape, 0, plan->axis);
    plan->length = ort_shape_count_range(&x->shape, plan->axis, x->shape.rank);
    plan->rows_per_task = ort_max_i64(1, TASK_GRAIN / ort_max_i64(1, plan->length));
    if (state->skip)
        ORT_TRY(ort_binary_check_types(x, s->in[1], err));
    if (shift && scale)
        ORT_TRY(ort_binary_check_types(scale, shift, err));
    ORT_TRY(check_operand(&x->shape, scale, "the scale", err));
    ORT_TRY(check_operand(&x->shape, shift, "the bias", err));
    if (bias && ort_tensor_count(bias) != plan->length)
        return ort_error_set(err, ORT_ERROR_MODEL, "the bias needs %lld elements",
                             (long long)plan->length);
    if (state->skip && plan->length > 0 &&
        (ort_tensor_count(s->in[1]) == 0 ||
         ort_tensor_count(x) % ort_max_i64(1, ort_tensor_count(s->in[1])) != 0 ||
         ort_tensor_count(s->in[1]) % plan->length != 0) && ort_tensor_count(x) > 0)
        return ort_error_set(err, ORT_ERROR_MODEL, "the skip input doesn't repeat over the input");
    plan->expand[0] = scale && (scale->dtype != ORT_DTYPE_FLOAT ||
                                ort_tensor_count(scale) != plan->length);
    plan->expand[1] = shift && (shift->dtype != ORT_DTYPE_FLOAT ||
                                ort_tensor_count(shift) != plan->length);
    s->thread_bytes = (size_t)plan->length * 3 * sizeof(float);
    s->plan_state = plan;
    return ORT_OK;
}

static const ort_tensor *call_in(const ort_call *call, int index)
{
    return index < 0 ? NULL : ort_call_in(call, index);
}
static ort_tensor *call_out(const ort_call *call, int index)
{
    return index < 0 ? NULL : ort_call_out(call, index);
}

static ort_status norm_run(ort_call *call, ort_error *err)
{
    const norm_state *s = call->state;
    norm_job job = {.state = s,
                    .plan = call->plan_state,
                    .call = call,
                    .math = &call->k->math,
                    .x = ort_call_in(call, 0),
                    .scale = call_in(call, s->at->scale),
                    .shift = call_in(call, s->at->shift),
                    .skip = s->skip ? ort_call_in(call, 1) : NULL,
                    .bias = call_in(call, s->at->bias),
                    .y = ort_call_out(call, 0),
                    .mean = call_out(call, s->at->mean),
                    .inv = call_out(call, s->at->inv),
                    .sum = call_out(call, s->at->sum)};
    if (ort_tensor_count(job.x) == 0)
        return ORT_OK;
    ort_call_range(call, job.plan->rows, job.plan->rows_per_task, norm_task, &job);
    return ORT_OK;
}

static void norm_cost(const ort_infer *x, ort_cost *cost)
{
    ort_elementwise_cost(x, cost);
    cost->flops *= 6;
}

static const ort_op_impl norm_impl = {
    .state = sizeof(norm_state), .bind = norm_bind, .rule = "same", .infer = norm_infer,
    .prepare = norm_prepare, .shape = norm_shape, .run = norm_run, .cost = norm_cost,
};

#define NORM_ATTRS "axis:i=-1 epsilon:f=9.99999975e-06 stash_type:i=1"
#define LAYER_NORMALIZATION(since, trait)                                                          \
    {ONNX, "LayerNormalization", since, "X:T,Scale:T,B?:T -> Y:T,Mean?:U,InvStdDev?:U",            \
     "T:F,bf16 U:f32,bf16", NORM_ATTRS, ORT_TRAIT_INPLACE | (trait), &norm_impl, .variant = LAYER}
#define SIMPLIFIED(domain, trait)                                                                  \
    {domain, "SimplifiedLayerNormalization", 1, "X:T,scale:V -> Y:V,inv_std_var?:U",               \
     "T:F,bf16 U:f32,f64 V:F,bf16", NORM_ATTRS, ORT_TRAIT_INPLACE | (trait), &norm_impl,           \
     .variant = RMS}

/* onnxruntime's optimizer writes LayerNormalization into files of any opset, and reads it there;
 * ONNX has it since 17. */
const ort_op ort_ops_layer_norm[] = {
    LAYER_NORMALIZATION(1, ORT_TRAIT_EXTENSION),
    LAYER_NORMALIZATION(17, 0),
    {ONNX, "RMSNormalization", 23, "X:T,scale:V -> Y:V", "T:F,bf16 V:F,bf16", NORM_ATTRS,
     ORT_TRAIT_INPLACE, &norm_impl, .variant = RMS},
    SIMPLIFIED(ONNX, ORT_TRAIT_EXTENSION),
    SIMPLIFIED(MS, 0),
    {MS, "SkipLayerNormalization", 1,
     "input:T,skip:T,gamma:T,beta?:T,bias?:T -> "
     "output:T,mean?:U,inv_std_var?:U,input_skip_bias_sum?:T",
     "T:f32,f16,bf16 U:f32", "epsilon:f=9.99999996e-13", ORT_TRAIT_INPLACE, &norm_impl,
     .variant = SKIP},
    {MS, "SkipSimplifiedLayerNormalization", 1,
     "input:T,skip:T,gamma:T,bias?:T -> output:T,mean?:U,inv_std_var?:U,input_skip_bias_sum?:T",
     "T:f32,f16,bf16 U:f32", "epsilon:f=9.99999996e-13", ORT_TRAIT_INPLACE, &norm_impl,
     .variant = SKIP_RMS},
    {0},
};
