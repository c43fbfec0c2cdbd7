/* pooling_scalar.c - pooling of the element types and outputs (indices) that the vector path
 * doesn't serve: one window at a time, clipped to the input. */
#include <math.h>

#include "base/checked.h"
#include "op/net/pooling.h"

typedef struct scalar_run {
    const pool_state *state;
    const pool_plan *p;
    const ort_tensor *x;
    ort_tensor *y;    /* may be NULL */
    int64_t *indices; /* may be NULL */
} scalar_run;

/* Taps [first, last) of the windows at one output position, per axis. */
typedef struct clipped {
    int64_t first[3], last[3], start[3];
} clipped;

static clipped clip_window(const ort_window *w, const int64_t *o)
{
    clipped c;
    for (int axis = 0; axis < 3; axis++) {
        int64_t start = o[axis] * w->stride[axis] - w->begin[axis], step = w->dilation[axis];
        c.start[axis] = start;
        c.first[axis] = start >= 0 ? 0 : (-start + step - 1) / step;
        c.last[axis] = start >= w->in[axis] ? 0 : (w->in[axis] - 1 - start) / step + 1;
        c.last[axis] = ort_min_i64(c.last[axis], w->kernel[axis]);
    }
    return c;
}

/* About what the window takes. */
static uint64_t window_steps(const clipped *c)
{
    uint64_t steps = 1;
    for (int axis = 0; axis < 3; axis++)
        steps *= c->last[axis] > c->first[axis] ? (uint64_t)(c->last[axis] - c->first[axis]) : 0;
    return steps + 1;
}

/* Run `body` for each element `at` (within the plane, row-major) of the window. */
#define EACH_TAP(w, c, at, body)                                                                   \
    for (int64_t kz = (c).first[0]; kz < (c).last[0]; kz++)                                        \
        for (int64_t ky = (c).first[1]; ky < (c).last[1]; ky++)                                    \
            for (int64_t kx = (c).first[2]; kx < (c).last[2]; kx++) {                              \
                int64_t at = (((c).start[0] + kz * (w)->dilation[0]) * (w)->in[1] +                \
                              (c).start[1] + ky * (w)->dilation[1]) * (w)->in[2] +                 \
                             (c).start[2] + kx * (w)->dilation[2];                                 \
                body                                                                               \
            }

/* Column-major: the first spatial axis runs fastest. */
static int64_t column_major(const ort_window *w, int64_t at)
{
    int64_t x = at % w->in[2], y = at / w->in[2] % w->in[1], z = at / w->in[2] / w->in[1];
    return (x * w->in[1] + y) * w->in[0] + z;
}

#define MAX_PLANE(name, type)                                                                      \
    static void name(const scalar_run *r, int64_t plane)                                           \
    {                                                                                              \
        const ort_window *w = &r->p->w;                                                            \
        const type *x = (const type *)r->x->data + plane * r->p->in_plane;                         \
        int64_t i = plane * r->p->out_plane, o[3];                                                 \
        ort_pace pace = {0};                                                                       \
        for (o[0] = 0; o[0] < w->out[0]; o[0]++)                                                   \
            for (o[1] = 0; o[1] < w->out[1]; o[1]++)                                               \
                for (o[2] = 0; o[2] < w->out[2]; o[2]++, i++) {                                    \
                    clipped c = clip_window(w, o);                                                 \
                    if (ort_pace_over(&pace, window_steps(&c)))                                    \
                        return;                                                                    \
                    int64_t best = -1;                                                             \
                    EACH_TAP(w, c, at, if (best < 0 || x[at] > x[best]) best = at;)                \
                    if (r->y)                                                                      \
                        ((type *)r->y->data)[i] = best < 0 ? (type)0 : x[best];                    \
                    if (r->indices && best >= 0)                                                   \
                        r->indices[i] = plane * r->p->in_plane +                                   \
                                        (r->state->column_major ? column_major(w, best) : best);   \
                    else if (r->indices)                                                           \
                        r->indices[i] = 0;                                                         \
                }                                                                                  \
    }
MAX_PLANE(max_f32, float)
MAX_PLANE(max_f64, double)
MAX_PLANE(max_i8, int8_t)
MAX_PLANE(max_u8, uint8_t)

