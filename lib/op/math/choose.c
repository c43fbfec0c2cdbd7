/* choose.c - operators that pick or merge elements of several tensors: Where, Clip, Max, Min, Sum,
 * Mean.
 *
 * Variadic ones go block by block: a block of the output collects input after input while it is in
 * the first-level cache, 16-bit floats in f32, so that they are rounded once.
 */
#pragma GCC optimize("O3") /* vectorize the loops of the integer types */

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"
#include "op/number.h"
#include "op/shared/bcast_block.h"
#include "op/shared/binary_apply.h"
#include "op/shared/move.h"
#include "op/shared/unary_apply.h"

static bool is_half(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT16 || dtype == ORT_DTYPE_BFLOAT16;
}

/* ---- Where */

typedef struct where_job {
    const ort_bcast *plan;
    const ort_vmath_kernels *math;
    const uint8_t *c;
    const char *a, *b;
    char *y;
    size_t bytes;
} where_job;

#define PICK(type)                                                                                 \
    {                                                                                              \
        const type *a = (const type *)job->a + in[1], *b = (const type *)job->b + in[2];           \
        type *y = (type *)job->y + out;                                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = c[i * sc] ? a[i * sa] : b[i * sb];                                              \
        break;                                                                                     \
    }

static void where_segment(void *arg, int64_t out, const int64_t *in, int64_t n)
{
    const where_job *job = arg;
    const uint8_t *c = job->c + in[0];
    int last = job->plan->rank - 1;
    int64_t sc = job->plan->stride[0][last], sa = job->plan->stride[1][last];
    int64_t sb = job->plan->stride[2][last];
    if (job->bytes == 4 && sc == 1) { /* any 4-byte type: the kernel moves bits */
        job->math->where(c, (const float *)job->a + in[1], (size_t)sa,
                         (const float *)job->b + in[2], (size_t)sb, (float *)job->y + out,
                         (size_t)n);
        return;
    }
    switch (job->bytes) {
    case 1: PICK(uint8_t)
    case 2: PICK(uint16_t)
    case 4: PICK(uint32_t)
    case 8: PICK(uint64_t)
    default: PICK(ort_string) /* 16 bytes: strings, complex128 */
    }
}

/* Operands laid out block by block as the output is. */
static void where_blocks(const where_job *job, int64_t first, int64_t end)
{
    static const ort_bcast dense = {.rank = 1, .inputs = 3, .stride = {{1}, {1}, {1}}};
    _Alignas(16) char space[3][ORT_BCAST_SPACE(sizeof(ort_string))]; /* the widest element */
    ort_bcast_operand c, a, b;
    where_job block = *job;
    const int64_t start[3] = {0};
    ort_bcast_operand_begin(&c, job->plan, 0, job->c, 1, space[0]);
    ort_bcast_operand_begin(&a, job->plan, 1, job->a, job->bytes, space[1]);
    ort_bcast_operand_begin(&b, job->plan, 2, job->b, job->bytes, space[2]);
    block.plan = &dense;
    for (int64_t n; first < end; first += n) {
        n = ort_min_i64(end - first, ORT_BCAST_BLOCK);
        block.c = ort_bcast_operand_block(&c, first, n);
        block.a = ort_bcast_operand_block(&a, first, n);
        block.b = ort_bcast_operand_block(&b, first, n);
        where_segment(&block, first, start, n);
    }
}

static void where_task(void *arg, int64_t first, int64_t end, int thread)
{
    enum { FEW = 32 }; /* elements that take less than a block's layout */
    const where_job *job = arg;
    if (ort_bcast_has_short_runs(job->plan) && end - first > FEW)
        where_blocks(job, first, end);
    else
        ort_bcast_walk(job->plan, first, end - first, where_segment, arg);
}

static ort_status where_run(ort_call *call, ort_error *err)
{
    where_job job = {call->plan_state,
                     &call->k->math,
                     ort_call_in(call, 0)->data,
                     ort_call_in(call, 1)->data,
                     ort_call_in(call, 2)->data,
                     ort_call_out(call, 0)->data,
                     ort_move_element_bytes(ort_call_in(call, 1)->dtype)};
    ort_call_range(call, job.plan->total, ORT_ELEMENTWISE_GRAIN, where_task, &job);
    return ORT_OK;
}

