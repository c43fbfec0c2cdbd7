/* test_nbits.c - products with weights of a few bits keep their error bounds on every tier.
 *
 * With u = 2^-24, s, q, z the scale, weight and zero point of an element, an output differs from
 * the exact one by at most
 *
 *     sum |s| |q - z| e unit + (k + 8) u sum |s| (q + |z|) |a|
 *
 * the second for roundings of a sum of products, the first for a in fixed point: unit = largest |a|
 * of a run / L, where e is 0.5 for one byte an element (L = 127), and 1.5 for three (L = 127 *
 * 2^16), as 1 / unit and a product with it are rounded before. Three bytes are held to the mean
 * error of a sum of floats, too.
 */
#include <math.h>
#include <stdlib.h>

#include "base/num.h"
#include "kernel/kernel.h"
#include "test.h"

enum { K_MAX = 520, N_MAX = 40, ROWS = 8, ROWS_MAX = 70 };

/* What stands beside the weights: no zero points, bytes, floats. */
enum { MIDDLE, BYTES, FLOATS, ZEROS };

typedef struct problem {
    int64_t k, n, block, blocks, rows;
    int bits, zeros, middle;
    bool half; /* scales are float16 */
    float a[ROWS_MAX][K_MAX], scale[N_MAX * K_MAX / 16], zero[N_MAX * K_MAX / 16], bias[N_MAX];
    uint8_t q[N_MAX * K_MAX];
    float y[ROWS_MAX][N_MAX];
} problem;

typedef struct memory { /* what the kernels want beside the problem */
    int32_t words[(N_MAX + 16) * K_MAX / 4], fixed[ROWS_MAX][K_MAX];
    float scale[(N_MAX + 16) * K_MAX / 16], zero[(N_MAX + 16) * K_MAX / 16];
    uint16_t half[(N_MAX + 16) * K_MAX / 16];
    uint8_t byte[(N_MAX + 16) * K_MAX / 16];
    float sums[ROWS_MAX * K_MAX / 16], units[ROWS_MAX * K_MAX / 16];
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

static void fill_rows(problem *p, int64_t rows, const int64_t size[3], int bits, int zeros,
                      bool half)
{
    const int64_t k = size[0], n = size[1], block = size[2];
    *p = (problem){.rows = rows, .k = k, .n = n, .block = block, .blocks = (k + block - 1) / block,
                   .bits = bits, .zeros = zeros, .middle = 1 << (bits - 1), .half = half};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < k; i++)
            p->a[r][i] = draw_float() * ldexpf(1, (int)(i / block % 7) - 3) * (draw() % 5 ? 1 : 0);
    for (int64_t i = 0; i < n * p->blocks; i++) {
        p->scale[i] = half ? ort_f16_to_f32(ort_f32_to_f16(draw_float())) : draw_float();
        p->zero[i] = zeros == BYTES    ? (float)(draw() % (1u << bits))
                     : zeros == FLOATS ? 8.0f * draw_float()
                                       : (float)p->middle;
    }
    for (int64_t i = 0; i < n; i++)
        p->bias[i] = draw_float();
    for (int64_t i = 0; i < n * p->blocks * block * bits / 8; i++)
        p->q[i] = (uint8_t)draw();
}

static void fill(problem *p, const int64_t size[3], int bits, int zeros, bool half)
{
    fill_rows(p, ROWS, size, bits, zeros, half);
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The weight and what stands beside it. */
static void pack_weight(const ort_gemm_kernels *g, const problem *p, memory *m, ort_nbits *w)
{
    int64_t lanes = g->nbits_lanes, groups = (p->n + lanes - 1) / lanes;
    int64_t row_words = p->blocks * p->block * p->bits / 32;
    int64_t run = min_of(p->block, 128) * p->bits / 32;
    memset(m, 0, sizeof *m);
    *w = (ort_nbits){.words = m->words, .bits = p->bits, .middle = p->middle,
                     .scale = p->half ? NULL : m->scale, .scale_half = p->half ? m->half : NULL,
                     .zero = p->zeros == FLOATS ? m->zero : NULL,
                     .zero_byte = p->zeros == BYTES ? m->byte : NULL, .bias = p->bias, .n = p->n,
                     .row_words = row_words, .run_words = run,
                     .block_runs = p->block * p->bits / 32 / run};
    for (int64_t i = 0; i < groups; i++)
        g->nbits_pack(p->n, row_words, p->bits, p->q, i * lanes, m->words + i * lanes * row_words);
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t b = 0; b < p->blocks; b++) {
            int64_t to = (j / lanes * p->blocks + b) * lanes + j % lanes;
            m->scale[to] = p->scale[j * p->blocks + b];
            m->half[to] = ort_f32_to_f16(m->scale[to]);
            m->zero[to] = p->zero[j * p->blocks + b];
            m->byte[to] = p->zeros == BYTES ? (uint8_t)m->zero[to] : 0;
        }
}

