/* conv_tiled.c - convolutions of the blocked layout on tiles, each float as three thirds of
 * bfloat16 (kernel/blocked.h, ort_blocked_tiled).
 *
 * A task is a strip of output rows by some vectors of output channels of one image and group. The
 * input rows under its strip are split, with their padding, into thirds pixel by pixel; every tap
 * and every output finds them there. Rows lie by their place under the stride, so that pixels of
 * output rows are lines of even steps. A 1x1 window splits what its strides take.
 *
 * A thread splits the strip of its task and keeps it for the next, which mostly is of the same
 * strip; without strides and window a strip is one line of pixels, split while the first panel is
 * multiplied. Many threads with few strips split these once, all together, into memory that tasks
 * of some vectors share; a few don't, since lines that another core has just written take longer
 * to read than to split again.
 *
 * Strips follow from sizes alone. One whose elements don't fit (infinite, NaN, very large, or all
 * of them tiny: thirds.h) is computed in floats, of weights that their thirds give back, so that
 * such elements spread as they do elsewhere; the other strips are not, with any number of threads.
 * A filter with such weights keeps them as floats.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/blocked/conv_tiled.h"

enum {
    PIXEL_BYTES = 64,          /* of a third */
    THIRDS = 3,
    COPY_BYTES = 768 << 10,    /* of a strip: a part of the second-level cache, as its weights */
    LEAST_PIXELS = 16,
    UNKNOWN_EXTENT = 32,
    TASKS_A_THREAD = 3,
    STRIPS_SHARED = 8,         /* of all images and groups, at most */
    STRIPS_WANTED = 6,         /* of the same, where each reads all weights from the second-level */
    WEIGHT_BYTES = 1 << 20,    /* ... cache, which so many are for, */
    STRIPS_FAR = 2,            /* or from beyond it: */
    STRIP_PIXELS = 64,         /* ... of so many pixels at least, */
    STRIP_ROWS = 4,            /* ... or rows, since those at its edges are split twice */
    LEAST_TILE_CYCLES = 10,    /* of a product, however few pixels its tile has */
    OWN_THREADS = 4,           /* at most, which split strips for themselves */
};

#define GAIN_WANTED 0.8 /* time on tiles over that of floats, at most */

typedef struct tiled_plan {
    ort_blocked_dims in, out;
    ort_window w;            /* flat: strips are its rows */
    bool flat;               /* 1x1, nothing padded */
    int64_t group_blocks, vectors; /* of one group: input blocks, output vectors */
    int64_t rows, strips;    /* output rows of a strip; strips of an image */
    int64_t pitch, row;      /* pixels: from an output row to the next; of a split row */
    int64_t phase_rows;      /* split rows of each place under the stride */
    int64_t third;           /* bytes of one */
    int64_t *offset;         /* of each tap */
    int64_t panel_at;        /* in a thread's scratch: weights as floats */
    int64_t copy;            /* bytes of a strip that is shared, or 0: none is */
} tiled_plan;

/* What a thread's scratch begins with: the strip that was split into it last. */
typedef struct held_strip {
    int64_t index;  /* -1: none */
    uint32_t size;
    char line[64 - sizeof(int64_t) - sizeof(uint32_t)];
} held_strip;

typedef struct strip_size { /* of a shared strip, at the workspace's beginning */
    _Atomic uint32_t most;
} strip_size;

static int64_t taps_of(const ort_blocked_state *s)
{
    return s->kernel[0] * s->kernel[1];
}

static int64_t blocks_of(const ort_blocked_state *s, int64_t channels)
{
    return ort_blocked_count(channels, s->block);
}

/* ---- prepare */

/* Extents of a blocked tensor's planes, along the strides; unknown ones are middling. */
static double pixels_of(const ort_type *t, const ort_window_spec *strided)
{
    double pixels = 1;
    for (int i = 2; i + 1 < t->rank; i++) {
        const double extent = ort_dim_known(t->dim[i]) ? (double)t->dim[i].size : UNKNOWN_EXTENT;
        pixels *= extent * (strided ? (double)strided->stride[i - 2] : 1);
    }
    return pixels;
}

