/* pooling.c - MaxPool, AveragePool and LpPool: inference, plans, and the f32 path, which slides
 * the window kernels over rows spread into scratch (spread.h). f16 and bf16 are widened, bytes
 * plane by plane; f64 and indices take pooling_scalar.c.
 */
#include <math.h>

#include "base/checked.h"
#include "op/net/pooling.h"
#include "op/shared/channels_last.h"
#include "op/shared/halves.h"
#include "op/shared/matrix.h"

enum { SCRATCH_BYTES = 96 << 10, PHASES_MAX = 9 };

/* ---- inference */

static ort_status pool_infer(ort_infer *x, ort_error *err)
{
    return ort_window_infer_pool(x, 2, 0, err);
}

/* ---- prepare */

static const ort_bind pool_bind[] = {
    ORT_BIND_AS(pool_state, include_pad, "count_include_pad", ORT_MAYBE),
    ORT_BIND_AS(pool_state, column_major, "storage_order", ORT_MAYBE),
    ORT_BIND(pool_state, p, ORT_MAYBE), ORT_BIND_WINDOW(pool_state), {0}};

static ort_status pool_prepare(ort_prep *p, ort_error *err)
{
    pool_state *state = p->state;
    ort_dtype dtype = ort_prep_dtype(p, 0);
    state->kind = (pool_kind)p->op->variant;
    if (state->kind == POOL_MAX && (dtype == ORT_DTYPE_INT8 || dtype == ORT_DTYPE_UINT8))
        return ORT_OK;
    return ort_prep_need_real(p, 0, err);
}

/* ---- shape */

static ort_status plan_rows(ort_shaping *s, const pool_state *state, pool_plan *p, ort_error *err)
{
    ort_window block = p->w;
    ort_window_trim(&block);
    ORT_TRY(ort_spread_build(&block, s->arena, &p->s, err));
    p->apart = p->s.phases[0] * p->s.phases[1] * p->s.phases[2] > PHASES_MAX;
    p->whole = p->out_plane == 1 && state->kind != POOL_LP;
    for (int i = 0; i < 3; i++)
        p->whole = p->whole && p->w.kernel[i] == p->w.in[i] && !p->w.begin[i] &&
                   (p->w.dilation[i] == 1 || p->w.kernel[i] == 1);
    int64_t total = p->w.out[1], bytes = p->s.channel * (int64_t)sizeof(float);
    p->rows = total;
    if (p->w.out[0] == 1 && bytes > SCRATCH_BYTES)
        p->rows = ort_min_i64(ort_max_i64(total * SCRATCH_BYTES / bytes / 4 * 4, 4), total);
    p->row_blocks = (total + p->rows - 1) / p->rows;
    block.out[1] = p->rows;
    ORT_TRY(ort_spread_build(&block, s->arena, &p->s, err));
    p->taps = block.kernel[0] * block.kernel[1] * block.kernel[2];
    int64_t *offset = ort_arena_array(s->arena, (size_t)p->taps, sizeof *offset);
    if (!offset)
        return ort_error_memory(err, (size_t)p->taps * sizeof *offset);
    p->offset = offset;
    for (int64_t kz = 0; kz < block.kernel[0]; kz++)
        for (int64_t ky = 0; ky < block.kernel[1]; ky++)
            for (int64_t kx = 0; kx < block.kernel[2]; kx++)
                *offset++ = ort_spread_tap(&p->s, kz, ky, kx);
    bool bytes_in = s->in[0]->dtype == ORT_DTYPE_INT8 || s->in[0]->dtype == ORT_DTYPE_UINT8;
    int64_t extra = state->kind == POOL_LP ? p->in_plane
                    : bytes_in ? p->in_plane + p->rows * p->w.out[2] : 0;
    s->thread_bytes = (size_t)(p->s.channel + extra) * sizeof(float);
    return ORT_OK;
}

static ort_status pool_shape(ort_shaping *s, ort_error *err)
{
    const pool_state *state = s->state;
    const ort_tensor *x = s->in[0], *y = s->out[0];
    pool_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    if (x->shape.rank < 3)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "the input has rank %d, pooling needs 3 and more", x->shape.rank);
    ORT_TRY(
        ort_window_resolve(&state->spec, x->shape.rank - 2, x->shape.dim + 2, NULL, &p->w, err));
    p->planes = x->shape.dim[0] * x->shape.dim[1];
    p->in_plane = ort_shape_count_range(&x->shape, 2, x->shape.rank);
    p->out_plane = 1;
    for (int i = 0; i < p->w.rank; i++)
        p->out_plane *= p->w.out[i];
    if (y && p->planes * p->out_plane != ort_tensor_count(y))
        return ort_error_set(err, ORT_ERROR_MODEL, "the output has another shape than the result");
    ort_window_to_3d(&p->w);
    if (p->w.rank != 3)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "pooling over %d spatial axes isn't implemented, only up to 3",
                             p->w.rank);
    if (p->planes * p->out_plane == 0)
        return ORT_OK;
    for (int axis = 0; axis < 3 && state->kind == POOL_AVERAGE; axis++)
        ORT_TRY(ort_window_counts(&p->w, axis, state->include_pad, s->arena, &p->count[axis],
                                  err));
    bool half = x->dtype == ORT_DTYPE_FLOAT16 || x->dtype == ORT_DTYPE_BFLOAT16;
    if (x->dtype == ORT_DTYPE_DOUBLE)
        return ORT_OK;
    if (half) {
        p->y_wide = ort_round_up((size_t)ort_tensor_count(x) * sizeof(float), 64);
        s->workspace_bytes = p->y_wide + (size_t)(p->planes * p->out_plane) * sizeof(float);
    }
    return plan_rows(s, state, p, err);
}

