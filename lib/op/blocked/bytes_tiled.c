/* bytes_tiled.c - convolutions of the layout of bytes on tiles of 32 pixels by 32 outputs, where
 * the tier has them (blocked_bytes.h, ort_bytes_tiled); the same codes as bytes_conv.c's products,
 * of the same packed filters.
 *
 * A tile reads the channels of a pixel as neighbours, and 16 pixels that lie evenly apart. So a
 * task copies the input rows that it needs, with their padding, pixel by pixel: each is copied
 * once, and found by every tap and every output. Rows lie by their place under the stride, so that
 * the pixels of all output rows are one line of even steps; tiles pass over the few pixels between
 * two rows, which are nobody's. A 1x1 window copies what its strides take, and its line has no
 * gaps; where its channels fill steps, what a tile reads is one piece of memory.
 */
#include <string.h>

#include "base/checked.h"
#include "op/blocked/bytes_tiled.h"

enum {
    TILE_PIXELS = ORT_BYTES_TILED / 2,
    TILE_ROW = 64,            /* bytes of a tile's row that is full */
    COPY_BYTES = 512 << 10,   /* of one task: a part of the second-level cache, as its filters */
    TASK_PRODUCTS = 8000000,  /* some microseconds: worth handing to another thread */
    TASKS_WANTED = 16,
    LEAST_PIXELS = 64,        /* of a task */
    LEAST_WORDS = 3,          /* of a step: a product of tiles takes as long as 16 words have */
    LEAST_OF_ALL = 16,        /* words, and pixels, for which the copy pays */
};

struct ort_bytes_tiling {
    ort_blocked_dims in, out;
    ort_window w;
    bool flat;          /* 1x1, nothing padded */
    bool whole;         /* flat, and the rows of a tile follow each other */
    ort_blocked_cut cut;
    int64_t pixel, row; /* bytes of a copied pixel and row */
    int64_t pitch;      /* output pixels from one row's first to the next's */
    int64_t phase_rows; /* copied rows of each place under the stride */
    int64_t *offset, steps;
    int words;
};

/* The fewest equal steps of at most 16 words. */
static int64_t steps_of(int64_t words)
{
    int64_t steps = (words + 15) / 16;
    while (words % steps)
        steps++;
    return steps;
}

/* Words that neighbour each other in the copy and in the filters, 0 where they don't: of a row of
 * the window, or of a tap. */
static int64_t words_of_run(const bytes_state *s, const ort_window *w)
{
    const bool even = s->plain || s->channels % ORT_BYTES_BLOCK == 0;
    if (!even && taps_of(s) > 1)
        return 0;
    const int64_t words = (whole_channels(s) + part_channels(s)) / 4;
    if (s->plain && w->dilation[1] > 1)
        return 0;
    return w->dilation[1] == 1 ? words * w->kernel[1] : words;
}

static bool pays(const bytes_state *s, const ort_bytes_tiling *p, int64_t run)
{
    if (!s->k->tiled || s->depthwise || s->winograd || s->rested || s->line || s->floats ||
        run == 0)
        return false;
    return run / steps_of(run) >= LEAST_WORDS && s->panel_words >= LEAST_OF_ALL &&
           p->out.plane >= LEAST_OF_ALL;
}

/* Input rows under `rows` output rows, of those that are copied. */
static int64_t rows_under(const ort_bytes_tiling *p, int64_t rows)
{
    return p->flat ? rows : (rows - 1) * p->w.stride[0] + ort_blocked_reach(&p->w, 0);
}

static int64_t phase_rows(const ort_bytes_tiling *p, int64_t rows)
{
    const int64_t stride = p->flat ? 1 : p->w.stride[0];
    return (rows_under(p, rows) + stride - 1) / stride;
}

static int64_t copy_bytes(const ort_bytes_tiling *p, int64_t rows)
{
    return phase_rows(p, rows) * (p->flat ? 1 : p->w.stride[0]) * p->row;
}

