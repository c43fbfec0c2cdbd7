/* wide_conv.c - convolutions of 16-bit codes by 8-bit weights (WideConv), exact: with their bias, a
 * clamp or a function behind them, and the codes of the result, or floats.
 *
 * As quant_conv.c multiplies bytes: an element is two input channels side by side, here codes of
 * int16 as they are (uint16 less 32768), and the padding is their zero point. What this zero point
 * adds to a sum is the same for every pixel, and is taken off with the bias. int32 holds the sum of
 * as many products as the largest filter allows, often all; those of such blocks are added in
 * double, which is exact far beyond any filter. From there on the number of a pixel is what float
 * operators have, rounded to float once: activation and codes are those of the operators that stood
 * there. Windows on each channel alone are wide_windows.c's.
 */
#pragma GCC optimize("O3") /* vectorize pairs and scales */

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/quant/wide_conv.h"
#include "op/shared/integer.h"
#include "op/shared/spread_pairs.h"
#include "tensor/scalar.h"

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, B };
enum {
    TILE_MAPS = 28,
    SPREAD_BYTES = 16 << 20,
    BLOCK_WEIGHTS = 65535, /* times 2^15 it is below 2^31 */
    FILTER_MOST = 1 << 22, /* pairs of a filter */
    NEAR_PAIRS = 1 << 16,  /* of a group that a task spreads */
};

static const ort_bind wide_bind[] = {
    ORT_BIND(ort_wide_conv, group), ORT_BIND_WINDOW(ort_wide_conv),
    ORT_BIND(ort_wide_conv, act), ORT_BIND(ort_wide_conv, act_a),
    ORT_BIND(ort_wide_conv, act_b), ORT_BIND(ort_wide_conv, low),
    ORT_BIND(ort_wide_conv, high), {0}};

/* Real outputs side by side among the flat positions of a tile. */
typedef struct wide_strip {
    int64_t flat, out, count;
} wide_strip;

typedef struct wide_conv_plan {
    conv_plan c;         /* offsets count elements of the spread layout */
    int64_t group_pairs; /* channel pairs of a group */
    int64_t depth_pairs; /* group_pairs * taps */
    bool near;           /* groups are spread and multiplied one by one */
    ort_wide_windows *windows; /* instead of all that; or NULL */
    size_t scale;        /* offset in the workspace: a scale and a bias of each map */
    const wide_strip *strips;
    const int64_t *first_strip; /* of each tile, and behind the last */
} wide_conv_plan;

static ort_status wide_infer(ort_infer *x, ort_error *err)
{
    const bool coded = x->in_count > Y_ZERO && x->in[Y_ZERO];
    ort_infer_set_dtype(x, 0, coded ? x->in[Y_ZERO]->type.dtype : ORT_DTYPE_FLOAT);
    return ort_conv_infer_shape(x, X, W, err);
}

/* ---- weights */

static int64_t taps_of(const ort_shape *w)
{
    return ort_shape_count_range(w, 2, w->rank);
}

/* A row of bytes of one channel, less their zero point, to every second of `out`. */
#define SPREAD_ROW(type)                                                                           \
    for (int64_t t = 0; t < taps; t++)                                                             \
        out[2 * t] = (int16_t)(((const type *)from)[t] - zero)

/* One filter as pairs of neighbouring channels, [pair][tap][2], the last filled up with 0. */
static void pair_filter(const ort_kernels *k, const ort_tensor *w, int64_t map, int zero,
                        int16_t *out)
{
    const int64_t channels = w->shape.dim[1], taps = taps_of(&w->shape);
    const char *from = (const char *)w->data + map * channels * taps;
    const bool is_signed = w->dtype == ORT_DTYPE_INT8;
    if (taps == 1) {
        k->gemm.widen_s16(channels, from, is_signed, zero, out);
        return;
    }
    for (int64_t c = 0; c < channels; c++, from += taps, out += c % 2 ? 1 : 2 * taps - 1) {
        if (is_signed)
            SPREAD_ROW(int8_t);
        else
            SPREAD_ROW(uint8_t);
    }
}

static int64_t sum_of(const int16_t *weights, int64_t n)
{
    int32_t sum = 0; /* of a filter of less than 2^31 / 255 weights (FILTER_MOST) */
    for (int64_t i = 0; i < n; i++)
        sum += weights[i];
    return sum;
}

