/* quant_elementwise.c - com.microsoft's 8-bit operators that are not products: QLinearAdd,
 * QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearConcat, QLinearGlobalAveragePool,
 * QLinearAveragePool.
 *
 * Functions of one byte are tables of 256 bytes. The others go through float in blocks that stay
 * in cache.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/pool_shape.h"
#include "tensor/scalar.h"

enum { BLOCK = 2048, GRAIN = 1 << 15 };

/* Of what need_single let pass. */
static float scale_of(const ort_tensor *t)
{
    float scale = 0;
    ort_tensor_one_f32(t, &scale);
    return scale;
}

static int zero_of(const ort_tensor *t)
{
    int64_t zero = 0;
    ort_tensor_one_i64(t, &zero);
    return (int)zero;
}

/* Scales and zero points that a node reads as one number must have one element. */
static ort_status need_single(const ort_shaping *s, const int *inputs, int count, ort_error *err)
{
    for (int i = 0; i < count; i++) {
        const ort_tensor *t = inputs[i] < s->in_count ? s->in[inputs[i]] : NULL;
        if (t && ort_tensor_count(t) != 1)
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "input %d (a scale or zero point) has %lld elements, needs 1",
                                 inputs[i], (long long)ort_tensor_count(t));
    }
    return ORT_OK;
}

static void dequantize(const ort_kernels *k, ort_dtype dtype, const void *x, float *y, int64_t n,
                       float scale, int zero)
{
    if (dtype == ORT_DTYPE_INT8)
        k->math.dequantize_s8(x, y, (size_t)n, scale, zero);
    else
        k->math.dequantize_u8(x, y, (size_t)n, scale, zero);
}

static void quantize(const ort_kernels *k, ort_dtype dtype, const float *x, void *y, int64_t n,
                     float scale, int zero)
{
    if (dtype == ORT_DTYPE_INT8)
        k->math.quantize_s8(x, y, (size_t)n, scale, zero);
    else
        k->math.quantize_u8(x, y, (size_t)n, scale, zero);
}

/* ---- QLinearAdd, QLinearMul: A, scale, zero, B, scale, zero, scale, zero */

static ort_status binary_shape(ort_shaping *s, ort_error *err)
{
    static const int single[] = {1, 2, 4, 5, 6, 7};
    return need_single(s, single, 6, err);
}

typedef struct binary_job {
    const ort_kernels *k;
    const ort_tensor *a, *b;
    ort_tensor *y;
    bool multiply;
    float a_scale, b_scale, y_scale;
    int a_zero, b_zero, y_zero;
    int64_t inner, a_inner, b_inner; /* elements along the last axis, and their strides: 0 or 1 */
    int64_t a_stride[ORT_MAX_RANK], b_stride[ORT_MAX_RANK];
} binary_job;

/* The roundings are those of onnxruntime's kernels, which are all that defines these operators;
 * sums and products of bytes end in exact halves often enough that others show. With integers a, b:
 *   Add: round(fma(a, ra, fma(b, rb, fixed))), ra and rb the ratios of the scales to y's, fixed =
 *        y_zero - (ra * a_zero + rb * b_zero); with a single a, the other way round;
 *   Mul: round((a - a_zero) * (b - b_zero) * ratio + y_zero), nothing fused.
 * `left` and `right` hold the integers as floats, one where the stride is 0, and right gets the
 * result. */
static void add_block(const binary_job *j, float *left, float *right, size_t n)
{
    const ort_vmath_kernels *math = &j->k->math;
    float a_ratio = j->a_scale / j->y_scale, b_ratio = j->b_scale / j->y_scale;
    float a_part = a_ratio * (float)j->a_zero, b_part = b_ratio * (float)j->b_zero;
    float fixed = (float)j->y_zero - (a_part + b_part);
    if (!j->a_inner) {
        math->scale_bias_row(left, left, 1, a_ratio, fixed);
        math->scale_bias_row(right, right, n, b_ratio, left[0]);
    } else if (!j->b_inner) {
        math->scale_bias_row(right, right, 1, b_ratio, fixed);
        math->scale_bias_row(left, right, n, a_ratio, right[0]);
    } else {
        math->scale_bias_row(right, right, n, b_ratio, fixed);
        math->axpy(right, left, n, a_ratio);
    }
}

