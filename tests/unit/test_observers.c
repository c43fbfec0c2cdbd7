/* test_observers.c - what calibration counts, the ranges made of it, and grids: against sums over
 * the numbers themselves. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "quantize/seen/range.h"
#include "test.h"

#define MOST 60000

static float numbers[MOST];
static uint64_t state = 88172645463325252u;

static double draw(void) /* in [0, 1) */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

static float normal(void)
{
    return (float)(sqrt(-2 * log(draw() + 1e-300)) * cos(6.283185307179586 * draw()));
}

typedef struct counted {
    ort_histogram h;
    uint64_t bins[ORT_HISTOGRAM_BINS];
} counted;

static counted *start(counted *c)
{
    memset(c, 0, sizeof *c);
    c->h.bins = c->bins;
    return c;
}

static bool same(const counted *a, const counted *b)
{
    return a->h.count == b->h.count && a->h.zeros == b->h.zeros &&
           a->h.not_finite == b->h.not_finite && a->h.least == b->h.least &&
           a->h.most == b->h.most && a->h.exponent == b->h.exponent &&
           !memcmp(a->bins, b->bins, sizeof a->bins);
}

static bool is_zero(float x) /* or as good as: runs flush denormals */
{
    return fabsf(x) < 0x1p-126f;
}

/* Bins counted one number at a time, of a width that is found by trying all. */
static bool as_defined(const counted *c, const float *x, size_t n)
{
    static uint64_t want[ORT_HISTOGRAM_BINS];
    double least = 0, most = 0;
    uint64_t zeros = 0, finite = 0;
    memset(want, 0, sizeof want);
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            least = fmin(least, is_zero(x[i]) ? 0 : (double)x[i]);
            most = fmax(most, is_zero(x[i]) ? 0 : (double)x[i]);
            zeros += is_zero(x[i]);
            finite++;
        }
    if (c->h.count != finite || c->h.zeros != zeros || c->h.not_finite != n - finite ||
        (double)c->h.least != least || (double)c->h.most != most)
        return false;
    if (least == most)
        return true;
    int e = -149;
    while (floor(ldexp(most, -e)) - floor(ldexp(least, -e)) >= ORT_HISTOGRAM_BINS)
        e++;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]) && !is_zero(x[i]))
            want[(int64_t)floor(ldexp((double)x[i], -e)) & (ORT_HISTOGRAM_BINS - 1)]++;
    return c->h.exponent == e && !memcmp(want, c->bins, sizeof want);
}

enum { TINY = 7 };

static void fill(int kind, size_t n)
{
    for (size_t i = 0; i < n; i++)
        switch (kind) {
        case 0: numbers[i] = normal(); break;
        case 1: numbers[i] = fmaxf(normal(), 0); break;               /* behind Relu */
        case 2: numbers[i] = normal() * ldexpf(1, (int)(draw() * 60) - 30); break;
        case 3: numbers[i] = -fabsf(normal()) * 2e-38f; break;        /* denormals among them */
        case 4: numbers[i] = (float)((draw() - 0.5) * 6.8e38); break; /* the largest there are */
        case 5: numbers[i] = 0; break;
        case TINY: numbers[i] = normal() * ldexpf(1, -(int)(draw() * 126)); break;
        default: numbers[i] = i % 97 == 5 ? NAN : i % 89 == 7 ? -INFINITY : normal(); break;
        }
}

