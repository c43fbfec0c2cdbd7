/* test_vmath.c - the math kernels of every tier this machine has, held against the scalar tier.
 * Counts run over all tail lengths; a guard element behind each output must stay. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/num.h"
#include "kernel/kernel.h"
#include "test.h"

#define MOST 700

typedef struct tiers {
    const ort_vmath_kernels *reference, *tier;
} tiers;

static tiers under_test;
static uint64_t state = 88172645463325252u;

static double uniform(double lo, double hi)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return lo + (hi - lo) * (double)(state >> 11) * 0x1.0p-53;
}

static void fill(float *x, size_t n, double lo, double hi)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)uniform(lo, hi);
}

/* Equal up to `ulps` units in the last place of the wanted value, or `absolute`. */
static bool near(float got, float want, double ulps, double absolute)
{
    int exponent;
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want);
    if (got == want)
        return true;
    if (isinf(got) || isinf(want))
        return false;
    frexp((double)want, &exponent);
    double error = fabs((double)got - (double)want);
    return error <= absolute || error <= ulps * ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

static bool all_near(const float *got, const float *want, size_t n, double ulps, double absolute)
{
    for (size_t i = 0; i < n; i++)
        if (!near(got[i], want[i], ulps, absolute))
            return false;
    return true;
}

/* ---- elementwise */

typedef struct unary_row {
    ort_unary id;
    double lo, hi, ulps, absolute;
    float a, b;
} unary_row;

static const unary_row unary_rows[] = {
    {ORT_UNARY_ABS, -9, 9, 0, 0, 0, 0},
    {ORT_UNARY_NEG, -9, 9, 0, 0, 0, 0},
    {ORT_UNARY_SIGN, -9, 9, 0, 0, 0, 0},
    {ORT_UNARY_SQUARE, -9, 9, 0, 0, 0, 0},
    {ORT_UNARY_SQRT, 0, 9, 0, 0, 0, 0},
    {ORT_UNARY_RSQRT, 0.01, 9, 1, 0, 0, 0},
    {ORT_UNARY_RECIPROCAL, -9, 9, 0, 0, 0, 0},
    {ORT_UNARY_FLOOR, -9, 9, 0, 0, 0, 0},
    {ORT_UNARY_CEIL, -9, 9, 0, 0, 0, 0},
    {ORT_UNARY_ROUND, -9, 9, 0, 0, 0, 0},
    {ORT_UNARY_EXP, -110, 90, 2, 0, 0, 0},
    {ORT_UNARY_LOG, 0, 50, 2, 0, 0, 0},
    {ORT_UNARY_ERF, -5, 5, 6, 0, 0, 0},
    {ORT_UNARY_SIN, -40000, 40000, 3, 1e-7, 0, 0},
    {ORT_UNARY_COS, -40000, 40000, 3, 1e-7, 0, 0},
    {ORT_UNARY_TANH, -12, 12, 6, 0, 0, 0},
    {ORT_UNARY_RELU, -9, 9, 0, 0, 0, 0},
    {ORT_UNARY_LEAKY_RELU, -9, 9, 0, 0, 0.3f, 0},
    {ORT_UNARY_ELU, -9, 9, 3, 0, 1.3f, 0},
    {ORT_UNARY_SELU, -9, 9, 3, 0, 1.67326319f, 1.05070102f},
    {ORT_UNARY_CELU, -9, 9, 3, 0, 1.3f, 0},
    {ORT_UNARY_THRESHOLDED_RELU, -9, 9, 0, 0, 1.3f, 0},
    {ORT_UNARY_SHRINK, -9, 9, 1, 0, 0.5f, 0.2f},
    {ORT_UNARY_HARD_SIGMOID, -9, 9, 2, 1e-7, 0.2f, 0.5f},
    {ORT_UNARY_HARD_SWISH, -9, 9, 2, 3e-7, 0, 0},
    {ORT_UNARY_SIGMOID, -100, 100, 3, 1e-37, 0, 0},
    {ORT_UNARY_SOFTPLUS, -100, 100, 3, 1e-37, 0, 0},
    {ORT_UNARY_SOFTSIGN, -9, 9, 1, 0, 0, 0},
    {ORT_UNARY_GELU, -9, 9, 6, 1e-6, 0, 0},
    {ORT_UNARY_GELU_TANH, -9, 9, 6, 1e-6, 0, 0},
    {ORT_UNARY_SWISH, -9, 9, 6, 1e-6, 1.702f, 0},
    {ORT_UNARY_MISH, -30, 30, 4, 1e-7, 0, 0},
    {ORT_UNARY_CLIP, -9, 9, 0, 0, -1, 2},
    {ORT_UNARY_LINEAR, -9, 9, 2, 1e-6, 1.3f, 0.7f},
};

