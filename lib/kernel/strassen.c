/* strassen.c - a block of rows by a pair of panels in Strassen's way, on one thread. */
#include "kernel/strassen.h"

#include <math.h>

enum { BLOCK_ROWS = 256, PARTS = 3, APART_MOST = 100 };

static int64_t over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

ort_strassen ort_strassen_of(const ort_gemm_kernels *k, int64_t m, int64_t n, int64_t depth)
{
    ort_strassen s = {.k = k, .m = m, .n = n, .depth = depth, .half = depth / 2};
    s.blocks = over(m, BLOCK_ROWS);
    s.most = over(over(m, s.blocks), 2);
    s.pairs = n / (2 * k->nr);
    const int64_t parts = over(s.half, k->kc), steps = over(parts, PARTS);
    s.part = over(s.half, parts);
    s.step = over(parts, steps) * s.part;
    return s;
}

/* ---- where things lie */

/* From one row of a left operand to the next. Rows that lie a multiple of 1 KiB apart would share
 * few sets of a cache. */
static int64_t row_step(int64_t k)
{
    const int64_t step = over(k, 16) * 16;
    return step % 256 ? step : step + 16;
}

typedef struct places { /* floats from the space's beginning */
    int64_t second;     /* by what second rows of C are multiplied, behind that of the first ones */
    int64_t left;       /* of each step of k, [7][rows][row_step] */
    int64_t formed;     /* two differences */
    int64_t products;   /* [7][rows][nr] */
    int64_t end;
} places;

static places places_of(const ort_strassen *s)
{
    const int64_t lines = over(s->most, 16) * 16, steps = over(s->half, s->step);
    places p = {.second = lines, .left = 2 * lines};
    p.formed = p.left + 7 * s->most * row_step(s->step) * steps;
    p.products = p.formed + 2 * s->step * s->k->nr;
    p.end = p.products + 7 * s->most * s->k->nr;
    return p;
}

size_t ort_strassen_bytes(const ort_strassen *s)
{
    return (size_t)places_of(s).end * sizeof(float);
}

static int64_t rows_of(const ort_strassen *s, int64_t block)
{
    return ort_strassen_first_row(s, block + 1) - ort_strassen_first_row(s, block);
}

/* ---- the left operands */

/* What brings the rows of a pair to one size: powers of two, and theirs for C. */
static bool scale_pair(float first, float second, ort_strassen_row *row, float *back_first,
                       float *back_second)
{
    row->by_first = row->by_second = 1;
    *back_first = first > 0;
    *back_second = second > 0;
    if (!(first > 0 && second > 0 && first < INFINITY && second < INFINITY))
        return true;
    const int apart = ilogbf(first) - ilogbf(second);
    if (apart > 0) {
        row->by_second = ldexpf(1, apart);
        *back_second = ldexpf(1, -apart);
    } else {
        row->by_first = ldexpf(1, -apart);
        *back_first = ldexpf(1, apart);
    }
    return apart <= APART_MOST && apart >= -APART_MOST;
}

/* Pair r of the block that begins at a. False where the rows have to be scaled and `in_place` says
 * that they aren't; *suits false where they can't be. */
static bool form_pair(const ort_strassen *s, float *space, const float *a, int64_t lda,
                      int64_t rows, int64_t r, bool in_place, bool *suits)
{
    const places at = places_of(s);
    const int64_t pairs = over(rows, 2);
    const float *first = a + r * lda, *second = pairs + r < rows ? first + pairs * lda : NULL;
    ort_strassen_row w = {.half = s->half, .in_place = in_place};
    const float most = s->k->strassen.most(s->depth, first, first + lda);
    const float below = second ? s->k->strassen.most(s->depth, second, second + lda) : 0;
    *suits = scale_pair(most, below, &w, &space[r], &space[at.second + r]);
    if (in_place && (w.by_first != 1 || w.by_second != 1))
        return false;
    float *left = space + at.left;
    for (int64_t k0 = 0; k0 < s->half; k0 += s->step) {
        const int64_t k = s->half - k0 < s->step ? s->half - k0 : s->step, step = row_step(k);
        w.first = first + k0;
        w.second = second ? second + k0 : NULL;
        w.out = left + r * step;
        w.step = pairs * step;
        s->k->strassen.rows(k, &w);
        left += 7 * pairs * step;
    }
    return true;
}

/* A11, A12 and A22 are read in place where no row is scaled, nor lies a multiple of 4 KiB from the
 * next, as rows that share one set of a cache do. */
