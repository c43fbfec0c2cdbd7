/* floats_amx.c - products of floats of many rows on the AMX tier's tiles, by thirds (thirds.h), of
 * B in the panels of the AVX-512 tier, whose kernel does what thirds don't hold: infinity, NaN,
 * very large and very small numbers, by blocks of 32 rows and columns and KC along k.
 *
 * A chunk of rows is split once for every KC, a panel of B a few words at a time while the panel
 * before it is multiplied: packed weights stay the floats that they are, 4 bytes each, and serve
 * both kernels.
 *
 * Bound: nominally products (24 in 384 cycles for a block and step); as measured, what is done in
 * their shadow and the second-level cache, which give half of that rate at 128 rows.
 */
#include <math.h>

#include "kernel/amx/floats_amx.h"
#include "kernel/amx/thirds.h"
#include "kernel/contract.h"
#include "kernel/gemm_follow.inc"

enum {
    KC = 384,
    STEPS = KC / THIRDS_K,
    CHUNK = 256,                /* rows that share a panel's splitting */
    BLOCKS = CHUNK / TILE_PAIR,
    B_BYTES = STEPS * THIRDS_B_STEP,
    A_ROW = STEPS * 64 + 64,    /* not 768 apart: rows would share few sets of a cache */
    A_THIRD = TILE_PAIR * A_ROW,
    A_BYTES = 3 * A_THIRD,      /* of a block of 32 rows: [third][row][step][64] */
    SUMS = TILE_PAIR * TILE_PAIR,
};

static void (*by_floats)(int64_t m, int64_t n, int64_t k, const ort_tile_f32 *tile);

/* What lies in the scratch memory. */
typedef struct scratch {
    char a[BLOCKS][A_BYTES], b[2][B_BYTES];
    float sums[2][SUMS];
} scratch;

/* A panel that is split a few words at a time. */
typedef struct panel_split {
    const float *from;
    char *to;
    int64_t ahead;            /* from here to what is split after this panel: fetched */
    int64_t depth, at, words; /* words: of both columns, 16 a step */
    __m512i size[2];
} panel_split;

static void split_begin(panel_split *p, const float *from, int64_t ahead, int64_t depth, char *to)
{
    p->ahead = ahead;
    p->from = from;
    p->to = to;
    p->depth = depth;
    p->at = 0;
    p->words = (depth + THIRDS_K - 1) / THIRDS_K * TILE_WORDS;
    p->size[0] = p->size[1] = _mm512_setzero_si512();
}

/* One row of 16 columns, or zeros. */
static inline vf row_of(const panel_split *p, int64_t kk, int side)
{
    return kk < p->depth ? vf_load(p->from + kk * TILE_PAIR + side * TILE_COLUMNS) : vf_zero();
}

static inline void split_words(panel_split *p, int64_t count)
{
    const int64_t end = p->words - p->at < count ? p->words : p->at + count;
    __m512i left = p->size[0], right = p->size[1];
    for (int64_t i = p->at; i < end; i++) {
        const int64_t kk = i / TILE_WORDS * THIRDS_K + i % TILE_WORDS, kk2 = kk + TILE_WORDS;
        char *to = p->to + i / TILE_WORDS * THIRDS_B_STEP + i % TILE_WORDS * 64;
        const vf x = row_of(p, kk, 0), y = row_of(p, kk2, 0);
        __builtin_prefetch(p->from + p->ahead + kk * TILE_PAIR, 0, 2);
        __builtin_prefetch(p->from + p->ahead + kk * TILE_PAIR + TILE_COLUMNS, 0, 2);
        __builtin_prefetch(p->from + p->ahead + kk2 * TILE_PAIR, 0, 2);
        __builtin_prefetch(p->from + p->ahead + kk2 * TILE_PAIR + TILE_COLUMNS, 0, 2);
        const vf z = row_of(p, kk, 1), w = row_of(p, kk2, 1);
        thirds_store(to, THIRDS_B_THIRD, thirds_of(x, y));
        thirds_store(to + THIRDS_TILE, THIRDS_B_THIRD, thirds_of(z, w));
        left = thirds_larger(left, x, y);
        right = thirds_larger(right, z, w);
    }
    p->at = end;
    p->size[0] = left;
    p->size[1] = right;
}

/* All that is left; do thirds hold the panel? */
static bool split_end(panel_split *p)
{
    split_words(p, p->words);
    return thirds_fit(p->size[0]) && thirds_fit(p->size[1]);
}

/* A row of A: do thirds hold it? */
static bool split_row(const float *a, int64_t depth, char *to)
{
    __m512i size = _mm512_setzero_si512();
    int64_t kk = 0;
    for (; depth - kk >= THIRDS_K; kk += THIRDS_K, to += 64) {
        const vf x = vf_load(a + kk), y = vf_load(a + kk + TILE_WORDS);
        thirds_store(to, A_THIRD, thirds_of(x, y));
        size = thirds_larger(size, x, y);
    }
    if (kk < depth) {
        const int64_t left = depth - kk, more = left - TILE_WORDS;
        const vf x = left < TILE_WORDS ? vf_load_n(a + kk, left) : vf_load(a + kk);
        const vf y = more > 0 ? vf_load_n(a + kk + TILE_WORDS, more) : vf_zero();
        thirds_store(to, A_THIRD, thirds_of(x, y));
        size = thirds_larger(size, x, y);
    }
    return thirds_row_fits(size);
}

