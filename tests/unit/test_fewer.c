/* test_fewer.c - products that take fewer multiply-adds, by crossed sums and in Strassen's way,
 * keep the bounds of kernel/crossed.h and kernel/strassen.h on every tier that has them, whatever
 * the sizes of rows and columns; what isn't finite stays in its row and column; and the bits are
 * the same however many threads share a product.
 *
 * Held against sums in double, whose products are exact here.
 */
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/pool.h"
#include "kernel/crossed.h"
#include "kernel/strassen.h"
#include "op/shared/matrix.h"
#include "test.h"
#include "workers.h"

typedef struct sizes {
    int64_t m, n, k;
} sizes;

/* An odd row, columns beyond the last pair, halves of k that aren't cut evenly, parts and steps of
 * it, several blocks of rows. And few of each, with what is left of three k. */
static const sizes all[] = {{64, 192, 448},   {97, 201, 458}, {131, 256, 1000}, {300, 200, 514},
                            {130, 264, 1538}, {16, 64, 50},   {29, 33, 385},    {67, 1088, 52}};

static uint64_t state = 1;

static unsigned draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33);
}

static float near_one(void)
{
    return (float)(int)(draw() & 0xffffff) / 8388608.0f - 1.0f;
}

/* ---- what numbers the operands have; i of the row or column, k along it */

static float plain(int64_t i, int64_t k) { return near_one(); }
static float steep(int64_t i, int64_t k) { return ldexpf(near_one(), (int)(i * 7 % 61) - 30); }
static float far_apart(int64_t i, int64_t k) { return ldexpf(near_one(), i % 2 ? -70 : 50); }
static float outliers(int64_t i, int64_t k) { return near_one() * (i % 9 == 4 ? 300.0f : 1.0f); }
static float channels(int64_t i, int64_t k) { return near_one() * (k % 97 == 5 ? 50.0f : 1.0f); }
static float some_zero(int64_t i, int64_t k) { return i % 5 == 2 ? 0.0f : near_one(); }
static float tiny(int64_t i, int64_t k) { return ldexpf(near_one(), -60); }
static float alternating(int64_t i, int64_t k) { return k % 2 ? 1.0f : -1.0f + near_one() / 4096; }
static float one_nan(int64_t i, int64_t k) { return i == 60 && k == 100 ? NAN : near_one(); }
static float one_inf(int64_t i, int64_t k) { return i == 20 && k == 7 ? -INFINITY : near_one(); }
static float largest(int64_t i, int64_t k) { return i == 11 ? near_one() * FLT_MAX : near_one(); }

typedef float number(int64_t i, int64_t k);

typedef struct kind {
    number *a, *b;
    bool finite;
} kind;

static const kind kinds[] = {
    {plain, plain, true},     {steep, plain, true},      {plain, steep, true},
    {steep, steep, true},     {far_apart, plain, true},  {outliers, outliers, true},
    {channels, plain, true},  {plain, channels, true},   {some_zero, plain, true},
    {plain, some_zero, true}, {tiny, plain, true},       {alternating, plain, true},
    {one_nan, plain, false},  {plain, one_nan, false},   {one_inf, plain, false},
    {plain, one_inf, false},  {one_nan, one_inf, false}, {largest, plain, false},
};

typedef struct problem {
    const sizes *s;
    float *a, *b, *bias;
    double *exact, *row, *column; /* largest magnitudes */
    double *row_norm, *column_norm;
} problem;

static bool make(problem *p, const sizes *s, const kind *of)
{
    *p = (problem){.s = s};
    p->a = malloc((size_t)(s->m * s->k) * sizeof(float));
    p->b = malloc((size_t)(s->n * s->k) * sizeof(float));
    p->bias = malloc((size_t)s->n * sizeof(float));
    p->exact = calloc((size_t)(s->m * s->n), sizeof(double));
    p->row = calloc((size_t)s->m, sizeof(double));
    p->column = calloc((size_t)s->n, sizeof(double));
    p->row_norm = calloc((size_t)s->m, sizeof(double));
    p->column_norm = calloc((size_t)s->n, sizeof(double));
    if (!p->a || !p->b || !p->bias || !p->exact || !p->row || !p->column || !p->row_norm ||
        !p->column_norm)
        return false;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t k = 0; k < s->k; k++) {
            const float x = p->a[i * s->k + k] = of->a(i, k);
            p->row[i] = fmax(p->row[i], fabs((double)x));
            p->row_norm[i] = hypot(p->row_norm[i], (double)x);
        }
    for (int64_t k = 0; k < s->k; k++)
        for (int64_t j = 0; j < s->n; j++) {
            const float x = p->b[k * s->n + j] = of->b(j, k);
            p->column[j] = fmax(p->column[j], fabs((double)x));
            p->column_norm[j] = hypot(p->column_norm[j], (double)x);
        }
    for (int64_t j = 0; j < s->n; j++)
        p->bias[j] = near_one();
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t k = 0; k < s->k; k++)
            for (int64_t j = 0; j < s->n; j++)
                p->exact[i * s->n + j] += (double)p->a[i * s->k + k] * (double)p->b[k * s->n + j];
    return true;
}