static void mul_block(const binary_job *j, float *left, float *right, size_t n)
{
    ort_binary_fn *const *binary = j->k->math.binary;
    float ratio = j->a_scale * j->b_scale / j->y_scale, zero = (float)j->y_zero;
    ort_form form = !j->a_inner ? ORT_FORM_SV : !j->b_inner ? ORT_FORM_VS : ORT_FORM_VV;
    binary[ORT_BINARY_MUL](left, right, right, n, form);
    binary[ORT_BINARY_MUL](right, &ratio, right, n, ORT_FORM_VS);
    binary[ORT_BINARY_ADD](right, &zero, right, n, ORT_FORM_VS);
}

static void binary_run_block(const binary_job *j, int64_t a, int64_t b, int64_t y, int64_t n)
{
    float left[BLOCK], right[BLOCK];
    int64_t left_count = j->a_inner ? n : 1, right_count = j->b_inner || !j->a_inner ? n : 1;
    dequantize(j->k, j->a->dtype, (const char *)j->a->data + a, left, left_count, 1.0f,
               j->multiply ? j->a_zero : 0);
    dequantize(j->k, j->b->dtype, (const char *)j->b->data + b, right, j->b_inner ? n : 1, 1.0f,
               j->multiply ? j->b_zero : 0);
    if (!j->b_inner)
        for (int64_t i = 1; i < right_count; i++)
            right[i] = right[0];
    (j->multiply ? mul_block : add_block)(j, left, right, (size_t)n);
    quantize(j->k, j->y->dtype, right, (char *)j->y->data + y, n, 1.0f, 0);
}

static void task_binary(void *arg, int64_t first, int64_t end, int thread)
{
    const binary_job *j = arg;
    const ort_shape *s = &j->y->shape;
    for (int64_t row = first; row < end; row++) {
        int64_t a = 0, b = 0, rest = row;
        for (int d = s->rank - 2; d >= 0; d--) {
            a += rest % s->dim[d] * j->a_stride[d];
            b += rest % s->dim[d] * j->b_stride[d];
            rest /= s->dim[d];
        }
        for (int64_t i = 0; i < j->inner; i += BLOCK)
            binary_run_block(j, a + i * j->a_inner, b + i * j->b_inner, row * j->inner + i,
                             ort_min_i64(BLOCK, j->inner - i));
    }
}

static void task_binary_flat(void *arg, int64_t first, int64_t end, int thread)
{
    const binary_job *j = arg;
    for (int64_t i = first; i < end; i += BLOCK)
        binary_run_block(j, i, i, i, ort_min_i64(BLOCK, end - i));
}

static ort_status binary_run(ort_call *call, bool multiply)
{
    binary_job j = {.k = call->k, .a = ort_call_in(call, 0), .b = ort_call_in(call, 3),
                    .y = ort_call_out(call, 0), .multiply = multiply};
    if (!j.y || ort_tensor_count(j.y) == 0)
        return ORT_OK;
    j.a_scale = scale_of(ort_call_in(call, 1));
    j.b_scale = scale_of(ort_call_in(call, 4));
    j.y_scale = scale_of(ort_call_in(call, 6));
    j.a_zero = zero_of(ort_call_in(call, 2));
    j.b_zero = zero_of(ort_call_in(call, 5));
    j.y_zero = zero_of(ort_call_in(call, 7));
    const ort_shape *s = &j.y->shape;
    ort_shape flat = {1, {ort_tensor_count(j.y)}};
    if (ort_shape_equal(&j.a->shape, &j.b->shape)) { /* one row */
        j.inner = flat.dim[0];
        j.a_inner = j.b_inner = 1;
        ort_call_range(call, j.inner, GRAIN, task_binary_flat, &j);
        return ORT_OK;
    }
    ort_shape_broadcast_strides(&j.a->shape, s, j.a_stride);
    ort_shape_broadcast_strides(&j.b->shape, s, j.b_stride);
    j.inner = s->rank ? s->dim[s->rank - 1] : 1;
    j.a_inner = s->rank && j.a_stride[s->rank - 1] ? 1 : 0;
    j.b_inner = s->rank && j.b_stride[s->rank - 1] ? 1 : 0;
    ort_call_range(call, flat.dim[0] / j.inner, ort_max_i64(GRAIN / j.inner, 1), task_binary, &j);
    return ORT_OK;
}