static bool split_rows(int64_t rows, const float *a, int64_t lda, int64_t depth, char *to)
{
    bool fit = true;
    for (int64_t i = 0; i < rows; i++)
        fit &= split_row(a + i * lda, depth, to + i * A_ROW);
    return fit;
}

/* One block of up to 32 rows and columns: its place in the product is in `t`. */
typedef struct block {
    ort_tile_f32 t;
    int rows, columns;
    int64_t depth;
} block;

/* What is done in the shadow of products: sums of the block before this one go where they belong,
 * and the next panel of B is split. */
typedef struct meanwhile {
    panel_split split;
    int64_t words;     /* at a time */
    block given;
    const float *sums; /* of it, from its next row on */
    int row, rows;     /* the next row; rows at a time */
} meanwhile;

static void give_rows(meanwhile *d, int count)
{
    const block *k = &d->given;
    const ort_tile_f32 *t = &k->t;
    const int left = k->columns < VF_LANES ? k->columns : VF_LANES, right = k->columns - left;
    const int end = k->rows - d->row < count ? k->rows : d->row + count;
    for (int i = d->row; i < end; i++, d->sums += TILE_PAIR) {
        const float *add = t->add ? t->add + i * t->ldadd : NULL;
        float *c = t->c + i * t->ldc;
        const vf v = f32_follow(vf_load(d->sums), t, i, add, 0, left);
        vf_store_n(c, left, v);
        if (right <= 0)
            continue;
        add = add ? add + VF_LANES : NULL;
        const vf w = f32_follow(vf_load(d->sums + VF_LANES), t, i, add, VF_LANES, right);
        vf_store_n(c + VF_LANES, right, w);
    }
    d->row = end;
}

static void give_rest(meanwhile *d)
{
    give_rows(d, d->given.rows);
}

static __attribute__((noinline)) void do_some(meanwhile *d)
{
    if (d->row < d->given.rows)
        give_rows(d, d->rows);
    if (d->split.at < d->split.words)
        split_words(&d->split, d->words);
}

static inline __attribute__((always_inline)) void multiply(const thirds_walk *w, meanwhile *d,
                                                           bool lower, bool right)
{
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    THIRDS_MULTIPLY(w, lower, right, do_some(d));
}

static void multiply_block(const block *k, const thirds_walk *w, meanwhile *d, float *sums)
{
    const bool lower = k->rows > TILE_ROWS_MOST, right = k->columns > TILE_COLUMNS;
    d->rows = (int)((TILE_PAIR + 6 * w->steps - 1) / (6 * w->steps));
    if (lower && right)
        multiply(w, d, true, true);
    else if (lower)
        multiply(w, d, true, false);
    else if (right)
        multiply(w, d, false, true);
    else
        multiply(w, d, false, false);
    give_rest(d);
    TILE_STORE(0, sums, 4 * TILE_PAIR);
    if (right)
        TILE_STORE(1, sums + TILE_COLUMNS, 4 * TILE_PAIR);
    if (lower)
        TILE_STORE(2, sums + SUMS / 2, 4 * TILE_PAIR);
    if (lower && right)
        TILE_STORE(3, sums + SUMS / 2 + TILE_COLUMNS, 4 * TILE_PAIR);
    d->given = *k;
    d->sums = sums;
    d->row = 0;
}

/* A chunk of rows over KC of k. */
typedef struct pass {
    const ort_tile_f32 *t; /* of the chunk's first row and this part of k */
    scratch *s;
    int64_t m, n, depth;
    int blocks;
    bool fits[BLOCKS];
} pass;

static void split_chunk(pass *p)
{
    p->blocks = (int)((p->m + TILE_PAIR - 1) / TILE_PAIR);
    for (int i = 0; i < p->blocks; i++) {
        const int64_t row = (int64_t)i * TILE_PAIR, left = p->m - row;
        p->fits[i] = split_rows(left < TILE_PAIR ? left : TILE_PAIR, p->t->a + row * p->t->lda,
                                p->t->lda, p->depth, p->s->a[i]);
    }
}

static block block_at(const pass *p, int64_t row, int64_t column)
{
    const ort_tile_f32 *t = p->t;
    block k = {.t = *t, .depth = p->depth};
    k.rows = p->m - row < TILE_PAIR ? (int)(p->m - row) : TILE_PAIR;
    k.columns = p->n - column < TILE_PAIR ? (int)(p->n - column) : TILE_PAIR;
    k.t.a += row * t->lda;
    k.t.b = (const float *)t->b + column / TILE_PAIR * t->b_panel;
    k.t.c += row * t->ldc + column;
    k.t.add = t->add ? t->add + row * t->ldadd + column : NULL;
    k.t.row_bias = t->row_bias ? t->row_bias + row : NULL;
    k.t.col_bias = t->col_bias ? t->col_bias + column : NULL;
    k.t.ahead = NULL;
    return k;
}