static void drop(problem *p)
{
    free(p->a);
    free(p->b);
    free(p->bias);
    free(p->exact);
    free(p->row);
    free(p->column);
    free(p->row_norm);
    free(p->column_norm);
}

/* ---- the ways: of each tier, crossed sums, and Strassen's without them */

typedef struct way {
    int at;
    ort_kernels k;
    bool crossed;
} way;

static bool next_way(way *w)
{
    for (; ort_kernel_tier_at(w->at / 2); w->at++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(w->at / 2)->name);
        if (!k)
            continue;
        w->k = *k;
        w->crossed = w->at % 2;
        if (!w->crossed)
            w->k.gemm.crossed = (ort_crossed_kernels){0};
        w->at++;
        if (w->crossed ? w->k.gemm.crossed.tile != NULL : w->k.gemm.strassen.finish != NULL)
            return true;
        w->at--;
    }
    return false;
}

/* What a tier makes of it. */
typedef struct product {
    const ort_kernels *k;
    ort_pool *pool;
    float *packed, *y, *again;
    void *notes;
    size_t notes_bytes;
    char *space;
    ort_product_f32 p;
    ort_epilogue e;
} product;

static bool begin(product *t, const problem *p)
{
    const sizes *s = p->s;
    const size_t each = ort_matrix_fewer_f32(t->k, s->m, s->n, s->k);
    size_t bytes;
    if (!ort_matrix_packed_bytes_f32(t->k, s->k, s->n, &bytes))
        return false;
    t->packed = aligned_alloc(64, ort_round_up(bytes, 64));
    t->y = malloc((size_t)(s->m * s->n) * sizeof(float));
    t->again = malloc((size_t)(s->m * s->n) * sizeof(float));
    t->notes_bytes = ort_round_up(ort_matrix_notes_f32(t->k, s->k, s->n), 64);
    t->notes = aligned_alloc(64, t->notes_bytes + 64);
    t->space = aligned_alloc(64, (size_t)ort_pool_threads(t->pool) * each + 64);
    if (!t->packed || !t->y || !t->again || !t->notes || !t->space)
        return false;
    memset(t->notes, 0, t->notes_bytes);
    memset(t->space, 0, (size_t)ort_pool_threads(t->pool) * each); /* whatever was there */
    ort_matrix_pack_f32(t->k, s->k, s->n, p->b, s->n, 1, t->packed);
    t->e = ort_epilogue_none();
    t->e.col_bias = p->bias;
    t->p = (ort_product_f32){.m = s->m, .n = s->n, .depth = s->k, .a = p->a, .lda = s->k,
                             .packed = t->packed, .tiles = t->space, .tiles_step = each,
                             .notes = t->notes, .c = t->y, .ldc = s->n, .epilogue = &t->e};
    return true;
}

static void end(product *t)
{
    free(t->packed);
    free(t->y);
    free(t->again);
    free(t->notes);
    free(t->space);
}

static void run(product *t, ort_pool *pool, bool direct, float *y)
{
    ort_call call = {.k = t->k, .pool = pool};
    t->p.c = y;
    t->p.notes = direct ? NULL : t->notes;
    ort_matrix_multiply_f32(&call, &t->p);
}

/* ---- the bound */

/* Of one element, over what is allowed. Direct sums begin with the bias, which takes part in the
 * rounding of each part of k. */
static double error_of(const problem *p, bool crossed, int64_t i, int64_t j, float y)
{
    const sizes *s = p->s;
    const double u = ldexp(1, -24), g = 128 + 1 + (double)s->k / 2 / 128;
    const double a = 2 * p->row[i], b = (double)ORT_STRASSEN_UNEVEN * p->column[j];
    const double terms = 2 * ORT_CROSSED_PART / 3 + 2 + (double)s->k / ORT_CROSSED_PART;
    const double norms = p->row_norm[i] * p->column_norm[j];
    const double exact = p->exact[i * s->n + j] + (double)p->bias[j];
    const double rest = (fabs(exact) + 1) * (2 + (double)s->k / 128);
    const double most = crossed ? 8.75 * (terms + 4) * norms : (9 * g + 45) * (double)s->k * a * b;
    return fabs((double)y - exact) / ((most + rest) * u);
}

