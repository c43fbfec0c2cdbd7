/* quant_pool.c - means of 8-bit codes: QLinearAveragePool, QLinearGlobalAveragePool, and ReduceMean
 * between Q and DQ (CodeMean), which takes those of 16 bits too; windows of these
 * (CodeAveragePool).
 *
 * Sums are exact integers; each becomes a float, is multiplied, and rounded once. Planes of a
 * window lie in rows, which are added up from top to bottom first and then from left to right;
 * with channels last, all channels of an element are one row.
 */
#include <string.h>

#include "base/checked.h"
#include "op/shared/codes.h"
#include "op/shared/pool_shape.h"

enum { GRAIN = 1 << 15, PIECE = 256 };

static ort_status pool_need_single(ort_shaping *s, ort_error *err)
{
    static const int single[] = {1, 2, 3, 4};
    return ort_codes_need_single(s, single, 4, err);
}

/* ---- the mean of everything but batch and channels: X, scale, zero, scale, zero */

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

/* Means of `count` codes that lie `inner` apart, of each of `inner` neighbours. */
typedef struct mean_job {
    const ort_kernels *k;
    const uint8_t *x;
    uint8_t *y;
    int64_t count, inner;
    float divisor, factor; /* of a sum */
    int x_zero;
    ort_codes to; /* scale 1: sums are multiplied before */
    ort_dtype wide; /* of 16-bit codes; UNDEFINED: bytes */
} mean_job;

static ort_dtype wide_of(const ort_tensor *x)
{
    return x->dtype == ORT_DTYPE_INT16 || x->dtype == ORT_DTYPE_UINT16 ? x->dtype
                                                                       : ORT_DTYPE_UNDEFINED;
}

/* Adds up to sums[i] the codes of `rows` rows that lie `row` apart. */
#define WIDE_SUMS(type, sum)                                                                       \
    static void sum##_of_##type(const void *x, int64_t rows, int64_t row, int64_t n, sum *sums)    \
    {                                                                                              \
        const type *from = x;                                                                      \
        for (int64_t r = 0; r < rows; r++, from += row)                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                sums[i] += from[i];                                                                \
    }
WIDE_SUMS(int16_t, int64_t)
WIDE_SUMS(uint16_t, int64_t)
WIDE_SUMS(int16_t, int32_t)
WIDE_SUMS(uint16_t, int32_t)
#undef WIDE_SUMS

static void wide_sums(const mean_job *j, int64_t first, int64_t row, int64_t n, int64_t *sums)
{
    const void *x = j->x + first * (int64_t)sizeof(uint16_t);
    if (j->wide == ORT_DTYPE_INT16)
        int64_t_of_int16_t(x, j->count, row, n, sums);
    else
        int64_t_of_uint16_t(x, j->count, row, n, sums);
}

/* Rows of columns [first, first + n) that follow each other. */
static void column_sums(const mean_job *j, int64_t outer, int64_t first, int64_t n, int64_t *sums)
{
    const uint8_t *x = j->x + outer * j->count * j->inner + first;
    memset(sums, 0, (size_t)n * sizeof *sums);
    if (j->wide) {
        wide_sums(j, x - j->x, j->inner, n, sums);
        return;
    }
    for (int64_t r = 0; r < j->count; r += 1 << 22) { /* what 32 bits hold the sum of */
        int32_t some[PIECE] = {0};
        j->k->codes.add_rows(some, x + r * j->inner, (size_t)ort_min_i64(1 << 22, j->count - r),
                             (size_t)j->inner, (size_t)n, j->to.is_signed);
        for (int64_t i = 0; i < n; i++)
            sums[i] += some[i];
    }
}