static void multiply_panel(const pass *p, int64_t column, bool fits, const char *b,
                           meanwhile *d)
{
    const int64_t steps = (p->depth + THIRDS_K - 1) / THIRDS_K;
    d->words = (TILE_WORDS + 6 * p->blocks - 1) / (6 * p->blocks);
    for (int i = 0; i < p->blocks; i++) {
        const block k = block_at(p, (int64_t)i * TILE_PAIR, column);
        if (!fits || !p->fits[i]) {
            give_rest(d); /* may be what this adds to */
            by_floats(k.rows, k.columns, p->depth, &k.t);
            continue;
        }
        const bool lower = k.rows > TILE_ROWS_MOST;
        const char *a = p->s->a[i];
        const thirds_walk w = {.a = a, .a_lower = a + TILE_ROWS_MOST * A_ROW, .a_row = A_ROW,
                               .a_third = A_THIRD, .a_step = 64, .b = b, .steps = steps,
                               .a_after = p->s->a[i + 1 < p->blocks ? i + 1 : 0], .b_after = b};
        if (i == 0 || k.rows < TILE_PAIR)
            tile_begin(lower ? TILE_ROWS_MOST : k.rows, lower ? k.rows - TILE_ROWS_MOST : 0,
                       TILE_WORDS);
        multiply_block(&k, &w, d, p->s->sums[i & 1]);
    }
}

/* The part of k from k0 on: what precedes the product comes with the first, its bounds with the
 * last. */
static ort_tile_f32 part_of(const ort_tile_f32 *t, int64_t row, int64_t k0, bool last)
{
    ort_tile_f32 part = *t;
    part.a += row * t->lda + k0;
    part.b = (const float *)t->b + k0 * TILE_PAIR;
    part.c += row * t->ldc;
    part.add = t->add ? t->add + row * t->ldadd : NULL;
    part.row_bias = t->row_bias ? t->row_bias + row : NULL;
    if (k0 > 0) {
        part.add = part.c;
        part.ldadd = t->ldc;
        part.row_bias = part.col_bias = NULL;
    }
    if (!last) {
        part.lo = -INFINITY;
        part.hi = INFINITY;
    }
    return part;
}

/* The splitting of the panel that comes after the one at this column. */
static void begin_next(const pass *p, int64_t column, int64_t after_depth, char *to,
                       panel_split *next)
{
    const float *b = p->t->b;
    if (p->n - column > TILE_PAIR)
        split_begin(next, b + (column / TILE_PAIR + 1) * p->t->b_panel, p->t->b_panel, p->depth,
                    to);
    else
        split_begin(next, b + p->depth * TILE_PAIR, p->t->b_panel, after_depth, to); /* k's next */
}

static void multiply_chunk(int64_t row, int64_t m, int64_t n, int64_t k, const ort_tile_f32 *t,
                           scratch *s)
{
    const int64_t parts = (k + KC - 1) / KC;
    const int64_t each = ((k + parts - 1) / parts + THIRDS_K - 1) / THIRDS_K * THIRDS_K;
    meanwhile d = {.row = 0}; /* no rows to give */
    int which = 0;
    split_begin(&d.split, t->b, t->b_panel, k < each ? k : each, s->b[0]);
    for (int64_t k0 = 0; k0 < k; k0 += each) {
        const int64_t left = k - k0, depth = left < each ? left : each;
        const ort_tile_f32 part = part_of(t, row, k0, left <= each);
        pass p = {.t = &part, .s = s, .m = m, .n = n, .depth = depth};
        split_chunk(&p);
        for (int64_t column = 0; column < n; column += TILE_PAIR, which = !which) {
            const bool fits = split_end(&d.split);
            const int64_t after = left - depth < each ? left - depth : each;
            begin_next(&p, column, after, s->b[!which], &d.split);
            multiply_panel(&p, column, fits, s->b[which], &d);
        }
    }
    give_rest(&d);
}

static void float_tiles(int64_t m, int64_t n, int64_t k, const ort_tile_f32 *t, void *space)
{
    assert(m >= 0 && n >= 0 && k > 0 && !t->b_offset && t->b_step == TILE_PAIR);
    assert(m < 2 || t->ldc >= n);
    assert(!t->add || t->add != t->c || t->ldadd == t->ldc);
    for (int64_t row = 0; row < m; row += CHUNK)
        multiply_chunk(row, m - row < CHUNK ? m - row : CHUNK, n, k, t, space);
    tile_end();
}

void ort_floats_plug_amx(ort_gemm_kernels *table)
{
    by_floats = table->f32;
    table->f32_tiles = float_tiles;
    table->f32_tiles_bytes = sizeof(scratch);
    table->f32_tiles_rows = TILE_PAIR;
}