static int64_t weight_of(const int16_t *weights, int64_t n)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += weights[i] < 0 ? -weights[i] : weights[i];
    return sum;
}

/* The largest sum of weights without their signs in `block` pairs of a filter. */
static int64_t heaviest(const int16_t *weights, int64_t maps, int64_t depth, int64_t block)
{
    int64_t most = 0;
    for (int64_t m = 0; m < maps; m++)
        for (int64_t k = 0; k < depth; k += block)
            most = ort_max_i64(most, weight_of(weights + 2 * (m * depth + k),
                                               2 * ort_min_i64(block, depth - k)));
    return most;
}

static int64_t find_block(const int16_t *weights, int64_t maps, int64_t depth)
{
    int64_t blocks = heaviest(weights, maps, depth, depth) / BLOCK_WEIGHTS + 1;
    while (blocks > 1 &&
           heaviest(weights, maps, depth, (depth + blocks - 1) / blocks) > BLOCK_WEIGHTS)
        blocks++;
    return (depth + blocks - 1) / blocks;
}

static ort_status check_constants(const ort_prep *p, int64_t group, ort_error *err)
{
    const ort_tensor *w = ort_prep_constant(p, W);
    if (!w || w->shape.rank < 3 || group < 1 || w->shape.dim[0] % group ||
        ort_tensor_count(w) == 0)
        return ort_prep_fail(p, err, "the weight isn't a constant that fits %lld groups",
                             (long long)group);
    for (int i = X_SCALE; i <= B; i++) {
        const ort_tensor *t = ort_prep_constant(p, i);
        const bool per_map = i == W_SCALE || i == W_ZERO || i == B;
        if (i == W || ort_prep_dtype(p, i) == ORT_DTYPE_UNDEFINED)
            continue;
        if (!t || (ort_tensor_count(t) != 1 &&
                   !(per_map && ort_tensor_count(t) == w->shape.dim[0])))
            return ort_prep_fail(p, err, "input %d isn't a constant that fits", i);
    }
    return ORT_OK;
}

/* Packed: the sums of filters, the pairs of a block, the filters. */
static ort_status wide_prepare(ort_prep *p, ort_error *err)
{
    ort_wide_conv *s = p->state;
    ORT_TRY(check_constants(p, s->group, err));
    const ort_tensor *w = ort_prep_constant(p, W);
    const ort_zeros zeros = ort_zeros_of(ort_prep_constant(p, W_ZERO));
    const int64_t maps = w->shape.dim[0], pairs = (w->shape.dim[1] + 1) / 2;
    const size_t head = ((size_t)maps + 1) * sizeof(double);
    int64_t depth, count;
    size_t bytes;
    bool fill;
    if (!ort_mul_i64(pairs, taps_of(&w->shape), &depth) || depth > FILTER_MOST ||
        !ort_mul_i64(maps, depth, &count) ||
        !ort_mul_size((size_t)count, sizeof(int32_t), &bytes) || !ort_add_size(bytes, head, &bytes))
        return ort_error_memory(err, SIZE_MAX);
    char *packed = ort_prep_pack(p, "wide", 1u << W | 1u << W_ZERO, bytes, &fill);
    if (!packed)
        return ort_error_memory(err, bytes);
    double *sums = (double *)(void *)packed;
    int16_t *weights = (int16_t *)(void *)(packed + head);
    if (fill) {
        memset(weights, 0, bytes - head);
        for (int64_t m = 0; m < maps; m++) {
            pair_filter(p->k, w, m, ort_zero_at(&zeros, m), weights + 2 * m * depth);
            sums[m] = (double)sum_of(weights + 2 * m * depth, 2 * depth);
        }
        sums[maps] = (double)find_block(weights, maps, depth);
    }
    s->block = sums[maps] >= 1 && sums[maps] <= (double)depth ? (int64_t)sums[maps] : 1;
    s->sums = sums;
    s->weights = (const int32_t *)(const void *)weights;
    ort_prep_absorb(p, W);
    return ORT_OK;
}

/* ---- shape */

