/* nbits_amx.c - products of many rows with weights of a few bits by blocks, on the AMX tier's tiles
 * of bfloat16, for accuracy_level 4.
 *
 * Rows of a and weights times their scales are both rounded to 8 bits: with |error of a| and of a
 * weight <= 2^-9 of itself, a product is off by less than 2^-8 + 2^-18 of itself. One byte an
 * element (nbits_fixed.inc) allows half of a 127th of the largest |a| of its run times the weight,
 * which is more, so that one bound holds for both ways. Sums of bytes would have to become floats
 * behind each run, which takes three times as long as its products where runs have 32 weights;
 * these stay in tiles over all of k, added with one rounding for two products (thirds.h, which also
 * says how words pair places of k).
 *
 * 32 columns are widened, a stretch of k at a time, and serve all rows.
 *
 * Bound: loads and products of tiles, which take turns: 32 of the former's cycles for 64 of the
 * latter's; widening, 6 cycles for 32 weights, where there are few rows.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/amx/nbits_amx.h"
#include "kernel/amx/thirds.h"
#include "kernel/contract.h"

#include "kernel/gemm.h"
#include "kernel/nbits_read.inc"

enum { STRETCH = 16, /* steps of 32 weights of k: 32 KiB of 32 columns */
       B_STEP = 2 * THIRDS_TILE };

/* ---- rows */

bool ort_nbits_round(int64_t k, const ort_nbits *w, const float *a, int32_t *fixed)
{
    const int64_t steps = w->row_words / w->bits;
    __m512i size = _mm512_setzero_si512();
    assert(nbits_is_whole(w) && w->run_words >= w->bits && k > 0 && k <= steps * THIRDS_K);
    assert(w->fixed_row >= steps * TILE_WORDS);
    for (int64_t kk = 0; kk < steps * THIRDS_K; kk += THIRDS_K, fixed += TILE_WORDS) {
        const int64_t left = k - kk, more = left - TILE_WORDS;
        const vf x = left >= TILE_WORDS ? vf_load(a + kk) : left > 0 ? vf_load_n(a + kk, left)
                                                                      : vf_zero();
        const vf y = more >= TILE_WORDS ? vf_load(a + kk + TILE_WORDS)
                     : more > 0         ? vf_load_n(a + kk + TILE_WORDS, more)
                                        : vf_zero();
        vi_store(fixed, thirds_round(x, y));
        size = thirds_larger(size, x, y);
    }
    const uint32_t most = thirds_size(size); /* 0, or within 2^-100 and 2^100 */
    return most == 0 || (most >= 27u << 24 && most <= 227u << 24);
}

/* ---- weights */

/* A step of 16 columns: words of `bits` weights each, the first half with the second. */
static inline __attribute__((always_inline)) void widen_step(const int32_t *q, int bits, vf scale,
                                                             vf minus, char *to)
{
    const vi mask = vi_set1((1 << bits) - 1);
    for (int half = 0; half < bits / 2; half++) {
        vi x = vi_load(q + half * VF_LANES), y = vi_load(q + (half + bits / 2) * VF_LANES);
        for (int from = 0; from < 32; from += bits) {
            const int row = half * (32 / bits) + 4 * (from % 8 / bits) + from / 8;
            const vf of_x = vf_fma(vf_from_vi(vi_and(x, mask)), scale, minus);
            const vf of_y = vf_fma(vf_from_vi(vi_and(y, mask)), scale, minus);
            vi_store((int32_t *)(void *)(to + row * 64), thirds_round(of_x, of_y));
            x = bits == 4 ? vi_shr(x, 4) : bits == 2 ? vi_shr(x, 2) : vi_shr(x, 8);
            y = bits == 4 ? vi_shr(y, 4) : bits == 2 ? vi_shr(y, 2) : vi_shr(y, 8);
        }
    }
}

