/* unary.c - mathematical functions of one tensor, and predicates.
 *
 * The function of an operator is a row of a table (name, kernel); versions differ in element types
 * only, so all rows share a few implementations.
 */
#pragma GCC optimize("O3") /* vectorize the loops of bytes and predicates */

#include "op/shared/unary_apply.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"

/* ---- functions without parameters */

static ort_status function_prepare(ort_prep *p, ort_error *err)
{
    ort_unary id;
    if (!ort_unary_find(p->op->name, &id))
        return ort_prep_fail(p, err, "no function for operator %s", p->op->name);
    return ort_unary_prepare(p, id, 0.0f, 0.0f, err);
}

/* Neg of a shape value stays known. */
static ort_status function_infer(ort_infer *x, ort_error *err)
{
    const ort_fact *in = ort_infer_in(x, 0);
    if (!in || strcmp(x->op->name, "Neg") || in->symbolic_count > 64 || in->symbolic == NULL)
        return ORT_OK;
    ort_dim elements[64];
    for (int i = 0; i < in->symbolic_count; i++)
        elements[i] = ort_dim_sub(x->dims, ort_dim_of(0), in->symbolic[i]);
    ort_infer_set_symbolic(x, 0, elements, in->symbolic_count);
    return ORT_OK;
}

static const ort_op_impl function_impl = {
    .rule = "same", .infer = function_infer, .prepare = function_prepare, .run = ort_unary_run,
    .cost = ort_elementwise_cost,
};

/* ---- Not, BitwiseNot */

typedef struct bits_job {
    const uint8_t *x;
    uint8_t *y;
    size_t bytes;
    bool logical;
} bits_job;

static void bits_task(void *arg, int64_t first, int64_t end, int thread)
{
    const bits_job *job = arg;
    if (job->logical)
        for (int64_t i = first; i < end; i++)
            job->y[i] = !job->x[i];
    else
        for (int64_t i = first; i < end; i++)
            job->y[i] = (uint8_t)~job->x[i];
}

static ort_status bits_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    bits_job job = {x->data, ort_call_out(call, 0)->data, ort_tensor_bytes(x),
                    x->dtype == ORT_DTYPE_BOOL};
    ort_call_range(call, (int64_t)job.bytes, ORT_ELEMENTWISE_GRAIN, bits_task, &job);
    return ORT_OK;
}

static const ort_op_impl bits_impl = {
    .rule = "same", .run = bits_run, .cost = ort_elementwise_cost,
};

/* ---- IsNaN, IsInf */

enum { IS_INF, IS_NAN };

typedef struct predicate_state {
    bool nan, negative, positive;
} predicate_state;

static const ort_bind predicate_bind[] = {
    ORT_BIND_AS(predicate_state, negative, "detect_negative", ORT_MAYBE),
    ORT_BIND_AS(predicate_state, positive, "detect_positive", ORT_MAYBE), {0}};

static ort_status predicate_prepare(ort_prep *p, ort_error *err)
{
    predicate_state *s = p->state;
    s->nan = p->op->variant == IS_NAN;
    return ORT_OK;
}

static bool predicate(const predicate_state *s, double v)
{
    return s->nan ? isnan(v) : isinf(v) && (v < 0 ? s->negative : s->positive);
}

static void predicate_f32(const predicate_state *s, const float *x, uint8_t *y, int64_t n)
{
    float low = s->negative ? -INFINITY : INFINITY, high = s->positive ? INFINITY : -INFINITY;
    if (s->nan)
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] != x[i];
    else if (!s->negative && !s->positive)
        memset(y, 0, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] == low) | (x[i] == high);
}

typedef struct predicate_job {
    const predicate_state *state;
    const ort_tensor *x;
    uint8_t *y;
} predicate_job;

static void predicate_task(void *arg, int64_t first, int64_t end, int thread)
{
    const predicate_job *job = arg;
    if (job->x->dtype == ORT_DTYPE_FLOAT)
        predicate_f32(job->state, (const float *)job->x->data + first, job->y + first, end - first);
    else
        for (int64_t i = first; i < end; i++)
            job->y[i] = predicate(job->state, ort_tensor_get_f64(job->x, i));
}

static ort_status predicate_run(ort_call *call, ort_error *err)
{
    predicate_job job = {call->state, ort_call_in(call, 0), ort_call_out(call, 0)->data};
    ort_call_range(call, ort_tensor_count(job.x), ORT_ELEMENTWISE_GRAIN, predicate_task, &job);
    return ORT_OK;
}

static const ort_op_impl predicate_impl = {
    .state = sizeof(predicate_state), .bind = predicate_bind,
    .rule = "same", .prepare = predicate_prepare, .run = predicate_run,
    .cost = ort_elementwise_cost,
};

#define MAP (ORT_TRAIT_ELEMENTWISE | ORT_TRAIT_INPLACE)
#define XY(name, since, types, later)                                                              \
    {ONNX, name, since, "X:T -> Y:T", "T:" types, "", MAP, &function_impl, .history = later}
#define IO(name, since, types, later)                                                              \
    {ONNX, name, since, "input:T -> output:T", "T:" types, "", MAP, &function_impl,                \
     .history = later}

const ort_op ort_ops_unary[] = {
    XY("Abs", 6, "F,I,U", "13:T+bf16"),
    XY("Neg", 6, "F,I", "13:T+bf16"),
    XY("Ceil", 6, "F", "13:T+bf16"),
    XY("Floor", 6, "F", "13:T+bf16"),
    XY("Round", 11, "F", "22:T+bf16"),
    XY("Sqrt", 6, "F", "13:T+bf16"),
    XY("Reciprocal", 6, "F", "13:T+bf16"),
    IO("Exp", 6, "F", "13:T+bf16"),
    IO("Log", 6, "F", "13:T+bf16"),
    IO("Erf", 9, "F,I,U", NULL),
    IO("Erf", 13, "F,bf16", NULL),
    IO("Sign", 9, "F,I,U", "13:T+bf16"),
    IO("Sin", 7, "F", "22:T+bf16"),
    IO("Cos", 7, "F", "22:T+bf16"),
    IO("Tan", 7, "F", "22:T+bf16"),
    IO("Asin", 7, "F", "22:T+bf16"),
    IO("Acos", 7, "F", "22:T+bf16"),
    IO("Atan", 7, "F", "22:T+bf16"),
    IO("Sinh", 9, "F", "22:T+bf16"),
    IO("Cosh", 9, "F", "22:T+bf16"),
    IO("Tanh", 6, "F", "13:T+bf16"),
    IO("Asinh", 9, "F", "22:T+bf16"),
    IO("Acosh", 9, "F", "22:T+bf16"),
    IO("Atanh", 9, "F", "22:T+bf16"),
    {ONNX, "Not", 1, "X:T -> Y:T", "T:bool", "", MAP, &bits_impl},
    {ONNX, "BitwiseNot", 18, "X:T -> Y:T", "T:I,U", "", MAP, &bits_impl},
    {ONNX, "IsNaN", 9, "X:T1 -> Y:T2", "T1:F T2:bool", "", ORT_TRAIT_ELEMENTWISE, &predicate_impl,
     .history = "13:T1+bf16 20:T1+F8", .variant = IS_NAN},
    {ONNX, "IsInf", 10, "X:T1 -> Y:T2", "T1:f32,f64 T2:bool",
     "detect_negative:i=1 detect_positive:i=1", ORT_TRAIT_ELEMENTWISE, &predicate_impl,
     .history = "20:T1+F8,f16,bf16"},
    {0},
};