/* Cycles of both ways for an output pixel, fitted to 23 convolutions of resnet50 and mobilenet_v2
 * on a core that nobody shares: products, on tiles of whole blocks of channels; splitting what a
 * window and its stride go over; finishing sums; weights, 6 bytes each, read again for every strip.
 *
 * Where another program runs on the core's other thread, tiles lose more than floats do: a load of
 * a tile takes 4 times as long and a product 2.5, where floats take 1.8. What is twice as fast
 * alone then is as fast as floats, and what gains less than this share loses as much. */
static bool is_faster(const ort_blocked_state *s, const ort_type *y)
{
    const double maps = (double)(s->maps / s->group), taps = (double)(s->kernel[0] * s->kernel[1]);
    const double products = (double)s->channels * taps * maps, pixels = pixels_of(y, NULL);
    const double over = pixels_of(y, taps > 1 ? &s->spec : NULL) / pixels;
    const double strips = pixels * over * (double)s->channels * 6 / COPY_BYTES;
    const double floats = products / 30;
    const double whole = (double)(blocks_of(s, s->channels) * s->block);
    const double tiled = whole * taps * maps * 0.0163 +
                         (double)s->channels * over * 0.83 + maps * 0.27 +
                         products * 0.68 * fmax(strips, 1) / pixels;
    return tiled < GAIN_WANTED * floats && pixels >= LEAST_PIXELS;
}

bool ort_conv_tiled_pays(const ort_prep *p, const ort_blocked_state *s)
{
    const ort_type *t = &p->out[0]->type;
    return s->k->tiled && !p->math_strict && !s->plain && !s->depthwise && s->inner &&
           t->kind == ORT_TYPE_TENSOR && t->rank >= 4 && is_faster(s, t);
}

/* What lies behind the panels of a filter. */
typedef struct panels_tail {
    int64_t floats; /* the panels hold floats: not every weight has thirds */
} panels_tail;

static int64_t panel_bytes(const ort_blocked_state *s, int64_t vectors)
{
    return vectors * ort_blocked_tiled_bytes(taps_of(s), blocks_of(s, s->channels));
}

/* Panels of two vectors, the last one may be one. A panel of floats takes less than its thirds. */
static bool pack_group(const ort_blocked_state *s, const char *w, bool floats, float *near,
                       char *out)
{
    const int64_t maps = s->maps / s->group, taps = taps_of(s), depth = s->channels * taps;
    const int64_t vectors = blocks_of(s, maps);
    bool fits = true;
    for (int64_t v = 0; v < vectors && fits; v += 2) {
        const int64_t first = v * s->block, count = ort_min_i64(2, vectors - v);
        const int64_t width = count * s->block, real = ort_min_i64(width, maps - first);
        s->k->pack_panel(w + first * depth * (int64_t)sizeof(float), depth, real, width,
                         s->channels, taps, floats ? (float *)(void *)out : near);
        fits = floats || s->k->tiled_pack(near, s->channels, taps, (int)count, out);
        out += panel_bytes(s, count);
    }
    return fits;
}

static bool pack_groups(const ort_blocked_state *s, const char *w, bool floats, float *near,
                        char *out)
{
    const int64_t bytes = s->maps / s->group * s->channels * taps_of(s) * (int64_t)sizeof(float);
    bool fits = true;
    for (int64_t g = 0; g < s->group && fits; g++)
        fits = pack_group(s, w + g * bytes, floats, near, out + g * s->group_floats * 4);
    return fits;
}

ort_status ort_conv_tiled_pack(ort_prep *p, ort_blocked_state *s, const ort_tensor *w,
                               ort_error *err)
{
    const int64_t depth = s->channels * taps_of(s);
    const int64_t bytes = panel_bytes(s, blocks_of(s, s->maps / s->group));
    const size_t near_bytes = (size_t)(2 * s->block * depth) * sizeof(float);
    s->group_floats = bytes / (int64_t)sizeof(float);
    bool fill;
    char *out = ort_prep_pack(p, "thirds", 1u << 1,
                              (size_t)(s->group * bytes) + sizeof(panels_tail), &fill);
    if (!out)
        return ort_error_memory(err, (size_t)(s->group * bytes));
    panels_tail *tail = (panels_tail *)(void *)(out + s->group * bytes);
    s->w = (const float *)(const void *)out;
    s->tiled_floats = !fill && tail->floats;
    ort_prep_absorb(p, 1);
    if (!fill)
        return ORT_OK;
    float *near = malloc(near_bytes); /* stays in the cache */
    if (!near)
        return ort_error_memory(err, near_bytes);
    s->tiled_floats = !pack_groups(s, w->data, false, near, out);
    tail->floats = s->tiled_floats;
    if (s->tiled_floats)
        pack_groups(s, w->data, true, near, out);
    free(near);
    return ORT_OK;
}

