/* conv_transpose.c - ConvTranspose over up to three spatial axes, and com.microsoft's
 * ConvTransposeWithDynamicPads, whose paddings are an input.
 *
 * One product per image and group gives what every input element adds to every output it reaches:
 * columns[maps * taps][in_plane] = transposed weight * X; then each output map gathers its
 * columns, tap by tap in a fixed order. The weight [channels][maps * taps] is transposed once when
 * it is constant. f16 and bf16 are widened; f64 adds directly.
 */
#include <string.h>

#include "base/checked.h"
#include "base/shuffle.h"
#include "op/net/conv.h"
#include "op/shared/halves.h"

enum { STATIC_PADS, DYNAMIC_PADS };

typedef struct transpose_state {
    ort_window_spec spec;
    int64_t group;
    ort_ints output_shape, given_padding;
    int64_t output_padding[ORT_WINDOW_MAX];
    const float *weights; /* [group][maps * taps][channels], from a constant */
    int pads, bias;       /* input slots; pads -1: they are an attribute */
} transpose_state;

static const ort_bind transpose_bind[] = {
    ORT_BIND(transpose_state, group, ORT_FROM(1)),
    ORT_BIND(transpose_state, output_shape, ORT_MAYBE),
    ORT_BIND_AS(transpose_state, given_padding, "output_padding"),
    ORT_BIND_WINDOW(transpose_state), {0}};

typedef struct transpose_plan {
    int64_t n, channels, maps, group, group_channels, group_maps, taps, in_plane, out_plane;
    ort_window w; /* of the convolution that this one transposes: in and out as here */
    size_t x_wide, b_wide, y_wide, w_rows, w_wide, columns, packed;
} transpose_plan;

/* ---- attributes and output dims */

/* What bound attributes don't tell. */
static ort_status read_spec(const ort_op *op, const ort_node *node, transpose_state *s,
                            ort_error *err)
{
    const ort_ints padding = s->given_padding;
    bool dynamic = op->variant == DYNAMIC_PADS;
    s->pads = dynamic ? 2 : -1;
    s->bias = dynamic ? 3 : 2;
    if (!padding.ptr && ort_node_has(node, "output_padding"))
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "attribute output_padding is an empty list: it needs a number for "
                             "each spatial axis, or must be left out");
    if (s->output_shape.count > ORT_WINDOW_MAX || padding.count > ORT_WINDOW_MAX)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "attributes output_shape or output_padding are out of range");
    for (size_t i = 0; i < padding.count; i++) {
        if (padding.ptr[i] < 0 || padding.ptr[i] > INT32_MAX)
            return ort_error_set(err, ORT_ERROR_MODEL, "output_padding %lld is out of range",
                                 (long long)padding.ptr[i]);
        s->output_padding[i] = padding.ptr[i];
    }
    return ORT_OK;
}

/* Does anything depend on the paddings? */
static bool reads_pads(const transpose_state *s)
{
    return s->pads >= 0 && !s->output_shape.count && s->spec.auto_pad == ORT_PAD_EXPLICIT;
}

/* Paddings that came as an input: all begins, then all ends. */
static ort_status set_pads(transpose_state *s, int rank, const int64_t *pads, int64_t count,
                           ort_error *err)
{
    bool fits = count == 2 * (int64_t)rank;
    for (int64_t i = 0; fits && i < count; i++)
        fits = pads[i] >= 0 && pads[i] <= INT32_MAX;
    if (!fits)
        return ort_error_set(err, ORT_ERROR_MODEL, "Pads needs %d numbers from 0 on, two for each "
                             "spatial axis", 2 * rank);
    for (int i = 0; i < rank; i++) {
        s->spec.begin[i] = pads[i];
        s->spec.end[i] = pads[rank + i];
    }
    return ORT_OK;
}

