/* vmath_scalar.c - the math kernels in plain C: the reference of every other tier, and what
 * constants are folded with. Functions are evaluated in double by libm and rounded once.
 */
#include "kernel/vmath.h"

#include <math.h>
#include <stdbool.h>

#include "base/num.h"
#include "kernel/contract.h"
#include "kernel/count.inc"

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static double softplus(double x) { return (x > 0 ? x : 0.0) + log1p(exp(-fabs(x))); }
/* Written so that NaN goes through. */
/* Denormals compare as zeros where they are flushed: not to be handed on for that. */
static double relu(double x) { return x > 0 || isnan(x) ? x : 0.0; }
static double clamp(double x, double lo, double hi)
{
    double low = x < lo ? lo : x;
    return low > hi ? hi : low;
}
static double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : isnan(x) ? x : 0.0; }
static double elu(double x, double a) { return x < 0 ? a * expm1(x) : x; }
static double celu(double x, double a)
{
    double negative = a * expm1(x / a);
    return (x < 0 ? 0.0 : x) + (negative > 0 ? 0.0 : negative);
}
static double shrink(double x, double lambda, double bias)
{
    return x < -lambda ? x + bias : x > lambda ? x - bias : 0.0;
}
static double gelu(double x) { return 0.5 * x * erfc(-x * 0.70710678118654752440); }
static double gelu_tanh(double x)
{
    return x * sigmoid(2.0 * 0.79788456080286535588 * (x + 0.044715 * x * x * x));
}

#define UNARY(name, expression)                                                                    \
    static void name(const float *x, float *y, size_t n, float fa, float fb)                       \
    {                                                                                              \
        double a = (double)fa, b = (double)fb;                                                     \
        (void)a, (void)b;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            double v = (double)x[i];                                                               \
            y[i] = (float)(expression);                                                            \
        }                                                                                          \
    }                                                                                              \
    static void name##_f64(const double *x, double *y, size_t n, double a, double b)               \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            double v = x[i];                                                                       \
            y[i] = (expression);                                                                   \
        }                                                                                          \
    }

#define UNARY_LIST(X)                                                                              \
    X(ORT_UNARY_ABS, unary_abs, fabs(v))                                                           \
    X(ORT_UNARY_NEG, unary_neg, -v)                                                                \
    X(ORT_UNARY_SIGN, unary_sign, sign(v))                                                         \
    X(ORT_UNARY_SQUARE, unary_square, v * v)                                                       \
    X(ORT_UNARY_SQRT, unary_sqrt, sqrt(v))                                                         \
    X(ORT_UNARY_RSQRT, unary_rsqrt, 1.0 / sqrt(v))                                                 \
    X(ORT_UNARY_RECIPROCAL, unary_reciprocal, 1.0 / v)                                             \
    X(ORT_UNARY_FLOOR, unary_floor, floor(v))                                                      \
    X(ORT_UNARY_CEIL, unary_ceil, ceil(v))                                                         \
    X(ORT_UNARY_ROUND, unary_round, nearbyint(v))                                                  \
    X(ORT_UNARY_EXP, unary_exp, exp(v))                                                            \
    X(ORT_UNARY_LOG, unary_log, log(v))                                                            \
    X(ORT_UNARY_ERF, unary_erf, erf(v))                                                            \
    X(ORT_UNARY_SIN, unary_sin, sin(v))                                                            \
    X(ORT_UNARY_COS, unary_cos, cos(v))                                                            \
    X(ORT_UNARY_TAN, unary_tan, tan(v))                                                            \
    X(ORT_UNARY_ASIN, unary_asin, asin(v))                                                         \
    X(ORT_UNARY_ACOS, unary_acos, acos(v))                                                         \
    X(ORT_UNARY_ATAN, unary_atan, atan(v))                                                         \
    X(ORT_UNARY_SINH, unary_sinh, sinh(v))                                                         \
    X(ORT_UNARY_COSH, unary_cosh, cosh(v))                                                         \
    X(ORT_UNARY_TANH, unary_tanh, tanh(v))                                                         \
    X(ORT_UNARY_ASINH, unary_asinh, asinh(v))                                                      \
    X(ORT_UNARY_ACOSH, unary_acosh, acosh(v))                                                      \
    X(ORT_UNARY_ATANH, unary_atanh, atanh(v))                                                      \
    X(ORT_UNARY_RELU, unary_relu, relu(v))                                                         \
    X(ORT_UNARY_LEAKY_RELU, unary_leaky_relu, v < 0 ? a * v : v)                                   \
    X(ORT_UNARY_ELU, unary_elu, elu(v, a))                                                         \
    X(ORT_UNARY_SELU, unary_selu, b *elu(v, a))                                                    \
    X(ORT_UNARY_CELU, unary_celu, celu(v, a))                                                      \
    X(ORT_UNARY_THRESHOLDED_RELU, unary_thresholded_relu, v > a ? v : 0.0)                         \
    X(ORT_UNARY_SHRINK, unary_shrink, shrink(v, a, b))                                             \
    X(ORT_UNARY_HARD_SIGMOID, unary_hard_sigmoid, clamp(a * v + b, 0.0, 1.0))                      \
    X(ORT_UNARY_HARD_SWISH, unary_hard_swish, v *clamp(v / 6.0 + 0.5, 0.0, 1.0))                   \
    X(ORT_UNARY_SIGMOID, unary_sigmoid, sigmoid(v))                                                \
    X(ORT_UNARY_SOFTPLUS, unary_softplus, softplus(v))                                             \
    X(ORT_UNARY_SOFTSIGN, unary_softsign, v / (1.0 + fabs(v)))                                     \
    X(ORT_UNARY_GELU, unary_gelu, gelu(v))                                                         \
    X(ORT_UNARY_GELU_TANH, unary_gelu_tanh, gelu_tanh(v))                                          \
    X(ORT_UNARY_SWISH, unary_swish, v *sigmoid(a *v))                                              \
    X(ORT_UNARY_MISH, unary_mish, v *tanh(softplus(v)))                                            \
    X(ORT_UNARY_CLIP, unary_clip, clamp(v, a, b))                                                  \
    X(ORT_UNARY_LINEAR, unary_linear, a *v + b)                                                    \
    X(ORT_UNARY_SCALED_TANH, unary_scaled_tanh, a *tanh(b *v))                                     \
    X(ORT_UNARY_PARAMETRIC_SOFTPLUS, unary_parametric_softplus, a *softplus(b *v))