/* Steps [first, end) of one group of columns. */
static inline __attribute__((always_inline)) void widen_steps(const ort_nbits *w, int64_t group,
                                                              int64_t first, int64_t end, int bits,
                                                              char *to)
{
    const int64_t of_block = w->run_words * w->block_runs / bits; /* steps */
    const int64_t blocks = w->row_words / bits / of_block;
    const int32_t *q = w->words + (group * w->row_words + first * bits) * VF_LANES;
    for (int64_t step = first, last; step < end; step = last) {
        const int64_t block = step / of_block, at = (group * blocks + block) * VF_LANES;
        const vf scale = nbits_scale(w, at);
        const vf minus = vf_neg(vf_mul(nbits_zero(w, at), scale));
        last = (block + 1) * of_block < end ? (block + 1) * of_block : end;
        for (int64_t i = step; i < last; i++, q += bits * VF_LANES, to += B_STEP)
            widen_step(q, bits, scale, minus, to);
    }
}

static void widen(const ort_nbits *w, int64_t group, int64_t first, int64_t end, char *to)
{
    if (w->bits == 4)
        widen_steps(w, group, first, end, 4, to);
    else if (w->bits == 2)
        widen_steps(w, group, first, end, 2, to);
    else
        widen_steps(w, group, first, end, 8, to);
}

/* ---- products */

/* Up to 32 rows and columns over a stretch. */
typedef struct block {
    const char *a, *b;
    int64_t a_row, steps; /* bytes */
    int rows, columns;
    float *y;
    int64_t y_row;
    bool first;           /* of k: y holds no sums yet */
    const float *bias;    /* what the last stretch adds, or NULL */
} block;

/* One of these lies where a tile of sums has columns that y hasn't. */
typedef float tile_sums[TILE_ROWS_MOST * TILE_COLUMNS] __attribute__((aligned(64)));

/* Rows of a tile of sums in y: where they are, whether whole, how many. */
typedef struct place {
    float *y;
    int64_t y_row;
    int rows, columns;
} place;

static inline __attribute__((always_inline)) place place_of(const block *k, int tile)
{
    const int row = tile & 2 ? TILE_ROWS_MOST : 0, column = tile & 1 ? TILE_COLUMNS : 0;
    place p = {k->y + row * k->y_row + column, k->y_row, k->rows - row, k->columns - column};
    p.rows = p.rows < TILE_ROWS_MOST ? p.rows : TILE_ROWS_MOST;
    p.columns = p.columns < TILE_COLUMNS ? p.columns : TILE_COLUMNS;
    return p;
}

static __attribute__((noinline)) void take_narrow(const place *p, float *copy)
{
    for (int i = 0; i < p->rows; i++)
        vf_store(copy + i * TILE_COLUMNS, vf_load_n(p->y + i * p->y_row, p->columns));
}

static __attribute__((noinline)) void give_narrow(const place *p, const float *copy)
{
    for (int i = 0; i < p->rows; i++)
        vf_store_n(p->y + i * p->y_row, p->columns, vf_load(copy + i * TILE_COLUMNS));
}

#define BEGIN(tile)                                                                                \
    do {                                                                                           \
        const place p = place_of(k, tile);                                                         \
        if (k->first) {                                                                            \
            TILE_ZERO(tile);                                                                       \
        } else if (p.columns == TILE_COLUMNS) {                                                    \
            TILE_LOAD(tile, p.y, 4 * p.y_row);                                                     \
        } else {                                                                                   \
            take_narrow(&p, copy);                                                                 \
            TILE_LOAD(tile, copy, 4 * TILE_COLUMNS);                                               \
        }                                                                                          \
    } while (0)
#define END(tile)                                                                                  \
    do {                                                                                           \
        const place p = place_of(k, tile);                                                         \
        if (p.columns == TILE_COLUMNS) {                                                           \
            TILE_STORE(tile, p.y, 4 * p.y_row);                                                    \
        } else {                                                                                   \
            TILE_STORE(tile, copy, 4 * TILE_COLUMNS);                                              \
            give_narrow(&p, copy);                                                                 \
        }                                                                                          \
    } while (0)