/* Output size and padding of one axis. */
static ort_status resolve_axis(const transpose_state *s, int rank, int axis, int64_t in,
                               int64_t kernel, int64_t *out, int64_t *begin, int64_t *end,
                               ort_error *err)
{
    const ort_window_spec *p = &s->spec;
    if (kernel < 1 || kernel > INT32_MAX || in < 0 || in > INT64_MAX / INT32_MAX / 4)
        return ort_error_set(err, ORT_ERROR_MODEL, "axis %d has %lld elements, kernel %lld", axis,
                             (long long)in, (long long)kernel);
    int64_t stride = p->stride[axis], span = (kernel - 1) * p->dilation[axis] + 1, full;
    full = in == 0 ? 0 : stride * (in - 1) + s->output_padding[axis] + span;
    *begin = p->begin[axis];
    *end = p->end[axis];
    bool same = p->auto_pad >= ORT_PAD_SAME_UPPER;
    if (p->auto_pad == ORT_PAD_VALID)
        *begin = *end = 0;
    const ort_ints *shape = &s->output_shape;
    if (shape->count || same) {
        int at = (int)shape->count - rank + axis;
        *out = shape->count ? shape->ptr[at < 0 ? 0 : at] : in * stride;
        if (*out < 0)
            return ort_error_set(err, ORT_ERROR_MODEL, "output_shape has %lld along axis %d",
                                 (long long)*out, axis);
        int64_t total = ort_max_i64(full - *out, 0);
        *begin = p->auto_pad == ORT_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        *end = total - *begin;
        return ORT_OK;
    }
    *out = full - *begin - *end;
    if (*out < 0)
        return ort_error_set(err, ORT_ERROR_MODEL, "the padding leaves nothing of axis %d", axis);
    return ORT_OK;
}

static ort_status transpose_infer(ort_infer *x, ort_error *err)
{
    transpose_state s;
    ort_dim out[ORT_MAX_RANK];
    memset(&s, 0, sizeof s);
    ORT_TRY(ort_bind_attrs(transpose_bind, x->node, x->arena, &s, err));
    ORT_TRY(read_spec(x->op, x->node, &s, err));
    if (!ort_infer_in_ranked(x, 0) || !ort_infer_in_ranked(x, 1))
        return ORT_OK;
    const ort_type *tx = &x->in[0]->type, *tw = &x->in[1]->type;
    int rank = tx->rank - 2;
    if (rank < 1 || tw->rank != tx->rank || (s.spec.rank && s.spec.rank != rank) ||
        (s.output_shape.count && (int)s.output_shape.count < rank))
        return ort_infer_fail(x, err,
                              "ranks don't fit: input %d, weight %d, attributes for %d axes",
                              tx->rank, tw->rank, s.spec.rank);
    if (ort_dim_differ(tx->dim[1], tw->dim[0]))
        return ort_infer_fail(x, err, "the input has %lld channels, the weight is for %lld",
                              (long long)tx->dim[1].size, (long long)tw->dim[0].size);
    ORT_TRY(ort_window_check_kernel(x, &s.spec, rank, tw->dim + 2, err));
    out[0] = tx->dim[0];
    out[1] = ort_dim_mul(x->dims, tw->dim[1], ort_dim_of(s.group));
    if (reads_pads(&s) && ort_infer_in(x, s.pads)) {
        int64_t pads[2 * ORT_WINDOW_MAX];
        int count;
        if (!ort_infer_ints(x, s.pads, pads, 2 * ORT_WINDOW_MAX, &count)) {
            for (int i = 0; i < rank; i++)
                out[2 + i] = ort_dim_unknown();
            ort_infer_set_shape(x, 0, tx->rank, out);
            return ORT_OK;
        }
        ORT_TRY(set_pads(&s, rank, pads, count, err));
    }
    for (int i = 0; i < rank; i++) {
        ort_dim kernel = ort_dim_known(tw->dim[2 + i]) ? tw->dim[2 + i]
                         : s.spec.has_kernel ? ort_dim_of(s.spec.kernel[i]) : ort_dim_unknown();
        int64_t size, begin, end;
        out[2 + i] = ort_dim_unknown();
        if (ort_dim_known(kernel) && ort_dim_known(tx->dim[2 + i])) {
            ORT_TRY(resolve_axis(&s, rank, i, tx->dim[2 + i].size, kernel.size, &size, &begin, &end,
                                 err));
            out[2 + i] = ort_dim_of(size);
        } else if (s.output_shape.count) {
            out[2 + i] = ort_dim_of(s.output_shape.ptr[(int)s.output_shape.count - rank + i]);
        } else if (ort_dim_known(kernel) && kernel.size >= 1 && kernel.size <= INT32_MAX) {
            int64_t span = (kernel.size - 1) * s.spec.dilation[i] + 1;
            int64_t pads =
                s.spec.auto_pad == ORT_PAD_EXPLICIT ? s.spec.begin[i] + s.spec.end[i] : 0;
            ort_dim scaled = ort_dim_mul(x->dims, tx->dim[2 + i], ort_dim_of(s.spec.stride[i]));
            bool same = s.spec.auto_pad >= ORT_PAD_SAME_UPPER;
            int64_t more = same ? 0 : s.output_padding[i] + span - pads - s.spec.stride[i];
            out[2 + i] = ort_dim_add(x->dims, scaled, ort_dim_of(more));
        }
    }
    ort_infer_set_shape(x, 0, tx->rank, out);
    return ORT_OK;
}

