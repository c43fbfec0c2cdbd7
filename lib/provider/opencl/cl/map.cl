/* map.cl - elementwise operators, of one and of two inputs; the latter with strides of their own
 * for each of six axes, 0 where an input is spread. */

#define UNARY(name, value)                                                                         \
    __kernel void name(__global const float *in, __global float *out, float a, float b)            \
    {                                                                                              \
        size_t i = get_global_id(0);                                                               \
        float x = in[i];                                                                           \
        out[i] = value;                                                                            \
    }

#define SIGMOID(x) (1.0f / (1.0f + exp(-(x))))
#define GELU(x) (0.5f * (x) * (1.0f + erf((x) * 0.70710678118654752f)))

UNARY(relu, isnan(x) ? x : fmax(x, 0.0f))
UNARY(leaky_relu, x >= 0.0f ? x : a * x)
UNARY(clip, isnan(x) ? x : fmin(fmax(x, a), b))
UNARY(sigmoid, SIGMOID(x))
UNARY(tanh_, tanh(x))
UNARY(hard_sigmoid, isnan(x) ? x : fmin(fmax(a * x + b, 0.0f), 1.0f))
UNARY(hard_swish, x * fmin(fmax(x / 6.0f + 0.5f, 0.0f), 1.0f))
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
UNARY(softplus, log1p(exp(-fabs(x))) + fmax(x, 0.0f))

#define BINARY(name, value)                                                                        \
    __kernel void name(__global const float *x, __global const float *y, __global float *out,      \
                       int n0, int n1, int n2, int n3, int n4, int n5, int x0, int x1, int x2,     \
                       int x3, int x4, int x5, int y0, int y1, int y2, int y3, int y4, int y5)     \
    {                                                                                              \
        size_t at = get_global_id(0);                                                              \
        int i = at, p, q, r;                                                                       \
        r = i % n5; p = r * x5; q = r * y5; i /= n5;                                               \
        r = i % n4; p += r * x4; q += r * y4; i /= n4;                                             \
        r = i % n3; p += r * x3; q += r * y3; i /= n3;                                             \
        r = i % n2; p += r * x2; q += r * y2; i /= n2;                                             \
        r = i % n1; p += r * x1; q += r * y1; i /= n1;                                             \
        p += i * x0; q += i * y0;                                                                  \
        float a = x[p], b = y[q];                                                                  \
        out[at] = value;                                                                           \
    }

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a * b)
BINARY(divide, a / b)
BINARY(power, pow(a, b))
BINARY(most, isnan(a) || isnan(b) ? NAN : fmax(a, b))
BINARY(least, isnan(a) || isnan(b) ? NAN : fmin(a, b))
BINARY(prelu, a >= 0.0f ? a : a * b)
BINARY(bias_gelu, GELU(a + b))

/* Elements with strides of their own on both sides. */
__kernel void move(__global const float *in, __global float *out, int n0, int n1, int n2, int n3,
                   int n4, int n5, int x0, int x1, int x2, int x3, int x4, int x5, int y0, int y1,
                   int y2, int y3, int y4, int y5, int from, int to)
{
    int i = get_global_id(0), p = from, q = to, r;
    r = i % n5; p += r * x5; q += r * y5; i /= n5;
    r = i % n4; p += r * x4; q += r * y4; i /= n4;
    r = i % n3; p += r * x3; q += r * y3; i /= n3;
    r = i % n2; p += r * x2; q += r * y2; i /= n2;
    r = i % n1; p += r * x1; q += r * y1; i /= n1;
    out[q + i * y0] = in[p + i * x0];
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias by channel. */
__kernel void batch_norm(__global const float *x, __global const float *scale,
                         __global const float *bias, __global const float *mean,
                         __global const float *variance, __global float *out, int channels,
                         int plane, float epsilon)
{
    size_t i = get_global_id(0);
    int c = i / plane % channels;
    out[i] = (x[i] - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c];
}
