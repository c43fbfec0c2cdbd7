/* quant_conv.c - ConvInteger and QLinearConv, exact.
 *
 * As conv_f32.c, on other elements. Products: an element is a pair of int16, two input channels
 * side by side with their zero points taken off, so padding is plain zero; sums are int32. Few
 * maps per group (depthwise): bytes become floats, whose sums are exact while depth * 255 * 255 <
 * 2^24, and the f32 window kernel does the rest.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/channels_last.h"
#include "op/shared/conv_shape.h"
#include "op/shared/integer.h"
#include "op/shared/spread_pairs.h"
#include "tensor/scalar.h"

enum { TILE_COLUMNS = 256, TILE_MAPS = 84, WINDOW_MAPS = 3, WINDOW_DEPTH = 256,
       SPREAD_BYTES = 16 << 20 };

typedef struct conv_slots { /* inputs, -1: none */
    int x, w, x_zero, w_zero, x_scale, w_scale, y_scale, y_zero, bias;
} conv_slots;

enum { INTEGER, QLINEAR };

static const conv_slots all_slots[] = {
    [INTEGER] = {0, 1, 2, 3, -1, -1, -1, -1, -1}, [QLINEAR] = {0, 3, 2, 5, 1, 4, 6, 7, 8}};

typedef struct qconv_state {
    const conv_slots *in;
    ort_window_spec spec;
    int64_t group;
    bool channels_last;  /* com.microsoft: x and y are [n, spatial..., channels] */
    const void *weights; /* prepared from constants: pairs, then floats; NULL */
} qconv_state;

static const ort_bind qconv_bind[] = {
    ORT_BIND(qconv_state, group), ORT_BIND(qconv_state, channels_last, ORT_MAYBE), {0}};

typedef struct qconv_plan {
    conv_plan c;           /* offsets count elements of the spread layout */
    int64_t group_pairs;   /* channel pairs of a group */
    int64_t depth_pairs;   /* group_pairs * taps */
    int64_t taps;
    size_t weights, scale; /* workspace offsets */
} qconv_plan;

/* ---- inference */

/* A scale or zero point of the weight: one, or one per map. */
static ort_status infer_per_map(const ort_infer *x, int input, ort_error *err)
{
    char text[300];
    ort_dim n = ort_infer_dim(x, input, 0), maps = ort_infer_dim(x, 3, 0);
    if (!ort_infer_in_ranked(x, input) || x->in[input]->type.rank != 1 || !ort_dim_known(n) ||
        n.size == 1 || !ort_dim_known(maps) || n.size == maps.size)
        return ORT_OK;
    return ort_infer_fail(x, err, "input %d is %s, needs 1 element or %lld, one per map", input,
                          ort_type_format(x->dims, &x->in[input]->type, text, sizeof text),
                          (long long)maps.size);
}

static ort_status qlinear_infer(ort_infer *x, ort_error *err)
{
    ORT_TRY(infer_per_map(x, 4, err));
    ORT_TRY(infer_per_map(x, 5, err));
    return ort_conv_infer_shape(x, 0, 3, err);
}

/* ---- weights */

static bool uses_windows(int64_t group_maps, int64_t depth)
{
    return group_maps <= WINDOW_MAPS && depth <= WINDOW_DEPTH;
}

/* Prepared weights of W: floats [maps][depth] for windows, else int16 pairs [maps][pairs of
 * channels][taps][2]. */
static bool weight_bytes(const ort_shape *w, int64_t group, size_t *bytes)
{
    int64_t maps = w->dim[0], channels = w->dim[1], taps = ort_shape_count_range(w, 2, w->rank);
    int64_t count;
    if (!uses_windows(maps / group, channels * taps))
        channels = (channels + 1) / 2;
    return ort_mul_i64(maps, channels, &count) && ort_mul_i64(count, taps, &count) &&
           ort_mul_size((size_t)count, 4, bytes);
}

/* One map's channels, [channels][taps], to pairs [pair][tap][2]. */
#define PAIR_CHANNELS(type)                                                                        \
    do {                                                                                           \
        const type *at = from;                                                                     \
        for (int64_t c = 0; c < channels; c += 2, at += 2 * taps, pairs += 2 * taps)               \
            for (int64_t t = 0; t < taps; t++) {                                                   \
                pairs[2 * t] = (int16_t)(at[t] - zero);                                            \
                pairs[2 * t + 1] = c + 1 < channels ? (int16_t)(at[taps + t] - zero) : 0;          \
            }                                                                                      \
    } while (0)