static void transpose_cost(const ort_infer *x, ort_cost *cost)
{
    if (!ort_infer_in_ranked(x, 0) || !ort_infer_in_ranked(x, 1))
        return;
    double macs = 1;
    const ort_type *tx = &x->in[0]->type, *tw = &x->in[1]->type;
    for (int d = 0; d < tx->rank; d++)
        macs *= ort_dim_known(tx->dim[d]) ? (double)tx->dim[d].size : 0;
    for (int d = 1; d < tw->rank; d++)
        macs *= ort_dim_known(tw->dim[d]) ? (double)tw->dim[d].size : 0;
    cost->macs = macs;
}

/* ---- weights */

static void transpose_weights(const float *w, int64_t group, int64_t channels, int64_t rows,
                              float *out)
{
    if (channels * rows == 0) /* and any number of groups */
        return;
    for (int64_t g = 0; g < group; g++, w += channels * rows, out += channels * rows)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t r = 0; r < rows; r++)
                out[r * channels + c] = w[c * rows + r];
}

static ort_status transpose_prepare(ort_prep *p, ort_error *err)
{
    transpose_state *s = p->state;
    ORT_TRY(read_spec(p->op, p->node, s, err));
    ort_dtype dtype = ort_prep_dtype(p, 0);
    if (dtype == ORT_DTYPE_DOUBLE)
        return ORT_OK;
    ORT_TRY(ort_prep_need_real(p, 0, err));
    const ort_tensor *w = ort_prep_constant(p, 1);
    if (!w || w->shape.rank < 3 || w->shape.dim[0] % s->group)
        return ORT_OK;
    int64_t count = ort_tensor_count(w);
    size_t bytes = (size_t)count * sizeof(float);
    bool fill;
    float *out = ort_prep_pack(p, "filter", 1u << 1, bytes + 4, &fill), *wide = NULL;
    if (!out)
        return ort_error_memory(err, bytes);
    if (fill && dtype != ORT_DTYPE_FLOAT) {
        wide = malloc(bytes + 4);
        if (!wide)
            return ort_error_memory(err, bytes);
        ort_tensor_to_f32(w, 0, count, wide);
    }
    if (fill)
        transpose_weights(wide ? wide : w->data, s->group, w->shape.dim[0] / s->group,
                          ort_shape_count_range(&w->shape, 1, w->shape.rank), out);
    free(wide);
    ort_prep_absorb(p, 1);
    s->weights = out;
    return ORT_OK;
}