/* ---- shape */

/* A 1x1 window without strides: a strip is a stretch of the plane. */
static bool is_line(const tiled_plan *p)
{
    return p->flat && p->w.stride[0] == 1 && p->w.stride[1] == 1;
}

/* Split rows of each place under the stride, under `rows` output rows. */
static int64_t phase_rows(const tiled_plan *p, int64_t rows)
{
    const int64_t stride = p->flat ? 1 : p->w.stride[0];
    const int64_t under = p->flat ? rows : (rows - 1) * stride + ort_blocked_reach(&p->w, 0);
    return (under + stride - 1) / stride;
}

static int64_t third_bytes(const tiled_plan *p, int64_t rows)
{
    return phase_rows(p, rows) * (p->flat ? 1 : p->w.stride[0]) * p->row * PIXEL_BYTES;
}

static int64_t copy_bytes(const tiled_plan *p, int64_t rows)
{
    return (p->group_blocks + 1) / 2 * THIRDS * third_bytes(p, rows);
}

/* Where row r of those under a strip lies, in pixels. */
static int64_t place_of(const tiled_plan *p, int64_t r)
{
    return (r % p->w.stride[0] * p->phase_rows + r / p->w.stride[0]) * p->row;
}

/* Strips of an image and group that threads would like. */
static int64_t strips_wanted(const ort_blocked_state *s, const tiled_plan *p)
{
    const int64_t others = ort_max_i64(p->out.n * s->group, 1);
    const int64_t all = panel_bytes(s, p->vectors) > WEIGHT_BYTES ? STRIPS_FAR : STRIPS_WANTED;
    return (all + others - 1) / others;
}

/* 1x1 without strides: strips are pieces of the plane, each one row. */
static void plan_pieces(tiled_plan *p, int64_t wanted)
{
    ort_window *w = &p->w;
    const int64_t pixel = (p->group_blocks + 1) / 2 * THIRDS * PIXEL_BYTES;
    const int64_t likely = ort_min_i64(wanted, p->out.plane / STRIP_PIXELS);
    const int64_t strips = ort_max_i64(ort_max_i64(1, likely), p->out.plane * pixel / COPY_BYTES);
    w->out[1] = w->in[1] = (p->out.plane + strips - 1) / strips;
    w->out[0] = w->in[0] = (p->out.plane + w->out[1] - 1) / w->out[1];
    p->rows = 1;
}

static void plan_strips(tiled_plan *p, int64_t wanted)
{
    ort_window *w = &p->w;
    const int64_t reach = (w->out[1] - 1) * w->stride[1] + ort_blocked_reach(w, 1);
    p->pitch = p->flat ? w->out[1] : (reach + w->stride[1] - 1) / w->stride[1];
    p->row = p->pitch * (p->flat ? 1 : w->stride[1]);
    if (p->rows == 0) {
        int64_t strips = ort_max_i64(1, ort_min_i64(wanted, w->out[0] / STRIP_ROWS));
        p->rows = (w->out[0] + strips - 1) / strips;
        for (strips++; p->rows > 1 && copy_bytes(p, p->rows) > COPY_BYTES; strips++)
            p->rows = (w->out[0] + strips - 1) / strips;
    }
    p->strips = (w->out[0] + p->rows - 1) / p->rows;
    p->phase_rows = phase_rows(p, p->rows);
    p->third = third_bytes(p, p->rows);
}

