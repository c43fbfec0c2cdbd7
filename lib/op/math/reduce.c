/* reduce.c - ReduceSum, ReduceMean and their kin.
 *
 * Neighbouring axes of one kind merge, so that a reduction is one of two loops: over contiguous
 * runs (the inner axis is reduced) or over rows added into a row (the inner axis is kept). Each
 * output is computed by one task in a fixed order; a long run for few outputs is cut into pieces
 * of fixed size whose partial sums are added in order.
 */
#include "op/math/reduce.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/move.h"
#include "op/shared/unary_apply.h"

#define REDUCE_GRAIN 65536   /* elements read by a task */
#define PIECE 65536          /* elements of a piece of a long run */
#define COLUMN_BLOCK 1024    /* outputs that are accumulated together */
#define ROW_BLOCK 512        /* rows summed before they join the total, for small rounding errors */

typedef struct reduce_state {
    ort_reduction op;
    ort_dtype dtype;
    bool noop;
    ort_ints axes; /* attribute */
} reduce_state;

static const ort_bind reduce_bind[] = {
    ORT_BIND_AS(reduce_state, noop, "noop_with_empty_axes", ORT_MAYBE),
    ORT_BIND(reduce_state, axes, ORT_MAYBE), {0}};

static bool is_half(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT16 || dtype == ORT_DTYPE_BFLOAT16;
}

/* Marks the reduced axes; no axes means all, or none with noop. False: an axis is out of range. */
static bool mark_axes(const int64_t *axes, size_t count, bool noop, int rank, bool *reduced,
                      int64_t *wrong)
{
    for (int d = 0; d < rank; d++)
        reduced[d] = count == 0 && !noop;
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank) {
            *wrong = axes[i];
            return false;
        }
        reduced[axis] = true;
    }
    return true;
}

/* ---- infer */

/* Reductions of shape vectors: the number of elements of a tensor is ReduceProd of its Shape. */
static void reduce_symbolic(ort_infer *x, ort_reduction op)
{
    ort_dim in[ORT_SYMBOLIC_MAX], acc;
    int n = ort_infer_elements(x, 0, in);
    if (n < 1 || !ort_infer_in_ranked(x, 0) || x->in[0]->type.rank != 1 ||
        x->out[0].type.rank > 1 || x->out[0].type.rank < 0 ||
        (op != ORT_REDUCE_SUM && op != ORT_REDUCE_PROD && op != ORT_REDUCE_MAX &&
         op != ORT_REDUCE_MIN))
        return; /* of one element, too: its square or absolute value is another */
    acc = in[0];
    for (int i = 1; i < n; i++)
        switch (op) {
        case ORT_REDUCE_SUM: acc = ort_dim_add(x->dims, acc, in[i]); break;
        case ORT_REDUCE_PROD: acc = ort_dim_mul(x->dims, acc, in[i]); break;
        case ORT_REDUCE_MAX: acc = ort_dim_max(x->dims, acc, in[i]); break;
        case ORT_REDUCE_MIN: acc = ort_dim_min(x->dims, acc, in[i]); break;
        default: return;
        }
    if (ort_infer_any_known(&acc, 1))
        ort_infer_set_symbolic(x, 0, &acc, 1);
}

static ort_status unknown_axes(ort_infer *x, ort_dtype dtype, bool keep)
{
    ort_dim dims[ORT_MAX_RANK];
    int count = ort_infer_int_count(x, 1), rank = x->in[0]->type.rank;
    if (!keep && (count <= 0 || count > rank))
        return ORT_OK;
    for (int d = 0; d < ORT_MAX_RANK; d++)
        dims[d] = ort_dim_unknown();
    ort_infer_set_shape(x, 0, keep ? rank : rank - count, dims);
    return ORT_OK;
}