/* Packed for these kernels; false when a row doesn't go into fixed point. */
static bool pack(const ort_gemm_kernels *g, problem *p, int digits, memory *m, ort_nbits *w)
{
    pack_weight(g, p, m, w);
    int64_t runs = w->row_words / w->run_words;
    w->rows = p->rows;
    w->digits = digits;
    w->fixed = m->fixed[0];
    w->fixed_row = digits * (p->blocks * p->block / 4 + runs);
    w->sums = m->sums;
    w->units = m->units;
    w->y = p->y[0];
    w->y_row = N_MAX;
    for (int64_t r = 0; r < p->rows; r++)
        if (!g->nbits_fix(p->k, w, p->a[r], m->fixed[0] + r * w->fixed_row, m->units + r * runs,
                          m->sums + r * runs))
            return false;
    return true;
}

static int code(const problem *p, int64_t j, int64_t k)
{
    int64_t at = (j * p->blocks * p->block + k) * p->bits;
    return p->q[at / 8] >> at % 8 & ((1 << p->bits) - 1);
}

/* The largest of each element's run. */
static void largest(const problem *p, int64_t row, double *most)
{
    const int64_t run = min_of(p->block, 128);
    for (int64_t first = 0; first < p->k; first += run) {
        double of_run = 0;
        for (int64_t i = first; i < min_of(first + run, p->k); i++)
            of_run = fmax(of_run, fabs((double)p->a[row][i]));
        for (int64_t i = first; i < min_of(first + run, p->k); i++)
            most[i] = of_run;
    }
}

/* Worst error as a part of its bound; *mean receives the root mean square of errors. */
static double worst_of(const problem *p, int digits, double *mean)
{
    const double u = ldexp(1, -24), e = digits == 1 ? 0.5 : 1.5;
    const double limit = digits == 1 ? 127 : 127 * 65536.0;
    double worst = 0, squares = 0, most[K_MAX];
    for (int64_t r = 0; r < p->rows; r++) {
        largest(p, r, most);
        for (int64_t j = 0; j < p->n; j++) {
            double exact = (double)p->bias[j], bound = u * fabs(exact);
            for (int64_t k = 0; k < p->k; k++) {
                int64_t b = j * p->blocks + k / p->block;
                double s = (double)p->scale[b], z = (double)p->zero[b], a = (double)p->a[r][k];
                double q = code(p, j, k);
                exact += s * (q - z) * a;
                bound += (double)(p->k + 8) * u * fabs(s * (q + z) * a);
                if (digits)
                    bound += fabs(s * (q - z)) * e * most[k] / limit;
            }
            double error = (double)p->y[r][j] - exact;
            worst = fmax(worst, bound > 0 ? fabs(error) / bound : fabs(error) * 1e30);
            squares += error * error;
        }
    }
    *mean = sqrt(squares);
    return worst;
}

static problem p;
static memory m;

/* The same in floats: what three bytes are measured by. */
static void sum_floats(problem *q)
{
    for (int64_t r = 0; r < q->rows; r++)
        for (int64_t j = 0; j < q->n; j++) {
            float sum = 0;
            for (int64_t b = 0; b < q->blocks; b++) {
                float part = 0, of = q->zero[j * q->blocks + b];
                for (int64_t k = b * q->block; k < min_of((b + 1) * q->block, q->k); k++)
                    part += ((float)code(q, j, k) - of) * q->a[r][k];
                sum += part * q->scale[j * q->blocks + b];
            }
            q->y[r][j] = sum + q->bias[j];
        }
}

static double run(const ort_gemm_kernels *g, int digits, double *mean)
{
    ort_nbits w;
    memset(p.y, 0xff, sizeof p.y);
    if (digits == 0)
        sum_floats(&p);
    else if (pack(g, &p, digits, &m, &w))
        g->nbits(0, p.n, &w);
    return worst_of(&p, digits, mean);
}

static const int64_t sizes[][3] = {{16, 1, 16}, {40, 3, 16}, {64, 17, 32}, {288, 40, 32},
                                   {130, 33, 64}, {512, 31, 256}, {500, 16, 512}, {96, 5, 128}};