#define DEFINE_UNARY(id, name, expression) UNARY(name, expression)
UNARY_LIST(DEFINE_UNARY)

/* ---- binary */

#define BINARY_FORMS(name, type, expression)                                                       \
    static void name(const void *a_, const void *b_, void *y_, size_t n, ort_form form)            \
    {                                                                                              \
        const float *a = a_, *b = b_;                                                              \
        type *y = y_;                                                                              \
        size_t step_a = form != ORT_FORM_SV, step_b = form != ORT_FORM_VS;                         \
        assert(!step_a || ort_kernel_may_share(a, sizeof *a, y, sizeof *y, n));                    \
        assert(!step_b || ort_kernel_may_share(b, sizeof *b, y, sizeof *y, n));                    \
        for (size_t i = 0; i < n; i++) {                                                           \
            float s = a[i * step_a], t = b[i * step_b];                                            \
            y[i] = (type)(expression);                                                             \
        }                                                                                          \
    }

BINARY_FORMS(binary_add, float, s + t)
BINARY_FORMS(binary_sub, float, s - t)
BINARY_FORMS(binary_mul, float, s *t)
BINARY_FORMS(binary_div, float, s / t)
BINARY_FORMS(binary_max, float, isnan(s) ? s : isnan(t) ? t : s > t ? s : t)
BINARY_FORMS(binary_min, float, isnan(s) ? s : isnan(t) ? t : s < t ? s : t)
BINARY_FORMS(binary_fmod, float, fmodf(s, t))
BINARY_FORMS(binary_prelu, float, s < 0 ? s * t : s)
BINARY_FORMS(compare_eq, uint8_t, s == t)
BINARY_FORMS(compare_gt, uint8_t, s > t)
BINARY_FORMS(compare_lt, uint8_t, s < t)
BINARY_FORMS(compare_ge, uint8_t, s >= t)
BINARY_FORMS(compare_le, uint8_t, s <= t)

/* The exponents that models use have loops that vectorize; each is exact or rounded once or twice.
 * */