static void unary_functions(test_state *test)
{
    float x[MOST + 1], want[MOST], got[MOST + 1];
    for (size_t r = 0; r < sizeof unary_rows / sizeof *unary_rows; r++) {
        const unary_row *row = &unary_rows[r];
        for (size_t n = 1; n < MOST; n += n < 70 ? 1 : 211) {
            fill(x, n, row->lo, row->hi);
            got[n] = 77.0f;
            under_test.reference->unary[row->id](x, want, n, row->a, row->b);
            under_test.tier->unary[row->id](x, got, n, row->a, row->b);
            CHECK(got[n] == 77.0f);
            if (!all_near(got, want, n, row->ulps, row->absolute)) {
                snprintf(test->why, sizeof test->why, "function %d, %zu elements", (int)row->id, n);
                test->failed = true;
                return;
            }
            under_test.tier->unary[row->id](x, x, n, row->a, row->b); /* in place */
            CHECK(!memcmp(x, got, n * sizeof *x));
        }
    }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* x times its sigmoid over the whole range, by steps that are nobody's period. */
static void swish_everywhere(test_state *test)
{
    static const float rates[] = {1.0f, 1.702f, -1.0f, 0.3f, -7.5f, 1e-3f};
    const double bound = under_test.tier->lanes > 8 ? 1.6e-7 : 1.2e-7; /* vf_part */
    float x[MOST], y[MOST];
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (uint32_t bits = 0x00800000u, step = 4057; bits < 0x7f800000u - step * MOST;) {
            for (size_t i = 0; i < MOST; i++, bits += step) {
                const uint32_t signed_bits = bits | (i % 2 ? 0x80000000u : 0);
                memcpy(&x[i], &signed_bits, sizeof signed_bits);
            }
            under_test.tier->unary[ORT_UNARY_SWISH](x, y, MOST, rates[r], 0);
            for (size_t i = 0; i < MOST; i++) {
                const double want = (double)x[i] * sigmoid((double)rates[r] * (double)x[i]);
                if (fabs((double)y[i] - want) <= bound * fabs((double)x[i]) + 1e-37)
                    continue;
                snprintf(test->why, sizeof test->why, "%.9g of rate %g is %.9g, expected %.9g",
                         (double)x[i], (double)rates[r], (double)y[i], want);
                test->failed = true;
                return;
            }
        }
}

static void swish_specials(test_state *test)
{
    static const float rates[] = {1.0f, -1.702f, 0.0f, 1e-41f, 3e38f};
    const float x[] = {NAN, 0.0f, -0.0f, INFINITY, -INFINITY};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        const float a = rates[r], there = a < 0.0f ? -INFINITY : INFINITY;
        float y[5];
        under_test.tier->unary[ORT_UNARY_SWISH](x, y, 5, a, 0);
        CHECK(isnan(y[0]) && y[1] == 0.0f && y[2] == 0.0f);
        CHECK(a == 0.0f || (a < 0.0f ? y[4] : y[3]) == there);
        under_test.tier->unary[ORT_UNARY_SWISH](x + 1, y, 1, NAN, 0);
        CHECK(isnan(y[0]));
    }
}