ort_status ort_conv_tiled_shape(ort_shaping *sh, const ort_blocked_dims *in,
                                const ort_blocked_dims *out, const ort_window *w, ort_error *err)
{
    const ort_blocked_state *s = sh->state;
    const int64_t taps = taps_of(s);
    tiled_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    int64_t *offset = ort_arena_array(sh->arena, (size_t)taps, sizeof *offset);
    if (!p || !offset)
        return ort_error_memory(err, sizeof *p + (size_t)taps * sizeof *offset);
    *p = (tiled_plan){.in = *in, .out = *out, .w = *w, .offset = offset};
    ort_blocked_turn_column(&p->w);
    w = &p->w;
    p->group_blocks = blocks_of(s, s->channels);
    p->vectors = blocks_of(s, s->maps / s->group);
    p->flat = taps == 1 && !w->begin[0] && !w->begin[1] && !w->end[0] && !w->end[1];
    const int64_t wanted = strips_wanted(s, p);
    if (is_line(p))
        plan_pieces(p, wanted);
    plan_strips(p, wanted);
    for (int64_t t = 0; t < taps; t++)
        offset[t] = p->flat ? 0
                            : (place_of(p, t / w->kernel[1] * w->dilation[0]) +
                               t % w->kernel[1] * w->dilation[1]) * PIXEL_BYTES;
    const int64_t beyond = ORT_BLOCKED_TILE * PIXEL_BYTES * (p->flat ? 1 : w->stride[1]);
    const int64_t copy = copy_bytes(p, p->rows) + beyond, strips = p->strips * p->out.n * s->group;
    p->panel_at = ((int64_t)sizeof(held_strip) + copy) / (int64_t)sizeof(float);
    p->copy = strips <= STRIPS_SHARED ? copy : 0;
    sh->workspace_bytes = (size_t)(STRIPS_SHARED * PIXEL_BYTES + strips * p->copy);
    sh->thread_bytes = (size_t)(p->panel_at + 2 * s->block * s->channels * taps) * sizeof(float);
    sh->plan_state = p;
    return ORT_OK;
}

/* ---- run */

typedef struct tiled_job {
    ort_call *call;
    const ort_blocked_state *s;
    const tiled_plan *p;
    const float *x, *z;
    float *y;
    int64_t task_vectors, vector_blocks;
    strip_size *shared;      /* of each strip; NULL: threads split their own */
    int64_t threads;
} tiled_job;

typedef struct tiled_task { /* what a task number stands for */
    int64_t image, group, first_vector, vectors, first_row, rows, pixel, pixels;
    const float *x;         /* the group's blocks of the image */
    int64_t strip;          /* of all */
    char *copy, *scratch;
    strip_size *size;       /* of a strip that is shared, or NULL */
} tiled_task;

/* Strip `index` of all, and vectors from `vector` on. */
static tiled_task strip_at(const tiled_job *j, int64_t index, int64_t vector, int thread)
{
    const tiled_plan *p = j->p;
    const int64_t row = index % p->strips * p->rows, which = index / p->strips;
    tiled_task t = {.image = which / j->s->group, .group = which % j->s->group,
                    .first_vector = vector,
                    .vectors = ort_min_i64(j->task_vectors, p->vectors - vector),
                    .strip = index,
                    .first_row = row,
                    .rows = ort_min_i64(p->rows, p->w.out[0] - row),
                    .pixel = row * p->w.out[1],
                    .scratch = ort_call_scratch(j->call, thread)};
    t.copy = t.scratch + sizeof(held_strip);
    if (j->shared) {
        t.size = &j->shared[index];
        t.copy = (char *)j->call->workspace + STRIPS_SHARED * PIXEL_BYTES + index * p->copy;
    }
    t.pixels = ort_min_i64(t.rows * p->w.out[1], p->out.plane - t.pixel);
    t.x = j->x + (t.image * p->in.blocks + t.group * p->group_blocks) * p->in.plane * j->s->block;
    return t;
}

/* A strip's tasks follow each other. */
static tiled_task task_at(const tiled_job *j, size_t number, int thread)
{
    const int64_t index = (int64_t)number;
    return strip_at(j, index / j->vector_blocks, index % j->vector_blocks * j->task_vectors,
                    thread);
}