static bool pow_special(const float *x, float *y, size_t n, float exponent)
{
    if (exponent == 2.0f)
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * x[i];
    else if (exponent == 3.0f)
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * x[i] * x[i];
    else if (exponent == 1.0f)
        for (size_t i = 0; i < n; i++)
            y[i] = x[i];
    else if (exponent == 0.5f) /* pow(-0, 0.5) is +0 and pow(-inf, 0.5) is +inf: the sum and fabs */
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] == -INFINITY ? INFINITY : sqrtf(x[i] + 0.0f);
    else if (exponent == -1.0f)
        for (size_t i = 0; i < n; i++)
            y[i] = 1.0f / x[i];
    else
        return false;
    return true;
}
static void binary_pow(const void *a_, const void *b_, void *y_, size_t n, ort_form form)
{
    const float *a = a_, *b = b_;
    float *y = y_;
    size_t step_a = form != ORT_FORM_SV, step_b = form != ORT_FORM_VS;
    if (n == 0 || (form == ORT_FORM_VS && pow_special(a, y, n, b[0])))
        return;
    for (size_t i = 0; i < n; i++)
        y[i] = powf(a[i * step_a], b[i * step_b]);
}

static void where_f32(const uint8_t *c, const float *a, size_t step_a, const float *b,
                      size_t step_b, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = c[i] ? a[i * step_a] : b[i * step_b];
}

/* ---- reductions */

#define REDUCE(name, step)                                                                         \
    static double name(const float *x, size_t n)                                                   \
    {                                                                                              \
        double total = 0;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            double v = (double)x[i];                                                               \
            total += (step);                                                                       \
        }                                                                                          \
        return total;                                                                              \
    }
REDUCE(reduce_sum, v)
REDUCE(reduce_sum_abs, fabs(v))
REDUCE(reduce_sum_square, v *v)

static double sum_square_diff(const float *x, size_t n, float center)
{
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)center;
        total += d * d;
    }
    return total;
}
static double reduce_max(const float *x, size_t n)
{
    double best = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (!((double)x[i] <= best)) { /* also when x[i] is NaN */
            best = (double)x[i];
            if (isnan(best))
                return best;
        }
    return best;
}
static double reduce_min(const float *x, size_t n)
{
    double best = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (!((double)x[i] >= best)) {
            best = (double)x[i];
            if (isnan(best))
                return best;
        }
    return best;
}
static double reduce_prod(const float *x, size_t n)
{
    double product = 1;
    for (size_t i = 0; i < n; i++)
        product *= (double)x[i];
    return product;
}
static void min_max(const float *x, size_t n, float *min, float *max)
{
    assert(n > 0);
    float lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    *min = lo;
    *max = hi;
}
static float dot(const float *a, const float *b, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)a[i] * (double)b[i];
    return (float)total;
}

#define ACCUMULATE(name, expression)                                                               \
    static void name(float *acc, const float *x, size_t rows, size_t stride, size_t n)             \
    {                                                                                              \
        for (size_t r = 0; r < rows; r++)                                                          \
            for (size_t j = 0; j < n; j++) {                                                       \
                float s = acc[j], t = x[r * stride + j];                                           \
                acc[j] = (expression);                                                             \
            }                                                                                      \
    }
ACCUMULATE(accumulate_sum, s + t)
ACCUMULATE(accumulate_sum_abs, s + fabsf(t))
ACCUMULATE(accumulate_sum_square, s + t * t)
ACCUMULATE(accumulate_max, isnan(s) ? s : isnan(t) ? t : s > t ? s : t)
ACCUMULATE(accumulate_min, isnan(s) ? s : isnan(t) ? t : s < t ? s : t)
ACCUMULATE(accumulate_prod, s *t)

/* ---- softmax: `step` elements apart */

static double column_max(const float *x, size_t n, size_t step)
{
    double best = -INFINITY;
    for (size_t i = 0; i < n && !isnan(best); i++)
        if (!((double)x[i * step] <= best))
            best = (double)x[i * step];
    return best;
}
static void softmax_step(const float *x, float *y, size_t n, size_t step, bool log_form)
{
    assert(step == 1 ? ort_kernel_may_share(x, sizeof *x, y, sizeof *y, n) : step > 0 || n < 2);
    double max = column_max(x, n, step), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i * step] - max);
    double log_sum = log(sum);
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i * step] - max;
        y[i * step] = (float)(log_form ? d - log_sum : exp(d) / sum);
    }
}
static void softmax(const float *x, float *y, size_t n) { softmax_step(x, y, n, 1, false); }
static void log_softmax(const float *x, float *y, size_t n) { softmax_step(x, y, n, 1, true); }
static void softmax_columns(const float *x, float *y, size_t rows, size_t stride, size_t n)
{
    for (size_t j = 0; j < n; j++)
        softmax_step(x + j, y + j, rows, stride, false);
}
static void log_softmax_columns(const float *x, float *y, size_t rows, size_t stride, size_t n)
{
    for (size_t j = 0; j < n; j++)
        softmax_step(x + j, y + j, rows, stride, true);
}
static float exp_sum(const float *x, float *y, size_t n, float center)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        y[i] = (float)exp((double)x[i] - (double)center);
        sum += (double)y[i];
    }
    return (float)sum;
}

