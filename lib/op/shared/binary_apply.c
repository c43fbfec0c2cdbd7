/* binary_apply.c - y = f(a, b) over operands that broadcast.
 *
 * Work is cut by output elements into pieces of fixed size; a piece starts anywhere in a run, so
 * the cut changes nothing but who computes what.
 */
#include "op/shared/binary_apply.h"

#include <string.h>

#include "base/checked.h"
#include "op/rule.h"
#include "op/shared/bcast_block.h"
#include "op/shared/unary_apply.h"

/* ---- infer and prepare */

static bool is_legacy(const ort_op *op) { return strstr(op->attrs, "broadcast:i") != NULL; }

/* Where B begins among the dims of A, or behind all of them. */
static ort_status check_axis(int64_t axis, int rank, ort_error *err)
{
    if (axis >= -rank && axis <= rank)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_MODEL,
                         "attribute axis is %lld, the first input has rank %d", (long long)axis,
                         rank);
}

ort_status ort_binary_infer(ort_infer *x, ort_error *err)
{
    bool legacy = is_legacy(x->op);
    if (legacy && ort_node_has(x->node, "axis") && ort_infer_in_ranked(x, 0))
        ORT_TRY(check_axis(ort_node_attr_int(x->node, "axis"), x->in[0]->type.rank, err));
    return ort_infer_rule(x, legacy ? "same" : "broadcast", err);
}

const ort_bind ort_binary_bind[] = {
    ORT_BIND(ort_binary_state, axis, ORT_MAYBE),
    ORT_BIND_HAS(ort_binary_state, has_axis, "axis"), {0}};

ort_status ort_binary_prepare(ort_prep *p, ort_error *err)
{
    ort_binary_state *state = p->state;
    state->dtype = ort_prep_dtype(p, 0);
    state->legacy = is_legacy(p->op);
    return ORT_OK;
}

/* The shape of B as the opset-6 attribute `axis` aligns it with A. */
static ort_shape align_operand(const ort_binary_state *state, const ort_shape *a,
                               const ort_shape *b)
{
    ort_shape shape = *b;
    if (!state->legacy || !state->has_axis)
        return shape;
    int axis = (int)state->axis + (state->axis < 0 ? a->rank : 0);
    /* Trailing ones of B were allowed to be written or left out. */
    while (shape.rank < ORT_MAX_RANK && shape.rank + axis < a->rank)
        shape.dim[shape.rank++] = 1;
    return shape;
}

static ort_status fit_error(const ort_shape *a, const ort_shape *b, ort_error *err)
{
    char ta[200], tb[200];
    return ort_error_set(err, ORT_ERROR_MODEL, "shapes %s and %s don't broadcast",
                         ort_shape_format(a, ta, sizeof ta), ort_shape_format(b, tb, sizeof tb));
}

ort_status ort_binary_check_types(const ort_tensor *a, const ort_tensor *b, ort_error *err)
{
    if (a->dtype == b->dtype)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_MODEL, "operands are %s and %s, need one element type",
                         ort_dtype_name(a->dtype), ort_dtype_name(b->dtype));
}

ort_status ort_binary_shape(ort_shaping *s, ort_error *err)
{
    ort_bcast *plan = ort_arena_alloc(s->arena, sizeof *plan);
    const ort_shape *a = &s->in[0]->shape;
    const ort_binary_state *state = s->state;
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    if (state->has_axis)
        ORT_TRY(check_axis(state->axis, a->rank, err));
    ort_shape b = align_operand(state, a, &s->in[1]->shape), both;
    const ort_shape *in[2] = {a, &b};
    if (state->fn) {
        ORT_TRY(ort_binary_check_types(s->in[0], s->in[1], err));
        if (state->dtype != s->in[0]->dtype)
            return ort_error_set(err, ORT_ERROR_MODEL, "operands are %s, were expected to be %s",
                                 ort_dtype_name(s->in[0]->dtype), ort_dtype_name(state->dtype));
    }
    if (!ort_shape_broadcast(a, &b, &both) || !ort_shape_equal(&both, &s->out[0]->shape))
        return fit_error(a, &s->in[1]->shape, err);
    ort_bcast_make(plan, &both, in, 2);
    s->plan_state = plan;
    return ORT_OK;
}

