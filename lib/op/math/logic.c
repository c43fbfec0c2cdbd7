/* logic.c - comparisons and operations on truth values and bits: Equal, Greater, Less and their
 * kin, And, Or, Xor, the Bitwise family and BitShift.
 *
 * All are functions of two operands (op/shared/binary_apply.h); comparisons give one byte per
 * element.
 */
#pragma GCC optimize("O3") /* vectorize the loops of the integer types */

#include <string.h>

#include "op/shared/binary_apply.h"
#include "op/shared/move.h"
#include "op/shared/unary_apply.h"

#define FORMS(name, type, out, expression)                                                         \
    static void name(const void *a_, const void *b_, void *y_, size_t n, ort_form form)            \
    {                                                                                              \
        const type *a = a_, *b = b_;                                                               \
        out *y = y_;                                                                               \
        if (form == ORT_FORM_VV) {                                                                 \
            for (size_t i = 0; i < n; i++) {                                                       \
                type s = a[i], t = b[i];                                                           \
                y[i] = (out)(expression);                                                          \
            }                                                                                      \
        } else if (form == ORT_FORM_VS) {                                                          \
            type t = b[0];                                                                         \
            for (size_t i = 0; i < n; i++) {                                                       \
                type s = a[i];                                                                     \
                y[i] = (out)(expression);                                                          \
            }                                                                                      \
        } else {                                                                                   \
            type s = a[0];                                                                         \
            for (size_t i = 0; i < n; i++) {                                                       \
                type t = b[i];                                                                     \
                y[i] = (out)(expression);                                                          \
            }                                                                                      \
        }                                                                                          \
    }

/* ---- comparisons */

