/* test_depthwise.c - depthwise kernels of every tier against sums in double: each output within
 * the bound of its products' rounding, (taps + 2) u (|bias| + sum |x w|), u = 2^-24, NaN and
 * infinity where the formula has them; the same bits however rows are cut, and from a ring of rows.
 * Maxima of the same windows.
 */
#include <math.h>
#include <stdlib.h>

#include "kernel/kernel.h"
#include "test.h"

enum { SIDE_MAX = 40, ROWS_MAX = 41, BLOCK_MAX = 16, TAPS_MAX = 169 };

typedef struct window_case {
    int64_t height, width, kernel[2], stride[2], dilation[2], pads[4];
} window_case;

static const window_case cases[] = {
    {9, 13, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {7, 7, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}},
    {12, 30, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
    {8, 9, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
    {1, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {2, 3, {3, 3}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
    {3, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
    {6, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {7, 2, {3, 3}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
    {9, 6, {3, 3}, {1, 1}, {1, 1}, {0, 1, 0, 0}},
    {5, 2, {3, 3}, {1, 2}, {1, 1}, {1, 2, 1, 0}},
    {11, 14, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
    {15, 15, {5, 5}, {2, 2}, {1, 1}, {2, 2, 2, 2}},
    {14, 17, {5, 5}, {2, 2}, {1, 1}, {1, 1, 2, 2}},
    {2, 2, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
    {1, 2, {5, 5}, {1, 1}, {1, 1}, {4, 4, 4, 4}},
    {4, 9, {5, 5}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
    {9, 16, {7, 7}, {1, 1}, {1, 1}, {3, 3, 3, 3}},
    {9, 16, {7, 7}, {2, 2}, {1, 1}, {3, 5, 3, 1}},
    {3, 3, {7, 7}, {1, 1}, {1, 1}, {3, 3, 3, 3}},
    {6, 20, {3, 5}, {1, 1}, {2, 1}, {2, 2, 2, 2}},
    {9, 11, {3, 3}, {1, 1}, {1, 2}, {1, 2, 1, 2}},
    {9, 11, {3, 3}, {3, 1}, {4, 1}, {4, 1, 4, 1}},
    {5, 21, {3, 3}, {1, 3}, {1, 1}, {1, 1, 1, 1}},
    {1, 40, {1, 31}, {1, 1}, {1, 1}, {0, 15, 0, 15}},
    {1, 33, {1, 3}, {1, 1}, {1, 1}, {0, 2, 0, 0}},
    {1, 40, {1, 9}, {1, 1}, {1, 2}, {0, 8, 0, 8}},
    {1, 38, {1, 5}, {1, 2}, {1, 1}, {0, 0, 0, 3}},
    {20, 1, {7, 1}, {1, 1}, {1, 1}, {3, 0, 3, 0}},
    {3, 4, {3, 3}, {1, 1}, {1, 1}, {1, 4, 1, 5}},
    {12, 5, {9, 3}, {1, 1}, {1, 1}, {4, 1, 4, 1}},
    {13, 12, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
    {13, 12, {2, 2}, {1, 1}, {1, 1}, {0, 1, 1, 0}},
    {13, 13, {9, 9}, {1, 1}, {1, 1}, {4, 4, 4, 4}},
    {14, 15, {13, 13}, {1, 1}, {1, 1}, {6, 6, 6, 6}},
};

typedef struct planes {
    float x[SIDE_MAX * SIDE_MAX * BLOCK_MAX], w[TAPS_MAX * BLOCK_MAX], bias[BLOCK_MAX];
    float y[ROWS_MAX * 60 * BLOCK_MAX], again[ROWS_MAX * 60 * BLOCK_MAX];
} planes;

static int64_t outputs(const window_case *c, int axis, int64_t in)
{
    int64_t reach = (c->kernel[axis] - 1) * c->dilation[axis];
    return (in + c->pads[axis] + c->pads[axis + 2] - reach - 1) / c->stride[axis] + 1;
}

static void fill(planes *p, bool specials)
{
    for (size_t i = 0; i < sizeof p->x / sizeof *p->x; i++)
        p->x[i] = sinf((float)i * 0.731f) * (float)(1 + i % 7);
    for (size_t i = 0; i < sizeof p->w / sizeof *p->w; i++)
        p->w[i] = cosf((float)i * 0.377f);
    for (int i = 0; i < BLOCK_MAX; i++)
        p->bias[i] = (float)(i - 5) / 3;
    for (size_t i = 3; specials && i < sizeof p->x / sizeof *p->x; i += 97)
        p->x[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
}

static ort_blocked_band call_of(const window_case *c, const planes *p, int64_t block, float *y)
{
    ort_blocked_band d = {.x = p->x, .x_row = c->width * block, .ring = c->height,
                               .height = c->height, .width = c->width, .w = p->w,
                               .rows = outputs(c, 0, c->height)};
    memcpy(d.kernel, c->kernel, sizeof d.kernel);
    memcpy(d.stride, c->stride, sizeof d.stride);
    memcpy(d.dilation, c->dilation, sizeof d.dilation);
    memcpy(d.begin, c->pads, sizeof d.begin);
    d.out = (ort_blocked_out){.y = y, .bias = p->bias, .lo = -INFINITY, .hi = INFINITY,
                              .count = outputs(c, 1, c->width)};
    return d;
}

/* One output in double, and the sum of the magnitudes. */
static double exact(const window_case *c, const planes *p, int64_t block, int64_t at, double *size)
{
    int64_t width = outputs(c, 1, c->width), channel = at % block;
    int64_t oy = at / block / width, ox = at / block % width;
    double sum = (double)p->bias[channel];
    *size = fabs(sum);
    for (int64_t t = 0; t < c->kernel[0] * c->kernel[1]; t++) {
        int64_t iy = oy * c->stride[0] - c->pads[0] + t / c->kernel[1] * c->dilation[0];
        int64_t ix = ox * c->stride[1] - c->pads[1] + t % c->kernel[1] * c->dilation[1];
        if (iy < 0 || iy >= c->height || ix < 0 || ix >= c->width)
            continue;
        double product = (double)p->x[(iy * c->width + ix) * block + channel] *
                         (double)p->w[t * block + channel];
        sum += product;
        *size += fabs(product);
    }
    return sum;
}

static bool is_right(const window_case *c, const planes *p, int64_t block)
{
    int64_t count = outputs(c, 0, c->height) * outputs(c, 1, c->width) * block;
    for (int64_t i = 0; i < count; i++) {
        double size, sum = exact(c, p, block, i, &size), y = (double)p->y[i];
        double bound = (double)(c->kernel[0] * c->kernel[1] + 2) * ldexp(size, -24);
        bool same = isnan(sum) ? isnan(y) : isinf(sum) ? y == sum : fabs(y - sum) <= bound;
        if (!same) {
            printf("# output %lld is %g, expected %g within %g\n", (long long)i, y, sum, bound);
            return false;
        }
    }
    return true;
}

/* Rows cut in pieces of `piece` give the same bits. */
static bool cuts_agree(const window_case *c, planes *p, const ort_blocked_kernels *k, int64_t piece)
{
    ort_blocked_band d = call_of(c, p, k->block, p->again);
    int64_t rows = d.rows, row = d.out.count * k->block;
    for (d.first_row = 0; d.first_row < rows; d.first_row += piece) {
        d.rows = rows - d.first_row < piece ? rows - d.first_row : piece;
        d.out.y = p->again + d.first_row * row;
        k->depthwise(&d);
    }
    return !memcmp(p->y, p->again, (size_t)(rows * row) * sizeof(float));
}

typedef bool check_fn(const window_case *c, planes *p, const ort_blocked_kernels *k);

static bool on_all_tiers(planes *p, check_fn *check)
{
    for (int t = 0; ort_kernel_tier_at(t); t++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(t)->name);
        for (size_t i = 0; k && i < 2 * sizeof cases / sizeof *cases; i++)
            if (!check(&cases[i / 2], p, i % 2 ? &k->blocked16 : &k->blocked8)) {
                printf("# %s, block %d, case %zu\n", k->isa, i % 2 ? 16 : 8, i / 2);
                return false;
            }
    }
    return true;
}

static bool sums(const window_case *c, planes *p, const ort_blocked_kernels *k)
{
    ort_blocked_band d = call_of(c, p, k->block, p->y);
    k->depthwise(&d);
    return is_right(c, p, k->block) && cuts_agree(c, p, k, 1) && cuts_agree(c, p, k, 3);
}

static void rows_and_edges(test_state *test)
{
    planes *p = malloc(sizeof *p);
    CHECK(p);
    fill(p, false);
    bool ok = on_all_tiers(p, sums);
    free(p);
    CHECK(ok);
}

static bool specials(const window_case *c, planes *p, const ort_blocked_kernels *k)
{
    ort_blocked_band d = call_of(c, p, k->block, p->y);
    k->depthwise(&d);
    return is_right(c, p, k->block);
}

static void nan_and_infinity(test_state *test)
{
    planes *p = malloc(sizeof *p);
    CHECK(p);
    fill(p, true);
    bool ok = on_all_tiers(p, specials);
    free(p);
    CHECK(ok);
}

/* Clamped, a residual added: as the same sum without them, then clamped. NaN stays. */
static bool ends(const window_case *c, planes *p, const ort_blocked_kernels *k)
{
    ort_blocked_band d = call_of(c, p, k->block, p->y);
    int64_t count = d.rows * d.out.count * k->block;
    k->depthwise(&d);
    d.out.y = p->again;
    d.out.lo = -1;
    d.out.hi = 2;
    k->depthwise(&d);
    for (int64_t i = 0; i < count; i++) {
        float y = p->y[i] < -1 ? -1 : p->y[i] > 2 ? 2 : p->y[i];
        if (isnan(y) ? !isnan(p->again[i]) : y != p->again[i])
            return false;
    }
    d.out.lo = -INFINITY;
    d.out.hi = INFINITY;
    d.out.z = p->y;
    k->depthwise(&d);
    for (int64_t i = 0; i < count; i++)
        if (isfinite(p->y[i]) && !(fabsf(p->again[i] - 2 * p->y[i]) <= 1e-4f))
            return false;
    return true;
}

static void epilogues(test_state *test)
{
    planes *p = malloc(sizeof *p);
    CHECK(p);
    fill(p, true);
    bool ok = on_all_tiers(p, ends);
    free(p);
    CHECK(ok);
}

/* A producer that keeps only as many rows as the next output row needs. */
static bool ring(const window_case *c, planes *p, const ort_blocked_kernels *k)
{
    static float rows[SIDE_MAX * SIDE_MAX * BLOCK_MAX];
    bool streams = c->kernel[1] >= 3 && c->kernel[1] <= 7 && c->kernel[1] % 2 &&
                   c->kernel[0] <= ORT_BLOCKED_MAX_ROWS && c->stride[1] <= 2 &&
                   c->dilation[1] == 1 && c->pads[1] < c->kernel[1] && c->pads[3] < c->kernel[1];
    ort_blocked_band d = call_of(c, p, k->block, p->y);
    int64_t end = d.rows, row = d.out.count * k->block, given = 0;
    int64_t reach = (c->kernel[0] - 1) * c->dilation[0] + 1;
    if (!streams || reach > c->height)
        return true;
    k->depthwise(&d);
    memset(rows, 0xff, sizeof rows); /* what was never given is no number */
    d.x = rows;
    d.ring = reach;
    d.rows = 1;
    for (d.first_row = 0; d.first_row < end; d.first_row++) {
        int64_t needed = d.first_row * c->stride[0] - c->pads[0] + reach;
        for (; given < needed && given < c->height; given++)
            memcpy(rows + given % reach * d.x_row, p->x + given * d.x_row,
                   (size_t)d.x_row * sizeof *rows);
        d.out.y = p->again + d.first_row * row;
        k->depthwise(&d);
    }
    return !memcmp(p->y, p->again, (size_t)(end * row) * sizeof(float));
}

/* The largest of each window; NaN wins; -infinity where nothing is. */
static bool is_largest(const window_case *c, const planes *p, int64_t block)
{
    int64_t width = outputs(c, 1, c->width), count = outputs(c, 0, c->height) * width * block;
    for (int64_t at = 0; at < count; at++) {
        int64_t channel = at % block, ox = at / block % width, oy = at / block / width;
        float top = -INFINITY;
        for (int64_t t = 0; t < c->kernel[0] * c->kernel[1] && !isnan(top); t++) {
            int64_t iy = oy * c->stride[0] - c->pads[0] + t / c->kernel[1] * c->dilation[0];
            int64_t ix = ox * c->stride[1] - c->pads[1] + t % c->kernel[1] * c->dilation[1];
            if (iy < 0 || iy >= c->height || ix < 0 || ix >= c->width)
                continue;
            float x = p->x[(iy * c->width + ix) * block + channel];
            top = x > top || isnan(x) ? x : top;
        }
        if (isnan(top) ? !isnan(p->y[at]) : p->y[at] != top) {
            printf("# output %lld is %g, expected %g\n", (long long)at, (double)p->y[at],
                   (double)top);
            return false;
        }
    }
    return true;
}

/* From whole planes, and from no more rows than the next output row needs. */
static bool maxima(const window_case *c, planes *p, const ort_blocked_kernels *k)
{
    static float rows[SIDE_MAX * SIDE_MAX * BLOCK_MAX];
    ort_blocked_band d = call_of(c, p, k->block, p->y);
    int64_t end = d.rows, row = d.out.count * k->block, given = 0;
    int64_t reach = (c->kernel[0] - 1) * c->dilation[0] + 1;
    k->max_pool(&d);
    if (!is_largest(c, p, k->block))
        return false;
    if (reach > c->height)
        return true;
    memset(rows, 0xff, sizeof rows); /* what was never given is no number */
    d.x = rows;
    d.ring = reach;
    d.rows = 1;
    for (d.first_row = 0; d.first_row < end; d.first_row++) {
        int64_t needed = d.first_row * c->stride[0] - c->pads[0] + reach;
        for (; given < needed && given < c->height; given++)
            memcpy(rows + given % reach * d.x_row, p->x + given * d.x_row,
                   (size_t)d.x_row * sizeof *rows);
        d.out.y = p->y + d.first_row * row;
        k->max_pool(&d);
    }
    return is_largest(c, p, k->block);
}

static void largest(test_state *test)
{
    planes *p = malloc(sizeof *p);
    CHECK(p);
    fill(p, false);
    bool ok = on_all_tiers(p, maxima);
    fill(p, true);
    ok = ok && on_all_tiers(p, maxima);
    free(p);
    CHECK(ok);
}

static void rings(test_state *test)
{
    planes *p = malloc(sizeof *p);
    CHECK(p);
    fill(p, false);
    bool ok = on_all_tiers(p, ring);
    free(p);
    CHECK(ok);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, rows_and_edges);
    RUN(&test, nan_and_infinity);
    RUN(&test, epilogues);
    RUN(&test, rings);
    RUN(&test, largest);
    return test.failures != 0;
}