/* Worst errors and means by digits, of all sizes. */
static void measure(const ort_kernels *k, int bits, double *worst, double *means)
{
    for (size_t i = 0; i < ZEROS * sizeof sizes / sizeof *sizes; i++) {
        fill(&p, sizes[i / ZEROS], bits, (int)(i % ZEROS), i % 2);
        for (int digits = 0; digits <= 3; digits += digits ? 2 : 1) {
            double mean = 0;
            worst[digits] = fmax(worst[digits], run(&k->gemm, digits, &mean));
            means[digits] += mean;
        }
    }
}

static void error_bounds(test_state *test)
{
    const ort_kernel_tier *tier;
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        for (int bits = 2; k && bits <= 8; bits *= 2) {
            double worst[4] = {0}, means[4] = {0};
            measure(k, bits, worst, means);
            printf("# %s, %d bits: worst error of its bound %.3f, one byte %.3f, three bytes %.3f "
                   "and %.2f of the mean error of floats\n",
                   tier->name, bits, worst[0], worst[1], worst[3], means[3] / means[0]);
            CHECK(worst[0] <= 1 && worst[1] <= 1 && worst[3] <= 1 && means[3] <= 1.5 * means[0]);
        }
    }
}

/* Columns and rows come out alike however they are cut into calls. */
static void cuts(test_state *test)
{
    const ort_kernel_tier *tier;
    static float whole[ROWS][N_MAX];
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        for (int i = 0; k && i < 6; i++) {
            ort_nbits w;
            fill(&p, (const int64_t[]){288, N_MAX, 32}, 2 << i % 3, i % ZEROS, i & 1);
            CHECK(pack(&k->gemm, &p, i < 3 ? 1 : 3, &m, &w));
            k->gemm.nbits(0, N_MAX, &w);
            memcpy(whole, p.y, sizeof whole);
            memset(p.y, 0, sizeof p.y);
            for (int64_t j = 0; j < N_MAX; j += k->gemm.nbits_lanes)
                k->gemm.nbits(j, min_of(j + k->gemm.nbits_lanes, N_MAX), &w);
            CHECK(!memcmp(whole, p.y, sizeof whole));
            memset(p.y, 0, sizeof p.y);
            const int64_t runs = w.row_words / w.run_words;
            for (w.rows = 1; w.y < p.y[ROWS - 1]; w.y += N_MAX, w.fixed += w.fixed_row) {
                k->gemm.nbits(0, N_MAX, &w);
                w.units += runs;
                w.sums += runs;
            }
            k->gemm.nbits(0, N_MAX, &w);
            CHECK(!memcmp(whole, p.y, sizeof whole));
        }
    }
}

/* Rows of bytes, with 127 in each run so that its unit is 1: every tier has the exact sum, also of
 * the largest codes there are. */
static void exact(test_state *test)
{
    const ort_kernel_tier *tier;
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        for (int i = 0; k && i < 12; i++) {
            ort_nbits w;
            fill(&p, sizes[2 + i % 4], 2 << i % 3, i % 2 ? BYTES : MIDDLE, true);
            for (int64_t b = 0; b < p.n * p.blocks; b++)
                p.scale[b] = 1;
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t at = 0; at < p.k; at++)
                    p.a[r][at] = at % 16 == 0 ? 127.0f : i < 6 ? (float)((int)(draw() % 255) - 127)
                                                       : r % 2 ? -127.0f : 127.0f;
            if (i >= 6)
                memset(p.q, 0xff, sizeof p.q);
            memset(p.bias, 0, sizeof p.bias);
            CHECK(pack(&k->gemm, &p, 1, &m, &w));
            k->gemm.nbits(0, p.n, &w);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t j = 0; j < p.n; j++) {
                    int64_t sum = 0;
                    for (int64_t at = 0; at < p.k; at++)
                        sum += (code(&p, j, at) - (int)p.zero[j * p.blocks + at / p.block]) *
                               (int64_t)p.a[r][at];
                    CHECK(p.y[r][j] == (float)sum);
                }
        }
    }
}

/* Rows of three bytes whose elements are all as large as can be, by weights all as far from the
 * middle: what a run sums to comes next to the end of 32 bits, beyond it where runs are long. */
