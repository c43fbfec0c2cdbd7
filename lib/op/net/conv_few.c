/* conv_few.c - float convolutions with few output positions: filters over one frame of sound,
 * layers that see the whole of a small map.
 *
 * A tile of a product is as wide as vectors, and most of it would lie beyond so few positions.
 * Here each output is a dot product along the taps: the taps of every position are gathered into a
 * row, which rests in the first-level cache, and each weight is read once, as it lies in the model.
 * Reads bind it: one vector of weights or taps for each multiply-add.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/net/conv.h"

enum {
    FEW_POSITIONS = 8,  /* half a vector of 512 bits: beyond, a tile's lanes are used as well */
    LEAST_DEPTH = 32,   /* shorter sums are all ends */
    MOST_TAPS = 6144,   /* floats of the gathered rows: they share 32 KB with the weights */
    TASK_PRODUCTS = 250000, /* some microseconds: worth handing to another thread */
    TASKS_WANTED = 4,
    MAPS_TOGETHER = 8, /* their weights stay in the nearest cache for all positions */
};

bool ort_conv_few(const conv_plan *p)
{
    return p->out_plane <= FEW_POSITIONS && p->depth >= LEAST_DEPTH &&
           (p->out_plane == 1 || p->out_plane * p->depth <= MOST_TAPS);
}

ort_status ort_conv_plan_few(conv_plan *p, size_t *workspace, ort_error *err)
{
    ort_window_to_3d(&p->s.w);
    if (p->s.w.rank != 3)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "convolutions over %d spatial axes aren't implemented, only up to 3",
                             p->s.w.rank);
    double products = (double)p->maps * (double)p->depth * (double)p->out_plane;
    int64_t tasks = ort_min_i64(TASKS_WANTED, (int64_t)(products / TASK_PRODUCTS));
    int64_t each = ort_max_i64(tasks / p->group, 1);
    p->map_block = ort_max_i64((p->group_maps + each - 1) / each, 1);
    p->map_blocks = (p->group_maps + p->map_block - 1) / p->map_block;
    p->spread_space = *workspace;
    size_t bytes;
    size_t rows = (size_t)(p->group * p->out_plane);
    if (!ort_mul_size(rows, (size_t)p->depth * sizeof(float), &bytes) ||
        !ort_add_size(*workspace, ort_round_up(bytes, 64), workspace))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

/* kernel[2] taps along one row of the input, which starts at x. */
static void gather_row(const ort_window *w, const float *x, int64_t at, float *to)
{
    const int64_t step = w->dilation[2], taps = w->kernel[2];
    if (step == 1 && at >= 0 && at + taps <= w->in[2]) {
        memcpy(to, x + at, (size_t)taps * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < taps; i++, at += step)
        to[i] = at >= 0 && at < w->in[2] ? x[at] : 0.0f;
}

/* What output position (z, y, x) reads of `channels` planes: depth floats. */
static void gather(const conv_plan *p, const float *planes, const int64_t *position, float *to)
{
    const ort_window *w = &p->s.w;
    const int64_t x = position[2] * w->stride[2] - w->begin[2];
    if (p->in_plane == 1 && p->depth == p->group_channels) { /* one tap, on one element */
        memcpy(to, planes, (size_t)p->depth * sizeof *to);
        return;
    }
    for (int64_t c = 0; c < p->group_channels; c++, planes += p->in_plane)
        for (int64_t kz = 0; kz < w->kernel[0]; kz++) {
            int64_t z = position[0] * w->stride[0] - w->begin[0] + kz * w->dilation[0];
            for (int64_t ky = 0; ky < w->kernel[1]; ky++, to += w->kernel[2]) {
                int64_t y = position[1] * w->stride[1] - w->begin[1] + ky * w->dilation[1];
                if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1])
                    memset(to, 0, (size_t)w->kernel[2] * sizeof *to);
                else
                    gather_row(w, planes + (z * w->in[1] + y) * w->in[2], x, to);
            }
        }
}

