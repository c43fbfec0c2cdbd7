/* unary.c - mathematical functions of one tensor, predicates, and the machinery of unary.h.
 *
 * The function of an operator is a row of a table (name, kernel); versions differ in element types
 * only, so all rows share a few implementations.
 */
#pragma GCC optimize("O3") /* vectorize the loops of bytes and predicates */

#include "op/math/unary.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/num.h"

/* ---- machinery */

void ort_widen(const ort_vmath_kernels *math, ort_dtype dtype, const void *x, float *y, size_t n)
{
    if (dtype == ORT_DTYPE_FLOAT16)
        math->f16_to_f32(x, y, n);
    else
        math->bf16_to_f32(x, y, n);
}

void ort_narrow(const ort_vmath_kernels *math, ort_dtype dtype, const float *x, void *y, size_t n)
{
    if (dtype == ORT_DTYPE_FLOAT16)
        math->f32_to_f16(x, y, n);
    else
        math->f32_to_bf16(x, y, n);
}

static double elements_of(const ort_type *type)
{
    double count = type->kind == ORT_TYPE_TENSOR && type->rank >= 0 ? 1.0 : 0.0;
    for (int d = 0; d < type->rank; d++)
        count *= ort_dim_known(type->dim[d]) ? (double)type->dim[d].size : 1.0;
    return count;
}

void ort_elementwise_cost(const ort_infer *x, ort_cost *cost)
{
    cost->flops = elements_of(&x->out[0].type);
}

void ort_reduction_cost(const ort_infer *x, ort_cost *cost)
{
    cost->flops = x->in_count && x->in[0] ? elements_of(&x->in[0]->type) : 0;
}

ort_status ort_unary_prepare(ort_prep *p, ort_unary id, float a, float b, ort_error *err)
{
    ort_unary_state *state = ort_prep_state(p, sizeof *state);
    if (!state)
        return ort_error_memory(err, sizeof *state);
    state->id = id;
    state->dtype = ort_prep_dtype(p, 0);
    state->a = a;
    state->b = b;
    return ORT_OK;
}

/* Exact integer forms. Unsigned arithmetic: the smallest value wraps onto itself. */
#define INTEGER_LOOP(type, expression)                                                             \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v = ((const type *)x)[i];                                                             \
        ((type *)y)[i] = (type)(expression);                                                       \
    }                                                                                              \
    return true;
#define SIGNED_FUNCTIONS(type, name)                                                               \
    static bool integer_##name(ort_unary id, const void *x, void *y, size_t n)                     \
    {                                                                                              \
        switch ((int)id) {                                                                         \
        case ORT_UNARY_ABS: INTEGER_LOOP(type, v < 0 ? 0 - (uint64_t)v : (uint64_t)v)              \
        case ORT_UNARY_NEG: INTEGER_LOOP(type, 0 - (uint64_t)v)                                    \
        case ORT_UNARY_SIGN: INTEGER_LOOP(type, (v > 0) - (v < 0))                                 \
        case ORT_UNARY_RELU: INTEGER_LOOP(type, v < 0 ? 0 : v)                                     \
        default: return false;                                                                     \
        }                                                                                          \
    }
#define UNSIGNED_FUNCTIONS(type, name)                                                             \
    static bool integer_##name(ort_unary id, const void *x, void *y, size_t n)                     \
    {                                                                                              \
        switch ((int)id) {                                                                         \
        case ORT_UNARY_ABS:                                                                        \
        case ORT_UNARY_RELU: INTEGER_LOOP(type, v)                                                 \
        case ORT_UNARY_NEG: INTEGER_LOOP(type, 0 - (uint64_t)v)                                    \
        case ORT_UNARY_SIGN: INTEGER_LOOP(type, v > 0)                                             \
        default: return false;                                                                     \
        }                                                                                          \
    }
SIGNED_FUNCTIONS(int8_t, i8)
SIGNED_FUNCTIONS(int16_t, i16)
SIGNED_FUNCTIONS(int32_t, i32)
SIGNED_FUNCTIONS(int64_t, i64)
UNSIGNED_FUNCTIONS(uint8_t, u8)
UNSIGNED_FUNCTIONS(uint16_t, u16)
UNSIGNED_FUNCTIONS(uint32_t, u32)
UNSIGNED_FUNCTIONS(uint64_t, u64)

