/* thirds.h - products of floats on the tiles of AMX: each float is taken as the sum of three
 * bfloat16, its thirds (G. Henry, P. Tang, A. Heinecke, Leveraging the bfloat16 artificial
 * intelligence datatype for higher-precision computations, ARITH 2019).
 *
 * x = h + m + l exactly: h is x rounded to the 8 bits of a bfloat16, m the rest rounded, l what is
 * left. With 2^e <= |x| < 2^(e+1): |x - h| <= 2^(e-8), which is a multiple of 2^(e-23); |x - h - m|
 * <= 2^(e-17) is one as well, and so has at most 7 bits. Of the nine products of thirds of a and b,
 * six are summed (hh, hm, mh, mm, hl, lh); the others are at most 2 * 2^-25 + 2^-34 of |a||b|,
 * about u = 2^-24, of either sign.
 *
 * TDPBF16PS multiplies exactly and adds with one rounding to nearest: of 32 products, those of even
 * and of odd place in sixteen steps each, then both and what the tile held. A sum of k products in
 * blocks of kc (a multiple of 32), these added in float, is therefore off by at most about
 *
 *     (1 + 18 + 6 kc / 32 + k / kc) u  of the sum of |a||b|
 *
 * where a sum of floats in order allows k u (Higham, Accuracy and Stability of Numerical
 * Algorithms, 3.1): kc = 384, k = 768 give 93 of 768, and the kernel of floats, in blocks of 128,
 * 134; from k = 32 on it is smaller than k.
 *
 * Tiles take subnormal numbers as zero and give none. A third below 2^-126 loses less than 2^-124
 * of an element, a sum below 2^-126 as much as itself. Where the largest |a| of a row of A and |b|
 * of a column of B, within kc, are 0 or in [2^-40, 2^50], all of that is less than k 2^-42 of the
 * product of these two, and nothing overflows that wouldn't in float. Blocks of rows or columns
 * where this doesn't hold (infinity and NaN are among them) are for the kernels of floats:
 * thirds_fit tells.
 *
 * Along k, places are in steps of 32. The words of a step, of two bfloat16, pair place j with place
 * j + 16, so that two vectors of 16 floats are split without a shuffle across lanes: rows of B,
 * blocks of 16 channels, or halves of 32 neighbours in a row of A.
 *
 *     A   [step] of rows of 64 bytes (16 words), for each third: any addresses, one distance
 *         between rows (thirds_walk)
 *     B   [step][h, m, l][left, right][16 words][16 columns]: THIRDS_B_STEP bytes a step
 */
#ifndef ORT_KERNEL_AMX_THIRDS_H
#define ORT_KERNEL_AMX_THIRDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/amx/tile.h"
#include "kernel/avx512/simd.h"

enum {
    THIRDS_K = 32,                                   /* places of a step */
    THIRDS_TILE = TILE_ROWS_MOST * 64,               /* bytes of a tile */
    THIRDS_B_THIRD = 2 * THIRDS_TILE,                /* both columns of one third */
    THIRDS_B_STEP = 3 * THIRDS_B_THIRD,
};

/* Of sizes (thirds_larger): 2^-40 and 2^50. */
#define THIRDS_LEAST ((uint32_t)(127 - 40) << 24)
#define THIRDS_MOST ((uint32_t)(127 + 50) << 24)

/* ---- splitting */

typedef struct thirds {
    __m512i h, m, l;
} thirds;

/* The upper half of x and of y, that of x in the low half of each word. */
static inline __m512i thirds_upper(__m512i x, __m512i y)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    x = _mm512_srli_epi32(x, 16);
    return _mm512_ternarylogic_epi32(x, y, upper, 0xf8); /* x | (y & upper) */
}

/* Two vectors rounded to bfloat16, halves away from zero, in whole numbers: a third faster than the
 * instruction for it, which wants its words put in order. A carry out of the fraction goes to the
 * exponent, as it should. */
static inline __m512i thirds_round(vf x, vf y)
{
    const __m512i half = _mm512_set1_epi32(0x8000);
    return thirds_upper(_mm512_add_epi32(_mm512_castps_si512(x), half),
                        _mm512_add_epi32(_mm512_castps_si512(y), half));
}

static inline vf thirds_low(__m512i words)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}
static inline vf thirds_high(__m512i words)
{
    return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32((int)0xffff0000)));
}

/* Words of places x and, in the high half, y. */
static inline thirds thirds_of(vf x, vf y)
{
    thirds t;
    t.h = thirds_round(x, y);
    x = vf_sub(x, thirds_low(t.h));
    y = vf_sub(y, thirds_high(t.h));
    t.m = thirds_round(x, y);
    x = vf_sub(x, thirds_low(t.m));
    y = vf_sub(y, thirds_high(t.m));
    t.l = thirds_upper(_mm512_castps_si512(x), _mm512_castps_si512(y)); /* all of the rest */
    return t;
}

static inline void thirds_store(char *to, int64_t third, thirds t)
{
    _mm512_storeu_si512(to, t.h);
    _mm512_storeu_si512(to + third, t.m);
    _mm512_storeu_si512(to + 2 * third, t.l);
}

/* The larger magnitudes in each word, twice their bits: those of infinity and NaN are above all
 * others, those of subnormal numbers above 0. */