/* Recurrent models add up what leans to one side: the signed error has to vanish in the mean. */
static void unbiased(test_state *test)
{
    static const struct {
        ort_unary id;
        double (*f)(double), lo;
    } rows[] = {{ORT_UNARY_EXP, exp, -6}, {ORT_UNARY_LOG, log, 0.01},
                {ORT_UNARY_SIGMOID, sigmoid, -6}};
    float x[MOST], y[MOST];
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double sum = 0, count = 0;
        for (int round = 0; round < 200; round++, count += MOST) {
            fill(x, MOST, rows[r].lo, 6);
            under_test.tier->unary[rows[r].id](x, y, MOST, 0, 0);
            for (size_t i = 0; i < MOST; i++) {
                int exponent;
                double want = rows[r].f((double)x[i]);
                frexp(want, &exponent);
                sum += ldexp((double)y[i] - want, 24 - exponent);
            }
        }
        CHECK(fabs(sum / count) < 0.03); /* ULP */
    }
}

static void unary_specials(test_state *test)
{
    static const float specials[] = {
        0.0f,   -0.0f, 1.0f,   -1.0f, INFINITY, -INFINITY, NAN,  1e-41f,
        -1e-41f, 3e38f, -3e38f, 88.8f, -88.8f,   -104.5f,   2.5f, -1.5f};
    enum { EACH = sizeof specials / sizeof *specials, COUNT = 9 * EACH };
    static const ort_unary ids[] = {
        ORT_UNARY_EXP,  ORT_UNARY_LOG,     ORT_UNARY_SQRT,     ORT_UNARY_TANH, ORT_UNARY_ERF,
        ORT_UNARY_RELU, ORT_UNARY_SIGMOID, ORT_UNARY_SOFTPLUS, ORT_UNARY_SIN,  ORT_UNARY_COS,
        ORT_UNARY_SIGN, ORT_UNARY_FLOOR,   ORT_UNARY_ROUND,    ORT_UNARY_CLIP, ORT_UNARY_ELU};
    float x[COUNT], want[COUNT], got[COUNT];
    for (size_t i = 0; i < COUNT; i++) /* each beside ordinary numbers, and beside each other */
        x[i] = i < EACH || i >= 8 * EACH ? specials[i % EACH] : i % 7 ? 0.5f : specials[i % EACH];
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
        under_test.reference->unary[ids[k]](x, want, COUNT, 0.0f, 1.0f);
        under_test.tier->unary[ids[k]](x, got, COUNT, 0.0f, 1.0f);
        for (int i = 0; i < COUNT; i++)
            if (!near(got[i], want[i], 6, 1e-37)) {
                snprintf(test->why, sizeof test->why, "function %d of %g is %g, expected %g",
                         (int)ids[k], (double)x[i], (double)got[i], (double)want[i]);
                test->failed = true;
                return;
            }
    }
}

static void binary_functions(test_state *test)
{
    float a[MOST], b[MOST], want[MOST], got[MOST + 1];
    uint8_t want_bytes[MOST], got_bytes[MOST + 1];
    for (size_t n = 1; n < MOST; n += n < 70 ? 1 : 211) {
        fill(a, n, -4, 4);
        fill(b, n, -4, 4);
        a[n / 2] = b[n / 3];
        a[n / 4] = NAN;
        for (int form = ORT_FORM_VV; form <= ORT_FORM_SV; form++) {
            for (int op = 0; op < ORT_BINARY_COUNT; op++) {
                got[n] = 77.0f;
                under_test.reference->binary[op](a, b, want, n, (ort_form)form);
                under_test.tier->binary[op](a, b, got, n, (ort_form)form);
                CHECK(got[n] == 77.0f && all_near(got, want, n, 0, 0));
            }
            for (int op = 0; op < ORT_COMPARE_COUNT; op++) {
                got_bytes[n] = 77;
                under_test.reference->compare[op](a, b, want_bytes, n, (ort_form)form);
                under_test.tier->compare[op](a, b, got_bytes, n, (ort_form)form);
                CHECK(got_bytes[n] == 77 && !memcmp(got_bytes, want_bytes, n));
            }
            size_t step_a = form != ORT_FORM_SV, step_b = form != ORT_FORM_VS;
            under_test.reference->where(want_bytes, a, step_a, b, step_b, want, n);
            under_test.tier->where(want_bytes, a, step_a, b, step_b, got, n);
            CHECK(all_near(got, want, n, 0, 0));
        }
    }
}

/* ---- reductions and rows */

