/* test_products.c - matrix products keep their error bound on every tier, and give the same bits
 * however many threads share them.
 *
 * A sum of k products in float, in whatever order, is off by at most k u of the sum of their
 * magnitudes, u = 2^-24 (N. Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
 */
#include <math.h>
#include <stdlib.h>

#include "base/pool.h"
#include "op/shared/matrix.h"
#include "test.h"
#include "workers.h"

typedef struct sizes {
    int64_t m, n, k;
} sizes;

/* Rows that lie 4 KiB and multiples of it apart, few and many, A beyond a cache, tails of rows,
 * columns and k, one micro tile of rows by long columns. */
static const sizes all[] = {{14, 65, 1024}, {15, 33, 1023}, {29, 100, 2048}, {9, 96, 1024},
                            {130, 800, 1200}, {1, 70, 1024}, {3, 31, 7},    {200, 64, 1},
                            {13, 70, 1000},   {5, 33, 300},  {50, 70, 1024}};

static unsigned state = 1;

static float *numbers(int64_t count)
{
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; x && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int)(state >> 8) / 8388608.0f - 1.0f;
    }
    return x;
}

typedef struct problem {
    const sizes *s;
    float *a, *b, *packed, *bias, *y, *again;
    double worst;
} problem;

static bool make(problem *p, const ort_kernels *k)
{
    size_t bytes = 0;
    const sizes *s = p->s;
    p->a = numbers(s->m * s->k);
    p->b = numbers(s->k * s->n);
    p->bias = numbers(s->n);
    p->y = malloc((size_t)(s->m * s->n) * sizeof(float));
    p->again = malloc((size_t)(s->m * s->n) * sizeof(float));
    if (ort_matrix_packed_bytes_f32(k, s->k, s->n, &bytes))
        p->packed = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p->a || !p->b || !p->bias || !p->y || !p->again || !p->packed)
        return false;
    ort_matrix_pack_f32(k, s->k, s->n, p->b, s->n, 1, p->packed);
    return true;
}

static void drop(problem *p)
{
    free(p->a);
    free(p->b);
    free(p->packed);
    free(p->bias);
    free(p->y);
    free(p->again);
}

static void multiply(const problem *p, const ort_kernels *k, ort_pool *pool, bool packed, float *y)
{
    const sizes *s = p->s;
    ort_call call = {.k = k, .pool = pool};
    ort_epilogue e = ort_epilogue_none();
    e.col_bias = p->bias;
    ort_product_f32 q = {.m = s->m, .n = s->n, .depth = s->k, .a = p->a, .lda = s->k, .b = p->b,
                         .row = s->n, .column = 1, .c = y, .ldc = s->n, .epilogue = &e};
    q.packed = packed ? p->packed : NULL;
    ort_matrix_multiply_f32(&call, &q);
}

static void compare(problem *p)
{
    const sizes *s = p->s;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double exact = (double)p->bias[j], size = fabs(exact);
            for (int64_t kk = 0; kk < s->k; kk++) {
                double one = (double)p->a[i * s->k + kk] * (double)p->b[kk * s->n + j];
                exact += one;
                size += fabs(one);
            }
            double bound = (double)(s->k + 1) * ldexp(1, -24) * size;
            p->worst = test_worse(p->worst, fabs((double)p->y[i * s->n + j] - exact) / bound);
        }
}