static void farthest(test_state *test)
{
    static const int of[4] = {3, 0, 4, 5}; /* runs of 32, 16, 64 and 128 */
    const ort_kernel_tier *tier;
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        for (int i = 0; k && i < 64; i++) {
            const int bits = i & 4 ? 2 : 4, largest = (1 << bits) - 1;
            const float a = i & 1 ? -1.0f : 1.0f;
            ort_nbits w;
            fill(&p, sizes[of[i / 8 % 4]], bits, MIDDLE, false);
            if (i >= 32)
                p.middle = 0;
            const int weight = p.middle ? -p.middle : largest; /* of codes of 0, or the largest */
            const float exact = (i & 2 ? a : -a) * (float)weight;
            for (int64_t b = 0; b < p.n * p.blocks; b++)
                p.scale[b] = i & 2 ? 1.0f : -1.0f;
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t at = 0; at < p.k; at++)
                    p.a[r][at] = a;
            memset(p.q, p.middle ? 0 : 0xff, sizeof p.q);
            memset(p.bias, 0, sizeof p.bias);
            CHECK(pack(&k->gemm, &p, 3, &m, &w));
            k->gemm.nbits(0, p.n, &w);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t j = 0; j < p.n; j++)
                    CHECK(fabsf(p.y[r][j] / ((float)p.k * exact) - 1) <= 1e-6f);
        }
    }
}

/* Rows of one more and one less than tiles have, and of many tiles; blocks of each length that a
 * run has, and tails of columns and of k. */
static const int64_t many_rows[] = {9, 15, 16, 17, 31, 32, 33, 48, 64, ROWS_MAX};
static const int64_t many_sizes[][3] = {{16, 1, 16}, {72, 19, 16}, {100, 33, 32}, {384, 16, 64},
                                        {130, 33, 64}, {330, 31, 128}, {512, 40, 256}};

/* Are these rows the same each alone? */
static bool same_alone(const ort_gemm_kernels *g, int digits)
{
    static float whole[ROWS_MAX][N_MAX];
    ort_nbits w;
    memcpy(whole, p.y, sizeof whole);
    if (!pack(g, &p, digits, &m, &w))
        return false;
    const int64_t runs = w.row_words / w.run_words;
    w.rows = 1;
    for (int64_t r = 0; r < p.rows; r++) {
        g->nbits(0, p.n, &w);
        w.y += N_MAX, w.fixed += w.fixed_row, w.units += runs, w.sums += runs;
    }
    return !memcmp(whole, p.y, sizeof whole);
}

/* Many rows of one byte and of three keep their bounds, have the bits of each row alone, and every
 * tier of vectors that a machine has gives the same bits; scalar rounds products before it adds
 * them. */
static void many(test_state *test)
{
    static float first[ROWS_MAX][N_MAX];
    enum { KINDS = 3 * ZEROS * 2 }; /* bits, what stands beside the weights, digits */
    bool same = true;
    const size_t all = sizeof many_sizes / sizeof *many_sizes * KINDS;
    for (size_t i = 0; i < all; i++) {
        const size_t kind = i % KINDS;
        const int bits = 2 << kind % 3, digits = kind < KINDS / 2 ? 1 : 3;
        const ort_kernel_tier *tier;
        const char *before = NULL;
        fill_rows(&p, many_rows[i % (sizeof many_rows / sizeof *many_rows)], many_sizes[i / KINDS],
                  bits, (int)(kind / 3 % ZEROS), i % 2);
        for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
            const ort_kernels *k = ort_kernels_get(tier->name);
            double mean;
            if (!k)
                continue;
            CHECK(run(&k->gemm, digits, &mean) <= 1);
            CHECK(same_alone(&k->gemm, digits));
            if (before && memcmp(first, p.y, sizeof first)) {
                printf("# %s differs from %s: %d bits, %d bytes, blocks of %d, %d rows, zeros %d\n",
                       tier->name, before, bits, digits, (int)p.block, (int)p.rows, p.zeros);
                same = false;
            }
            if (strcmp(tier->name, "scalar"))
                before = tier->name;
            memcpy(first, p.y, sizeof first);
        }
    }
    CHECK(same);
}

/* Packed for rows that are rounded; false when one can't be. */
static bool pack_rounded(const ort_gemm_kernels *g, problem *q, ort_nbits *w)
{
    pack_weight(g, q, &m, w);
    w->rows = q->rows;
    w->fixed = m.fixed[0];
    w->fixed_row = 16 * (w->row_words / w->bits | 1);
    w->y = q->y[0];
    w->y_row = N_MAX;
    for (int64_t r = 0; r < q->rows; r++)
        if (!g->nbits_round(q->k, w, q->a[r], m.fixed[0] + r * w->fixed_row))
            return false;
    return true;
}

/* Rounded to bfloat16 they keep the bound of one byte, have a smaller error than that, and give the
 * same bits however they are cut into calls. */