static ort_status add_run(ort_call *call, ort_error *err)
{
    return binary_run(call, false);
}
static ort_status mul_run(ort_call *call, ort_error *err)
{
    return binary_run(call, true);
}

/* ---- functions of one byte: X, scale, zero, scale, zero */

static ort_status table_shape(ort_shaping *s, ort_error *err)
{
    static const int single[] = {1, 2, 3, 4};
    return need_single(s, single, 4, err);
}

typedef struct table_job {
    const uint8_t *x;
    uint8_t *y;
    uint8_t table[256]; /* by the input's bits */
} table_job;

static void task_table(void *arg, int64_t first, int64_t end, int thread)
{
    const table_job *j = arg;
    for (int64_t i = first; i < end; i++)
        j->y[i] = j->table[j->x[i]];
}

static void table_run(ort_call *call, ort_unary function, float a)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    uint8_t every[256];
    float values[256];
    if (!y)
        return;
    table_job j = {x->data, y->data, {0}};
    for (int i = 0; i < 256; i++)
        every[i] = (uint8_t)i;
    dequantize(call->k, x->dtype, every, values, 256, scale_of(ort_call_in(call, 1)),
               zero_of(ort_call_in(call, 2)));
    call->k->math.unary[function](values, values, 256, a, 0.0f);
    quantize(call->k, y->dtype, values, j.table, 256, scale_of(ort_call_in(call, 3)),
             zero_of(ort_call_in(call, 4)));
    ort_call_range(call, ort_tensor_count(x), GRAIN, task_table, &j);
}

static ort_status sigmoid_run(ort_call *call, ort_error *err)
{
    table_run(call, ORT_UNARY_SIGMOID, 0.0f);
    return ORT_OK;
}

typedef struct leaky_state {
    float alpha;
} leaky_state;

static const ort_bind leaky_bind[] = {ORT_BIND(leaky_state, alpha), {0}};

static ort_status leaky_run(ort_call *call, ort_error *err)
{
    table_run(call, ORT_UNARY_LEAKY_RELU, ((const leaky_state *)call->state)->alpha);
    return ORT_OK;
}

/* ---- QLinearConcat: scale, zero, then X, scale, zero of each input */

typedef struct concat_state {
    int64_t axis;
} concat_state;

static const ort_bind concat_bind[] = {ORT_BIND(concat_state, axis), {0}};

static ort_status concat_prepare(ort_prep *p, ort_error *err)
{
    for (int i = 2; i < p->in_count; i += 3)
        if (ort_prep_dtype(p, i) == ORT_DTYPE_FLOAT)
            return ort_prep_unsupported_dtype(p, i, err);
    return ORT_OK;
}

static ort_status concat_infer(ort_infer *x, ort_error *err)
{
    ort_dim out[ORT_MAX_RANK];
    int rank = -1, axis = 0;
    if (x->in_count < 5 || (x->in_count - 2) % 3)
        return ort_infer_fail(x, err, "%d inputs, needs two and three for each part", x->in_count);
    for (int i = 2; i < x->in_count; i += 3) {
        if (!ort_infer_in_ranked(x, i))
            return ORT_OK;
        const ort_type *t = &x->in[i]->type;
        if (rank < 0) {
            rank = t->rank;
            memcpy(out, t->dim, sizeof out);
            ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), rank, &axis, err));
            continue;
        }
        ORT_TRY(ort_infer_need_rank(x, i, rank, err));
        for (int d = 0; d < rank; d++)
            if (d == axis)
                out[d] = ort_dim_add(x->dims, out[d], t->dim[d]);
            else if (ort_dim_differ(out[d], t->dim[d]))
                return ort_infer_fail(x, err, "input %d differs from the others along axis %d", i,
                                      d);
            else
                out[d] = ort_dim_merge(out[d], t->dim[d]);
    }
    ort_infer_set_shape(x, 0, rank, out);
    return ORT_OK;
}