static void finite_case(test_state *test, product *t, const problem *p, bool crossed)
{
    const sizes *s = p->s;
    double worst = 0;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            const float y = t->y[i * s->n + j];
            worst = test_worse(worst, error_of(p, crossed, i, j, y));
            if (p->row[i] == 0 || p->column[j] == 0)
                CHECK(y == p->bias[j]);
        }
    CHECK(worst <= 1);
}

/* Each row and column that is finite keeps the bound, and the others have what direct sums give. */
static void other_case(test_state *test, product *t, const problem *p, bool crossed)
{
    const sizes *s = p->s;
    double worst = 0;
    run(t, NULL, true, t->again);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            const float y = t->y[i * s->n + j], direct = t->again[i * s->n + j];
            CHECK(isfinite(y) == isfinite(direct) && isnan(y) == isnan(direct));
            if (isinf(direct))
                CHECK(y == direct);
            if (isfinite(direct))
                worst = test_worse(worst, error_of(p, crossed, i, j, y));
        }
    CHECK(worst <= 1);
}

static void one_kind(test_state *test, const sizes *s, const kind *of, ort_pool *pool)
{
    problem p;
    CHECK(make(&p, s, of));
    for (way w = {0}; next_way(&w);) {
        product t = {.k = &w.k, .pool = pool};
        const size_t bytes = (size_t)(s->m * s->n) * sizeof(float);
        CHECK(begin(&t, &p));
        run(&t, NULL, false, t.y);
        memset(t.notes, 0, t.notes_bytes); /* noted by several threads */
        run(&t, pool, false, t.again);
        CHECK(!memcmp(t.y, t.again, bytes));
        memset(t.again, 0, bytes);
        t.p.c = t.again;
        ort_matrix_block_f32(t.k, &t.p);
        CHECK(!memcmp(t.y, t.again, bytes));
        if (w.crossed) { /* each panel is about to be noted by another thread */
            memset(t.notes, 0, t.notes_bytes);
            memset((char *)t.notes + sizeof(atomic_int), 1, (size_t)s->n / 32);
            run(&t, NULL, false, t.again);
            CHECK(!memcmp(t.y, t.again, bytes));
        }
        (of->finite ? finite_case : other_case)(test, &t, &p, w.crossed);
        end(&t);
        if (test->failed)
            break;
    }
    drop(&p);
}

static void bounds(test_state *test)
{
    ort_pool *pool = ort_pool_new_of(3, false, &workers_at_once);
    CHECK(pool);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds && !test->failed; j++)
            one_kind(test, &all[i], &kinds[j], pool);
    ort_pool_free(pool);
}

/* ---- against direct sums of like numbers */

static double rms(const problem *p, const float *y)
{
    const int64_t count = p->s->m * p->s->n;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double off = (double)y[i] - p->exact[i] - (double)p->bias[i % p->s->n];
        sum += off * off;
    }
    return sqrt(sum / (double)count);
}

/* Errors are some times those of direct sums, not more, and other ones: the way is taken. */
static void compared(test_state *test)
{
    static const sizes s = {128, 256, 768};
    static const kind of = {plain, plain, true};
    problem p;
    CHECK(make(&p, &s, &of));
    for (way w = {0}; next_way(&w);) {
        product t = {.k = &w.k};
        CHECK(begin(&t, &p));
        run(&t, NULL, false, t.y);
        run(&t, NULL, true, t.again);
        const double fast = rms(&p, t.y), direct = rms(&p, t.again);
        CHECK(fast > direct * 1.2 && fast < direct * 4);
        end(&t);
    }
    drop(&p);
}

/* ---- what follows, and when it isn't taken */

