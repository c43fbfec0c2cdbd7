/* nbits_amx.c - products of many rows with weights of a few bits by blocks, on the AMX tier's
 * tiles: rows of one byte an element in fixed point, to the bits of nbits_fixed.inc.
 *
 * Codes are unpacked into the order of a tile, a stretch of k of 16 columns at a time, and serve
 * all rows. A run of 16 rows is one product or two; its sums become floats while the products of
 * the next run are on their way.
 *
 * Bound: making floats of sums, the more so the shorter runs are.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/amx/nbits_amx.h"
#include "kernel/amx/tile.h"
#include "kernel/avx512/simd.h"

#include "kernel/gemm.h"
#include "kernel/nbits_read.inc"

enum { STRETCH_WORDS = 256 }; /* of 4 weights, of each column: 16 KiB */

#define ROWS16(X)                                                                                  \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

/* Runs [first, end) of 16 columns. */
typedef struct stretch {
    int64_t first, end, group;
    const int32_t *codes; /* [word of 4 weights][column] */
    int64_t words;        /* such words of a run */
} stretch;

/* The codes of `words` packed words of 16 columns. */
static void unpack(const int32_t *from, int64_t words, int bits, int32_t *to)
{
    const vi mask = vi_set1(bits == 4 ? 0x0f0f0f0f : 0x03030303);
    for (int64_t i = 0; i < words; i++, from += VF_LANES) {
        vi v = vi_load(from);
        for (int part = 0; part < 8 / bits; part++, to += VF_LANES) {
            vi_store(to, vi_and(v, mask));
            v = bits == 4 ? vi_shr(v, 4) : vi_shr(v, 2);
        }
    }
}

/* Sums of one run of up to 16 rows, into a buffer. */
#define ROW_FLOATS(r)                                                                              \
    {                                                                                              \
        const int64_t at = (r < rows ? r : 0) * runs + run;                                        \
        vi p = vi_load(sums + r * VF_LANES);                                                       \
        if (!zeros)                                                                                \
            p = vi_add(p, vi_set1(begin[(r < rows ? r : 0) * w->fixed_row + run]));                \
        vf t = vf_mul(vf_from_vi(p), vf_set1(units[at]));                                          \
        if (zeros)                                                                                 \
            t = vf_fnma(zero, vf_set1(of_a[at]), t);                                               \
        s##r = vf_fma(t, scale, s##r);                                                             \
    }
#define ROW_BEGIN(r)                                                                               \
    vf s##r = s->first == 0 || r >= rows ? vf_zero() : vf_load_n(y + (r)*w->y_row, columns);
#define ROW_END(r)                                                                                 \
    if (r < rows)                                                                                  \
        vf_store_n(y + (r)*w->y_row, columns, bias ? vf_add(s##r, vf_load_n(bias, columns)) : s##r);

/* Up to 16 rows by 16 columns; y holds the sums between two stretches. */
static inline __attribute__((always_inline)) void tile_rows(const ort_nbits *w, const stretch *s,
                                                            int64_t row, int64_t rows, bool zeros)
{
    const int64_t runs = w->row_words / w->run_words, blocks = runs / w->block_runs;
    const int64_t j = s->group * VF_LANES, steps = (s->words + TILE_WORDS - 1) / TILE_WORDS;
    const int64_t columns = w->n - j < VF_LANES ? w->n - j : VF_LANES, deep = s->words / steps;
    const int32_t *fixed = w->fixed + row * w->fixed_row, *begin = fixed + runs * s->words;
    const float *units = w->units + row * runs, *of_a = w->sums + row * runs;
    const float *bias = w->bias && s->end == runs ? w->bias + j : NULL;
    float *y = w->y + row * w->y_row + j;
    int32_t sums[TILE_ROWS_MOST * VF_LANES] __attribute__((aligned(64))) = {0};
    const char *codes = (const char *)s->codes, *a = (const char *)(fixed + s->first * s->words);
    ROWS16(ROW_BEGIN)
    for (int64_t next = s->first, run = next - 1; next <= s->end; next++, run++) {
        TILE_ZERO(0);
        for (int64_t i = 0; i < steps && next < s->end; i++) {
            TILE_LOAD(4, a, 4 * w->fixed_row);
            TILE_LOAD(6, codes, 4 * VF_LANES);
            TILE_DOT_SIGNED(0, 4, 6);
            a += 4 * deep;
            codes += 4 * VF_LANES * deep;
        }
        if (run >= s->first) {
            const int64_t of = (s->group * blocks + run / w->block_runs) * VF_LANES;
            const vf scale = nbits_scale(w, of), zero = zeros ? nbits_zero(w, of) : scale;
            ROWS16(ROW_FLOATS)
        }
        TILE_STORE(0, sums, 4 * VF_LANES);
    }
    ROWS16(ROW_END)
}

/* One group of columns, by all rows. */
static void group_of(const ort_nbits *w, int64_t group)
{
    const int64_t parts = 8 / w->bits, words = w->run_words * parts;
    const int64_t runs = w->row_words / w->run_words, most = STRETCH_WORDS / words;
    int32_t codes[STRETCH_WORDS * VF_LANES] __attribute__((aligned(64)));
    stretch s = {.group = group, .words = words};
    for (s.first = 0; s.first < runs; s.first = s.end) {
        s.end = runs - s.first < most ? runs : s.first + most;
        const int32_t *packed =
            w->words + (group * w->row_words + s.first * w->run_words) * VF_LANES;
        s.codes = w->bits == 8 ? packed : codes;
        if (w->bits < 8)
            unpack(packed, (s.end - s.first) * w->run_words, w->bits, codes);
        for (int64_t row = 0, rows; row < w->rows; row += rows) {
            rows = w->rows - row < TILE_ROWS_MOST ? w->rows - row : TILE_ROWS_MOST;
            const int64_t steps = (words + TILE_WORDS - 1) / TILE_WORDS;
            if (row == 0 || rows < TILE_ROWS_MOST)
                tile_begin((int)rows, (int)rows, (int)(words / steps));
            if (w->zero || w->zero_byte)
                tile_rows(w, &s, row, rows, true);
            else
                tile_rows(w, &s, row, rows, false);
        }
    }
}

void ort_nbits_tiles(int64_t first, int64_t last, const ort_nbits *w)
{
    assert(nbits_is_whole(w) && first >= 0 && first % VF_LANES == 0 && last <= w->n);
    assert(w->digits == 1 && (w->rows < 2 || w->y_row >= w->n));
    for (int64_t group = first / VF_LANES; group * VF_LANES < last; group++)
        group_of(w, group);
    tile_end();
}
