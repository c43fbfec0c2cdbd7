/* each.cl - what elementwise operators do to an element: functions, of which generated programs
 * (opencl_chain.c) make kernels, each a chain of them. NAME_T is the function for elements of type
 * T: float, int, long, and bool, which is a number here; on a CPU also V, VI, VL and VB, a register
 * of such. Conditions of registers have all bits set where they hold, as OpenCL compares.
 *
 * A chain gives what its operators give one by one: nothing is contracted across them. */

#pragma OPENCL FP_CONTRACT OFF

typedef int flag; /* a bool: 0 or 1 */

#if LANES
typedef PASTE(int, LANES) VI;
typedef PASTE(int, LANES) VB;
typedef PASTE(long, LANES) VL;
#define TO_V(x) PASTE(convert_float, LANES)(x)
#define TO_VI(x) PASTE(convert_int, LANES)(x)
#define TO_VL(x) PASTE(convert_long, LANES)(x)
#define LOAD_FLAGS(p) (TO_VI(LOAD(p)) != 0)
#define STORE_FLAGS(v, p) STORE(PASTE(convert_uchar, LANES)((v) & 1), p)
#define SPREAD_FLAG(x) ((VB)((x) ? -1 : 0))
#endif

#define ONE_OF(T, name, value)                                                                     \
    static T PASTE(name##_, T)(T x, T a, T b)                                                      \
    {                                                                                              \
        return value;                                                                              \
    }
#define TWO_OF(R, T, name, value)                                                                  \
    static R PASTE(name##_, T)(T a, T b)                                                           \
    {                                                                                              \
        return value;                                                                              \
    }
#define CAST_OF(R, T, value)                                                                       \
    static R PASTE(PASTE(T, _to_), R)(T x)                                                         \
    {                                                                                              \
        return value;                                                                              \
    }
#if LANES
#define UNARY(name, value) ONE_OF(float, name, value) ONE_OF(V, name, value)
#define BINARY(name, value) TWO_OF(float, float, name, value) TWO_OF(V, V, name, value)
#define WHOLE(name, value)                                                                         \
    TWO_OF(int, int, name, value) TWO_OF(VI, VI, name, value)                                      \
    TWO_OF(long, long, name, value) TWO_OF(VL, VL, name, value)
#define COMPARE(name, value)                                                                       \
    TWO_OF(flag, float, name, value) TWO_OF(VB, V, name, value)                                    \
    TWO_OF(flag, int, name, value) TWO_OF(VB, VI, name, value)                                     \
    TWO_OF(flag, long, name, value) TWO_OF(VB, VL, name, TO_VI(value))
#define LOGIC(name, value) TWO_OF(flag, flag, name, value) TWO_OF(VB, VB, name, value)
#define CAST(R, VR, T, VT, one, all) CAST_OF(R, T, one) CAST_OF(VR, VT, all)
#else
#define UNARY(name, value) ONE_OF(float, name, value)
#define BINARY(name, value) TWO_OF(float, float, name, value)
#define WHOLE(name, value) TWO_OF(int, int, name, value) TWO_OF(long, long, name, value)
#define COMPARE(name, value)                                                                       \
    TWO_OF(flag, float, name, value) TWO_OF(flag, int, name, value) TWO_OF(flag, long, name, value)
#define LOGIC(name, value) TWO_OF(flag, flag, name, value)
#define CAST(R, VR, T, VT, one, all) CAST_OF(R, T, one)
#endif

#define SIGMOID(x) (1.0f / (1.0f + exp(-(x))))
#define GELU(x) (0.5f * (x) * (1.0f + erf((x) * 0.70710678118654752f)))
#define WITHIN(x, least, most) fmin(fmax(x, least), most)

UNARY(relu, isnan(x) ? x : fmax(x, 0.0f))
UNARY(leaky_relu, x >= 0.0f ? x : a * x)
UNARY(clip, isnan(x) ? x : WITHIN(x, a, b))
UNARY(sigmoid, SIGMOID(x))
UNARY(tanh_, tanh(x))
UNARY(hard_sigmoid, isnan(x) ? x : WITHIN(a * x + b, 0.0f, 1.0f))
UNARY(hard_swish, x * WITHIN(x / 6.0f + 0.5f, 0.0f, 1.0f))
UNARY(quick_gelu, x * SIGMOID(a * x))
UNARY(gelu, GELU(x))
UNARY(exp_, exp(x))
UNARY(log_, log(x))
UNARY(sqrt_, sqrt(x))
UNARY(neg, -x)
UNARY(abs_, fabs(x))
UNARY(erf_, erf(x))
UNARY(reciprocal, 1.0f / x)
UNARY(floor_, floor(x))
UNARY(ceil_, ceil(x))
UNARY(elu, x >= 0.0f ? x : a * expm1(x))
UNARY(gelu_tanh, 0.5f * x * (1.0f + tanh(0.79788456080286536f * (x + 0.044715f * x * x * x))))
UNARY(sin_, sin(x))
UNARY(cos_, cos(x))
UNARY(round_, rint(x))
UNARY(sign_, isnan(x) ? x : sign(x))
UNARY(softsign, x / (1.0f + fabs(x)))
UNARY(selu, x > 0.0f ? b * x : b * a * expm1(x))
UNARY(celu, fmax(x, 0.0f) + fmin(a * expm1(x / a), 0.0f))
UNARY(thresholded, x > a ? x : 0.0f * a)
UNARY(mish, x * tanh(log1p(exp(-fabs(x))) + fmax(x, 0.0f)))
UNARY(swish, x * SIGMOID(a * x))
UNARY(softplus, log1p(exp(-fabs(x))) + fmax(x, 0.0f))

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a * b)
BINARY(divide, a / b)
BINARY(power, pow(a, b))
BINARY(most, isnan(a) || isnan(b) ? a + b : fmax(a, b))
BINARY(least, isnan(a) || isnan(b) ? a + b : fmin(a, b))
BINARY(prelu, a >= 0.0f ? a : a * b)
BINARY(bias_gelu, GELU(a + b))

WHOLE(add, a + b)
WHOLE(sub, a - b)
WHOLE(mul, a * b)
WHOLE(most, max(a, b))
WHOLE(least, min(a, b))

COMPARE(less, a < b)
COMPARE(less_equal, a <= b)
COMPARE(greater, a > b)
COMPARE(greater_equal, a >= b)
COMPARE(equal, a == b)

LOGIC(and, a & b)
LOGIC(or, a | b)
LOGIC(xor, a ^ b)

static flag not_flag(flag x, flag a, flag b)
{
    return !x;
}

static float where_float(flag c, float a, float b)
{
    return c ? a : b;
}

static int where_int(flag c, int a, int b)
{
    return c ? a : b;
}

static long where_long(flag c, long a, long b)
{
    return c ? a : b;
}

#if LANES
static VB not_VB(VB x, VB a, VB b)
{
    return !x;
}

static V where_V(VB c, V a, V b)
{
    return select(b, a, c);
}

static VI where_VI(VB c, VI a, VI b)
{
    return select(b, a, c);
}

static VL where_VL(VB c, VL a, VL b)
{
    return select(b, a, TO_VL(c));
}
#endif

CAST(int, VI, float, V, (int)x, TO_VI(x))
CAST(long, VL, float, V, (long)x, TO_VL(x))
CAST(flag, VB, float, V, x != 0.0f, x != 0.0f)
CAST(float, V, int, VI, (float)x, TO_V(x))
CAST(long, VL, int, VI, x, TO_VL(x))
CAST(flag, VB, int, VI, x != 0, x != 0)
CAST(float, V, long, VL, (float)x, TO_V(x))
CAST(int, VI, long, VL, (int)x, TO_VI(x))
CAST(flag, VB, long, VL, x != 0, TO_VI(x != 0L))
CAST(float, V, flag, VB, x, TO_V(x & 1))
CAST(int, VI, flag, VB, x, x & 1)
CAST(long, VL, flag, VB, x, TO_VL(x & 1))
