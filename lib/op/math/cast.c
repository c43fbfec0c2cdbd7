/* cast.c - Cast, CastLike, BitCast.
 *
 * f32 and the 16-bit floats go through the kernels, truth values and bytes through loops that
 * vectorize; every other pair through tensor/convert.c, in pieces when elements are whole bytes. A
 * known integer value keeps its dims through inference.
 */
#pragma GCC optimize("O3") /* vectorize the loops of pairs */

#include <math.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/checked.h"
#include "op/shared/move.h"
#include "op/shared/unary_apply.h"

typedef struct cast_state {
    ort_cast_options options; /* alloc is filled by run */
    int mode;
} cast_state;

static const ort_bind cast_bind[] = {
    ORT_BIND_AS(cast_state, options.saturate, "saturate", ORT_ELSE(1)),
    ORT_BIND_AS(cast_state, mode, "round_mode", ORT_WORDS("up down nearest"), ORT_MAYBE), {0}};

static bool is_half(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT16 || dtype == ORT_DTYPE_BFLOAT16;
}

/* ---- infer */

/* Elements that are integers for certain: those of an integer tensor, or integral constants. */
static bool integral_constant(const ort_tensor *value)
{
    ort_dtype_class class_ = ort_dtype_get(value->dtype)->class_;
    if (class_ == ORT_CLASS_INT || class_ == ORT_CLASS_UINT)
        return true;
    if (class_ != ORT_CLASS_FLOAT || ort_tensor_count(value) > ORT_SYMBOLIC_MAX)
        return false;
    for (int64_t i = 0; i < ort_tensor_count(value); i++) {
        double v = ort_tensor_get_f64(value, i);
        if (!(fabs(v) < 9.0e15) || v != floor(v))
            return false;
    }
    return true;
}

static void cast_symbolic(ort_infer *x, ort_dtype to)
{
    const ort_fact *in = ort_infer_in(x, 0);
    ort_dim elements[ORT_SYMBOLIC_MAX];
    int count = ort_infer_int_count(x, 0);
    bool wide = to == ORT_DTYPE_INT64 || to == ORT_DTYPE_INT32 || to == ORT_DTYPE_FLOAT ||
                to == ORT_DTYPE_DOUBLE;
    if (!in || !wide || count < 0 || count > ORT_SYMBOLIC_MAX || in->type.rank < 0 ||
        in->type.rank > 1)
        return;
    if (in->value ? !integral_constant(in->value) : !in->symbolic)
        return;
    for (int i = 0; i < count; i++)
        if (!ort_infer_int(x, 0, i, &elements[i]))
            elements[i] = ort_dim_unknown();
    if (ort_infer_any_known(elements, count))
        ort_infer_set_symbolic(x, 0, elements, count);
}

static ort_status target(const ort_infer *x, ort_dtype *to, ort_error *err)
{
    int64_t number = ort_node_attr_int(x->node, "to");
    if (number <= 0 || number >= ORT_DTYPE_COUNT)
        return ort_infer_fail(x, err,
                              "attribute to is %lld, needs a number of TensorProto.DataType",
                              (long long)number);
    *to = (ort_dtype)number;
    return ORT_OK;
}

static ort_status cast_infer(ort_infer *x, ort_error *err)
{
    ort_dtype to = ORT_DTYPE_UNDEFINED;
    ORT_TRY(target(x, &to, err));
    cast_symbolic(x, to);
    return ORT_OK;
}

static ort_status cast_like_infer(ort_infer *x, ort_error *err)
{
    cast_symbolic(x, ort_infer_dtype(x, 1));
    return ORT_OK;
}

static ort_status bit_cast_infer(ort_infer *x, ort_error *err)
{
    ort_dtype to = ORT_DTYPE_UNDEFINED, from = ort_infer_dtype(x, 0);
    ORT_TRY(target(x, &to, err));
    if (from != ORT_DTYPE_UNDEFINED && (ort_dtype_get(from)->bits != ort_dtype_get(to)->bits ||
                                        from == ORT_DTYPE_STRING || to == ORT_DTYPE_STRING))
        return ort_infer_fail(x, err, "%s and %s differ in width, so bits can't be reinterpreted",
                              ort_dtype_name(from), ort_dtype_name(to));
    return ORT_OK;
}

/* ---- run */

static ort_status cast_prepare(ort_prep *p, ort_error *err)
{
    cast_state *state = p->state;
    state->options.round_mode = "udn"[state->mode];
    return ORT_OK;
}

