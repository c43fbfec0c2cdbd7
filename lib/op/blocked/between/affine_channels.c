/* affine_channels.c - BlockedAffine: y = activation(leak(x * scale + shift)) with numbers per
 * channel, what BatchNormalization and PRelu are where no convolution takes them in. Pieces of
 * planes are tasks.
 */
#include <string.h>

#include "base/checked.h"
#include "op/blocked/blocked_op.h"
#include "op/shared/unary_apply.h"

typedef struct affine_state {
    ort_blocked_state blocked; /* its bias and slope too */
    int64_t channels;
    ort_floats scales, shifts;
    const float *scale;
} affine_state;

static const ort_bind affine_bind[] = {
    ORT_BIND(affine_state, channels),
    ORT_BIND(affine_state, scales, ORT_MAYBE),
    ORT_BIND(affine_state, shifts, ORT_MAYBE),
    ORT_BIND_AS(affine_state, blocked.slopes, "slopes", ORT_MAYBE),
    ORT_BIND_BY(affine_state, blocked.epilogue, "activation", ort_epilogue_bind), {0}};

static ort_status affine_prepare(ort_prep *p, ort_error *err)
{
    affine_state *s = p->state;
    ort_blocked_state *b = &s->blocked;
    ORT_TRY(ort_blocked_prepare(p, err));
    ORT_TRY(ort_blocked_fill(p, &s->scales, s->channels, &s->scale, err));
    ORT_TRY(ort_blocked_fill(p, &s->shifts, s->channels, &b->bias, err));
    return ort_blocked_fill(p, &b->slopes, s->channels, &b->slope, err);
}

static ort_status affine_shape(ort_shaping *sh, ort_error *err)
{
    const affine_state *s = sh->state;
    ort_blocked_dims *d = ort_arena_alloc(sh->arena, sizeof *d);
    if (!d)
        return ort_error_memory(err, sizeof *d);
    if (!ort_blocked_read(&s->blocked, &sh->in[0]->shape, d) ||
        d->blocks != (s->channels + s->blocked.block - 1) / s->blocked.block)
        return ort_error_set(err, ORT_ERROR_MODEL, "the input hasn't %lld channels",
                             (long long)s->channels);
    sh->plan_state = d;
    return ORT_OK;
}

typedef struct affine_job {
    ort_call *call;
    const affine_state *s;
    const ort_blocked_dims *d;
    const float *x;
    float *y;
} affine_job;

/* Pixels [first, end) of all planes in a row, each stretch within one plane. */
static void task_affine(void *arg, int64_t first, int64_t end, int thread)
{
    const affine_job *j = arg;
    const ort_blocked_state *b = &j->s->blocked;
    int64_t count;
    for (; first < end; first += count) {
        int64_t plane = first / j->d->plane, channel = plane % j->d->blocks * b->block;
        count = ort_min_i64(end - first, (plane + 1) * j->d->plane - first);
        ort_blocked_out out = {.y = j->y + first * b->block,
                               .bias = b->bias ? b->bias + channel : NULL,
                               .slope = b->slope ? b->slope + channel : NULL,
                               .lo = b->epilogue.lo,
                               .hi = b->epilogue.hi,
                               .count = count};
        b->k->affine(j->x + first * b->block, j->s->scale ? j->s->scale + channel : NULL, &out);
        ort_blocked_activate(j->call, b, &out, 1);
    }
}

static ort_status affine_run(ort_call *call, ort_error *err)
{
    const affine_state *s = call->state;
    const ort_blocked_dims *d = call->plan_state;
    affine_job j = {call, s, d, ort_call_in(call, 0)->data, ort_call_out(call, 0)->data};
    ort_call_range(call, d->n * d->blocks * d->plane,
                   ORT_ELEMENTWISE_GRAIN / s->blocked.block, task_affine, &j);
    return ORT_OK;
}

static const ort_op_impl affine_impl = {
    .state = sizeof(affine_state), .bind = affine_bind, .rule = "same",
    .prepare = affine_prepare, .shape = affine_shape, .run = affine_run,
    .cost = ort_elementwise_cost,
};

const ort_op ort_ops_affine_channels[] = {
    {ORT_INTERNAL, "BlockedAffine", 1, "X:T -> Y:T", "T:f32",
     "activation:s activation_params:fs block:i! channels:i! scales:fs shifts:fs slopes:fs",
     ORT_TRAIT_INPLACE, &affine_impl},
    {0},
};