static void reductions(test_state *test)
{
    enum { LONG = 20000 };
    float *x = malloc(LONG * sizeof *x), want[MOST], got[MOST + 1];
    CHECK(x);
    for (size_t n = 0; n <= LONG; n += n < 70 ? 1 : 6643) {
        fill(x, n, -2, 2);
        for (int kind = 0; kind < ORT_ACCUM_COUNT; kind++) {
            double w = under_test.reference->reduce[kind](x, n);
            double g = under_test.tier->reduce[kind](x, n);
            bool tiny = kind == ORT_ACCUM_PROD && fabs(w) < 1e-30;
            bool same = g == w || fabs(g - w) <= 1e-5 * (fabs(w) + sqrt((double)n));
            if (!same && !tiny)
                free(x);
            CHECK(same || tiny);
        }
    }
    x[17] = NAN;
    bool nan = isnan(under_test.tier->reduce[ORT_ACCUM_MAX](x, 40)) &&
               isnan(under_test.tier->reduce[ORT_ACCUM_MIN](x, 40));
    for (size_t n = 1, rows = 5; n < MOST && nan; n += n < 70 ? 1 : 211)
        for (int kind = 0; kind < ORT_ACCUM_COUNT; kind++) {
            for (size_t i = 0; i < n; i++)
                want[i] = got[i] = 0.5f;
            got[n] = 77.0f;
            fill(x, rows * (n + 3), -2, 2);
            under_test.reference->accumulate[kind](want, x, rows, n + 3, n);
            under_test.tier->accumulate[kind](got, x, rows, n + 3, n);
            nan = nan && got[n] == 77.0f && all_near(got, want, n, 8, 1e-5);
        }
    free(x);
    CHECK(nan);
}

static void softmax_rows(test_state *test)
{
    float x[MOST], want[MOST], got[MOST + 1];
    for (size_t n = 1; n < MOST; n += n < 70 ? 1 : 211) {
        fill(x, n, -20, 5);
        if (n > 4)
            x[n / 2] = -INFINITY; /* a masked element */
        got[n] = 77.0f;
        under_test.reference->softmax(x, want, n);
        under_test.tier->softmax(x, got, n);
        CHECK(got[n] == 77.0f && all_near(got, want, n, 8, 1e-7));
        CHECK(n <= 4 || got[n / 2] == 0.0f);
        under_test.reference->log_softmax(x, want, n);
        under_test.tier->log_softmax(x, got, n);
        CHECK(got[n] == 77.0f && all_near(got, want, n, 8, 3e-6));
        size_t rows = n / 7 + 1, columns = n / rows;
        memcpy(want, x, n * sizeof *x);
        memcpy(got, x, n * sizeof *x);
        under_test.reference->softmax_columns(x, want, rows, columns, columns);
        under_test.tier->softmax_columns(x, got, rows, columns, columns);
        CHECK(got[n] == 77.0f && all_near(got, want, n, 8, 1e-7));
    }
}

static void norm_rows(test_state *test)
{
    float x[MOST], scale[MOST], bias[MOST], want[MOST], got[MOST + 1], w[2], g[2];
    for (size_t n = 2; n < MOST; n += n < 70 ? 1 : 211) {
        fill(x, n, -2, 3);
        fill(scale, n, -2, 2);
        fill(bias, n, -2, 2);
        got[n] = 77.0f;
        for (int form = 0; form < 4; form++) {
            const float *s = form & 1 ? scale : NULL, *b = form & 2 ? bias : NULL;
            under_test.reference->layer_norm(x, s, b, want, n, 1e-3f, &w[0], &w[1]);
            under_test.tier->layer_norm(x, s, b, got, n, 1e-3f, &g[0], &g[1]);
            CHECK(got[n] == 77.0f && all_near(got, want, n, 16, 1e-5));
            CHECK(near(g[0], w[0], 8, 1e-6) && near(g[1], w[1], 16, 1e-4));
            under_test.reference->rms_norm(x, s, want, n, 1e-3f, &w[0]);
            under_test.tier->rms_norm(x, s, got, n, 1e-3f, &g[0]);
            CHECK(got[n] == 77.0f && all_near(got, want, n, 8, 1e-6) && near(g[0], w[0], 8, 1e-6));
        }
        under_test.reference->scale_bias(x, scale, bias, want, n);
        under_test.tier->scale_bias(x, scale, bias, got, n);
        CHECK(all_near(got, want, n, 1, 0));
        under_test.reference->scale_bias_row(x, want, n, 1.7f, 0.3f);
        under_test.tier->scale_bias_row(x, got, n, 1.7f, 0.3f);
        CHECK(got[n] == 77.0f && all_near(got, want, n, 1, 0));
    }
}