/* ---- shape */

static ort_status take(size_t *total, int64_t count, size_t *offset, ort_error *err)
{
    size_t bytes;
    *offset = *total;
    if (count < 0 || !ort_mul_size((size_t)count, sizeof(float), &bytes) || bytes > SIZE_MAX / 2 ||
        !ort_add_size(*total, ort_round_up(bytes, 64), total))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

static ort_status resolve(const transpose_state *s, const ort_shape *x, const ort_shape *w,
                          transpose_plan *p, ort_error *err)
{
    int rank = x->rank - 2;
    if (rank < 1 || w->rank != x->rank || x->dim[1] != w->dim[0] || w->dim[0] % s->group ||
        (s->output_shape.count && (int)s->output_shape.count < rank))
        return ort_error_set(err, ORT_ERROR_MODEL, "input and weight don't fit: ranks %d and %d",
                             x->rank, w->rank);
    p->w.rank = rank;
    p->out_plane = 1;
    for (int i = 0; i < rank; i++) {
        p->w.in[i] = x->dim[2 + i];
        p->w.kernel[i] = w->dim[2 + i];
        p->w.stride[i] = s->spec.stride[i];
        p->w.dilation[i] = s->spec.dilation[i];
        ORT_TRY(resolve_axis(s, rank, i, p->w.in[i], p->w.kernel[i], &p->w.out[i], &p->w.begin[i],
                             &p->w.end[i], err));
        if (!ort_mul_i64(p->out_plane, p->w.out[i], &p->out_plane))
            return ort_error_memory(err, SIZE_MAX);
    }
    ort_window_to_3d(&p->w);
    if (p->w.rank != 3)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "ConvTranspose over %d spatial axes isn't implemented, only up to 3",
                             rank);
    return ORT_OK;
}

static ort_status resolve_pads(const ort_shaping *s, transpose_state *state, ort_error *err)
{
    const ort_tensor *pads = state->pads < s->in_count ? s->in[state->pads] : NULL;
    if (!pads)
        return ORT_OK;
    if (!pads->data || pads->shape.rank != 1)
        return ort_error_set(err, ORT_ERROR_MODEL, "Pads needs one dimension");
    return set_pads(state, s->in[0]->shape.rank - 2, pads->data, pads->shape.dim[0], err);
}

static ort_status transpose_shape(ort_shaping *s, ort_error *err)
{
    transpose_state at_hand = *(const transpose_state *)s->state, *state = &at_hand;
    const ort_tensor *x = s->in[0], *w = s->in[1], *y = s->out[0];
    const ort_tensor *b = s->in_count > state->bias ? s->in[state->bias] : NULL;
    if (reads_pads(state))
        ORT_TRY(resolve_pads(s, state, err));
    transpose_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    ORT_TRY(resolve(state, &x->shape, &w->shape, p, err));
    p->n = x->shape.dim[0];
    p->channels = x->shape.dim[1];
    p->group = state->group;
    p->group_maps = w->shape.dim[1];
    int64_t count;
    if (!ort_mul_i64(p->group_maps, p->group, &p->maps) || !ort_mul_i64(p->n, p->maps, &count) ||
        !ort_mul_i64(count, p->out_plane, &count))
        return ort_error_memory(err, SIZE_MAX);
    p->group_channels = p->channels / p->group;
    p->taps = ort_shape_count_range(&w->shape, 2, w->shape.rank);
    p->in_plane = ort_shape_count_range(&x->shape, 2, x->shape.rank);
    if (y && ort_tensor_count(y) != count)
        return ort_error_set(err, ORT_ERROR_MODEL, "the output has another shape than the result");
    if (b && ort_tensor_count(b) != p->maps)
        return ort_error_set(err, ORT_ERROR_MODEL, "the bias needs %lld elements",
                             (long long)p->maps);
    if (x->dtype == ORT_DTYPE_DOUBLE)
        return ORT_OK;
    size_t total = 0;
    if (x->dtype != ORT_DTYPE_FLOAT) {
        ORT_TRY(take(&total, ort_tensor_count(x), &p->x_wide, err));
        ORT_TRY(take(&total, p->maps, &p->b_wide, err));
        ORT_TRY(take(&total, count, &p->y_wide, err));
    }
    if (!state->weights) {
        ORT_TRY(take(&total, ort_tensor_count(w), &p->w_rows, err));
        ORT_TRY(take(&total, ort_tensor_count(w), &p->w_wide, err));
    }
    if (!ort_mul_i64(p->group_maps * p->taps, p->in_plane, &count))
        return ort_error_memory(err, SIZE_MAX);
    ORT_TRY(take(&total, count, &p->columns, err));
    p->packed = total;
    size_t packed = ort_matrix_space_f32(s->k, p->group_maps * p->taps, p->in_plane,
                                         p->group_channels, 1);
    if (packed == SIZE_MAX || !ort_add_size(total, packed, &total))
        return ort_error_memory(err, SIZE_MAX);
    s->workspace_bytes = total;
    return ORT_OK;
}

