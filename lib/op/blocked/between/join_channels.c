/* join_channels.c - BlockedConcat: tensors of the blocked layout put behind each other along
 * channels, where one of them doesn't fill its last block: the channels of the next move into the
 * rest of it. Where all fill theirs, Concat does it.
 */
#include <string.h>

#include "base/checked.h"
#include "op/blocked/blocked_op.h"
#include "op/shared/unary_apply.h"

enum { PIXELS = 128 }; /* of a stretch: it stays in the nearest cache over all pieces */

typedef struct join_state {
    ort_blocked_state blocked;
    ort_ints channels; /* of each input */
} join_state;

static const ort_bind join_bind[] = {ORT_BIND(join_state, channels), {0}};

static ort_status join_infer(ort_infer *x, ort_error *err)
{
    size_t count = 0;
    const int64_t *channels = ort_node_ints(x->node, "channels", &count);
    int64_t block = ort_blocked_size(x->node, x->graph), sum = 0;
    ort_dim out[ORT_MAX_RANK];
    if (x->in_count < 1 || count != (size_t)x->in_count || block < 1)
        return ort_infer_fail(x, err, "%zu numbers of channels don't fit %d inputs", count,
                              x->in_count);
    for (size_t i = 0; i < count; i++)
        sum += channels[i];
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *t = &x->in[0]->type;
    for (int i = 0; i < t->rank; i++)
        out[i] = t->dim[i];
    if (t->rank < 3)
        return ort_infer_fail(x, err, "the input's rank isn't one of the layout");
    out[1] = ort_dim_of((sum + block - 1) / block);
    ort_infer_set_shape(x, 0, t->rank, out);
    return ORT_OK;
}

static ort_status join_shape(ort_shaping *sh, ort_error *err)
{
    const join_state *s = sh->state;
    const int64_t block = s->blocked.block;
    ort_blocked_dims *d = ort_arena_alloc(sh->arena, sizeof *d), in;
    if (!d)
        return ort_error_memory(err, sizeof *d);
    sh->plan_state = d;
    bool fits = ort_blocked_read(&s->blocked, &sh->out[0]->shape, d);
    for (int i = 0; fits && i < sh->in_count; i++)
        fits = ort_blocked_read(&s->blocked, &sh->in[i]->shape, &in) && in.n == d->n &&
               in.in[0] == d->in[0] && in.in[1] == d->in[1] &&
               in.blocks == (s->channels.ptr[i] + block - 1) / block;
    return fits ? ORT_OK : ort_error_set(err, ORT_ERROR_MODEL, "the inputs don't fit each other");
}

typedef struct join_job {
    ort_call *call;
    const join_state *s;
    const ort_blocked_dims *d;
    float *y;
} join_job;

static inline __attribute__((always_inline)) void copy_lanes(const float *from, float *to,
                                                             int64_t pixels, int64_t block,
                                                             size_t lanes)
{
    for (int64_t i = 0; i < pixels; i++)
        memcpy(to + i * block, from + i * block, lanes * sizeof *to);
}

/* `lanes` channels of each pixel, in pieces whose length the compiler knows. */
static void copy_piece(const float *from, float *to, int64_t pixels, int64_t block, int64_t lanes)
{
    int64_t done = 0;
    for (; lanes - done >= 8; done += 8)
        copy_lanes(from + done, to + done, pixels, block, 8);
    if (lanes - done >= 4) {
        copy_lanes(from + done, to + done, pixels, block, 4);
        done += 4;
    }
    if (lanes - done >= 2) {
        copy_lanes(from + done, to + done, pixels, block, 2);
        done += 2;
    }
    if (lanes > done)
        copy_lanes(from + done, to + done, pixels, block, 1);
}

/* One block of the output, `count` pixels from `pixel` on: from each input the channels that lie
 * in it, then zeros. */
static void join_stretch(const join_job *j, int64_t image, int64_t number, int64_t pixel,
                         int64_t count)
{
    const int64_t block = j->s->blocked.block, first = number * block;
    float *y = j->y + ((image * j->d->blocks + number) * j->d->plane + pixel) * block;
    int64_t place = 0, before = 0; /* of the block; channels of the inputs so far */
    for (int i = 0; i < j->call->in_count && place < block; i++) {
        const int64_t channels = j->s->channels.ptr[i], blocks = (channels + block - 1) / block;
        const float *x = ort_call_in(j->call, i)->data;
        while (place < block && first + place < before + channels) {
            int64_t channel = first + place - before, lane = channel % block;
            int64_t lanes = ort_min_i64(block - lane, block - place);
            lanes = ort_min_i64(lanes, channels - channel);
            const float *from = x + ((image * blocks + channel / block) * j->d->plane + pixel) *
                                        block + lane;
            copy_piece(from, y + place, count, block, lanes);
            place += lanes;
        }
        before += channels;
    }
    for (int64_t i = 0; i < count && place < block; i++)
        memset(y + i * block + place, 0, (size_t)(block - place) * sizeof *y);
}

static void task_join(void *arg, int64_t first, int64_t end, int thread)
{
    const join_job *j = arg;
    const int64_t plane = j->d->plane;
    int64_t count;
    for (; first < end; first += count) {
        int64_t at = first / plane, pixel = first % plane;
        count = ort_min_i64(ort_min_i64(end - first, plane - pixel), PIXELS);
        join_stretch(j, at / j->d->blocks, at % j->d->blocks, pixel, count);
    }
}

static ort_status join_run(ort_call *call, ort_error *err)
{
    const ort_blocked_dims *d = call->plan_state;
    join_job j = {call, call->state, d, ort_call_out(call, 0)->data};
    ort_call_range(call, d->n * d->blocks * d->plane,
                   ORT_ELEMENTWISE_GRAIN / j.s->blocked.block, task_join, &j);
    return ORT_OK;
}

static const ort_op_impl join_impl = {
    .state = sizeof(join_state), .bind = join_bind, .infer = join_infer,
    .prepare = ort_blocked_prepare, .shape = join_shape, .run = join_run,
};

const ort_op ort_ops_join_channels[] = {
    {ORT_INTERNAL, "BlockedConcat", 1, "inputs*:T -> Y:T", "T:f32", "block:i! channels:is!", 0,
     &join_impl},
    {0},
};