static void pair_channels(const void *from, bool is_signed, int zero, int64_t channels,
                          int64_t taps, int16_t *pairs)
{
    if (is_signed)
        PAIR_CHANNELS(int8_t);
    else
        PAIR_CHANNELS(uint8_t);
}

static void prepare_floats(const ort_tensor *w, int64_t terms, const ort_zeros *zeros, float *out)
{
    const int8_t *s = w->data;
    const uint8_t *u = w->data;
    for (int64_t m = 0; m < w->shape.dim[0]; m++)
        for (int64_t at = m * terms; at < (m + 1) * terms; at++)
            out[at] = (float)((w->dtype == ORT_DTYPE_INT8 ? s[at] : u[at]) - ort_zero_at(zeros, m));
}

static void prepare_weights(const ort_kernels *k, const ort_tensor *w, int64_t group,
                            const ort_zeros *zeros, void *out)
{
    int64_t maps = w->shape.dim[0], channels = w->shape.dim[1], even = (channels + 1) / 2 * 2;
    int64_t taps = ort_shape_count_range(&w->shape, 2, w->shape.rank);
    bool is_signed = w->dtype == ORT_DTYPE_INT8;
    if (uses_windows(maps / group, channels * taps)) {
        prepare_floats(w, channels * taps, zeros, out);
        return;
    }
    for (int64_t m = 0; m < maps; m++) {
        const char *from = (const char *)w->data + m * channels * taps;
        int16_t *pairs = (int16_t *)out + m * even * taps;
        if (taps == 1 && even == channels)
            k->gemm.widen_s16(channels, from, is_signed, ort_zero_at(zeros, m), pairs);
        else
            pair_channels(from, is_signed, ort_zero_at(zeros, m), channels, taps, pairs);
    }
}

static ort_status check_weights(const ort_shape *w, int64_t group, const ort_zeros *zeros,
                                ort_error *err)
{
    if (w->rank < 3 || group < 1 || w->dim[0] % group)
        return ort_error_set(err, ORT_ERROR_MODEL, "the weight has rank %d for %lld groups",
                             w->rank, (long long)group);
    if (zeros->count != 1 && zeros->count != w->dim[0])
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "the zero point of the weight has %lld elements, needs 1 or %lld",
                             (long long)zeros->count, (long long)w->dim[0]);
    return ORT_OK;
}

static ort_status qconv_prepare(ort_prep *p, ort_error *err)
{
    qconv_state *state = p->state;
    const conv_slots *in = &all_slots[p->op->variant];
    state->in = in;
    ORT_TRY(ort_window_read(p->node, &state->spec, err));
    const int bytes[] = {in->x, in->w};
    for (int i = 0; i < 2; i++) {
        ort_dtype dtype = ort_prep_dtype(p, bytes[i]);
        if (dtype != ORT_DTYPE_INT8 && dtype != ORT_DTYPE_UINT8)
            return ort_prep_unsupported_dtype(p, bytes[i], err);
    }
    const ort_tensor *w = ort_prep_constant(p, in->w), *zero = ort_prep_constant(p, in->w_zero);
    if (!w || (!zero && ort_prep_dtype(p, in->w_zero) != ORT_DTYPE_UNDEFINED))
        return ORT_OK;
    ort_zeros zeros = ort_zeros_of(zero);
    ORT_TRY(check_weights(&w->shape, state->group, &zeros, err));
    size_t size;
    if (!weight_bytes(&w->shape, state->group, &size))
        return ort_error_memory(err, SIZE_MAX);
    bool fill;
    void *weights = ort_prep_pack(p, "filter", ort_prep_constants(p), size + 4, &fill);
    if (!weights)
        return ort_error_memory(err, size);
    if (fill)
        prepare_weights(p->k, w, state->group, &zeros, weights);
    ort_prep_absorb(p, in->w);
    state->weights = weights;
    return ORT_OK;
}

/* ---- shape */

static const ort_tensor *slot(const ort_shaping *s, int input)
{
    return input >= 0 && input < s->in_count ? s->in[input] : NULL;
}

static ort_status check_count(const ort_tensor *t, int64_t n, const char *what, ort_error *err)
{
    int64_t count = t ? ort_tensor_count(t) : 1;
    if (count == 1 || count == n)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_MODEL, "%s has %lld elements, needs %s%lld", what,
                         (long long)count, n == 1 ? "" : "1 or ", (long long)n);
}

