/* gemm_amx.c - integer products of many rows of the AMX tier: 32 rows by 32 columns in four tiles
 * of sums (tile.h), of B in the VNNI tier's panels. Few rows, and everything else, are that tier's.
 *
 * Bound: products, where the rows of A are in the first-level cache and B in the second; memory,
 * where C is larger than caches.
 */
#include <stdbool.h>
#include <string.h>

#include "base/cpu.h"
#include "kernel/amx/floats_amx.h"
#include "kernel/amx/nbits_amx.h"
#include "kernel/amx/tile.h"
#include "kernel/avx512/simd.h"
#include "kernel/contract.h"

#include "kernel/gemm.h"

/* One of these lies where a tile of sums has columns that C hasn't. */
typedef int32_t tile_sums[TILE_ROWS_MOST * TILE_COLUMNS] __attribute__((aligned(64)));

/* Steps of `words` words each along k. */
typedef struct tile_walk {
    const char *a, *b; /* of the first word, row and column */
    int64_t a_row;     /* bytes of a row of A */
    int64_t steps;
    int words;
} tile_walk;

enum { B_ROW = TILE_PAIR * 4 }; /* bytes of a word of a panel's columns */

/* One step: upper and lower rows, left and right columns; which of them are there is known where
 * this is inlined. Rows of A are used again with the next columns; B passes by them in the
 * cache. */
static inline __attribute__((always_inline)) void tile_step(const tile_walk *w, int64_t step,
                                                            bool lower, bool right)
{
    const char *a = w->a + step * 4 * w->words, *b = w->b + step * B_ROW * w->words;
    TILE_LOAD_ONCE(6, b, B_ROW);
    TILE_LOAD(4, a, w->a_row);
    TILE_DOT(0, 4, 6);
    if (lower) {
        TILE_LOAD(5, a + TILE_ROWS_MOST * w->a_row, w->a_row);
        TILE_DOT(2, 5, 6);
    }
    if (right) {
        TILE_LOAD_ONCE(7, b + B_ROW / 2, B_ROW);
        TILE_DOT(1, 4, 7);
    }
    if (lower && right)
        TILE_DOT(3, 5, 7);
}

/* Sums of up to 32 rows and columns. */
typedef struct tile_block {
    int rows, columns;
    int32_t *c;
    int64_t ldc;
    const int32_t *add;
    int64_t ldadd;
} tile_block;

/* `add` where a whole tile can be read, else a copy. */
static const int32_t *addend(const int32_t *add, int64_t *ld, int rows, int columns, int32_t *copy)
{
    if (columns == TILE_COLUMNS)
        return add;
    for (int i = 0; i < rows; i++)
        vi_store(copy + i * TILE_COLUMNS, vi_load_n(add + i * *ld, columns));
    *ld = TILE_COLUMNS;
    return copy;
}

static void give(const int32_t *from, int rows, int columns, int32_t *c, int64_t ldc)
{
    for (int i = 0; i < rows; i++)
        vi_store_n(c + i * ldc, columns, vi_load(from + i * TILE_COLUMNS));
}

/* Begin or end one tile's sums, which begin at a row and column of the block. */
#define BEGIN(tile, block, row, column, count, width)                                              \
    do {                                                                                           \
        int64_t ld = (block)->ldadd;                                                               \
        const int32_t *add = (block)->add ? (block)->add + (row) * ld + (column) : NULL;           \
        if (add) {                                                                                 \
            add = addend(add, &ld, count, width, copy);                                            \
            TILE_LOAD(tile, add, 4 * ld);                                                          \
        } else {                                                                                   \
            TILE_ZERO(tile);                                                                       \
        }                                                                                          \
    } while (0)
#define END(tile, block, row, column, count, width)                                                \
    do {                                                                                           \
        int32_t *to = (block)->c + (row) * (block)->ldc + (column);                                \
        if ((width) == TILE_COLUMNS) {                                                             \
            TILE_STORE(tile, to, 4 * (block)->ldc);                                                \
        } else {                                                                                   \
            TILE_STORE(tile, copy, 4 * TILE_COLUMNS);                                              \
            give(copy, count, width, to, (block)->ldc);                                            \
        }                                                                                          \
    } while (0)