/* ---- gates of recurrences: the bits of row after row on the same tier */

enum { UNITS = 70 };

static void rows_of_lstm(size_t n, const float *const gates[4], const float *cell, float *c,
                         float *h)
{
    const ort_vmath_kernels *k = under_test.tier;
    float in[UNITS], out[UNITS], forget[UNITS], fresh[UNITS];
    k->unary[ORT_UNARY_SIGMOID](gates[0], in, n, 0, 0);
    k->unary[ORT_UNARY_SIGMOID](gates[1], out, n, 0, 0);
    k->unary[ORT_UNARY_SIGMOID](gates[2], forget, n, 0, 0);
    k->unary[ORT_UNARY_TANH](gates[3], fresh, n, 0, 0);
    k->binary[ORT_BINARY_MUL](fresh, in, fresh, n, ORT_FORM_VV);
    k->scale_bias(cell, forget, fresh, c, n);
    k->unary[ORT_UNARY_TANH](c, h, n, 0, 0);
    k->binary[ORT_BINARY_MUL](out, h, h, n, ORT_FORM_VV);
}

static void rows_of_gru(size_t n, const float *gates, const float *recurrent, float *h)
{
    const ort_vmath_kernels *k = under_test.tier;
    float update[UNITS], reset[UNITS], fresh[UNITS];
    k->unary[ORT_UNARY_SIGMOID](gates, update, n, 0, 0);
    k->unary[ORT_UNARY_SIGMOID](gates + n, reset, n, 0, 0);
    memcpy(fresh, gates + 2 * n, n * sizeof *fresh);
    if (recurrent)
        k->scale_bias(reset, recurrent, fresh, fresh, n);
    k->unary[ORT_UNARY_TANH](fresh, fresh, n, 0, 0);
    for (size_t i = 0; i < n; i++)
        h[i] = fresh[i] + update[i] * (h[i] - fresh[i]);
}

static bool equal(const float *got, const float *want, size_t n)
{
    return !memcmp(got, want, n * sizeof *got) && got[n] == 77.0f;
}

static void gates(test_state *test)
{
    float x[5 * UNITS], c[UNITS + 1], h[UNITS + 1], want_c[UNITS], want_h[UNITS];
    for (size_t n = 1; n <= UNITS; n++) {
        const float *const of[4] = {x + 2 * n, x, x + 3 * n, x + n};
        fill(x, 5 * n, -9, 9);
        x[n / 2] = -100.0f; /* a gate that is shut */
        c[n] = h[n] = 77.0f;
        rows_of_lstm(n, of, x + 4 * n, want_c, want_h);
        under_test.tier->lstm_gates(n, of, x + 4 * n, c, h);
        CHECK(equal(c, want_c, n) && equal(h, want_h, n));
        memcpy(c, x + 4 * n, n * sizeof *c); /* in place */
        under_test.tier->lstm_gates(n, of, c, c, h);
        CHECK(equal(c, want_c, n) && equal(h, want_h, n));
        for (int form = 0; form < 2; form++) {
            const float *recurrent = form ? x + 3 * n : NULL;
            memcpy(h, x + 4 * n, n * sizeof *h);
            memcpy(want_h, h, sizeof want_h);
            rows_of_gru(n, x, recurrent, want_h);
            under_test.tier->gru_gates(n, x, recurrent, h);
            CHECK(equal(h, want_h, n));
        }
        x[2 * n] = NAN;
        under_test.tier->lstm_gates(n, of, x + 4 * n, c, h);
        CHECK(isnan(c[0]) && isnan(h[0]) && (n == 1 || !isnan(h[1])));
    }
}

