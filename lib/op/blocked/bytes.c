/* bytes.c - quantized tensors in the blocked layout of bytes: conversions, pools. A task is one
 * block of channels of one image, or a piece of it. */
#pragma GCC optimize("O3") /* vectorize the maximum */

#include "op/blocked/bytes_op.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/unary_apply.h"
#include "tensor/scalar.h"

static const ort_blocked_state bytes_blocks = {.block = ORT_BYTES_BLOCK, .inner = true};

int ort_bytes_zero(const ort_tensor *zero, ort_dtype dtype)
{
    int64_t code = 0;
    if (zero && ort_tensor_count(zero))
        code = ort_tensor_get_i64(zero, 0); /* first of one: bytes_layout.c has seen to that */
    return (int)code + ort_bytes_flip(zero ? zero->dtype : dtype);
}

bool ort_bytes_read(const ort_shape *shape, ort_blocked_dims *dims)
{
    return ort_blocked_read(&bytes_blocks, shape, dims);
}

/* ---- conversions */

static ort_status convert_prepare(ort_prep *p, ort_error *err)
{
    *(ort_blocked_state *)p->state = bytes_blocks;
    return ORT_OK;
}

static void block_part(ort_call *call, const ort_blocked_part *p)
{
    const ort_tensor *x = ort_call_in(call, 0);
    call->k->bytes.gather((const uint8_t *)x->data + p->plain, p->plane, p->channels, p->count,
                          ort_bytes_flip(x->dtype),
                          (uint8_t *)ort_call_out(call, 0)->data + p->blocked);
}

static void unblock_part(ort_call *call, const ort_blocked_part *p)
{
    const ort_tensor *y = ort_call_out(call, 0);
    call->k->bytes.scatter((const uint8_t *)ort_call_in(call, 0)->data + p->blocked, p->plane,
                           p->channels, p->count, ort_bytes_flip(y->dtype),
                           (uint8_t *)y->data + p->plain);
}

static ort_status block_run(ort_call *call, ort_error *err)
{
    return ort_blocked_convert(call, true, block_part, err);
}

static ort_status unblock_run(ort_call *call, ort_error *err)
{
    return ort_blocked_convert(call, false, unblock_part, err);
}

/* ---- maximum over windows */

typedef struct pool_state {
    ort_window_spec spec;
} pool_state;

typedef struct pool_plan {
    ort_blocked_dims in, out;
    ort_window w;
} pool_plan;

typedef struct pool_job {
    ort_call *call;
    const pool_plan *p;
    const uint8_t *x;
    uint8_t *y;
} pool_job;

static ort_status pool_infer(ort_infer *x, ort_error *err)
{
    return ort_window_infer_pool(x, 2, 1, err);
}

static const ort_bind pool_bind[] = {ORT_BIND_WINDOW(pool_state), {0}};

static ort_status pool_shape(ort_shaping *sh, ort_error *err)
{
    const pool_state *s = sh->state;
    pool_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    sh->plan_state = p;
    if (!ort_bytes_read(&sh->in[0]->shape, &p->in) || !ort_bytes_read(&sh->out[0]->shape, &p->out))
        return ort_error_set(err, ORT_ERROR_MODEL, "the shape isn't one of a blocked tensor");
    ORT_TRY(ort_blocked_resolve(&s->spec, &p->in, NULL, &p->w, err));
    sh->thread_bytes = (size_t)(p->w.in[1] * ORT_BYTES_BLOCK);
    return ORT_OK;
}

/* Taps [*first, *last) of a window whose tap 0 lies at `at` are inside [0, extent). */
static void inside(int64_t at, int64_t dilation, int64_t taps, int64_t extent, int64_t *first,
                   int64_t *last)
{
    *first = at < 0 ? (-at + dilation - 1) / dilation : 0;
    *last = extent > at ? ort_min_i64(taps, (extent - at + dilation - 1) / dilation) : 0;
}

