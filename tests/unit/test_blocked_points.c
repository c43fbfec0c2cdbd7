/* test_blocked_points.c - convolutions of single pixels have kernels of their own, and windows are
 * put side by side for them: both give the bits that the loop of any window gives. So do those that
 * leave out channels that are zero, where all weights are finite.
 */
#include <math.h>

#include "base/checked.h"
#include "kernel/kernel.h"
#include "op/blocked/blocked_op.h"
#include "op/blocked/blocked_patch.h"
#include "test.h"

enum { CHANNELS = 64, PIXELS = 29, PLANE = 17 * 17, TAPS = 25, MAPS = 64 };

static float number_at(uint32_t i)
{
    uint32_t v = (i + 11) * 2654435761u;
    v ^= v >> 15;
    v *= 2246822519u;
    v ^= v >> 13;
    return (float)(int)(v >> 8) / 8388608.0f - 1;
}

static void fill(float *to, int64_t count, uint32_t from)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = number_at((uint32_t)i + from);
}

/* Every block size of every tier; "common256" has AVX2's blocks of 16 where another has wider. */
static const ort_blocked_kernels *kernels_at(int i)
{
    static const char *const tiers[] = {"scalar", "avx2", "common256", "avx512"};
    const ort_kernels *k = ort_kernels_get(tiers[i / 2]);
    return !k ? NULL : i % 2 ? &k->blocked16 : &k->blocked8;
}
enum { KERNELS = 8 };

static bool same_bits(const float *a, const float *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(a + i, b + i, sizeof *a))
            return false;
    return true;
}

/* ---- kernels */

enum { WITH_BIAS = 1, WITH_Z = 2, ACCUMULATED = 4, CLAMPED = 8, FORMS = 16 };

/* Is what a kernel of single pixels puts into c's y what the loop of any window puts into
 * `windows`? A leak of 1 changes nothing, and nobody has a kernel of its own for it. */
static bool agrees(const ort_blocked_kernels *k, ort_blocked_conv *c, int form, const float *bias,
                   const float *z, float *windows, int64_t outputs)
{
    static float ones[MAPS];
    float *y = c->out.y;
    for (int i = 0; i < MAPS; i++)
        ones[i] = 1;
    c->out.lo = form & CLAMPED ? -0.5f : -INFINITY;
    c->out.hi = form & CLAMPED ? 0.75f : INFINITY;
    c->out.bias = form & WITH_BIAS ? bias : NULL;
    c->out.z = form & WITH_Z ? z : NULL;
    c->out.accumulate = form & ACCUMULATED;
    k->conv(c);
    c->out.y = windows;
    c->out.slope = ones;
    c->finite = false;
    k->conv(c);
    return same_bits(y, windows, outputs);
}

static bool points_agree(const ort_blocked_kernels *k, int64_t count, int64_t channels,
                         int64_t vectors, int form)
{
    static float x[CHANNELS * PIXELS], w[CHANNELS * MAPS], bias[MAPS], z[MAPS * PIXELS];
    static float points[MAPS * PIXELS], windows[MAPS * PIXELS];
    const int64_t block = k->block, outputs = MAPS * PIXELS;
    fill(x, CHANNELS * PIXELS, 0);
    fill(w, CHANNELS * MAPS, 5000);
    fill(bias, MAPS, 10000);
    fill(z, outputs, 20000);
    fill(points, outputs, 30000);
    fill(windows, outputs, 30000);
    ort_blocked_conv c = {
        .window = {.x = x, .width = PIXELS, .rows = 1, .columns = 1, .stride = 1, .dilation = 1},
        .out = {.y = points, .y_block = PIXELS * block, .count = count},
        .x_block = PIXELS * block, .channels = channels, .w = w, .w_rows = 1, .vectors = vectors};
    c.window.start = PIXELS - count;
    return agrees(k, &c, form, bias, z, windows, outputs);
}

static void kernels(test_state *test)
{
    for (int i = 0; i < KERNELS; i++) {
        const ort_blocked_kernels *k = kernels_at(i);
        if (!k)
            continue;
        const int64_t least = ort_max_i64(k->block / k->vector, 1);
        int64_t wrong = 0;
        for (int64_t count = 1; count <= PIXELS; count++)
            for (int64_t channels = k->block / 2 - 1; channels <= CHANNELS; channels += 3)
                for (int64_t vectors = least; vectors <= ort_min_i64(4, MAPS / k->vector);
                     vectors += least)
                    for (int form = 0; form < FORMS; form++)
                        wrong += !points_agree(k, count, channels, vectors, form);
        if (wrong)
            printf("# kernels %d: %lld\n", i, (long long)wrong);
        CHECK(wrong == 0);
    }
}

/* ---- zeros */

enum { SPARSE_PIXELS = 100 };

/* Where zeros are among the numbers. */
typedef enum sparsity { EVERYWHERE, BY_CHANNEL, BY_TURNS, AT_FIRST, TINY, SPARSITIES } sparsity;

