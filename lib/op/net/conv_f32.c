/* conv_f32.c - float convolution on the spread layout (spread.h).
 *
 * Many maps per group: the weights are A, row by row as they lie in the model; B is read from the
 * spread input at one offset per (channel, tap). A task is a block of maps by a tile of flat
 * output positions of one image and group; k is walked in cache-sized steps. Where junk lies
 * between output rows, the tile is computed in scratch and its real runs are copied out.
 *
 * Few maps per group (depthwise): a task spreads the rows it needs of one group into scratch and
 * slides the window kernel over them, straight into the output.
 *
 * Few positions in a map: conv_few.c.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/net/conv.h"

enum {
    TILE_COLUMNS = 128,
    WINDOW_MAPS = 3,
    MAPS_AT_ONCE = 168,
    SPREAD_BYTES = 16 << 20,
    TASKS_WANTED = 4,
    TASK_PRODUCTS = 250000, /* some microseconds: worth handing to another thread */
    SPREAD_ALONE = 8192,    /* elements that one thread spreads sooner than another wakes */
};

static ort_status plan_offsets(ort_shaping *s, conv_plan *p, ort_error *err)
{
    const ort_window *w = &p->s.w;
    int64_t *offset = ort_arena_array(s->arena, (size_t)ort_max_i64(p->depth, 1), sizeof *offset);
    if (!offset)
        return ort_error_memory(err, (size_t)p->depth * sizeof *offset);
    p->offset = offset;
    int64_t channel = p->s.direct ? p->in_plane : p->s.channel;
    for (int64_t c = 0; c < p->group_channels; c++)
        for (int64_t kz = 0; kz < w->kernel[0]; kz++)
            for (int64_t ky = 0; ky < w->kernel[1]; ky++)
                for (int64_t kx = 0; kx < w->kernel[2]; kx++)
                    *offset++ = c * channel + ort_spread_tap(&p->s, kz, ky, kx);
    return ORT_OK;
}

static ort_status plan_windows(ort_shaping *s, conv_plan *p, const ort_window *window,
                               ort_error *err)
{
    int64_t rows = p->s.w.out[1], total = p->s.w.out[1];
    int64_t bytes = p->s.channel * p->group_channels * (int64_t)sizeof(float);
    if (p->s.w.out[0] == 1 && bytes > (128 << 10))
        rows = ort_max_i64(total * (96 << 10) / bytes / 4 * 4, 4);
    rows = ort_max_i64(ort_min_i64(rows, total), 1);
    ort_window block = *window;
    ort_window_to_3d(&block);
    block.out[1] = rows;
    ORT_TRY(ort_spread_build(&block, s->arena, &p->s, err));
    p->rows = rows;
    p->row_blocks = (total + rows - 1) / rows;
    p->s.direct = false;
    p->groups = ort_conv_groups(p);
    s->thread_bytes = (size_t)p->groups * (size_t)p->s.channel * (size_t)p->group_channels *
                      sizeof(float);
    return ORT_OK;
}

/* A product worth several tasks is cut until it has them: maps first (a tile of the input then
 * serves fewer maps, which costs little), columns where the maps are few. Depends on sizes only. */
static void split_further(conv_plan *p, const ort_kernels *k)
{
    double products = (double)p->group * (double)p->group_maps * (double)p->depth *
                      (double)p->s.length;
    int64_t wanted = ort_min_i64(TASKS_WANTED, (int64_t)(products / TASK_PRODUCTS));
    while (p->n * p->group * p->map_blocks * p->tiles < wanted) {
        if (p->map_block > 2 * k->gemm.mr)
            p->map_block = (p->map_block + 1) / 2;
        else if (p->tile > 2 * k->gemm.nr)
            p->tile = (int64_t)ort_round_up((size_t)(p->tile + 1) / 2, (size_t)k->gemm.nr);
        else
            break;
        p->map_blocks = (p->group_maps + p->map_block - 1) / p->map_block;
        p->tiles = (p->s.length + p->tile - 1) / p->tile;
    }
}

