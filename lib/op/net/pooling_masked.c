/* pooling_masked.c - MaxpoolWithMask of com.microsoft: the maximum over a window up to the first
 * element that its mask hides.
 *
 * Its schema says "for internal use" and no more, so onnxruntime's kernel is the specification, odd
 * as it is: a hidden element ends its row of the window (what stands behind it is not seen, further
 * rows are); over two and three axes the first element of a plane is never hidden; a window that
 * sees nothing gives the lowest float, and NaN is never a maximum. The mask of plane c begins at
 * element c * plane % (planes of the mask), the right one only where the mask has one plane.
 */
#include <float.h>

#include "base/checked.h"
#include "op/shared/window.h"

static ort_status masked_infer(ort_infer *x, ort_error *err)
{
    return ort_window_infer_pool(x, 2, 0, err);
}

typedef struct masked_state {
    ort_window_spec spec;
} masked_state;

static const ort_bind masked_bind[] = {ORT_BIND_WINDOW(masked_state), {0}};

static ort_status check_mask(const ort_shape *x, const ort_shape *m, ort_error *err)
{
    bool fits = m->rank == x->rank && (x->dim[0] * x->dim[1] == 0 || m->dim[0] * m->dim[1] > 0);
    for (int d = 2; fits && d < x->rank; d++)
        fits = m->dim[d] == x->dim[d];
    return fits ? ORT_OK : ort_error_set(err, ORT_ERROR_MODEL, "the mask needs as many dims as X, "
                                         "the spatial ones equal");
}

static ort_status masked_shape(ort_shaping *s, ort_error *err)
{
    const ort_shape *x = &s->in[0]->shape;
    ort_window *w = ort_arena_alloc(s->arena, sizeof *w);
    if (!w)
        return ort_error_memory(err, sizeof *w);
    s->plan_state = w;
    if (x->rank < 3)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "the input has rank %d, pooling needs 3 and more", x->rank);
    ORT_TRY(check_mask(x, &s->in[1]->shape, err));
    ORT_TRY(ort_window_resolve(s->state, x->rank - 2, x->dim + 2, NULL, w, err));
    ort_window_pad_to_3d(w); /* a column stays one: each of its elements is a row of the window */
    if (w->rank != 3)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "pooling over %d spatial axes isn't implemented, only up to 3",
                             x->rank - 2);
    return ORT_OK;
}

typedef struct masked_job {
    const ort_window *w;
    const float *x;
    const int32_t *mask;
    float *y;
    int64_t plane, out_plane, mask_planes;
    bool first_counts; /* element 0 of a plane is never hidden */
} masked_job;

static float window_max(const masked_job *j, const float *x, const int32_t *mask,
                        const int64_t *from, const int64_t *to)
{
    const ort_window *w = j->w;
    float most = -FLT_MAX;
    for (int64_t z = from[0]; z < to[0]; z++)
        for (int64_t row = from[1]; row < to[1]; row++)
            for (int64_t i = from[2]; i < to[2]; i++) {
                int64_t at = (z * w->in[1] + row) * w->in[2] + i;
                if (mask[at] == 0 && !(at == 0 && j->first_counts))
                    break;
                most = x[at] > most ? x[at] : most;
            }
    return most;
}

static void masked_task(void *arg, size_t task, int thread)
{
    const masked_job *j = arg;
    const ort_window *w = j->w;
    const float *x = j->x + (int64_t)task * j->plane;
    const int32_t *mask = j->mask + (int64_t)task * j->plane % j->mask_planes;
    float *y = j->y + (int64_t)task * j->out_plane;
    ort_pace pace = {0};
    for (int64_t at = 0; at < j->out_plane; at++) {
        int64_t o[3] = {at / w->out[2] / w->out[1], at / w->out[2] % w->out[1], at % w->out[2]};
        int64_t from[3], to[3];
        for (int d = 0; d < 3; d++) {
            int64_t start = o[d] * w->stride[d] - w->begin[d];
            from[d] = ort_max_i64(start, 0);
            to[d] = ort_min_i64(start + w->kernel[d], w->in[d]);
        }
        uint64_t steps = 1;
        for (int d = 0; d < 3; d++)
            steps *= to[d] > from[d] ? (uint64_t)(to[d] - from[d]) : 1;
        if (ort_pace_over(&pace, steps))
            return;
        y[at] = window_max(j, x, mask, from, to);
    }
}

static ort_status masked_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0), *m = ort_call_in(call, 1);
    ort_tensor *y = ort_call_out(call, 0);
    masked_job j = {.w = call->plan_state, .x = x->data, .mask = m->data, .y = y->data,
                    .plane = ort_shape_count_range(&x->shape, 2, x->shape.rank),
                    .out_plane = ort_shape_count_range(&y->shape, 2, y->shape.rank),
                    .mask_planes = m->shape.dim[0] * m->shape.dim[1],
                    .first_counts = x->shape.rank > 3};
    if (ort_tensor_count(y) > 0)
        ort_call_parallel(call, (size_t)(x->shape.dim[0] * x->shape.dim[1]), masked_task, &j);
    return ORT_OK;
}

static const ort_op_impl masked_impl = {
    .state = sizeof(masked_state), .bind = masked_bind,
    .infer = masked_infer, .shape = masked_shape, .run = masked_run,
};

const ort_op ort_ops_pooling_masked[] = {
    {MS, "MaxpoolWithMask", 1, "X:T,M:i32 -> Y:T", "T:f32",
     "auto_pad:s=NOTSET kernel_shape:is pads:is storage_order:i=0 strides:is", 0, &masked_impl},
    {0},
};