static inline __attribute__((always_inline)) void tile_sum(const tile_walk *w, const tile_block *k,
                                                           bool lower, bool right)
{
    tile_sums copy;
    const int upper_rows = lower ? TILE_ROWS_MOST : k->rows, lower_rows = k->rows - upper_rows;
    const int left_columns = right ? TILE_COLUMNS : k->columns;
    const int right_columns = k->columns - left_columns;
    BEGIN(0, k, 0, 0, upper_rows, left_columns);
    if (right)
        BEGIN(1, k, 0, TILE_COLUMNS, upper_rows, right_columns);
    if (lower)
        BEGIN(2, k, TILE_ROWS_MOST, 0, lower_rows, left_columns);
    if (lower && right)
        BEGIN(3, k, TILE_ROWS_MOST, TILE_COLUMNS, lower_rows, right_columns);
    for (int64_t step = 0; step < w->steps; step++)
        tile_step(w, step, lower, right);
    END(0, k, 0, 0, upper_rows, left_columns);
    if (right)
        END(1, k, 0, TILE_COLUMNS, upper_rows, right_columns);
    if (lower)
        END(2, k, TILE_ROWS_MOST, 0, lower_rows, left_columns);
    if (lower && right)
        END(3, k, TILE_ROWS_MOST, TILE_COLUMNS, lower_rows, right_columns);
}

/* Up to 32 rows by all columns, over words of which `steps` are equal parts. */
static void multiply_rows(int rows, int64_t n, int64_t steps, int words, const ort_tile_i32 *t)
{
    const bool lower = rows > TILE_ROWS_MOST;
    tile_walk w = {.a = (const char *)t->a, .b = t->b, .a_row = 4 * t->lda, .steps = steps,
                   .words = words};
    tile_block k = {.rows = rows, .c = t->c, .ldc = t->ldc, .add = t->add, .ldadd = t->ldadd};
    tile_begin(lower ? TILE_ROWS_MOST : rows, lower ? rows - TILE_ROWS_MOST : 0, words);
    for (int64_t j = 0; j < n; j += TILE_PAIR) {
        k.columns = n - j < TILE_PAIR ? (int)(n - j) : TILE_PAIR;
        const bool right = k.columns > TILE_COLUMNS;
        if (lower && right)
            tile_sum(&w, &k, true, true);
        else if (lower)
            tile_sum(&w, &k, true, false);
        else if (right)
            tile_sum(&w, &k, false, true);
        else
            tile_sum(&w, &k, false, false);
        w.b += 4 * t->b_panel;
        k.c += TILE_PAIR;
        k.add = k.add ? k.add + TILE_PAIR : NULL;
    }
    tile_end();
}

enum { LATE_ROWS = 2 }; /* that pass on in each step */

/* Rows [row, row + count) of a whole block of sums, past the caches. */
static inline void pass_on(const int32_t *from, int32_t *to, int64_t ld, int row, int count)
{
    for (int i = row; i < row + count; i++)
        for (int j = 0; j < TILE_PAIR; j += TILE_COLUMNS)
            _mm512_stream_si512((void *)(to + i * ld + j), vi_load(from + i * TILE_PAIR + j));
}

/* 32 rows by whole pairs of tiles of a C that caches don't hold: sums are passed on two rows at a
 * time, while the next ones are made, so that memory is busy all the time. */
static void multiply_far(int64_t n, int64_t steps, int words, const ort_tile_i32 *t)
{
    int32_t sums[2][TILE_PAIR * TILE_PAIR] __attribute__((aligned(64)));
    tile_walk w = {.a = (const char *)t->a, .b = t->b, .a_row = 4 * t->lda, .steps = steps,
                   .words = words};
    int32_t *copy = NULL; /* no tile is narrow */
    tile_begin(TILE_ROWS_MOST, TILE_ROWS_MOST, words);
    for (int64_t j = 0; j < n; j += TILE_PAIR, w.b += 4 * t->b_panel) {
        const int32_t *last = sums[j / TILE_PAIR % 2];
        int32_t *last_c = t->c + j - TILE_PAIR, *made = sums[(j / TILE_PAIR + 1) % 2];
        const tile_block k = {.c = made, .ldc = TILE_PAIR, .add = t->add ? t->add + j : NULL,
                              .ldadd = t->ldadd};
        int row = j > 0 ? 0 : TILE_PAIR;
        BEGIN(0, &k, 0, 0, TILE_ROWS_MOST, TILE_COLUMNS);
        BEGIN(1, &k, 0, TILE_COLUMNS, TILE_ROWS_MOST, TILE_COLUMNS);
        BEGIN(2, &k, TILE_ROWS_MOST, 0, TILE_ROWS_MOST, TILE_COLUMNS);
        BEGIN(3, &k, TILE_ROWS_MOST, TILE_COLUMNS, TILE_ROWS_MOST, TILE_COLUMNS);
        for (int64_t step = 0; step < steps; step++) {
            if (row < TILE_PAIR) {
                pass_on(last, last_c, t->ldc, row, LATE_ROWS);
                row += LATE_ROWS;
            }
            tile_step(&w, step, true, true);
        }
        pass_on(last, last_c, t->ldc, row, TILE_PAIR - row);
        END(0, &k, 0, 0, TILE_ROWS_MOST, TILE_COLUMNS);
        END(1, &k, 0, TILE_COLUMNS, TILE_ROWS_MOST, TILE_COLUMNS);
        END(2, &k, TILE_ROWS_MOST, 0, TILE_ROWS_MOST, TILE_COLUMNS);
        END(3, &k, TILE_ROWS_MOST, TILE_COLUMNS, TILE_ROWS_MOST, TILE_COLUMNS);
    }
    pass_on(sums[n / TILE_PAIR % 2], t->c + n - TILE_PAIR, t->ldc, 0, TILE_PAIR);
    _mm_sfence(); /* other threads see what a kernel has written when it returns */
    tile_end();
}

