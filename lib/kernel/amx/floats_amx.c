/* floats_amx.c - products of floats of many rows on the AMX tier's tiles, by thirds (thirds.h), of
 * B in the panels of the AVX-512 tier, whose kernel does what thirds don't hold: infinity, NaN,
 * very large and very small numbers, by blocks of 32 rows and columns and a part of k.
 *
 * Rows are split once for all threads. A panel of B is split a few words at a time while the piece
 * before it is multiplied, which is why a thread takes its next piece early: packed weights stay
 * the floats that they are, 4 bytes each, and serve both kernels.
 *
 * Bound: products, 24 in 384 cycles for a block and step, where three blocks or more share a
 * panel's splitting.
 */
#include <math.h>

#include "kernel/amx/floats_amx.h"
#include "kernel/amx/thirds.h"
#include "kernel/contract.h"
#include "kernel/gemm_follow.inc"

enum {
    KC = 384,
    STEPS = KC / THIRDS_K,
    B_BYTES = STEPS * THIRDS_B_STEP,
    A_THIRD = TILE_PAIR * 64 + 64, /* a step is an odd number of lines: rows use all sets */
    A_STEP = 3 * A_THIRD,          /* [step][third][row][64] */
    SUMS = TILE_PAIR * TILE_PAIR,
    WORD_FLOATS = TILE_PAIR,       /* from a word's rows of a panel to the next word's */
};

static void (*by_floats)(int64_t m, int64_t n, int64_t k, const ort_tile_f32 *tile);

/* Behind the steps of a block of rows. */
typedef struct block_tail {
    int64_t fits;
    char line[56];
} block_tail;

/* What lies in the scratch memory. */
typedef struct scratch {
    char b[2][B_BYTES];
    float sums[2][SUMS];
} scratch;

/* ---- splitting */

/* A panel that is split a few words at a time. A word is two rows of it, 16 apart, of both sides
 * of 16 columns. */
typedef struct panel_split {
    const float *from;
    char *to;
    int64_t ahead;          /* floats from here to what is split after this panel: fetched */
    int64_t depth, at, end; /* words: the next, and those of whole steps */
    __m512i left, right;    /* sizes */
} panel_split;

static void split_begin(panel_split *p, const float *from, int64_t ahead, int64_t depth, char *to)
{
    p->from = from;
    p->to = to;
    p->ahead = ahead;
    p->depth = depth;
    p->at = 0;
    p->end = depth / THIRDS_K * TILE_WORDS;
    p->left = p->right = _mm512_setzero_si512();
}

static inline __m512i split_pair(vf x, vf y, char *to, __m512i size)
{
    thirds_store(to, THIRDS_B_THIRD, thirds_of(x, y));
    return thirds_larger(size, x, y);
}

static inline __attribute__((always_inline)) void split_left(panel_split *p)
{
    const float *from = p->from, *ahead = from + p->ahead;
    __builtin_prefetch(ahead, 0, 2);
    __builtin_prefetch(ahead + TILE_COLUMNS, 0, 2);
    p->left = split_pair(vf_load(from), vf_load(from + TILE_WORDS * WORD_FLOATS), p->to, p->left);
}

static inline __attribute__((always_inline)) void split_right(panel_split *p)
{
    const float *from = p->from + TILE_COLUMNS, *ahead = from + p->ahead + TILE_WORDS * WORD_FLOATS;
    __builtin_prefetch(ahead - TILE_COLUMNS, 0, 2);
    __builtin_prefetch(ahead, 0, 2);
    p->right = split_pair(vf_load(from), vf_load(from + TILE_WORDS * WORD_FLOATS),
                          p->to + THIRDS_TILE, p->right);
    p->from += WORD_FLOATS;
    p->to += 64;
    if (++p->at % TILE_WORDS == 0) {
        p->from += TILE_WORDS * WORD_FLOATS;
        p->to += THIRDS_B_STEP - TILE_WORDS * 64;
    }
}

/* The step behind whole ones: zeros below its rows. */
static void split_last(panel_split *p)
{
    const int64_t rows = p->depth % THIRDS_K;
    for (int64_t i = 0; rows > 0 && i < TILE_WORDS; i++) {
        const float *x = p->from + i * WORD_FLOATS, *y = x + TILE_WORDS * WORD_FLOATS;
        const bool has = i < rows, has2 = i + TILE_WORDS < rows;
        char *to = p->to + i * 64;
        p->left = split_pair(has ? vf_load(x) : vf_zero(), has2 ? vf_load(y) : vf_zero(), to,
                             p->left);
        p->right = split_pair(has ? vf_load(x + TILE_COLUMNS) : vf_zero(),
                              has2 ? vf_load(y + TILE_COLUMNS) : vf_zero(), to + THIRDS_TILE,
                              p->right);
    }
}