/* Where row r of those under a task lies. */
static int64_t place_of(const ort_bytes_tiling *p, int64_t r)
{
    const int64_t stride = p->w.stride[0];
    return (r % stride * p->phase_rows + r / stride) * p->row;
}

static void plan_copy(ort_bytes_tiling *p, const bytes_state *s)
{
    ort_window *w = &p->w;
    p->pixel = s->plain ? plain_channels(s) : blocks_of(s->channels) * ORT_BYTES_BLOCK;
    p->flat = !s->plain && taps_of(s) == 1 && !w->begin[0] && !w->begin[1] && !w->end[0] &&
              !w->end[1];
    if (p->flat && w->stride[0] == 1 && w->stride[1] == 1) { /* rows are pieces of the plane */
        w->out[1] = w->in[1] = ort_min_i64(ORT_BYTES_TILED, p->out.plane);
        w->out[0] = w->in[0] = (p->out.plane + w->out[1] - 1) / w->out[1];
    }
    const int64_t reach = (w->out[1] - 1) * w->stride[1] + ort_blocked_reach(w, 1);
    p->pitch = p->flat ? w->out[1] : (reach + w->stride[1] - 1) / w->stride[1];
    p->row = p->pitch * p->pixel * (p->flat ? 1 : w->stride[1]);
}

static void plan_tasks(ort_bytes_tiling *p, const bytes_state *s)
{
    const int64_t filters = s->group_blocks * s->panel_words * ORT_BYTES_BLOCK * 4;
    const int64_t products = p->out.n * p->out.plane * s->maps * s->channels * taps_of(s);
    const int64_t least = (LEAST_PIXELS + p->w.out[1] - 1) / p->w.out[1];
    p->cut.vectors = p->cut.task_vectors = s->group_blocks;
    p->cut.rows = p->w.out[0];
    while (p->cut.rows > least && copy_bytes(p, p->cut.rows) > COPY_BYTES)
        p->cut.rows = (p->cut.rows + 1) / 2;
    ort_blocked_cut_tasks(&p->cut, p->w.out[0], p->out.n * s->group,
                          ort_min_i64(products / TASK_PRODUCTS, TASKS_WANTED),
                          p->in.plane * s->channels > filters / 4, least, 2);
    p->phase_rows = phase_rows(p, p->cut.rows);
}

/* The steps of all runs, in the order of the filters. */
static ort_status plan_steps(ort_bytes_tiling *p, const bytes_state *s, int64_t run,
                             ort_arena *arena, ort_error *err)
{
    const int64_t each = steps_of(run), runs = s->panel_words / run;
    const int64_t taps = taps_of(s) / runs; /* of a run */
    p->words = (int)(run / each);
    p->steps = runs * each;
    p->offset = ort_arena_array(arena, (size_t)p->steps, sizeof *p->offset);
    if (!p->offset)
        return ort_error_memory(err, (size_t)p->steps * sizeof *p->offset);
    p->whole = p->flat && 4 * p->words == TILE_ROW && p->pixel == p->steps * TILE_ROW;
    for (int64_t i = 0; i < p->steps && p->whole; i++)
        p->offset[i] = i * TILE_PIXELS * TILE_ROW;
    for (int64_t i = 0; i < p->steps && !p->whole; i++) {
        const int64_t tap = i / each * taps, row = tap / p->w.kernel[1] * p->w.dilation[0];
        p->offset[i] = (p->flat ? 0 : place_of(p, row)) +
                       tap % p->w.kernel[1] * p->w.dilation[1] * p->pixel + i % each * 4 * p->words;
    }
    return ORT_OK;
}

