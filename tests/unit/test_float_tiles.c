/* test_float_tiles.c - products of floats on tiles (kernel/amx/thirds.h) are as exact as their
 * header says and as sums of floats are allowed to be, give what the tier's kernel of floats gives
 * where numbers don't fit into thirds, and the same bits whoever takes which pieces of a product.
 *
 * Held against sums in double, whose products are exact here.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "kernel/kernel.h"
#include "test.h"

enum { KC = 384, PANEL = 32 };

typedef struct problem {
    int64_t m, n, k;
    float *a, *b, *packed, *more, *y, *again;
    void *space;
    char *rows; /* split */
} problem;

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

/* ---- what numbers the operands have */

static float plain(int64_t i) { return near_one(); }
static float tiny(int64_t i) { return ldexpf(near_one(), -100); }
static float subnormal(int64_t i) { return ldexpf(near_one(), -130); }
static float huge(int64_t i) { return ldexpf(1.5f + 0.4f * near_one(), 60); }
static float largest(int64_t i) { return i % 7 ? near_one() : -FLT_MAX; }
static float zero(int64_t i) { return i % 2 ? 0.0f : -0.0f; }
static float mixed(int64_t i) { return ldexpf(near_one(), (int)(draw() % 60) - 40); }
static float sparse(int64_t i) { return draw() % 50 ? 0.0f : near_one(); }
static float tails(int64_t i) { return expf(-(float)(draw() % 100)); }
static float with_nan(int64_t i) { return i % 997 == 500 ? NAN : near_one(); }
static float with_inf(int64_t i) { return i % 991 == 300 ? -INFINITY : near_one(); }
/* Sums that cancel but for their last numbers. */
static float alternating(int64_t i) { return i % 2 ? 1.0f : -1.0f + ldexpf(near_one(), -12); }
static float bits_of_all(int64_t i) { return ldexpf(1.0f + near_one() * 0.4999f, i % 3 - 1); }

typedef float number(int64_t i);

typedef struct kind {
    number *a, *b;
    bool floats; /* nothing fits into thirds: the bits of the kernel of floats */
} kind;

static const kind kinds[] = {
    {plain, plain, false},     {bits_of_all, bits_of_all, false},
    {mixed, mixed, false},     {alternating, bits_of_all, false},
    {tails, plain, false},     {plain, tails, false},
    {sparse, plain, false},    {zero, plain, false},
    {plain, zero, false},      {tiny, plain, true},
    {plain, tiny, true},       {subnormal, huge, true},
    {subnormal, plain, true},  {huge, huge, true},
    {largest, plain, true},    {with_nan, plain, false},
    {plain, with_nan, false},  {with_inf, plain, false},
    {plain, with_inf, false},  {with_inf, with_nan, false},
    {zero, with_inf, false},
};

typedef struct sizes {
    int64_t m, n, k;
} sizes;

static const sizes all[] = {{1, 1, 1},      {32, 32, 32},   {16, 16, 31},  {17, 33, 33},
                            {15, 15, 64},   {33, 31, 65},   {128, 64, 96}, {130, 40, 257},
                            {31, 17, 300},  {161, 70, 513}, {48, 48, 15},  {64, 96, 1024},
                            {290, 64, 100}, {32, 34, 385}};

static size_t block_bytes(const ort_kernels *k, int64_t depth)
{
    return (size_t)((depth + 31) / 32 * k->gemm.f32_tiles_step + k->gemm.f32_tiles_more);
}

static bool make(problem *p, const ort_kernels *k, const sizes *s, const kind *of)
{
    const int64_t columns = (s->n + PANEL - 1) / PANEL * PANEL;
    *p = (problem){.m = s->m, .n = s->n, .k = s->k};
    p->a = malloc((size_t)(s->m * s->k) * sizeof(float));
    p->b = malloc((size_t)(s->n * s->k) * sizeof(float));
    p->more = malloc((size_t)(s->m * s->n) * sizeof(float));
    p->y = malloc((size_t)(s->m * s->n) * sizeof(float));
    p->again = malloc((size_t)(s->m * s->n) * sizeof(float));
    p->packed = aligned_alloc(64, (size_t)(columns * s->k) * sizeof(float));
    p->space = aligned_alloc(64, (k->gemm.f32_tiles_bytes + 63) / 64 * 64);
    p->rows = aligned_alloc(64, (size_t)((s->m + 31) / 32) * block_bytes(k, KC));
    if (!p->rows || !p->a || !p->b || !p->more || !p->y || !p->again || !p->packed || !p->space)
        return false;
    for (int64_t i = 0; i < s->m * s->k; i++)
        p->a[i] = of->a(i);
    for (int64_t i = 0; i < s->n * s->k; i++)
        p->b[i] = of->b(i);
    for (int64_t i = 0; i < s->m * s->n; i++)
        p->more[i] = near_one();
    k->gemm.pack_f32(s->k, s->n, p->b, s->n, 1, s->k, p->packed);
    return true;
}

