/* map.cl - elementwise operators, of one and of two inputs; the latter with strides of their own
 * for each of six axes, 0 where an input is spread. Each is one expression, which a CPU computes a
 * register at a time. */

/* T name_T(T x, T a, T b) */
#define ONE_OF(T, name, value)                                                                     \
    static T PASTE(name##_of_, T)(T x, T a, T b)                                                   \
    {                                                                                              \
        return value;                                                                              \
    }

#if LANES
#define UNARY(name, value)                                                                         \
    ONE_OF(float, name, value)                                                                     \
    ONE_OF(V, name, value)                                                                         \
    __kernel void name(__global const float *in, __global float *out, float a, float b, int count) \
    {                                                                                              \
        int i = get_global_id(0) * SPAN, end = min(i + SPAN, count);                               \
        for (; i + LANES <= end; i += LANES)                                                       \
            STORE(name##_of_V(LOAD(in + i), (V)a, (V)b), out + i);                                 \
        for (; i < end; i++)                                                                       \
            out[i] = name##_of_float(in[i], a, b);                                                 \
    }
#else
#define UNARY(name, value)                                                                         \
    ONE_OF(float, name, value)                                                                     \
    __kernel void name(__global const float *in, __global float *out, float a, float b, int count) \
    {                                                                                              \
        int i = get_global_id(0);                                                                  \
        out[i] = name##_of_float(in[i], a, b);                                                     \
    }
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

#define WALK                                                                                       \
    int n0, int n1, int n2, int n3, int n4, int n5, int x0, int x1, int x2, int x3, int x4,        \
        int x5, int y0, int y1, int y2, int y3, int y4, int y5

/* Where row r of the walk begins: p in the one operand, q in the other. */
#define FIND_ROW(r, p, q)                                                                          \
    do {                                                                                           \
        int i_ = r, j_;                                                                            \
        j_ = i_ % n4; p += j_ * x4; q += j_ * y4; i_ /= n4;                                        \
        j_ = i_ % n3; p += j_ * x3; q += j_ * y3; i_ /= n3;                                        \
        j_ = i_ % n2; p += j_ * x2; q += j_ * y2; i_ /= n2;                                        \
        j_ = i_ % n1; p += j_ * x1; q += j_ * y1; i_ /= n1;                                        \
        p += i_ * x0; q += i_ * y0;                                                                \
    } while (0)

#define TWO_OF(T, name, value)                                                                     \
    static T PASTE(name##_of_, T)(T a, T b)                                                        \
    {                                                                                              \
        return value;                                                                              \
    }

#if LANES
#define BINARY(name, value)                                                                        \
    TWO_OF(float, name, value)                                                                     \
    TWO_OF(V, name, value)                                                                         \
    __kernel void name(__global const float *x, __global const float *y, __global float *out,      \
                       WALK, int count)                                                            \
    {                                                                                              \
        int i = get_global_id(0) * SPAN, end = min(i + SPAN, count);                               \
        while (i < end) {                                                                          \
            int row = i / n5, at = i % n5, p = at * x5, q = at * y5;                               \
            int stop = min(end, i + n5 - at);                                                      \
            FIND_ROW(row, p, q);                                                                   \
            if ((unsigned)x5 <= 1 && (unsigned)y5 <= 1)                                            \
                for (; i + LANES <= stop; i += LANES, p += LANES * x5, q += LANES * y5)            \
                    STORE(name##_of_V(x5 ? LOAD(x + p) : (V)x[p], y5 ? LOAD(y + q) : (V)y[q]),     \
                          out + i);                                                                \
            for (; i < stop; i++, p += x5, q += y5)                                                \
                out[i] = name##_of_float(x[p], y[q]);                                              \
        }                                                                                          \
    }
#else
#define BINARY(name, value)                                                                        \
    TWO_OF(float, name, value)                                                                     \
    __kernel void name(__global const float *x, __global const float *y, __global float *out,      \
                       WALK, int count)                                                            \
    {                                                                                              \
        int i = get_global_id(0), p = i % n5 * x5, q = i % n5 * y5;                                \
        FIND_ROW(i / n5, p, q);                                                                    \
        out[i] = name##_of_float(x[p], y[q]);                                                      \
    }
#endif

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a * b)
BINARY(divide, a / b)
BINARY(power, pow(a, b))
BINARY(most, isnan(a) || isnan(b) ? a + b : fmax(a, b))
BINARY(least, isnan(a) || isnan(b) ? a + b : fmin(a, b))
BINARY(prelu, a >= 0.0f ? a : a * b)
BINARY(bias_gelu, GELU(a + b))

/* Elements with strides of their own on both sides. */
__kernel void move(__global const float *in, __global float *out, WALK, int from, int to, int count)
{
    int i = get_global_id(0) * SPAN, end = min(i + SPAN, count);
    while (i < end) {
        int row = i / n5, at = i % n5, p = from + at * x5, q = to + at * y5;
        int stop = min(end, i + n5 - at);
        FIND_ROW(row, p, q);
        if (x5 == 1 && y5 == 1)
            for (; i < stop; i++)
                out[q++] = in[p++];
        for (; i < stop; i++, p += x5, q += y5)
            out[q] = in[p];
    }
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias by channel; items share a plane. */
__kernel void batch_norm(__global const float *x, __global const float *scale,
                         __global const float *bias, __global const float *mean,
                         __global const float *variance, __global float *out, int channels,
                         int plane, float epsilon)
{
    int c = get_global_id(1) % channels;
    size_t at = get_global_id(1) * plane;
    float factor = scale[c] / sqrt(variance[c] + epsilon), middle = mean[c], shift = bias[c];
    ALONG(i, plane)
        out[at + i] = (x[at + i] - middle) * factor + shift;
}