/* All that is left; do thirds hold the panel? */
static bool split_end(panel_split *p)
{
    while (p->at < p->end) {
        split_left(p);
        split_right(p);
    }
    split_last(p);
    return thirds_fit(p->left) && thirds_fit(p->right);
}

/* A row of A: do thirds hold it? */
static bool split_row(const float *a, int64_t depth, char *to)
{
    __m512i size = _mm512_setzero_si512();
    int64_t kk = 0;
    for (; depth - kk >= THIRDS_K; kk += THIRDS_K, to += A_STEP) {
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

static int64_t steps_of(int64_t depth)
{
    return (depth + THIRDS_K - 1) / THIRDS_K;
}

static block_tail *tail_of(const char *block, int64_t depth)
{
    return (block_tail *)(void *)(uintptr_t)(block + steps_of(depth) * A_STEP);
}

static void tiles_split(int64_t m, int64_t k, const float *a, int64_t lda, void *to)
{
    bool fits = true;
    assert(m > 0 && m <= TILE_PAIR && k > 0 && k <= KC);
    for (int64_t i = 0; i < m; i++)
        fits &= split_row(a + i * lda, k, (char *)to + i * 64);
    tail_of(to, k)->fits = fits;
}

/* ---- blocks */

/* One block of up to 32 rows and columns: its place in the product is in `t`. */
typedef struct block {
    ort_tile_f32 t;
    int rows, columns;
} block;

/* What is done in the shadow of products: sums of the block before this one go where they belong,
 * and the next panel of B is split. */
typedef struct meanwhile {
    panel_split split;
    block given;
    const float *sums; /* of it, from its next row on */
    int row, rows;     /* the next row; rows at a time */
} meanwhile;

static __attribute__((noinline)) void give_rows(meanwhile *d, int count)
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

/* `next` is d's split, which stays in registers. */
static inline __attribute__((always_inline)) void do_some(meanwhile *d, panel_split *next)
{
    if (next->at < next->end)
        split_right(next);
    if (d->row < d->given.rows)
        give_rows(d, d->rows);
}

static inline __attribute__((always_inline)) void multiply(const thirds_walk *w, meanwhile *d,
                                                           bool lower, bool right)
{
    panel_split next = d->split;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    THIRDS_MULTIPLY(w, lower, right, if (next.at < next.end) split_left(&next), do_some(d, &next));
    d->split = next;
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

static block block_at(const ort_tiles_f32 *w, int64_t row, int64_t column)
{
    const ort_tile_f32 *t = &w->t;
    block k = {.t = *t};
    k.rows = w->m - row < TILE_PAIR ? (int)(w->m - row) : TILE_PAIR;
    k.columns = w->n - column < TILE_PAIR ? (int)(w->n - column) : TILE_PAIR;
    k.t.a += row * t->lda;
    k.t.b = (const float *)t->b + column / TILE_PAIR * t->b_panel;
    k.t.c += row * t->ldc + column;
    k.t.add = t->add ? t->add + row * t->ldadd + column : NULL;
    k.t.row_bias = t->row_bias ? t->row_bias + row : NULL;
    k.t.col_bias = t->col_bias ? t->col_bias + column : NULL;
    return k;
}

static void multiply_piece(const ort_tiles_f32 *w, int64_t piece, bool fits, const char *b,
                           scratch *s, meanwhile *d)
{
    const int64_t steps = steps_of(w->depth), blocks = (w->m + TILE_PAIR - 1) / TILE_PAIR;
    const int64_t each = (blocks + w->pieces - 1) / w->pieces, first = piece % w->pieces * each;
    const int64_t end = first + each < blocks ? first + each : blocks;
    for (int64_t i = first; i < end; i++) {
        const block k = block_at(w, i * TILE_PAIR, piece / w->pieces * TILE_PAIR);
        const char *a = (const char *)w->rows + i * (steps * A_STEP + (int64_t)sizeof(block_tail));
        if (!fits || !tail_of(a, w->depth)->fits) {
            give_rest(d); /* may be what this adds to */
            by_floats(k.rows, k.columns, w->depth, &k.t);
            continue;
        }
        const bool lower = k.rows > TILE_ROWS_MOST;
        const thirds_walk walk = {.a = a, .a_lower = a + TILE_ROWS_MOST * 64, .a_row = 64,
                                  .a_third = A_THIRD, .a_step = A_STEP, .b = b, .steps = steps};
        if (i == first || k.rows < TILE_PAIR)
            tile_begin(lower ? TILE_ROWS_MOST : k.rows, lower ? k.rows - TILE_ROWS_MOST : 0,
                       TILE_WORDS);
        multiply_block(&k, &walk, d, s->sums[i & 1]);
    }
}

/* ---- the work of a thread */

static void begin_panel(const ort_tiles_f32 *w, int64_t panel, char *to, panel_split *next)
{
    const int64_t panels = (w->n + TILE_PAIR - 1) / TILE_PAIR, after = panel + w->ahead;
    const float *b = w->t.b, *from = b + panel * w->t.b_panel, *ahead = from;
    if (after < panels)
        ahead = b + after * w->t.b_panel;
    else if (w->b_after && after - panels < panels)
        ahead = w->b_after + (after - panels) * w->t.b_panel;
    split_begin(next, from, ahead - from, w->depth, to);
}

static void float_tiles(const ort_tiles_f32 *w, void *space)
{
    scratch *s = space;
    meanwhile d = {.row = 0}; /* no rows to give */
    int64_t at = w->next(w->arg), panel = -1, before = -1;
    int which = 0;
    bool fits = false;
    assert(w->m > 0 && w->n > 0 && w->depth > 0 && w->pieces > 0 && !w->t.b_offset);
    assert(w->m < 2 || w->t.ldc >= w->n);
    assert(!w->t.add || w->t.add != w->t.c || w->t.ldadd == w->t.ldc);
    if (at >= 0)
        begin_panel(w, at / w->pieces, s->b[which], &d.split);
    while (at >= 0) {
        const int64_t next = w->next(w->arg);
        if (at / w->pieces != panel) {
            panel = at / w->pieces;
            fits = split_end(&d.split);
        }
        d.split.at = d.split.end = 0;
        if (next >= 0 && next / w->pieces != panel)
            begin_panel(w, next / w->pieces, s->b[!which], &d.split);
        multiply_piece(w, at, fits, s->b[which], s, &d);
        if (w->done && before >= 0)
            w->done(w->arg, before);
        before = at;
        at = next;
        which = next >= 0 && next / w->pieces != panel ? !which : which;
    }
    give_rest(&d);
    if (w->done && before >= 0)
        w->done(w->arg, before);
    tile_end();
}

/* ---- what it can reach (peak.inc): a product of floats is six of their thirds */

static double tile_multiply_adds(int64_t rounds, float *sink)
{
    float numbers[TILE_ROWS_MOST * VF_LANES] __attribute__((aligned(64)));
    char split[3 * THIRDS_TILE] __attribute__((aligned(64)));
    for (int i = 0; i < TILE_ROWS_MOST * VF_LANES; i++)
        numbers[i] = (float)(i * 37 % 256 + 1) / 300;
    for (int i = 0; i < TILE_ROWS_MOST; i++)
        thirds_store(split + i * 64, THIRDS_TILE,
                     thirds_of(vf_load(numbers + i * VF_LANES), vf_set1(0.3f)));
    tile_begin(TILE_ROWS_MOST, TILE_ROWS_MOST, TILE_WORDS);
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    TILE_LOAD(4, split, 64);
    TILE_LOAD(5, split + THIRDS_TILE, 64);
    TILE_LOAD(6, split, 64);
    TILE_LOAD(7, split + THIRDS_TILE, 64);
    rounds = rounds / 16 + 1; /* each is as long as dozens of the other tiers' */
    for (int64_t r = 0; r < rounds; r++)
        THIRDS_FOUR(true, true);
    tile_end();
    *sink = 0;
    return 2.0 * 4 * TILE_ROWS_MOST * TILE_COLUMNS * THIRDS_K / 6 * (double)rounds;
}

void ort_floats_plug_amx(ort_gemm_kernels *table)
{
    table->tile_multiply_adds = tile_multiply_adds;
    by_floats = table->f32;
    table->f32_tiles_split = tiles_split;
    table->f32_tiles = float_tiles;
    table->f32_tiles_bytes = sizeof(scratch);
    table->f32_tiles_rows = TILE_PAIR;
    table->f32_tiles_depth = KC;
    table->f32_tiles_step = A_STEP;
    table->f32_tiles_more = sizeof(block_tail);
    table->strassen = (ort_strassen_kernels){0}; /* tiles are faster */
    table->crossed = (ort_crossed_kernels){0};
}