/* On tiles, where the tier has them: any number of threads, and B packed before or now. */
static void on_tiles(test_state *test, const ort_kernels *k, ort_pool *pool)
{
    static const sizes some[] = {{130, 800, 1200}, {96, 128, 900}, {600, 300, 257},
                                 {197, 192, 300},  {1300, 130, 130}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const sizes *s = &some[i];
        problem p = {.s = s};
        const size_t each = ort_matrix_tiles_f32(k, s->m, s->n, s->k, true);
        if (each == 0)
            continue;
        CHECK(make(&p, k));
        const size_t bytes = (size_t)(s->m * s->n) * sizeof(float);
        char *tiles = aligned_alloc(64, (size_t)ort_pool_threads(pool) * each);
        void *split = aligned_alloc(64, ort_matrix_split_f32(k, s->m, s->n, s->k, true));
        CHECK(tiles && split);
        ort_epilogue e = ort_epilogue_none();
        e.col_bias = p.bias;
        ort_product_f32 q = {.m = s->m, .n = s->n, .depth = s->k, .a = p.a, .lda = s->k,
                             .b = p.b, .row = s->n, .column = 1, .c = p.y, .ldc = s->n,
                             .epilogue = &e, .packed = p.packed, .tiles = tiles,
                             .tiles_step = each, .split = split};
        ort_call call = {.k = k};
        ort_matrix_multiply_f32(&call, &q);
        compare(&p);
        CHECK(p.worst <= 1);
        call.pool = pool;
        q.c = p.again;
        ort_matrix_multiply_f32(&call, &q);
        CHECK(!memcmp(p.y, p.again, bytes));
        memset(p.again, 0, bytes);
        ort_matrix_block_f32(k, &q);
        CHECK(!memcmp(p.y, p.again, bytes));
        q.packed = NULL;
        q.space = p.packed;
        memset(p.packed, 0, (size_t)(s->n / 32 * 32 * s->k) * sizeof(float));
        ort_matrix_multiply_f32(&call, &q);
        CHECK(!memcmp(p.y, p.again, bytes));
        free(tiles);
        free(split);
        drop(&p);
    }
}

static void one_tier(test_state *test, const ort_kernels *k, ort_pool *pool)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        problem p = {.s = &all[i]};
        CHECK(make(&p, k));
        size_t bytes = (size_t)(p.s->m * p.s->n) * sizeof(float);
        multiply(&p, k, NULL, true, p.y);
        compare(&p);
        CHECK(p.worst <= 1);
        multiply(&p, k, pool, true, p.again);
        CHECK(!memcmp(p.y, p.again, bytes));
        multiply(&p, k, pool, false, p.again);
        CHECK(!memcmp(p.y, p.again, bytes));
        drop(&p);
    }
}

static void every_tier(test_state *test)
{
    ort_pool *pool = ort_pool_new_of(3, false, &workers_at_once);
    CHECK(pool);
    for (int i = 0; pool && ort_kernel_tier_at(i); i++)
        if (ort_kernel_tier_at(i)->has())
            one_tier(test, ort_kernels_get(ort_kernel_tier_at(i)->name), pool);
    ort_pool_free(pool);
}

/* Parts of k within a call give the bits of a call each, bias and clamp included. */
static void parts_of(test_state *test, const ort_kernels *k, problem *p, int64_t part)
{
    const sizes *s = p->s;
    const int64_t nr = k->gemm.nr;
    ort_tile_f32 t = {.a = p->a, .lda = s->k, .b = p->packed, .b_step = nr, .b_panel = s->k * nr,
                      .c = p->y, .ldc = s->n, .add = p->bias, .alpha = 1, .lo = -0.5f,
                      .hi = INFINITY, .part = part};
    k->gemm.f32(s->m, s->n, s->k, &t);
    t.c = p->again;
    t.part = 0;
    for (int64_t k0 = 0, k1; k0 < s->k; k0 = k1, t.add = t.c, t.ldadd = s->n) {
        k1 = s->k - k0 < part ? s->k : k0 + part;
        t.a = p->a + k0;
        t.b = p->packed + k0 * nr;
        t.lo = k1 < s->k ? -INFINITY : -0.5f;
        k->gemm.f32(s->m, s->n, k1 - k0, &t);
    }
    CHECK(!memcmp(p->y, p->again, (size_t)(s->m * s->n) * sizeof(float)));
}

static void in_parts(test_state *test)
{
    static const sizes some[] = {{1, 100, 70}, {4, 96, 16}, {11, 97, 53}, {25, 300, 9}, {6, 8, 47}};
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        for (size_t j = 0; k && ort_gemm_parts(&k->gemm) > 1 && j < sizeof some / sizeof *some; j++)
            for (int64_t part = 7; part <= 128; part += 41) {
                problem p = {.s = &some[j]};
                CHECK(make(&p, k));
                parts_of(test, k, &p, part);
                drop(&p);
            }
    }
}

