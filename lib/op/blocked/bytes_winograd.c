/* bytes_winograd.c - quantized 3x3 convolution through tiles of 4x4 outputs, in whole numbers.
 *
 * A task is some tiles, in the order of rows, by some panels of output channels of one image:
 *
 *     input   [blocks][plane][16] uint8 -> v [36 points][tiles][channels] int16
 *     sums    v . u                     -> m [36 points][tiles][panel] int32    panel by panel
 *     output  m                         -> [blocks][plane][16] uint8
 *
 * A panel is a block of output channels, whose transformed filters lie as
 * u [panel][36 points][pair of channels][16].
 */
#include "op/blocked/bytes_winograd.h"

#include <string.h>

#include "base/checked.h"
#include "op/blocked/winograd_place.h"

enum {
    SIDE = 6,                    /* inputs along an axis */
    POINTS = SIDE * SIDE,
    TILE = 4,                    /* outputs */
    LEAST_CHANNELS = 16,
    UNKNOWN_EXTENT = 32,
    TILES_WANTED = 24,           /* of a task, whose sums of a panel stay in the nearest caches */
    INPUT_BYTES = 384 << 10,     /* transformed, of a task */
    TILES_LEAST = 12,
    TILES_SHARED = 8,            /* the same where a thread would have no task */
    FEW_TASKS = 4,
    WEIGHT_BYTES_MAX = 12 << 20,
    STREAM_BYTES = 12,           /* per cycle, from the last-level cache */
    NEAR_BYTES = 1 << 20,        /* weights that needn't come from there */
};

typedef struct winograd_plan {
    ort_blocked_dims in, out;
    int64_t top, left;                       /* paddings */
    int64_t tile_columns, all_tiles;         /* of an image */
    int64_t tiles, tile_blocks;              /* of a task; tasks along them */
    int64_t panels, task_panels, panel_blocks;
    int64_t channels;                        /* of whole blocks */
    int64_t v_point, m_point;                /* elements from a point to the next */
} winograd_plan;

static int64_t tiles_along(int64_t outputs)
{
    return (outputs + TILE - 1) / TILE;
}

double ort_bytes_winograd_share(const ort_type *y)
{
    double share = POINTS / 9.0;
    for (int i = 2; i < 4; i++) {
        if (y->rank < 4 || !ort_dim_known(y->dim[i]) || y->dim[i].size == 0)
            return 1;
        share *= (double)tiles_along(y->dim[i].size) / (double)y->dim[i].size;
    }
    return share;
}

static int64_t whole_blocks(int64_t channels)
{
    return (int64_t)ort_round_up((size_t)channels, ORT_BYTES_BLOCK);
}

/* ---- prepare */

/* Cycles of both ways: products in flight, transforms, weights that stream. */
static bool is_faster(const ort_bytes_kernels *k, const ort_bytes_winograd *s, double height,
                      double width, double tiles)
{
    const double channels = (double)whole_blocks(s->channels), maps = (double)s->maps;
    const double products = channels * maps, bytes = 2 * POINTS * products;
    double direct = 9 * height * width * products / k->conv_rate;
    double transformed = tiles * (POINTS * products / k->tiles_rate + 6 * channels + 12 * maps);
    if (bytes > NEAR_BYTES) {
        transformed += bytes / STREAM_BYTES;
        direct += 9 * products / STREAM_BYTES;
    }
    return transformed < 0.9 * direct;
}

