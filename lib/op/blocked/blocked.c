/* blocked.c - what the blocked operators share: extents, windows, activations, and the conversions
 * between plain and blocked tensors. */
#include "op/blocked/blocked_op.h"

#include <string.h>

#include "base/checked.h"

const ort_blocked_kernels *ort_blocked_kernels_of(const ort_kernels *k, int64_t block)
{
    return block == 8 ? &k->blocked8 : block == 16 ? &k->blocked16 : NULL;
}

bool ort_blocked_inner(const ort_node *node)
{
    return strcmp(node->domain, NCHWC);
}

int64_t ort_blocked_size(const ort_node *node, const ort_graph *graph)
{
    return ort_blocked_inner(node) ? ort_node_attr_int(node, "block") : ort_nchwc_block(graph);
}

ort_status ort_blocked_prepare(ort_prep *p, ort_error *err)
{
    ort_blocked_state *s = p->state;
    s->inner = ort_blocked_inner(p->node);
    s->block = ort_blocked_size(p->node, p->graph);
    s->k = ort_blocked_kernels_of(p->k, s->block);
    return s->k ? ORT_OK
                : ort_prep_fail(p, err, "blocks of %lld channels aren't known",
                                (long long)s->block);
}

ort_status ort_blocked_fill(ort_prep *p, const ort_floats *numbers, int64_t channels,
                            const float **whole, ort_error *err)
{
    const ort_blocked_state *s = p->state;
    size_t floats = ort_round_up((size_t)channels, (size_t)s->block);
    *whole = NULL;
    if (numbers->count == 0)
        return ORT_OK;
    if (numbers->count != (size_t)channels)
        return ort_prep_fail(p, err, "%zu numbers don't fit %lld channels", numbers->count,
                             (long long)channels);
    float *made = ort_arena_array(p->arena, floats, sizeof *made);
    if (!made)
        return ort_error_memory(err, floats * sizeof *made);
    memset(made, 0, floats * sizeof *made);
    memcpy(made, numbers->ptr, numbers->count * sizeof *made);
    *whole = made;
    return ORT_OK;
}

bool ort_blocked_read(const ort_blocked_state *s, const ort_shape *shape, ort_blocked_dims *d)
{
    int rank = shape->rank - (s->inner ? 3 : 2);
    if (rank < 1 || rank > 2 || (s->inner && shape->dim[shape->rank - 1] != s->block) ||
        (!s->inner && shape->dim[1] % s->block))
        return false;
    *d = (ort_blocked_dims){.n = shape->dim[0], .rank = rank, .in = {1, 1}};
    d->blocks = s->inner ? shape->dim[1] : shape->dim[1] / s->block;
    for (int i = 0; i < rank; i++)
        d->in[2 - rank + i] = shape->dim[2 + i];
    d->plane = d->in[0] * d->in[1];
    return true;
}

ort_status ort_blocked_resolve(const ort_window_spec *spec, const ort_blocked_dims *in,
                              const int64_t *kernel, ort_window *w, ort_error *err)
{
    int first = 2 - (int)in->rank;
    ORT_TRY(ort_window_resolve(spec, (int)in->rank, in->in + first, kernel ? kernel + first : NULL,
                               w, err));
    if (w->rank == 2)
        return ORT_OK;
    int64_t *lists[] = {w->in, w->out, w->kernel, w->stride, w->dilation, w->begin, w->end};
    for (int i = 0; i < 7; i++) {
        lists[i][1] = lists[i][0];
        lists[i][0] = i < 5 ? 1 : 0;
    }
    w->rank = 2;
    return ORT_OK;
}

void ort_blocked_rows(const ort_window *w, int64_t oy, int64_t block, ort_blocked_window *rows,
                      int64_t *first_row, int64_t *in_row)
{
    int64_t top = oy * w->stride[0] - w->begin[0], d = w->dilation[0];
    int64_t first = top < 0 ? (-top + d - 1) / d : 0;
    int64_t last = w->in[0] - top > 0 ? (w->in[0] - top - 1) / d + 1 : 0;
    last = ort_min_i64(last, w->kernel[0]);
    *rows = (ort_blocked_window){.x_row = d * w->in[1] * block, .width = w->in[1],
                                 .rows = ort_max_i64(last - first, 0), .columns = w->kernel[1],
                                 .stride = w->stride[1], .dilation = w->dilation[1],
                                 .start = -w->begin[1]};
    *first_row = ort_min_i64(first, w->kernel[0]);
    *in_row = rows->rows > 0 ? top + first * d : 0;
}

void ort_blocked_turn_column(ort_window *w)
{
    int64_t *lists[] = {w->in, w->out, w->kernel, w->stride, w->dilation, w->begin, w->end};
    if (w->in[1] != 1 || w->out[1] != 1 || w->kernel[1] != 1 || w->begin[1] != 0)
        return;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int64_t first = lists[i][0];
        lists[i][0] = lists[i][1];
        lists[i][1] = first;
    }
}

