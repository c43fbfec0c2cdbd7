/* deform_conv.c - DeformConv: a 2-D convolution whose taps are moved by an offset input and scaled
 * by a mask.
 *
 * A task is one output row of one image: the samples of each position (all channels and taps,
 * bilinear, zero outside) are gathered into scratch, then every output map is their dot product
 * with its weights. Elements are read as double whatever their type and rounded once.
 */
#include <math.h>

#include "base/checked.h"
#include "op/net/conv.h"

typedef struct deform_state {
    ort_window_spec spec;
    int64_t group, offset_group;
} deform_state;

static const ort_bind deform_bind[] = {
    ORT_BIND(deform_state, group), ORT_BIND(deform_state, offset_group),
    ORT_BIND_WINDOW(deform_state), {0}};

typedef struct deform_run {
    const ort_call *call;
    const ort_tensor *x, *w, *offset, *bias, *mask;
    ort_tensor *y;
    ort_window window;
    int64_t group, offset_group, channels, maps, group_channels, taps;
} deform_run;

static ort_status deform_prepare(ort_prep *p, ort_error *err)
{
    return ort_prep_need_real(p, 0, err);
}

static bool has_shape(const ort_tensor *t, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const int64_t *d = t->shape.dim;
    return t->shape.rank == 4 && d[0] == n && d[1] == c && d[2] == h && d[3] == w;
}

static ort_status deform_shape(ort_shaping *s, ort_error *err)
{
    const deform_state *state = s->state;
    const ort_tensor *x = s->in[0], *w = s->in[1], *offset = s->in[2];
    const ort_tensor *bias = s->in_count > 3 ? s->in[3] : NULL;
    const ort_tensor *mask = s->in_count > 4 ? s->in[4] : NULL;
    ort_window *window = ort_arena_alloc(s->arena, sizeof *window);
    if (!window)
        return ort_error_memory(err, sizeof *window);
    s->plan_state = window;
    ORT_TRY(ort_conv_window(&state->spec, state->group, &x->shape, &w->shape, window, err));
    int64_t g = state->offset_group, taps, count;
    if (x->shape.rank != 4 || g < 1 || x->shape.dim[1] % g)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "X has rank %d and %lld channels for %lld offset "
                             "groups",
                             x->shape.rank, (long long)x->shape.dim[1], (long long)g);
    taps = window->kernel[0] * window->kernel[1];
    if (!ort_mul_i64(g, 2 * taps, &count) ||
        !has_shape(offset, x->shape.dim[0], count, window->out[0], window->out[1]) ||
        (mask && !has_shape(mask, x->shape.dim[0], count / 2, window->out[0], window->out[1])))
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "offset or mask doesn't fit %lld offset groups of %lld taps",
                             (long long)g, (long long)taps);
    if (bias && ort_tensor_count(bias) != w->shape.dim[0])
        return ort_error_set(err, ORT_ERROR_MODEL, "the bias needs %lld elements",
                             (long long)w->shape.dim[0]);
    s->thread_bytes = (size_t)(x->shape.dim[1] * taps) * sizeof(double);
    return ORT_OK;
}

static double value_at(const ort_tensor *t, int64_t i)
{
    return t->dtype == ORT_DTYPE_FLOAT ? (double)((const float *)t->data)[i]
                                       : ort_tensor_get_f64(t, i);
}

/* Bilinear, each neighbour outside the plane counting as zero. */
static double sample(const ort_tensor *x, int64_t plane, int64_t height, int64_t width, double y,
                     double at)
{
    if (!(y > -1.0 && y < (double)height && at > -1.0 && at < (double)width))
        return 0.0;
    int64_t y0 = (int64_t)floor(y), x0 = (int64_t)floor(at);
    double ly = y - (double)y0, lx = at - (double)x0, sum = 0.0;
    for (int i = 0; i < 4; i++) {
        int64_t yy = y0 + i / 2, xx = x0 + i % 2;
        double weight = (i / 2 ? ly : 1 - ly) * (i % 2 ? lx : 1 - lx);
        if (yy >= 0 && yy < height && xx >= 0 && xx < width)
            sum += weight * value_at(x, plane + yy * width + xx);
    }
    return sum;
}