bool ort_bytes_winograd_pays(const ort_prep *p, const ort_bytes_winograd *s,
                             const ort_window_spec *spec)
{
    const ort_type *t = &p->out[0]->type;
    int64_t extent[2] = {UNKNOWN_EXTENT, UNKNOWN_EXTENT};
    if (!p->k->bytes.tiles_in || s->channels < LEAST_CHANNELS || s->maps < LEAST_CHANNELS ||
        2 * POINTS * s->channels * s->maps > WEIGHT_BYTES_MAX)
        return false;
    for (int i = 0; i < spec->rank; i++)
        if (spec->stride[i] != 1 || spec->dilation[i] != 1)
            return false;
    for (int i = 0; i < 2; i++)
        if (t->kind == ORT_TYPE_TENSOR && t->rank == 5 && ort_dim_known(t->dim[2 + i]))
            extent[i] = t->dim[2 + i].size;
    return is_faster(&p->k->bytes, s, (double)extent[0], (double)extent[1],
                     (double)(tiles_along(extent[0]) * tiles_along(extent[1])));
}

static int64_t panels_of(int64_t maps)
{
    return whole_blocks(maps) / ORT_BYTES_BLOCK;
}

/* From a point to the next of a panel. */
static int64_t point_words(const ort_bytes_winograd *s)
{
    return whole_blocks(s->channels) / 2 * ORT_BYTES_BLOCK;
}

int64_t ort_bytes_winograd_words(const ort_bytes_winograd *s)
{
    return panels_of(s->maps) * POINTS * point_words(s);
}

void ort_bytes_winograd_block(const ort_bytes_kernels *k, const ort_bytes_winograd *s,
                              int64_t block, const int8_t *const *filters, int32_t *words)
{
    k->tiles_filter(filters, whole_blocks(s->channels), words + block * POINTS * point_words(s));
}

/* ---- shape */

ort_status ort_bytes_winograd_shape(ort_shaping *sh, const ort_bytes_winograd *s,
                                    const ort_blocked_dims *in, const ort_blocked_dims *out,
                                    const ort_window *w, ort_error *err)
{
    winograd_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    *p = (winograd_plan){.in = *in, .out = *out, .top = w->begin[0], .left = w->begin[1]};
    p->channels = whole_blocks(s->channels);
    p->tile_columns = tiles_along(w->out[1]);
    p->all_tiles = p->tile_columns * tiles_along(w->out[0]);
    p->tiles = INPUT_BYTES / (POINTS * p->channels * (int64_t)sizeof(int16_t));
    p->tiles = ort_max_i64(TILES_LEAST, ort_min_i64(p->tiles, TILES_WANTED));
    p->tile_blocks = (p->all_tiles + p->tiles - 1) / p->tiles;
    p->tiles = (p->all_tiles + p->tile_blocks - 1) / p->tile_blocks;
    p->panels = p->task_panels = panels_of(s->maps);
    p->panel_blocks = 1;
    while (out->n * p->tile_blocks * p->panel_blocks < FEW_TASKS && p->task_panels > 4) {
        p->task_panels = (p->task_panels + 1) / 2;
        p->panel_blocks = (p->panels + p->task_panels - 1) / p->task_panels;
    }
    p->v_point = ort_winograd_odd_lines(p->tiles * p->channels, sizeof(int16_t));
    p->m_point = ort_winograd_odd_lines(p->tiles * ORT_BYTES_BLOCK, sizeof(int32_t));
    sh->thread_bytes = (size_t)POINTS * ((size_t)p->v_point * sizeof(int16_t) +
                                         (size_t)p->m_point * sizeof(int32_t));
    sh->plan_state = p;
    return ORT_OK;
}

/* ---- run */

typedef struct winograd_job {
    ort_call *call;
    const ort_bytes_winograd *s;
    const winograd_plan *p;
    ort_winograd_cut tiles, outs; /* of an image, and panels */
    const uint8_t *x;
    uint8_t *y;
} winograd_job;

static ort_winograd_place place_of(const winograd_job *j, size_t task)
{
    return ort_winograd_place_of(task, j->tiles, j->outs);
}

/* The tiles from `tile` to the end of their row or of the task. */
static int64_t row_of_tiles(const winograd_plan *p, const ort_winograd_place *at, int64_t tile,
                            ort_bytes_tiles *t)
{
    int64_t column = tile % p->tile_columns, end = at->first + at->tiles;
    t->top = tile / p->tile_columns * TILE;
    t->left = column * TILE;
    t->tiles = ort_min_i64(p->tile_columns - column, end - tile);
    return tile + t->tiles;
}