/* Strassen's way with an epilogue is what that makes of the plain product. */
static void one_epilogue(test_state *test, product *t, const problem *p, const float *more,
                         int what)
{
    const sizes *s = p->s;
    ort_epilogue *e = &t->e;
    *e = ort_epilogue_none();
    run(t, NULL, false, t->again);
    e->alpha = what & 1 ? 0.5f : 1;
    e->add = what & 2 ? more : NULL;
    e->ldadd = s->n + 3;
    e->row_bias = what & 4 ? p->a : NULL;
    e->col_bias = what & 8 ? p->bias : NULL;
    e->lo = what & 16 ? -1.5f : -INFINITY;
    e->hi = what & 32 ? 2 : INFINITY;
    e->act = what & 64 ? ORT_UNARY_TANH : -1;
    run(t, t->pool, false, t->y);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double y = (double)t->again[i * s->n + j] * (double)e->alpha;
            y += e->add ? (double)more[i * e->ldadd + j] : 0;
            y += e->row_bias ? (double)p->a[i] : 0;
            y += e->col_bias ? (double)p->bias[j] : 0;
            y = fmin(fmax(y, (double)e->lo), (double)e->hi);
            y = e->act < 0 ? y : tanh(y);
            CHECK(fabs((double)t->y[i * s->n + j] - y) <= 1e-5 * (1 + fabs(y)));
        }
}

static void epilogues(test_state *test)
{
    static const sizes s = {97, 201, 458};
    static const kind of = {plain, plain, true};
    problem p;
    ort_pool *pool = ort_pool_new_of(3, false, &workers_at_once);
    CHECK(pool && make(&p, &s, &of));
    float *more = malloc((size_t)(s.m * (s.n + 3)) * sizeof *more);
    CHECK(more);
    for (int64_t i = 0; i < s.m * (s.n + 3); i++)
        more[i] = near_one();
    for (way w = {0}; !test->failed && next_way(&w);) {
        product t = {.k = &w.k, .pool = pool};
        CHECK(begin(&t, &p));
        for (int what = 0; what < 128 && !test->failed; what++)
            one_epilogue(test, &t, &p, more, what);
        end(&t);
    }
    free(more);
    drop(&p);
    ort_pool_free(pool);
}

/* What is added and written is in one place: a second try would not find it. */
static void one_in_place(test_state *test, const kind *of)
{
    static const sizes s = {96, 192, 448};
    problem p;
    CHECK(make(&p, &s, of));
    for (way w = {0}; next_way(&w);) {
        product t = {.k = &w.k};
        CHECK(begin(&t, &p));
        t.e = ort_epilogue_none();
        t.e.ldadd = s.n;
        float *more = malloc((size_t)(s.m * s.n) * sizeof *more);
        CHECK(more);
        for (int64_t i = 0; i < s.m * s.n; i++)
            t.y[i] = more[i] = near_one();
        t.e.add = t.y;
        run(&t, NULL, false, t.y);
        t.e.add = more;
        run(&t, NULL, !w.crossed, t.again); /* Strassen's isn't taken then */
        free(more);
        for (int64_t i = 0; i < s.m * s.n; i++)
            CHECK(t.y[i] == t.again[i] || (isnan(t.y[i]) && isnan(t.again[i])));
        end(&t);
    }
    drop(&p);
}

static void in_place(test_state *test)
{
    static const kind inf = {one_inf, plain, false}, finite = {plain, plain, true};
    one_in_place(test, &inf);
    one_in_place(test, &finite);
}

/* Rows of a pair that are 2^100 apart are brought to one size, those beyond are left to direct
 * sums: the powers of two, and what they multiply, stay far from what floats hold. */
static void apart(test_state *test)
{
    enum { M = 64, N = 192, K = 448 };
    static float a[M * K];
    for (way w = {0}; next_way(&w);) {
        if (w.crossed)
            continue;
        const ort_strassen s = ort_strassen_of(&w.k.gemm, M, N, K);
        void *space = aligned_alloc(64, ort_round_up(ort_strassen_bytes(&s), 64));
        CHECK(space);
        for (int up = -102; up <= 102; up++) {
            for (int i = 0; i < M * K; i++)
                a[i] = i / K == 5 ? ldexpf(1, up / 2) : i / K == 37 ? ldexpf(1, up / 2 - up) : 1;
            CHECK(ort_strassen_rows(&s, 0, a, K, space).suits == (abs(up) <= 100));
        }
        free(space);
    }
}

static void not_taken(test_state *test)
{
    static const char *const direct[] = {"common", "common256", "amx"};
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++) {
        const ort_kernels *k = ort_kernels_get(direct[i]);
        CHECK(!k || ort_matrix_fewer_f32(k, 1024, 1024, 1024) == 0);
        CHECK(!k || ort_matrix_notes_f32(k, 1024, 1024) == 0);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, bounds);
    RUN(&test, compared);
    RUN(&test, epilogues);
    RUN(&test, in_place);
    RUN(&test, apart);
    RUN(&test, not_taken);
    return test.failures > 0;
}
