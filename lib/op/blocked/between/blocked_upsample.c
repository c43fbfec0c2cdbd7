/* blocked_upsample.c - larger planes by whole factors, in the blocked layout: nearest (the pixel of
 * the rounded down quotient) or linear. Both domains have it: com.microsoft.nchwc as Upsample, a
 * session as BlockedUpsample.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/blocked/blocked_op.h"
#include "op/shared/unary_apply.h"

typedef struct upsample_state {
    int64_t block, scale[2]; /* scale: of height and width, the last of scales */
    ort_ints scales;
    const ort_blocked_kernels *k;
    bool inner; /* the block is an axis of its own */
    bool linear;
    enum { ASYMMETRIC, ALIGN_CORNERS, HALF_PIXEL } mode;
} upsample_state;

static ort_status upsample_infer(ort_infer *x, ort_error *err)
{
    size_t count = 0;
    const int64_t *scales = ort_node_ints(x->node, "scales", &count);
    if (count != 4 || scales[0] != 1 || scales[1] != 1 || scales[2] < 1 || scales[3] < 1)
        return ort_infer_fail(x, err, "attribute scales isn't 1, 1 and two positive factors");
    int rank = ort_blocked_inner(x->node) ? 5 : 4;
    if (!ort_infer_in_ranked(x, 0) || x->in[0]->type.rank != rank)
        return ORT_OK;
    ort_dim out[5] = {{0}};
    for (int i = 0; i < rank; i++)
        out[i] = ort_dim_mul(x->dims, x->in[0]->type.dim[i],
                             ort_dim_of(i < 4 ? scales[i] : 1));
    ort_infer_set_shape(x, 0, rank, out);
    return ORT_OK;
}

static const ort_bind upsample_bind[] = {
    ORT_BIND_AS(upsample_state, mode, "coordinate_transformation_mode",
                ORT_WORDS("asymmetric align_corners half_pixel")),
    ORT_BIND_AS(upsample_state, linear, "mode", ORT_WORDS("nearest linear")),
    ORT_BIND(upsample_state, scales), {0}};

static ort_status upsample_prepare(ort_prep *p, ort_error *err)
{
    upsample_state *s = p->state;
    s->inner = ort_blocked_inner(p->node);
    s->block = ort_blocked_size(p->node, p->graph);
    s->k = ort_blocked_kernels_of(p->k, s->block);
    if (!s->k)
        return ort_prep_fail(p, err, "blocks of %lld channels aren't known", (long long)s->block);
    s->scale[0] = s->scales.ptr[2];
    s->scale[1] = s->scales.ptr[3];
    return ORT_OK;
}

/* Of an output coordinate. */
static ort_blocked_place place_of(const upsample_state *s, int axis, int64_t at, int64_t in)
{
    int64_t scale = s->scale[axis], out = in * scale;
    float x = (float)at / (float)scale;
    if (s->mode == ALIGN_CORNERS)
        x = out > 1 ? (float)at * (float)(in - 1) / (float)(out - 1) : 0;
    else if (s->mode == HALF_PIXEL)
        x = ((float)at + 0.5f) / (float)scale - 0.5f;
    x = fminf(fmaxf(x, 0), (float)(in - 1));
    int64_t low = (int64_t)x;
    return (ort_blocked_place){low, ort_min_i64(low + 1, in - 1), x - (float)low};
}

typedef struct upsample_job {
    const upsample_state *s;
    const ort_blocked_place *places;
    int64_t in[2];
    const float *x;
    float *y;
} upsample_job;

/* Linear: the places of a row's pixels. */
static ort_status upsample_shape(ort_shaping *sh, ort_error *err)
{
    const upsample_state *s = sh->state;
    const int64_t in = sh->in[0]->shape.dim[3], out = in * s->scale[1];
    if (!s->linear)
        return ORT_OK;
    ort_blocked_place *places = ort_arena_array(sh->arena, (size_t)out + 1, sizeof *places);
    if (!places)
        return ort_error_memory(err, (size_t)out * sizeof *places);
    for (int64_t i = 0; i < out; i++)
        places[i] = place_of(s, 1, i, in);
    sh->plan_state = places;
    return ORT_OK;
}