static void transform_input(const winograd_job *j, const ort_winograd_place *at, int16_t *v)
{
    const winograd_plan *p = j->p;
    ort_bytes_tiles t = {.height = p->in.in[0], .width = p->in.in[1],
                         .x_zero = (uint8_t)j->s->x_zero, .v_tile = p->channels,
                         .v_point = p->v_point};
    for (int64_t b = 0; b < p->in.blocks; b++) {
        t.x = j->x + (at->image * p->in.blocks + b) * p->in.plane * ORT_BYTES_BLOCK;
        for (int64_t tile = at->first, next; tile < at->first + at->tiles; tile = next) {
            next = row_of_tiles(p, at, tile, &t);
            t.top -= p->top;
            t.left -= p->left;
            t.v = v + (tile - at->first) * p->channels + b * ORT_BYTES_BLOCK;
            j->call->k->bytes.tiles_in(&t);
        }
    }
}

static void multiply(const winograd_job *j, const ort_winograd_place *at, int64_t panel, int16_t *v,
                     int32_t *m)
{
    const ort_bytes_tiles t = {.tiles = at->tiles, .v = v, .v_tile = j->p->channels,
                               .v_point = j->p->v_point, .m_point = j->p->m_point};
    j->call->k->bytes.tiles_multiply(&t, j->s->w + panel * POINTS * point_words(j->s),
                                     j->p->channels, m);
}

static void transform_output(const winograd_job *j, const ort_winograd_place *at, int64_t block,
                             const int32_t *m)
{
    const winograd_plan *p = j->p;
    ort_bytes_tiles t = {.height = p->out.in[0], .width = p->out.in[1],
                         .m_point = p->m_point};
    t.out = (ort_bytes_out){.bias = j->s->bias + block * ORT_BYTES_BLOCK,
                            .scale = j->s->scale + block * ORT_BYTES_BLOCK,
                            .zero = j->s->y_zero, .bounded = j->s->bounded};
    t.whole = j->s->whole[block];
    for (int64_t tile = at->first, next; tile < at->first + at->tiles; tile = next) {
        next = row_of_tiles(p, at, tile, &t);
        t.out.y = j->y + ((at->image * p->out.blocks + block) * p->out.plane +
                          t.top * t.width + t.left) * ORT_BYTES_BLOCK;
        t.m = m + (tile - at->first) * ORT_BYTES_BLOCK;
        j->call->k->bytes.tiles_out(&t);
    }
}

static void task_winograd(void *arg, size_t task, int thread)
{
    const winograd_job *j = arg;
    const winograd_plan *p = j->p;
    const ort_winograd_place at = place_of(j, task);
    int16_t *v = ort_call_scratch(j->call, thread);
    int32_t *m = (int32_t *)(void *)(v + POINTS * p->v_point);
    transform_input(j, &at, v);
    for (int64_t panel = at.first_out; panel < at.first_out + at.outs; panel++) {
        multiply(j, &at, panel, v, m);
        transform_output(j, &at, panel, m);
    }
}

void ort_bytes_winograd_run(ort_call *call, const ort_bytes_winograd *s)
{
    const winograd_plan *p = call->plan_state;
    winograd_job j = {call, s, p, {p->all_tiles, p->tiles, p->tile_blocks},
                      {p->panels, p->task_panels, p->panel_blocks}, ort_call_in(call, 0)->data,
                      ort_call_out(call, 0)->data};
    ort_winograd_spread(&j.tiles, &j.outs, p->out.n, ort_call_width(call), TILES_SHARED, 1);
    ort_call_parallel(call, (size_t)(p->out.n * j.tiles.parts * j.outs.parts), task_winograd, &j);
}