static void plan_grid(conv_plan *c, int64_t group_pairs)
{
    c->map_blocks = (c->group_maps + TILE_MAPS - 1) / TILE_MAPS;
    c->map_block = (c->group_maps + c->map_blocks - 1) / c->map_blocks;
    c->tile = ORT_WIDE_COLUMNS;
    c->tiles = (c->s.length + c->tile - 1) / c->tile;
    const int64_t image = c->s.channel * group_pairs * c->group * (int64_t)sizeof(int32_t);
    c->images = ort_max_i64(ort_min_i64(c->n, SPREAD_BYTES / (image + 1)), 1);
}

/* Where each pair of a filter finds its own. */
static ort_status plan_offsets(wide_conv_plan *p, ort_arena *arena, ort_error *err)
{
    conv_plan *c = &p->c;
    const int64_t *kernel = c->s.w.kernel;
    int64_t *offset = ort_arena_array(arena, (size_t)p->depth_pairs, sizeof *offset);
    if (!offset)
        return ort_error_memory(err, (size_t)p->depth_pairs * sizeof *offset);
    c->offset = offset;
    for (int64_t i = 0; i < p->group_pairs; i++)
        for (int64_t kz = 0; kz < kernel[0]; kz++)
            for (int64_t ky = 0; ky < kernel[1]; ky++)
                for (int64_t kx = 0; kx < kernel[2]; kx++)
                    *offset++ = i * c->s.channel + ort_spread_tap(&c->s, kz, ky, kx);
    return ORT_OK;
}

/* Where the outputs of each tile lie in a plane: rows that tiles cut. */
static ort_status plan_strips(wide_conv_plan *p, ort_arena *arena, ort_error *err)
{
    const conv_plan *c = &p->c;
    const size_t most = (size_t)(c->s.w.out[0] * c->s.w.out[1] + c->tiles) + 1;
    wide_strip *strip = ort_arena_array(arena, most, sizeof *strip);
    int64_t *first = ort_arena_array(arena, (size_t)c->tiles + 1, sizeof *first);
    if (!strip || !first)
        return ort_error_memory(err, most * sizeof *strip);
    p->strips = strip;
    p->first_strip = first;
    for (int64_t tile = 0; tile < c->tiles; tile++) {
        int64_t at = tile * c->tile;
        const int64_t begin = at, last = ort_min_i64(at + c->tile, c->s.length);
        first[tile] = strip - p->strips;
        while (ort_spread_next(&c->s, last, &at, &strip->flat, &strip->out, &strip->count)) {
            strip->flat -= begin;
            strip++;
        }
    }
    first[c->tiles] = strip - p->strips;
    return ORT_OK;
}

static size_t thread_bytes(const conv_plan *c)
{
    const size_t cells = (size_t)(c->map_block * c->tile);
    return ORT_WIDE_LINE_BYTES + cells * (sizeof(double) + sizeof(int32_t));
}

static ort_status wide_shape(ort_shaping *sh, ort_error *err)
{
    const ort_wide_conv *s = sh->state;
    const ort_shape *x = &sh->in[X]->shape, *w = &sh->in[W]->shape;
    wide_conv_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    ort_window window;
    if (!p)
        return ort_error_memory(err, sizeof *p);
    sh->plan_state = p;
    conv_plan *c = &p->c;
    ORT_TRY(ort_conv_window(&s->spec, s->group, x, w, &window, err));
    c->n = x->dim[0];
    c->channels = x->dim[1];
    c->maps = w->dim[0];
    c->group = s->group;
    c->group_channels = w->dim[1];
    c->group_maps = c->maps / c->group;
    p->group_pairs = (c->group_channels + 1) / 2;
    p->depth_pairs = p->group_pairs * taps_of(w);
    c->in_plane = ort_shape_count_range(x, 2, x->rank);
    c->out_plane = 1;
    for (int i = 0; i < window.rank; i++)
        c->out_plane *= window.out[i];
    if (sh->out[0] && c->n * c->maps * c->out_plane != ort_tensor_count(sh->out[0]))
        return ort_error_set(err, ORT_ERROR_MODEL, "the output has another shape than the result");
    if (c->n * c->maps * c->out_plane == 0)
        return ORT_OK;
    ORT_TRY(ort_spread_build(&window, sh->arena, &c->s, err));
    sh->workspace_bytes = 2 * (size_t)c->maps * sizeof(double);
    ORT_TRY(ort_wide_windows_shape(sh, s, c, &p->windows, err));
    if (p->windows)
        return ORT_OK;
    plan_grid(c, p->group_pairs);
    ORT_TRY(plan_offsets(p, sh->arena, err));
    ORT_TRY(plan_strips(p, sh->arena, err));
    size_t planes, spread;
    if (!ort_mul_size((size_t)c->s.channel, (size_t)(p->group_pairs * c->group), &planes) ||
        !ort_mul_size(planes, (size_t)c->images * sizeof(int32_t), &spread))
        return ort_error_memory(err, SIZE_MAX);
    p->near = c->group > 1 && c->s.channel * p->group_pairs <= NEAR_PAIRS;
    p->scale = p->near ? 0 : ort_round_up(spread, 64);
    sh->workspace_bytes += p->scale;
    sh->thread_bytes = thread_bytes(c);
    if (p->near)
        sh->thread_bytes += (size_t)(c->s.channel * p->group_pairs) * sizeof(int32_t);
    return ORT_OK;
}