/* ---- run */

typedef struct gather_job {
    const transpose_plan *p;
    const float *columns, *bias;
    float *y;
    int64_t first_map;
} gather_job;

/* y[o] += from[i] over the i of a row for which o = i * stride + start lies in [0, width). */
static void add_row(float *y, int64_t width, const float *from, int64_t count, int64_t start,
                    int64_t stride)
{
    int64_t first = start >= 0 ? 0 : (-start + stride - 1) / stride;
    int64_t last = start >= width ? 0 : (width - 1 - start) / stride + 1;
    last = ort_min_i64(last, count);
    if (stride == 1)
        for (int64_t i = first; i < last; i++)
            y[i + start] += from[i];
    else
        for (int64_t i = first; i < last; i++)
            y[i * stride + start] += from[i];
}

static void task_gather(void *arg, size_t task, int thread)
{
    const gather_job *j = arg;
    const transpose_plan *p = j->p;
    const ort_window *w = &p->w;
    float *y = j->y + (int64_t)task * p->out_plane, bias = 0.0f;
    const float *from = j->columns + (int64_t)task * p->taps * p->in_plane;
    if (j->bias)
        bias = j->bias[j->first_map + (int64_t)task];
    for (int64_t i = 0; i < p->out_plane; i++)
        y[i] = bias;
    for (int64_t kz = 0; kz < w->kernel[0]; kz++)
        for (int64_t ky = 0; ky < w->kernel[1]; ky++)
            for (int64_t kx = 0; kx < w->kernel[2]; kx++, from += p->in_plane)
                for (int64_t iz = 0; iz < w->in[0]; iz++)
                    for (int64_t iy = 0; iy < w->in[1]; iy++) {
                        int64_t oz = iz * w->stride[0] + kz * w->dilation[0] - w->begin[0];
                        int64_t oy = iy * w->stride[1] + ky * w->dilation[1] - w->begin[1];
                        if (oz < 0 || oz >= w->out[0] || oy < 0 || oy >= w->out[1])
                            continue;
                        add_row(y + (oz * w->out[1] + oy) * w->out[2], w->out[2],
                                from + (iz * w->in[1] + iy) * w->in[2], w->in[2],
                                kx * w->dilation[2] - w->begin[2], w->stride[2]);
                    }
}

/* Windows side by side: every output has one tap. */
static bool is_apart(const ort_window *w)
{
    for (int i = 0; i < 3; i++)
        if (w->kernel[i] != w->stride[i] || (w->dilation[i] != 1 && w->kernel[i] != 1) ||
            w->begin[i] != 0 || w->out[i] != w->in[i] * w->stride[i])
            return false;
    return true;
}