static ort_status plan_grid(ort_shaping *s, qconv_plan *p, const ort_window *window, size_t *total,
                            ort_error *err)
{
    conv_plan *c = &p->c;
    int64_t elements = p->group_pairs * c->group; /* spread planes of an image */
    if (c->windows) {
        int64_t rows = c->s.w.out[1], bytes = c->s.channel * c->group_channels * 4;
        if (c->s.w.out[0] == 1 && bytes > (128 << 10))
            rows = ort_min_i64(ort_max_i64(rows * (96 << 10) / bytes / 4 * 4, 4), rows);
        ort_window block = *window;
        ort_window_to_3d(&block);
        c->rows = rows;
        c->row_blocks = (block.out[1] + rows - 1) / rows;
        block.out[1] = rows;
        ORT_TRY(ort_spread_build(&block, s->arena, &c->s, err));
        c->groups = ort_conv_groups(c);
        s->thread_bytes = (size_t)(c->groups * (c->s.channel + c->in_plane) * c->group_channels +
                                   rows * block.out[2]) * 4;
        return ORT_OK;
    }
    c->map_blocks = (c->group_maps + TILE_MAPS - 1) / TILE_MAPS;
    c->tiles = (c->s.length + TILE_COLUMNS - 1) / TILE_COLUMNS;
    if (c->tiles < 4)
        c->map_blocks = ort_max_i64(c->map_blocks, (c->group_maps + 41) / 42);
    c->map_block = (c->group_maps + c->map_blocks - 1) / c->map_blocks;
    c->map_blocks = (c->group_maps + c->map_block - 1) / c->map_block;
    c->tile = TILE_COLUMNS;
    s->thread_bytes = (size_t)(c->map_block * c->tile) * 4 + (size_t)c->tile;
    size_t one, bytes;
    if (!ort_mul_size((size_t)c->s.channel, (size_t)elements * 4, &one))
        return ort_error_memory(err, SIZE_MAX);
    c->images = ort_max_i64(ort_min_i64(c->n, (int64_t)(SPREAD_BYTES / (one + 1))), 1);
    c->spread_space = *total;
    if (!ort_mul_size(one, (size_t)c->images, &bytes) ||
        !ort_add_size(*total, ort_round_up(bytes, 64), total))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

static ort_status qconv_shape(ort_shaping *s, ort_error *err)
{
    const qconv_state *state = s->state;
    const conv_slots *in = state->in;
    const ort_tensor *x = s->in[in->x], *w = s->in[in->w];
    qconv_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    conv_plan *c = &p->c;
    ort_window window;
    ort_zeros zeros = ort_zeros_of(slot(s, in->w_zero));
    ORT_TRY(check_weights(&w->shape, state->group, &zeros, err));
    ORT_TRY(ort_conv_window(&state->spec, state->group, &x->shape, &w->shape, &window, err));
    c->n = x->shape.dim[0];
    c->channels = x->shape.dim[1];
    c->maps = w->shape.dim[0];
    c->group = state->group;
    c->group_channels = w->shape.dim[1];
    c->group_maps = c->maps / c->group;
    p->taps = ort_shape_count_range(&w->shape, 2, w->shape.rank);
    c->depth = c->group_channels * p->taps;
    p->group_pairs = (c->group_channels + 1) / 2;
    p->depth_pairs = p->group_pairs * p->taps;
    c->in_plane = ort_shape_count_range(&x->shape, 2, x->shape.rank);
    c->out_plane = 1;
    for (int i = 0; i < window.rank; i++)
        c->out_plane *= window.out[i];
    if (s->out[0] && c->n * c->maps * c->out_plane != ort_tensor_count(s->out[0]))
        return ort_error_set(err, ORT_ERROR_MODEL, "the output has another shape than the result");
    ORT_TRY(check_count(slot(s, in->x_scale), 1, "the scale of the input", err));
    ORT_TRY(check_count(slot(s, in->x_zero), 1, "the zero point of the input", err));
    ORT_TRY(check_count(slot(s, in->w_scale), c->maps, "the scale of the weight", err));
    ORT_TRY(check_count(slot(s, in->y_scale), 1, "the scale of the output", err));
    ORT_TRY(check_count(slot(s, in->y_zero), 1, "the zero point of the output", err));
    if (slot(s, in->bias) && ort_tensor_count(slot(s, in->bias)) != c->maps)
        return ort_error_set(err, ORT_ERROR_MODEL, "the bias needs %lld elements",
                             (long long)c->maps);
    if (c->n * c->maps * c->out_plane == 0)
        return ORT_OK;
    ORT_TRY(ort_spread_build(&window, s->arena, &c->s, err));
    c->windows = uses_windows(c->group_maps, c->depth);
    size_t total = 0, bytes;
    if (!state->weights) {
        if (!weight_bytes(&w->shape, c->group, &bytes))
            return ort_error_memory(err, SIZE_MAX);
        total = ort_round_up(bytes, 64);
    }
    p->scale = total;
    total += ort_round_up((size_t)c->maps * sizeof(float), 64);
    ORT_TRY(plan_grid(s, p, &window, &total, err));
    s->workspace_bytes = total;
    int64_t planes = c->windows ? c->group_channels : p->group_pairs;
    int64_t *offset = ort_arena_array(s->arena, (size_t)(planes * p->taps), sizeof *offset);
    if (!offset)
        return ort_error_memory(err, (size_t)(planes * p->taps) * sizeof *offset);
    c->offset = offset;
    const int64_t *kernel = c->s.w.kernel;
    for (int64_t i = 0; i < planes; i++)
        for (int64_t kz = 0; kz < kernel[0]; kz++)
            for (int64_t ky = 0; ky < kernel[1]; ky++)
                for (int64_t kx = 0; kx < kernel[2]; kx++)
                    *offset++ = i * c->s.channel + ort_spread_tap(&c->s, kz, ky, kx);
    return ORT_OK;
}

/* ---- run */

typedef struct qconv_run {
    const ort_call *call;
    const qconv_plan *p;
    const ort_tensor *x;
    ort_tensor *y;
    const void *weights;
    const float *scale;       /* per map */
    const int32_t *bias;      /* per map, or NULL */
    int x_zero, y_zero;
    int64_t first_image;
    int32_t *spread;
} qconv_run;

typedef struct byte_planes {
    const qconv_run *r;
    const char *a, *b; /* b: NULL where there is no second */
} byte_planes;

static void line_of_bytes(const void *planes, int64_t at, int64_t stride, int64_t count,
                          int16_t *out)
{
    const byte_planes *p = planes;
    const bool is_signed = p->r->x->dtype == ORT_DTYPE_INT8;
    p->r->call->k->gemm.widen_pairs_s16(count, p->a + at, p->b ? p->b + at : NULL, stride,
                                        is_signed, p->r->x_zero, out);
}

/* `count` sums of one map to the output at element `at`. */
static void finish(const qconv_run *r, int64_t map, int64_t at, int64_t count, const int32_t *sums)
{
    if (r->y->dtype == ORT_DTYPE_INT32) {
        memcpy((int32_t *)r->y->data + at, sums, (size_t)count * sizeof *sums);
        return;
    }
    bool is_signed = r->y->dtype == ORT_DTYPE_INT8;
    ort_requant q = {.bias = r->bias ? r->bias + map : NULL, .scale = r->scale + map,
                     .zero = r->y_zero, .lo = is_signed ? -128 : 0, .hi = is_signed ? 127 : 255};
    r->call->k->gemm.requant(count, sums, &q, (char *)r->y->data + at);
}

static void window_map(const qconv_run *r, int64_t image, int64_t map, int64_t row,
                       const int32_t *in, int32_t *sums)
{
    const conv_plan *c = &r->p->c;
    const ort_window *w = &c->s.w;
    int64_t total_rows = c->out_plane / (w->out[0] * w->out[2]);
    int64_t rows = ort_min_i64(c->rows, total_rows - row);
    ort_taps_f32 t = {.taps = c->depth, .offset = c->offset,
                      .weight = (const float *)r->weights + map * c->depth,
                      .in_row = c->s.extent[2], .out_row = w->out[2], .out = (float *)(void *)sums,
                      .lo = -INFINITY, .hi = INFINITY};
    for (int64_t z = 0; z < w->out[0]; z++) {
        t.in = (const float *)(const void *)(in + z * c->s.extent[1] * c->s.extent[2]);
        r->call->k->gemm.taps_sum_f32(rows, w->out[2], &t);
        r->call->k->gemm.round_f32(rows * w->out[2], t.out, sums);
        finish(r, map, (image * c->maps + map) * c->out_plane + (z * total_rows + row) * w->out[2],
               rows * w->out[2], sums);
    }
}

static void task_windows(void *arg, size_t task, int thread)
{
    const qconv_run *r = arg;
    const conv_plan *c = &r->p->c;
    int32_t *space = ort_call_scratch(r->call, thread);
    int32_t *sums = space + c->groups * c->s.channel * c->group_channels;
    int64_t row = (int64_t)task % c->row_blocks * c->rows;
    int64_t group = (int64_t)task / c->row_blocks * c->groups, image = group / c->group;
    group %= c->group;
    const char *x = (const char *)r->x->data +
                    (image * c->channels + group * c->group_channels) * c->in_plane;
    int64_t planes = c->groups * c->group_channels;
    float *wide = (float *)(void *)(sums + c->rows * c->s.w.out[2]);
    r->call->k->gemm.widen_f32(planes * c->in_plane, x, r->x->dtype == ORT_DTYPE_INT8, r->x_zero,
                               wide);
    ort_spread_f32(r->call->k, &c->s, planes, wide, row, 0.0f, (float *)(void *)space);
    for (int64_t g = 0; g < c->groups; g++, space += c->group_channels * c->s.channel)
        for (int64_t m = 0; m < c->group_maps; m++)
            window_map(r, image, (group + g) * c->group_maps + m, row, space, sums);
}

static void task_spread(void *arg, size_t task, int thread)
{
    const qconv_run *r = arg;
    const conv_plan *c = &r->p->c;
    int64_t pair = (int64_t)task % r->p->group_pairs, group = (int64_t)task / r->p->group_pairs;
    const char *a = (const char *)r->x->data + (r->first_image * c->channels +
                                                group * c->group_channels + 2 * pair) * c->in_plane;
    const byte_planes planes = {r, a, 2 * pair + 1 < c->group_channels ? a + c->in_plane : NULL};
    ort_spread_pairs(&c->s, line_of_bytes, &planes, 0, r->spread + (int64_t)task * c->s.channel);
}

static void task_product(void *arg, size_t task, int thread)
{
    const qconv_run *r = arg;
    const qconv_plan *p = r->p;
    const conv_plan *c = &p->c;
    const ort_gemm_kernels *g = &r->call->k->gemm;
    int64_t index = (int64_t)task, first = index % c->tiles * c->tile;
    int64_t block = (index /= c->tiles) % c->map_blocks;
    int64_t group = (index /= c->map_blocks) % c->group, image = index / c->group;
    int64_t last = ort_min_i64(first + c->tile, c->s.length);
    int64_t map = group * c->group_maps + block * c->map_block;
    int64_t maps = ort_min_i64(c->map_block, c->group_maps - block * c->map_block);
    int32_t *sums = ort_call_scratch(r->call, thread);
    const int32_t *b = r->spread + (image * c->group + group) * p->group_pairs * c->s.channel;
    for (int64_t k0 = 0; k0 == 0 || k0 < p->depth_pairs; k0 += g->kc) {
        ort_tile_i32 t = {.a = (const int32_t *)r->weights + map * p->depth_pairs + k0,
                          .b = b + first, .lda = p->depth_pairs, .b_panel = g->nri,
                          .b_offset = c->offset + k0, .c = sums, .ldc = c->tile,
                          .add = k0 ? sums : NULL, .ldadd = c->tile};
        g->i16(maps, last - first, ort_min_i64(g->kc, p->depth_pairs - k0), &t);
    }
    int64_t y = ((r->first_image + image) * c->maps + map) * c->out_plane;
    int64_t at = first, flat, out, count;
    while (ort_spread_next(&c->s, last, &at, &flat, &out, &count))
        for (int64_t m = 0; m < maps; m++)
            finish(r, map + m, y + m * c->out_plane + out, count,
                   sums + m * c->tile + flat - first);
}

static ort_status qconv_run_(ort_call *call, ort_error *err)
{
    const qconv_state *state = call->state;
    const qconv_plan *p = call->plan_state;
    const conv_slots *in = state->in;
    const conv_plan *c = &p->c;
    char *space = call->workspace;
    qconv_run r = {.call = call, .p = p, .x = ort_call_in(call, in->x), .y = ort_call_out(call, 0),
                   .weights = state->weights};
    if (!r.y || ort_tensor_count(r.y) == 0)
        return ORT_OK;
    if (!r.weights) {
        ort_zeros zeros = ort_zeros_of(ort_call_in(call, in->w_zero));
        prepare_weights(call->k, ort_call_in(call, in->w), state->group, &zeros,
                        space + p->weights);
        r.weights = space + p->weights;
    }
    ort_zeros x_zero = ort_zeros_of(ort_call_in(call, in->x_zero));
    r.x_zero = ort_zero_at(&x_zero, 0);
    if (in->y_scale >= 0) {
        float *scale = (float *)(void *)(space + p->scale);
        const ort_tensor *w_scale = ort_call_in(call, in->w_scale);
        float x_scale = 0, y_scale = 1;
        ort_tensor_one_f32(ort_call_in(call, in->x_scale), &x_scale);
        ort_tensor_one_f32(ort_call_in(call, in->y_scale), &y_scale);
        for (int64_t m = 0; m < c->maps; m++)
            scale[m] = x_scale * ((const float *)w_scale->data)[ort_tensor_count(w_scale) == 1
                                                                    ? 0 : m] / y_scale;
        ort_zeros y_zero = ort_zeros_of(ort_call_in(call, in->y_zero));
        r.scale = scale;
        r.y_zero = ort_zero_at(&y_zero, 0);
        const ort_tensor *bias = ort_call_in(call, in->bias);
        r.bias = bias ? bias->data : NULL;
    }
    if (c->windows) {
        ort_call_parallel(call, (size_t)(c->n * c->group / c->groups * c->row_blocks),
                          task_windows, &r);
        return ORT_OK;
    }
    r.spread = (int32_t *)(void *)(space + c->spread_space);
    for (; r.first_image < c->n; r.first_image += c->images) {
        int64_t images = ort_min_i64(c->images, c->n - r.first_image);
        ort_call_parallel(call, (size_t)(images * c->group * p->group_pairs), task_spread, &r);
        ort_call_parallel(call, (size_t)(images * c->group * c->map_blocks * c->tiles),
                          task_product, &r);
    }
    return ORT_OK;
}

static const ort_op_impl integer_impl = {
    .state = sizeof(qconv_state), .bind = qconv_bind,
    .infer = ort_conv_infer, .prepare = qconv_prepare, .shape = qconv_shape, .run = qconv_run_,
    .cost = ort_conv_cost,
    .numbers = 1u << 2,
};
static const ort_op_impl qlinear_impl = {
    .state = sizeof(qconv_state), .bind = qconv_bind,
    .infer = qlinear_infer, .prepare = qconv_prepare, .shape = qconv_shape, .run = qconv_run_,
    .cost = ort_conv_cost,
    .numbers = 0xc6,
};

static ort_status either_infer(ort_infer *x, ort_error *err)
{
    return ort_node_attr_int(x->node, "channels_last")
               ? ort_channels_last_infer(x, qlinear_infer, err) : qlinear_infer(x, err);
}
static ort_status either_shape(ort_shaping *s, ort_error *err)
{
    const qconv_state *state = s->state;
    return state->channels_last ? ort_channels_last_shape(s, qconv_shape, err)
                                : qconv_shape(s, err);
}
static ort_status either_run(ort_call *call, ort_error *err)
{
    const qconv_state *state = call->state;
    return state->channels_last ? ort_channels_last_run(call, qconv_run_, err)
                                : qconv_run_(call, err);
}

static const ort_op_impl either_impl = {
    .state = sizeof(qconv_state), .bind = qconv_bind,
    .infer = either_infer, .prepare = qconv_prepare, .shape = either_shape, .run = either_run,
    .cost = ort_conv_cost,
    .numbers = 0xc6,
};

#define CONV_ATTRS                                                                                 \
    "auto_pad:s=NOTSET dilations:is group:i=1 kernel_shape:is pads:is strides:is"

const ort_op ort_ops_quant_conv[] = {
    {ONNX, "ConvInteger", 10, "x:T1,w:T2,x_zero_point?:T1,w_zero_point?:T2 -> y:T3",
     "T1:i8,u8 T2:i8,u8 T3:i32", CONV_ATTRS, 0, &integer_impl, .variant = INTEGER},
    {ONNX, "QLinearConv", 10,
     "x:T1,x_scale:f32,x_zero_point:T1,w:T2,w_scale:f32,w_zero_point:T2,y_scale:f32,"
     "y_zero_point:T3,B?:T4 -> y:T3",
     "T1:i8,u8 T2:i8,u8 T3:i8,u8 T4:i32", CONV_ATTRS, 0, &qlinear_impl,
     .variant = QLINEAR},
    {MS, "QLinearConv", 1,
     "x:T1,x_scale:f32,x_zero_point:T1,w:T2,w_scale:f32,w_zero_point:T2,y_scale:f32,"
     "y_zero_point:T3,B?:T4 -> y:T3",
     "T1:i8,u8 T2:i8,u8 T3:i8,u8 T4:i32", CONV_ATTRS " channels_last:i=0", 0, &either_impl,
     .variant = QLINEAR},
    {0},
};