/* ---- normalization */

static void layer_norm(const float *x, const float *scale, const float *bias, float *y, size_t n,
                       float epsilon, float *mean, float *inv_std)
{
    double center = reduce_sum(x, n) / (double)n, variance = 0;
    for (size_t i = 0; i < n; i++)
        variance += ((double)x[i] - center) * ((double)x[i] - center);
    double inverse = 1.0 / sqrt(variance / (double)n + (double)epsilon);
    for (size_t i = 0; i < n; i++) {
        double v = ((double)x[i] - center) * inverse * (scale ? (double)scale[i] : 1.0);
        y[i] = (float)(v + (bias ? (double)bias[i] : 0.0));
    }
    if (mean)
        *mean = (float)center;
    if (inv_std)
        *inv_std = (float)inverse;
}
static void rms_norm(const float *x, const float *scale, float *y, size_t n, float epsilon,
                     float *inv_rms)
{
    double inverse = 1.0 / sqrt(reduce_sum_square(x, n) / (double)n + (double)epsilon);
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)x[i] * inverse * (scale ? (double)scale[i] : 1.0));
    if (inv_rms)
        *inv_rms = (float)inverse;
}
static void scale_bias(const float *x, const float *scale, const float *bias, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)x[i] * (double)scale[i] + (double)bias[i]);
}
static void scale_bias_row(const float *x, float *y, size_t n, float scale, float bias)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)x[i] * (double)scale + (double)bias);
}
static void axpy(float *y, const float *x, size_t n, float a)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)a * (double)x[i] + (double)y[i]);
}

static float sigmoid_f32(float x) { return (float)sigmoid((double)x); }
static float tanh_f32(float x) { return (float)tanh((double)x); }

static void lstm_gates(size_t n, const float *const gates[4], const float *cell, float *new_cell,
                       float *state)
{
    for (size_t i = 0; i < n; i++) {
        const float fresh = tanh_f32(gates[3][i]) * sigmoid_f32(gates[0][i]);
        new_cell[i] = (float)((double)cell[i] * (double)sigmoid_f32(gates[2][i]) + (double)fresh);
        state[i] = sigmoid_f32(gates[1][i]) * tanh_f32(new_cell[i]);
    }
}

static void gru_gates(size_t n, const float *gates, const float *recurrent, float *state)
{
    for (size_t i = 0; i < n; i++) {
        float h = gates[2 * n + i];
        if (recurrent)
            h = (float)((double)sigmoid_f32(gates[n + i]) * (double)recurrent[i] + (double)h);
        h = tanh_f32(h);
        state[i] = h + sigmoid_f32(gates[i]) * (state[i] - h);
    }
}

/* ---- conversions */

static void f16_to_f32(const uint16_t *x, float *y, size_t n)
{
    ort_f16s_to_f32(x, y, n);
}
static void f32_to_f16(const float *x, uint16_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = ort_f32_to_f16(x[i]);
}
static void bf16_to_f32(const uint16_t *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = ort_bf16_to_f32(x[i]);
}
static void f32_to_bf16(const float *x, uint16_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = ort_f32_to_bf16(x[i]);
}
/* NaN fails the first comparison and becomes lo. */
static int quantized(float x, float scale, int zero_point, int lo, int hi)
{
    float q = nearbyintf(x / scale);
    float low = (float)(lo - zero_point), high = (float)(hi - zero_point);
    if (!(q > low))
        return lo;
    return q > high ? hi : (int)q + zero_point;
}
static void quantize_u8(const float *x, uint8_t *y, size_t n, float scale, int zero_point)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (uint8_t)quantized(x[i], scale, zero_point, 0, 255);
}
static void quantize_s8(const float *x, int8_t *y, size_t n, float scale, int zero_point)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (int8_t)quantized(x[i], scale, zero_point, -128, 127);
}
static void dequantize_u8(const uint8_t *x, float *y, size_t n, float scale, int zero_point)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((int)x[i] - zero_point) * scale;
}
static void dequantize_s8(const int8_t *x, float *y, size_t n, float scale, int zero_point)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((int)x[i] - zero_point) * scale;
}
static void dequantize_s32(const int32_t *x, float *y, size_t n, float scale, float bias)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)x[i] * scale + bias;
}