/* However they come, in one piece or in many, forward or back, in one histogram or in two. */
static void check_orders(test_state *test, int kind)
{
    static counted whole, pieces, other, alone;
    for (size_t n = 1; n <= MOST; n = n * 3 + 7) {
        fill(kind, n);
        unsigned control = ort_cpu_set_flush(n % 2 == 0); /* as runs do */
        ort_histogram_add(&start(&whole)->h, numbers, n, NULL);
        ort_cpu_restore_fp(control);
        CHECK(as_defined(&whole, numbers, n));
        start(&pieces);
        start(&other);
        for (size_t end = n; end > 0;) { /* back to front */
            size_t piece = 1 + (size_t)(draw() * 5000);
            size_t begin = end > piece ? end - piece : 0;
            ort_histogram_add(draw() < 0.5 ? &pieces.h : &other.h, numbers + begin, end - begin,
                              NULL);
            end = begin;
        }
        ort_histogram_merge(&pieces.h, &other.h);
        CHECK(same(&whole, &pieces));
        ort_histogram_merge(&start(&alone)->h, &whole.h);
        CHECK(same(&whole, &alone));
    }
}

static void orders(test_state *test)
{
    for (int kind = 0; kind < TINY; kind++)
        check_orders(test, kind);
}

/* In units of a bin many are no normal numbers, which runs flush to 0. */
static void tiny(test_state *test)
{
    check_orders(test, TINY);
}

/* ---- grids */

static void grids(test_state *test)
{
    ort_codes_range codes;
    CHECK(ort_codes_range_of(ORT_DTYPE_UINT8, false, false, &codes));
    ort_grid g = ort_grid_of(&codes, -1, 3);
    CHECK(g.scale == 4.0f / 255 && g.zero_point == 64);
    CHECK(ort_grid_code(&codes, g, 0) == 64 && ort_grid_code(&codes, g, 9) == 255);
    CHECK(ort_grid_code(&codes, g, -9) == 0 && ort_grid_code(&codes, g, NAN) == 0);
    g = ort_grid_of(&codes, 2, 3); /* 0 is always among them */
    CHECK(g.scale == 3.0f / 255 && g.zero_point == 0);
    g = ort_grid_of(&codes, 0, 0);
    CHECK(g.scale == 1 && g.zero_point == 0);
    CHECK(ort_codes_range_of(ORT_DTYPE_UINT8, false, true, &codes) && codes.most == 127);
    CHECK(ort_codes_range_of(ORT_DTYPE_UINT8, true, false, &codes));
    g = ort_grid_of(&codes, -1, 0.5f);
    CHECK(g.zero_point == 128 && g.scale == 1.0f / 127);
    CHECK(ort_codes_range_of(ORT_DTYPE_INT8, true, false, &codes));
    CHECK(codes.least == -127 && codes.most == 127);
    g = ort_grid_of(&codes, -2, 1);
    CHECK(g.zero_point == 0 && g.scale == 2.0f / 127 && ort_grid_code(&codes, g, -2) == -127);
    CHECK(ort_codes_range_of(ORT_DTYPE_INT8, false, true, &codes));
    CHECK(codes.least == -64 && codes.most == 63);
    CHECK(ort_codes_range_of(ORT_DTYPE_INT4, true, false, &codes) && codes.least == -7);
    CHECK(ort_codes_range_of(ORT_DTYPE_INT2, true, false, &codes) && codes.least == -1);
    CHECK(!ort_codes_range_of(ORT_DTYPE_FLOAT, true, false, &codes));
    g = ort_grid_of(&codes, 1e-44f, 2e-44f);
    CHECK(g.scale > 0);
}

static double error_of(const ort_codes_range *codes, ort_grid g, const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)ort_grid_number(g, ort_grid_code(codes, g, x[i]));
        sum += d * d;
    }
    return sum;
}

static void fits(test_state *test)
{
    static const ort_dtype types[] = {ORT_DTYPE_INT8, ORT_DTYPE_UINT8, ORT_DTYPE_INT4,
                                      ORT_DTYPE_UINT2};
    for (int t = 0; t < 4; t++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            ort_codes_range codes;
            double sum = 0;
            size_t n = 3000;
            CHECK(ort_codes_range_of(types[t], symmetric, false, &codes));
            fill(0, n);
            ort_grid all = ort_grid_of(&codes, -5, 5), best;
            best = ort_grid_fit(&codes, numbers, (int64_t)n, 1, &sum);
            CHECK(fabs(sum - error_of(&codes, best, numbers, n)) <= 1e-9 * sum);
            CHECK(sum <= error_of(&codes, all, numbers, n));
            float one = 3.5f; /* a number that the grid holds */
            best = ort_grid_fit(&codes, &one, 1, 1, &sum);
            CHECK(fabsf(ort_grid_number(best, ort_grid_code(&codes, best, one)) - one) < 1e-5f);
        }
}

