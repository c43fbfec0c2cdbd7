/* winograd.c - 3x3 convolution through tiles of 4x4 outputs.
 *
 * A task is some tiles, in the order of rows, by some vectors of output channels of one image:
 *
 *     input   [blocks][plane][B]  -> v [36][blocks][tiles][B]       all input channels
 *     sums    v . u               -> m [36][panel][tiles][B]        panel by panel, 36 products
 *     output  m                   -> y [blocks][plane][B]           bias, residual, clamp
 *
 * The 36 products are 1x1 convolutions over `tiles` pixels, by the kernel that does those. v stays
 * in the second-level cache while the weights stream past it.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked.h"
#include "op/blocked/winograd.h"
#include "op/blocked/winograd_place.h"
#include "op/written.h"

enum {
    POSITIONS = 36,
    TILE = 4,                /* outputs along an axis */
    LEAST_CHANNELS = 8,
    TASKS_WANTED = 8,
    FEW_TASKS = 4,           /* along the tiles, where each may read all the weights, so many: */
    FEW_BYTES = 256 << 10,
    TILES_LEAST = 12,        /* of a task: what the micro tiles of the product fill */
    TILES_SHARED = 6,        /* the same where a thread would have no task */
    UNKNOWN_EXTENT = 32,
    NEAR_BYTES = 1 << 20,        /* weights that stay in the second-level cache, and what */
    INPUT_BYTES_NEAR = 256 << 10, /* they leave to the transformed input of a task */
    INPUT_BYTES_FAR = 640 << 10, /* weights that stream: fewer, larger tasks */
    WEIGHT_BYTES_MAX = 12 << 20,
    STREAM_BYTES = 12,           /* per cycle, from the last-level cache */
};

typedef struct winograd_plan {
    ort_blocked_dims in, out;
    int64_t top, left;                  /* paddings */
    int64_t tile_columns, all_tiles;    /* of an image */
    int64_t tiles, tile_blocks;         /* of a task; tasks along them */
    int64_t vectors, task_vectors, vector_blocks;
    int64_t v_step, m_step;             /* floats between positions */
} winograd_plan;

static int64_t tiles_along(int64_t outputs)
{
    return (outputs + TILE - 1) / TILE;
}

double ort_winograd_share(const ort_type *y)
{
    double outputs = 1, tiles = 1;
    for (int i = 2; i < 4; i++) {
        if (y->rank < 4 || !ort_dim_known(y->dim[i]) || y->dim[i].size == 0)
            return 1;
        outputs *= (double)y->dim[i].size;
        tiles *= (double)tiles_along(y->dim[i].size);
    }
    return POSITIONS * tiles / (9 * outputs);
}

/* ---- prepare */

static bool is_3x3(const ort_blocked_state *s)
{
    const ort_window_spec *w = &s->spec;
    bool plain_steps = true;
    for (int i = 0; i < w->rank; i++)
        plain_steps &= w->stride[i] == 1 && w->dilation[i] == 1;
    return s->kernel[0] == 3 && s->kernel[1] == 3 && plain_steps;
}

static int64_t weight_bytes(const ort_blocked_state *s)
{
    return POSITIONS * s->channels * s->maps * (int64_t)sizeof(float);
}

/* Cycles of both ways: products, transforms (measured at 4 vectors' worth each) and weights that
 * stream. */
static bool is_faster(const ort_blocked_state *s, double height, double width, double tiles)
{
    double maps = (double)s->maps, channels = (double)s->channels, lanes = (double)s->block;
    double products = channels * maps / (2 * lanes), bytes = (double)weight_bytes(s);
    double direct = 9 * height * width * products;
    double transformed = POSITIONS * tiles * (1.15 * products + 4 * (channels + maps) / lanes);
    if (bytes > NEAR_BYTES) {
        transformed += bytes / STREAM_BYTES;
        direct += bytes / 4 / STREAM_BYTES;
    }
    return transformed < direct;
}

/* Filters beyond WEIGHT_BYTES_MAX, of 512 channels and their small maps, gain a quarter of their
 * time at most and would cost 4 times their memory. */