static ort_status plan_product(ort_shaping *s, conv_plan *p, size_t *workspace, ort_error *err)
{
    int nr = s->k->gemm.nr;
    int64_t tile = TILE_COLUMNS;
    if (p->group_maps <= 2 * s->k->gemm.mr)
        tile = 4 * TILE_COLUMNS;
    p->map_blocks = (p->group_maps + MAPS_AT_ONCE - 1) / MAPS_AT_ONCE;
    p->map_block = (p->group_maps + p->map_blocks - 1) / p->map_blocks;
    p->tiles = (p->s.length + tile - 1) / tile;
    p->tile = ((p->s.length + p->tiles - 1) / p->tiles + nr - 1) / nr * nr;
    p->tiles = (p->s.length + p->tile - 1) / p->tile;
    if (p->tiles < 4 && p->group_maps >= 64) { /* a small map: more blocks of output maps */
        p->map_blocks = ort_max_i64(p->map_blocks, p->group_maps / 56);
        p->map_block = (p->group_maps + p->map_blocks - 1) / p->map_blocks;
        p->map_blocks = (p->group_maps + p->map_block - 1) / p->map_block;
    }
    split_further(p, s->k);
    if (!p->s.dense)
        s->thread_bytes = (size_t)(p->map_block * p->tile) * sizeof(float);
    p->images = p->n;
    if (!p->s.direct) {
        size_t one;
        if (!ort_mul_size((size_t)p->s.channel, (size_t)p->channels * sizeof(float), &one))
            return ort_error_memory(err, SIZE_MAX);
        p->images = ort_max_i64(ort_min_i64(p->n, (int64_t)(SPREAD_BYTES / (one + 1))), 1);
        p->spread_space = *workspace;
        size_t bytes;
        if (!ort_mul_size(one, (size_t)p->images, &bytes) ||
            !ort_add_size(*workspace, ort_round_up(bytes, 64), workspace))
            return ort_error_memory(err, SIZE_MAX);
    }
    return ORT_OK;
}

ort_status ort_conv_plan_f32(ort_shaping *s, conv_plan *p, size_t *workspace, ort_error *err)
{
    p->few = ort_conv_few(p);
    if (p->few)
        return ort_conv_plan_few(p, workspace, err);
    ort_window window = p->s.w;
    ORT_TRY(ort_spread_build(&window, s->arena, &p->s, err));
    p->windows = p->group_maps <= WINDOW_MAPS && p->depth <= (p->group_maps == 1 ? 256 : 128) &&
                 p->s.w.out[0] > 0 && p->s.w.out[1] > 0;
    if (p->windows)
        ORT_TRY(plan_windows(s, p, &window, err));
    else
        ORT_TRY(plan_product(s, p, workspace, err));
    return plan_offsets(s, p, err);
}

typedef struct conv_run {
    ort_call *call;
    const conv_plan *p;
    const float *x, *w, *b, *z;
    float *y;
    float *spread;      /* of images [first_image, ..) */
    int64_t first_image;
    const ort_epilogue *e;
} conv_run;

/* ---- windows */

static void finish_rows(const conv_run *r, float *y, const float *z, int64_t count)
{
    const ort_epilogue *e = r->e;
    if (z)
        for (int64_t i = 0; i < count; i++) {
            float v = y[i] + z[i];
            v = v < e->lo ? e->lo : v;
            y[i] = v > e->hi ? e->hi : v;
        }
    if (e->act >= 0)
        r->call->k->math.unary[e->act](y, y, (size_t)count, e->act_a, e->act_b);
}

static void window_map(const conv_run *r, int64_t image, int64_t map, int64_t row, const float *in)
{
    const conv_plan *p = r->p;
    const ort_window *w = &p->s.w;
    int64_t total_rows = p->out_plane / (w->out[0] * w->out[2]);
    int64_t rows = ort_min_i64(p->rows, total_rows - row);
    ort_taps_f32 t = {.taps = p->depth, .offset = p->offset, .weight = r->w + map * p->depth,
                      .in_row = p->s.extent[2], .out_row = w->out[2],
                      .bias = r->b ? r->b[map] : 0.0f,
                      .lo = r->z ? -INFINITY : r->e->lo, .hi = r->z ? INFINITY : r->e->hi};
    for (int64_t depth = 0; depth < w->out[0]; depth++) {
        int64_t at =
            (image * p->maps + map) * p->out_plane + (depth * total_rows + row) * w->out[2];
        t.in = in + depth * p->s.extent[1] * p->s.extent[2];
        t.out = r->y + at;
        r->call->k->gemm.taps_sum_f32(rows, w->out[2], &t);
        finish_rows(r, t.out, r->z ? r->z + at : NULL, rows * w->out[2]);
    }
}

static void task_windows(void *arg, size_t task, int thread)
{
    const conv_run *r = arg;
    const conv_plan *p = r->p;
    float *space = ort_call_scratch(r->call, thread);
    int64_t row = (int64_t)task % p->row_blocks * p->rows;
    int64_t group = (int64_t)task / p->row_blocks * p->groups, image = group / p->group;
    group %= p->group;
    ort_spread_f32(r->call->k, &p->s, p->groups * p->group_channels,
                   r->x + (image * p->channels + group * p->group_channels) * p->in_plane, row,
                   0.0f, space);
    for (int64_t g = 0; g < p->groups; g++, space += p->group_channels * p->s.channel)
        for (int64_t m = 0; m < p->group_maps; m++)
            window_map(r, image, (group + g) * p->group_maps + m, row, space);
}

/* ---- product */

