/* test_nbits.c - products with weights of 4 bits keep their error bounds on every tier.
 *
 * With u = 2^-24, s, q, z the scale, weight and zero point of an element, an output differs from
 * the exact one by at most
 *
 *     (k + 8) u sum |s| (q + |z|) |a|            a in floats: roundings of a sum of products
 *     sum |s| |q - z| e unit + the same          a in fixed point: unit = largest |a| of a run / L
 *
 * where e is 0.5 for one byte an element (L = 127), and 1.5 for three (L = 127 * 2^16), as 1 / unit
 * and a product with it are rounded before. Three bytes are held to the mean error of floats, too.
 */
#include <math.h>
#include <stdlib.h>

#include "kernel/kernel.h"
#include "test.h"

enum { K_MAX = 520, N_MAX = 40, ROWS = 3 };

typedef struct problem {
    int64_t k, n, block, blocks;
    bool zeros;
    float a[ROWS][K_MAX], scale[N_MAX * K_MAX / 16], zero[N_MAX * K_MAX / 16], bias[N_MAX];
    uint8_t q[N_MAX * K_MAX / 2];
    float y[ROWS][N_MAX];
} problem;

typedef struct memory { /* what the kernels want beside the problem */
    int32_t words[(N_MAX + 16) * K_MAX / 8], fixed[ROWS][K_MAX];
    float scale[(N_MAX + 16) * K_MAX / 16], zero[(N_MAX + 16) * K_MAX / 16];
    float a[ROWS][K_MAX], sums[ROWS * K_MAX / 16], units[ROWS * K_MAX / 16];
} memory;

static unsigned state = 1;

static unsigned draw(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static float draw_float(void)
{
    return (float)((int)(draw() % 2001) - 1000) * 1e-3f;
}

static void fill(problem *p, int64_t k, int64_t n, int64_t block, bool zeros)
{
    *p = (problem){.k = k, .n = n, .block = block, .blocks = (k + block - 1) / block,
                   .zeros = zeros};
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < k; i++)
            p->a[r][i] = draw_float() * ldexpf(1, (int)(i / block % 7) - 3) * (draw() % 5 ? 1 : 0);
    for (int64_t i = 0; i < n * p->blocks; i++) {
        p->scale[i] = draw_float();
        p->zero[i] = zeros ? (float)(draw() % 16) : 8.0f;
    }
    for (int64_t i = 0; i < n; i++)
        p->bias[i] = draw_float();
    for (int64_t i = 0; i < n * p->blocks * block / 2; i++)
        p->q[i] = (uint8_t)draw();
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Packed for these kernels; false when a row doesn't go into fixed point. */
static bool pack(const ort_gemm_kernels *g, problem *p, int digits, memory *m, ort_nbits *w)
{
    int64_t lanes = g->nbits_lanes, groups = (p->n + lanes - 1) / lanes;
    int64_t row_words = p->blocks * p->block / 8, run = min_of(p->block / 8, 16);
    int64_t runs = row_words / run, plane = (row_words + lanes - 1) / lanes * lanes;
    memset(m, 0, sizeof *m);
    *w = (ort_nbits){.words = m->words, .scale = m->scale, .zero = p->zeros ? m->zero : NULL,
                     .bias = p->bias, .n = p->n, .row_words = row_words, .run_words = run,
                     .block_runs = p->block / 8 / run, .rows = ROWS, .a = m->a[0],
                     .sums = m->sums, .digits = digits, .fixed = m->fixed[0], .units = m->units,
                     .fixed_row = digits * (2 * plane + runs), .y = p->y[0], .y_row = N_MAX};
    for (int64_t i = 0; i < groups; i++)
        g->nbits4_pack(p->n, row_words, p->q, i * lanes, m->words + i * lanes * row_words);
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t b = 0; b < p->blocks; b++) {
            int64_t to = (j / lanes * p->blocks + b) * lanes + j % lanes;
            m->scale[to] = p->scale[j * p->blocks + b];
            m->zero[to] = p->zero[j * p->blocks + b];
        }
    for (int64_t r = 0; r < ROWS; r++) {
        float *a = m->a[0] + r * 8 * row_words, *sums = m->sums + r * runs;
        if (digits == 0)
            g->nbits4_arrange(p->k, w, p->a[r], a, sums);
        else if (!g->nbits4_fix(p->k, w, p->a[r], m->fixed[0] + r * w->fixed_row,
                                m->units + r * runs, sums))
            return false;
    }
    return true;
}

static int nibble(const problem *p, int64_t j, int64_t k)
{
    return p->q[(j * p->blocks * p->block + k) / 2] >> (k % 2 * 4) & 15;
}

static double largest(const problem *p, int64_t row, int64_t k)
{
    int64_t run = min_of(p->block, 128), first = k / run * run;
    double most = 0;
    for (int64_t i = first; i < min_of(first + run, p->k); i++)
        most = fmax(most, fabs((double)p->a[row][i]));
    return most;
}