/* From pixel `from` of the plane to pixel `to` of the copy. */
static ort_blocked_split split_of(const tiled_job *j, const tiled_task *t, int64_t from,
                                  int64_t count, int64_t step, int64_t to)
{
    const int64_t block = j->s->block;
    return (ort_blocked_split){.x = t->x + from * block,
                               .x_block = j->p->in.plane * block,
                               .step = step * block,
                               .blocks = j->p->group_blocks,
                               .count = count,
                               .to = t->copy + to * PIXEL_BYTES,
                               .third = j->p->third};
}

static uint32_t split_pixels(const tiled_job *j, const tiled_task *t, int64_t from, int64_t count,
                             int64_t step, int64_t to)
{
    const ort_blocked_split split = split_of(j, t, from, count, step, to);
    return j->s->k->tiled_split(&split);
}

static void clear_pixels(const tiled_job *j, const tiled_task *t, int64_t to, int64_t count)
{
    for (int64_t i = 0; i < (j->p->group_blocks + 1) / 2 * THIRDS; i++)
        memset(t->copy + i * j->p->third + to * PIXEL_BYTES, 0, (size_t)(count * PIXEL_BYTES));
}

/* Split row r of those under a strip, and its size. */
static uint32_t split_flat(const tiled_job *j, const tiled_task *t, int64_t r)
{
    const ort_window *w = &j->p->w;
    if (is_line(j->p))
        return split_pixels(j, t, t->pixel, t->pixels, 1, 0);
    return split_pixels(j, t, (t->first_row + r) * w->stride[0] * w->in[1], w->out[1],
                        w->stride[1], r * j->p->row);
}

static uint32_t split_padded(const tiled_job *j, const tiled_task *t, int64_t r)
{
    const tiled_plan *p = j->p;
    const ort_window *w = &p->w;
    const int64_t in_row = t->first_row * w->stride[0] - w->begin[0] + r, to = place_of(p, r);
    const int64_t left = ort_min_i64(w->begin[1], p->row);
    const int64_t real = ort_max_i64(0, ort_min_i64(w->in[1], p->row - left));
    if (in_row < 0 || in_row >= w->in[0]) {
        clear_pixels(j, t, to, p->row);
        return 0;
    }
    clear_pixels(j, t, to, left);
    clear_pixels(j, t, to + left + real, p->row - left - real);
    return split_pixels(j, t, in_row * w->in[1], real, 1, to + left);
}

static int64_t rows_under(const tiled_job *j, const tiled_task *t)
{
    const ort_window *w = &j->p->w;
    return j->p->flat ? t->rows : (t->rows - 1) * w->stride[0] + ort_blocked_reach(w, 0);
}

static uint32_t split_row(const tiled_job *j, const tiled_task *t, int64_t r)
{
    return j->p->flat ? split_flat(j, t, r) : split_padded(j, t, r);
}

static uint32_t split_strip(const tiled_job *j, const tiled_task *t)
{
    const int64_t rows = rows_under(j, t);
    uint32_t most = 0;
    for (int64_t r = 0; r < rows; r++) {
        const uint32_t size = split_row(j, t, r);
        most = size > most ? size : most;
    }
    return most;
}

static void enlarge(strip_size *of, uint32_t size)
{
    uint32_t most = atomic_load(&of->most);
    while (size > most && !atomic_compare_exchange_weak(&of->most, &most, size))
        continue;
}

/* Of shared strips. Pieces of a line are split by pixels, other strips by rows. */
typedef struct splitting {
    tiled_job *j;
    int64_t pieces, pixels; /* of a strip; of a piece of a line */
} splitting;

static void task_split(void *arg, size_t task, int thread)
{
    const splitting *s = arg;
    const tiled_task t = strip_at(s->j, (int64_t)task / s->pieces, 0, thread);
    const int64_t piece = (int64_t)task % s->pieces, from = piece * s->pixels;
    if (is_line(s->j->p)) {
        const int64_t count = ort_min_i64(s->pixels, t.pixels - from);
        if (count > 0)
            enlarge(t.size, split_pixels(s->j, &t, t.pixel + from, count, 1, from));
    } else if (piece < rows_under(s->j, &t)) {
        enlarge(t.size, split_row(s->j, &t, piece));
    }
}