void ort_blocked_band_of(const ort_window *w, int64_t block, ort_blocked_band *d)
{
    *d = (ort_blocked_band){
        .x_row = w->in[1] * block, .ring = w->in[0], .height = w->in[0], .width = w->in[1]};
    memcpy(d->kernel, w->kernel, sizeof d->kernel);
    memcpy(d->stride, w->stride, sizeof d->stride);
    memcpy(d->dilation, w->dilation, sizeof d->dilation);
    memcpy(d->begin, w->begin, sizeof d->begin);
}

void ort_blocked_cut_tasks(ort_blocked_cut *cut, int64_t all_rows, int64_t units, int64_t wanted,
                           bool by_rows, int64_t least_rows, int64_t least_vectors)
{
    for (int turn = 0; turn < 2; turn++, by_rows = !by_rows)
        for (;;) {
            cut->row_blocks = (all_rows + cut->rows - 1) / cut->rows;
            cut->vector_blocks = (cut->vectors + cut->task_vectors - 1) / cut->task_vectors;
            if (units * cut->row_blocks * cut->vector_blocks >= wanted)
                return;
            if (by_rows && cut->rows > least_rows)
                cut->rows = (cut->rows + 1) / 2;
            else if (!by_rows && cut->task_vectors > least_vectors)
                cut->task_vectors = (int64_t)ort_round_up((size_t)(cut->task_vectors + 1) / 2,
                                                          (size_t)least_vectors);
            else
                break;
        }
}

/* ---- behind the clamp */

enum { FEW_FLOATS = 256 }; /* on the stack */

bool ort_blocked_activates(const ort_blocked_state *s)
{
    return s->epilogue.act >= 0 || s->affine;
}

static void activate(ort_call *call, const ort_blocked_state *s, float *y, int64_t count)
{
    const ort_epilogue *e = &s->epilogue;
    if (e->act >= 0)
        call->k->math.unary[e->act](y, y, (size_t)count, e->act_a, e->act_b);
    if (s->affine)
        call->k->math.unary[ORT_UNARY_LINEAR](y, y, (size_t)count, s->scale, s->shift);
}

/* A few channels of the pixels of one block, put side by side meanwhile: functions take longer than
 * moving what is nobody's out of their way. */
static void activate_few(ort_call *call, const ort_blocked_state *s, float *y, int64_t pixels)
{
    float side[FEW_FLOATS];
    const int64_t most = FEW_FLOATS / s->maps;
    for (int64_t done = 0, count; done < pixels; done += count, y += count * s->block) {
        count = ort_min_i64(most, pixels - done);
        for (int64_t i = 0; i < count; i++)
            for (int64_t m = 0; m < s->maps; m++)
                side[i * s->maps + m] = y[i * s->block + m];
        activate(call, s, side, count * s->maps);
        for (int64_t i = 0; i < count; i++)
            for (int64_t m = 0; m < s->maps; m++)
                y[i * s->block + m] = side[i * s->maps + m];
    }
}

void ort_blocked_activate(ort_call *call, const ort_blocked_state *s, const ort_blocked_out *o,
                          int64_t blocks)
{
    if (!ort_blocked_activates(s))
        return;
    if (s->few) {
        activate_few(call, s, o->y, o->count);
        return;
    }
    for (int64_t b = 0; b < blocks; b++)
        activate(call, s, o->y + b * o->y_block, o->count * s->block);
}

/* ---- conversions */

enum { PIECE = 2048 }; /* pixels of a plane that a task converts */

ort_status ort_blocked_infer(ort_infer *x, ort_error *err)
{
    const ort_fact *in = ort_infer_in(x, 0);
    int64_t block = ort_blocked_size(x->node, x->graph);
    ort_dim out[ORT_MAX_RANK];
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *t = &in->type;
    if (t->rank < 3 || t->rank + 1 > ORT_MAX_RANK || !ort_dim_known(t->dim[1]) || block < 1)
        return ort_infer_fail(x, err, "the input's rank or channels can't be blocked");
    for (int i = 0; i < t->rank; i++)
        out[i] = t->dim[i];
    out[1] = ort_dim_of((t->dim[1].size + block - 1) / block);
    out[t->rank] = ort_dim_of(block);
    ort_infer_set_shape(x, 0, t->rank + 1, out);
    return ORT_OK;
}

typedef struct convert_job {
    ort_call *call;
    ort_blocked_dims d;
    int64_t block, channels;
    ort_blocked_move_fn *move;
} convert_job;

static void task_convert(void *arg, size_t task, int thread)
{
    const convert_job *j = arg;
    int64_t pieces = (j->d.plane + PIECE - 1) / PIECE, at = (int64_t)task % pieces * PIECE;
    int64_t whole = (int64_t)task / pieces, image = whole / j->d.blocks;
    int64_t first = whole % j->d.blocks * j->block;
    ort_blocked_part part = {.channels = ort_min_i64(j->block, j->channels - first),
                             .count = ort_min_i64(PIECE, j->d.plane - at),
                             .plane = j->d.plane,
                             .plain = (image * j->channels + first) * j->d.plane + at,
                             .blocked = (whole * j->d.plane + at) * j->block};
    j->move(j->call, &part);
}