/* Collapsed broadcast of condition and both choices onto the output. */
static ort_status broadcast_shape(ort_shaping *s, ort_error *err)
{
    const ort_shape *in[ORT_BCAST_MAX];
    ort_bcast *plan = ort_arena_alloc(s->arena, sizeof *plan);
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    ORT_TRY(ort_binary_check_types(s->in[1], s->in[2], err));
    for (int k = 0; k < s->in_count; k++) {
        ort_shape both;
        in[k] = &s->in[k]->shape;
        if (!ort_shape_broadcast(in[k], &s->out[0]->shape, &both) ||
            !ort_shape_equal(&both, &s->out[0]->shape))
            return ort_error_set(err, ORT_ERROR_MODEL, "input %d doesn't broadcast to the output",
                                 k);
    }
    ort_bcast_make(plan, &s->out[0]->shape, in, s->in_count);
    s->plan_state = plan;
    return ORT_OK;
}

static ort_status where_infer(ort_infer *x, ort_error *err)
{
    ort_dim a[ORT_SYMBOLIC_MAX], b[ORT_SYMBOLIC_MAX], y[ORT_SYMBOLIC_MAX], c;
    int nc = ort_infer_int_count(x, 0), na = ort_infer_elements(x, 1, a);
    int nb = ort_infer_elements(x, 2, b);
    if (na < 0 || nb < 0 || nc < 0 || x->out[0].type.rank < 0 || x->out[0].type.rank > 1)
        return ORT_OK;
    int n = na > nb ? na : nb;
    n = nc > n ? nc : n;
    if (n > ORT_SYMBOLIC_MAX || (na != 1 && na != n) || (nb != 1 && nb != n) || (nc != 1 &&
                                                                                 nc != n))
        return ORT_OK;
    for (int i = 0; i < n; i++) {
        ort_dim p = a[na == 1 ? 0 : i], q = b[nb == 1 ? 0 : i];
        y[i] = ort_dim_unknown();
        if (ort_infer_int(x, 0, nc == 1 ? 0 : i, &c) && ort_dim_known(c))
            y[i] = c.size ? p : q;
        else if (ort_dim_equal(p, q))
            y[i] = p;
    }
    if (ort_infer_any_known(y, n))
        ort_infer_set_symbolic(x, 0, y, n);
    return ORT_OK;
}

static const ort_op_impl where_impl = {
    .rule = "broadcast", .infer = where_infer, .shape = broadcast_shape, .run = where_run,
    .cost = ort_elementwise_cost,
};

/* ---- functions of two operands, for types without a kernel */