typedef struct few_run {
    ort_call *call;
    const conv_plan *p;
    const float *w, *b, *z;
    const float *taps; /* [group][out_plane][depth] */
    float *y;
    const ort_epilogue *e;
} few_run;

static void finish(const few_run *r, int64_t map, int64_t maps)
{
    const int64_t plane = r->p->out_plane, count = maps * plane;
    const ort_epilogue *e = r->e;
    float *y = r->y + map * plane;
    const float *z = r->z ? r->z + map * plane : NULL;
    for (int64_t m = 0; r->b && m < maps; m++)
        for (int64_t i = m * plane; i < (m + 1) * plane; i++)
            y[i] += r->b[map + m];
    for (int64_t i = 0; z && i < count; i++)
        y[i] += z[i];
    for (int64_t i = 0; (e->lo > -INFINITY || e->hi < INFINITY) && i < count; i++) {
        float v = y[i] < e->lo ? e->lo : y[i];
        y[i] = v > e->hi ? e->hi : v;
    }
    if (e->act >= 0)
        r->call->k->math.unary[e->act](y, y, (size_t)count, e->act_a, e->act_b);
}

/* Some maps at every position, four positions at a time, of which the last overlap. */
static void several(const few_run *r, const float *taps, const float *w, int64_t maps, float *y)
{
    const conv_plan *p = r->p;
    const ort_gemm_kernels *k = &r->call->k->gemm;
    const int64_t plane = p->out_plane;
    float sums[MAPS_TOGETHER];
    for (int64_t i = 0; plane >= 4 && i < plane; i += 4) {
        const int64_t at = ort_min_i64(i, plane - 4);
        k->dots4_f32(maps, p->depth, taps + at * p->depth, p->depth, w, p->depth, y + at, plane);
    }
    for (int64_t i = 0; plane < 4 && i < plane; i++, taps += p->depth) {
        k->dots_f32(maps, p->depth, taps, w, p->depth, 1.0f, sums);
        for (int64_t m = 0; m < maps; m++)
            y[m * plane + i] = sums[m];
    }
}

static void task_few(void *arg, size_t task, int thread)
{
    (void)thread;
    const few_run *r = arg;
    const conv_plan *p = r->p;
    const ort_gemm_kernels *k = &r->call->k->gemm;
    int64_t group = (int64_t)task / p->map_blocks, block = (int64_t)task % p->map_blocks;
    int64_t maps = ort_min_i64(p->map_block, p->group_maps - block * p->map_block);
    int64_t map = group * p->group_maps + block * p->map_block, plane = p->out_plane;
    const float *taps = r->taps + group * plane * p->depth, *w = r->w + map * p->depth;
    if (plane == 1)
        k->dots_f32(maps, p->depth, taps, w, p->depth, 1.0f, r->y + map);
    else
        for (int64_t m = 0; m < maps; m += MAPS_TOGETHER, w += MAPS_TOGETHER * p->depth)
            several(r, taps, w, ort_min_i64(MAPS_TOGETHER, maps - m), r->y + (map + m) * plane);
    finish(r, map, maps);
}

void ort_conv_run_few(ort_call *call, const float *x, const float *w, const float *b,
                      const float *z, float *y)
{
    const conv_state *state = call->state;
    const conv_plan *p = call->plan_state;
    const int64_t *out = p->s.w.out;
    float *taps = (float *)(void *)((char *)call->workspace + p->spread_space);
    few_run r = {call, p, w, b, z, taps, y, &state->epilogue};
    for (int64_t image = 0; image < p->n; image++) {
        float *to = taps;
        for (int64_t g = 0; g < p->group; g++, x += p->group_channels * p->in_plane)
            for (int64_t i = 0; i < p->out_plane; i++, to += p->depth) {
                int64_t at[3] = {i / (out[1] * out[2]), i / out[2] % out[1], i % out[2]};
                gather(p, x, at, to);
            }
        ort_call_parallel(call, (size_t)(p->group * p->map_blocks), task_few, &r);
        r.y += p->maps * p->out_plane;
        r.z = r.z ? r.z + p->maps * p->out_plane : NULL;
    }
}