static ort_status reduce_infer(ort_infer *x, ort_error *err)
{
    int64_t from_input[ORT_MAX_RANK], wrong = 0;
    bool reduced[ORT_MAX_RANK], keep = ort_node_attr_int(x->node, "keepdims") == 1;
    bool noop = ort_node_attr_int(x->node, "noop_with_empty_axes") != 0;
    ort_dtype dtype = ort_infer_dtype(x, 0);
    size_t count = 0;
    const int64_t *axes = ort_node_ints(x->node, "axes", &count);
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *in = &x->in[0]->type;
    if (ort_infer_in(x, 1)) {
        int n = 0;
        if (!ort_infer_ints(x, 1, from_input, ORT_MAX_RANK, &n))
            return unknown_axes(x, dtype, keep);
        axes = from_input;
        count = (size_t)n;
    }
    if (!mark_axes(axes, count, noop, in->rank, reduced, &wrong))
        return ort_infer_fail(x, err, "axis %lld is outside [-%d, %d)", (long long)wrong, in->rank,
                              in->rank);
    ort_dim dims[ORT_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < in->rank; d++)
        if (!reduced[d])
            dims[rank++] = in->dim[d];
        else if (keep)
            dims[rank++] = ort_dim_of(1);
    ort_infer_set_shape(x, 0, rank, dims);
    if (in->rank == 1 && reduced[0])
        reduce_symbolic(x, (ort_reduction)x->op->variant);
    return ORT_OK;
}

/* ---- the plan */

static ort_status plan_for(const reduce_state *state, const ort_tensor *x, const ort_tensor *axes,
                           ort_reduce_plan *plan, ort_error *err)
{
    int64_t list[ORT_MAX_RANK], wrong = 0;
    const int64_t *used = state->axes.ptr;
    size_t count = state->axes.count;
    bool reduced[ORT_MAX_RANK];
    if (axes) {
        int64_t n = ort_tensor_count(axes);
        if (n > ORT_MAX_RANK)
            return ort_error_set(err, ORT_ERROR_MODEL, "%lld axes are given, at most %d make sense",
                                 (long long)n, ORT_MAX_RANK);
        for (int64_t i = 0; i < n; i++)
            list[i] = ort_tensor_get_i64(axes, i);
        used = list;
        count = (size_t)n;
    }
    if (!mark_axes(used, count, state->noop, x->shape.rank, reduced, &wrong))
        return ort_error_set(err, ORT_ERROR_MODEL, "axis %lld is outside [-%d, %d)",
                             (long long)wrong, x->shape.rank, x->shape.rank);
    ort_reduce_plan_make(plan, &x->shape, reduced);
    return ORT_OK;
}

static ort_status reduce_prepare(ort_prep *p, ort_error *err)
{
    reduce_state *state = p->state;
    state->op = (ort_reduction)p->op->variant;
    state->dtype = ort_prep_dtype(p, 0);
    return ORT_OK;
}