static void task_spread(void *arg, size_t task, int thread)
{
    const conv_run *r = arg;
    const conv_plan *p = r->p;
    int64_t plane = r->first_image * p->channels + (int64_t)task;
    ort_spread_f32(r->call->k, &p->s, 1, r->x + plane * p->in_plane, 0, 0.0f,
                   r->spread + (int64_t)task * p->s.channel);
}

/* Runs of real outputs between a scratch tile (rows of p->tile) and the maps at `y`. */
static void copy_runs(const conv_plan *p, float *tile, float *y, int64_t maps, int64_t first,
                      int64_t last, bool out)
{
    int64_t at = first, flat, index, count;
    while (ort_spread_next(&p->s, last, &at, &flat, &index, &count))
        for (int64_t m = 0; m < maps; m++) {
            float *from = tile + m * p->tile + flat - first, *to = y + m * p->out_plane + index;
            if (out)
                memcpy(to, from, (size_t)count * sizeof *to);
            else
                memcpy(from, to, (size_t)count * sizeof *to);
        }
}

static void task_product(void *arg, size_t task, int thread)
{
    const conv_run *r = arg;
    const conv_plan *p = r->p;
    const ort_kernels *k = r->call->k;
    int64_t index = (int64_t)task, tile = index % p->tiles;
    int64_t block = (index /= p->tiles) % p->map_blocks;
    int64_t group = (index /= p->map_blocks) % p->group, image = index / p->group;
    int64_t first = tile * p->tile, last = ort_min_i64(first + p->tile, p->s.length);
    int64_t map = group * p->group_maps + block * p->map_block;
    int64_t maps = ort_min_i64(p->map_block, p->group_maps - block * p->map_block);
    const float *b = p->s.direct
        ? r->x + ((r->first_image + image) * p->channels + group * p->group_channels) * p->in_plane
        : r->spread + (image * p->channels + group * p->group_channels) * p->s.channel;
    int64_t at = ((r->first_image + image) * p->maps + map) * p->out_plane;
    float *y = r->y + at, *c = p->s.dense ? y + first : ort_call_scratch(r->call, thread);
    int64_t ldc = p->s.dense ? p->out_plane : p->tile;
    const float *add = NULL;
    if (r->z && p->s.dense) {
        add = r->z + at + first;
    } else if (r->z) {
        memset(c, 0, (size_t)(maps * ldc) * sizeof *c);
        copy_runs(p, c, (float *)(uintptr_t)r->z + at, maps, first, last, false);
        add = c;
    }
    for (int64_t k0 = 0; k0 < p->depth || k0 == 0; k0 += k->gemm.kc) {
        int64_t depth = ort_min_i64(k->gemm.kc, p->depth - k0);
        bool end = k0 + depth >= p->depth;
        ort_tile_f32 t = {.a = r->w + map * p->depth + k0, .b = b + first, .lda = p->depth,
                          .b_panel = k->gemm.nr, .b_offset = p->offset + k0, .c = c, .ldc = ldc,
                          .add = k0 ? c : add, .ldadd = ldc,
                          .row_bias = k0 || !r->b ? NULL : r->b + map, .alpha = 1.0f,
                          .lo = end ? r->e->lo : -INFINITY, .hi = end ? r->e->hi : INFINITY};
        k->gemm.f32(maps, last - first, depth, &t);
    }
    if (r->e->act >= 0)
        for (int64_t m = 0; m < maps; m++)
            k->math.unary[r->e->act](c + m * ldc, c + m * ldc, (size_t)(last - first), r->e->act_a,
                                     r->e->act_b);
    if (!p->s.dense)
        copy_runs(p, c, y, maps, first, last, true);
}

void ort_conv_run_f32(ort_call *call, const float *x, const float *w, const float *b,
                      const float *z, float *y)
{
    const conv_state *state = call->state;
    const conv_plan *p = call->plan_state;
    conv_run r = {.call = call, .p = p, .x = x, .w = w, .b = b, .z = z, .y = y,
                  .e = &state->epilogue};
    if (p->few) {
        ort_conv_run_few(call, x, w, b, z, y);
        return;
    }
    if (p->windows) {
        ort_call_parallel(call, (size_t)(p->n * p->group / p->groups * p->row_blocks),
                          task_windows, &r);
        return;
    }
    r.spread = (float *)(void *)((char *)call->workspace + p->spread_space);
    for (; r.first_image < p->n; r.first_image += p->images) {
        int64_t images = ort_min_i64(p->images, p->n - r.first_image);
        if (!p->s.direct && images * p->channels * p->s.channel < SPREAD_ALONE)
            for (int64_t plane = 0; plane < images * p->channels; plane++)
                task_spread(&r, (size_t)plane, 0);
        else if (!p->s.direct)
            ort_call_parallel(call, (size_t)(images * p->channels), task_spread, &r);
        ort_call_parallel(call, (size_t)(images * p->group * p->map_blocks * p->tiles),
                          task_product, &r);
    }
}