/* f16 and bf16 through float: the comparison is exact. */
static void max_half(const scalar_run *r, int64_t plane)
{
    const ort_window *w = &r->p->w;
    int64_t i = plane * r->p->out_plane, base = plane * r->p->in_plane, o[3];
    ort_pace pace = {0};
    for (o[0] = 0; o[0] < w->out[0]; o[0]++)
        for (o[1] = 0; o[1] < w->out[1]; o[1]++)
            for (o[2] = 0; o[2] < w->out[2]; o[2]++, i++) {
                clipped c = clip_window(w, o);
                if (ort_pace_over(&pace, window_steps(&c)))
                    return;
                int64_t best = -1;
                double top = 0.0;
                EACH_TAP(w, c, at, {
                    double v = ort_tensor_get_f64(r->x, base + at);
                    if (best < 0 || v > top) {
                        best = at;
                        top = v;
                    }
                })
                if (r->y)
                    ort_tensor_set_f64(r->y, i, top);
                if (r->indices)
                    r->indices[i] =
                        best < 0 ? 0
                                 : base + (r->state->column_major ? column_major(w, best) : best);
            }
}

#define RAISE(x) (average ? (x) : p == 1.0f ? fabsf(x) : p == 2.0f ? (x) * (x) : powf(fabsf(x), p))

/* Windows that share few elements (stride near the kernel): spreading would cost more than
 * summing. */
static void sum_f32(const scalar_run *r, int64_t plane)
{
    const ort_window *w = &r->p->w;
    const float *x = (const float *)r->x->data + plane * r->p->in_plane;
    float *y = (float *)r->y->data + plane * r->p->out_plane, p = (float)r->state->p;
    bool average = r->state->kind == POOL_AVERAGE;
    int64_t o[3];
    ort_pace pace = {0};
    for (o[0] = 0; o[0] < w->out[0]; o[0]++)
        for (o[1] = 0; o[1] < w->out[1]; o[1]++)
            for (o[2] = 0; o[2] < w->out[2]; o[2]++) {
                clipped c = clip_window(w, o);
                if (ort_pace_over(&pace, window_steps(&c)))
                    return;
                float sum = 0.0f;
                EACH_TAP(w, c, at, sum += RAISE(x[at]);)
                if (average)
                    sum /= r->p->count[0][o[0]] * r->p->count[1][o[1]] * r->p->count[2][o[2]];
                else
                    sum = p == 1.0f ? sum : p == 2.0f ? sqrtf(sum) : powf(sum, 1.0f / p);
                *y++ = sum;
            }
}

static void sum_f64(const scalar_run *r, int64_t plane)
{
    const ort_window *w = &r->p->w;
    const double *x = (const double *)r->x->data + plane * r->p->in_plane;
    double *y = (double *)r->y->data + plane * r->p->out_plane, p = (double)r->state->p;
    bool average = r->state->kind == POOL_AVERAGE;
    int64_t o[3];
    ort_pace pace = {0};
    for (o[0] = 0; o[0] < w->out[0]; o[0]++)
        for (o[1] = 0; o[1] < w->out[1]; o[1]++)
            for (o[2] = 0; o[2] < w->out[2]; o[2]++) {
                clipped c = clip_window(w, o);
                if (ort_pace_over(&pace, window_steps(&c)))
                    return;
                double sum = 0.0;
                EACH_TAP(w, c, at, sum += average ? x[at] : pow(fabs(x[at]), p);)
                if (average)
                    sum /= (double)(r->p->count[0][o[0]] * r->p->count[1][o[1]] *
                                    r->p->count[2][o[2]]);
                else
                    sum = pow(sum, 1.0 / p);
                *y++ = sum;
            }
}

static void task_plane(void *arg, size_t task, int thread)
{
    const scalar_run *r = arg;
    int64_t plane = (int64_t)task;
    if (r->state->kind != POOL_MAX) {
        (r->x->dtype == ORT_DTYPE_FLOAT ? sum_f32 : sum_f64)(r, plane);
        return;
    }
    switch (r->x->dtype) {
    case ORT_DTYPE_FLOAT:
        max_f32(r, plane);
        return;
    case ORT_DTYPE_DOUBLE:
        max_f64(r, plane);
        return;
    case ORT_DTYPE_INT8:
        max_i8(r, plane);
        return;
    case ORT_DTYPE_UINT8:
        max_u8(r, plane);
        return;
    default:
        max_half(r, plane);
    }
}

void ort_pool_run_scalar(ort_call *call, const ort_tensor *x, ort_tensor *y, int64_t *indices)
{
    scalar_run r = {call->state, call->plan_state, x, y, indices};
    if (r.state->kind != POOL_MAX && !y)
        return;
    ort_call_parallel(call, (size_t)r.p->planes, task_plane, &r);
}