ort_strassen_left ort_strassen_rows(const ort_strassen *s, int64_t block, const float *a,
                                    int64_t lda, void *space)
{
    const int64_t rows = rows_of(s, block), pairs = over(rows, 2);
    ort_strassen_left left = {.a = a + ort_strassen_first_row(s, block) * lda, .lda = lda,
                              .suits = true,
                              .in_place = lda * (int64_t)sizeof(float) % 4096 != 0};
    for (int64_t r = 0; r < pairs && left.suits;) {
        const bool is = form_pair(s, space, left.a, lda, rows, r, left.in_place, &left.suits);
        left.in_place &= is;
        r = is ? r + 1 : 0;
    }
    return left;
}

/* ---- the products */

/* Lines of C that are written when all products are there: a seventh of them for product x. */
static void bring_c(const ort_strassen *s, int64_t rows, const ort_tile_f32 *t, int x)
{
    const int64_t line = 64 / sizeof(float);
    for (int64_t i = rows * x / 7; i < rows * (x + 1) / 7; i++)
        for (int64_t j = 0; j < 2 * s->k->nr; j += line)
            __builtin_prefetch(t->c + i * t->ldc + j, 1, 2);
}

/* A part of k, `rows` of A by a pair of panels. */
typedef struct portion {
    int64_t rows, k0, k;
    const float *b, *ahead;
} portion;

/* P1, P2, P5, P6, P4, P7, P3. Differences take two places by turns: T1 is there when T2 is formed,
 * and T2 when T4 is. */
static void multiply(const ort_strassen *s, const ort_strassen_left *left, const portion *w,
                     const float *copies, float *space, const ort_tile_f32 *to)
{
    const int64_t pairs = over(w->rows, 2), low = w->rows - pairs, lda = left->lda;
    const int64_t nr = s->k->nr, panel = s->depth * nr, down = s->half * nr, step = row_step(w->k);
    const float *b11 = w->b + w->k0 * nr, *b12 = b11 + panel, *b21 = b11 + down, *b22 = b12 + down;
    const float *a11 = left->a + w->k0, *a12 = a11 + s->half, *a22 = a12 + pairs * lda;
    const places at = places_of(s);
    float *even = space + at.formed, *odd = even + s->step * nr;
    const struct {
        const float *a, *b, *less; /* a in place, or NULL */
        float *formed;
        int64_t ahead;
    } all[7] = {{a11, b11, NULL, NULL, 0},     {a12, b21, NULL, NULL, down},
                {NULL, b12, b11, even, -1},    {NULL, b22, even, odd, -1},
                {a22, odd, b21, even, panel},  {NULL, b22, b12, odd, -1},
                {NULL, b22, NULL, NULL, panel + down}};
    for (int x = 0; x < 7; x++) {
        const bool here = left->in_place && all[x].a;
        const float *ahead = w->ahead && all[x].ahead >= 0 ? w->ahead + all[x].ahead : NULL;
        float *c = space + at.products + x * pairs * nr;
        const ort_tile_f32 t = {.a = here ? all[x].a : copies + x * pairs * step,
                                .lda = here ? lda : step, .b = all[x].b, .b_step = nr,
                                .b_panel = w->k * nr, .c = c, .ldc = nr,
                                .add = w->k0 ? c : NULL, .ldadd = nr, .alpha = 1,
                                .lo = -INFINITY, .hi = INFINITY,
                                .part = w->k > s->part ? s->part : 0, .ahead = ahead};
        if (w->k0 + w->k == s->half)
            bring_c(s, w->rows, to, x);
        if (all[x].less)
            s->k->strassen.less(all[x].a ? low : pairs, w->k, &t, all[x].less, all[x].formed);
        else
            s->k->f32(pairs, nr, w->k, &t);
    }
}

bool ort_strassen_pair(const ort_strassen *s, int64_t block, const ort_strassen_left *left,
                       const float *b, const ort_tile_f32 *t, const float *ahead, void *space)
{
    const places at = places_of(s);
    const int64_t rows = rows_of(s, block), pairs = over(rows, 2);
    float *floats = space;
    const float *copies = floats + at.left;
    for (int64_t k0 = 0; k0 < s->half; k0 += s->step) {
        const int64_t k = s->half - k0 < s->step ? s->half - k0 : s->step;
        const portion w = {rows, k0, k, b, k0 + k < s->half ? b + (k0 + k) * s->k->nr : ahead};
        multiply(s, left, &w, copies, floats, t);
        copies += 7 * pairs * row_step(k);
    }
    const ort_strassen_sums sums = {.products = floats + at.products, .rows = pairs,
                                    .low = rows - pairs, .first = floats,
                                    .second = floats + at.second};
    return s->k->strassen.finish(&sums, t);
}
