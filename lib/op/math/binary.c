/* binary.c - arithmetic of two tensors: Add, Sub, Mul, Div, Mod, Pow, PRelu.
 *
 * f32 uses the kernels, 16-bit floats blocks of f32, the other types the loops below, written once
 * and instantiated from a type list. Integers wrap; division truncates; a zero divisor gives 0
 * (ONNX leaves it open, and a trap would end the process). Additions and the like of integer
 * vectors are followed through inference, because models compute shapes with them.
 */
#pragma GCC optimize("O3") /* vectorize the loops of the integer types */

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/bcast.h"
#include "op/shared/binary_apply.h"
#include "op/shared/move.h"
#include "op/shared/unary_apply.h"

/* ---- functions by element type */

#define FORMS(name, type, expression)                                                              \
    static void name(const void *a_, const void *b_, void *y_, size_t n, ort_form form)            \
    {                                                                                              \
        const type *a = a_, *b = b_;                                                               \
        type *y = y_;                                                                              \
        if (form == ORT_FORM_VV) {                                                                 \
            for (size_t i = 0; i < n; i++) {                                                       \
                type s = a[i], t = b[i];                                                           \
                y[i] = (type)(expression);                                                         \
            }                                                                                      \
        } else if (form == ORT_FORM_VS) {                                                          \
            type t = b[0];                                                                         \
            for (size_t i = 0; i < n; i++) {                                                       \
                type s = a[i];                                                                     \
                y[i] = (type)(expression);                                                         \
            }                                                                                      \
        } else {                                                                                   \
            type s = a[0];                                                                         \
            for (size_t i = 0; i < n; i++) {                                                       \
                type t = b[i];                                                                     \
                y[i] = (type)(expression);                                                         \
            }                                                                                      \
        }                                                                                          \
    }

/* Signed division: INT_MIN / -1 wraps. Modulo with the sign of the divisor, as Python has it. */
#define SIGNED_DIV(s, t) ((t) == 0 ? 0 : (t) == -1 ? 0 - (uint64_t)(s) : (uint64_t)((s) / (t)))
#define SIGNED_REM(s, t) ((t) == 0 || (t) == -1 ? 0 : (s) % (t))
#define SIGNED_MOD(s, t)                                                                           \
    (SIGNED_REM(s, t) != 0 && ((SIGNED_REM(s, t) < 0) != ((t) < 0)) ? SIGNED_REM(s, t) + (t)       \
                                                                    : SIGNED_REM(s, t))