/* ---- conversions: bit for bit */

static void conversions(test_state *test)
{
    float x[MOST], want[MOST], got[MOST + 1];
    uint16_t want_half[MOST], got_half[MOST + 1];
    uint8_t want_byte[MOST], got_byte[MOST + 1];
    for (size_t n = 1; n < MOST; n += n < 70 ? 1 : 211) {
        fill(x, n, -70000, 70000);
        x[n / 2] = (float)uniform(-1e-6, 1e-6);
        got_half[n] = 7777;
        got_byte[n] = 77;
        under_test.reference->f32_to_f16(x, want_half, n);
        under_test.tier->f32_to_f16(x, got_half, n);
        CHECK(got_half[n] == 7777 && !memcmp(got_half, want_half, 2 * n));
        under_test.reference->f16_to_f32(want_half, want, n);
        under_test.tier->f16_to_f32(want_half, got, n);
        CHECK(!memcmp(got, want, 4 * n));
        under_test.reference->f32_to_bf16(x, want_half, n);
        under_test.tier->f32_to_bf16(x, got_half, n);
        CHECK(got_half[n] == 7777 && !memcmp(got_half, want_half, 2 * n));
        under_test.reference->bf16_to_f32(want_half, want, n);
        under_test.tier->bf16_to_f32(want_half, got, n);
        CHECK(!memcmp(got, want, 4 * n));
        int zero = (int)uniform(0, 255);
        under_test.reference->quantize_u8(x, want_byte, n, 300.0f, zero);
        under_test.tier->quantize_u8(x, got_byte, n, 300.0f, zero);
        CHECK(got_byte[n] == 77 && !memcmp(got_byte, want_byte, n));
        under_test.reference->dequantize_u8(want_byte, want, n, 0.3f, zero);
        under_test.tier->dequantize_u8(want_byte, got, n, 0.3f, zero);
        CHECK(!memcmp(got, want, 4 * n));
        under_test.reference->quantize_s8(x, (int8_t *)want_byte, n, 300.0f, zero - 128);
        under_test.tier->quantize_s8(x, (int8_t *)got_byte, n, 300.0f, zero - 128);
        CHECK(got_byte[n] == 77 && !memcmp(got_byte, want_byte, n));
        zero = (int)uniform(0, 65535);
        x[n / 3] = NAN;
        under_test.reference->quantize_u16(x, want_half, n, 1.7f, zero);
        under_test.tier->quantize_u16(x, got_half, n, 1.7f, zero);
        CHECK(got_half[n] == 7777 && !memcmp(got_half, want_half, 2 * n));
        CHECK(want_half[n / 3] == 0);
        under_test.reference->dequantize_u16(want_half, want, n, 0.3f, zero);
        under_test.tier->dequantize_u16(want_half, got, n, 0.3f, zero);
        CHECK(!memcmp(got, want, 4 * n));
        int16_t *want_signed = (int16_t *)want_half, *got_signed = (int16_t *)got_half;
        under_test.reference->quantize_s16(x, want_signed, n, 1.7f, zero - 32768);
        under_test.tier->quantize_s16(x, got_signed, n, 1.7f, zero - 32768);
        CHECK(got_half[n] == 7777 && !memcmp(got_half, want_half, 2 * n));
        CHECK(want_signed[n / 3] == -32768);
        under_test.reference->dequantize_s16(want_signed, want, n, 0.3f, zero - 32768);
        under_test.tier->dequantize_s16(want_signed, got, n, 0.3f, zero - 32768);
        CHECK(!memcmp(got, want, 4 * n));
    }
}

