/* wide_conv.c - convolutions of 16-bit codes by 8-bit weights (WideConv), exact: with their bias, a
 * clamp or a function behind them, and the codes of the result, or floats.
 *
 * As quant_conv.c multiplies bytes: an element is two input channels side by side, here codes of
 * int16 as they are (uint16 less 32768), and the padding is their zero point. What this zero point
 * adds to a sum is the same for every pixel, and is taken off again. int32 holds the sum of as many
 * products as the largest filter allows, often all; those of such blocks are added in double, which
 * is exact far beyond any filter. From there on the number of a pixel is what float operators have,
 * rounded to float once: activation and codes are those of the operators that stood there.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/codes.h"
#include "op/shared/conv_shape.h"
#include "op/shared/integer.h"
#include "op/shared/spread_pairs.h"
#include "tensor/scalar.h"

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, B };
enum {
    TILE_COLUMNS = 256,
    TILE_MAPS = 28,
    SPREAD_BYTES = 16 << 20,
    BLOCK_WEIGHTS = 65535, /* times 2^15 it is below 2^31 */
};

typedef struct wide_conv_state {
    ort_window_spec spec;
    int64_t group, act; /* an ort_unary, or -1 */
    float act_a, act_b, low, high;
    const double *sums;     /* of filters, [maps] */
    const int32_t *weights; /* [maps][pairs of channels][taps] of two int16 */
    int64_t block;          /* pairs of a filter that int32 sums hold */
} wide_conv_state;

static const ort_bind wide_bind[] = {
    ORT_BIND(wide_conv_state, group), ORT_BIND_WINDOW(wide_conv_state),
    ORT_BIND(wide_conv_state, act), ORT_BIND(wide_conv_state, act_a),
    ORT_BIND(wide_conv_state, act_b), ORT_BIND(wide_conv_state, low),
    ORT_BIND(wide_conv_state, high), {0}};

typedef struct wide_conv_plan {
    conv_plan c;         /* offsets count elements of the spread layout */
    int64_t group_pairs; /* channel pairs of a group */
    int64_t depth_pairs; /* group_pairs * taps */
    size_t scale;        /* offset in the workspace: a scale and a bias of each map */
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

static int weight_at(const ort_tensor *w, int64_t at)
{
    return w->dtype == ORT_DTYPE_INT8 ? ((const int8_t *)w->data)[at]
                                      : ((const uint8_t *)w->data)[at];
}

/* One filter as pairs of neighbouring channels, [pair][tap][2]; returns the sum of its weights. */
static int64_t pair_filter(const ort_tensor *w, int64_t map, int zero, int16_t *out)
{
    const int64_t channels = w->shape.dim[1], taps = taps_of(&w->shape);
    const int64_t from = map * channels * taps;
    int64_t sum = 0;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t t = 0; t < taps; t++) {
            const int weight = weight_at(w, from + c * taps + t) - zero;
            out[(c / 2 * taps + t) * 2 + c % 2] = (int16_t)weight;
            sum += weight;
        }
    return sum;
}

/* The largest sum of weights without their signs in `block` pairs of a filter. */
static int64_t heaviest(const int16_t *weights, int64_t maps, int64_t depth, int64_t block)
{
    int64_t most = 0;
    for (int64_t m = 0; m < maps; m++)
        for (int64_t k = 0; k < depth; k += block) {
            const int16_t *at = weights + 2 * (m * depth + k);
            int64_t sum = 0;
            for (int64_t i = 0; i < 2 * ort_min_i64(block, depth - k); i++)
                sum += at[i] < 0 ? -at[i] : at[i];
            most = ort_max_i64(most, sum);
        }
    return most;
}