#define COMPARISONS(type, name)                                                                    \
    FORMS(eq_##name, type, uint8_t, s == t)                                                        \
    FORMS(gt_##name, type, uint8_t, s > t)                                                         \
    FORMS(lt_##name, type, uint8_t, s < t)                                                         \
    FORMS(ge_##name, type, uint8_t, s >= t)                                                        \
    FORMS(le_##name, type, uint8_t, s <= t)
#define COMPARISON_ROW(name)                                                                       \
    {                                                                                              \
        eq_##name, gt_##name, lt_##name, ge_##name, le_##name                                      \
    }

COMPARISONS(int8_t, i8)
COMPARISONS(int16_t, i16)
COMPARISONS(int32_t, i32)
COMPARISONS(int64_t, i64)
COMPARISONS(uint8_t, u8)
COMPARISONS(uint16_t, u16)
COMPARISONS(uint32_t, u32)
COMPARISONS(uint64_t, u64)
COMPARISONS(double, f64)

static bool same_string(ort_string s, ort_string t)
{
    return s.length == t.length && (s.length == 0 || !memcmp(s.ptr, t.ptr, s.length));
}
FORMS(eq_string, ort_string, uint8_t, same_string(s, t))
FORMS(eq_bool, uint8_t, uint8_t, !s == !t)

static ort_binary_fn *compare_function(const ort_vmath_kernels *math, ort_compare op,
                                       ort_dtype dtype)
{
    static ort_binary_fn *const rows[][ORT_COMPARE_COUNT] = {
        [ORT_DTYPE_INT8] = COMPARISON_ROW(i8),   [ORT_DTYPE_INT16] = COMPARISON_ROW(i16),
        [ORT_DTYPE_INT32] = COMPARISON_ROW(i32), [ORT_DTYPE_INT64] = COMPARISON_ROW(i64),
        [ORT_DTYPE_UINT8] = COMPARISON_ROW(u8),  [ORT_DTYPE_UINT16] = COMPARISON_ROW(u16),
        [ORT_DTYPE_UINT32] = COMPARISON_ROW(u32), [ORT_DTYPE_UINT64] = COMPARISON_ROW(u64),
        [ORT_DTYPE_DOUBLE] = COMPARISON_ROW(f64), [ORT_DTYPE_BOOL] = {eq_bool},
        [ORT_DTYPE_STRING] = {eq_string},
    };
    if (dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_FLOAT16 || dtype == ORT_DTYPE_BFLOAT16)
        return math->compare[op];
    return (size_t)dtype < sizeof rows / sizeof *rows ? rows[dtype][op] : NULL;
}

static ort_status compare_prepare(ort_prep *p, ort_error *err)
{
    ort_binary_state *state = p->state;
    ORT_TRY(ort_binary_prepare(p, err));
    state->fn = compare_function(&p->k->math, (ort_compare)p->op->variant, state->dtype);
    state->widen = state->dtype == ORT_DTYPE_FLOAT16 || state->dtype == ORT_DTYPE_BFLOAT16;
    state->bytes_out = true;
    return state->fn ? ORT_OK : ort_prep_unsupported_dtype(p, 0, err);
}

/* Comparisons of shape elements stay known where they are certain (models ask "is this dim -1?").
 * */
static ort_dim compare_dims(ort_dim_table *dims, ort_compare op, ort_dim a, ort_dim b)
{
    bool above = ort_dim_at_least(dims, a, ort_dim_add(dims, b, ort_dim_of(1)));
    bool below = ort_dim_at_least(dims, b, ort_dim_add(dims, a, ort_dim_of(1)));
    bool not_below = ort_dim_at_least(dims, a, b), not_above = ort_dim_at_least(dims, b, a);
    bool yes = false, no = false;
    switch (op) {
    case ORT_COMPARE_EQ: yes = ort_dim_equal(a, b), no = above || below; break;
    case ORT_COMPARE_GT: yes = above, no = not_above; break;
    case ORT_COMPARE_LT: yes = below, no = not_below; break;
    case ORT_COMPARE_GE: yes = not_below, no = below; break;
    case ORT_COMPARE_LE: yes = not_above, no = above; break;
    default: break;
    }
    return yes || no ? ort_dim_of(yes) : ort_dim_unknown();
}

static ort_status compare_infer(ort_infer *x, ort_error *err)
{
    ort_dim a[ORT_SYMBOLIC_MAX], b[ORT_SYMBOLIC_MAX], y[ORT_SYMBOLIC_MAX];
    ORT_TRY(ort_binary_infer(x, err));
    if (x->out[0].type.rank < 0 || x->out[0].type.rank > 1)
        return ORT_OK;
    int na = ort_infer_elements(x, 0, a), nb = ort_infer_elements(x, 1, b);
    if (na < 0 || nb < 0 || (na != nb && na != 1 && nb != 1))
        return ORT_OK;
    int n = na == 1 ? nb : na;
    for (int i = 0; i < n; i++)
        y[i] = compare_dims(x->dims, (ort_compare)x->op->variant, a[na == 1 ? 0 : i],
                            b[nb == 1 ? 0 : i]);
    if (ort_infer_any_known(y, n))
        ort_infer_set_symbolic(x, 0, y, n);
    return ORT_OK;
}

static const ort_op_impl compare_impl = {
    ORT_BINARY_STATE,
    .infer = compare_infer, .prepare = compare_prepare, .shape = ort_binary_shape,
    .run = ort_binary_run, .cost = ort_elementwise_cost,
};

/* ---- truth values and bits */

FORMS(and_bool, uint8_t, uint8_t, s && t)
FORMS(or_bool, uint8_t, uint8_t, s || t)
FORMS(xor_bool, uint8_t, uint8_t, !s != !t)

/* Bits don't care about signs, except for the arithmetic shift to the right. Shifts by the width or
 * more leave 0 (or the sign). */
#define SHIFT_BITS(t) (8 * sizeof(t))
#define BITS(type, name)                                                                           \
    FORMS(and_##name, type, type, s &t)                                                            \
    FORMS(or_##name, type, type, s | t)                                                            \
    FORMS(xor_##name, type, type, s ^ t)                                                           \
    FORMS(shl_##name, type, type, t >= SHIFT_BITS(t) ? 0 : (uint64_t)s << t)                       \
    FORMS(shr_##name, type, type, t >= SHIFT_BITS(t) ? 0 : s >> t)
#define ARITHMETIC_SHIFT(type, utype, name)                                                        \
    FORMS(sar_##name, type, type,                                                                  \
          (utype)t >= SHIFT_BITS(t) ? (s < 0 ? -1 : 0) : s >> (utype)t)
BITS(uint8_t, u8)
BITS(uint16_t, u16)
BITS(uint32_t, u32)
BITS(uint64_t, u64)
ARITHMETIC_SHIFT(int8_t, uint8_t, i8)
ARITHMETIC_SHIFT(int16_t, uint16_t, i16)
ARITHMETIC_SHIFT(int32_t, uint32_t, i32)
ARITHMETIC_SHIFT(int64_t, uint64_t, i64)

typedef enum bit_op { BIT_AND, BIT_OR, BIT_XOR, BIT_SHL, BIT_SHR, BIT_SAR, BIT_COUNT } bit_op;

#define BIT_ROW(name, sar)                                                                         \
    {                                                                                              \
        and_##name, or_##name, xor_##name, shl_##name, shr_##name, sar                             \
    }

static bit_op bit_of(const ort_op *op, const ort_binary_state *state)
{
    if (op->variant != BIT_SHL || state->parameter == 0)
        return (bit_op)op->variant;
    return ort_dtype_get(state->dtype)->class_ == ORT_CLASS_INT ? BIT_SAR : BIT_SHR;
}

static ort_status bits_prepare(ort_prep *p, ort_error *err)
{
    static ort_binary_fn *const rows[4][BIT_COUNT] = {BIT_ROW(u8, sar_i8), BIT_ROW(u16, sar_i16),
                                                      BIT_ROW(u32, sar_i32), BIT_ROW(u64, sar_i64)};
    static ort_binary_fn *const logical[3] = {and_bool, or_bool, xor_bool};
    ort_binary_state *state = p->state;
    ORT_TRY(ort_binary_prepare(p, err));
    bit_op op = bit_of(p->op, state);
    switch (ort_dtype_get(state->dtype)->class_) {
    case ORT_CLASS_BOOL:
        state->fn = logical[op];
        break;
    case ORT_CLASS_INT:
    case ORT_CLASS_UINT: {
        int bits = ort_dtype_get(state->dtype)->bits;
        if (bits < 8)
            return ort_prep_unsupported_dtype(p, 0, err);
        state->fn = rows[bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3][op];
        break;
    }
    default: return ort_prep_unsupported_dtype(p, 0, err);
    }
    return ORT_OK;
}

static const ort_op_impl logic_impl = {
    ORT_BINARY_STATE,
    .infer = ort_binary_infer, .prepare = bits_prepare, .shape = ort_binary_shape,
    .run = ort_binary_run, .cost = ort_elementwise_cost,
};
static const ort_bind shift_bind[] = {
    ORT_BIND_AS(ort_binary_state, parameter, "direction", ORT_WORDS("LEFT RIGHT")), {0}};

static const ort_op_impl shift_impl = {
    .state = sizeof(ort_binary_state), .bind = shift_bind, .infer = ort_binary_infer,
    .prepare = bits_prepare, .shape = ort_binary_shape, .run = ort_binary_run,
    .cost = ort_elementwise_cost,
};
static const ort_op_impl bits_impl = {
    ORT_BINARY_STATE, .infer = ort_binary_infer, .prepare = bits_prepare, .shape = ort_binary_shape,
    .run = ort_binary_run, .cost = ort_elementwise_cost,
};

#define MAP (ORT_TRAIT_ELEMENTWISE | ORT_TRAIT_INPLACE)
#define BOTH (MAP | ORT_TRAIT_COMMUTATIVE)
#define OLD "axis:i broadcast:i=0"
#define COMPARE(name, kind, since, types, attrs, later)                                            \
    {ONNX, name, since, "A:T,B:T -> C:T1", "T:" types " T1:bool", attrs, ORT_TRAIT_ELEMENTWISE,    \
     &compare_impl, .history = later, .variant = ORT_COMPARE_##kind}
#define LOGIC(name, kind)                                                                          \
    {ONNX, name, 1, "A:T,B:T -> C:T1", "T:bool T1:bool", OLD, MAP, &logic_impl, .variant = kind},  \
    {ONNX, name, 7, "A:T,B:T -> C:T1", "T:bool T1:bool", "", BOTH, &logic_impl, .variant = kind}
#define BITWISE(name, kind)                                                                        \
    {ONNX, name, 18, "A:T,B:T -> C:T", "T:I,U", "", BOTH, &bits_impl, .variant = kind}

const ort_op ort_ops_logic[] = {
    COMPARE("Equal", EQ, 1, "bool,i32,i64", OLD, NULL),
    COMPARE("Equal", EQ, 7, "bool,i32,i64", "", "11:T+F,i8,i16,U 13:T+bf16 19:T+str"),
    COMPARE("Greater", GT, 1, "F", OLD, NULL),
    COMPARE("Greater", GT, 7, "F", "", "9:T+I,U 13:T+bf16"),
    COMPARE("Less", LT, 1, "F", OLD, NULL),
    COMPARE("Less", LT, 7, "F", "", "9:T+I,U 13:T+bf16"),
    COMPARE("GreaterOrEqual", GE, 12, "F,I,U", "", "16:T+bf16"),
    COMPARE("LessOrEqual", LE, 12, "F,I,U", "", "16:T+bf16"),
    LOGIC("And", BIT_AND),
    LOGIC("Or", BIT_OR),
    LOGIC("Xor", BIT_XOR),
    BITWISE("BitwiseAnd", BIT_AND),
    BITWISE("BitwiseOr", BIT_OR),
    BITWISE("BitwiseXor", BIT_XOR),
    {ONNX, "BitShift", 11, "X:T,Y:T -> Z:T", "T:U", "direction:s!", MAP, &shift_impl,
     .history = "28:T+I", .variant = BIT_SHL},
    {0},
};
