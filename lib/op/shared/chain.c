/* chain.c - ElementwiseChain: see chain.h. A tile of the output collects one step after the other
 * in place; operands that broadcast are walked run by run, as in bcast.c.
 */
#include "op/shared/chain.h"

#include <string.h>

#include "base/checked.h"
#include "op/shared/bcast_block.h"
#include "op/shared/move.h"
#include "op/shared/unary_apply.h"
#include "op/written.h"

#define TILE 2048
#define SHORT 16 /* elements of the longest vector of a tier */

typedef struct chain_state {
    ort_ints program;
    ort_floats params;
    int count;
    ort_chain_step steps[ORT_CHAIN_STEPS];
} chain_state;

static const ort_bind chain_bind[] = {
    ORT_BIND(chain_state, program), ORT_BIND(chain_state, params), {0}};

typedef struct chain_job {
    const chain_state *state;
    const ort_bcast *plans; /* per input */
    const ort_call *call;
    float *y;
    int64_t total;
    bool overlaps; /* the output lies over an input */
    const ort_written *written;
} chain_job;

ort_status ort_chain_read(const ort_prep *p, const ort_ints *program, const ort_floats *params,
                          ort_chain_step *steps, int *count, ort_error *err)
{
    const size_t words = program->count, numbers = params->count;
    *count = 0;
    if (words % 2 || words / 2 > ORT_CHAIN_STEPS || numbers != words)
        return ort_prep_fail(p, err, "the program has %zu words and %zu numbers", words, numbers);
    for (size_t i = 0; i < words; i += 2) {
        ort_chain_step *step = &steps[(*count)++];
        int64_t code = program->ptr[i], binary = code % 1000;
        *step = (ort_chain_step){.input = (int)program->ptr[i + 1], .a = params->ptr[i],
                                 .b = params->ptr[i + 1]};
        if (code >= 0 && code < ORT_UNARY_COUNT)
            step->unary = p->k->math.unary[code];
        else if (code >= ORT_CHAIN_LEFT && code < ORT_CHAIN_RIGHT + 1000 &&
                 binary < ORT_BINARY_COUNT)
            step->binary = p->k->math.binary[binary];
        else
            return ort_prep_fail(p, err, "the program has no operation %lld", (long long)code);
        step->right = code >= ORT_CHAIN_RIGHT;
        if (step->binary && (step->input < 0 || step->input >= p->in_count))
            return ort_prep_fail(p, err, "the program names input %d", step->input);
    }
    return ORT_OK;
}

static ort_status chain_prepare(ort_prep *p, ort_error *err)
{
    chain_state *s = p->state;
    return ort_chain_read(p, &s->program, &s->params, s->steps, &s->count, err);
}

static ort_status chain_shape(ort_shaping *s, ort_error *err)
{
    ort_bcast *plans = ort_arena_array(s->arena, (size_t)s->in_count, sizeof *plans);
    const ort_shape *out = &s->out[0]->shape;
    if (!plans)
        return ort_error_memory(err, (size_t)s->in_count * sizeof *plans);
    for (int k = 0; k < s->in_count; k++) {
        const ort_shape *in = &s->in[k]->shape;
        ort_shape both;
        if (s->in[k]->dtype != ORT_DTYPE_FLOAT)
            return ort_error_set(err, ORT_ERROR_MODEL, "input %d is %s, needs float", k,
                                 ort_dtype_name(s->in[k]->dtype));
        if (!ort_shape_broadcast(in, out, &both) || !ort_shape_equal(&both, out))
            return ort_error_set(err, ORT_ERROR_MODEL, "input %d doesn't broadcast to input 0", k);
        ort_bcast_make(&plans[k], out, &in, 1);
    }
    s->plan_state = plans;
    return ORT_OK;
}

typedef struct step_walk {
    const ort_chain_step *step;
    const float *operand;
    float *tile;
    int64_t base; /* output index of tile[0] */
    bool moves;
} step_walk;

static void step_segment(void *arg, int64_t out, const int64_t *in, int64_t n)
{
    const step_walk *w = arg;
    float *value = w->tile + (out - w->base);
    const float *operand = w->operand + in[0];
    if (w->step->right)
        w->step->binary(operand, value, value, (size_t)n, w->moves ? ORT_FORM_VV : ORT_FORM_SV);
    else
        w->step->binary(value, operand, value, (size_t)n, w->moves ? ORT_FORM_VV : ORT_FORM_VS);
}

/* The operand laid out block by block as the tile is. */
static void run_blocks(const ort_bcast *plan, step_walk *w, int64_t first, int64_t n)
{
    _Alignas(16) char space[ORT_BCAST_SPACE(sizeof(float))];
    const int64_t zero = 0;
    ort_bcast_operand operand;
    ort_bcast_operand_begin(&operand, plan, 0, w->operand, sizeof(float), space);
    w->moves = true;
    for (int64_t i = 0; i < n; i += ORT_BCAST_BLOCK) {
        int64_t count = ort_min_i64(n - i, ORT_BCAST_BLOCK);
        w->operand = ort_bcast_operand_block(&operand, first + i, count);
        step_segment(w, first + i, &zero, count);
    }
}

static void run_binary(const chain_job *job, const ort_chain_step *step, float *tile, int64_t first,
                       int64_t n)
{
    const ort_bcast *plan = &job->plans[step->input];
    step_walk w = {step, ort_call_in(job->call, step->input)->data, tile, first,
                   plan->stride[0][plan->rank - 1] != 0};
    int64_t zero = 0;
    if (plan->flat)
        step_segment(&w, first, &first, n);
    else if (plan->rank == 1) /* one element */
        step_segment(&w, first, &zero, n);
    else if (ort_bcast_has_short_runs(plan))
        run_blocks(plan, &w, first, n);
    else
        ort_bcast_walk(plan, first, n, step_segment, &w);
}