/* Items are outputs. */
static void mean_task(void *arg, int64_t first, int64_t end, int thread)
{
    const mean_job *j = arg;
    while (first < end) {
        int64_t sums[PIECE], n = ort_min_i64(PIECE, end - first);
        float values[PIECE];
        if (j->inner == 1 && j->wide) {
            memset(sums, 0, sizeof sums);
            for (int64_t i = 0; i < n; i++)
                wide_sums(j, (first + i) * j->count, 1, 1, sums + i);
        } else if (j->inner == 1) {
            for (int64_t i = 0; i < n; i++)
                sums[i] = j->k->codes.sum(j->x + (first + i) * j->count, (size_t)j->count,
                                          j->to.is_signed);
        } else {
            n = ort_min_i64(n, j->inner - first % j->inner);
            column_sums(j, first / j->inner, first % j->inner, n, sums);
        }
        for (int64_t i = 0; i < n; i++)
            values[i] = (float)(sums[i] - j->count * j->x_zero) / j->divisor * j->factor;
        if (j->wide)
            ort_codes_give(j->k, j->wide, 1, j->to.zero, values, j->y + 2 * first, n);
        else
            ort_codes_quantize(j->k, &j->to, values, j->y + first, n);
        first += n;
    }
}

static void run_means(const ort_call *call, mean_job *j)
{
    int64_t grain = ort_max_i64(GRAIN / ort_max_i64(j->count, 1), 1);
    ort_call_range(call, ort_tensor_count(ort_call_out(call, 0)), grain, mean_task, j);
}

static ort_status global_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    bool last = ((const global_state *)call->state)->channels_last;
    ort_codes from = ort_codes_of(call, x->dtype, 1, 2), to = ort_codes_of(call, y->dtype, 3, 4);
    mean_job j = {.k = call->k, .x = x->data, .y = y->data, .x_zero = from.zero,
                  .count = ort_tensor_count(x) / ort_tensor_count(y),
                  .inner = last ? x->shape.dim[x->shape.rank - 1] : 1,
                  .divisor = 1, .to = {1.0f, to.zero, to.is_signed}};
    j.factor = from.scale / ((float)j.count * to.scale);
    int64_t grain = ort_max_i64(GRAIN / ort_max_i64(j.count, 1), 1);
    ort_call_range(call, ort_tensor_count(y), grain, mean_task, &j);
    return ORT_OK;
}

/* ---- CodeMean: of neighbouring axes */

typedef struct axes_state {
    int64_t axis, count;
} axes_state;

static const ort_bind axes_bind[] = {
    ORT_BIND(axes_state, axis), ORT_BIND(axes_state, count), {0}};

static ort_status axes_infer(ort_infer *x, ort_error *err)
{
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *t = &x->in[0]->type;
    int64_t axis = ort_node_attr_int(x->node, "axis"), count = ort_node_attr_int(x->node, "count");
    ort_dim out[ORT_MAX_RANK];
    int rank = 0;
    if (axis < 0 || count < 0 || axis > t->rank || count > t->rank - axis)
        return ort_infer_fail(x, err, "its axes are outside of %d dims", t->rank);
    for (int d = 0; d < t->rank; d++)
        if (d < axis || d >= axis + count)
            out[rank++] = t->dim[d];
        else if (ort_node_attr_int(x->node, "keepdims"))
            out[rank++] = ort_dim_of(1);
    ort_infer_set_shape(x, 0, rank, out);
    return ORT_OK;
}

static ort_status axes_run(ort_call *call, ort_error *err)
{
    const axes_state *state = call->state;
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    int first = (int)state->axis, end = first + (int)state->count;
    ort_codes from = ort_codes_of(call, x->dtype, 1, 2), to = ort_codes_of(call, y->dtype, 3, 4);
    mean_job j = {.k = call->k, .x = x->data, .y = y->data, .x_zero = from.zero,
                  .count = ort_shape_count_range(&x->shape, first, end),
                  .inner = ort_shape_count_range(&x->shape, end, x->shape.rank),
                  .divisor = 1, .to = {1.0f, to.zero, to.is_signed}, .wide = wide_of(x)};
    j.factor = from.scale / ((float)j.count * to.scale);
    run_means(call, &j);
    return ORT_OK;
}

/* ---- of windows */

/* BytesAveragePool: blocks of channels are last (op/blocked/bytes_op.h), after two axes that are no
 * part of a plane. */
static bool is_blocked(const ort_node *node)
{
    return node->op->variant != 0;
}

