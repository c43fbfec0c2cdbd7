/* axes_norm.c - normalizations over chosen axes: LpNormalization, MeanVarianceNormalization.
 *
 * The statistics of each kept index are formed in double; both operators are rare, so one strided loop
 * serves every type and axis.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/reduce.h"

typedef struct axes_state {
    bool lp;
    int64_t p, axis;
    size_t axes_count;
    const int64_t *axes;
} axes_state;

typedef struct axes_plan {
    ort_axes kept, reduced;
    int64_t per_task;
} axes_plan;

typedef struct axes_job {
    const axes_state *state;
    const axes_plan *plan;
    const ort_tensor *x;
    ort_tensor *y;
} axes_job;

static const int64_t default_axes[] = {0, 2, 3};

static ort_status axes_prepare(ort_prep *p, ort_error *err)
{
    axes_state *s = ort_prep_state(p, sizeof *s);
    if (!s)
        return ort_error_memory(err, sizeof *s);
    s->lp = p->op->name[0] == 'L';
    s->p = ort_node_int(p->node, "p", 2);
    s->axis = ort_node_int(p->node, "axis", -1);
    s->axes = ort_node_ints(p->node, "axes", &s->axes_count);
    if (!s->lp && !ort_node_has(p->node, "axes")) {
        s->axes = default_axes;
        s->axes_count = 3;
    }
    if (s->lp) {
        s->axes = &s->axis;
        s->axes_count = 1;
    }
    if (s->lp && s->p != 1 && s->p != 2)
        return ort_prep_fail(p, err, "attribute p is %lld, needs 1 or 2", (long long)s->p);
    return ORT_OK;
}

static ort_status axes_shape(ort_shaping *sh, ort_error *err)
{
    const axes_state *s = sh->state;
    const ort_shape *shape = &sh->in[0]->shape;
    axes_plan *plan = ort_arena_alloc(sh->arena, sizeof *plan);
    int64_t stride[ORT_MAX_RANK];
    bool reduced[ORT_MAX_RANK] = {false};
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    for (size_t i = 0; i < s->axes_count; i++) {
        int64_t axis = s->axes[i] < 0 ? s->axes[i] + shape->rank : s->axes[i];
        if (axis < 0 || axis >= shape->rank)
            return ort_error_set(err, ORT_ERROR_MODEL, "axis %lld is outside the %d axes of the input",
                                 (long long)s->axes[i], shape->rank);
        reduced[axis] = true;
    }
    ort_shape_strides(shape, stride);
    plan->kept.total = plan->reduced.total = 1;
    for (int d = 0; d < shape->rank; d++) {
        ort_axes *axes = reduced[d] ? &plan->reduced : &plan->kept;
        axes->dim[axes->count] = shape->dim[d];
        axes->stride[axes->count++] = stride[d];
        axes->total *= shape->dim[d];
    }
    plan->per_task = ort_max_i64(1, 32768 / ort_max_i64(1, plan->reduced.total));
    sh->plan_state = plan;
    return ORT_OK;
}

static double get(const ort_tensor *t, int64_t i)
{
    return t->dtype == ORT_DTYPE_FLOAT ? (double)((const float *)t->data)[i]
                                       : ort_tensor_get_f64(t, i);
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
    else /* as the function body of the specification has it */
        divisor = sqrt(total / (double)r->total) + 1e-9;
    for (int64_t i = 0; i < r->total; i++) {
        int64_t at = base + ort_axes_offset(r, r->count, i);
        double d = get(job->x, at) - center;
        ort_tensor_set_f64(job->y, at, divisor == 0 ? 0 : d / divisor);
    }
}

static void axes_task(void *arg, size_t task, int thread)
{
    const axes_job *job = arg;
    const ort_axes *kept = &job->plan->kept;
    int64_t first = (int64_t)task * job->plan->per_task;
    int64_t end = ort_min_i64(kept->total, first + job->plan->per_task);
    (void)thread;
    for (int64_t i = first; i < end; i++)
        normalize_group(job, ort_axes_offset(kept, kept->count, i));
}

static ort_status axes_run(ort_call *call, ort_error *err)
{
    axes_job job = {call->state, call->plan_state, ort_call_in(call, 0), ort_call_out(call, 0)};
    (void)err;
    if (ort_tensor_count(job.x) == 0)
        return ORT_OK;
    ort_call_parallel(call, ort_task_count(job.plan->kept.total, job.plan->per_task), axes_task, &job);
    return ORT_OK;
}

static const ort_op_impl axes_impl = {ort_infer_same, axes_prepare, axes_shape, axes_run, NULL};

const ort_op ort_ops_axes_norm[] = {
    {ONNX, "LpNormalization", 1, "input:T -> output:T", "T:F", "axis:i=-1 p:i=2", 0, &axes_impl},
    {ONNX, "LpNormalization", 22, "input:T -> output:T", "T:F,bf16", "axis:i=-1 p:i=2", 0,
     &axes_impl},
    {ONNX, "MeanVarianceNormalization", 9, "X:T -> Y:T", "T:F", "axes:is=[0 2 3]", 0, &axes_impl},
    {ONNX, "MeanVarianceNormalization", 13, "X:T -> Y:T", "T:F,bf16", "axes:is=[0 2 3]", 0,
     &axes_impl},
    {0},
};