#define WRAPPING(type, name)                                                                       \
    FORMS(add_##name, type, (uint64_t)s + (uint64_t)t)                                             \
    FORMS(sub_##name, type, (uint64_t)s - (uint64_t)t)                                             \
    FORMS(mul_##name, type, (uint64_t)s * (uint64_t)t)

#define SIGNED(type, name)                                                                         \
    WRAPPING(type, name)                                                                           \
    FORMS(div_##name, type, SIGNED_DIV(s, t))                                                      \
    FORMS(mod_##name, type, SIGNED_MOD(s, t))                                                      \
    FORMS(fmod_##name, type, SIGNED_REM(s, t))                                                     \
    FORMS(prelu_##name, type, s < 0 ? (uint64_t)s * (uint64_t)t : (uint64_t)s)

#define UNSIGNED(type, name)                                                                       \
    WRAPPING(type, name)                                                                           \
    FORMS(div_##name, type, t == 0 ? 0 : s / t)                                                    \
    FORMS(mod_##name, type, t == 0 ? 0 : s % t)                                                    \
    FORMS(prelu_##name, type, ((void)t, s))

SIGNED(int8_t, i8)
SIGNED(int16_t, i16)
SIGNED(int32_t, i32)
SIGNED(int64_t, i64)
UNSIGNED(uint8_t, u8)
UNSIGNED(uint16_t, u16)
UNSIGNED(uint32_t, u32)
UNSIGNED(uint64_t, u64)

static double floor_mod(double s, double t)
{
    double r = fmod(s, t);
    if (r != 0)
        return (r < 0) != (t < 0) ? r + t : r;
    return copysign(r, t);
}
FORMS(add_f64, double, s + t)
FORMS(sub_f64, double, s - t)
FORMS(mul_f64, double, s *t)
FORMS(div_f64, double, s / t)
FORMS(mod_f64, double, floor_mod(s, t))
FORMS(fmod_f64, double, fmod(s, t))
FORMS(prelu_f64, double, s < 0 ? s * t : s)
FORMS(mod_f32, float, floor_mod((double)s, (double)t))

typedef enum arith { ADD, SUB, MUL, DIV, MOD, FMOD, PRELU, ARITH_COUNT } arith;

#define ARITH_ROW(name, remainder)                                                                 \
    {                                                                                              \
        add_##name, sub_##name, mul_##name, div_##name, mod_##name, remainder, prelu_##name        \
    }

static ort_binary_fn *arith_function(const ort_vmath_kernels *math, arith op, ort_dtype dtype)
{
    static ort_binary_fn *const rows[][ARITH_COUNT] = {
        [ORT_DTYPE_INT8] = ARITH_ROW(i8, fmod_i8),
        [ORT_DTYPE_INT16] = ARITH_ROW(i16, fmod_i16),
        [ORT_DTYPE_INT32] = ARITH_ROW(i32, fmod_i32),
        [ORT_DTYPE_INT64] = ARITH_ROW(i64, fmod_i64),
        [ORT_DTYPE_UINT8] = ARITH_ROW(u8, mod_u8),
        [ORT_DTYPE_UINT16] = ARITH_ROW(u16, mod_u16),
        [ORT_DTYPE_UINT32] = ARITH_ROW(u32, mod_u32),
        [ORT_DTYPE_UINT64] = ARITH_ROW(u64, mod_u64),
        [ORT_DTYPE_DOUBLE] = ARITH_ROW(f64, fmod_f64),
    };
    ort_binary_fn *const f32[ARITH_COUNT] = {
        math->binary[ORT_BINARY_ADD], math->binary[ORT_BINARY_SUB], math->binary[ORT_BINARY_MUL],
        math->binary[ORT_BINARY_DIV], mod_f32,                      math->binary[ORT_BINARY_FMOD],
        math->binary[ORT_BINARY_PRELU]};
    if (dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_FLOAT16 || dtype == ORT_DTYPE_BFLOAT16)
        return f32[op];
    return (size_t)dtype < sizeof rows / sizeof *rows ? rows[dtype][op] : NULL;
}

static arith arith_of(const ort_op *op, const ort_node *node)
{
    return op->variant == MOD && ort_node_attr_int(node, "fmod") ? FMOD : (arith)op->variant;
}

static ort_status arith_prepare(ort_prep *p, ort_error *err)
{
    ort_binary_state *state = p->state;
    ORT_TRY(ort_binary_prepare(p, err));
    state->fn = arith_function(&p->k->math, arith_of(p->op, p->node), state->dtype);
    state->widen = state->dtype == ORT_DTYPE_FLOAT16 || state->dtype == ORT_DTYPE_BFLOAT16;
    state->parameter = p->op->since; /* PRelu broadcasts since opset 7 */
    return state->fn ? ORT_OK : ort_prep_unsupported_dtype(p, 0, err);
}

/* ---- shape arithmetic during inference */

static ort_dim dim_step(ort_infer *x, arith op, ort_dim a, ort_dim b)
{
    if (ort_dim_known(a) && ort_dim_known(b)) {
        int64_t s = a.size, t = b.size;
        switch (op) {
        case ADD: return ort_dim_of((int64_t)((uint64_t)s + (uint64_t)t));
        case SUB: return ort_dim_of((int64_t)((uint64_t)s - (uint64_t)t));
        case MUL: return ort_dim_of((int64_t)((uint64_t)s * (uint64_t)t));
        case DIV: return t == 0 ? ort_dim_unknown() : ort_dim_of((int64_t)SIGNED_DIV(s, t));
        case MOD: return t == 0 ? ort_dim_unknown() : ort_dim_of(SIGNED_MOD(s, t));
        default: return ort_dim_unknown();
        }
    }
    switch (op) {
    case ADD: return ort_dim_add(x->dims, a, b);
    case SUB: return ort_dim_sub(x->dims, a, b);
    case MUL: return ort_dim_mul(x->dims, a, b);
    case DIV: return ort_dim_div(x->dims, a, b);
    default: return ort_dim_unknown();
    }
}

static void arith_symbolic(ort_infer *x, arith op)
{
    ort_dim a[ORT_SYMBOLIC_MAX], b[ORT_SYMBOLIC_MAX], y[ORT_SYMBOLIC_MAX];
    const ort_type *type = &x->out[0].type;
    if ((type->dtype != ORT_DTYPE_INT64 && type->dtype != ORT_DTYPE_INT32) || type->rank < 0 ||
        type->rank > 1)
        return;
    int na = ort_infer_elements(x, 0, a), nb = ort_infer_elements(x, 1, b);
    if (na < 0 || nb < 0 || (na != nb && na != 1 && nb != 1))
        return;
    int n = na == 1 ? nb : na;
    for (int i = 0; i < n; i++)
        y[i] = dim_step(x, op, a[na == 1 ? 0 : i], b[nb == 1 ? 0 : i]);
    if (ort_infer_any_known(y, n))
        ort_infer_set_symbolic(x, 0, y, n);
}

static ort_status arith_infer(ort_infer *x, ort_error *err)
{
    ORT_TRY(ort_binary_infer(x, err));
    arith_symbolic(x, arith_of(x->op, x->node));
    return ORT_OK;
}

/* PRelu: the slope broadcasts onto X only; in opset 6 one of several is that of a channel. */
static ort_status prelu_shape(ort_shaping *s, ort_error *err)
{
    const ort_binary_state *state = s->state;
    const ort_shape *a = &s->in[0]->shape, *b = &s->in[1]->shape;
    ort_bcast *plan = ort_arena_alloc(s->arena, sizeof *plan);
    ort_shape slope = *b, both;
    char ta[200], tb[200];
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    ORT_TRY(ort_binary_check_types(s->in[0], s->in[1], err));
    bool channels = state->parameter < 7 && slope.rank == 1 && slope.dim[0] > 1;
    bool fits = !channels && ort_shape_broadcast(a, &slope, &both) && ort_shape_equal(&both, a);
    if (!fits && slope.rank == 1 && a->rank > 1 && slope.dim[0] == a->dim[1]) {
        while (slope.rank < a->rank - 1)
            slope.dim[slope.rank++] = 1;
        fits = ort_shape_broadcast(a, &slope, &both) && ort_shape_equal(&both, a);
    }
    if (!fits)
        return ort_error_set(err, ORT_ERROR_MODEL, "slope %s doesn't broadcast onto %s",
                             ort_shape_format(b, tb, sizeof tb), ort_shape_format(a, ta,
                                                                                  sizeof ta));
    const ort_shape *in[2] = {a, &slope};
    ort_bcast_make(plan, a, in, 2);
    s->plan_state = plan;
    return ORT_OK;
}

/* ---- Pow: the exponent has a type of its own */

typedef struct pow_job {
    const ort_tensor *x, *e;
    ort_tensor *y;
    const ort_bcast *plan;
    const ort_vmath_kernels *math;
} pow_job;

static int64_t integer_power(int64_t base, int64_t exponent)
{
    uint64_t result = 1, factor = (uint64_t)base;
    if (exponent < 0)
        return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result *= factor;
        factor *= factor;
    }
    return (int64_t)result;
}

static bool is_float_class(ort_dtype dtype)
{
    return ort_dtype_get(dtype)->class_ == ORT_CLASS_FLOAT;
}

/* Operands of up to ORT_WIDEN_BLOCK elements as f32; a standing operand is one element. */
static void pow_block(const pow_job *job, int64_t out, const int64_t *in, size_t n)
{
    float u[ORT_WIDEN_BLOCK], v[ORT_WIDEN_BLOCK], w[ORT_WIDEN_BLOCK];
    int last = job->plan->rank - 1;
    int64_t sx = job->plan->stride[0][last], se = job->plan->stride[1][last];
    ort_form form = sx == 0 ? ORT_FORM_SV : se == 0 ? ORT_FORM_VS : ORT_FORM_VV;
    ort_tensor_to_f32(job->x, in[0], sx ? (int64_t)n : 1, u);
    ort_tensor_to_f32(job->e, in[1], se ? (int64_t)n : 1, v);
    job->math->binary[ORT_BINARY_POW](u, v, w, n, form); /* not in place: a standing base stays */
    ort_tensor_from_f32(w, job->y, out, (int64_t)n);
}

static void pow_element(const pow_job *job, int64_t out, int64_t ix, int64_t ie)
{
    if (is_float_class(job->x->dtype) || is_float_class(job->e->dtype)) {
        double v = pow(ort_tensor_get_f64(job->x, ix), ort_tensor_get_f64(job->e, ie));
        ort_tensor_set_f64(job->y, out, is_float_class(job->y->dtype) ? v : trunc(v));
    } else {
        ort_tensor_set_i64(job->y, out, integer_power(ort_tensor_get_i64(job->x, ix),
                                                      ort_tensor_get_i64(job->e, ie)));
    }
}

/* Whether f32 holds these exponents: a standing one is looked at, of many the type decides. */
static bool pow_in_f32(const pow_job *job, int64_t at, int64_t stride)
{
    ort_dtype dtype = job->e->dtype;
    if (job->x->dtype == ORT_DTYPE_DOUBLE || !is_float_class(job->x->dtype))
        return false;
    if (dtype != ORT_DTYPE_DOUBLE && ort_dtype_get(dtype)->bits < 32)
        return true;
    double e = stride == 0 ? ort_tensor_get_f64(job->e, at) : 0.5;
    return dtype == ORT_DTYPE_FLOAT || (stride == 0 && fabs(e) < 1e6 && (double)(float)e == e);
}

static void pow_segment(void *arg, int64_t out, const int64_t *in, int64_t n)
{
    const pow_job *job = arg;
    int last = job->plan->rank - 1;
    int64_t sx = job->plan->stride[0][last], se = job->plan->stride[1][last];
    ort_dtype dtype = job->x->dtype;
    if (dtype == ORT_DTYPE_FLOAT && job->e->dtype == ORT_DTYPE_FLOAT) {
        ort_form form = sx == 0 ? ORT_FORM_SV : se == 0 ? ORT_FORM_VS : ORT_FORM_VV;
        job->math->binary[ORT_BINARY_POW]((const float *)job->x->data + in[0],
                                          (const float *)job->e->data + in[1],
                                          (float *)job->y->data + out, (size_t)n, form);
    } else if (pow_in_f32(job, in[1], se)) {
        for (int64_t i = 0; i < n; i += ORT_WIDEN_BLOCK) {
            int64_t at[2] = {in[0] + i * sx, in[1] + i * se};
            pow_block(job, out + i, at, (size_t)ort_min_i64(n - i, ORT_WIDEN_BLOCK));
        }
    } else {
        for (int64_t i = 0; i < n; i++)
            pow_element(job, out + i, in[0] + i * sx, in[1] + i * se);
    }
}

static void pow_task(void *arg, int64_t first, int64_t end, int thread)
{
    const pow_job *job = arg;
    ort_bcast_walk(job->plan, first, end - first, pow_segment, arg);
}

static ort_status pow_run(ort_call *call, ort_error *err)
{
    pow_job job = {ort_call_in(call, 0), ort_call_in(call, 1), ort_call_out(call, 0),
                   call->plan_state, &call->k->math};
    ort_call_range(call, job.plan->total, ORT_ELEMENTWISE_GRAIN, pow_task, &job);
    return ORT_OK;
}

static const ort_op_impl arith_impl = {
    ORT_BINARY_STATE,
    .infer = arith_infer, .prepare = arith_prepare, .shape = ort_binary_shape,
    .run = ort_binary_run, .cost = ort_elementwise_cost,
};
static const ort_op_impl prelu_impl = {
    ORT_BINARY_STATE,
    .rule = "same", .prepare = arith_prepare, .shape = prelu_shape, .run = ort_binary_run,
    .cost = ort_elementwise_cost,
};
static const ort_op_impl pow_impl = {
    ORT_BINARY_STATE, .infer = ort_binary_infer, .prepare = ort_binary_prepare,
    .shape = ort_binary_shape, .run = pow_run, .cost = ort_elementwise_cost,
};

#define MAP (ORT_TRAIT_ELEMENTWISE | ORT_TRAIT_INPLACE)
#define BOTH (MAP | ORT_TRAIT_COMMUTATIVE)
#define OLD "axis:i broadcast:i=0"
#define ARITH(name, traits, kind)                                                                  \
    {ONNX, name, 6, "A:T,B:T -> C:T", "T:F,u32,u64,i32,i64", OLD, MAP, &arith_impl,                \
     .variant = kind},                                                                             \
    {ONNX, name, 7, "A:T,B:T -> C:T", "T:F,u32,u64,i32,i64", "", traits, &arith_impl,              \
     .history = "13:T+bf16 14:T+i8,i16,u8,u16", .variant = kind}

const ort_op ort_ops_binary[] = {
    ARITH("Add", BOTH, ADD),
    ARITH("Sub", MAP, SUB),
    ARITH("Mul", BOTH, MUL),
    ARITH("Div", MAP, DIV),
    {ONNX, "Mod", 10, "A:T,B:T -> C:T", "T:F,I,U", "fmod:i=0", MAP, &arith_impl,
     .history = "13:T+bf16 28", .variant = MOD},
    {ONNX, "Pow", 1, "X:T,Y:T -> Z:T", "T:F", OLD, MAP, &pow_impl},
    {ONNX, "Pow", 7, "X:T,Y:T -> Z:T", "T:F", "", MAP, &pow_impl},
    {ONNX, "Pow", 12, "X:T,Y:T1 -> Z:T", "T:F,i32,i64 T1:F,I,U", "", MAP, &pow_impl,
     .history = "13:T+bf16 15:T1+bf16"},
    {ONNX, "PRelu", 6, "X:T,slope:T -> Y:T", "T:F", "", MAP, &prelu_impl,
     .history = "7 9:T+i32,i64,u32,u64 16:T+bf16", .variant = PRELU},
    {0},
};