static ort_status average_infer(ort_infer *x, ort_error *err)
{
    bool blocked = is_blocked(x->node);
    bool last = blocked || ort_node_attr_int(x->node, "channels_last");
    return ort_window_infer_pool(x, last && !blocked ? 1 : 2, last, err);
}

static const ort_bind average_bind[] = {
    ORT_BIND_AS(pool_state, include_pad, "count_include_pad"),
    ORT_BIND(pool_state, channels_last, ORT_MAYBE), {0}};

static ort_status average_prepare(ort_prep *p, ort_error *err)
{
    pool_state *state = p->state;
    state->channels_last |= is_blocked(p->node);
    return ort_window_read(p->node, &state->spec, err);
}

/* The taps of an axis that meet the input at an output. */
typedef struct taps {
    int64_t first, count, counted; /* index in the input; those that divide the sum */
} taps;

static taps taps_at(const ort_window *w, bool include_pad, int axis, int64_t out)
{
    int64_t step = w->dilation[axis], at = out * w->stride[axis] - w->begin[axis];
    int64_t skip = at < 0 ? (step - 1 - at) / step : 0;
    int64_t behind = (w->in[axis] - at + step - 1) / step;
    int64_t padded = (w->in[axis] + w->end[axis] - at + step - 1) / step;
    taps t = {at + skip * step, ort_min_i64(behind, w->kernel[axis]) - skip, 0};
    t.count = ort_max_i64(t.count, 0);
    t.counted = include_pad ? ort_max_i64(ort_min_i64(padded, w->kernel[axis]), 0) : t.count;
    return t;
}

typedef struct average_plan {
    ort_window w;
    const taps *axis[3];
} average_plan;

static ort_status plan_taps(const pool_state *state, average_plan *p, ort_arena *arena,
                            ort_error *err)
{
    for (int d = 0; d < 3; d++) {
        taps *t = ort_arena_array(arena, (size_t)p->w.out[d], sizeof *t);
        if (!t)
            return ort_error_memory(err, sizeof *t * (size_t)p->w.out[d]);
        for (int64_t o = 0; o < p->w.out[d]; o++)
            t[o] = taps_at(&p->w, state->include_pad, d, o);
        p->axis[d] = t;
    }
    return ORT_OK;
}

static ort_status average_shape(ort_shaping *s, ort_error *err)
{
    const pool_state *state = s->state;
    const ort_tensor *x = s->in[0];
    average_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    ORT_TRY(pool_need_single(s, err));
    if (x->shape.rank < 3)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "the input has rank %d, pooling needs 3 and more", x->shape.rank);
    bool blocked = is_blocked(s->node);
    int first = state->channels_last && !blocked ? 1 : 2;
    ORT_TRY(ort_window_resolve(&state->spec, x->shape.rank - (blocked ? 3 : 2),
                               x->shape.dim + first, NULL, &p->w, err));
    ort_window_to_3d(&p->w);
    if (p->w.rank != 3)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "pooling over %d spatial axes isn't implemented, only up to 3",
                             p->w.rank);
    int64_t channels = x->shape.dim[state->channels_last ? x->shape.rank - 1 : 1];
    s->thread_bytes = sizeof(int32_t) * (size_t)(state->channels_last ? channels : p->w.in[2]);
    return plan_taps(state, p, s->arena, err);
}

typedef struct average_job {
    const ort_call *call;
    const average_plan *p;
    const uint8_t *x;
    uint8_t *y;
    int64_t channels, in; /* channels that lie side by side; elements of a plane */
    float factor;
    int x_zero;
    ort_codes to;              /* scale 1 */
    ort_dtype wide;            /* of 16-bit codes, channels first; UNDEFINED: bytes */
} average_job;

static int64_t code_bytes(const average_job *j)
{
    return j->wide ? 2 : 1;
}

static void add_rows(const average_job *j, const uint8_t *x, int64_t rows, int64_t row, int64_t n,
                     int32_t *sums)
{
    if (j->wide == ORT_DTYPE_INT16)
        int32_t_of_int16_t(x, rows, row, n, sums);
    else if (j->wide)
        int32_t_of_uint16_t(x, rows, row, n, sums);
    else
        j->call->k->codes.add_rows(sums, x, (size_t)rows, (size_t)row, (size_t)n, j->to.is_signed);
}