/* ---- run */

typedef struct binary_job {
    const ort_binary_state *state;
    const ort_bcast *plan;
    const ort_vmath_kernels *math;
    const char *a, *b;
    char *y;
    size_t in_bytes, out_bytes;
    ort_form form;
} binary_job;

static void run_widened(const binary_job *job, const char *a, const char *b, char *y, size_t n)
{
    float u[ORT_WIDEN_BLOCK], v[ORT_WIDEN_BLOCK], w[ORT_WIDEN_BLOCK];
    ort_dtype dtype = job->state->dtype;
    size_t step_a = job->form != ORT_FORM_SV, step_b = job->form != ORT_FORM_VS;
    if (!step_a)
        ort_widen(job->math, dtype, a, u, 1);
    if (!step_b)
        ort_widen(job->math, dtype, b, v, 1);
    for (size_t i = 0; i < n; i += ORT_WIDEN_BLOCK) {
        size_t count = n - i < ORT_WIDEN_BLOCK ? n - i : ORT_WIDEN_BLOCK;
        if (step_a)
            ort_widen(job->math, dtype, a + 2 * i, u, count);
        if (step_b)
            ort_widen(job->math, dtype, b + 2 * i, v, count);
        if (job->state->bytes_out) {
            job->state->fn(u, v, y + i, count, job->form);
            continue;
        }
        job->state->fn(u, v, w, count, job->form);
        ort_narrow(job->math, dtype, w, y + 2 * i, count);
    }
}

static void binary_segment(void *arg, int64_t out, const int64_t *in, int64_t n)
{
    const binary_job *job = arg;
    const char *a = job->a + (size_t)in[0] * job->in_bytes;
    const char *b = job->b + (size_t)in[1] * job->in_bytes;
    char *y = job->y + (size_t)out * job->out_bytes;
    if (job->state->widen)
        run_widened(job, a, b, y, (size_t)n);
    else
        job->state->fn(a, b, y, (size_t)n, job->form);
}

static void run_blocks(const binary_job *job, int64_t first, int64_t end)
{
    _Alignas(16) char space[2][ORT_BCAST_SPACE(sizeof(ort_string))]; /* the widest element */
    ort_bcast_operand a, b;
    binary_job dense = *job;
    const int64_t start[2] = {0, 0};
    ort_bcast_operand_begin(&a, job->plan, 0, job->a, job->in_bytes, space[0]);
    ort_bcast_operand_begin(&b, job->plan, 1, job->b, job->in_bytes, space[1]);
    dense.form = ORT_FORM_VV;
    for (int64_t n; first < end; first += n) {
        n = ort_min_i64(end - first, ORT_BCAST_BLOCK);
        dense.a = ort_bcast_operand_block(&a, first, n);
        dense.b = ort_bcast_operand_block(&b, first, n);
        binary_segment(&dense, first, start, n);
    }
}

static void binary_task(void *arg, int64_t first, int64_t end, int thread)
{
    const binary_job *job = arg;
    if (ort_bcast_has_short_runs(job->plan))
        run_blocks(job, first, end);
    else
        ort_bcast_walk(job->plan, first, end - first, binary_segment, arg);
}

ort_status ort_binary_run(ort_call *call, ort_error *err)
{
    const ort_binary_state *state = call->state;
    const ort_bcast *plan = call->plan_state;
    const ort_tensor *a = ort_call_in(call, 0), *b = ort_call_in(call, 1);
    ort_tensor *y = ort_call_out(call, 0);
    binary_job job = {state, plan, &call->k->math, a->data, b->data, y->data, 0, 0, ORT_FORM_VV};
    if (plan->total == 0)
        return ORT_OK;
    job.in_bytes = (size_t)ort_dtype_get(state->dtype)->bits / 8;
    job.out_bytes = state->bytes_out ? 1 : job.in_bytes;
    if (plan->stride[0][plan->rank - 1] == 0)
        job.form = ORT_FORM_SV;
    else if (plan->stride[1][plan->rank - 1] == 0)
        job.form = ORT_FORM_VS;
    ort_call_range(call, plan->total, ORT_ELEMENTWISE_GRAIN, binary_task, &job);
    return ORT_OK;
}