static void rounded_size(const ort_gemm_kernels *g, test_state *test, double *means)
{
    static float whole[ROWS_MAX][N_MAX];
    ort_nbits w;
    double mean = 0;
    memset(p.y, 0xff, sizeof p.y);
    CHECK(pack_rounded(g, &p, &w));
    g->nbits_rounded(0, p.n, &w);
    CHECK(worst_of(&p, 1, &mean) <= 1);
    means[0] += mean;
    memcpy(whole, p.y, sizeof whole);
    memset(p.y, 0xff, sizeof p.y);
    for (int64_t j = 0; j < p.n; j += g->nbits_lanes)
        g->nbits_rounded(j, min_of(j + g->nbits_lanes, p.n), &w);
    CHECK(!memcmp(whole, p.y, sizeof whole));
    memset(p.y, 0xff, sizeof p.y);
    for (int64_t row = 0; row < p.rows; row += w.rows, w.y += w.rows * N_MAX) {
        w.rows = min_of(row % 2 ? 1 : 7, p.rows - row);
        w.fixed = m.fixed[0] + row * w.fixed_row;
        g->nbits_rounded(0, p.n, &w);
    }
    CHECK(!memcmp(whole, p.y, sizeof whole));
    CHECK(run(g, 1, &mean) <= 1);
    means[1] += mean;
}

static void rounded(test_state *test)
{
    const float values[] = {INFINITY, -INFINITY, NAN, 1e35f, 1e-35f};
    const ort_kernel_tier *tier;
    enum { KINDS = 3 * FLOATS * 2 }; /* bits, zero points, scales of 16 bits */
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        double means[2] = {0};
        if (!k || !k->gemm.nbits_rounded)
            continue;
        for (size_t i = 0; i < sizeof many_sizes / sizeof *many_sizes * KINDS; i++) {
            const int64_t *size = many_sizes[i / KINDS];
            const int kind = (int)(i % KINDS);
            fill_rows(&p, many_rows[i % (sizeof many_rows / sizeof *many_rows)], size,
                      2 << kind % 3, kind / 3 % FLOATS, kind >= KINDS / 2);
            if (size[2] >= 32)
                rounded_size(&k->gemm, test, means);
        }
        printf("# %s, rounded: %.2f of the mean error of one byte\n", tier->name,
               means[0] / means[1]);
        CHECK(means[0] < means[1]);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            ort_nbits w;
            fill(&p, (const int64_t[]){50, 3, 32}, 4, MIDDLE, false);
            memset(p.a[1], 0, sizeof p.a[1]);
            CHECK(pack_rounded(&k->gemm, &p, &w));
            p.a[1][49] = values[i];
            CHECK(!pack_rounded(&k->gemm, &p, &w));
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
            fill(&p, (const int64_t[]){40, 3, 16}, 4, MIDDLE, false);
            memset(p.a[1] + 32, 0, 8 * sizeof(float));
            CHECK(pack(&k->gemm, &p, 3, &m, &w));
            p.a[1][37] = values[i];
            CHECK(!pack(&k->gemm, &p, 3, &m, &w));
        }
    }
}

static void widen_depth(test_state *test, const ort_gemm_kernels *g, int64_t depth)
{
    static float out[K_MAX * 16];
    const int64_t lanes = g->nbits_lanes, first = 48;
    ort_nbits w;
    pack_weight(g, &p, &m, &w);
    for (int64_t group = 0; group * lanes < p.n; group++) {
        g->nbits_widen(&w, group, first, depth, out, lanes);
        for (int64_t i = 0; i < depth * lanes && group * lanes + i % lanes < p.n; i++) {
            int64_t j = group * lanes + i % lanes, at = first + i / lanes;
            float z = p.zero[j * p.blocks + at / 64], s = p.scale[j * p.blocks + at / 64];
            CHECK(out[i] == ((float)code(&p, j, at) - z) * s);
        }
    }
}

/* All kinds of zero points and scales, of which some are so small that no part of them is exact. */
static void widened(test_state *test)
{
    const ort_kernel_tier *tier;
    for (int t = 0; (tier = ort_kernel_tier_at(t)); t++) {
        const ort_kernels *k = ort_kernels_get(tier->name);
        for (int kind = 0; k && kind < 3 * ZEROS * 2; kind++) {
            const bool half = kind >= 3 * ZEROS;
            fill(&p, (const int64_t[]){130, 33, 64}, 2 << kind % 3, kind / 3 % ZEROS, half);
            for (int64_t i = 0; !half && i < p.n * p.blocks; i += 5)
                p.scale[i] = ldexpf(p.scale[i], -100);
            widen_depth(test, &k->gemm, 82);
            widen_depth(test, &k->gemm, 80);
        }
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, error_bounds);
    RUN(&test, cuts);
    RUN(&test, exact);
    RUN(&test, farthest);
    RUN(&test, many);
    RUN(&test, rounded);
    RUN(&test, refused);
    RUN(&test, widened);
    return test.failures != 0;
}