static void *alloc_in_call(void *arg, size_t bytes) { return ort_call_alloc(arg, bytes); }

#define PAIR(name, to, from, expression)                                                           \
    static void name(const void *x_, void *y_, int64_t n)                                          \
    {                                                                                              \
        const from *x = x_;                                                                        \
        to *y = y_;                                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (to)(expression);                                                               \
    }
PAIR(bool_to_f32, float, uint8_t, x[i] != 0)
PAIR(bool_to_i32, int32_t, uint8_t, x[i] != 0)
PAIR(bool_to_i64, int64_t, uint8_t, x[i] != 0)
PAIR(f32_to_bool, uint8_t, float, x[i] != 0.0f)
PAIR(i32_to_bool, uint8_t, int32_t, x[i] != 0)
PAIR(i64_to_bool, uint8_t, int64_t, x[i] != 0)
PAIR(i32_to_f32, float, int32_t, x[i])
PAIR(i64_to_f32, float, int64_t, x[i])
PAIR(i64_to_i32, int32_t, int64_t, x[i])
PAIR(i32_to_i64, int64_t, int32_t, x[i])
PAIR(f32_to_f64, double, float, x[i])
PAIR(f64_to_f32, float, double, x[i])
#ifdef __SSE2__
/* The instructions truncate and give the smallest integer when out of range, as convert.c does. */
static void f32_to_i32(const void *x_, void *y_, int64_t n)
{
    const float *x = x_;
    int32_t *y = y_;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        _mm_storeu_si128((__m128i *)(void *)(y + i), _mm_cvttps_epi32(_mm_loadu_ps(x + i)));
    for (; i < n; i++)
        y[i] = _mm_cvttss_si32(_mm_load_ss(x + i));
}
static void f32_to_i64(const void *x_, void *y_, int64_t n)
{
    const float *x = x_;
    int64_t *y = y_;
    for (int64_t i = 0; i < n; i++)
        y[i] = _mm_cvttss_si64(_mm_load_ss(x + i));
}
#endif

typedef void pair_fn(const void *x, void *y, int64_t n);

static pair_fn *pair_of(ort_dtype to, ort_dtype from)
{
    static const struct {
        ort_dtype to, from;
        pair_fn *fn;
    } pairs[] = {
        {ORT_DTYPE_FLOAT, ORT_DTYPE_BOOL, bool_to_f32},
        {ORT_DTYPE_INT32, ORT_DTYPE_BOOL, bool_to_i32},
        {ORT_DTYPE_INT64, ORT_DTYPE_BOOL, bool_to_i64},
        {ORT_DTYPE_BOOL, ORT_DTYPE_FLOAT, f32_to_bool},
        {ORT_DTYPE_BOOL, ORT_DTYPE_INT32, i32_to_bool},
        {ORT_DTYPE_BOOL, ORT_DTYPE_INT64, i64_to_bool},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_INT32, i32_to_f32},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_INT64, i64_to_f32},
        {ORT_DTYPE_INT32, ORT_DTYPE_INT64, i64_to_i32},
        {ORT_DTYPE_INT64, ORT_DTYPE_INT32, i32_to_i64},
        {ORT_DTYPE_DOUBLE, ORT_DTYPE_FLOAT, f32_to_f64},
        {ORT_DTYPE_FLOAT, ORT_DTYPE_DOUBLE, f64_to_f32},
#ifdef __SSE2__
        {ORT_DTYPE_INT32, ORT_DTYPE_FLOAT, f32_to_i32},
        {ORT_DTYPE_INT64, ORT_DTYPE_FLOAT, f32_to_i64},
#endif
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].to == to && pairs[i].from == from)
            return pairs[i].fn;
    return NULL;
}

typedef struct cast_job {
    const cast_state *state;
    const ort_vmath_kernels *math;
    const ort_tensor *x;
    ort_tensor *y;
    pair_fn *pair; /* NULL: no loop of its own */
} cast_job;