static bool is_zero(sparsity which, int64_t c, int64_t pixel)
{
    switch (which) {
    case EVERYWHERE: return true;
    case BY_CHANNEL: return (c * 7 + pixel / 11) % 3 > 0;
    case BY_TURNS: return (c + pixel) % 2 > 0;
    case AT_FIRST: return pixel < 50 && c % 2 > 0;
    default: return c % 3 > 0;
    }
}

/* Zeros of either sign; behind the last channel stand numbers that nobody may read. Products of
 * tiny numbers are zeros of either sign. */
static void fill_sparse(const ort_blocked_kernels *k, float *x, int64_t channels, sparsity which)
{
    const int64_t block = k->block;
    for (int64_t c = 0; c < (channels + block - 1) / block * block; c++)
        for (int64_t i = 0; i < SPARSE_PIXELS; i++) {
            float v = number_at((uint32_t)(c * 100 + i)) * (which == TINY ? 1e-30f : 1);
            if (is_zero(which, c, i))
                v = (c + i) % 3 ? 0.0f : -0.0f;
            x[(c / block * SPARSE_PIXELS + i) * block + c % block] = c < channels ? v : NAN;
        }
}

static bool zeros_agree(const ort_blocked_kernels *k, int64_t count, int64_t channels,
                        int64_t vectors, int form, sparsity which)
{
    static float x[CHANNELS * SPARSE_PIXELS], w[CHANNELS * MAPS], bias[MAPS];
    static float z[MAPS * SPARSE_PIXELS];
    static float listed[MAPS * SPARSE_PIXELS], windows[MAPS * SPARSE_PIXELS];
    const int64_t block = k->block, outputs = MAPS * SPARSE_PIXELS;
    fill_sparse(k, x, channels, which);
    fill(w, CHANNELS * MAPS, 5000);
    for (int64_t i = 0; i < CHANNELS * MAPS && which == TINY; i++)
        w[i] *= 1e-30f;
    fill(bias, MAPS, 10000);
    fill(z, outputs, 20000);
    fill(listed, outputs, 30000);
    fill(windows, outputs, 30000);
    ort_blocked_conv c = {
        .window = {.x = x, .width = SPARSE_PIXELS, .rows = 1, .columns = 1, .stride = 1,
                   .dilation = 1, .start = SPARSE_PIXELS - count},
        .out = {.y = listed, .y_block = SPARSE_PIXELS * block, .count = count},
        .x_block = SPARSE_PIXELS * block, .channels = channels, .w = w, .w_rows = 1,
        .vectors = vectors, .ahead = w, .ahead_step = form % 3 * 16, .finite = true};
    return agrees(k, &c, form, bias, z, windows, outputs);
}

/* Beside the loop of any window. */
static void zeros(test_state *test)
{
    for (int i = 2; i < KERNELS; i++) { /* the scalar tier leaves nothing out */
        const ort_blocked_kernels *k = kernels_at(i);
        if (!k)
            continue;
        const int64_t least = ort_max_i64(k->block / k->vector, 1);
        int64_t wrong = 0;
        for (int64_t count = 1; count <= SPARSE_PIXELS; count += count < 15 ? 1 : 21)
            for (int64_t channels = k->block - 1; channels < CHANNELS; channels += 16)
                for (int64_t vectors = least; vectors <= ort_min_i64(4, MAPS / k->vector);
                     vectors += least)
                    for (int form = 0; form < FORMS * SPARSITIES; form++)
                        wrong += !zeros_agree(k, count, channels + form % 2, vectors, form % FORMS,
                                              (sparsity)(form / FORMS));
        if (wrong)
            printf("# kernels %d: %lld\n", i, (long long)wrong);
        CHECK(wrong == 0);
    }
}

/* A weight that isn't finite makes NaN of a zero: nothing is left out. */
static void odd_weights(test_state *test)
{
    static float x[CHANNELS * PIXELS], w[CHANNELS * MAPS], y[MAPS * PIXELS];
    for (int i = 0; i < KERNELS; i++) {
        const ort_blocked_kernels *k = kernels_at(i);
        if (!k)
            continue;
        fill(w, CHANNELS * MAPS, 5000);
        memset(y, 0, sizeof y);
        w[17] = INFINITY;
        ort_blocked_conv c = {
            .window = {.x = x, .width = PIXELS, .rows = 1, .columns = 1, .stride = 1,
                       .dilation = 1},
            .out = {.y = y, .y_block = PIXELS * k->block, .count = PIXELS, .lo = -INFINITY,
                    .hi = INFINITY},
            .x_block = PIXELS * k->block, .channels = CHANNELS, .w = w, .w_rows = 1,
            .vectors = 2 * ort_max_i64(k->block / k->vector, 1),
            .finite = ort_blocked_finite(w, CHANNELS * MAPS)};
        k->conv(&c);
        int64_t nans = 0;
        for (int64_t n = 0; n < MAPS * PIXELS; n++)
            nans += isnan(y[n]);
        CHECK(nans == PIXELS);
    }
    w[17] = 1e30f;
    CHECK(ort_blocked_finite(w, CHANNELS * MAPS));
    w[17] = 2e38f; /* what a transform makes of it may not be */
    CHECK(!ort_blocked_finite(w, CHANNELS * MAPS));
    w[17] = 0;
    w[CHANNELS * MAPS - 1] = NAN;
    CHECK(!ort_blocked_finite(w, CHANNELS * MAPS));
}