/* Copies are of this function alone, so that the compiler knows what nothing else writes. */
static inline void maximum(uint8_t *y, const uint8_t *x)
{
    uint8_t best[ORT_BYTES_BLOCK], other[ORT_BYTES_BLOCK];
    memcpy(best, y, sizeof best);
    memcpy(other, x, sizeof other);
    for (int c = 0; c < ORT_BYTES_BLOCK; c++)
        best[c] = best[c] > other[c] ? best[c] : other[c];
    memcpy(y, best, sizeof best);
}

/* Outputs [*first, *last) of `count` whose tap at `at` plus the stride for each lies inside
 * [0, extent). */
static void outputs_inside(int64_t at, int64_t stride, int64_t count, int64_t extent,
                           int64_t *first, int64_t *last)
{
    *first = at < 0 ? (-at + stride - 1) / stride : 0;
    *last = extent > at ? ort_min_i64(count, (extent - at + stride - 1) / stride) : 0;
}

/* Rows first, each as one, then columns. A window wholly outside gives the least code, as plain
 * pools of bytes do. `row` is space for one of the input. */
static void pool_rows(const pool_job *j, int64_t plane, int64_t first, int64_t rows, uint8_t *row)
{
    const ort_window *w = &j->p->w;
    const int64_t width = w->in[1] * ORT_BYTES_BLOCK, out = w->out[1] * ORT_BYTES_BLOCK;
    const uint8_t *x = j->x + plane * j->p->in.plane * ORT_BYTES_BLOCK;
    uint8_t *y = j->y + (plane * j->p->out.plane + first * w->out[1]) * ORT_BYTES_BLOCK;
    for (int64_t oy = first; oy < first + rows; oy++, y += out) {
        int64_t top = oy * w->stride[0] - w->begin[0], from, end;
        inside(top, w->dilation[0], w->kernel[0], w->in[0], &from, &end);
        memset(row, 0, (size_t)width);
        for (int64_t r = from; r < end; r++)
            for (int64_t i = 0; i < width; i += ORT_BYTES_BLOCK)
                maximum(row + i, x + (top + r * w->dilation[0]) * width + i);
        memset(y, 0, (size_t)out);
        for (int64_t c = 0; c < w->kernel[1]; c++) {
            const int64_t left = c * w->dilation[1] - w->begin[1];
            outputs_inside(left, w->stride[1], w->out[1], w->in[1], &from, &end);
            for (int64_t ox = from; ox < end; ox++)
                maximum(y + ox * ORT_BYTES_BLOCK,
                        row + (left + ox * w->stride[1]) * ORT_BYTES_BLOCK);
        }
    }
}

static void task_pool(void *arg, int64_t first, int64_t end, int thread)
{
    const pool_job *j = arg;
    const int64_t all = j->p->w.out[0];
    int64_t rows;
    for (; first < end; first += rows) {
        rows = ort_min_i64(end - first, all - first % all);
        pool_rows(j, first / all, first % all, rows, ort_call_scratch(j->call, thread));
    }
}

static ort_status pool_run(ort_call *call, ort_error *err)
{
    const pool_plan *p = call->plan_state;
    pool_job j = {call, p, ort_call_in(call, 0)->data, ort_call_out(call, 0)->data};
    int64_t row = p->w.out[1] * ORT_BYTES_BLOCK * p->w.kernel[0] * p->w.kernel[1] / 4;
    if (p->out.plane > 0)
        ort_call_range(call, p->out.n * p->out.blocks * p->w.out[0],
                       ort_max_i64(1, ORT_ELEMENTWISE_GRAIN / ort_max_i64(row, 1)), task_pool, &j);
    return ORT_OK;
}

/* ---- QLinearGlobalAveragePool */

typedef struct mean_job {
    const ort_code_kernels *codes;
    const ort_blocked_dims *d;
    const uint8_t *x;
    uint8_t *y;
    float factor;
    int x_zero, y_zero;
} mean_job;