static bool goes_far(int64_t rows, int64_t n, const ort_tile_i32 *t)
{
    return t->far && rows == TILE_PAIR && n > 0 && n % TILE_PAIR == 0 &&
           t->ldc % TILE_COLUMNS == 0 && (uintptr_t)t->c % 64 == 0;
}

/* Tiles are as deep as divides the words; else the last words are added after the others. */
static void bytes_tiles(int64_t m, int64_t n, int64_t words, const ort_tile_i32 *t)
{
    const int64_t steps = (words + TILE_WORDS - 1) / TILE_WORDS;
    const bool even = steps > 0 && words % steps == 0;
    const int64_t deep = even ? words / steps : TILE_WORDS, whole = words / deep;
    assert(m >= 0 && n >= 0 && words > 0 && !t->b_offset && t->b_step == TILE_PAIR);
    assert(m < 2 || t->ldc >= n);
    assert(ort_kernel_apart(t->c, ort_kernel_extent(m, n, t->ldc) * sizeof *t->c, t->a,
                            ort_kernel_extent(m, words, t->lda) * sizeof *t->a));
    ort_tile_i32 part = *t;
    for (int64_t row = 0, rows; row < m; row += rows) {
        rows = m - row < TILE_PAIR ? m - row : TILE_PAIR;
        part = *t;
        part.a += row * t->lda;
        part.c += row * t->ldc;
        part.add = t->add ? t->add + row * t->ldadd : NULL;
        if (whole * deep == words && goes_far(rows, n, t)) {
            multiply_far(n, whole, (int)deep, &part);
            continue;
        }
        multiply_rows((int)rows, n, whole, (int)deep, &part);
        if (whole * deep == words)
            continue;
        part.a += whole * deep;
        part.b = (const int32_t *)part.b + whole * deep * TILE_PAIR;
        part.add = part.c;
        part.ldadd = part.ldc;
        multiply_rows((int)rows, n, 1, (int)(words - whole * deep), &part);
    }
}

/* ---- what it can reach (peak.inc). Bytes that vary: of zeros the processor makes products at a
 * clock up to a fifth higher, which no product of real numbers has. */

static double tile_multiply_adds(int64_t rounds, float *sink)
{
    uint8_t bytes[TILE_ROWS_MOST * 64] __attribute__((aligned(64)));
    uint32_t draw = 1;
    for (int i = 0; i < TILE_ROWS_MOST * 64; i++) {
        draw = draw * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(draw >> 24);
    }
    tile_begin(TILE_ROWS_MOST, TILE_ROWS_MOST, TILE_WORDS);
    TILE_LOAD(4, bytes, 64);
    TILE_LOAD(5, bytes, 64);
    TILE_LOAD(6, bytes, 64);
    TILE_LOAD(7, bytes, 64);
    rounds = rounds / 16 + 1; /* each is as long as dozens of the other tiers' */
    for (int64_t r = 0; r < rounds; r++) {
        TILE_DOT(0, 4, 6);
        TILE_DOT(1, 4, 7);
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    }
    tile_end();
    *sink = 0;
    return 2.0 * 4 * TILE_ROWS_MOST * TILE_COLUMNS * 4 * TILE_WORDS * (double)rounds;
}

/* Rows from which rounding weights for tiles takes less time than their bytes. */
enum { NBITS_ROWS = 16 };

void ort_gemm_plug_amx(ort_gemm_kernels *table)
{
    table->tile_rows = TILE_PAIR;
    table->bytes_tiles = bytes_tiles;
    table->byte_multiply_adds = tile_multiply_adds;
    if (ort_cpu_get()->amx_bf16 && ort_cpu_get()->avx512_bf16) {
        ort_floats_plug_amx(table);
        table->nbits_round_rows = NBITS_ROWS;
        table->nbits_round = ort_nbits_round;
        table->nbits_rounded = ort_nbits_rounded;
    }
}