static void split_shared(tiled_job *j, int64_t strips)
{
    const tiled_task first = strip_at(j, 0, 0, 0);
    splitting s = {j, rows_under(j, &first), 2 * ORT_BLOCKED_TILE};
    if (is_line(j->p))
        s.pieces = (first.pixels + s.pixels - 1) / s.pixels;
    for (int64_t i = 0; i < strips; i++)
        atomic_store(&j->shared[i].most, 0);
    ort_call_parallel(j->call, (size_t)(strips * s.pieces), task_split, &s);
}

/* The pixels of the task in the output from vector v of the group on. */
static ort_blocked_out out_of(const tiled_job *j, const tiled_task *t, int64_t v)
{
    const ort_blocked_state *s = j->s;
    const int64_t block = t->group * j->p->vectors + v, lane = block * s->block;
    const int64_t at = ((t->image * j->p->out.blocks + block) * j->p->out.plane + t->pixel) *
                       s->block;
    return (ort_blocked_out){.y = j->y + at,
                             .y_block = j->p->out.plane * s->block,
                             .z = j->z ? j->z + at : NULL,
                             .bias = s->bias ? s->bias + lane : NULL,
                             .slope = s->slope ? s->slope + lane : NULL,
                             .lo = s->epilogue.lo,
                             .hi = s->epilogue.hi,
                             .count = t->pixels};
}

/* Pixels of a tile, and whether tiles run through the gaps between rows: what takes least time. */
static void choose_tile(ort_blocked_tiled *k)
{
    const int64_t all = (k->rows - 1) * k->pitch + k->width;
    const int64_t through = (all + ORT_BLOCKED_TILE - 1) / ORT_BLOCKED_TILE;
    const int64_t along = (k->width + ORT_BLOCKED_TILE - 1) / ORT_BLOCKED_TILE;
    const int64_t wide = (all + through - 1) / through, narrow = (k->width + along - 1) / along;
    k->gaps = through * ort_max_i64(wide, LEAST_TILE_CYCLES) <=
              k->rows * along * ort_max_i64(narrow, LEAST_TILE_CYCLES);
    k->tile = (int)(k->gaps ? wide : narrow);
}

static const char *panel_of(const tiled_job *j, const tiled_task *t, int64_t v)
{
    return (const char *)(j->s->w + t->group * j->s->group_floats) + panel_bytes(j->s, v);
}

/* The panel that this thread's next task begins with, which mostly is the one behind. */
static const char *ahead_of(const tiled_job *j, const tiled_task *t)
{
    const int64_t next = t->first_vector + t->vectors;
    return next < j->p->vectors ? panel_of(j, t, next) : NULL;
}

/* Is the strip there? Its size, or that of its splitting. */
static bool has_strip(const tiled_job *j, const tiled_task *t, uint32_t *size)
{
    const held_strip *held = (const held_strip *)(const void *)t->scratch;
    if (t->size || held->index == t->strip) {
        *size = t->size ? atomic_load(&t->size->most) : held->size;
        return true;
    }
    *size = is_line(j->p) ? 0 : split_strip(j, t);
    return !is_line(j->p);
}

static void hold_strip(const tiled_task *t, uint32_t size)
{
    if (!t->size)
        *(held_strip *)(void *)t->scratch = (held_strip){.index = t->strip, .size = size};
}

/* All panels at once, or, where an activation follows, each while its outputs are near. A strip of
 * one line is split meanwhile. */