ort_status ort_bytes_tiled_shape(ort_shaping *sh, const bytes_state *s, const ort_blocked_dims *in,
                                 const ort_blocked_dims *out, const ort_window *w,
                                 ort_bytes_tiling **plan, ort_error *err)
{
    ort_bytes_tiling p = {.in = *in, .out = *out, .w = *w};
    ort_blocked_turn_column(&p.w);
    const int64_t run = words_of_run(s, &p.w);
    *plan = NULL;
    if (!pays(s, &p, run))
        return ORT_OK;
    plan_copy(&p, s);
    plan_tasks(&p, s);
    ORT_TRY(plan_steps(&p, s, run, sh->arena, err));
    const int64_t step = p.pixel * (p.flat ? 1 : p.w.stride[1]);
    sh->thread_bytes = (size_t)(copy_bytes(&p, p.cut.rows) + ORT_BYTES_TILED * step + 64);
    *plan = ort_arena_alloc(sh->arena, sizeof p);
    if (!*plan)
        return ort_error_memory(err, sizeof p);
    **plan = p;
    return ORT_OK;
}

/* ---- run */

typedef struct tiled_job {
    ort_call *call;
    const bytes_state *s;
    const ort_bytes_tiling *p;
    const ort_bytes_values *v;
} tiled_job;

/* `count` pixels of a row, from pixel `at` of the plane on. */
static void copy_pixels(const tiled_job *j, const uint8_t *x, int64_t at, int64_t count,
                        int64_t step, char *to)
{
    const ort_bytes_tiling *p = j->p;
    if (j->s->plain)
        j->s->k->gather4(x + at, p->in.plane, j->s->channels, count, j->v->flip, (uint8_t *)to);
    else
        j->s->k->side_by_side(x + at * ORT_BYTES_BLOCK, p->in.plane * ORT_BYTES_BLOCK,
                              step * ORT_BYTES_BLOCK, blocks_of(j->s->channels), count, to,
                              p->pixel, TILE_ROW);
}

/* The same as the pixels of tiles from pixel `first` of the copy on. */
static void copy_tiles(const tiled_job *j, const uint8_t *x, int64_t at, int64_t count,
                       int64_t step, int64_t first, char *copy)
{
    const ort_bytes_tiling *p = j->p;
    for (int64_t done = 0, run; done < count; done += run) {
        const int64_t pixel = first + done, row = pixel % TILE_PIXELS;
        run = ort_min_i64(TILE_PIXELS - row, count - done);
        j->s->k->side_by_side(x + (at + done * step) * ORT_BYTES_BLOCK,
                              p->in.plane * ORT_BYTES_BLOCK, step * ORT_BYTES_BLOCK,
                              blocks_of(j->s->channels), run,
                              copy + (pixel - row) * p->pixel + row * TILE_ROW, TILE_ROW,
                              TILE_PIXELS * TILE_ROW);
    }
}

/* What a 1x1 window takes under output rows [first, first + rows); `pixels` of them. */
static void copy_flat(const tiled_job *j, const uint8_t *x, int64_t first, int64_t rows,
                      int64_t pixels, char *to)
{
    const ort_window *w = &j->p->w;
    const bool dense = w->stride[0] == 1 && w->stride[1] == 1;
    if (dense && j->p->whole)
        copy_tiles(j, x, first * w->out[1], pixels, 1, 0, to);
    else if (dense)
        copy_pixels(j, x, first * w->out[1], pixels, 1, to);
    for (int64_t r = 0; r < rows && !dense && j->p->whole; r++)
        copy_tiles(j, x, (first + r) * w->stride[0] * w->in[1], w->out[1], w->stride[1],
                   r * w->out[1], to);
    for (int64_t r = 0; r < rows && !dense && !j->p->whole; r++)
        copy_pixels(j, x, (first + r) * w->stride[0] * w->in[1], w->out[1], w->stride[1],
                    to + r * j->p->row);
}