static bool integer_run(ort_dtype dtype, ort_unary id, const void *x, void *y, size_t n)
{
    switch ((int)dtype) {
    case ORT_DTYPE_INT8: return integer_i8(id, x, y, n);
    case ORT_DTYPE_INT16: return integer_i16(id, x, y, n);
    case ORT_DTYPE_INT32: return integer_i32(id, x, y, n);
    case ORT_DTYPE_INT64: return integer_i64(id, x, y, n);
    case ORT_DTYPE_UINT8: return integer_u8(id, x, y, n);
    case ORT_DTYPE_UINT16: return integer_u16(id, x, y, n);
    case ORT_DTYPE_UINT32: return integer_u32(id, x, y, n);
    case ORT_DTYPE_UINT64: return integer_u64(id, x, y, n);
    default: return false;
    }
}

typedef struct unary_job {
    const ort_unary_state *state;
    const ort_vmath_kernels *math;
    const ort_tensor *x;
    ort_tensor *y;
    int64_t total;
} unary_job;

static void run_widened(const unary_job *job, size_t first, size_t n)
{
    const ort_unary_state *s = job->state;
    const uint16_t *x = (const uint16_t *)job->x->data + first;
    uint16_t *y = (uint16_t *)job->y->data + first;
    float block[ORT_WIDEN_BLOCK];
    for (size_t i = 0; i < n; i += ORT_WIDEN_BLOCK) {
        size_t count = n - i < ORT_WIDEN_BLOCK ? n - i : ORT_WIDEN_BLOCK;
        ort_widen(job->math, s->dtype, x + i, block, count);
        job->math->unary[s->id](block, block, count, s->a, s->b);
        ort_narrow(job->math, s->dtype, block, y + i, count);
    }
}

static void unary_task(void *arg, size_t task, int thread)
{
    const unary_job *job = arg;
    const ort_unary_state *s = job->state;
    size_t first = task * ORT_ELEMENTWISE_GRAIN, left = (size_t)job->total - first;
    size_t n = left < ORT_ELEMENTWISE_GRAIN ? left : ORT_ELEMENTWISE_GRAIN;
    size_t bytes = (size_t)ort_dtype_get(s->dtype)->bits / 8;
    char *x = (char *)job->x->data + first * bytes, *y = (char *)job->y->data + first * bytes;
    (void)thread;
    if (s->dtype == ORT_DTYPE_FLOAT) {
        job->math->unary[s->id]((const float *)x, (float *)y, n, s->a, s->b);
    } else if (s->dtype == ORT_DTYPE_DOUBLE) {
        job->math->unary_f64[s->id]((const double *)x, (double *)y, n, (double)s->a, (double)s->b);
    } else if (s->dtype == ORT_DTYPE_FLOAT16 || s->dtype == ORT_DTYPE_BFLOAT16) {
        run_widened(job, first, n);
    } else if (!integer_run(s->dtype, s->id, x, y, n)) {
        for (size_t i = first; i < first + n; i++) {
            double v = ort_tensor_get_f64(job->x, (int64_t)i), w;
            job->math->unary_f64[s->id](&v, &w, 1, (double)s->a, (double)s->b);
            ort_tensor_set_f64(job->y, (int64_t)i, trunc(w)); /* integers truncate */
        }
    }
}

ort_status ort_unary_run(ort_call *call, ort_error *err)
{
    unary_job job = {call->state, &call->k->math, ort_call_in(call, 0), ort_call_out(call, 0), 0};
    (void)err;
    job.total = ort_tensor_count(job.x);
    ort_call_parallel(call, ort_task_count(job.total, ORT_ELEMENTWISE_GRAIN), unary_task, &job);
    return ORT_OK;
}

/* ---- functions without parameters */

static const struct {
    const char *name;
    ort_unary id;
} functions[] = {
    {"Abs", ORT_UNARY_ABS},     {"Neg", ORT_UNARY_NEG},     {"Ceil", ORT_UNARY_CEIL},
    {"Floor", ORT_UNARY_FLOOR}, {"Round", ORT_UNARY_ROUND}, {"Sqrt", ORT_UNARY_SQRT},
    {"Exp", ORT_UNARY_EXP},     {"Log", ORT_UNARY_LOG},     {"Reciprocal", ORT_UNARY_RECIPROCAL},
    {"Erf", ORT_UNARY_ERF},     {"Sign", ORT_UNARY_SIGN},   {"Sin", ORT_UNARY_SIN},
    {"Cos", ORT_UNARY_COS},     {"Tan", ORT_UNARY_TAN},     {"Asin", ORT_UNARY_ASIN},
    {"Acos", ORT_UNARY_ACOS},   {"Atan", ORT_UNARY_ATAN},   {"Sinh", ORT_UNARY_SINH},
    {"Cosh", ORT_UNARY_COSH},   {"Tanh", ORT_UNARY_TANH},   {"Asinh", ORT_UNARY_ASINH},
    {"Acosh", ORT_UNARY_ACOSH}, {"Atanh", ORT_UNARY_ATANH},
};

