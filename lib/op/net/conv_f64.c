/* conv_f64.c - double convolution: a task is one output map of one image, row by row; the
 * innermost loop adds one weight times a strided run of the input. */
#include <math.h>

#include "base/checked.h"
#include "op/net/conv.h"

typedef struct conv_f64 {
    const conv_plan *p;
    const ort_epilogue *epilogue;
    const ort_kernels *k;
    const double *x, *w, *b, *z;
    double *y;
} conv_f64;

/* y[i] += weight * x[i * stride + start] over the i that stay inside the input row. */
static void add_row(double *y, int64_t count, const double *x, int64_t width, int64_t start,
                    int64_t stride, double weight)
{
    int64_t first = start >= 0 ? 0 : (-start + stride - 1) / stride;
    int64_t last = start >= width ? 0 : (width - 1 - start) / stride + 1;
    last = ort_min_i64(last, count);
    if (stride == 1)
        for (int64_t i = first; i < last; i++)
            y[i] += weight * x[i + start];
    else
        for (int64_t i = first; i < last; i++)
            y[i] += weight * x[i * stride + start];
}

static void add_channel(const ort_window *w, const double *x, const double *weight, double *row,
                        int64_t oz, int64_t oy)
{
    for (int64_t kz = 0; kz < w->kernel[0]; kz++)
        for (int64_t ky = 0; ky < w->kernel[1]; ky++) {
            int64_t z = oz * w->stride[0] + kz * w->dilation[0] - w->begin[0];
            int64_t y = oy * w->stride[1] + ky * w->dilation[1] - w->begin[1];
            if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1])
                continue;
            for (int64_t kx = 0; kx < w->kernel[2]; kx++)
                add_row(row, w->out[2], x + (z * w->in[1] + y) * w->in[2], w->in[2],
                        kx * w->dilation[2] - w->begin[2], w->stride[2],
                        weight[(kz * w->kernel[1] + ky) * w->kernel[2] + kx]);
        }
}

/* What FusedConv does with `count` sums: adds z, clamps, applies its activation. */
static void finish(const conv_f64 *r, double *y, const double *z, int64_t count)
{
    const ort_epilogue *e = r->epilogue;
    double lo = (double)e->lo, hi = (double)e->hi;
    for (int64_t i = 0; z && i < count; i++)
        y[i] += z[i];
    if (lo > -INFINITY || hi < INFINITY)
        for (int64_t i = 0; i < count; i++) /* NaN stays */
            y[i] = y[i] < lo ? lo : y[i] > hi ? hi : y[i];
    if (e->act >= 0)
        r->k->math.unary_f64[e->act](y, y, (size_t)count, (double)e->act_a, (double)e->act_b);
}

static void task_map(void *arg, size_t task, int thread)
{
    const conv_f64 *r = arg;
    const conv_plan *p = r->p;
    const ort_window *w = &p->s.w;
    int64_t map = (int64_t)task % p->maps, image = (int64_t)task / p->maps;
    int64_t group = map / p->group_maps, taps = w->kernel[0] * w->kernel[1] * w->kernel[2];
    const double *x = r->x + (image * p->channels + group * p->group_channels) * p->in_plane;
    double *row = r->y + (int64_t)task * p->out_plane;
    for (int64_t oz = 0; oz < w->out[0]; oz++)
        for (int64_t oy = 0; oy < w->out[1]; oy++, row += w->out[2]) {
            for (int64_t i = 0; i < w->out[2]; i++)
                row[i] = r->b ? r->b[map] : 0.0;
            for (int64_t c = 0; c < p->group_channels; c++)
                add_channel(w, x + c * p->in_plane, r->w + map * p->depth + c * taps, row, oz, oy);
        }
    row -= p->out_plane;
    finish(r, row, r->z ? r->z + (int64_t)task * p->out_plane : NULL, p->out_plane);
}

void ort_conv_run_f64(ort_call *call, const ort_epilogue *epilogue, const double *x,
                      const double *w, const double *b, const double *z, double *y)
{
    conv_f64 r = {call->plan_state, epilogue, call->k, x, w, b, z, y};
    ort_call_parallel(call, (size_t)(r.p->n * r.p->maps), task_map, &r);
}