/* Of a sum over so many codes. */
static float average_of(const average_job *j, int64_t sum, int64_t codes, int64_t counted)
{
    return counted ? (float)(sum - codes * j->x_zero) / (float)counted * j->factor : 0.0f;
}

/* Rows of a plane that the windows of one row of outputs meet, added up. */
static void add_window_rows(const average_job *j, const uint8_t *plane, const taps *z,
                            const taps *y, int32_t *sums)
{
    const ort_window *w = &j->p->w;
    memset(sums, 0, sizeof *sums * (size_t)w->in[2]);
    for (int64_t k = 0; k < z->count && y->count > 0; k++) {
        int64_t row = (z->first + k * w->dilation[0]) * w->in[1] + y->first;
        add_rows(j, plane + row * w->in[2] * code_bytes(j), y->count, w->dilation[1] * w->in[2],
                 w->in[2], sums);
    }
}

/* One row of outputs of one plane, channels first. */
static void average_row(const average_job *j, const uint8_t *plane, const taps *z, const taps *y,
                        uint8_t *out, int32_t *sums)
{
    const ort_window *w = &j->p->w;
    float values[PIECE];
    add_window_rows(j, plane, z, y, sums);
    for (int64_t first = 0; first < w->out[2]; first += PIECE) {
        int64_t n = ort_min_i64(PIECE, w->out[2] - first);
        for (int64_t i = 0; i < n; i++) {
            const taps x = j->p->axis[2][first + i];
            int64_t sum = 0;
            for (int64_t k = 0; k < x.count; k++)
                sum += sums[x.first + k * w->dilation[2]];
            values[i] = average_of(j, sum, z->count * y->count * x.count,
                                   z->counted * y->counted * x.counted);
        }
        if (j->wide)
            ort_codes_give(j->call->k, j->wide, 1, j->to.zero, values, out + 2 * first, n);
        else
            ort_codes_quantize(j->call->k, &j->to, values, out + first, n);
    }
}

/* The same with channels last. */
static void average_row_last(const average_job *j, const uint8_t *plane, const taps *z,
                             const taps *y, uint8_t *out, int32_t *sums)
{
    const ort_window *w = &j->p->w;
    for (int64_t o = 0; o < w->out[2]; o++) {
        const taps x = j->p->axis[2][o];
        memset(sums, 0, sizeof *sums * (size_t)j->channels);
        for (int64_t kz = 0; kz < z->count; kz++)
            for (int64_t ky = 0; ky < y->count; ky++) {
                int64_t row = (z->first + kz * w->dilation[0]) * w->in[1] + y->first +
                              ky * w->dilation[1];
                j->call->k->codes.add_rows(sums,
                                           plane + (row * w->in[2] + x.first) * j->channels,
                                           (size_t)x.count, (size_t)(w->dilation[2] * j->channels),
                                           (size_t)j->channels, j->to.is_signed);
            }
        for (int64_t c = 0; c < j->channels; c += PIECE) {
            int64_t n = ort_min_i64(PIECE, j->channels - c);
            float values[PIECE];
            for (int64_t i = 0; i < n; i++)
                values[i] = average_of(j, sums[c + i], z->count * y->count * x.count,
                                       z->counted * y->counted * x.counted);
            ort_codes_quantize(j->call->k, &j->to, values, out + o * j->channels + c, n);
        }
    }
}

/* Items are rows of outputs. */
static void average_task(void *arg, int64_t first, int64_t end, int thread)
{
    const average_job *j = arg;
    const ort_window *w = &j->p->w;
    int32_t *sums = ort_call_scratch(j->call, thread);
    for (; first < end; first++) {
        int64_t row = first % w->out[1], rest = first / w->out[1];
        const taps *z = &j->p->axis[0][rest % w->out[0]], *y = &j->p->axis[1][row];
        const uint8_t *plane = j->x + rest / w->out[0] * j->in * j->channels * code_bytes(j);
        uint8_t *out = j->y + first * w->out[2] * j->channels * code_bytes(j);
        (j->channels > 1 ? average_row_last : average_row)(j, plane, z, y, out, sums);
    }
}