static ort_status reduce_shape(ort_shaping *s, ort_error *err)
{
    const reduce_state *state = s->state;
    const ort_tensor *axes = s->in_count > 1 ? s->in[1] : NULL;
    if (axes && !axes->data && ort_tensor_count(axes) > 0)
        return ORT_OK; /* the axes are computed by the model: run makes the plan */
    ort_reduce_plan *plan = ort_arena_alloc(s->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    ORT_TRY(plan_for(state, s->in[0], axes, plan, err));
    const ort_axes *r = &plan->reduced;
    if (state->dtype == ORT_DTYPE_FLOAT && plan->inner_reduced && plan->kept.total > 0 &&
        plan->kept.total < 8 && r->count == 1 && r->total >= 2 * PIECE &&
        state->op != ORT_REDUCE_LOG_SUM_EXP) {
        plan->pieces = (r->total + PIECE - 1) / PIECE;
        s->workspace_bytes = (size_t)(plan->pieces * plan->kept.total) * sizeof(double);
    }
    s->plan_state = plan;
    return ORT_OK;
}

/* ---- run: f32 and 16-bit floats */

typedef struct reduce_job {
    const reduce_state *state;
    const ort_reduce_plan *plan;
    const ort_vmath_kernels *math;
    const ort_tensor *x;
    ort_tensor *y;
    double *partial;
    int64_t per_task; /* columns of a task */
} reduce_job;

static double combine(ort_accum kind, double a, double b)
{
    switch (kind) {
    case ORT_ACCUM_MAX: return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b;
    case ORT_ACCUM_MIN: return isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b;
    case ORT_ACCUM_PROD: return a * b;
    default: return a + b;
    }
}

static double identity(ort_accum kind)
{
    switch (kind) {
    case ORT_ACCUM_MAX: return -INFINITY;
    case ORT_ACCUM_MIN: return INFINITY;
    case ORT_ACCUM_PROD: return 1;
    default: return 0;
    }
}

static float finish(ort_reduction op, double value, int64_t count)
{
    switch (op) {
    case ORT_REDUCE_MEAN: return (float)(value / (double)count);
    case ORT_REDUCE_L2: return (float)sqrt(value);
    case ORT_REDUCE_LOG_SUM: return (float)log(value);
    default: return (float)value;
    }
}

static void put(const reduce_job *job, int64_t index, float value)
{
    if (job->y->dtype == ORT_DTYPE_FLOAT)
        ((float *)job->y->data)[index] = value;
    else
        ort_narrow(job->math, job->y->dtype, &value, (uint16_t *)job->y->data + index, 1);
}

/* Runs too short for the kernels' set-up. */
#define SHORT_RUN 12
static double short_run(ort_accum kind, const float *x, int64_t n)
{
    double total = (double)x[0];
    switch (kind) {
    case ORT_ACCUM_SUM:
        for (int64_t i = 1; i < n; i++)
            total += (double)x[i];
        break;
    case ORT_ACCUM_SUM_ABS:
        total = fabs(total);
        for (int64_t i = 1; i < n; i++)
            total += fabs((double)x[i]);
        break;
    case ORT_ACCUM_SUM_SQUARE:
        total *= total;
        for (int64_t i = 1; i < n; i++)
            total += (double)x[i] * (double)x[i];
        break;
    default:
        for (int64_t i = 1; i < n; i++)
            total = combine(kind, total, (double)x[i]);
    }
    return total;
}

static double run_of(const reduce_job *job, ort_accum kind, int64_t offset, int64_t n)
{
    if (job->x->dtype == ORT_DTYPE_FLOAT && n <= SHORT_RUN)
        return short_run(kind, (const float *)job->x->data + offset, n);
    if (job->x->dtype == ORT_DTYPE_FLOAT)
        return job->math->reduce[kind]((const float *)job->x->data + offset, (size_t)n);
    float block[ORT_WIDEN_BLOCK];
    double total = identity(kind);
    for (int64_t i = 0; i < n; i += ORT_WIDEN_BLOCK) {
        size_t count = (size_t)ort_min_i64(ORT_WIDEN_BLOCK, n - i);
        ort_widen(job->math, job->x->dtype, (const uint16_t *)job->x->data + offset + i, block,
                  count);
        total = combine(kind, total, job->math->reduce[kind](block, count));
    }
    return total;
}

static void runs_task(void *arg, int64_t first, int64_t end, int thread)
{
    const reduce_job *job = arg;
    const ort_reduce_plan *plan = job->plan;
    const ort_axes *r = &plan->reduced;
    ort_accum kind = ort_reduce_accum(job->state->op);
    int64_t run = r->dim[r->count - 1], outer = r->total / run;
    if (job->x->dtype == ORT_DTYPE_FLOAT && run <= SHORT_RUN && outer == 1 &&
        plan->kept.count == 1) {
        const float *x = job->x->data;
        for (int64_t i = first; i < end; i++)
            put(job, i, finish(job->state->op, short_run(kind, x + i * run, run), run));
        return;
    }
    for (int64_t i = first; i < end; i++) {
        int64_t base = ort_axes_offset(&plan->kept, plan->kept.count, i);
        double total = run_of(job, kind, base, run);
        if (outer > 1)
            for (int64_t k = 1; k < outer; k++)
                total = combine(kind, total,
                                run_of(job, kind, base + ort_axes_offset(r, r->count - 1, k), run));
        put(job, i, finish(job->state->op, total, r->total));
    }
}

static void pieces_task(void *arg, size_t task, int thread)
{
    const reduce_job *job = arg;
    const ort_reduce_plan *plan = job->plan;
    int64_t piece = (int64_t)task % plan->pieces, output = (int64_t)task / plan->pieces;
    int64_t base = ort_axes_offset(&plan->kept, plan->kept.count, output);
    int64_t n = ort_min_i64(PIECE, plan->reduced.total - piece * PIECE);
    job->partial[task] = run_of(job, ort_reduce_accum(job->state->op), base + piece * PIECE, n);
}

static void run_pieces(ort_call *call, reduce_job *job)
{
    const ort_reduce_plan *plan = job->plan;
    ort_accum kind = ort_reduce_accum(job->state->op);
    ort_call_parallel(call, (size_t)(plan->pieces * plan->kept.total), pieces_task, job);
    for (int64_t i = 0; i < plan->kept.total; i++) {
        double total = identity(kind);
        for (int64_t k = 0; k < plan->pieces; k++)
            total = combine(kind, total, job->partial[i * plan->pieces + k]);
        put(job, i, finish(job->state->op, total, plan->reduced.total));
    }
}

/* `rows` rows `stride` apart into acc[0..n). */
static void add_rows(const reduce_job *job, ort_accum kind, float *acc, int64_t offset,
                     int64_t rows,
                     int64_t stride, size_t n)
{
    float block[COLUMN_BLOCK];
    if (job->x->dtype != ORT_DTYPE_FLOAT) {
        for (int64_t r = 0; r < rows; r++) {
            const uint16_t *x = (const uint16_t *)job->x->data + offset + r * stride;
            ort_widen(job->math, job->x->dtype, x, block, n);
            job->math->accumulate[kind](acc, block, 1, 0, n);
        }
        return;
    }
    const float *x = (const float *)job->x->data + offset;
    if (rows <= ROW_BLOCK || kind >= ORT_ACCUM_MAX) {
        job->math->accumulate[kind](acc, x, (size_t)rows, (size_t)stride, n);
        return;
    }
    for (int64_t r = 0; r < rows; r += ROW_BLOCK) {
        memset(block, 0, n * sizeof *block);
        job->math->accumulate[kind](block, x + r * stride, (size_t)ort_min_i64(ROW_BLOCK, rows - r),
                                    (size_t)stride, n);
        job->math->accumulate[ORT_ACCUM_SUM](acc, block, 1, 0, n);
    }
}

static void rows_task(void *arg, size_t task, int thread)
{
    const reduce_job *job = arg;
    const ort_axes *kept = &job->plan->kept, *r = &job->plan->reduced;
    ort_accum kind = ort_reduce_accum(job->state->op);
    int64_t width = kept->count > 0 ? kept->dim[kept->count - 1] : 1;
    int64_t blocks = (width + job->per_task - 1) / job->per_task;
    int64_t outer = (int64_t)task / blocks, column = (int64_t)task % blocks * job->per_task;
    size_t n = (size_t)ort_min_i64(job->per_task, width - column);
    int64_t base = ort_axes_offset(kept, kept->count - 1, outer) + column;
    int64_t rows = r->count > 0 ? r->dim[r->count - 1] : 1;
    int64_t stride = r->count > 0 ? r->stride[r->count - 1] : 0;
    float acc[COLUMN_BLOCK];
    for (size_t j = 0; j < n; j++)
        acc[j] = (float)identity(kind);
    for (int64_t k = 0; k < r->total / rows; k++)
        add_rows(job, kind, acc, base + ort_axes_offset(r, r->count - 1, k), rows, stride, n);
    for (size_t j = 0; j < n; j++)
        acc[j] = finish(job->state->op, (double)acc[j], r->total);
    if (job->y->dtype == ORT_DTYPE_FLOAT)
        memcpy((float *)job->y->data + outer * width + column, acc, n * sizeof *acc);
    else
        ort_narrow(job->math, job->y->dtype, acc,
                   (uint16_t *)job->y->data + outer * width + column, n);
}

/* log(sum(exp)) of contiguous f32 runs. */
static void log_sum_exp_task(void *arg, int64_t first, int64_t end, int thread)
{
    const reduce_job *job = arg;
    int64_t n = job->plan->reduced.total;
    float block[ORT_WIDEN_BLOCK];
    for (int64_t i = first; i < end; i++) {
        const float *x = (const float *)job->x->data +
                         ort_axes_offset(&job->plan->kept, job->plan->kept.count, i);
        double max = job->math->reduce[ORT_ACCUM_MAX](x, (size_t)n), sum = 0;
        for (int64_t k = 0; k < n && isfinite(max); k += ORT_WIDEN_BLOCK)
            sum += (double)job->math->exp_sum(x + k, block,
                                              (size_t)ort_min_i64(ORT_WIDEN_BLOCK, n - k),
                                              (float)max);
        put(job, i, (float)(isfinite(max) ? max + log(sum) : max));
    }
}

static void typed_task(void *arg, int64_t first, int64_t end, int thread)
{
    const reduce_job *job = arg;
    ort_reduce_typed(job->plan, job->state->op, job->x, job->y, first, end - first);
}

static void run_rows(ort_call *call, reduce_job *job)
{
    const ort_axes *kept = &job->plan->kept;
    int64_t width = kept->count > 0 ? kept->dim[kept->count - 1] : 1;
    int64_t columns = REDUCE_GRAIN / job->plan->reduced.total / 64 * 64;
    job->per_task = ort_max_i64(64, ort_min_i64(COLUMN_BLOCK, columns));
    int64_t blocks = (width + job->per_task - 1) / job->per_task;
    ort_call_parallel(call, (size_t)(kept->total / width * blocks), rows_task, job);
}

static ort_status reduce_run(ort_call *call, ort_error *err)
{
    const reduce_state *state = call->state;
    ort_reduce_plan own;
    reduce_job job = {state, call->plan_state, &call->k->math, ort_call_in(call, 0),
                      ort_call_out(call, 0), call->workspace, 0};
    if (!job.plan) {
        ORT_TRY(plan_for(state, job.x, ort_call_in(call, 1), &own, err));
        job.plan = &own;
    }
    const ort_axes *kept = &job.plan->kept, *r = &job.plan->reduced;
    bool floats = state->dtype == ORT_DTYPE_FLOAT || is_half(state->dtype);
    bool lse = state->op == ORT_REDUCE_LOG_SUM_EXP;
    if (kept->total == 0)
        return ORT_OK;
    ort_range_fn *task = typed_task;
    if (floats && r->total == 0 && !lse) {
        double value = identity(ort_reduce_accum(state->op));
        for (int64_t i = 0; i < kept->total; i++)
            put(&job, i, finish(state->op, value, 0));
        return ORT_OK;
    }
    if (floats && !lse && !job.plan->inner_reduced) {
        run_rows(call, &job);
        return ORT_OK;
    }
    if (job.plan->pieces > 0) {
        run_pieces(call, &job);
        return ORT_OK;
    }
    if (floats && !lse)
        task = runs_task;
    else if (lse && state->dtype == ORT_DTYPE_FLOAT && r->count == 1 && job.plan->inner_reduced &&
             r->total > 0)
        task = log_sum_exp_task;
    ort_call_range(call, kept->total, ort_max_i64(1, REDUCE_GRAIN / ort_max_i64(1, r->total)), task,
                   &job);
    return ORT_OK;
}

static const ort_op_impl reduce_impl = {
    .state = sizeof(reduce_state), .bind = reduce_bind,
    .infer = reduce_infer, .prepare = reduce_prepare, .shape = reduce_shape, .run = reduce_run,
    .cost = ort_reduction_cost,
};

#define ATTRS "axes:is keepdims:i=1"
#define NOOP "keepdims:i=1 noop_with_empty_axes:i=0"
#define BASIC "F,u32,u64,i32,i64"
#define OLD(name, kind, later)                                                                     \
    {ONNX, name, 1, "data:T -> reduced:T", "T:" BASIC, ATTRS, 0, &reduce_impl, .history = later,   \
     .variant = ORT_REDUCE_##kind}
#define NEW(name, kind, since, types, later)                                                       \
    {ONNX, name, since, "data:T,axes?:i64 -> reduced:T", "T:" types, NOOP, 0, &reduce_impl,        \
     .history = later, .variant = ORT_REDUCE_##kind}
#define FAMILY(name, kind)                                                                         \
    OLD(name, kind, "11 13:T+bf16"), NEW(name, kind, 18, BASIC ",bf16", NULL)
#define EXTREME(name, kind)                                                                        \
    OLD(name, kind, "11 12:T+u8,i8 13:T+bf16"),                                                    \
        NEW(name, kind, 18, BASIC ",bf16,u8,i8", "20:T+bool")

const ort_op ort_ops_reduce[] = {
    OLD("ReduceSum", SUM, "11"),
    NEW("ReduceSum", SUM, 13, BASIC ",bf16", NULL),
    FAMILY("ReduceMean", MEAN),
    EXTREME("ReduceMax", MAX),
    EXTREME("ReduceMin", MIN),
    FAMILY("ReduceProd", PROD),
    FAMILY("ReduceL1", L1),
    FAMILY("ReduceL2", L2),
    FAMILY("ReduceLogSum", LOG_SUM),
    NEW("ReduceLogSum", LOG_SUM, 28, "F,bf16", NULL),
    FAMILY("ReduceLogSumExp", LOG_SUM_EXP),
    NEW("ReduceLogSumExp", LOG_SUM_EXP, 28, "F,bf16", NULL),
    FAMILY("ReduceSumSquare", SUM_SQUARE),
    {0},
};