static ort_status concat_shape(ort_shaping *s, ort_error *err)
{
    for (int i = 0; i < s->in_count; i++) {
        const int one[] = {i};
        if (i < 2 || (i - 2) % 3)
            ORT_TRY(need_single(s, one, 1, err));
    }
    return ORT_OK;
}

static ort_status concat_run(ort_call *call, ort_error *err)
{
    ort_tensor *y = ort_call_out(call, 0);
    float out_scale = scale_of(ort_call_in(call, 0));
    int out_zero = zero_of(ort_call_in(call, 1));
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    int64_t axis = ((const concat_state *)call->state)->axis;
    int at = (int)(axis < 0 ? axis + y->shape.rank : axis);
    int64_t outer = ort_shape_count_range(&y->shape, 0, at), offset = 0;
    int64_t line = ort_shape_count_range(&y->shape, at, y->shape.rank);
    for (int i = 2; i + 2 < call->in_count; i += 3) {
        const ort_tensor *x = ort_call_in(call, i);
        int64_t run = ort_shape_count_range(&x->shape, at, x->shape.rank);
        uint8_t every[256], table[256];
        float values[256];
        for (int b = 0; b < 256; b++)
            every[b] = (uint8_t)b;
        dequantize(call->k, x->dtype, every, values, 256, scale_of(ort_call_in(call, i + 1)),
                   zero_of(ort_call_in(call, i + 2)));
        quantize(call->k, y->dtype, values, table, 256, out_scale, out_zero);
        for (int64_t o = 0; o < outer; o++) {
            uint8_t *to = (uint8_t *)y->data + o * line + offset;
            const uint8_t *from = (const uint8_t *)x->data + o * run;
            for (int64_t b = 0; b < run; b++)
                to[b] = table[from[b]];
        }
        offset += run;
    }
    return ORT_OK;
}

/* ---- average pools: X, scale, zero, scale, zero; sums are exact integers */

typedef struct global_state {
    bool channels_last;
} global_state;

static const ort_bind global_bind[] = {ORT_BIND(global_state, channels_last), {0}};

static ort_status global_infer(ort_infer *x, ort_error *err)
{
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *t = &x->in[0]->type;
    if (t->rank < 3)
        return ort_infer_fail(x, err, "the input has rank %d, pooling needs 3 and more", t->rank);
    bool last = ort_node_attr_int(x->node, "channels_last") != 0;
    ort_dim out[ORT_MAX_RANK];
    for (int d = 0; d < t->rank; d++)
        out[d] = d == 0 || d == (last ? t->rank - 1 : 1) ? t->dim[d] : ort_dim_of(1);
    ort_infer_set_shape(x, 0, t->rank, out);
    return ORT_OK;
}

typedef struct mean_job {
    const ort_tensor *x;
    ort_tensor *y;
    int64_t channels, count, step; /* elements of a plane and the distance between them */
    float factor;
    int x_zero, y_zero;
} mean_job;

static void put_byte(ort_tensor *y, int64_t at, float value, int zero)
{
    bool is_signed = y->dtype == ORT_DTYPE_INT8;
    float low = is_signed ? -128.0f : 0.0f, high = is_signed ? 127.0f : 255.0f;
    float q = rintf(value) + (float)zero;
    q = q < low ? low : q > high ? high : q;
    ((uint8_t *)y->data)[at] = (uint8_t)(int)q;
}

static int64_t sum_bytes(const ort_tensor *x, int64_t first, int64_t count, int64_t step)
{
    int64_t sum = 0;
    if (x->dtype == ORT_DTYPE_INT8)
        for (int64_t i = 0; i < count; i++)
            sum += ((const int8_t *)x->data)[first + i * step];
    else
        for (int64_t i = 0; i < count; i++)
            sum += ((const uint8_t *)x->data)[first + i * step];
    return sum;
}

static void task_mean(void *arg, size_t task, int thread)
{
    const mean_job *j = arg;
    for (int64_t c = 0; c < j->channels; c++) {
        int64_t base = (int64_t)task * j->channels * j->count;
        int64_t first = j->step == 1 ? base + c * j->count : base + c;
        int64_t sum = sum_bytes(j->x, first, j->count, j->step) - j->count * j->x_zero;
        put_byte(j->y, (int64_t)task * j->channels + c, (float)sum * j->factor, j->y_zero);
    }
}