static bool multiply(const tiled_job *j, const tiled_task *t)
{
    const ort_blocked_state *s = j->s;
    const tiled_plan *p = j->p;
    const int64_t end = t->first_vector + t->vectors;
    const int64_t vectors = ort_blocked_activates(s) ? 2 : t->vectors;
    const ort_blocked_split split = split_of(j, t, t->pixel, t->pixels, 1, 0);
    uint32_t size;
    const bool meanwhile = !has_strip(j, t, &size);
    bool fits = s->k->tiled_fits(size);
    if (!meanwhile)
        hold_strip(t, size);
    ort_blocked_tiled k = {.x = t->copy, .third = p->third, .offset = p->offset,
                           .step = PIXEL_BYTES * (p->flat ? 1 : p->w.stride[1]),
                           .taps = taps_of(s), .blocks = p->group_blocks,
                           .rows = t->rows, .width = ort_min_i64(p->w.out[1], t->pixels),
                           .pitch = p->pitch};
    choose_tile(&k);
    for (int64_t v = t->first_vector; v < end && fits; v += vectors) {
        k.vectors = ort_min_i64(vectors, end - v);
        k.w = panel_of(j, t, v);
        k.split = meanwhile && v == t->first_vector ? &split : NULL;
        k.out = out_of(j, t, v);
        k.ahead = v + vectors < end ? panel_of(j, t, v + vectors) : ahead_of(j, t);
        size = s->k->tiled(&k);
        if (k.split) {
            fits = s->k->tiled_fits(size);
            hold_strip(t, size);
        }
        ort_blocked_activate(j->call, s, &k.out, k.vectors);
    }
    return fits;
}

/* In floats: a row of the strip at a time, panel by panel. */
static void multiply_floats(const tiled_job *j, const tiled_task *t)
{
    const ort_blocked_state *s = j->s;
    const tiled_plan *p = j->p;
    const int64_t end = t->first_vector + t->vectors, width = p->w.out[1];
    float *panel = (float *)(void *)t->scratch + p->panel_at;
    ort_blocked_conv c = {.x_block = p->in.plane * s->block, .channels = s->channels,
                          .w_rows = p->w.kernel[0]};
    for (int64_t v = t->first_vector; v < end; v += 2) {
        const char *w = panel_of(j, t, v);
        c.vectors = ort_min_i64(2, end - v);
        c.w = s->tiled_floats ? (const float *)(const void *)w : panel;
        if (!s->tiled_floats)
            s->k->tiled_unpack(w, s->channels, taps_of(s), (int)c.vectors, panel);
        c.out = out_of(j, t, v);
        for (int64_t r = 0; r < t->rows; r++) {
            int64_t in_row;
            c.out.count = ort_min_i64(width, t->pixels - r * width);
            ort_blocked_rows(&p->w, t->first_row + r, s->block, &c.window, &c.first_row, &in_row);
            c.window.x = t->x + in_row * p->w.in[1] * s->block;
            s->k->conv(&c);
            ort_blocked_activate(j->call, s, &c.out, c.vectors);
            c.out.y += width * s->block;
            c.out.z = c.out.z ? c.out.z + width * s->block : NULL;
        }
    }
}

static void task_tiled(void *arg, size_t task, int thread)
{
    const tiled_job *j = arg;
    const tiled_task t = task_at(j, task, thread);
    if (j->s->tiled_floats || !multiply(j, &t))
        multiply_floats(j, &t);
}

/* As few tasks along the vectors as threads ask for. */
ort_status ort_conv_tiled_run(ort_call *call, ort_error *err)
{
    const tiled_plan *p = call->plan_state;
    const ort_tensor *z = ort_call_in(call, 3);
    const int64_t threads = ort_call_width(call);
    tiled_job j = {call, call->state, p, ort_call_in(call, 0)->data, z ? z->data : NULL,
                   ort_call_out(call, 0)->data, p->vectors, 1, NULL, threads};
    const int64_t strips = p->out.n * j.s->group * p->strips;
    while (threads > 1 && j.task_vectors > 2 &&
           strips * j.vector_blocks < threads * TASKS_A_THREAD) {
        j.task_vectors = (j.task_vectors / 2 + 1) / 2 * 2;
        j.vector_blocks = (p->vectors + j.task_vectors - 1) / j.task_vectors;
    }
    for (int t = 0; t < ort_pool_threads(call->pool); t++)
        ((held_strip *)ort_call_scratch(call, t))->index = -1;
    if (threads > OWN_THREADS && j.vector_blocks > 1 && p->copy && !j.s->tiled_floats) {
        j.shared = call->workspace;
        split_shared(&j, strips);
    }
    ort_call_parallel(call, (size_t)(strips * j.vector_blocks), task_tiled, &j);
    return ORT_OK;
}