static void gather(const deform_run *r, int64_t image, int64_t oy, int64_t ox, double *column)
{
    const ort_window *w = &r->window;
    int64_t out = w->out[0] * w->out[1], at = oy * w->out[1] + ox;
    int64_t per_group = r->channels / r->offset_group;
    for (int64_t c = 0; c < r->channels; c++)
        for (int64_t t = 0; t < r->taps; t++) {
            int64_t slot = (image * r->offset_group + c / per_group) * r->taps + t;
            double y = (double)(oy * w->stride[0] - w->begin[0] +
                                t / w->kernel[1] * w->dilation[0]);
            double x = (double)(ox * w->stride[1] - w->begin[1] +
                                t % w->kernel[1] * w->dilation[1]);
            y += value_at(r->offset, 2 * slot * out + at);
            x += value_at(r->offset, (2 * slot + 1) * out + at);
            double v = sample(r->x, (image * r->channels + c) * w->in[0] * w->in[1], w->in[0],
                              w->in[1], y, x);
            column[c * r->taps + t] = r->mask ? v * value_at(r->mask, slot * out + at) : v;
        }
}

static void task_row(void *arg, size_t task, int thread)
{
    const deform_run *r = arg;
    const ort_window *w = &r->window;
    int64_t image = (int64_t)task / w->out[0], oy = (int64_t)task % w->out[0];
    int64_t depth = r->group_channels * r->taps, group_maps = r->maps / r->group;
    double *column = ort_call_scratch(r->call, thread);
    for (int64_t ox = 0; ox < w->out[1]; ox++) {
        gather(r, image, oy, ox, column);
        for (int64_t m = 0; m < r->maps; m++) {
            const double *from = column + m / group_maps * depth;
            double sum = r->bias ? value_at(r->bias, m) : 0.0;
            for (int64_t i = 0; i < depth; i++)
                sum += from[i] * value_at(r->w, m * depth + i);
            int64_t at = ((image * r->maps + m) * w->out[0] + oy) * w->out[1] + ox;
            if (r->y->dtype == ORT_DTYPE_FLOAT)
                ((float *)r->y->data)[at] = (float)sum;
            else
                ort_tensor_set_f64(r->y, at, sum);
        }
    }
}

static ort_status deform_run_(ort_call *call, ort_error *err)
{
    const deform_state *s = call->state;
    const ort_window *window = call->plan_state;
    deform_run r = {.call = call, .x = ort_call_in(call, 0), .w = ort_call_in(call, 1),
                    .offset = ort_call_in(call, 2), .bias = ort_call_in(call, 3),
                    .mask = ort_call_in(call, 4), .y = ort_call_out(call, 0), .window = *window,
                    .group = s->group, .offset_group = s->offset_group};
    if (!r.y || ort_tensor_count(r.y) == 0)
        return ORT_OK;
    r.channels = r.x->shape.dim[1];
    r.maps = r.w->shape.dim[0];
    r.group_channels = r.w->shape.dim[1];
    r.taps = window->kernel[0] * window->kernel[1];
    ort_call_parallel(call, (size_t)(r.x->shape.dim[0] * window->out[0]), task_row, &r);
    return ORT_OK;
}

static const ort_op_impl deform_impl = {
    .state = sizeof(deform_state), .bind = deform_bind,
    .rule = "[_,_,_,_] - [_,_,_,_]",
    .infer = ort_conv_infer, .prepare = deform_prepare, .shape = deform_shape, .run = deform_run_,
};

#define DEFORM_SIG "X:T,W:T,offset:T,B?:T,mask?:T -> Y:T"
#define DEFORM_ATTRS                                                                               \
    "dilations:is group:i=1 kernel_shape:is offset_group:i=1 pads:is strides:is"

const ort_op ort_ops_deform_conv[] = {
    {ONNX, "DeformConv", 19, DEFORM_SIG, "T:F", DEFORM_ATTRS, 0, &deform_impl,
     .history = "22:T+bf16"},
    {0},
};