static ort_status global_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    bool last = ((const global_state *)call->state)->channels_last;
    mean_job j = {.x = x, .y = y, .x_zero = zero_of(ort_call_in(call, 2)),
                  .y_zero = zero_of(ort_call_in(call, 4))};
    j.channels = x->shape.dim[last ? x->shape.rank - 1 : 1];
    j.count = ort_tensor_count(x) / ort_max_i64(x->shape.dim[0] * j.channels, 1);
    j.step = last ? j.channels : 1;
    j.factor = scale_of(ort_call_in(call, 1)) /
               ((float)j.count * scale_of(ort_call_in(call, 3)));
    ort_call_parallel(call, (size_t)x->shape.dim[0], task_mean, &j);
    return ORT_OK;
}

static ort_status average_infer(ort_infer *x, ort_error *err)
{
    bool last = ort_node_attr_int(x->node, "channels_last") != 0;
    return ort_window_infer_pool(x, last ? 1 : 2, last, err);
}

static const ort_bind average_bind[] = {
    ORT_BIND_AS(pool_state, include_pad, "count_include_pad"),
    ORT_BIND(pool_state, channels_last), {0}};

static ort_status average_prepare(ort_prep *p, ort_error *err)
{
    pool_state *state = p->state;
    return ort_window_read(p->node, &state->spec, err);
}

static ort_status average_shape(ort_shaping *s, ort_error *err)
{
    const pool_state *state = s->state;
    const ort_tensor *x = s->in[0];
    pool_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    ORT_TRY(table_shape(s, err));
    if (x->shape.rank < 3)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "the input has rank %d, pooling needs 3 and more", x->shape.rank);
    int first = state->channels_last ? 1 : 2;
    ORT_TRY(ort_window_resolve(&state->spec, x->shape.rank - 2, x->shape.dim + first, NULL, &p->w,
                               err));
    ort_window_to_3d(&p->w);
    if (p->w.rank != 3)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "pooling over %d spatial axes isn't implemented, only up to 3",
                             p->w.rank);
    return ORT_OK;
}

/* One output of one plane whose elements lie `step` apart from `base` on. */
static float average_at(const pool_state *state, const pool_plan *p, const ort_tensor *x,
                        int64_t base, int64_t step, const int64_t *o, int zero)
{
    const ort_window *w = &p->w;
    int64_t sum = 0, count = 0;
    for (int64_t kz = 0; kz < w->kernel[0]; kz++)
        for (int64_t ky = 0; ky < w->kernel[1]; ky++)
            for (int64_t kx = 0; kx < w->kernel[2]; kx++) {
                int64_t k[3] = {kz, ky, kx}, at[3];
                bool inside = true, padded = true;
                for (int d = 0; d < 3; d++) {
                    at[d] = o[d] * w->stride[d] + k[d] * w->dilation[d] - w->begin[d];
                    inside = inside && at[d] >= 0 && at[d] < w->in[d];
                    padded = padded && at[d] < w->in[d] + w->end[d];
                }
                count += inside || (padded && state->include_pad);
                if (inside)
                    sum +=
                        sum_bytes(x, base + ((at[0] * w->in[1] + at[1]) * w->in[2] + at[2]) * step,
                                  1, 1) -
                        zero;
            }
    return count ? (float)sum / (float)count : 0.0f;
}