/* One window that is the plane? Then it divides by *counted. */
static bool is_whole(const average_job *j, int64_t *counted)
{
    *counted = 1;
    for (int d = 0; d < 3; d++) {
        if (j->p->w.out[d] != 1 || j->p->axis[d]->count != j->p->w.in[d])
            return false;
        *counted *= j->p->axis[d]->counted;
    }
    return true;
}

static ort_status average_run(ort_call *call, ort_error *err)
{
    const pool_state *state = call->state;
    const average_plan *p = call->plan_state;
    const ort_window *w = &p->w;
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    ort_codes from = ort_codes_of(call, x->dtype, 1, 2), to = ort_codes_of(call, y->dtype, 3, 4);
    average_job j = {.call = call, .p = p, .x = x->data, .y = y->data, .x_zero = from.zero,
                     .channels = state->channels_last ? x->shape.dim[x->shape.rank - 1] : 1,
                     .in = w->in[0] * w->in[1] * w->in[2], .factor = from.scale / to.scale,
                     .to = {1.0f, to.zero, to.is_signed}, .wide = wide_of(x)};
    int64_t line = w->out[2] * j.channels, rows = ort_tensor_count(y) / line, counted;
    if (is_whole(&j, &counted)) {
        mean_job mean = {.k = call->k, .x = j.x, .y = j.y, .count = j.in, .inner = j.channels,
                         .divisor = (float)counted, .factor = j.factor, .x_zero = j.x_zero,
                         .to = j.to, .wide = j.wide};
        run_means(call, &mean);
        return ORT_OK;
    }
    int64_t work = w->in[2] * j.channels * w->kernel[0] * w->kernel[1];
    ort_call_range(call, rows, ort_max_i64(GRAIN / ort_max_i64(work, 1), 1), average_task, &j);
    return ORT_OK;
}

/* ---- rows */

static const ort_op_impl global_impl = {
    .state = sizeof(global_state), .bind = global_bind,
    .infer = global_infer, .shape = pool_need_single, .run = global_run,
    .numbers = 0x1e,
};
static const ort_op_impl axes_impl = {
    .state = sizeof(axes_state), .bind = axes_bind,
    .infer = axes_infer, .shape = pool_need_single, .run = axes_run,
    .numbers = 0x1e,
};
static const ort_op_impl average_impl = {
    .state = sizeof(pool_state), .bind = average_bind,
    .infer = average_infer, .prepare = average_prepare, .shape = average_shape, .run = average_run,
    .numbers = 0x1e,
};

#define POOL_SIG "X:T,x_scale:f32,x_zero_point?:T,y_scale:f32,y_zero_point?:T -> Y:T"

const ort_op ort_ops_quant_pool[] = {
    {MS, "QLinearGlobalAveragePool", 1, POOL_SIG, "T:u8,i8", "channels_last:i=0", 0, &global_impl},
    {MS, "QLinearAveragePool", 1, POOL_SIG, "T:u8,i8",
     "auto_pad:s=NOTSET ceil_mode:i=0 channels_last:i=0 count_include_pad:i=0 kernel_shape:is! "
     "pads:is strides:is", 0, &average_impl},
    {ORT_INTERNAL, "BytesAveragePool", 1, POOL_SIG, "T:u8",
     "auto_pad:s=NOTSET block:i! ceil_mode:i=0 count_include_pad:i=0 kernel_shape:is! pads:is "
     "strides:is", 0, &average_impl, .variant = 1},
    {ORT_INTERNAL, "CodeAveragePool", 1, POOL_SIG, "T:u16,i16",
     "auto_pad:s=NOTSET ceil_mode:i=0 count_include_pad:i=0 kernel_shape:is! pads:is strides:is", 0,
     &average_impl},
    {ORT_INTERNAL, "CodeMean", 1, POOL_SIG, "T:u8,i8,u16,i16", "axis:i! count:i! keepdims:i!", 0,
     &axes_impl},
    {0},
};