/* Rows of whole micro tiles give the bits of a few at a time, whatever follows the sums. */
static void few_rows(test_state *test, const ort_kernels *k, problem *p, int what)
{
    const sizes *s = p->s;
    const int64_t nr = k->gemm.nr;
    ort_tile_f32 t = {.a = p->a, .lda = s->k, .b = p->packed, .b_step = nr, .b_panel = s->k * nr,
                      .c = p->y, .ldc = s->n, .add = what & 1 ? p->b : NULL, .ldadd = s->n,
                      .alpha = what & 2 ? 0.75f : 1, .row_bias = what & 4 ? p->a : NULL,
                      .col_bias = what & 8 ? p->bias : NULL, .lo = -INFINITY,
                      .hi = what & 16 ? 0.25f : INFINITY, .ahead = what & 32 ? p->packed : NULL};
    k->gemm.f32(s->m, s->n, s->k, &t);
    for (int64_t row = 0; row < s->m; row += 3) {
        ort_tile_f32 few = t;
        few.a += row * s->k;
        few.c = p->again + row * s->n;
        few.add = t.add ? t.add + row * s->n : NULL;
        few.row_bias = t.row_bias ? t.row_bias + row : NULL;
        k->gemm.f32(s->m - row < 3 ? s->m - row : 3, s->n, s->k, &few);
    }
    CHECK(!memcmp(p->y, p->again, (size_t)(s->m * s->n) * sizeof(float)));
}

static void rows_alike(test_state *test)
{
    static const sizes some[] = {{5, 32, 19}, {6, 80, 64}, {11, 97, 85}, {25, 33, 72},
                                 {29, 16, 30}, {12, 64, 17}, {26, 70, 31}};
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        for (size_t j = 0; k && j < sizeof some / sizeof *some; j++) {
            problem p = {.s = &some[j]};
            CHECK(make(&p, k));
            for (int what = 0; what < 64; what++)
                few_rows(test, k, &p, what);
            drop(&p);
        }
    }
}

/* What is packed past the caches, the rows in two parts, is what packing makes, for B as it lies
 * and turned. */
static bool streams(const ort_kernels *k, const problem *p, float *streamed, size_t bytes)
{
    const sizes *s = p->s;
    const int64_t first = s->k / 3;
    bool same = true;
    for (int turned = 0; turned < 2; turned++) {
        const int64_t row = turned ? 1 : s->n, column = turned ? s->k : 1;
        memset(streamed, 0xff, bytes);
        ort_matrix_pack_f32(k, s->k, s->n, p->b, row, column, p->packed);
        ort_matrix_stream_f32(k, first, s->n, p->b, row, column, s->k, streamed);
        ort_matrix_stream_f32(k, s->k - first, s->n, p->b + first * row, row, column, s->k,
                              streamed + first * k->gemm.nr);
        same = same && !memcmp(p->packed, streamed, bytes);
    }
    return same;
}

static void streamed_alike(test_state *test)
{
    static const sizes some[] = {{1, 32, 19},    {1, 97, 300}, {1, 16, 1},
                                 {1, 130, 1024}, {1, 3, 129}};
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        for (size_t j = 0; k && j < sizeof some / sizeof *some; j++) {
            problem p = {.s = &some[j]};
            size_t bytes = 0;
            CHECK(make(&p, k) && ort_matrix_packed_bytes_f32(k, some[j].k, some[j].n, &bytes));
            float *streamed = aligned_alloc(64, (bytes + 63) / 64 * 64);
            CHECK(streamed && streams(k, &p, streamed, bytes));
            free(streamed);
            drop(&p);
        }
    }
}

/* Few threads split rows for themselves, many for each other. */
static void few_and_many(test_state *test)
{
    for (int threads = 3; threads <= 7; threads += 4) {
        ort_pool *pool = ort_pool_new_of(threads, false, &workers_at_once);
        CHECK(pool);
        for (int i = 0; pool && ort_kernel_tier_at(i); i++)
            if (ort_kernel_tier_at(i)->has())
                on_tiles(test, ort_kernels_get(ort_kernel_tier_at(i)->name), pool);
        ort_pool_free(pool);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, every_tier);
    RUN(&test, in_parts);
    RUN(&test, rows_alike);
    RUN(&test, streamed_alike);
    RUN(&test, few_and_many);
    return test.failures != 0;
}