/* ---- ranges */

static ort_range chosen(const counted *c, ort_observer observer, double percentile, bool symmetric,
                        ort_codes_range *codes)
{
    ort_observed value = {.histogram = c->h};
    ort_codes_range_of(symmetric ? ORT_DTYPE_INT8 : ORT_DTYPE_UINT8, symmetric, false, codes);
    return ort_range_choose(&value, observer, percentile, codes);
}

/* Behind an activation fewer errors are left where the observer knows it. */
static void responses(test_state *test)
{
    static counted c;
    static const ort_response all[] = {
        {ORT_RESPONSE_CLIPPED, 0, 2}, {ORT_RESPONSE_HARD_SWISH, -3, INFINITY},
        {ORT_RESPONSE_SWISH, -10, INFINITY}, {ORT_RESPONSE_SIGMOID, -8, 8},
        {ORT_RESPONSE_TANH, -5, 5}};
    const size_t n = 20000;
    CHECK(ort_response_of(&all[1], -3) == 0 && ort_response_of(&all[1], 3) == 3);
    CHECK(fabs(ort_response_of(&all[2], 1) - 0.7310585786) < 1e-3);
    CHECK(fabs(ort_response_of(&all[4], 0.5) - tanh(0.5)) < 1e-3);
    fill(0, n);
    for (size_t i = 0; i < n; i++)
        numbers[i] *= 6;
    ort_histogram_add(&start(&c)->h, numbers, n, NULL);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        ort_codes_range codes;
        double error[2] = {0};
        CHECK(ort_codes_range_of(ORT_DTYPE_UINT8, false, false, &codes));
        for (int knows = 0; knows < 2; knows++) {
            ort_observed value = {.histogram = c.h};
            if (knows)
                value.response = all[k];
            ort_range r = ort_range_choose(&value, ORT_OBSERVE_MSE, 0, &codes);
            ort_grid g = ort_grid_of(&codes, r.least, r.most);
            for (size_t i = 0; i < n; i++) {
                const double x = (double)numbers[i];
                const double q = (double)ort_grid_number(g, ort_grid_code(&codes, g, numbers[i]));
                error[knows] += pow(ort_response_of(&all[k], x) - ort_response_of(&all[k], q), 2);
            }
        }
        CHECK(error[1] < error[0]);
    }
}

static void ranges(test_state *test)
{
    static counted c;
    ort_codes_range codes;
    for (int kind = 0; kind < 2; kind++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            size_t n = 50000, beyond = 0;
            fill(kind, n);
            numbers[17] = 40; /* an outlier */
            ort_histogram_add(&start(&c)->h, numbers, n, NULL);
            ort_range r = chosen(&c, ORT_OBSERVE_MIN_MAX, 0, symmetric, &codes);
            CHECK(r.least == c.h.least && r.most == 40);
            double all = error_of(&codes, ort_grid_of(&codes, r.least, r.most), numbers, n);
            r = chosen(&c, ORT_OBSERVE_PERCENTILE, 99, symmetric, &codes);
            for (size_t i = 0; i < n; i++)
                beyond += numbers[i] < r.least || numbers[i] > r.most;
            CHECK(beyond <= n / 100 && beyond > n / 400);
            r = chosen(&c, ORT_OBSERVE_PERCENTILE, 100, symmetric, &codes);
            CHECK(r.most == 40);
            r = chosen(&c, ORT_OBSERVE_MSE, 0, symmetric, &codes);
            double mse = error_of(&codes, ort_grid_of(&codes, r.least, r.most), numbers, n);
            CHECK(mse < all);
            for (float most = 2; most < 40; most += 0.25f) { /* no other range is much better */
                float least = symmetric ? -most : fmaxf(r.least, -most);
                ort_grid g = ort_grid_of(&codes, least, most);
                CHECK(mse < 1.03 * error_of(&codes, g, numbers, n));
            }
            r = chosen(&c, ORT_OBSERVE_ENTROPY, 0, symmetric, &codes);
            CHECK(r.most < 12 && r.most > 1.5f && r.least <= 0);
        }
}