bool ort_unary_find(const char *op_type, ort_unary *id)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(op_type, functions[i].name)) {
            *id = functions[i].id;
            return true;
        }
    return false;
}

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
    ort_status status = ort_infer_same(x, err);
    const ort_fact *in = ort_infer_in(x, 0);
    if (status != ORT_OK || !in || strcmp(x->op->name, "Neg") || in->symbolic_count > 64 ||
        in->symbolic == NULL)
        return status;
    ort_dim elements[64];
    for (int i = 0; i < in->symbolic_count; i++)
        elements[i] = ort_dim_sub(x->dims, ort_dim_of(0), in->symbolic[i]);
    ort_infer_set_symbolic(x, 0, elements, in->symbolic_count);
    return ORT_OK;
}

static const ort_op_impl function_impl = {
    .infer = function_infer, .prepare = function_prepare, .run = ort_unary_run,
    .cost = ort_elementwise_cost,
};

/* ---- Not, BitwiseNot */

typedef struct bits_job {
    const uint8_t *x;
    uint8_t *y;
    size_t bytes;
    bool logical;
} bits_job;

static void bits_task(void *arg, size_t task, int thread)
{
    const bits_job *job = arg;
    size_t first = task * ORT_ELEMENTWISE_GRAIN, left = job->bytes - first;
    size_t end = first + (left < ORT_ELEMENTWISE_GRAIN ? left : ORT_ELEMENTWISE_GRAIN);
    (void)thread;
    if (job->logical)
        for (size_t i = first; i < end; i++)
            job->y[i] = !job->x[i];
    else
        for (size_t i = first; i < end; i++)
            job->y[i] = (uint8_t)~job->x[i];
}

static ort_status bits_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    bits_job job = {x->data, ort_call_out(call, 0)->data, ort_tensor_bytes(x),
                    x->dtype == ORT_DTYPE_BOOL};
    (void)err;
    ort_call_parallel(call, ort_task_count((int64_t)job.bytes, ORT_ELEMENTWISE_GRAIN), bits_task,
                      &job);
    return ORT_OK;
}

static const ort_op_impl bits_impl = {
    .infer = ort_infer_same, .run = bits_run, .cost = ort_elementwise_cost,
};

/* ---- IsNaN, IsInf */

typedef struct predicate_state {
    bool nan, negative, positive;
} predicate_state;

static ort_status predicate_infer(ort_infer *x, ort_error *err)
{
    ort_status status = ort_infer_same(x, err);
    x->out[0].type.kind = ORT_TYPE_TENSOR;
    if (!ort_infer_in_ranked(x, 0))
        x->out[0].type.rank = -1;
    x->out[0].type.dtype = ORT_DTYPE_BOOL;
    return status;
}

static ort_status predicate_prepare(ort_prep *p, ort_error *err)
{
    predicate_state *s = ort_prep_state(p, sizeof *s);
    if (!s)
        return ort_error_memory(err, sizeof *s);
    s->nan = !strcmp(p->op->name, "IsNaN");
    s->negative = !s->nan && ort_node_int(p->node, "detect_negative", 1) != 0;
    s->positive = !s->nan && ort_node_int(p->node, "detect_positive", 1) != 0;
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
    int64_t total;
} predicate_job;

static void predicate_task(void *arg, size_t task, int thread)
{
    const predicate_job *job = arg;
    int64_t first = (int64_t)task * ORT_ELEMENTWISE_GRAIN;
    int64_t end = ort_min_i64(job->total, first + ORT_ELEMENTWISE_GRAIN);
    (void)thread;
    if (job->x->dtype == ORT_DTYPE_FLOAT)
        predicate_f32(job->state, (const float *)job->x->data + first, job->y + first, end - first);
    else
        for (int64_t i = first; i < end; i++)
            job->y[i] = predicate(job->state, ort_tensor_get_f64(job->x, i));
}