bool ort_winograd_pays(const ort_prep *p, const ort_blocked_state *s)
{
    const ort_type *t = &p->out[0]->type;
    int64_t extent[2] = {UNKNOWN_EXTENT, UNKNOWN_EXTENT};
    if (p->math_strict || s->plain || s->depthwise || s->group > 1 || !s->inner || !is_3x3(s) ||
        s->channels < LEAST_CHANNELS || s->maps < LEAST_CHANNELS ||
        weight_bytes(s) > WEIGHT_BYTES_MAX)
        return false;
    for (int i = 0; i < 2; i++)
        if (t->kind == ORT_TYPE_TENSOR && t->rank == 5 && ort_dim_known(t->dim[2 + i]))
            extent[i] = t->dim[2 + i].size;
    return is_faster(s, (double)extent[0], (double)extent[1],
                     (double)(tiles_along(extent[0]) * tiles_along(extent[1])));
}

typedef struct filter_job { /* straight: a panel for each thread, which stays in its cache */
    const ort_blocked_state *s;
    const char *w;
    float *out, *straight;
    int64_t vectors;
    atomic_bool *odd; /* some weight isn't finite */
} filter_job;

static void task_filter(void *arg, size_t task, int thread)
{
    const filter_job *j = arg;
    const ort_blocked_state *s = j->s;
    const int64_t lanes = s->k->vector, v = (int64_t)task * 2, first = v * lanes;
    const int64_t width = ort_min_i64(2, j->vectors - v) * lanes;
    const int64_t real = ort_max_i64(0, ort_min_i64(width, s->maps - first));
    float *straight = j->straight + thread * ort_min_i64(2, j->vectors) * lanes * s->channels * 9;
    s->k->pack_panel(j->w + first * s->channels * 9 * (int64_t)sizeof(float), s->channels * 9, real,
                     width, s->channels, 9, straight);
    if (!ort_blocked_finite(straight, s->channels * 9 * width))
        *j->odd = true;
    s->k->winograd_filter(straight, s->channels, width, j->out + POSITIONS * first * s->channels);
}

ort_status ort_winograd_pack(ort_prep *p, ort_blocked_state *s, const ort_tensor *w, ort_error *err)
{
    size_t padded = ort_round_up((size_t)s->maps, (size_t)s->block);
    size_t total = padded * (size_t)s->channels * POSITIONS * sizeof(float);
    bool fill;
    float *out = ort_prep_pack(p, "winograd", 1u << 1, total + sizeof *out, &fill);
    int64_t lanes = s->k->vector, vectors = (int64_t)padded / lanes;
    if (!out)
        return ort_error_memory(err, total);
    s->w = out;
    s->finite = fill || out[total / sizeof *out] > 0;
    ort_prep_absorb(p, 1);
    if (!fill)
        return ORT_OK;
    size_t bytes = (size_t)(ort_min_i64(2, vectors) * lanes * s->channels) * 9 * sizeof *out *
                   (size_t)ort_prep_threads(p);
    atomic_bool odd = false;
    filter_job job = {s, w->data, out, malloc(bytes), vectors, &odd};
    if (!job.straight)
        return ort_error_memory(err, bytes);
    ort_prep_fill(p, total, (size_t)(vectors + 1) / 2, task_filter, &job);
    out[total / sizeof *out] = s->finite = !odd;
    free(job.straight);
    return ORT_OK;
}

/* ---- shape */

/* Output channels of a panel are one or two vectors, never less than a block. */
static int64_t panel_vectors(const ort_blocked_state *s)
{
    return ort_max_i64(2, s->block / s->k->vector);
}