static int64_t find_block(const int16_t *weights, int64_t maps, int64_t depth)
{
    int64_t blocks = heaviest(weights, maps, depth, depth) / BLOCK_WEIGHTS + 1;
    while (heaviest(weights, maps, depth, (depth + blocks - 1) / blocks) > BLOCK_WEIGHTS)
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
    wide_conv_state *s = p->state;
    ORT_TRY(check_constants(p, s->group, err));
    const ort_tensor *w = ort_prep_constant(p, W);
    const ort_zeros zeros = ort_zeros_of(ort_prep_constant(p, W_ZERO));
    const int64_t maps = w->shape.dim[0], pairs = (w->shape.dim[1] + 1) / 2;
    const size_t head = ((size_t)maps + 1) * sizeof(double);
    int64_t depth, count;
    size_t bytes;
    bool fill;
    if (!ort_mul_i64(pairs, taps_of(&w->shape), &depth) || !ort_mul_i64(maps, depth, &count) ||
        !ort_mul_size((size_t)count, sizeof(int32_t), &bytes) || !ort_add_size(bytes, head, &bytes))
        return ort_error_memory(err, SIZE_MAX);
    char *packed = ort_prep_pack(p, "wide", 1u << W | 1u << W_ZERO, bytes, &fill);
    if (!packed)
        return ort_error_memory(err, bytes);
    double *sums = (double *)(void *)packed;
    int16_t *weights = (int16_t *)(void *)(packed + head);
    if (fill) {
        memset(weights, 0, bytes - head);
        for (int64_t m = 0; m < maps; m++)
            sums[m] = (double)pair_filter(w, m, ort_zero_at(&zeros, m), weights + 2 * m * depth);
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
    c->tile = TILE_COLUMNS;
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

static size_t thread_bytes(const conv_plan *c)
{
    const size_t cells = (size_t)(c->map_block * c->tile);
    return cells * (sizeof(double) + sizeof(int32_t)) +
           TILE_COLUMNS * (2 * sizeof(double) + sizeof(float) + sizeof(uint16_t));
}

static ort_status wide_shape(ort_shaping *sh, ort_error *err)
{
    const wide_conv_state *s = sh->state;
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
    plan_grid(c, p->group_pairs);
    ORT_TRY(plan_offsets(p, sh->arena, err));
    size_t planes, spread;
    if (!ort_mul_size((size_t)c->s.channel, (size_t)(p->group_pairs * c->group), &planes) ||
        !ort_mul_size(planes, (size_t)c->images * sizeof(int32_t), &spread))
        return ort_error_memory(err, SIZE_MAX);
    p->scale = ort_round_up(spread, 64);
    sh->workspace_bytes = p->scale + 2 * (size_t)c->maps * sizeof(double);
    sh->thread_bytes = thread_bytes(c);
    return ORT_OK;
}

/* ---- run */

typedef struct wide_job {
    const ort_call *call;
    const wide_conv_state *s;
    const wide_conv_plan *p;
    const uint16_t *x;
    ort_tensor *y;
    const double *scale, *bias; /* per map */
    uint16_t flip;              /* of codes */
    int zero;                   /* of flipped codes */
    float y_scale;
    int y_zero;
    int64_t first_image;
    int32_t *spread;
} wide_job;

typedef struct wide_planes {
    const uint16_t *a, *b; /* b: NULL where there is no second */
    uint16_t flip;
} wide_planes;

static void line_of_codes(const void *planes, int64_t at, int64_t stride, int64_t count,
                          int16_t *out)
{
    const wide_planes *p = planes;
    const uint16_t *a = p->a + at, *b = p->b ? p->b + at : a, flip = p->flip;
    if (stride != 1) {
        for (int64_t i = 0; i < count; i++) {
            out[2 * i] = (int16_t)(a[i * stride] ^ flip);
            out[2 * i + 1] = (int16_t)(b[i * stride] ^ flip);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        out[2 * i] = (int16_t)(a[i] ^ flip);
        out[2 * i + 1] = (int16_t)(b[i] ^ flip);
    }
}

static void task_spread(void *arg, size_t task, int thread)
{
    const wide_job *j = arg;
    const conv_plan *c = &j->p->c;
    const int64_t pair = (int64_t)task % j->p->group_pairs;
    const int64_t group = (int64_t)task / j->p->group_pairs;
    const uint16_t *a = j->x + (j->first_image * c->channels + group * c->group_channels +
                                2 * pair) * c->in_plane;
    /* a second channel that isn't there has weights of 0 */
    const wide_planes planes = {a, 2 * pair + 1 < c->group_channels ? a + c->in_plane : NULL,
                                j->flip};
    ort_spread_pairs(&c->s, line_of_codes, &planes, (int16_t)j->zero,
                     j->spread + (int64_t)task * c->s.channel);
}

/* A thread's scratch. */
typedef struct wide_space {
    double *sums, *scale, *bias; /* [map_block][tile]; a line each */
    int32_t *part;               /* [map_block][tile] */
    float *numbers;              /* a line */
    uint16_t *codes;             /* likewise */
} wide_space;

static wide_space space_of(const wide_job *j, int thread)
{
    const int64_t cells = j->p->c.map_block * j->p->c.tile;
    wide_space s = {.sums = ort_call_scratch(j->call, thread)};
    s.scale = s.sums + cells;
    s.bias = s.scale + TILE_COLUMNS;
    s.part = (int32_t *)(void *)(s.bias + TILE_COLUMNS);
    s.numbers = (float *)(void *)(s.part + cells);
    s.codes = (uint16_t *)(void *)(s.numbers + TILE_COLUMNS);
    return s;
}

/* Sums of one map at flat positions [first, last), whose plane begins at element `y` of Y. */
static void finish_map(const wide_job *j, const wide_space *s, int64_t map, const double *sums,
                       int64_t first, int64_t last, int64_t y)
{
    const ort_kernels *k = j->call->k;
    const wide_conv_state *state = j->s;
    const int64_t n = last - first;
    const size_t width = (size_t)ort_dtype_get(j->y->dtype)->bits / 8;
    for (int64_t i = 0; i < n; i++) {
        s->scale[i] = j->scale[map];
        s->bias[i] = j->bias[map];
    }
    k->gemm.wide_scale(n, sums, s->scale, s->bias, s->numbers);
    if (state->low > -INFINITY || state->high < INFINITY)
        k->math.unary[ORT_UNARY_CLIP](s->numbers, s->numbers, (size_t)n, state->low, state->high);
    if (state->act >= 0)
        k->math.unary[state->act](s->numbers, s->numbers, (size_t)n, state->act_a, state->act_b);
    const void *result = s->numbers;
    if (j->y->dtype != ORT_DTYPE_FLOAT) {
        ort_codes_give(k, j->y->dtype, j->y_scale, j->y_zero, s->numbers, s->codes, n);
        result = s->codes;
    }
    int64_t at = first, flat, out, count;
    while (ort_spread_next(&j->p->c.s, last, &at, &flat, &out, &count))
        memcpy((char *)j->y->data + (size_t)(y + out) * width,
               (const char *)result + (size_t)(flat - first) * width, (size_t)count * width);
}

/* Sums of some maps by columns, block by block. */
static void multiply(const wide_job *j, const wide_space *s, int64_t map, int64_t maps,
                     const int32_t *b, int64_t n)
{
    const wide_conv_plan *p = j->p;
    const ort_gemm_kernels *g = &j->call->k->gemm;
    const int64_t tile = p->c.tile, depth = p->depth_pairs;
    for (int64_t m = 0; m < maps; m++) {
        const double less = -(double)j->zero * j->s->sums[map + m];
        for (int64_t i = 0; i < n; i++)
            s->sums[m * tile + i] = less;
    }
    for (int64_t k0 = 0, step; k0 < depth; k0 += step) {
        const int64_t done = k0 % j->s->block, left = j->s->block - done;
        step = ort_min_i64(ort_min_i64(g->kc, left), depth - k0);
        const ort_tile_i32 t = {.a = j->s->weights + map * depth + k0, .b = b, .lda = depth,
                                .b_panel = g->nri, .b_offset = p->c.offset + k0, .c = s->part,
                                .ldc = tile, .add = done ? s->part : NULL, .ldadd = tile};
        g->i16(maps, n, step, &t);
        for (int64_t m = 0; m < maps && (step == left || k0 + step == depth); m++)
            g->wide_add(n, 1, s->part + m * tile, s->sums + m * tile);
    }
}

static void task_product(void *arg, size_t task, int thread)
{
    const wide_job *j = arg;
    const conv_plan *c = &j->p->c;
    int64_t index = (int64_t)task;
    const int64_t first = index % c->tiles * c->tile;
    const int64_t block = (index /= c->tiles) % c->map_blocks;
    const int64_t group = (index /= c->map_blocks) % c->group, image = index / c->group;
    const int64_t last = ort_min_i64(first + c->tile, c->s.length);
    const int64_t map = group * c->group_maps + block * c->map_block;
    const int64_t maps = ort_min_i64(c->map_block, c->group_maps - block * c->map_block);
    const wide_space s = space_of(j, thread);
    const int32_t *b = j->spread + (image * c->group + group) * j->p->group_pairs * c->s.channel;
    multiply(j, &s, map, maps, b + first, last - first);
    for (int64_t m = 0; m < maps; m++)
        finish_map(j, &s, map + m, s.sums + m * c->tile, first, last,
                   ((j->first_image + image) * c->maps + map + m) * c->out_plane);
}

/* Of each map what its sums are multiplied by, and what is added then. */
static void find_numbers(const ort_call *call, wide_job *j, double *scale)
{
    const ort_tensor *by = ort_call_in(call, W_SCALE), *b = ort_call_in(call, B);
    const int64_t maps = j->p->c.maps;
    double *bias = scale + maps;
    float x_scale = 0;
    ort_tensor_one_f32(ort_call_in(call, X_SCALE), &x_scale);
    for (int64_t m = 0; m < maps; m++) {
        scale[m] = (double)x_scale *
                   (double)((const float *)by->data)[ort_tensor_count(by) == 1 ? 0 : m];
        bias[m] = b ? (double)((const float *)b->data)[ort_tensor_count(b) == 1 ? 0 : m] : 0;
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
    wide_job j = {.call = call, .s = call->state, .p = p, .x = x->data, .y = ort_call_out(call, 0),
                  .flip = is_signed ? 0 : 0x8000, .y_scale = 1,
                  .spread = (int32_t *)(void *)space};
    if (!j.y || ort_tensor_count(j.y) == 0)
        return ORT_OK;
    int64_t zero = 0;
    ort_tensor_one_i64(ort_call_in(call, X_ZERO), &zero);
    j.zero = (int)zero - (is_signed ? 0 : 32768);
    find_numbers(call, &j, (double *)(void *)(space + p->scale));
    for (; j.first_image < c->n; j.first_image += c->images) {
        const int64_t images = ort_min_i64(c->images, c->n - j.first_image);
        ort_call_parallel(call, (size_t)(images * c->group * p->group_pairs), task_spread, &j);
        ort_call_parallel(call, (size_t)(images * c->group * c->map_blocks * c->tiles),
                          task_product, &j);
    }
    return ORT_OK;
}

static const ort_op_impl wide_impl = {
    .state = sizeof(wide_conv_state), .bind = wide_bind, .infer = wide_infer,
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