static ort_status predicate_run(ort_call *call, ort_error *err)
{
    predicate_job job = {call->state, ort_call_in(call, 0), ort_call_out(call, 0)->data, 0};
    (void)err;
    job.total = ort_tensor_count(job.x);
    ort_call_parallel(call, ort_task_count(job.total, ORT_ELEMENTWISE_GRAIN), predicate_task, &job);
    return ORT_OK;
}

static const ort_op_impl predicate_impl = {
    .infer = predicate_infer, .prepare = predicate_prepare, .run = predicate_run,
    .cost = ort_elementwise_cost,
};

#define MAP (ORT_TRAIT_ELEMENTWISE | ORT_TRAIT_INPLACE)
#define XY(name, since, types)                                                                     \
    {ONNX, name, since, "X:T -> Y:T", "T:" types, "", MAP, &function_impl}
#define IO(name, since, types)                                                                     \
    {ONNX, name, since, "input:T -> output:T", "T:" types, "", MAP, &function_impl}

const ort_op ort_ops_unary[] = {
    XY("Abs", 6, "F,I,U"),
    XY("Abs", 13, "F,I,U,bf16"),
    XY("Neg", 6, "F,I"),
    XY("Neg", 13, "F,I,bf16"),
    XY("Ceil", 6, "F"),
    XY("Ceil", 13, "F,bf16"),
    XY("Floor", 6, "F"),
    XY("Floor", 13, "F,bf16"),
    XY("Round", 11, "F"),
    XY("Round", 22, "F,bf16"),
    XY("Sqrt", 6, "F"),
    XY("Sqrt", 13, "F,bf16"),
    XY("Reciprocal", 6, "F"),
    XY("Reciprocal", 13, "F,bf16"),
    IO("Exp", 6, "F"),
    IO("Exp", 13, "F,bf16"),
    IO("Log", 6, "F"),
    IO("Log", 13, "F,bf16"),
    IO("Erf", 9, "F,I,U"),
    IO("Erf", 13, "F,bf16"),
    IO("Sign", 9, "F,I,U"),
    IO("Sign", 13, "F,I,U,bf16"),
    IO("Sin", 7, "F"),
    IO("Sin", 22, "F,bf16"),
    IO("Cos", 7, "F"),
    IO("Cos", 22, "F,bf16"),
    IO("Tan", 7, "F"),
    IO("Tan", 22, "F,bf16"),
    IO("Asin", 7, "F"),
    IO("Asin", 22, "F,bf16"),
    IO("Acos", 7, "F"),
    IO("Acos", 22, "F,bf16"),
    IO("Atan", 7, "F"),
    IO("Atan", 22, "F,bf16"),
    IO("Sinh", 9, "F"),
    IO("Sinh", 22, "F,bf16"),
    IO("Cosh", 9, "F"),
    IO("Cosh", 22, "F,bf16"),
    IO("Tanh", 6, "F"),
    IO("Tanh", 13, "F,bf16"),
    IO("Asinh", 9, "F"),
    IO("Asinh", 22, "F,bf16"),
    IO("Acosh", 9, "F"),
    IO("Acosh", 22, "F,bf16"),
    IO("Atanh", 9, "F"),
    IO("Atanh", 22, "F,bf16"),
    {ONNX, "Not", 1, "X:T -> Y:T", "T:bool", "", MAP, &bits_impl},
    {ONNX, "BitwiseNot", 18, "X:T -> Y:T", "T:I,U", "", MAP, &bits_impl},
    {ONNX, "IsNaN", 9, "X:T1 -> Y:T2", "T1:F T2:bool", "", ORT_TRAIT_ELEMENTWISE, &predicate_impl},
    {ONNX, "IsNaN", 13, "X:T1 -> Y:T2", "T1:F,bf16 T2:bool", "", ORT_TRAIT_ELEMENTWISE,
     &predicate_impl},
    {ONNX, "IsNaN", 20, "X:T1 -> Y:T2", "T1:F,F8,bf16 T2:bool", "", ORT_TRAIT_ELEMENTWISE,
     &predicate_impl},
    {ONNX, "IsInf", 10, "X:T1 -> Y:T2", "T1:f32,f64 T2:bool",
     "detect_negative:i=1 detect_positive:i=1", ORT_TRAIT_ELEMENTWISE, &predicate_impl},
    {ONNX, "IsInf", 20, "X:T1 -> Y:T2", "T1:F,F8,bf16 T2:bool",
     "detect_negative:i=1 detect_positive:i=1", ORT_TRAIT_ELEMENTWISE, &predicate_impl},
    {0},
};