typedef float vec4 __attribute__((vector_size(16), aligned(4), may_alias));

/* y[i * step + k] = from[k * plane + i] + bias */
static void weave_row(float *y, const float *from, int64_t plane, int64_t count, int64_t step,
                      float bias)
{
    int64_t i = 0;
    for (; step == 2 && i + 4 <= count; i += 4) {
        vec4 a = *(const vec4 *)(from + i) + bias, b = *(const vec4 *)(from + plane + i) + bias;
        *(vec4 *)(y + 2 * i) = ORT_SHUFFLE(a, b, 0, 4, 1, 5);
        *(vec4 *)(y + 2 * i + 4) = ORT_SHUFFLE(a, b, 2, 6, 3, 7);
    }
    for (; i < count; i++)
        for (int64_t k = 0; k < step; k++)
            y[i * step + k] = from[k * plane + i] + bias;
}

static void task_weave(void *arg, size_t task, int thread)
{
    const gather_job *j = arg;
    const transpose_plan *p = j->p;
    const ort_window *w = &p->w;
    float *y = j->y + (int64_t)task * p->out_plane;
    const float *from = j->columns + (int64_t)task * p->taps * p->in_plane;
    float bias = j->bias ? j->bias[j->first_map + (int64_t)task] : 0.0f;
    for (int64_t oz = 0; oz < w->out[0]; oz++)
        for (int64_t oy = 0; oy < w->out[1]; oy++, y += w->out[2]) {
            int64_t tap = (oz % w->stride[0] * w->kernel[1] + oy % w->stride[1]) * w->kernel[2];
            int64_t row = oz / w->stride[0] * w->in[1] + oy / w->stride[1];
            weave_row(y, from + tap * p->in_plane + row * w->in[2], p->in_plane, w->in[2],
                      w->stride[2], bias);
        }
}

typedef struct direct_f64 {
    const transpose_plan *p;
    const double *x, *w, *b;
    double *y;
} direct_f64;

static void task_f64(void *arg, size_t task, int thread)
{
    const direct_f64 *j = arg;
    const transpose_plan *p = j->p;
    const ort_window *w = &p->w;
    int64_t map = (int64_t)task % p->maps, image = (int64_t)task / p->maps;
    int64_t group = map / p->group_maps, inner = map % p->group_maps;
    double *y = j->y + (int64_t)task * p->out_plane;
    for (int64_t i = 0; i < p->out_plane; i++)
        y[i] = j->b ? j->b[map] : 0.0;
    for (int64_t c = 0; c < p->group_channels; c++) {
        int64_t channel = group * p->group_channels + c;
        const double *x = j->x + (image * p->channels + channel) * p->in_plane;
        const double *weight = j->w + (channel * p->group_maps + inner) * p->taps;
        for (int64_t t = 0; t < p->taps; t++) {
            int64_t kx = t % w->kernel[2], ky = t / w->kernel[2] % w->kernel[1];
            int64_t kz = t / w->kernel[2] / w->kernel[1];
            for (int64_t i = 0; i < p->in_plane; i++) {
                int64_t ix = i % w->in[2], iy = i / w->in[2] % w->in[1];
                int64_t iz = i / w->in[2] / w->in[1];
                int64_t oz = iz * w->stride[0] + kz * w->dilation[0] - w->begin[0];
                int64_t oy = iy * w->stride[1] + ky * w->dilation[1] - w->begin[1];
                int64_t ox = ix * w->stride[2] + kx * w->dilation[2] - w->begin[2];
                if (oz >= 0 && oz < w->out[0] && oy >= 0 && oy < w->out[1] && ox >= 0 &&
                    ox < w->out[2])
                    y[(oz * w->out[1] + oy) * w->out[2] + ox] += weight[t] * x[i];
            }
        }
    }
}