/* ---- run */

typedef struct wide_job {
    ort_wide_job all;
    const wide_conv_plan *p;
    int64_t first_image;
    int32_t *spread;
} wide_job;

typedef struct wide_planes {
    const uint16_t *a, *b; /* b: a once more where there is no second, whose weights are 0 */
    uint16_t flip;
} wide_planes;

static void line_of_codes(const void *planes, int64_t at, int64_t stride, int64_t count,
                          int16_t *out)
{
    const wide_planes *p = planes;
    const uint16_t *a = p->a + at, *b = p->b + at;
    const uint32_t flip = p->flip | (uint32_t)p->flip << 16;
    uint32_t *to = (uint32_t *)(void *)out;
    if (stride == 1)
        for (int64_t i = 0; i < count; i++)
            to[i] = (a[i] | (uint32_t)b[i] << 16) ^ flip;
    else if (stride == 2)
        for (int64_t i = 0; i < count; i++)
            to[i] = (a[2 * i] | (uint32_t)b[2 * i] << 16) ^ flip;
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = (a[i * stride] | (uint32_t)b[i * stride] << 16) ^ flip;
}

/* One pair of channels of a group, the groups of all images one behind the other. */
static void spread_pair(const wide_job *j, int64_t group, int64_t pair, int32_t *to)
{
    const conv_plan *c = &j->p->c;
    const uint16_t *a = j->all.x + (group * c->group_channels + 2 * pair) * c->in_plane;
    const wide_planes planes = {a, 2 * pair + 1 < c->group_channels ? a + c->in_plane : a,
                                j->all.flip};
    ort_spread_pairs(&c->s, line_of_codes, &planes, (int16_t)j->all.zero, to);
}

static void task_spread(void *arg, size_t task, int thread)
{
    const wide_job *j = arg;
    const int64_t pairs = j->p->group_pairs;
    spread_pair(j, j->first_image * j->p->c.group + (int64_t)task / pairs, (int64_t)task % pairs,
                j->spread + (int64_t)task * j->p->c.s.channel);
}

/* A thread's scratch. */
typedef struct wide_space {
    ort_wide_line line;
    double *sums;  /* [map_block][tile] */
    int32_t *part; /* likewise */
    const wide_strip *strips, *end; /* of the tile */
} wide_space;

static void fill(int64_t n, double value, double *line)
{
    for (int64_t i = 0; i < n; i++)
        line[i] = value;
}

/* What lies behind it. */
static char *open_space(const wide_job *j, int thread, wide_space *s)
{
    const int64_t cells = j->p->c.map_block * j->p->c.tile;
    char *behind = ort_wide_open_line(ort_call_scratch(j->all.call, thread), &s->line);
    s->sums = (double *)(void *)behind;
    s->part = (int32_t *)(void *)(s->sums + cells);
    return (char *)(s->part + cells);
}