static void copy_rows(const tiled_job *j, const uint8_t *x, int64_t first, int64_t rows, char *copy)
{
    const ort_bytes_tiling *p = j->p;
    const ort_window *w = &p->w;
    const int64_t all = p->row / p->pixel, top = first * w->stride[0] - w->begin[0];
    const int64_t left = ort_min_i64(w->begin[1], all);
    const int64_t real = ort_max_i64(0, ort_min_i64(w->in[1], all - left));
    for (int64_t r = 0; r < rows_under(p, rows); r++) {
        char *to = copy + place_of(p, r);
        if (top + r < 0 || top + r >= w->in[0]) {
            memset(to, j->v->x_zero, (size_t)p->row);
            continue;
        }
        memset(to, j->v->x_zero, (size_t)(left * p->pixel));
        copy_pixels(j, x, (top + r) * w->in[1], real, 1, to + left * p->pixel);
        memset(to + (left + real) * p->pixel, j->v->x_zero,
               (size_t)((all - left - real) * p->pixel));
    }
}

/* What follows, on the pixels of some blocks that are made. */
static void finish(const tiled_job *j, int64_t block, int64_t blocks, int64_t pixel, int64_t pixels)
{
    for (int64_t b = block; b < block + blocks && j->v->after; b++)
        ort_bytes_after_do(j->v->after, (b * j->p->out.plane + pixel) * ORT_BYTES_BLOCK,
                           pixels * ORT_BYTES_BLOCK);
}

static void task_tiled(void *arg, size_t task, int thread)
{
    const tiled_job *j = arg;
    const bytes_state *s = j->s;
    const ort_bytes_tiling *p = j->p;
    int64_t index = (int64_t)task, first = index % p->cut.row_blocks * p->cut.rows;
    int64_t vector = (index /= p->cut.row_blocks) % p->cut.vector_blocks * p->cut.task_vectors;
    int64_t group = (index /= p->cut.vector_blocks) % s->group, image = index / s->group;
    int64_t rows = ort_min_i64(p->cut.rows, p->w.out[0] - first);
    int64_t pixel = first * p->w.out[1];
    int64_t pixels = ort_min_i64(rows * p->w.out[1], p->out.plane - pixel);
    const int64_t block = group * s->group_blocks + vector, lane = block * ORT_BYTES_BLOCK;
    const int64_t in = image * p->in.blocks + group * blocks_of(s->channels);
    const uint8_t *x = j->v->x + (s->plain ? image * s->channels : in * ORT_BYTES_BLOCK) *
                                     p->in.plane;
    const int64_t step = p->pixel * (p->flat ? 1 : p->w.stride[1]);
    char *copy = ort_call_scratch(j->call, thread);
    if (p->flat)
        copy_flat(j, x, first, rows, pixels, copy);
    else
        copy_rows(j, x, first, rows, copy);
    ort_bytes_tiled t = {
        .x = copy, .step = p->whole ? TILE_ROW : step, .tile = TILE_PIXELS * step,
        .offset = p->offset,
        .steps = p->steps, .words = p->words, .rows = p->flat ? 1 : rows,
        .width = p->flat ? pixels : p->w.out[1], .pitch = p->flat ? pixels : p->pitch,
        .w = s->w + lane * s->panel_words,
        .vectors = ort_min_i64(p->cut.task_vectors, p->cut.vectors - vector),
        .out = {.y = j->v->y + ((image * p->out.blocks + block) * p->out.plane + pixel) *
                                   ORT_BYTES_BLOCK,
                .y_block = p->out.plane * ORT_BYTES_BLOCK, .bias = j->v->bias + lane,
                .scale = j->v->scale + lane, .zero = s->y_zero, .bounded = s->bounded,
                .count = pixels}};
    s->k->tiled(&t);
    finish(j, image * p->out.blocks + block, t.vectors, pixel, pixels);
}

void ort_bytes_tiled_run(ort_call *call, const bytes_state *s, const ort_bytes_tiling *plan,
                         const ort_bytes_values *values)
{
    tiled_job j = {call, s, plan, values};
    ort_call_parallel(call, (size_t)(plan->out.n * s->group * ort_blocked_tasks(&plan->cut)),
                      task_tiled, &j);
}