static void drop(problem *p)
{
    free(p->a);
    free(p->b);
    free(p->more);
    free(p->y);
    free(p->again);
    free(p->packed);
    free(p->space);
    free(p->rows);
}

static ort_tile_f32 tile_of(const problem *p, float *y)
{
    return (ort_tile_f32){.a = p->a, .lda = p->k, .b = p->packed, .b_step = PANEL,
                          .b_panel = p->k * PANEL, .c = y, .ldc = p->n, .alpha = 1,
                          .lo = -INFINITY, .hi = INFINITY};
}

static int64_t part_of(int64_t k)
{
    const int64_t parts = (k + KC - 1) / KC;
    return ((k + parts - 1) / parts + 31) / 32 * 32;
}

/* The pieces that a thread takes: every `step`th, or these in reverse order. */
typedef struct taking {
    int64_t at, step, count;
    bool reverse;
    int64_t done; /* pieces whose sums are said to be there */
} taking;

static int64_t next_of(void *arg)
{
    taking *t = arg;
    const int64_t at = t->at;
    t->at += t->step;
    return at >= t->count ? -1 : t->reverse ? t->count - 1 - at : at;
}

static void note_done(void *arg, int64_t piece)
{
    taking *t = arg;
    t->done += piece >= 0 && piece < t->count;
}

typedef struct manner { /* of taking them: threads, pieces of a panel */
    int64_t threads, pieces;
    bool reverse;
} manner;

/* One part of k; false if some piece isn't said to be done. */
static bool one_part(const ort_kernels *k, const problem *p, const ort_tile_f32 *t, int64_t depth,
                     const manner *how)
{
    const int64_t blocks = (p->m + 31) / 32, each = (blocks + how->pieces - 1) / how->pieces;
    ort_tiles_f32 work = {.t = *t, .m = p->m, .n = p->n, .depth = depth, .rows = p->rows,
                          .pieces = (blocks + each - 1) / each, .ahead = how->threads,
                          .next = next_of, .done = note_done};
    const int64_t count = (p->n + PANEL - 1) / PANEL * work.pieces;
    int64_t done = 0;
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t rows = p->m - i * 32 < 32 ? p->m - i * 32 : 32;
        k->gemm.f32_tiles_split(rows, depth, t->a + i * 32 * p->k, p->k,
                                p->rows + (size_t)i * block_bytes(k, depth));
    }
    for (int64_t i = 0; i < how->threads; i++) {
        taking mine = {i, how->threads, count, how->reverse, 0};
        work.arg = &mine;
        k->gemm.f32_tiles(&work, p->space);
        done += mine.done;
    }
    return done == count;
}

/* What precedes the product comes with the first part of k, its bounds with the last. */
static ort_tile_f32 tile_of_part(const problem *p, const ort_tile_f32 *whole, int64_t k0, bool last)
{
    ort_tile_f32 t = *whole;
    t.a += k0;
    t.b = p->packed + k0 * PANEL;
    if (k0 > 0) {
        t.add = t.c;
        t.ldadd = t.ldc;
        t.row_bias = t.col_bias = NULL;
    }
    t.lo = last ? t.lo : -INFINITY;
    t.hi = last ? t.hi : INFINITY;
    return t;
}

static bool by_tiles(const ort_kernels *k, const problem *p, const ort_tile_f32 *whole,
                     const manner *how)
{
    const int64_t each = part_of(p->k);
    bool done = true;
    for (int64_t k0 = 0; k0 < p->k; k0 += each) {
        const ort_tile_f32 t = tile_of_part(p, whole, k0, p->k - k0 <= each);
        done &= one_part(k, p, &t, p->k - k0 < each ? p->k - k0 : each, how);
    }
    return done;
}

static const manner alone = {1, 1, false};

/* The kernel of floats as matrix products call it: k in the same parts. */
static void by_floats(const ort_kernels *k, const problem *p, const ort_tile_f32 *whole)
{
    const int64_t each = part_of(p->k);
    for (int64_t k0 = 0; k0 < p->k; k0 += each) {
        const bool last = p->k - k0 <= each;
        const ort_tile_f32 t = tile_of_part(p, whole, k0, last);
        k->gemm.f32(p->m, p->n, last ? p->k - k0 : each, &t);
    }
}

/* Off by how much of what is allowed, at most; 1e9 where a NaN or an infinity isn't there. Floats
 * themselves have no numbers between multiples of 2^-149. */