/* ---- windows */

static const ort_window windows_of[] = {
    {.rank = 2, .in = {7, 7}, .out = {7, 7}, .kernel = {3, 3}, .stride = {1, 1},
     .dilation = {1, 1}, .begin = {1, 1}, .end = {1, 1}},
    {.rank = 2, .in = {14, 14}, .out = {7, 7}, .kernel = {3, 3}, .stride = {2, 2},
     .dilation = {1, 1}, .begin = {1, 1}, .end = {1, 1}},
    {.rank = 2, .in = {13, 11}, .out = {6, 4}, .kernel = {5, 3}, .stride = {2, 3},
     .dilation = {1, 2}, .begin = {2, 1}, .end = {1, 3}},
    {.rank = 2, .in = {3, 5}, .out = {7, 11}, .kernel = {5, 3}, .stride = {1, 1},
     .dilation = {1, 1}, .begin = {4, 4}, .end = {4, 4}}, /* windows wholly beside the plane */
    {.rank = 2, .in = {1, 17}, .out = {1, 9}, .kernel = {1, 5}, .stride = {1, 2},
     .dilation = {1, 1}, .begin = {0, 2}, .end = {0, 2}},
    {.rank = 2, .in = {16, 2}, .out = {12, 2}, .kernel = {3, 1}, .stride = {1, 1},
     .dilation = {2, 1}, .begin = {0, 0}, .end = {0, 0}},
    {.rank = 2, .in = {9, 9}, .out = {4, 4}, .kernel = {3, 3}, .stride = {2, 2},
     .dilation = {1, 1}, .begin = {0, 0}, .end = {0, 0}},
};

/* Pieces of `piece` pixels of a plane by single pixels, and row by row by windows. */
static bool patches_agree(const ort_blocked_kernels *k, const ort_window *w, int64_t channels,
                          int64_t piece)
{
    static float x[CHANNELS * PLANE], weight[CHANNELS * MAPS * TAPS], patch[CHANNELS * TAPS * 64];
    static float points[MAPS * PLANE], windows[MAPS * PLANE];
    const int64_t plane = w->out[0] * w->out[1], taps = w->kernel[0] * w->kernel[1];
    const int64_t block = k->block;
    ort_blocked_conv c = {
        .out = {.y_block = plane * block, .lo = -INFINITY, .hi = INFINITY},
        .channels = channels, .w = weight, .vectors = MAPS / k->vector};
    fill(x, CHANNELS * PLANE, 0);
    fill(weight, CHANNELS * MAPS * TAPS, 50000);
    fill(points, MAPS * PLANE, 7);
    fill(windows, MAPS * PLANE, 7);
    for (int64_t oy = 0; oy < w->out[0]; oy++) {
        int64_t in_row;
        ort_blocked_rows(w, oy, block, &c.window, &c.first_row, &in_row);
        c.window.x = x + in_row * w->in[1] * block;
        c.x_block = w->in[0] * w->in[1] * block;
        c.w_rows = w->kernel[0];
        c.out.y = windows + oy * w->out[1] * block;
        c.out.count = w->out[1];
        k->conv(&c);
    }
    c.window = (ort_blocked_window){.x = patch, .rows = 1, .columns = 1, .stride = 1,
                                    .dilation = 1};
    c.channels = channels * taps;
    c.w_rows = 1;
    c.first_row = 0;
    for (int64_t pixel = 0; pixel < plane; pixel += piece) {
        c.out.count = ort_min_i64(piece, plane - pixel);
        c.out.y = points + pixel * block;
        c.window.width = c.out.count;
        c.x_block = c.out.count * block;
        ort_blocked_patch(w, w->out[1], block, x, channels / block, pixel, c.out.count, patch);
        k->conv(&c);
    }
    return same_bits(points, windows, MAPS * PLANE);
}

static void patches(test_state *test)
{
    for (int i = 0; i < KERNELS; i++)
        for (size_t n = 0; kernels_at(i) && n < sizeof windows_of / sizeof *windows_of; n++)
            for (int64_t channels = 16; channels <= 48; channels += 16)
                for (int64_t piece = 1; piece <= 49; piece += 6) {
                    const bool same = patches_agree(kernels_at(i), &windows_of[n], channels, piece);
                    if (!same)
                        printf("# kernels %d, window %zu, %lld channels by %lld pixels\n", i, n,
                               (long long)channels, (long long)piece);
                    CHECK(same);
                }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, kernels);
    RUN(&test, zeros);
    RUN(&test, odd_weights);
    RUN(&test, patches);
    return test.failures != 0;
}