/* Ends and counts, as vmath.h defines them, of numbers of every kind and of one side alone. */
static void scans(test_state *test)
{
    static const float odd[] = {0.0f, -0.0f, 0x1p-130f, -0x1p-130f, 0x1p-126f, -0x1p-126f,
                                INFINITY, -INFINITY, NAN, -NAN, 3e38f, -3e38f};
    enum { MOST_SCANNED = 300, KINDS = sizeof odd / sizeof *odd };
    float x[MOST_SCANNED];
    for (size_t n = 0; n <= MOST_SCANNED; n++)
        for (int kind = 0; kind < 6; kind++) {
            ort_scan got, want = {0};
            for (size_t i = 0; i < n; i++) {
                const uint32_t draw = (uint32_t)(i + 7 * n + 1) * 2654435761u >> 8;
                x[i] = ((float)draw / 0x1p23f - 1) * (kind == 0 ? 5 : 1);
                if (kind == 1 || kind == 2) /* of one side */
                    x[i] = kind == 1 ? fabsf(x[i]) + 0.5f : -fabsf(x[i]) - 0.5f;
                if (kind >= 3 && draw % 16 < 3) /* 3: no infinity and none that is not a number */
                    x[i] = odd[draw / 16 % (kind == 3 ? 6 : KINDS)];
                if (kind == 5)
                    x[i] = odd[draw / 16 % 4];
                const bool counts = isfinite(x[i]), small = fabsf(x[i]) < 0x1p-126f;
                want.finite += counts;
                want.zeros += small;
                if (counts && !small && x[i] < want.least)
                    want.least = x[i];
                if (counts && !small && x[i] > want.most)
                    want.most = x[i];
            }
            under_test.tier->scan(x, n, &got);
            CHECK(got.least == want.least && got.most == want.most);
            CHECK(got.finite == want.finite && got.zeros == want.zeros);
        }
}

/* Bins of what counts, one after the other, of numbers of every kind, also those of which an eighth
 * or all of a vector counts; nothing is written behind the places that there are. */
static void bins(test_state *test)
{
    static const float odd[] = {0.0f, -0.0f, 0x1p-130f, -0x1p-130f, INFINITY, -INFINITY, NAN, -NAN};
    static const int exponents[] = {-149, -126, -60, -10, 0, 5, 100};
    enum { MOST_BINNED = 300, KINDS = sizeof odd / sizeof *odd };
    float x[MOST_BINNED];
    uint16_t got[MOST_BINNED + 1], want[MOST_BINNED];
    for (size_t n = 0; n <= MOST_BINNED; n++)
        for (size_t kind = 0; kind < 4 * sizeof exponents / sizeof *exponents; kind++) {
            const int e = exponents[kind / 4];
            const uint32_t share = (uint32_t[]){0, 3, 8, 15}[kind % 4]; /* of 16 that is odd */
            size_t count = 0;
            for (size_t i = 0; i < n; i++) {
                const uint32_t draw = (uint32_t)(i + 7 * n + kind + 1) * 2654435761u >> 8;
                const double k = (double)draw / 0x1p23 - 1;
                x[i] = draw % 3 ? (float)ldexp(k, e + 12) : (float)copysign(0x1p-126, k);
                if (draw / 16 % 16 < share || fabsf(x[i]) < 0x1p-126f)
                    x[i] = odd[draw / 256 % KINDS];
                else
                    want[count++] = (uint16_t)((int32_t)floor(ldexp((double)x[i], -e)) & 4095);
            }
            got[n] = 7777;
            for (int flush = 0; flush < 2; flush++) { /* as runs do */
                const unsigned control = ort_cpu_set_flush(flush);
                under_test.tier->bins(x, n, ldexp(1, -e), 4095, got);
                ort_cpu_restore_fp(control);
                CHECK(!memcmp(got, want, count * sizeof *got) && got[n] == 7777);
            }
        }
}

int main(void)
{
    test_state test = {0};
    under_test.reference = &ort_kernels_get("scalar")->math;
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        if (!k)
            continue;
        printf("# tier %s\n", k->isa);
        under_test.tier = &k->math;
        RUN(&test, unary_functions);
        RUN(&test, swish_everywhere);
        RUN(&test, swish_specials);
        RUN(&test, unbiased);
        RUN(&test, unary_specials);
        RUN(&test, binary_functions);
        RUN(&test, reductions);
        RUN(&test, softmax_rows);
        RUN(&test, norm_rows);
        RUN(&test, gates);
        RUN(&test, conversions);
        RUN(&test, scans);
        RUN(&test, bins);
    }
    return test.failures != 0;
}