static inline __attribute__((always_inline)) void multiply(const block *k, bool lower, bool right)
{
    tile_sums copy;
    const char *a = k->a, *b = k->b;
    BEGIN(0);
    if (right)
        BEGIN(1);
    if (lower)
        BEGIN(2);
    if (lower && right)
        BEGIN(3);
    for (int64_t step = 0; step < k->steps; step++, a += 64, b += B_STEP) {
        TILE_LOAD(6, b, 64);
        TILE_LOAD(4, a, k->a_row);
        THIRDS_DOT(0, 4, 6);
        if (lower) {
            TILE_LOAD(5, a + TILE_ROWS_MOST * k->a_row, k->a_row);
            THIRDS_DOT(2, 5, 6);
        }
        if (right) {
            TILE_LOAD(7, b + THIRDS_TILE, 64);
            THIRDS_DOT(1, 4, 7);
        }
        if (lower && right)
            THIRDS_DOT(3, 5, 7);
    }
    END(0);
    if (right)
        END(1);
    if (lower)
        END(2);
    if (lower && right)
        END(3);
}

static void add_bias(const block *k)
{
    for (int i = 0; i < k->rows; i++)
        for (int j = 0; j < k->columns; j += VF_LANES) {
            const int64_t left = k->columns - j < VF_LANES ? k->columns - j : VF_LANES;
            float *y = k->y + i * k->y_row + j;
            vf_store_n(y, left, vf_add(vf_load_n(y, left), vf_load_n(k->bias + j, left)));
        }
}

static void multiply_block(const block *k)
{
    const bool lower = k->rows > TILE_ROWS_MOST, right = k->columns > TILE_COLUMNS;
    if (lower && right)
        multiply(k, true, true);
    else if (lower)
        multiply(k, true, false);
    else if (right)
        multiply(k, false, true);
    else
        multiply(k, false, false);
    if (k->bias)
        add_bias(k);
}

/* All rows by up to 32 columns from j on. */
static void columns_of(const ort_nbits *w, int64_t j, int columns)
{
    char b[STRETCH * B_STEP] __attribute__((aligned(64)));
    const int64_t steps = w->row_words / w->bits;
    for (int64_t first = 0, end; first < steps; first = end) {
        end = steps - first < STRETCH ? steps : first + STRETCH;
        widen(w, j / VF_LANES, first, end, b);
        if (columns > TILE_COLUMNS)
            widen(w, j / VF_LANES + 1, first, end, b + THIRDS_TILE);
        block k = {.b = b, .a_row = 4 * w->fixed_row, .steps = end - first, .columns = columns,
                   .y_row = w->y_row, .first = first == 0,
                   .bias = w->bias && end == steps ? w->bias + j : NULL};
        for (int64_t row = 0; row < w->rows; row += k.rows) {
            k.rows = w->rows - row < TILE_PAIR ? (int)(w->rows - row) : TILE_PAIR;
            k.a = (const char *)(w->fixed + row * w->fixed_row + first * TILE_WORDS);
            k.y = w->y + row * w->y_row + j;
            if (row == 0 || k.rows < TILE_PAIR)
                tile_begin(k.rows > TILE_ROWS_MOST ? TILE_ROWS_MOST : k.rows,
                           k.rows - TILE_ROWS_MOST, TILE_WORDS);
            multiply_block(&k);
        }
    }
}

void ort_nbits_rounded(int64_t first, int64_t last, const ort_nbits *w)
{
    assert(nbits_is_whole(w) && w->run_words >= w->bits && !w->zero);
    assert(first >= 0 && first % VF_LANES == 0 && last <= w->n);
    assert(w->fixed_row % TILE_WORDS == 0 && (w->rows < 2 || w->y_row >= w->n));
    for (int64_t j = first; j < last; j += TILE_PAIR)
        columns_of(w, j, last - j < TILE_PAIR ? (int)(last - j) : TILE_PAIR);
    tile_end();
}