/* Worst error as a part of its bound; *mean receives the root mean square of errors. */
static double worst_of(const problem *p, int digits, double *mean)
{
    const double u = ldexp(1, -24), e = digits == 1 ? 0.5 : 1.5;
    const double limit = digits == 1 ? 127 : 127 * 65536.0;
    double worst = 0, squares = 0;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t j = 0; j < p->n; j++) {
            double exact = (double)p->bias[j], bound = u * fabs(exact);
            for (int64_t k = 0; k < p->k; k++) {
                int64_t b = j * p->blocks + k / p->block;
                double s = (double)p->scale[b], z = (double)p->zero[b], a = (double)p->a[r][k];
                double q = nibble(p, j, k);
                exact += s * (q - z) * a;
                bound += (double)(p->k + 8) * u * fabs(s * (q + z) * a);
                if (digits)
                    bound += fabs(s * (q - z)) * e * largest(p, r, k) / limit;
            }
            double error = (double)p->y[r][j] - exact;
            worst = fmax(worst, bound > 0 ? fabs(error) / bound : fabs(error) * 1e30);
            squares += error * error;
        }
    *mean = sqrt(squares);
    return worst;
}

static problem p;
static memory m;

static double run(const ort_gemm_kernels *g, int digits, double *mean)
{
    ort_nbits w;
    if (!pack(g, &p, digits, &m, &w))
        return INFINITY;
    memset(p.y, 0xff, sizeof p.y);
    if (digits)
        g->nbits4_fixed(0, p.n, &w);
    else
        g->nbits4(0, p.n, &w);
    return worst_of(&p, digits, mean);
}

static void error_bounds(test_state *test)
{
    const int64_t sizes[][3] = {{16, 1, 16}, {40, 3, 16}, {64, 17, 32}, {288, 40, 32},
                                {130, 33, 64}, {512, 31, 256}, {500, 16, 512}, {96, 5, 128}};
    const ort_kernel_tier *tier;
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        double worst[4] = {0}, means[4] = {0};
        for (size_t i = 0; k && i < 2 * sizeof sizes / sizeof *sizes; i++) {
            const int64_t *size = sizes[i / 2];
            fill(&p, size[0], size[1], size[2], i % 2);
            for (int digits = 0; digits <= 3; digits += digits ? 2 : 1) {
                double mean = 0;
                worst[digits] = fmax(worst[digits], run(&k->gemm, digits, &mean));
                means[digits] += mean;
            }
        }
        if (!k)
            continue;
        printf("# %s: worst error of its bound %.3f, one byte %.3f, three bytes %.3f and %.2f of "
               "the mean error of floats\n",
               tier->name, worst[0], worst[1], worst[3], means[3] / means[0]);
        CHECK(worst[0] <= 1 && worst[1] <= 1 && worst[3] <= 1 && means[3] <= 1.5 * means[0]);
    }
}

/* Columns come out alike however they are cut into calls. */
static void cuts(test_state *test)
{
    const ort_kernel_tier *tier;
    static float whole[ROWS][N_MAX];
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        for (int digits = 0; k && digits <= 3; digits += digits ? 2 : 1) {
            ort_nbits w;
            fill(&p, 288, N_MAX, 32, digits == 3);
            CHECK(pack(&k->gemm, &p, digits, &m, &w));
            void (*product)(int64_t, int64_t, const ort_nbits *) =
                digits ? k->gemm.nbits4_fixed : k->gemm.nbits4;
            product(0, N_MAX, &w);
            memcpy(whole, p.y, sizeof whole);
            memset(p.y, 0, sizeof p.y);
            for (int64_t j = 0; j < N_MAX; j += k->gemm.nbits_lanes)
                product(j, min_of(j + k->gemm.nbits_lanes, N_MAX), &w);
            CHECK(!memcmp(whole, p.y, sizeof whole));
        }
    }
}

/* Rows that a unit can't hold stay in floats. */
static void refused(test_state *test)
{
    const float values[] = {INFINITY, -INFINITY, NAN, 1e35f, 1e-35f};
    const ort_kernel_tier *tier;
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        for (size_t i = 0; k && i < sizeof values / sizeof *values; i++) {
            ort_nbits w;
            fill(&p, 40, 3, 16, false);
            memset(p.a[1] + 32, 0, 8 * sizeof(float));
            CHECK(pack(&k->gemm, &p, 3, &m, &w));
            p.a[1][37] = values[i];
            CHECK(!pack(&k->gemm, &p, 3, &m, &w));
        }
    }
}

static void widened(test_state *test)
{
    const ort_kernel_tier *tier;
    static float out[K_MAX * 16];
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        ort_nbits w;
        if (!k)
            continue;
        const int64_t lanes = k->gemm.nbits_lanes;
        fill(&p, 130, 33, 64, true);
        CHECK(pack(&k->gemm, &p, 0, &m, &w));
        for (int64_t group = 0; group * lanes < p.n; group++) {
            k->gemm.nbits4_widen(&w, group, 48, 82, out, lanes);
            for (int64_t i = 0; i < 82 * lanes && group * lanes + i % lanes < p.n; i++) {
                int64_t j = group * lanes + i % lanes, at = 48 + i / lanes;
                float z = p.zero[j * p.blocks + at / 64], s = p.scale[j * p.blocks + at / 64];
                CHECK(out[i] == ((float)nibble(&p, j, at) - z) * s);
            }
        }
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, error_bounds);
    RUN(&test, cuts);
    RUN(&test, refused);
    RUN(&test, widened);
    return test.failures != 0;
}