/* ---- run */

typedef struct pool_run {
    const ort_call *call;
    const pool_state *state;
    const pool_plan *p;
    const float *x;
    float *y;
    const ort_tensor *bytes_in; /* 8-bit maximum: instead of x and y */
    ort_tensor *bytes_out;
} pool_run;

static void raise_plane(const float *x, float *to, int64_t count, int64_t p)
{
    for (int64_t i = 0; i < count; i++) {
        float v = fabsf(x[i]);
        to[i] = p == 1 ? v : p == 2 ? v * v : powf(v, (float)p);
    }
}

static void finish_row(const pool_run *r, float *y, int64_t oz, int64_t oy)
{
    const pool_plan *p = r->p;
    int64_t n = p->w.out[2];
    if (r->state->kind == POOL_AVERAGE) {
        float outer = p->count[0][oz] * p->count[1][oy];
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] / (outer * p->count[2][i]);
    } else if (r->state->kind == POOL_LP && r->state->p != 1) {
        for (int64_t i = 0; i < n; i++)
            y[i] = r->state->p == 2 ? sqrtf(y[i]) : powf(y[i], 1.0f / (float)r->state->p);
    }
}

/* Whole numbers that fit a byte of this type, back to bytes. */
static void narrow_bytes(const ort_kernels *k, float *values, int64_t count, ort_tensor *out,
                         int64_t at)
{
    const float one = 1.0f;
    bool is_signed = out->dtype == ORT_DTYPE_INT8;
    ort_requant q = {.scale = &one, .lo = is_signed ? -128 : 0, .hi = is_signed ? 127 : 255};
    int32_t *whole = (int32_t *)(void *)values;
    k->gemm.round_f32(count, values, whole);
    k->gemm.requant(count, whole, &q, (char *)out->data + at);
}

/* A kernel may have as many taps as the padded input has elements: in pieces of bounded work. */
enum { PIECE_STEPS = 1 << 22, PIECE_COLUMNS = 16 };

static bool sum_or_max(const ort_kernels *k, pool_kind kind, int64_t rows, int64_t n,
                       const ort_taps_f32 *whole, ort_pace *pace)
{
    int64_t columns = ort_max_i64(PIECE_STEPS / whole->taps, PIECE_COLUMNS), step;
    columns = ort_min_i64(columns, n);
    step = ort_max_i64(PIECE_STEPS / whole->taps / n, 1);
    for (int64_t row = 0; row < rows; row += step)
        for (int64_t at = 0; at < n; at += columns) {
            ort_taps_f32 t = *whole;
            int64_t height = ort_min_i64(step, rows - row), width = ort_min_i64(columns, n - at);
            t.in += row * t.in_row + at;
            t.out += row * t.out_row + at;
            if (kind == POOL_MAX)
                k->gemm.taps_max_f32(height, width, &t);
            else
                k->gemm.taps_sum_f32(height, width, &t);
            if (ort_pace_over(pace, (uint64_t)(height * width * t.taps / PIECE_COLUMNS)))
                return false;
        }
    return true;
}

static void task_pool(void *arg, size_t task, int thread)
{
    const pool_run *r = arg;
    const pool_plan *p = r->p;
    const ort_kernels *k = r->call->k;
    int64_t plane = (int64_t)task / p->row_blocks, row = (int64_t)task % p->row_blocks * p->rows;
    int64_t total = p->w.out[1], rows = ort_min_i64(p->rows, total - row), n = p->w.out[2];
    float *space = ort_call_scratch(r->call, thread);
    const float *x = r->x ? r->x + plane * p->in_plane : space + p->s.channel;
    if (r->bytes_in) {
        k->gemm.widen_f32(p->in_plane, (const char *)r->bytes_in->data + plane * p->in_plane,
                          r->bytes_in->dtype == ORT_DTYPE_INT8, 0, space + p->s.channel);
    } else if (r->state->kind == POOL_LP) {
        raise_plane(x, space + p->s.channel, p->in_plane, r->state->p);
        x = space + p->s.channel;
    }
    ort_spread_f32(k, &p->s, 1, x, row, r->state->kind == POOL_MAX ? -INFINITY : 0.0f, space);
    ort_taps_f32 t = {.taps = p->taps, .offset = p->offset, .in_row = p->s.extent[2], .out_row = n,
                      .lo = -INFINITY, .hi = INFINITY};
    ort_pace pace = {0};
    for (int64_t z = 0; z < p->w.out[0]; z++) {
        t.in = space + z * p->s.extent[1] * p->s.extent[2];
        int64_t at = plane * p->out_plane + (z * total + row) * n;
        t.out = r->bytes_in ? space + p->s.channel + p->in_plane : r->y + at;
        if (r->state->kind == POOL_MAX) {
            if (!sum_or_max(k, POOL_MAX, rows, n, &t, &pace))
                return;
            if (r->bytes_in)
                narrow_bytes(k, t.out, rows * n, r->bytes_out, at);
            continue;
        }
        if (!sum_or_max(k, r->state->kind, rows, n, &t, &pace))
            return;
        for (int64_t i = 0; i < rows; i++)
            finish_row(r, t.out + i * n, z, row + i);
    }
}