static void cast_task(void *arg, int64_t first, int64_t end, int thread)
{
    const cast_job *job = arg;
    int64_t n = end - first;
    ort_tensor x = *job->x, y = *job->y;
    x.shape = y.shape = ort_shape_make(1, &n);
    x.data = (char *)x.data + (size_t)first * ort_move_element_bytes(x.dtype);
    y.data = (char *)y.data + (size_t)first * ort_move_element_bytes(y.dtype);
    if (x.dtype == ORT_DTYPE_FLOAT && is_half(y.dtype))
        ort_narrow(job->math, y.dtype, x.data, y.data, (size_t)n);
    else if (y.dtype == ORT_DTYPE_FLOAT && is_half(x.dtype))
        ort_widen(job->math, x.dtype, x.data, y.data, (size_t)n);
    else if (job->pair)
        job->pair(x.data, y.data, n);
    else if (y.dtype == ORT_DTYPE_FLOAT && x.dtype == ORT_DTYPE_UINT8)
        job->math->dequantize_u8(x.data, y.data, (size_t)n, 1.0f, 0);
    else if (y.dtype == ORT_DTYPE_FLOAT && x.dtype == ORT_DTYPE_INT8)
        job->math->dequantize_s8(x.data, y.data, (size_t)n, 1.0f, 0);
    else /* between numbers of whole bytes: nothing can fail */
        (void)!ort_tensor_cast(&y, &x, &job->state->options, NULL);
}

static ort_status cast_run(ort_call *call, ort_error *err)
{
    const cast_state *state = call->state;
    cast_job job = {state, &call->k->math, ort_call_in(call, 0), ort_call_out(call, 0), NULL};
    ort_dtype from = job.x->dtype, to = job.y->dtype;
    job.pair = pair_of(to, from);
    bool plain = ort_move_element_bytes(from) && ort_move_element_bytes(to) &&
                 from != ORT_DTYPE_STRING && to != ORT_DTYPE_STRING;
    if (!plain) {
        ort_cast_options options = state->options;
        options.alloc = alloc_in_call;
        options.alloc_arg = call;
        return ort_tensor_cast(job.y, job.x, &options, err);
    }
    ort_call_range(call, ort_tensor_count(job.x), ORT_ELEMENTWISE_GRAIN, cast_task, &job);
    return ORT_OK;
}

static ort_status bit_cast_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    if (x->data != y->data && ort_tensor_count(x) > 0)
        memcpy(y->data, x->data, ort_tensor_bytes(x));
    return ORT_OK;
}

static const ort_op_impl cast_impl = {
    .state = sizeof(cast_state), .bind = cast_bind, .rule = "[..] -> [..]:to", .infer = cast_infer,
    .prepare = cast_prepare, .run = cast_run, .cost = ort_elementwise_cost,
};
static const ort_op_impl cast_like_impl = {
    .state = sizeof(cast_state), .bind = cast_bind,
    .rule = "[..] -> [..]", .infer = cast_like_infer, .prepare = cast_prepare, .run = cast_run,
    .cost = ort_elementwise_cost,
};
static const ort_op_impl bit_cast_impl = {
    .rule = "[..] -> [..]:to", .infer = bit_cast_infer, .run = bit_cast_run,
    .cost = ort_elementwise_cost,
};

#define EW ORT_TRAIT_ELEMENTWISE
const ort_op ort_ops_cast[] = {
    {ONNX, "Cast", 6, "input:T1 -> output:T2", "T1:F,I,U,bool T2:F,I,U,bool", "to:i!", EW,
     &cast_impl,
     .history = "9:T1+str T2+str 13:T1+bf16 T2+bf16 19:T1+F8 T2+F8 +saturate:i=1 21:T1+Q4 T2+Q4 "
                "23:T1+f4e2m1 T2+f4e2m1 24:T1+f8e8m0 T2+f8e8m0 +round_mode:s=up 25:T1+Q2 T2+Q2 "
                "28:T1+F6 T2+F6"},
    {ONNX, "CastLike", 15, "input:T1,target_type:T2 -> output:T2",
     "T1:F,I,U,bool,str,bf16 T2:F,I,U,bool,str,bf16", "", EW, &cast_like_impl,
     .history = "19:T1+F8 T2+F8 +saturate:i=1 21:T1+Q4 T2+Q4 23:T1+f4e2m1 T2+f4e2m1 "
                "24:T1+f8e8m0 T2+f8e8m0 +round_mode:s=up 25:T1+Q2 T2+Q2"},
    {ONNX, "BitCast", 26, "input:T1 -> output:T2",
     "T1:F,I,U,C,F8,Q4,Q2,bf16,bool,f4e2m1,f8e8m0 T2:F,I,U,C,F8,Q4,Q2,bf16,bool,f4e2m1,f8e8m0",
     "to:i!", 0, &bit_cast_impl},
    {0},
};