static ort_status average_run(ort_call *call, ort_error *err)
{
    const pool_state *state = call->state;
    const pool_plan *p = call->plan_state;
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    bool last = state->channels_last;
    int64_t channels = x->shape.dim[last ? x->shape.rank - 1 : 1];
    int64_t in = p->w.in[0] * p->w.in[1] * p->w.in[2],
            out = p->w.out[0] * p->w.out[1] * p->w.out[2];
    float factor = scale_of(ort_call_in(call, 1)) / scale_of(ort_call_in(call, 3));
    int x_zero = zero_of(ort_call_in(call, 2)), y_zero = zero_of(ort_call_in(call, 4));
    for (int64_t plane = 0; plane < x->shape.dim[0] * channels; plane++) {
        int64_t n = plane / channels, c = plane % channels, i = 0, o[3];
        int64_t from = last ? n * in * channels + c : plane * in, step = last ? channels : 1;
        int64_t to = last ? n * out * channels + c : plane * out;
        for (o[0] = 0; o[0] < p->w.out[0]; o[0]++)
            for (o[1] = 0; o[1] < p->w.out[1]; o[1]++)
                for (o[2] = 0; o[2] < p->w.out[2]; o[2]++, i++)
                    put_byte(y, to + i * step,
                             average_at(state, p, x, from, step, o, x_zero) * factor, y_zero);
    }
    return ORT_OK;
}

/* ---- rows */

static const ort_op_impl add_impl = {
    .rule = "broadcast 0,3", .shape = binary_shape, .run = add_run, .numbers = 0xf6,
};
static const ort_op_impl mul_impl = {
    .rule = "broadcast 0,3", .shape = binary_shape, .run = mul_run, .numbers = 0xf6,
};
static const ort_op_impl sigmoid_impl = {
    .rule = "same", .shape = table_shape, .run = sigmoid_run,
    .numbers = 0x1e,
};
static const ort_op_impl leaky_impl = {
    .state = sizeof(leaky_state), .bind = leaky_bind,
    .rule = "same", .shape = table_shape, .run = leaky_run,
    .numbers = 0x1e,
};
static const ort_op_impl concat_impl = {
    .state = sizeof(concat_state), .bind = concat_bind,
    .infer = concat_infer, .prepare = concat_prepare, .shape = concat_shape, .run = concat_run,
    .numbers = 3,
};
static const ort_op_impl global_impl = {
    .state = sizeof(global_state), .bind = global_bind,
    .infer = global_infer, .shape = table_shape, .run = global_run,
    .numbers = 0x1e,
};
static const ort_op_impl average_impl = {
    .state = sizeof(pool_state), .bind = average_bind,
    .infer = average_infer, .prepare = average_prepare, .shape = average_shape, .run = average_run,
    .numbers = 0x1e,
};

#define BINARY_SIG                                                                                 \
    "A:T,A_scale:f32,A_zero_point?:T,B:T,B_scale:f32,B_zero_point?:T,C_scale:f32,C_zero_point?:T " \
    "-> C:T"
#define UNARY_SIG "X:T,X_scale:f32,X_zero_point?:T,Y_scale:f32,Y_zero_point?:T -> Y:T"
#define POOL_SIG "X:T,x_scale:f32,x_zero_point?:T,y_scale:f32,y_zero_point?:T -> Y:T"

const ort_op ort_ops_quant_elementwise[] = {
    {MS, "QLinearAdd", 1, BINARY_SIG, "T:u8,i8", "", ORT_TRAIT_ELEMENTWISE, &add_impl},
    {MS, "QLinearMul", 1, BINARY_SIG, "T:u8,i8", "", ORT_TRAIT_ELEMENTWISE, &mul_impl},
    {MS, "QLinearSigmoid", 1, UNARY_SIG, "T:u8,i8", "", ORT_TRAIT_ELEMENTWISE, &sigmoid_impl},
    {MS, "QLinearLeakyRelu", 1, UNARY_SIG, "T:u8,i8", "alpha:f=0.01", ORT_TRAIT_ELEMENTWISE,
     &leaky_impl},
    {MS, "QLinearConcat", 1, "Y_scale:TF,Y_zero_point:T8,inputs**:TV -> Y:T8",
     "T8:u8,i8 TF:f32 TV:u8,i8,f32", "axis:i!", 0, &concat_impl},
    {MS, "QLinearGlobalAveragePool", 1, POOL_SIG, "T:u8,i8", "channels_last:i=0", 0, &global_impl},
    {MS, "QLinearAveragePool", 1, POOL_SIG, "T:u8,i8",
     "auto_pad:s=NOTSET ceil_mode:i=0 channels_last:i=0 count_include_pad:i=0 kernel_shape:is! "
     "pads:is strides:is", 0, &average_impl},
    {0},
};