static ort_status mean_shape(ort_shaping *sh, ort_error *err)
{
    ort_blocked_dims *d = ort_arena_alloc(sh->arena, sizeof *d);
    if (!d)
        return ort_error_memory(err, sizeof *d);
    sh->plan_state = d;
    if (!ort_bytes_read(&sh->in[0]->shape, d) || d->plane > INT32_MAX / 256)
        return ort_error_set(err, ORT_ERROR_MODEL, "the shape isn't one of a blocked tensor");
    return ORT_OK;
}

static void task_mean(void *arg, size_t task, int thread)
{
    const mean_job *j = arg;
    const uint8_t *x = j->x + (int64_t)task * j->d->plane * ORT_BYTES_BLOCK;
    int32_t sum[ORT_BYTES_BLOCK] = {0};
    j->codes->add_rows(sum, x, (size_t)j->d->plane, ORT_BYTES_BLOCK, ORT_BYTES_BLOCK, false);
    for (int c = 0; c < ORT_BYTES_BLOCK; c++) {
        float v = (float)(sum[c] - (int32_t)j->d->plane * j->x_zero) * j->factor;
        v = rintf(v) + (float)j->y_zero;
        j->y[(int64_t)task * ORT_BYTES_BLOCK + c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

static ort_status mean_run(ort_call *call, ort_error *err)
{
    const ort_blocked_dims *d = call->plan_state;
    const ort_tensor *zero = ort_call_in(call, 2);
    mean_job j = {.codes = &call->k->codes, .d = d, .x = ort_call_in(call, 0)->data,
                  .y = ort_call_out(call, 0)->data,
                  .x_zero = ort_bytes_zero(zero, ORT_DTYPE_UINT8),
                  .y_zero = ort_bytes_zero(ort_call_in(call, 4), ORT_DTYPE_UINT8)};
    float x_scale = 0, y_scale = 1;
    ort_tensor_one_f32(ort_call_in(call, 1), &x_scale);
    ort_tensor_one_f32(ort_call_in(call, 3), &y_scale);
    j.factor = x_scale / ((float)d->plane * y_scale);
    ort_call_parallel(call, (size_t)(d->n * d->blocks), task_mean, &j);
    return ORT_OK;
}

static const ort_op_impl block_impl = {
    .state = sizeof(ort_blocked_state), .infer = ort_blocked_infer, .prepare = convert_prepare,
    .run = block_run,
};
static const ort_op_impl unblock_impl = {
    .state = sizeof(ort_blocked_state), .rule = "[N,C,H,D..,B] -> [N,channels,H,D..]",
    .prepare = convert_prepare, .run = unblock_run,
};
static const ort_op_impl pool_impl = {
    .state = sizeof(pool_state), .bind = pool_bind, .infer = pool_infer, .shape = pool_shape,
    .run = pool_run, .cost = ort_window_cost,
};
static const ort_op_impl mean_impl = {
    .rule = "[N,C,D..,B] -> [N,C,1^D,B]", .shape = mean_shape, .run = mean_run,
    .cost = ort_reduction_cost,
};

const ort_op ort_ops_bytes[] = {
    {ORT_INTERNAL, "BlockBytes", 1, "X:T -> Y:u8", "T:u8,i8", "block:i!", 0, &block_impl},
    {ORT_INTERNAL, "UnblockBytes", 1, "X:u8 -> Y:u8", "", "block:i! channels:i!", 0,
     &unblock_impl},
    {ORT_INTERNAL, "UnblockSignedBytes", 1, "X:u8 -> Y:i8", "", "block:i! channels:i!", 0,
     &unblock_impl},
    {ORT_INTERNAL, "BytesMaxPool", 1, "X:u8 -> Y:u8", "",
     "auto_pad:s=NOTSET block:i! ceil_mode:i=0 dilations:is kernel_shape:is! pads:is "
     "storage_order:i=0 strides:is", 0, &pool_impl},
    {ORT_INTERNAL, "BytesMean", 1,
     "X:u8,x_scale:f32,x_zero_point?:T,y_scale:f32,y_zero_point?:T -> Y:u8", "T:u8,i8", "block:i!",
     0, &mean_impl},
    {0},
};