static double worst(const problem *p, const float *reference)
{
    const double u = ldexp(1, -24), parts = (double)((p->k + KC - 1) / KC);
    const double steps = (double)(p->k < KC ? (p->k + 31) / 32 : KC / 32);
    const double bound = (20 + 6 * steps + parts) * u, floats = (double)(p->k + 1) * u;
    double most = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double exact = 0, size = 0, a_most = 0, b_most = 0;
            const float y = p->y[i * p->n + j], other = reference[i * p->n + j];
            for (int64_t kk = 0; kk < p->k; kk++) {
                const double a = (double)p->a[i * p->k + kk], b = (double)p->b[kk * p->n + j];
                exact += a * b;
                size += fabs(a * b);
                a_most = fmax(a_most, fabs(a));
                b_most = fmax(b_most, fabs(b));
            }
            if (!(size <= FLT_MAX)) { /* sums in float may overflow */
                most = isnan(y) == isnan(other) && (isnan(y) || y == other) ? most : 1e9;
                continue;
            }
            const double allowed = (p->k < 32 ? bound : fmin(bound, floats)) * size;
            const double lost = (double)p->k * (ldexp(1, -42) * a_most * b_most + ldexp(1, -149));
            if (fabs((double)y - exact) > 0)
                most = test_worse(most, fabs((double)y - exact) / (allowed + lost));
        }
    return most;
}

static void one_kind(test_state *test, const ort_kernels *k, const kind *of, const sizes *s)
{
    problem p;
    const size_t bytes = (size_t)(s->m * s->n) * sizeof(float);
    const bool made = make(&p, k, s, of);
    CHECK(made);
    if (made) {
        ort_tile_f32 t = tile_of(&p, p.y), other = tile_of(&p, p.again);
        CHECK(by_tiles(k, &p, &t, &alone));
        by_floats(k, &p, &other);
        CHECK(worst(&p, p.again) <= 1);
        if (of->floats)
            CHECK(!memcmp(p.y, p.again, bytes));
    }
    drop(&p);
}

static void cuts(test_state *test, const ort_kernels *k)
{
    static const kind some[] = {{plain, plain, false}, {with_nan, plain, false},
                                {mixed, with_inf, false}};
    static const manner manners[] = {{1, 1, true},  {1, 3, false}, {1, 2, true},
                                     {2, 1, false}, {3, 7, true},  {9, 2, false}};
    static const sizes s = {200, 150, 520};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        problem p;
        const bool made = make(&p, k, &s, &some[i]);
        CHECK(made);
        if (made) {
            const size_t bytes = (size_t)(s.m * s.n) * sizeof(float);
            ort_tile_f32 t = tile_of(&p, p.y);
            CHECK(by_tiles(k, &p, &t, &alone));
            t = tile_of(&p, p.again);
            for (size_t h = 0; h < sizeof manners / sizeof *manners; h++) {
                memset(p.again, 0, bytes);
                CHECK(by_tiles(k, &p, &t, &manners[h]));
                CHECK(!memcmp(p.y, p.again, bytes));
            }
        }
        drop(&p);
    }
}

/* What follows the product, as after that of floats. */
static void follows(test_state *test, const ort_kernels *k)
{
    static const sizes s = {70, 75, 600};
    static const kind of = {plain, plain, false};
    problem p;
    const bool made = make(&p, k, &s, &of);
    CHECK(made);
    for (int i = 0; made && i < 16; i++) {
        float *const to[] = {p.y, p.again};
        for (int which = 0; which < 2; which++) {
            ort_tile_f32 t = tile_of(&p, to[which]);
            t.alpha = i & 1 ? 0.125f : 1.0f;
            t.add = i & 2 ? p.more : NULL;
            t.ldadd = i & 4 ? p.n : 0;
            t.row_bias = i & 4 ? p.more : NULL;
            t.col_bias = i & 8 ? p.more : NULL;
            t.lo = i & 8 ? -0.5f : -INFINITY;
            t.hi = i & 1 ? 1.5f : INFINITY;
            if (which)
                by_floats(k, &p, &t);
            else
                CHECK(by_tiles(k, &p, &t, &alone));
        }
        float most = 0;
        for (int64_t j = 0; j < s.m * s.n; j++)
            most = (float)test_worse((double)most, (double)fabsf(p.y[j] - p.again[j]));
        CHECK(most < 1e-4f);
    }
    drop(&p);
}

static void every_tier(test_state *test)
{
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        const ort_kernels *k = ort_kernels_get(ort_kernel_tier_at(i)->name);
        if (!k || !k->gemm.f32_tiles)
            continue;
        CHECK(k->gemm.nr == PANEL);
        for (size_t s = 0; s < sizeof all / sizeof *all; s++)
            for (size_t of = 0; of < sizeof kinds / sizeof *kinds; of++)
                one_kind(test, k, &kinds[of], &all[s]);
        cuts(test, k);
        follows(test, k);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, every_tier);
    return test.failures != 0;
}