#define FORMS(name, type, expression)                                                              \
    static void name(const void *a_, const void *b_, void *y_, size_t n, ort_form form)            \
    {                                                                                              \
        const type *a = a_, *b = b_;                                                               \
        type *y = y_;                                                                              \
        if (form == ORT_FORM_VV) {                                                                 \
            for (size_t i = 0; i < n; i++) {                                                       \
                type s = a[i], t = b[i];                                                           \
                y[i] = expression;                                                                 \
            }                                                                                      \
        } else { /* the running result is always a vector */                                       \
            type t = b[0];                                                                         \
            for (size_t i = 0; i < n; i++) {                                                       \
                type s = a[i];                                                                     \
                y[i] = expression;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }
#define EXTREMES(type, name)                                                                       \
    FORMS(max_##name, type, s > t ? s : t)                                                         \
    FORMS(min_##name, type, s < t ? s : t)
EXTREMES(int8_t, i8)
EXTREMES(int16_t, i16)
EXTREMES(int32_t, i32)
EXTREMES(int64_t, i64)
EXTREMES(uint8_t, u8)
EXTREMES(uint16_t, u16)
EXTREMES(uint32_t, u32)
EXTREMES(uint64_t, u64)
FORMS(max_f64, double, isnan(s) ? s : isnan(t) ? t : s > t ? s : t)
FORMS(min_f64, double, isnan(s) ? s : isnan(t) ? t : s < t ? s : t)
FORMS(add_f64, double, s + t)

typedef enum merge { MERGE_MAX, MERGE_MIN, MERGE_SUM, MERGE_MEAN } merge;

static ort_binary_fn *merge_function(const ort_vmath_kernels *math, merge op, ort_dtype dtype)
{
    static ort_binary_fn *const rows[][2] = {
        [ORT_DTYPE_INT8] = {max_i8, min_i8},    [ORT_DTYPE_INT16] = {max_i16, min_i16},
        [ORT_DTYPE_INT32] = {max_i32, min_i32}, [ORT_DTYPE_INT64] = {max_i64, min_i64},
        [ORT_DTYPE_UINT8] = {max_u8, min_u8},   [ORT_DTYPE_UINT16] = {max_u16, min_u16},
        [ORT_DTYPE_UINT32] = {max_u32, min_u32}, [ORT_DTYPE_UINT64] = {max_u64, min_u64},
        [ORT_DTYPE_DOUBLE] = {max_f64, min_f64},
    };
    static const ort_binary kernels[] = {ORT_BINARY_MAX, ORT_BINARY_MIN, ORT_BINARY_ADD,
                                         ORT_BINARY_ADD};
    if (dtype == ORT_DTYPE_FLOAT || is_half(dtype))
        return math->binary[kernels[op]];
    if (op >= MERGE_SUM)
        return dtype == ORT_DTYPE_DOUBLE ? add_f64 : NULL;
    return (size_t)dtype < sizeof rows / sizeof *rows ? rows[dtype][op] : NULL;
}

/* ---- Max, Min, Sum, Mean */

#define MERGE_BLOCK ORT_WIDEN_BLOCK

typedef struct merge_state {
    ort_binary_fn *fn;
    merge op;
    ort_dtype dtype;
} merge_state;

typedef struct merge_job {
    const merge_state *state;
    const ort_bcast *plans; /* one per input */
    const ort_vmath_kernels *math;
    ort_call *call;
    ort_tensor *y;
    size_t bytes;
    bool overlaps; /* the output lies over an input other than the first */
} merge_job;

typedef struct merge_step {
    const merge_job *job;
    int input;
    int64_t base; /* output index of block[0] */
    char *block;  /* the running result: part of the output, or f32 */
} merge_step;

static void merge_segment(void *arg, int64_t out, const int64_t *in, int64_t n)
{
    const merge_step *step = arg;
    const merge_job *job = step->job;
    const ort_bcast *plan = &job->plans[step->input];
    bool moves = plan->stride[0][plan->rank - 1] != 0, half = is_half(job->state->dtype);
    size_t bytes = half ? sizeof(float) : job->bytes;
    const char *x = (const char *)ort_call_in(job->call, step->input)->data +
                    (size_t)in[0] * job->bytes;
    char *y = step->block + (size_t)(out - step->base) * bytes;
    float wide[MERGE_BLOCK];
    if (half) {
        ort_widen(job->math, job->state->dtype, x, wide, moves ? (size_t)n : 1);
        x = (const char *)wide;
    }
    if (step->input > 0)
        job->state->fn(y, x, y, (size_t)n, moves ? ORT_FORM_VV : ORT_FORM_VS);
    else if (moves)
        memmove(y, x, (size_t)n * bytes);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(y + (size_t)i * bytes, x, bytes);
}

static void merge_finish(const merge_job *job, char *block, int64_t n)
{
    float count = (float)job->call->in_count;
    if (job->state->op != MERGE_MEAN)
        return;
    if (job->state->dtype == ORT_DTYPE_DOUBLE)
        for (int64_t i = 0; i < n; i++)
            ((double *)block)[i] /= (double)count;
    else
        job->math->binary[ORT_BINARY_DIV](block, &count, block, (size_t)n, ORT_FORM_VS);
}

static void merge_block(const merge_job *job, int64_t first, int64_t n)
{
    double block[MERGE_BLOCK]; /* f32 of 16-bit floats, or the widest type */
    bool half = is_half(job->state->dtype);
    char *out = (char *)job->y->data + (size_t)first * job->bytes;
    merge_step step = {job, 0, first, half || job->overlaps ? (char *)block : out};
    for (; step.input < job->call->in_count; step.input++)
        ort_bcast_walk(&job->plans[step.input], first, n, merge_segment, &step);
    merge_finish(job, step.block, n);
    if (half)
        ort_narrow(job->math, job->state->dtype, (const float *)(const void *)block, out,
                   (size_t)n);
    else if (job->overlaps)
        memcpy(out, block, (size_t)n * job->bytes);
}

static void merge_task(void *arg, int64_t first, int64_t end, int thread)
{
    const merge_job *job = arg;
    for (; first < end; first += MERGE_BLOCK)
        merge_block(job, first, ort_min_i64(MERGE_BLOCK, end - first));
}

static ort_status merge_prepare(ort_prep *p, ort_error *err)
{
    merge_state *state = p->state;
    state->op = (merge)p->op->variant;
    state->dtype = ort_prep_dtype(p, 0);
    state->fn = merge_function(&p->k->math, state->op, state->dtype);
    return state->fn ? ORT_OK : ort_prep_unsupported_dtype(p, 0, err);
}

static ort_status merge_shape(ort_shaping *s, ort_error *err)
{
    ort_bcast *plans = ort_arena_array(s->arena, (size_t)s->in_count, sizeof *plans);
    if (!plans)
        return ort_error_memory(err, (size_t)s->in_count * sizeof *plans);
    for (int k = 0; k < s->in_count; k++) {
        const ort_shape *in = s->in[k] ? &s->in[k]->shape : NULL;
        ort_shape both;
        if (!in || !ort_shape_broadcast(in, &s->out[0]->shape, &both) ||
            !ort_shape_equal(&both, &s->out[0]->shape))
            return ort_error_set(err, ORT_ERROR_MODEL, "input %d doesn't broadcast to the output",
                                 k);
        ORT_TRY(ort_binary_check_types(s->out[0], s->in[k], err));
        ort_bcast_make(&plans[k], &s->out[0]->shape, &in, 1);
    }
    s->plan_state = plans;
    return ORT_OK;
}

static ort_status merge_run(ort_call *call, ort_error *err)
{
    merge_job job = {.state = call->state,
                     .plans = call->plan_state,
                     .math = &call->k->math,
                     .call = call,
                     .y = ort_call_out(call, 0)};
    for (int k = 1; k < call->in_count; k++)
        job.overlaps = job.overlaps || ort_call_in(call, k)->data == job.y->data;
    job.bytes = ort_move_element_bytes(job.y->dtype);
    ort_call_range(call, ort_tensor_count(job.y), ORT_ELEMENTWISE_GRAIN, merge_task, &job);
    return ORT_OK;
}

/* Before opset 8 all inputs had to have one shape: a dim that broadcasting can't tell is the first
 * input's. */
static void take_first_dims(ort_infer *x)
{
    const ort_type *first = x->in_count > 0 ? &x->in[0]->type : NULL;
    ort_type *y = &x->out[0].type;
    for (int d = 0; first && y->rank == first->rank && d < y->rank; d++)
        if (y->dim[d].expr == ORT_DIM_UNKNOWN)
            y->dim[d] = first->dim[d];
}

static ort_status merge_infer(ort_infer *x, ort_error *err)
{
    ort_dim y[ORT_SYMBOLIC_MAX], in[ORT_SYMBOLIC_MAX];
    bool is_max = x->op->variant == MERGE_MAX;
    if (x->op->since < 8)
        take_first_dims(x);
    if ((!is_max && x->op->variant != MERGE_MIN) || x->out[0].type.rank < 0 ||
        x->out[0].type.rank > 1)
        return ORT_OK;
    int n = ort_infer_elements(x, 0, y);
    for (int k = 1; k < x->in_count && n >= 0; k++) {
        int count = ort_infer_elements(x, k, in);
        if (count < 0 || (count != n && count != 1 && n != 1))
            return ORT_OK;
        int wide = count > n ? count : n;
        for (int i = wide - 1; i >= 0; i--) {
            ort_dim a = y[n == 1 ? 0 : i], b = in[count == 1 ? 0 : i];
            y[i] = is_max ? ort_dim_max(x->dims, a, b) : ort_dim_min(x->dims, a, b);
        }
        n = wide;
    }
    if (n >= 0 && ort_infer_any_known(y, n))
        ort_infer_set_symbolic(x, 0, y, n);
    return ORT_OK;
}

static const ort_op_impl merge_impl = {
    .state = sizeof(merge_state),
    .rule = "broadcast", .infer = merge_infer,
    .prepare = merge_prepare, .shape = merge_shape, .run = merge_run, .cost = ort_elementwise_cost,
};

/* ---- Clip */

typedef struct clip_state {
    float lo, hi; /* attributes of opset 6 */
    bool attributes;
} clip_state;

static const ort_bind clip_bind[] = {
    ORT_BIND_AS(clip_state, lo, "min", ORT_ELSE(-FLT_MAX)),
    ORT_BIND_AS(clip_state, hi, "max", ORT_ELSE(FLT_MAX)), {0}};

typedef struct clip_job {
    const ort_tensor *x, *lo, *hi;
    ort_tensor *y;
    const ort_vmath_kernels *math;
    float flo, fhi;
} clip_job;

static ort_status clip_prepare(ort_prep *p, ort_error *err)
{
    clip_state *state = p->state;
    state->attributes = p->op->since < 11;
    return ORT_OK;
}

#define CLIP_LOOP(type, lowest, highest)                                                           \
    {                                                                                              \
        const type *x = (const type *)job->x->data + first;                                        \
        type *y = (type *)job->y->data + first;                                                    \
        type lo = (type)(lowest), hi = (type)(highest);                                            \
        ort_tensor_one(job->lo, &lo);                                                              \
        ort_tensor_one(job->hi, &hi);                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            type v = x[i] < lo ? lo : x[i];                                                        \
            y[i] = v > hi ? hi : v;                                                                \
        }                                                                                          \
        return;                                                                                    \
    }

#define CLIP_SIGNED(id, type, name) case ORT_DTYPE_##id: CLIP_LOOP(type, id##_MIN, id##_MAX)
#define CLIP_UNSIGNED(id, type, name) case ORT_DTYPE_##id: CLIP_LOOP(type, 0, id##_MAX)

static void clip_other(const clip_job *job, size_t first, size_t n)
{
    switch ((int)job->x->dtype) {
    case ORT_DTYPE_DOUBLE: CLIP_LOOP(double, job->flo, job->fhi)
    ORT_SIGNED_TYPES(CLIP_SIGNED)
    ORT_UNSIGNED_TYPES(CLIP_UNSIGNED)
    default: break;
    }
}

static void clip_half(const clip_job *job, size_t first, size_t n)
{
    float block[ORT_WIDEN_BLOCK];
    for (size_t i = first; i < first + n; i += ORT_WIDEN_BLOCK) {
        size_t count = first + n - i < ORT_WIDEN_BLOCK ? first + n - i : ORT_WIDEN_BLOCK;
        ort_widen(job->math, job->x->dtype, (const uint16_t *)job->x->data + i, block, count);
        job->math->unary[ORT_UNARY_CLIP](block, block, count, job->flo, job->fhi);
        ort_narrow(job->math, job->x->dtype, block, (uint16_t *)job->y->data + i, count);
    }
}

static void clip_task(void *arg, int64_t first, int64_t end, int thread)
{
    const clip_job *job = arg;
    size_t n = (size_t)(end - first);
    if (job->x->dtype == ORT_DTYPE_FLOAT)
        job->math->unary[ORT_UNARY_CLIP]((const float *)job->x->data + first,
                                         (float *)job->y->data + first, n, job->flo, job->fhi);
    else if (is_half(job->x->dtype))
        clip_half(job, (size_t)first, n);
    else
        clip_other(job, (size_t)first, n);
}

static ort_status clip_run(ort_call *call, ort_error *err)
{
    const clip_state *state = call->state;
    clip_job job = {ort_call_in(call, 0), ort_call_in(call, 1), ort_call_in(call, 2),
                    ort_call_out(call, 0), &call->k->math, -INFINITY, INFINITY};
    ORT_TRY(ort_call_need_numbers(call, (int[]){1, 2}, 2, err));
    if (job.lo)
        ORT_TRY(ort_binary_check_types(job.x, job.lo, err));
    if (job.hi)
        ORT_TRY(ort_binary_check_types(job.x, job.hi, err));
    if (state->attributes) {
        job.flo = state->lo;
        job.fhi = state->hi;
    }
    if (ort_dtype_get(job.x->dtype)->class_ == ORT_CLASS_FLOAT) {
        ORT_TRY(ort_call_f32(call, 1, &job.flo, err));
        ORT_TRY(ort_call_f32(call, 2, &job.fhi, err));
    }
    ort_call_range(call, ort_tensor_count(job.x), ORT_ELEMENTWISE_GRAIN, clip_task, &job);
    return ORT_OK;
}

static const ort_op_impl clip_impl = {
    .state = sizeof(clip_state), .bind = clip_bind,
    .rule = "same", .prepare = clip_prepare, .run = clip_run,
    .cost = ort_elementwise_cost, .numbers = 6,
};

#define EW (ORT_TRAIT_ELEMENTWISE | ORT_TRAIT_INPLACE)
#define MERGE(name, out, later, kind)                                                              \
    {ONNX, name, 6, "data_0*:T -> " out ":T", "T:F", "", EW, &merge_impl, .history = later,     \
     .variant = kind}

const ort_op ort_ops_choose[] = {
    {ONNX, "Where", 9, "condition:B,X:T,Y:T -> output:T", "B:bool T:F,I,U,C,str,bool", "", EW,
     &where_impl, .history = "16:T+bf16"},
    {ONNX, "Clip", 6, "input:T -> output:T", "T:F", "max:f=3.40282347e+38 min:f=-3.40282347e+38",
     EW, &clip_impl},
    {ONNX, "Clip", 11, "input:T,min?:T,max?:T -> output:T", "T:F", "", EW, &clip_impl,
     .history = "12:T+I,U 13:T+bf16"},
    MERGE("Max", "max", "8 12:T+I,U 13:T+bf16", MERGE_MAX),
    MERGE("Min", "min", "8 12:T+I,U 13:T+bf16", MERGE_MIN),
    MERGE("Sum", "sum", "8 13:T+bf16", MERGE_SUM),
    MERGE("Mean", "mean", "8 13:T+bf16", MERGE_MEAN),
    {0},
};