/* Numbers of n sums of map `map` (of the task the m-th). */
static void scale_map(const wide_job *j, const wide_space *s, int64_t map, int64_t m, int64_t n)
{
    const ort_wide_job *all = &j->all;
    const int64_t tile = j->p->c.tile;
    if (all->s->block >= j->p->depth_pairs) {
        ort_wide_numbers(all, &s->line, map, s->part + m * tile, n);
        return;
    }
    fill(n, all->bias[map], s->line.bias);
    fill(n, all->scale[map], s->line.scale);
    all->call->k->gemm.wide_scale(n, s->sums + m * tile, s->line.scale, s->line.bias,
                                  s->line.numbers);
}

/* What follows on a tile's numbers, into the plane that begins at element `y` of Y. */
static void finish_map(const wide_job *j, const wide_space *s, int64_t n, int64_t y)
{
    const ort_tensor *to = j->all.y;
    const size_t width = (size_t)ort_dtype_get(to->dtype)->bits / 8;
    const char *result = ort_wide_follow(&j->all, &s->line, n);
    for (const wide_strip *strip = s->strips; strip < s->end; strip++)
        memcpy((char *)to->data + (size_t)(y + strip->out) * width,
               result + (size_t)strip->flat * width, (size_t)strip->count * width);
}

/* Sums of some maps by columns, block by block. */
static void multiply(const wide_job *j, const wide_space *s, int64_t map, int64_t maps,
                     const int32_t *b, int64_t n)
{
    const wide_conv_plan *p = j->p;
    const ort_wide_job *all = &j->all;
    const ort_gemm_kernels *g = &all->call->k->gemm;
    const int64_t tile = p->c.tile, depth = p->depth_pairs;
    const bool blocks = all->s->block < depth;
    for (int64_t m = 0; m < maps && blocks; m++)
        memset(s->sums + m * tile, 0, (size_t)n * sizeof *s->sums);
    for (int64_t k0 = 0, step; k0 < depth; k0 += step) {
        const int64_t done = k0 % all->s->block, left = all->s->block - done;
        step = ort_min_i64(ort_min_i64(g->kc, left), depth - k0);
        const ort_tile_i32 t = {.a = all->s->weights + map * depth + k0, .b = b, .lda = depth,
                                .b_panel = g->nri, .b_offset = p->c.offset + k0, .c = s->part,
                                .ldc = tile, .add = done ? s->part : NULL, .ldadd = tile};
        g->i16(maps, n, step, &t);
        const bool ends = blocks && (step == left || k0 + step == depth);
        for (int64_t m = 0; m < maps && ends; m++)
            g->wide_add(n, 1, s->part + m * tile, s->sums + m * tile);
    }
}

/* A block of maps by a tile; `group` counts those of all images. */
static void make_tile(const wide_job *j, wide_space *s, int64_t group, int64_t block, int64_t tile,
                      const int32_t *b)
{
    const conv_plan *c = &j->p->c;
    const int64_t first = tile * c->tile, n = ort_min_i64(c->tile, c->s.length - first);
    const int64_t map = group % c->group * c->group_maps + block * c->map_block;
    const int64_t maps = ort_min_i64(c->map_block, c->group_maps - block * c->map_block);
    s->strips = j->p->strips + j->p->first_strip[tile];
    s->end = j->p->strips + j->p->first_strip[tile + 1];
    multiply(j, s, map, maps, b + first, n);
    for (int64_t m = 0; m < maps; m++) {
        scale_map(j, s, map + m, m, n);
        finish_map(j, s, n, (group / c->group * c->maps + map + m) * c->out_plane);
    }
}

static void task_product(void *arg, size_t task, int thread)
{
    const wide_job *j = arg;
    const conv_plan *c = &j->p->c;
    const int64_t tile = (int64_t)task % c->tiles, index = (int64_t)task / c->tiles;
    const int64_t block = index % c->map_blocks, group = index / c->map_blocks;
    wide_space s;
    open_space(j, thread, &s);
    make_tile(j, &s, j->first_image * c->group + group, block, tile,
              j->spread + group * j->p->group_pairs * c->s.channel);
}