static inline __m512i thirds_larger(__m512i size, vf x, vf y)
{
    size = _mm512_max_epu32(size, _mm512_slli_epi32(_mm512_castps_si512(x), 1));
    return _mm512_max_epu32(size, _mm512_slli_epi32(_mm512_castps_si512(y), 1));
}

/* Is each of these sizes 0 or within what thirds hold well? Of B, a word is a column. */
static inline bool thirds_fit(__m512i size)
{
    const __m512i least = _mm512_set1_epi32((int)THIRDS_LEAST);
    const __m512i range = _mm512_set1_epi32((int)(THIRDS_MOST - THIRDS_LEAST));
    const __mmask16 some = _mm512_test_epi32_mask(size, size);
    return !_mm512_mask_cmpgt_epu32_mask(some, _mm512_sub_epi32(size, least), range);
}

/* Those of one row of A: the largest, and whether thirds hold it well. */
static inline uint32_t thirds_size(__m512i size)
{
    return _mm512_reduce_max_epu32(size);
}
static inline bool thirds_size_fits(uint32_t most)
{
    return most == 0 || (most >= THIRDS_LEAST && most <= THIRDS_MOST);
}
static inline bool thirds_row_fits(__m512i size)
{
    return thirds_size_fits(thirds_size(size));
}

/* ---- products */

#define THIRDS_DOT(sums, a, b)                                                                     \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)

/* A block of 16 or 32 rows by 16 or 32 columns. */
typedef struct thirds_walk {
    const char *a, *a_lower; /* the h of rows from 0 and from 16 on, of the first step */
    int64_t a_row, a_third, a_step; /* bytes between rows, thirds and steps */
    const char *b;           /* of the first step, 64 bytes aligned best */
    int64_t steps;
} thirds_walk;

/* Four products of the tiles that are loaded. */
#define THIRDS_FOUR(lower, right)                                                                  \
    do {                                                                                           \
        THIRDS_DOT(0, 4, 6);                                                                       \
        if (right)                                                                                 \
            THIRDS_DOT(1, 4, 7);                                                                   \
        if (lower)                                                                                 \
            THIRDS_DOT(2, 5, 6);                                                                   \
        if ((lower) && (right))                                                                    \
            THIRDS_DOT(3, 5, 7);                                                                   \
    } while (0)
#define THIRDS_LOAD_A(third, lower)                                                                \
    do {                                                                                           \
        TILE_LOAD(4, upper_a + (third) * w->a_third, w->a_row);                                    \
        if (lower)                                                                                 \
            TILE_LOAD(5, lower_a + (third) * w->a_third, w->a_row);                                \
    } while (0)
#define THIRDS_LOAD_B(third, right)                                                                \
    do {                                                                                           \
        TILE_LOAD(6, b + (third) * THIRDS_B_THIRD, 64);                                            \
        if (right)                                                                                 \
            TILE_LOAD(7, b + (third) * THIRDS_B_THIRD + THIRDS_TILE, 64);                          \
    } while (0)

#define THIRDS_GROUP(lower, right, FIRST, SECOND)                                                  \
    do {                                                                                           \
        THIRDS_DOT(0, 4, 6);                                                                       \
        if (right)                                                                                 \
            THIRDS_DOT(1, 4, 7);                                                                   \
        FIRST;                                                                                     \
        if (lower)                                                                                 \
            THIRDS_DOT(2, 5, 6);                                                                   \
        if ((lower) && (right))                                                                    \
            THIRDS_DOT(3, 5, 7);                                                                   \
        SECOND;                                                                                    \
    } while (0)

/* Add to the sums in tiles 0 to 3 (upper left, upper right, lower left, lower right), which
 * tile_begin(upper, lower, 16) configured. One side of the tiles changes from product to product:
 * hl, hh, lh, mh, mm, hm load 14 tiles for 24 products.
 *
 * FIRST and SECOND are done six times a step, in the shadow of products. A load waits until a tile
 * is free, and all behind it waits as well, so that little fits in, between any two products: two
 * vectors split there are free (with two and two a step takes 176 to 187 ns as with none, with four
 * behind every fourth product 209), if they are no call. */
#define THIRDS_MULTIPLY(w, lower, right, FIRST, SECOND)                                            \
    do {                                                                                           \
        const char *b = (w)->b, *upper_a = (w)->a, *lower_a = (w)->a_lower;                        \
        for (int64_t step = 0; step < (w)->steps; step++) {                                        \
            THIRDS_LOAD_B(2, right);                                                               \
            THIRDS_LOAD_A(0, lower);                                                               \
            THIRDS_GROUP(lower, right, FIRST, SECOND);                                             \
            THIRDS_LOAD_B(0, right);                                                               \
            THIRDS_GROUP(lower, right, FIRST, SECOND);                                             \
            THIRDS_LOAD_A(2, lower);                                                               \
            THIRDS_GROUP(lower, right, FIRST, SECOND);                                             \
            THIRDS_LOAD_A(1, lower);                                                               \
            THIRDS_GROUP(lower, right, FIRST, SECOND);                                             \
            THIRDS_LOAD_B(1, right);                                                               \
            THIRDS_GROUP(lower, right, FIRST, SECOND);                                             \
            THIRDS_LOAD_A(0, lower);                                                               \
            THIRDS_GROUP(lower, right, FIRST, SECOND);                                             \
            b += THIRDS_B_STEP;                                                                    \
            upper_a += (w)->a_step;                                                                \
            lower_a += (w)->a_step;                                                                \
        }                                                                                          \
    } while (0)

#endif