static void linear_row(const upsample_job *j, const float *x, int64_t oy, float *y)
{
    const upsample_state *s = j->s;
    int64_t row = j->in[1] * s->block;
    ort_blocked_place v = place_of(s, 0, oy, j->in[0]);
    s->k->mix_row(x + v.low * row, x + v.high * row, v.part, j->places, j->in[1] * s->scale[1], y);
}

/* Each pixel of the row `times` times side by side; blocks are 8 or 16 channels. */
static void repeat_pixels(const float *x, int64_t pixels, int64_t times, int64_t block, float *y)
{
    enum { HALF = 8 };
    for (int64_t i = 0; i < pixels; i++, x += block)
        for (int64_t t = 0; t < times; t++, y += block) {
            memcpy(y, x, HALF * sizeof *y);
            if (block > HALF)
                memcpy(y + HALF, x + HALF, HALF * sizeof *y);
        }
}

/* Input rows [first, end) of all planes in a row, each with the output rows that grow from it. */
static void task_upsample(void *arg, int64_t first, int64_t end, int thread)
{
    const upsample_job *j = arg;
    const upsample_state *s = j->s;
    int64_t row = j->in[1] * s->scale[1] * s->block;
    for (; first < end; first++) {
        int64_t plane = first / j->in[0], at = first % j->in[0];
        const float *x = j->x + plane * j->in[0] * j->in[1] * s->block;
        float *y = j->y + first * s->scale[0] * row;
        for (int64_t i = 0; i < s->scale[0]; i++, y += row)
            if (s->linear)
                linear_row(j, x, at * s->scale[0] + i, y);
            else if (i > 0)
                memcpy(y, y - row, (size_t)row * sizeof *y);
            else
                repeat_pixels(x + at * j->in[1] * s->block, j->in[1], s->scale[1], s->block, y);
    }
}

static ort_status upsample_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    upsample_job j = {call->state, call->plan_state, {x->shape.dim[2], x->shape.dim[3]}, x->data,
                      ort_call_out(call, 0)->data};
    int64_t planes = x->shape.dim[0] * x->shape.dim[1] / (j.s->inner ? 1 : j.s->block);
    if (j.s->inner ? x->shape.dim[4] != j.s->block : x->shape.dim[1] % j.s->block != 0)
        return ort_error_set(err, ORT_ERROR_MODEL, "%lld channels aren't whole blocks of %lld",
                             (long long)x->shape.dim[1], (long long)j.s->block);
    int64_t floats = j.in[1] * j.s->scale[0] * j.s->scale[1] * j.s->block; /* out of a row */
    ort_call_range(call, planes * j.in[0],
                   ort_max_i64(1, ORT_ELEMENTWISE_GRAIN / ort_max_i64(1, floats)), task_upsample,
                   &j);
    return ORT_OK;
}

static const ort_op_impl upsample_impl = {
    .state = sizeof(upsample_state), .bind = upsample_bind, .infer = upsample_infer,
    .prepare = upsample_prepare, .shape = upsample_shape, .run = upsample_run,
};

#define UPSAMPLE_ATTRS "coordinate_transformation_mode:s=asymmetric mode:s=nearest scales:is"

const ort_op ort_ops_blocked_upsample[] = {
    {NCHWC, "Upsample", 1, "X:T -> Y:T", "T:f32", UPSAMPLE_ATTRS, 0, &upsample_impl},
    {ORT_INTERNAL, "BlockedUpsample", 1, "X:T -> Y:T", "T:f32", "block:i! " UPSAMPLE_ATTRS, 0,
     &upsample_impl},
    {0},
};