/* A small group of an image: what is spread stays in the cache. */
static void task_near(void *arg, size_t task, int thread)
{
    const wide_job *j = arg;
    const conv_plan *c = &j->p->c;
    wide_space s;
    int32_t *b = (int32_t *)(void *)open_space(j, thread, &s);
    for (int64_t pair = 0; pair < j->p->group_pairs; pair++)
        spread_pair(j, (int64_t)task, pair, b + pair * c->s.channel);
    for (int64_t block = 0; block < c->map_blocks; block++)
        for (int64_t tile = 0; tile < c->tiles; tile++)
            make_tile(j, &s, (int64_t)task, block, tile, b);
}

/* Of each map what its sums are multiplied by, and what is added then: what the zero point adds is
 * taken off by it. */
static void find_numbers(const ort_call *call, int64_t maps, ort_wide_job *j, double *scale)
{
    const ort_tensor *by = ort_call_in(call, W_SCALE), *b = ort_call_in(call, B);
    double *bias = scale + maps;
    float x_scale = 0;
    ort_tensor_one_f32(ort_call_in(call, X_SCALE), &x_scale);
    for (int64_t m = 0; m < maps; m++) {
        scale[m] = (double)x_scale *
                   (double)((const float *)by->data)[ort_tensor_count(by) == 1 ? 0 : m];
        bias[m] = (b ? (double)((const float *)b->data)[ort_tensor_count(b) == 1 ? 0 : m] : 0) -
                  (double)j->zero * j->s->sums[m] * scale[m];
    }
    j->scale = scale;
    j->bias = bias;
    if (!ort_call_in(call, Y_SCALE))
        return;
    int64_t zero = 0;
    ort_tensor_one_f32(ort_call_in(call, Y_SCALE), &j->y_scale);
    ort_tensor_one_i64(ort_call_in(call, Y_ZERO), &zero);
    j->y_zero = (int)zero;
}

static ort_status wide_run(ort_call *call, ort_error *err)
{
    const wide_conv_plan *p = call->plan_state;
    const conv_plan *c = &p->c;
    const ort_tensor *x = ort_call_in(call, X);
    const bool is_signed = x->dtype == ORT_DTYPE_INT16;
    char *space = call->workspace;
    wide_job j = {
        .all = {.call = call, .s = call->state, .x = x->data, .y = ort_call_out(call, 0),
                .flip = is_signed ? 0 : 0x8000, .y_scale = 1},
        .p = p, .spread = (int32_t *)(void *)space};
    if (!j.all.y || ort_tensor_count(j.all.y) == 0)
        return ORT_OK;
    int64_t zero = 0;
    ort_tensor_one_i64(ort_call_in(call, X_ZERO), &zero);
    j.all.zero = (int)zero - (is_signed ? 0 : 32768);
    find_numbers(call, c->maps, &j.all, (double *)(void *)(space + p->scale));
    if (p->windows) {
        ort_wide_windows_run(call, &j.all, c, p->windows);
        return ORT_OK;
    }
    if (p->near) {
        ort_call_parallel(call, (size_t)(c->n * c->group), task_near, &j);
        return ORT_OK;
    }
    for (; j.first_image < c->n; j.first_image += c->images) {
        const int64_t images = ort_min_i64(c->images, c->n - j.first_image);
        ort_call_parallel(call, (size_t)(images * c->group * p->group_pairs), task_spread, &j);
        ort_call_parallel(call, (size_t)(images * c->group * c->map_blocks * c->tiles),
                          task_product, &j);
    }
    return ORT_OK;
}

static const ort_op_impl wide_impl = {
    .state = sizeof(ort_wide_conv), .bind = wide_bind, .infer = wide_infer,
    .prepare = wide_prepare, .shape = wide_shape, .run = wide_run, .cost = ort_conv_cost,
};

const ort_op ort_ops_wide_conv[] = {
    {ORT_INTERNAL, "WideConv", 1,
     "x:T1,x_scale:f32,x_zero_point?:T1,w:T2,w_scale:f32,w_zero_point?:T2,y_scale?:f32,"
     "y_zero_point?:T3,B?:f32 -> y:T4",
     "T1:i16,u16 T2:i8,u8 T3:i8,u8,i16,u16 T4:f32,i8,u8,i16,u16",
     "act:i=-1 act_a:f=0 act_b:f=0 auto_pad:s=NOTSET dilations:is group:i=1 high:f! "
     "kernel_shape:is low:f! pads:is strides:is", 0, &wide_impl},
    {0},
};
