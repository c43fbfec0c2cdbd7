/* test_rows.c - vectors against rows read in place: every tier keeps the bound of a sum,
 * (terms + 2) u sum |a| |b|, u = 2^-24, and touches nothing beside the rows and the output; four
 * vectors at once give the bits of each alone. */
#include <math.h>
#include <stdlib.h>

#include "kernel/kernel.h"
#include "test.h"

enum { COUNT_MAX = 21, N_MAX = 130, STEP = 131 };

static float a[N_MAX], weights[COUNT_MAX], rows[COUNT_MAX * STEP], out[N_MAX + 1];

static float draw(void)
{
    return (float)(rand() % 2001 - 1000) * 1e-3f;
}

static bool within(double error, int64_t terms, double magnitude)
{
    return fabs(error) <= (double)(terms + 2) * ldexp(magnitude, -24);
}

static bool dots_hold(const ort_gemm_kernels *g, int64_t count, int64_t n)
{
    out[count] = 7.0f;
    g->dots_f32(count, n, a, rows, STEP, 0.5f, out);
    for (int64_t j = 0; j < count; j++) {
        double exact = 0, magnitude = 0;
        for (int64_t i = 0; i < n; i++) {
            exact += 0.5 * (double)a[i] * (double)rows[j * STEP + i];
            magnitude += 0.5 * fabs((double)a[i] * (double)rows[j * STEP + i]);
        }
        if (!within((double)out[j] - exact, n, magnitude))
            return false;
    }
    return out[count] == 7.0f;
}

/* The vectors are rows, too, the first ones; results lie 5 apart. */
static bool dots4_hold(const ort_gemm_kernels *g, int64_t count, int64_t n)
{
    float four[5 * COUNT_MAX], one[COUNT_MAX];
    for (int i = 0; i < 5 * COUNT_MAX; i++)
        four[i] = 7.0f;
    g->dots4_f32(count, n, rows, STEP, rows, STEP, four, 5);
    for (int64_t i = 0; i < 5; i++) {
        if (i < 4)
            g->dots_f32(count, n, rows + i * STEP, rows, STEP, 1.0f, one);
        for (int64_t j = 0; j < COUNT_MAX; j++)
            if (four[5 * j + i] != (i < 4 && j < count ? one[j] : 7.0f))
                return false;
    }
    return true;
}

static bool blend_holds(const ort_gemm_kernels *g, int64_t count, int64_t n)
{
    out[n] = 7.0f;
    g->blend_f32(count, n, weights, rows, STEP, out);
    for (int64_t i = 0; i < n; i++) {
        double exact = 0, magnitude = 0;
        for (int64_t j = 0; j < count; j++) {
            exact += (double)weights[j] * (double)rows[j * STEP + i];
            magnitude += fabs((double)weights[j] * (double)rows[j * STEP + i]);
        }
        if (!within((double)out[i] - exact, count, magnitude))
            return false;
    }
    return out[n] == 7.0f;
}

static void bounds(test_state *test)
{
    const int64_t sizes[] = {1, 3, 4, 8, 15, 16, 17, 31, 33, 48, 64, 80, 130};
    const ort_kernel_tier *tier;
    for (int i = 0; i < N_MAX; i++)
        a[i] = draw();
    for (int i = 0; i < COUNT_MAX; i++)
        weights[i] = draw();
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        for (size_t s = 0; k && s < sizeof sizes / sizeof *sizes; s++)
            for (int64_t count = 1; count <= COUNT_MAX; count++) {
                for (int i = 0; i < COUNT_MAX * STEP; i++)
                    rows[i] = i % STEP < sizes[s] ? draw() : NAN;
                CHECK(dots_hold(&k->gemm, count, sizes[s]));
                CHECK(blend_holds(&k->gemm, count, sizes[s]));
                CHECK(dots4_hold(&k->gemm, count, sizes[s]));
            }
        printf("# %s%s\n", tier->name, k ? "" : " isn't there");
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, bounds);
    return test.failures != 0;
}