enum { PLANES_PER_TASK = 16 };

static void task_whole(void *arg, int64_t first, int64_t end, int thread)
{
    const pool_run *r = arg;
    const ort_vmath_kernels *math = &r->call->k->math;
    int64_t n = r->p->in_plane;
    for (int64_t plane = first; plane < end; plane++) {
        const float *x = r->x + plane * n;
        r->y[plane] = r->state->kind == POOL_MAX
                          ? (float)math->reduce[ORT_ACCUM_MAX](x, (size_t)n)
                          : (float)(math->reduce[ORT_ACCUM_SUM](x, (size_t)n) / (double)n);
    }
}

static ort_status pool_run_(ort_call *call, ort_error *err)
{
    const pool_plan *p = call->plan_state;
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0), *indices = ort_call_out(call, 1);
    if (p->planes * p->out_plane == 0)
        return ORT_OK;
    bool half = x->dtype == ORT_DTYPE_FLOAT16 || x->dtype == ORT_DTYPE_BFLOAT16;
    bool bytes = x->dtype == ORT_DTYPE_INT8 || x->dtype == ORT_DTYPE_UINT8;
    if (indices || x->dtype == ORT_DTYPE_DOUBLE || (!half && p->apart && (bytes || !p->whole))) {
        ort_pool_run_scalar(call, x, y, indices ? indices->data : NULL);
        return ORT_OK;
    }
    if (!y)
        return ORT_OK;
    pool_run r = {call, call->state, p, bytes ? NULL : x->data, bytes ? NULL : y->data,
                  bytes ? x : NULL, y};
    if (half) {
        float *wide = call->workspace;
        ort_call_widen(call, x, wide);
        r.x = wide;
        r.y = (float *)(void *)((char *)call->workspace + p->y_wide);
    }
    if (p->whole && !bytes)
        ort_call_range(call, p->planes, PLANES_PER_TASK, task_whole, &r);
    else
        ort_call_parallel(call, (size_t)(p->planes * p->row_blocks), task_pool, &r);
    if (half)
        ort_call_narrow(call, r.y, y);
    return ORT_OK;
}

static const ort_op_impl pool_impl = {
    .state = sizeof(pool_state), .bind = pool_bind,
    .infer = pool_infer, .prepare = pool_prepare, .shape = pool_shape, .run = pool_run_,
    .cost = ort_window_cost,
};

static ort_status nhwc_infer(ort_infer *x, ort_error *err)
{
    return ort_window_infer_pool(x, 1, 1, err);
}
static ort_status nhwc_shape(ort_shaping *s, ort_error *err)
{
    return ort_channels_last_shape(s, pool_shape, err);
}
static ort_status nhwc_run(ort_call *call, ort_error *err)
{
    return ort_channels_last_run(call, pool_run_, err);
}

static const ort_op_impl nhwc_impl = {
    .state = sizeof(pool_state), .bind = pool_bind,
    .infer = nhwc_infer, .prepare = pool_prepare, .shape = nhwc_shape, .run = nhwc_run,
    .cost = ort_window_cost,
};

#define WINDOW "auto_pad:s=NOTSET kernel_shape:is! pads:is strides:is"

const ort_op ort_ops_pooling[] = {
    {ONNX, "MaxPool", 1, "X:T -> Y:T", "T:F", WINDOW, 0, &pool_impl, .variant = POOL_MAX},
    {ONNX, "MaxPool", 8, "X:T -> Y:T,Indices?:I", "T:F I:i64", "storage_order:i=0 " WINDOW, 0,
     &pool_impl, .history = "10:+ceil_mode:i=0 +dilations:is 11 12:T+i8,u8 22:T+bf16",
     .variant = POOL_MAX},
    {ONNX, "AveragePool", 1, "X:T -> Y:T", "T:F", WINDOW, 0, &pool_impl, .variant = POOL_AVERAGE,
     .history = "7:+count_include_pad:i=0 10:+ceil_mode:i=0 11 19:+dilations:is 22:T+bf16"},
    {ONNX, "LpPool", 2, "X:T -> Y:T", "T:F", "p:i=2 " WINDOW, 0, &pool_impl,
     .variant = POOL_LP,
     .history = "11 18:+ceil_mode:i=0 +dilations:is 22:T+bf16"},
    {MS, "NhwcMaxPool", 1, "x:T -> y:T", "T:i8,u8", "ceil_mode:i=0 dilations:is " WINDOW, 0,
     &nhwc_impl, .variant = POOL_MAX},
    {0},
};