ort_status ort_winograd_shape(ort_shaping *sh, const ort_blocked_dims *in,
                              const ort_blocked_dims *out, const ort_window *w, ort_error *err)
{
    const ort_blocked_state *s = sh->state;
    winograd_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    int64_t panel = panel_vectors(s), channels = in->blocks * s->block, bytes;
    if (!p)
        return ort_error_memory(err, sizeof *p);
    *p = (winograd_plan){.in = *in, .out = *out, .top = w->begin[0], .left = w->begin[1]};
    p->tile_columns = tiles_along(w->out[1]);
    p->all_tiles = p->tile_columns * tiles_along(w->out[0]);
    bytes = weight_bytes(s) > NEAR_BYTES ? INPUT_BYTES_FAR : INPUT_BYTES_NEAR;
    p->tiles = bytes / (POSITIONS * channels * (int64_t)sizeof(float));
    p->tiles = ort_min_i64(ort_max_i64(p->tiles, TILES_LEAST), p->all_tiles);
    p->tile_blocks = (p->all_tiles + p->tiles - 1) / p->tiles;
    if (out->n * p->tile_blocks < FEW_TASKS && weight_bytes(s) <= FEW_BYTES)
        p->tile_blocks = ort_max_i64(p->tile_blocks,
                                     ort_min_i64(FEW_TASKS, p->all_tiles / TILES_LEAST));
    p->tiles = (p->all_tiles + p->tile_blocks - 1) / p->tile_blocks;
    p->vectors = out->blocks * s->block / s->k->vector;
    p->task_vectors = p->vectors;
    p->vector_blocks = 1;
    while (out->n * p->tile_blocks * p->vector_blocks < TASKS_WANTED &&
           p->task_vectors > 4 * panel) {
        p->task_vectors = (p->task_vectors / panel + 1) / 2 * panel;
        p->vector_blocks = (p->vectors + p->task_vectors - 1) / p->task_vectors;
    }
    p->v_step = ort_winograd_odd_lines(p->tiles * channels, sizeof(float));
    p->m_step = ort_winograd_odd_lines(p->tiles * panel * s->k->vector, sizeof(float));
    sh->thread_bytes = (size_t)(POSITIONS * (p->v_step + p->m_step)) * sizeof(float);
    sh->plan_state = p;
    return ORT_OK;
}

/* ---- run */

typedef struct winograd_job {
    ort_call *call;
    const ort_blocked_state *s;
    const winograd_plan *p;
    ort_winograd_cut tiles, outs; /* of an image, and output vectors */
    const float *x, *z;
    float *y;
    const ort_written *written;
} winograd_job;

static ort_winograd_place place_of(const winograd_job *j, size_t task)
{
    return ort_winograd_place_of(task, j->tiles, j->outs);
}

/* The tiles from `tile` to the end of their row or of the task. */
static int64_t row_of_tiles(const winograd_job *j, const ort_winograd_place *at, int64_t tile,
                            ort_blocked_tiles *t)
{
    int64_t column = tile % j->p->tile_columns, end = at->first + at->tiles;
    t->top = tile / j->p->tile_columns * TILE;
    t->left = column * TILE;
    t->tiles = ort_min_i64(j->p->tile_columns - column, end - tile);
    return tile + t->tiles;
}

static void transform_input(const winograd_job *j, const ort_winograd_place *at, float *v)
{
    const winograd_plan *p = j->p;
    int64_t block = j->s->block;
    ort_blocked_tiles t = {
        .height = p->in.in[0], .width = p->in.in[1], .v_step = p->v_step};
    for (int64_t b = 0; b < p->in.blocks; b++) {
        t.x = j->x + (at->image * p->in.blocks + b) * p->in.plane * block;
        for (int64_t tile = at->first, next; tile < at->first + at->tiles; tile = next) {
            next = row_of_tiles(j, at, tile, &t);
            t.top -= p->top;
            t.left -= p->left;
            t.v = v + (b * at->tiles + tile - at->first) * block;
            j->s->k->winograd_input(&t);
        }
    }
}

static void multiply(const winograd_job *j, const ort_winograd_place *at, int64_t vector,
                     int64_t vectors, const float *v, float *m)
{
    const ort_blocked_state *s = j->s;
    int64_t lanes = s->k->vector, pixels = at->tiles * s->block;
    int64_t visits = (at->tiles + s->k->pixels - 1) / s->k->pixels;
    const float *u = s->w + vector * lanes * s->channels * POSITIONS;
    ort_blocked_conv c = {.window = {.width = at->tiles, .rows = 1, .columns = 1, .stride = 1,
                                     .dilation = 1},
                          .out = {.y_block = pixels, .lo = -INFINITY, .hi = INFINITY,
                                  .count = at->tiles},
                          .x_block = pixels,
                          .channels = s->channels,
                          .w_rows = 1,
                          .ahead_step = (2 * lanes + visits - 1) / visits,
                          .vectors = vectors,
                          .finite = s->finite};
    for (int64_t i = 0; i < POSITIONS; i++) {
        c.window.x = v + i * j->p->v_step;
        c.out.y = m + i * j->p->m_step;
        c.w = u + i * s->channels * vectors * lanes;
        c.ahead = c.w + s->channels * vectors * lanes;
        s->k->conv(&c);
    }
}