#include "kernel/vmath_codes16.inc"

#define PLUG_UNARY(id, name, expression)                                                           \
    table->unary[id] = name;                                                                       \
    table->unary_f64[id] = name##_f64;

static void plug_binary(ort_vmath_kernels *table)
{
    table->binary[ORT_BINARY_ADD] = binary_add;
    table->binary[ORT_BINARY_SUB] = binary_sub;
    table->binary[ORT_BINARY_MUL] = binary_mul;
    table->binary[ORT_BINARY_DIV] = binary_div;
    table->binary[ORT_BINARY_MAX] = binary_max;
    table->binary[ORT_BINARY_MIN] = binary_min;
    table->binary[ORT_BINARY_POW] = binary_pow;
    table->binary[ORT_BINARY_FMOD] = binary_fmod;
    table->binary[ORT_BINARY_PRELU] = binary_prelu;
    table->compare[ORT_COMPARE_EQ] = compare_eq;
    table->compare[ORT_COMPARE_GT] = compare_gt;
    table->compare[ORT_COMPARE_LT] = compare_lt;
    table->compare[ORT_COMPARE_GE] = compare_ge;
    table->compare[ORT_COMPARE_LE] = compare_le;
    table->where = where_f32;
}

static void plug_reductions(ort_vmath_kernels *table)
{
    table->reduce[ORT_ACCUM_SUM] = reduce_sum;
    table->reduce[ORT_ACCUM_SUM_ABS] = reduce_sum_abs;
    table->reduce[ORT_ACCUM_SUM_SQUARE] = reduce_sum_square;
    table->reduce[ORT_ACCUM_MAX] = reduce_max;
    table->reduce[ORT_ACCUM_MIN] = reduce_min;
    table->reduce[ORT_ACCUM_PROD] = reduce_prod;
    table->accumulate[ORT_ACCUM_SUM] = accumulate_sum;
    table->accumulate[ORT_ACCUM_SUM_ABS] = accumulate_sum_abs;
    table->accumulate[ORT_ACCUM_SUM_SQUARE] = accumulate_sum_square;
    table->accumulate[ORT_ACCUM_MAX] = accumulate_max;
    table->accumulate[ORT_ACCUM_MIN] = accumulate_min;
    table->accumulate[ORT_ACCUM_PROD] = accumulate_prod;
    table->sum_square_diff = sum_square_diff;
    table->min_max = min_max;
    table->scan = scan_f32;
    table->bins = bins_plain;
    table->dot = dot;
}

#include "kernel/scalar/simd.h"
#include "kernel/trees.inc"

void ort_vmath_plug_scalar(ort_vmath_kernels *table)
{
    table->lanes = 1;
    UNARY_LIST(PLUG_UNARY)
    plug_binary(table);
    plug_reductions(table);
    table->exp_sum = exp_sum;
    table->softmax = softmax;
    table->log_softmax = log_softmax;
    table->softmax_columns = softmax_columns;
    table->log_softmax_columns = log_softmax_columns;
    table->layer_norm = layer_norm;
    table->rms_norm = rms_norm;
    table->scale_bias = scale_bias;
    table->scale_bias_row = scale_bias_row;
    table->axpy = axpy;
    table->lstm_gates = lstm_gates;
    table->gru_gates = gru_gates;
    table->f16_to_f32 = f16_to_f32;
    table->f32_to_f16 = f32_to_f16;
    table->bf16_to_f32 = bf16_to_f32;
    table->f32_to_bf16 = f32_to_bf16;
    table->quantize_u8 = quantize_u8;
    table->quantize_s8 = quantize_s8;
    plug_codes16(table);
    table->dequantize_u8 = dequantize_u8;
    table->dequantize_s8 = dequantize_s8;
    table->dequantize_s32 = dequantize_s32;
    table->tree_columns = tree_columns;
    table->tree_exits = tree_exits;
    table->tree_sums = tree_sums;
}
