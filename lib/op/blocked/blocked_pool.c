/* blocked_pool.c - pooling in the blocked layout: windows row by row, and whole planes. A task is
 * one block of channels of one image. */
#include <string.h>

#include "base/checked.h"
#include "op/blocked/blocked_op.h"
#include "op/shared/unary_apply.h"

typedef struct pool_plan {
    ort_blocked_dims in, out;
    ort_window w;
    const float *count[2]; /* average: taps that count, per output coordinate of each axis */
} pool_plan;

/* ---- windows */

static ort_status window_infer(ort_infer *x, ort_error *err)
{
    return ort_window_infer_pool(x, 2, 1, err);
}

const ort_bind ort_blocked_pool_bind[] = {
    ORT_BIND_AS(ort_blocked_state, include_pad, "count_include_pad", ORT_MAYBE),
    ORT_BIND_WINDOW(ort_blocked_state), {0}};

ort_status ort_blocked_pool_prepare(ort_prep *p, ort_error *err)
{
    ort_blocked_state *s = p->state;
    s->maximum = p->op->variant == ORT_BLOCKED_MAX;
    return ort_blocked_prepare(p, err);
}

ort_status ort_blocked_window_shape(ort_shaping *sh, ort_error *err)
{
    const ort_blocked_state *s = sh->state;
    pool_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    sh->plan_state = p;
    if (!ort_blocked_read(s, &sh->in[0]->shape, &p->in) ||
        !ort_blocked_read(s, &sh->out[0]->shape, &p->out))
        return ort_error_set(err, ORT_ERROR_MODEL, "the shape isn't one of a blocked tensor");
    ORT_TRY(ort_blocked_resolve(&s->spec, &p->in, NULL, &p->w, err));
    for (int axis = 0; axis < 2 && !s->maximum; axis++)
        ORT_TRY(ort_window_counts(&p->w, axis, s->include_pad, sh->arena, &p->count[axis], err));
    return ORT_OK;
}

typedef struct pool_job {
    const ort_blocked_state *s;
    const pool_plan *p;
    const float *x;
    float *y;
} pool_job;

/* Output rows [first, first + rows) of a plane. */
static void maximum_rows(const pool_job *j, int64_t plane, int64_t first, int64_t rows)
{
    const pool_plan *p = j->p;
    ort_blocked_band band;
    ort_blocked_band_of(&p->w, j->s->block, &band);
    band.x = j->x + plane * p->in.plane * j->s->block;
    band.first_row = first;
    band.rows = rows;
    band.out.y = j->y + (plane * p->out.plane + first * p->w.out[1]) * j->s->block;
    band.out.count = p->w.out[1];
    j->s->k->max_pool(&band);
}

static void average_rows(const pool_job *j, int64_t plane, int64_t first, int64_t rows)
{
    const pool_plan *p = j->p;
    int64_t block = j->s->block;
    const float *x = j->x + plane * p->in.plane * block;
    ort_blocked_each e = {.column_count = p->count[1]};
    for (int64_t oy = first; oy < first + rows; oy++) {
        int64_t first_row, in_row;
        ort_blocked_rows(&p->w, oy, block, &e.window, &first_row, &in_row);
        e.window.x = x + in_row * p->w.in[1] * block;
        e.out.y = j->y + (plane * p->out.plane + oy * p->w.out[1]) * block;
        e.out.count = p->w.out[1];
        e.row_count = p->count[0][oy];
        j->s->k->average_pool(&e);
    }
}

/* Output rows [first, end) of all planes in a row. */
static void task_window(void *arg, int64_t first, int64_t end, int thread)
{
    const pool_job *j = arg;
    const int64_t all = j->p->w.out[0];
    int64_t rows;
    for (; first < end; first += rows) {
        rows = ort_min_i64(end - first, all - first % all);
        (j->s->maximum ? maximum_rows : average_rows)(j, first / all, first % all, rows);
    }
}

ort_status ort_blocked_window_run(ort_call *call, ort_error *err)
{
    const pool_plan *p = call->plan_state;
    pool_job j = {call->state, p, ort_call_in(call, 0)->data, ort_call_out(call, 0)->data};
    int64_t taps = p->w.kernel[0] * p->w.kernel[1];
    if (p->out.plane > 0)
        ort_call_range(call, p->out.n * p->out.blocks * p->w.out[0],
                       ort_max_i64(1, ORT_ELEMENTWISE_GRAIN / (p->w.out[1] * j.s->block * taps)),
                       task_window, &j);
    return ORT_OK;
}

/* ---- whole planes */

ort_status ort_blocked_global_shape(ort_shaping *sh, ort_error *err)
{
    pool_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    sh->plan_state = p;
    if (!ort_blocked_read(sh->state, &sh->in[0]->shape, &p->in))
        return ort_error_set(err, ORT_ERROR_MODEL, "the shape isn't one of a blocked tensor");
    return ORT_OK;
}

static void task_global(void *arg, size_t task, int thread)
{
    const pool_job *j = arg;
    int64_t block = j->s->block, plane = j->p->in.plane;
    (j->s->maximum ? j->s->k->maximum : j->s->k->mean)(j->x + (int64_t)task * plane * block, plane,
                                                       j->y + (int64_t)task * block);
}

ort_status ort_blocked_global_run(ort_call *call, ort_error *err)
{
    const pool_plan *p = call->plan_state;
    pool_job j = {call->state, p, ort_call_in(call, 0)->data, ort_call_out(call, 0)->data};
    ort_call_parallel(call, (size_t)(p->in.n * p->in.blocks), task_global, &j);
    return ORT_OK;
}

static const ort_op_impl window_impl = {
    .state = sizeof(ort_blocked_state), .bind = ort_blocked_pool_bind, .infer = window_infer,
    .prepare = ort_blocked_pool_prepare, .shape = ort_blocked_window_shape,
    .run = ort_blocked_window_run, .cost = ort_window_cost,
};
static const ort_op_impl global_impl = {
    .state = sizeof(ort_blocked_state), .bind = ort_blocked_pool_bind,
    .rule = "[N,C,D..,B] -> [N,C,1^D,B]",
    .prepare = ort_blocked_pool_prepare, .shape = ort_blocked_global_shape,
    .run = ort_blocked_global_run, .cost = ort_reduction_cost,
};

#define WINDOW                                                                                     \
    "auto_pad:s=NOTSET block:i! ceil_mode:i=0 dilations:is kernel_shape:is! pads:is "              \
    "storage_order:i=0 strides:is"

const ort_op ort_ops_blocked_pool[] = {
    {ORT_INTERNAL, "BlockedMaxPool", 1, "X:T -> Y:T", "T:f32", WINDOW, 0, &window_impl,
     NULL, ORT_BLOCKED_MAX},
    {ORT_INTERNAL, "BlockedAveragePool", 1, "X:T -> Y:T", "T:f32", "count_include_pad:i=0 " WINDOW,
     0, &window_impl},
    {ORT_INTERNAL, "BlockedGlobalMaxPool", 1, "X:T -> Y:T", "T:f32", "block:i!", 0, &global_impl,
     NULL, ORT_BLOCKED_MAX},
    {ORT_INTERNAL, "BlockedGlobalAveragePool", 1, "X:T -> Y:T", "T:f32", "block:i!", 0,
     &global_impl},
    {0},
};