static float *at(const ort_call *call, size_t offset)
{
    return (float *)(void *)((char *)call->workspace + offset);
}

static void run_f32(ort_call *call, const float *x, const float *w, const float *b, float *y)
{
    const transpose_plan *p = call->plan_state;
    int64_t rows = p->group_maps * p->taps;
    gather_job j = {p, at(call, p->columns), b, NULL, 0};
    ort_product_f32 product = {.m = rows, .n = p->in_plane, .depth = p->group_channels,
                               .lda = p->group_channels, .row = p->in_plane, .column = 1,
                               .space = at(call, p->packed), .c = at(call, p->columns),
                               .ldc = p->in_plane};
    for (int64_t image = 0; image < p->n; image++)
        for (int64_t g = 0; g < p->group; g++) {
            product.a = w + g * rows * p->group_channels;
            product.b = x + (image * p->channels + g * p->group_channels) * p->in_plane;
            ort_matrix_multiply_f32(call, &product);
            j.first_map = g * p->group_maps;
            j.y = y + (image * p->maps + j.first_map) * p->out_plane;
            ort_call_parallel(call, (size_t)p->group_maps,
                              is_apart(&p->w) ? task_weave : task_gather, &j);
        }
}

static ort_status transpose_run(ort_call *call, ort_error *err)
{
    const transpose_state *s = call->state;
    const transpose_plan *p = call->plan_state;
    const ort_tensor *x = ort_call_in(call, 0), *w = ort_call_in(call, 1),
                     *b = ort_call_in(call, s->bias);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    if (x->dtype == ORT_DTYPE_DOUBLE) {
        direct_f64 j = {p, x->data, w->data, b ? b->data : NULL, y->data};
        ort_call_parallel(call, (size_t)(p->n * p->maps), task_f64, &j);
        return ORT_OK;
    }
    bool half = x->dtype != ORT_DTYPE_FLOAT;
    const float *weights = s->weights, *xf = x->data, *bf = b ? b->data : NULL;
    if (!weights) {
        const float *from = w->data;
        if (half) {
            ort_call_widen(call, w, at(call, p->w_wide));
            from = at(call, p->w_wide);
        }
        transpose_weights(from, p->group, p->group_channels, p->group_maps * p->taps,
                          at(call, p->w_rows));
        weights = at(call, p->w_rows);
    }
    if (half) {
        ort_call_widen(call, x, at(call, p->x_wide));
        xf = at(call, p->x_wide);
        if (b) {
            ort_call_widen(call, b, at(call, p->b_wide));
            bf = at(call, p->b_wide);
        }
    }
    run_f32(call, xf, weights, bf, half ? at(call, p->y_wide) : y->data);
    if (half)
        ort_call_narrow(call, at(call, p->y_wide), y);
    return ORT_OK;
}

static const ort_op_impl transpose_impl = {
    .state = sizeof(transpose_state), .bind = transpose_bind,
    .infer = transpose_infer, .prepare = transpose_prepare, .shape = transpose_shape,
    .run = transpose_run, .cost = transpose_cost,
};

#define TRANSPOSE_ATTRS                                                                            \
    "auto_pad:s=NOTSET dilations:is group:i=1 kernel_shape:is output_padding:is output_shape:is "  \
    "pads:is strides:is"

const ort_op ort_ops_conv_transpose[] = {
    {ONNX, "ConvTranspose", 1, "X:T,W:T,B?:T -> Y:T", "T:F", TRANSPOSE_ATTRS, 0, &transpose_impl,
     .history = "11 22:T+bf16"},
    {MS, "ConvTransposeWithDynamicPads", 1, "X:T,W:T,Pads?:i64,B?:T -> Y:T", "T:F",
     "auto_pad:s=NOTSET dilations:is group:i=1 kernel_shape:is output_padding:is strides:is", 0,
     &transpose_impl, .variant = DYNAMIC_PADS},
    {0},
};