/* ---- entropy */

/* Kullback-Leibler divergence of what is there, clipped to bins [low, high), from what `levels`
 * codes keep of it: equal shares of the bins, each spread over those of its bins that hold numbers
 * (Migacz, "8-bit inference with TensorRT", 2017; onnxruntime.quantization does the same). */
static double divergence_of(const double *n, int count, int low, int high, int levels)
{
    static double p[ORT_HISTOGRAM_BINS], q[ORT_HISTOGRAM_BINS];
    double all = 0, kept = 0, sum = 0;
    for (int k = low; k < high; k++)
        p[k] = n[k], q[k] = 0, kept += n[k];
    for (int k = 0; k < count; k++) {
        all += n[k];
        p[k < low ? low : k >= high ? high - 1 : k] += k < low || k >= high ? n[k] : 0;
    }
    for (int level = 0; level < levels; level++) {
        int from = low + level * (high - low) / levels, held = 0;
        int to = low + (level + 1) * (high - low) / levels;
        double total = 0;
        for (int k = from; k < to; k++)
            total += n[k], held += n[k] > 0;
        for (int k = from; k < to; k++)
            q[k] = n[k] > 0 ? total / held : 0;
    }
    for (int k = low; k < high && kept > 0; k++)
        if (p[k] > 0)
            sum += p[k] / all * log(p[k] / all / (q[k] > 0 ? q[k] / kept : 1e-12));
    return kept > 0 ? sum : INFINITY;
}

/* The range has the least divergence of all that clip both sides at one distance from 0. */
static void entropy(test_state *test)
{
    static double n[ORT_HISTOGRAM_BINS];
    for (int kind = 0; kind < 4; kind++) {
        counted c;
        ort_codes_range codes;
        const size_t size = 40000;
        fill(kind, size);
        ort_histogram_add(&start(&c)->h, numbers, size, NULL);
        ort_codes_range_of(ORT_DTYPE_UINT8, false, false, &codes);
        ort_range r = chosen(&c, ORT_OBSERVE_ENTROPY, 0, false, &codes);
        int first = 0, count = ort_histogram_span(&c.h, &first);
        const double width = ldexp(1, c.h.exponent);
        for (int k = 0; k < count; k++)
            n[k] = (double)ort_histogram_bin(&c.h, first + k);
        n[-first] += (double)c.h.zeros;
        const int below = -first, above = count + first, far = below > above ? below : above;
        double best = INFINITY, own = INFINITY;
        for (int t = 128; t >= 1; t--) {
            const int reach = (far * t + 127) / 128;
            const int low = below > reach ? below - reach : 0;
            const int high = above > reach ? below + reach : count;
            if (high - low < 256)
                break;
            const double d = divergence_of(n, count, low, high, 256);
            best = fmin(best, d);
            if ((double)r.most <= (first + high) * width &&
                (double)r.most > (first + high - far / 128 - 2) * width)
                own = fmin(own, d);
        }
        CHECK(own <= best * (1 + 1e-9));
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, orders);
    RUN(&test, grids);
    RUN(&test, fits);
    RUN(&test, responses);
    RUN(&test, ranges);
    RUN(&test, entropy);
    RUN(&test, tiny); /* last: what it draws is missing behind it */
    return test.failures != 0;
}