ort_status ort_blocked_convert(ort_call *call, bool into, ort_blocked_move_fn *move, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0), *y = ort_call_out(call, 0);
    const ort_blocked_state *s = call->state;
    convert_job j = {.call = call, .block = s->block, .move = move,
                     .channels = (into ? x : y)->shape.dim[1]};
    if (!ort_blocked_read(s, into ? &y->shape : &x->shape, &j.d))
        return ort_error_set(err, ORT_ERROR_MODEL, "the shape isn't one of a blocked tensor");
    ort_call_parallel(call, (size_t)(j.d.n * j.d.blocks) * ort_task_count(j.d.plane, PIECE),
                      task_convert, &j);
    return ORT_OK;
}

static void block_part(ort_call *call, const ort_blocked_part *p)
{
    const ort_blocked_state *s = call->state;
    s->k->gather((const float *)ort_call_in(call, 0)->data + p->plain, p->plane, p->channels,
                 p->count, (float *)ort_call_out(call, 0)->data + p->blocked);
}

static void unblock_part(ort_call *call, const ort_blocked_part *p)
{
    const ort_blocked_state *s = call->state;
    if (p->channels > 0)
        s->k->scatter((const float *)ort_call_in(call, 0)->data + p->blocked, p->plane, p->channels,
                      p->count, (float *)ort_call_out(call, 0)->data + p->plain);
}

static ort_status block_run(ort_call *call, ort_error *err)
{
    return ort_blocked_convert(call, true, block_part, err);
}

static ort_status unblock_run(ort_call *call, ort_error *err)
{
    return ort_blocked_convert(call, false, unblock_part, err);
}

/* ---- one number per channel against a whole plane */

enum { SCALE_MUL, SCALE_ADD };

typedef struct scale_job {
    const ort_blocked_state *s;
    const ort_blocked_dims *d;
    bool mul;
    const float *x, *by;
    float *y;
} scale_job;

static void task_scale(void *arg, size_t task, int thread)
{
    const scale_job *j = arg;
    int64_t block = j->s->block, at = (int64_t)task * j->d->plane * block;
    (j->mul ? j->s->k->mul : j->s->k->add)(j->x + at, j->by + (int64_t)task * block, j->d->plane,
                                           j->y + at);
}

static ort_status scale_shape(ort_shaping *s, ort_error *err)
{
    ort_blocked_dims *d = ort_arena_array(s->arena, 2, sizeof *d);
    if (!d)
        return ort_error_memory(err, sizeof *d);
    if (!ort_blocked_read(s->state, &s->in[0]->shape, d) ||
        !ort_blocked_read(s->state, &s->in[1]->shape, d + 1) || d[0].n != d[1].n ||
        d[0].blocks != d[1].blocks || d[1].plane != 1)
        return ort_error_set(err, ORT_ERROR_MODEL, "the inputs don't fit each other");
    s->plan_state = d;
    return ORT_OK;
}

static ort_status scale_run(ort_call *call, ort_error *err)
{
    const ort_blocked_dims *d = call->plan_state;
    scale_job j = {call->state, d, call->node->op->variant == SCALE_MUL,
                   ort_call_in(call, 0)->data, ort_call_in(call, 1)->data,
                   ort_call_out(call, 0)->data};
    ort_call_parallel(call, (size_t)(d->n * d->blocks), task_scale, &j);
    return ORT_OK;
}

static const ort_op_impl block_impl = {
    .state = sizeof(ort_blocked_state), .infer = ort_blocked_infer, .prepare = ort_blocked_prepare,
    .run = block_run,
};
static const ort_op_impl unblock_impl = {
    .state = sizeof(ort_blocked_state), .rule = "[N,C,H,D..,B] -> [N,channels,H,D..]",
    .prepare = ort_blocked_prepare, .run = unblock_run,
};
static const ort_op_impl scale_impl = {
    .state = sizeof(ort_blocked_state), .rule = "same", .prepare = ort_blocked_prepare,
    .shape = scale_shape, .run = scale_run,
};

const ort_op ort_ops_blocked[] = {
    {ORT_INTERNAL, "BlockChannels", 1, "X:T -> Y:T", "T:f32", "block:i!", 0, &block_impl},
    {ORT_INTERNAL, "UnblockChannels", 1, "X:T -> Y:T", "T:f32", "block:i! channels:i!", 0,
     &unblock_impl},
    {ORT_INTERNAL, "BlockedMul", 1, "X:T,S:T -> Y:T", "T:f32", "block:i!", ORT_TRAIT_INPLACE,
     &scale_impl, NULL, SCALE_MUL},
    {ORT_INTERNAL, "BlockedAdd", 1, "X:T,S:T -> Y:T", "T:f32", "block:i!", ORT_TRAIT_INPLACE,
     &scale_impl, NULL, SCALE_ADD},
    {0},
};