/* The outputs of tiles from t->top and t->left on, which begin at `place`. */
static void hand_on(const winograd_job *j, const ort_blocked_tiles *t, int64_t place, int thread)
{
    const int64_t block = j->s->block, width = ort_min_i64(t->tiles * TILE, t->width - t->left);
    const int64_t height = ort_min_i64(TILE, t->height - t->top);
    const bool whole = width == t->width; /* rows follow one another */
    for (int64_t i = 0; i < (whole ? 1 : height); i++)
        ort_written_part(j->written, place + i * t->width * block,
                         (whole ? height : 1) * width * block, thread);
}

static void transform_output(const winograd_job *j, const ort_winograd_place *at, int64_t block,
                             float *m, int thread)
{
    const winograd_plan *p = j->p;
    const ort_blocked_state *s = j->s;
    ort_blocked_tiles t = {.height = p->out.in[0], .width = p->out.in[1], .v_step = p->m_step};
    t.out = (ort_blocked_out){.bias = s->bias ? s->bias + block * s->block : NULL,
                              .slope = s->slope ? s->slope + block * s->block : NULL,
                              .lo = s->epilogue.lo,
                              .hi = s->epilogue.hi};
    for (int64_t tile = at->first, next; tile < at->first + at->tiles; tile = next) {
        next = row_of_tiles(j, at, tile, &t);
        int64_t pixel = t.top * t.width + t.left;
        int64_t place = ((at->image * p->out.blocks + block) * p->out.plane + pixel) * s->block;
        t.out.y = j->y + place;
        t.out.z = j->z ? j->z + place : NULL;
        t.v = m + (tile - at->first) * s->block;
        s->k->winograd_output(&t);
        t.out.count = ort_min_i64(t.tiles * TILE, t.width - t.left);
        for (int64_t i = t.top; i < ort_min_i64(t.top + TILE, t.height); i++) {
            ort_blocked_activate(j->call, s, &t.out, 1);
            t.out.y += t.width * s->block;
        }
        hand_on(j, &t, place, thread);
    }
}

static void task_winograd(void *arg, size_t task, int thread)
{
    const winograd_job *j = arg;
    const winograd_plan *p = j->p;
    ort_winograd_place at = place_of(j, task);
    float *v = ort_call_scratch(j->call, thread), *m = v + POSITIONS * p->v_step;
    int64_t panel = panel_vectors(j->s), lanes = j->s->k->vector, end;
    transform_input(j, &at, v);
    end = at.first_out + at.outs;
    for (int64_t first = at.first_out; first < end; first += panel) {
        int64_t vectors = ort_min_i64(panel, end - first);
        multiply(j, &at, first, vectors, v, m);
        for (int64_t i = 0; i < vectors * lanes / j->s->block; i++)
            transform_output(j, &at, first * lanes / j->s->block + i,
                             m + i * at.tiles * j->s->block, thread);
    }
}

ort_status ort_winograd_run(ort_call *call, ort_error *err)
{
    const winograd_plan *p = call->plan_state;
    const ort_tensor *z = ort_call_in(call, 3);
    winograd_job j = {.call = call,
                      .s = call->state,
                      .p = p,
                      .tiles = {p->all_tiles, p->tiles, p->tile_blocks},
                      .outs = {p->vectors, p->task_vectors, p->vector_blocks},
                      .x = ort_call_in(call, 0)->data,
                      .z = z ? z->data : NULL,
                      .y = ort_call_out(call, 0)->data,
                      .written = ort_written_begin(call)};
    ort_winograd_spread(&j.tiles, &j.outs, p->out.n, ort_call_width(call), TILES_SHARED,
                        panel_vectors(j.s));
    ort_call_parallel(call, (size_t)(p->out.n * j.tiles.parts * j.outs.parts), task_winograd, &j);
    return ORT_OK;
}