/* The first step reads input 0, and an operand of its shape, straight into the tile. */
static int start_tile(const chain_job *job, float *tile, int64_t first, int64_t n)
{
    const float *x = (const float *)ort_call_in(job->call, 0)->data + first;
    const ort_chain_step *step = &job->state->steps[0];
    if (job->state->count > 0 && step->unary) {
        step->unary(x, tile, (size_t)n, step->a, step->b);
        return 1;
    }
    if (job->state->count > 0 && job->plans[step->input].flat) {
        const float *z = (const float *)ort_call_in(job->call, step->input)->data + first;
        step->binary(step->right ? z : x, step->right ? x : z, tile, (size_t)n, ORT_FORM_VV);
        return 1;
    }
    memcpy(tile, x, (size_t)n * sizeof *tile);
    return 0;
}

static void run_tile(const chain_job *job, int64_t first, int64_t n)
{
    float block[TILE], *tile = job->overlaps ? block : job->y + first;
    for (int i = start_tile(job, tile, first, n); i < job->state->count; i++) {
        const ort_chain_step *step = &job->state->steps[i];
        if (step->unary)
            step->unary(tile, tile, (size_t)n, step->a, step->b);
        else
            run_binary(job, step, tile, first, n);
    }
    if (job->overlaps)
        memcpy(job->y + first, tile, (size_t)n * sizeof *tile);
}

/* Few elements whose operands advance with them or stand still: everything is made as long as a
 * vector, by repeating elements, since partial vectors that pass through memory from step to step
 * wait for each other. Returns false for anything else. */
static bool run_short(const chain_job *job)
{
    const int64_t lanes = job->call->k->math.lanes;
    float values[ORT_CHAIN_INPUTS][SHORT], tile[SHORT];
    if (job->total < 1 || job->total > lanes || lanes > SHORT ||
        job->call->in_count > ORT_CHAIN_INPUTS)
        return false;
    for (int k = 0; k < job->call->in_count; k++) {
        const float *x = ort_call_in(job->call, k)->data;
        if (!job->plans[k].flat && job->plans[k].rank != 1)
            return false;
        int64_t last = job->plans[k].flat ? job->total - 1 : 0;
        for (int64_t i = 0; i < lanes; i++)
            values[k][i] = x[i < last ? i : last];
    }
    const float *from = values[0];
    for (int i = 0; i < job->state->count; i++, from = tile) {
        const ort_chain_step *step = &job->state->steps[i];
        const float *operand = values[step->binary ? step->input : 0];
        if (step->unary)
            step->unary(from, tile, (size_t)lanes, step->a, step->b);
        else
            step->binary(step->right ? operand : from, step->right ? from : operand, tile,
                         (size_t)lanes, ORT_FORM_VV);
    }
    for (int64_t i = 0; i < job->total; i++) /* a call would take longer */
        job->y[i] = from[i];
    return true;
}

static void chain_task(void *arg, int64_t first, int64_t end, int thread)
{
    const chain_job *job = arg;
    for (; first < end; first += TILE) {
        const int64_t n = ort_min_i64(TILE, end - first);
        run_tile(job, first, n);
        ort_written_part(job->written, first, n, thread);
    }
}

static chain_job job_of(const ort_call *call)
{
    ort_tensor *y = ort_call_out(call, 0);
    chain_job job = {.state = call->state, .plans = call->plan_state, .call = call, .y = y->data,
                     .total = ort_tensor_count(y)};
    for (int k = 0; k < call->in_count; k++)
        job.overlaps = job.overlaps || ort_call_in(call, k)->data == y->data;
    return job;
}

static ort_status chain_run(ort_call *call, ort_error *err)
{
    chain_job job = job_of(call);
    if (run_short(&job))
        return ORT_OK;
    job.written = ort_written_begin(call);
    ort_call_range(call, job.total, ORT_ELEMENTWISE_GRAIN, chain_task, &job);
    return ORT_OK;
}

static bool chain_has_parts(const ort_call *call)
{
    const ort_bcast *plans = call->plan_state;
    for (int k = 0; k < call->in_count; k++)
        if (!plans[k].flat)
            return false;
    return ort_tensor_count(ort_call_out(call, 0)) > SHORT;
}

static void chain_part(const ort_call *call, int64_t first, int64_t n, int thread)
{
    const chain_job job = job_of(call);
    for (const int64_t end = first + n; first < end; first += TILE)
        run_tile(&job, first, ort_min_i64(TILE, end - first));
    (void)thread;
}

static void chain_cost(const ort_infer *x, ort_cost *cost)
{
    size_t words = 0;
    ort_node_ints(x->node, "program", &words);
    ort_elementwise_cost(x, cost);
    cost->flops *= (double)(words / 2);
}

static const ort_op_impl chain_impl = {
    .state = sizeof(chain_state), .bind = chain_bind, .rule = "same",
    .prepare = chain_prepare, .shape = chain_shape, .run = chain_run, .cost = chain_cost,
    .part = chain_part, .has_parts = chain_has_parts,
};

const ort_op ort_ops_chain[] = {
    {ORT_INTERNAL, "ElementwiseChain", 1, "inputs*:T -> y:T", "T:f32", "params:fs! program:is!",
     ORT_TRAIT_ELEMENTWISE | ORT_TRAIT_INPLACE, &chain_impl},
    {0},
};
