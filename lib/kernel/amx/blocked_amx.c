/* blocked_amx.c - float convolutions of the blocked layout on the AMX tier's tiles: two tiles of up
 * to 16 pixels by 32 output channels in four tiles of sums. Floats are sums of three thirds of
 * bfloat16 (thirds.h), a product of floats the six products of thirds that count.
 *
 * A step of 32 channels has a tile for each third. A step of 16, behind an odd number of blocks,
 * has two thirds in each word,
 *
 *     input h m, m h, l h   weights h m, h m, h l
 *
 * so that three products do what six do elsewhere.
 *
 * Error. With u = 2^-24 and s the sum of |a||b| over n products: what is left out is at most about
 * u s. A product of tiles sums 16 even and 16 odd places in order, rounding to nearest, then both
 * and what the sum was; six of these a step of 32 places. A term passes through at most 18
 * roundings in its own product and 6 n / 32 after it, so that
 *
 *     |error| <= (20 + 6 (n / 32 + 1)) u s + n 2^-42 A B,
 *
 * where A is the largest |a| of the strip of pixels and B the largest |b| of the panel, both of
 * them 0 or in [2^-40, 2^50]: the last part is what thirds, products and sums below 2^-126 lose. A
 * sum of floats in order has n u s, so that this is no worse from 32 places on.
 *
 * Bound: products, 16 cycles a tile of 16 pixels, fewer where it has fewer. Sums of one block are
 * finished while the products of the next are on their way.
 */
#include "kernel/blocked.h"

#include <math.h>

#include "base/cpu.h"
#include "kernel/amx/thirds.h"
#include "kernel/contract.h"

enum {
    BLOCK = ORT_BLOCKED_TILE,
    LINE = 64, /* bytes of a pixel's third, and of a row of weights */
    TILE_FLOATS = ORT_BLOCKED_TILE * BLOCK,
};

/* A block of 16 places alone: two of its thirds in each word. */
static inline __m512i half_words(__m512i low, __m512i high)
{
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* ---- thirds of the input */

/* `count` pixels of two blocks of channels, or of one that is the last. */
static inline __m512i split_pixels(const ort_blocked_split *s, const float *x, char *to,
                                   int64_t count, bool half, __m512i size)
{
    for (int64_t i = 0; i < count; i++, x += s->step, to += LINE) {
        const vf a = vf_load(x), b = half ? vf_zero() : vf_load(x + s->x_block);
        const thirds t = thirds_of(a, b);
        size = thirds_larger(size, a, b);
        if (half) {
            _mm512_storeu_si512(to, half_words(t.h, t.m));
            _mm512_storeu_si512(to + s->third, half_words(t.m, t.h));
            _mm512_storeu_si512(to + 2 * s->third, half_words(t.l, t.h));
        } else {
            thirds_store(to, s->third, t);
        }
    }
    return size;
}

/* From pixel `first` on, `count` of all blocks from block `b` on, which is even. */
static __m512i split_blocks(const ort_blocked_split *s, int64_t first, int64_t count, int64_t b,
                            __m512i size)
{
    const float *x = s->x + first * s->step + b * s->x_block;
    char *to = s->to + first * LINE + b / 2 * 3 * s->third;
    for (; b + 2 <= s->blocks; b += 2, x += 2 * s->x_block, to += 3 * s->third)
        size = split_pixels(s, x, to, count, false, size);
    return b < s->blocks ? split_pixels(s, x, to, count, true, size) : size;
}

static uint32_t tiled_split(const ort_blocked_split *s)
{
    return thirds_size(split_blocks(s, 0, s->count, 0, _mm512_setzero_si512()));
}

/* ---- weights */

static int64_t step_bytes(bool half, int vectors)
{
    return (half ? ORT_BLOCKED_HALF_TILES : ORT_BLOCKED_WHOLE_TILES) * vectors * THIRDS_TILE;
}

/* A row of weights of one input channel, zeros beyond the last. */
static inline vf weights_at(const float *w, int64_t row, int64_t rows, int64_t width)
{
    return row < rows ? vf_load(w + row * width) : vf_zero();
}

/* Of `channels` that are left, those of one step: panel rows to words, tile behind tile. */
static __m512i pack_step(const float *w, int64_t channels, int vectors, bool half, char *to,
                         __m512i size)
{
    const int64_t width = (int64_t)vectors * BLOCK, tile = (int64_t)vectors * THIRDS_TILE;
    for (int v = 0; v < vectors; v++)
        for (int64_t r = 0; r < 16; r++) {
            char *row = to + (v * 16 + r) * LINE;
            const vf x = weights_at(w + v * BLOCK, r, channels, width);
            const vf y = weights_at(w + v * BLOCK, r + 16, channels, width);
            const thirds t = thirds_of(x, y);
            size = thirds_larger(size, x, y);
            if (half) {
                _mm512_storeu_si512(row, half_words(t.h, t.m));
                _mm512_storeu_si512(row + tile, half_words(t.h, t.l));
            } else {
                thirds_store(row, tile, t);
            }
        }
    return size;
}

static bool tiled_pack(const float *panel, int64_t channels, int64_t taps, int vectors, char *w)
{
    const int64_t width = (int64_t)vectors * BLOCK;
    __m512i size = _mm512_setzero_si512();
    for (int64_t t = 0; t < taps; t++, panel += channels * width)
        for (int64_t c = 0; c < channels; c += THIRDS_K) {
            const bool half = channels - c <= BLOCK;
            size = pack_step(panel + c * width, channels - c, vectors, half, w, size);
            w += step_bytes(half, vectors);
        }
    return thirds_row_fits(size);
}

static inline vf sum_of(__m512i h, __m512i m, __m512i l)
{
    return vf_add(vf_add(_mm512_castsi512_ps(h), _mm512_castsi512_ps(m)), _mm512_castsi512_ps(l));
}

static inline void unpack_row(const char *row, int64_t tile, bool half, vf *x, vf *y)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u), first = _mm512_loadu_si512(row);
    const __m512i second = _mm512_loadu_si512(row + tile);
    const __m512i h = _mm512_slli_epi32(first, 16);
    *y = vf_zero();
    if (half) {
        *x = sum_of(h, _mm512_and_si512(first, upper), _mm512_and_si512(second, upper));
        return;
    }
    const __m512i third = _mm512_loadu_si512(row + 2 * tile);
    *x = sum_of(h, _mm512_slli_epi32(second, 16), _mm512_slli_epi32(third, 16));
    *y = sum_of(_mm512_and_si512(first, upper), _mm512_and_si512(second, upper),
                _mm512_and_si512(third, upper));
}

static void tiled_unpack(const char *w, int64_t channels, int64_t taps, int vectors, float *panel)
{
    const int64_t width = (int64_t)vectors * BLOCK, tile = (int64_t)vectors * THIRDS_TILE;
    for (int64_t t = 0; t < taps; t++, panel += channels * width)
        for (int64_t c = 0; c < channels; c += THIRDS_K) {
            const bool half = channels - c <= BLOCK;
            for (int64_t i = 0; i < 16 * (int64_t)vectors; i++) {
                const int64_t at = c + i % 16, lane = i / 16 * BLOCK;
                vf x, y;
                unpack_row(w + i * LINE, tile, half, &x, &y);
                if (at < channels)
                    vf_store(panel + at * width + lane, x);
                if (at + 16 < channels)
                    vf_store(panel + (at + 16) * width + lane, y);
            }
            w += step_bytes(half, vectors);
        }
}

/* ---- what is done in the shadow of products: sums of the block before are finished, pixels of the
 * block behind split */

enum {
    PIXELS = 2 * ORT_BLOCKED_TILE, /* of a block */
    WHOLE_PIECE = 6,               /* pixels split in one of six shadows of a whole step, */
    HALF_PIECE = 11,               /* and of three */
};

typedef struct shadow {
    const ort_blocked_tiled *k;
    float sum[2][PIXELS * BLOCK] __attribute__((aligned(64)));
    int64_t to[PIXELS];          /* of the pixels that are someone's: floats from out.y */
    int from[PIXELS];
    int given, pixels;
    int64_t vector, vectors;     /* of the sums */
    int quota;                   /* pixels given in one shadow */
    int lines;                   /* of the next panel's weights, from `ahead` on, fetched in one */
    const char *ahead;
    int64_t first, count, block, pixel; /* to split: pixels, the block and pixel that are next */
    __m512i size;
} shadow;

static inline __attribute__((always_inline)) void give_pixels(shadow *s, int end, bool add,
                                                              bool leaks)
{
    const ort_blocked_out *o = &s->k->out;
    const vf lo = vf_set1(o->lo), hi = vf_set1(o->hi);
    for (int64_t v = 0; v < s->vectors; v++) {
        const int64_t block = (s->vector + v) * o->y_block, channel = (s->vector + v) * BLOCK;
        const vf bias = o->bias ? vf_load(o->bias + channel) : vf_zero();
        const vf slope = leaks ? vf_load(o->slope + channel) : vf_zero();
        for (int i = s->given; i < end; i++) {
            const int64_t at = block + s->to[i];
            vf y = vf_add(vf_load(s->sum[v] + s->from[i] * BLOCK), bias);
            if (add)
                y = vf_add(y, vf_load(o->z + at));
            if (leaks)
                y = vf_select(vf_lt(y, vf_zero()), vf_mul(y, slope), y);
            vf_store(o->y + at, vf_min(hi, vf_max(lo, y)));
        }
    }
    s->given = end;
}

static void give(shadow *s, int count)
{
    const int end = s->pixels - s->given < count ? s->pixels : s->given + count;
    const bool add = s->k->out.z, leaks = s->k->out.slope;
    if (add && leaks)
        give_pixels(s, end, true, true);
    else if (add)
        give_pixels(s, end, true, false);
    else if (leaks)
        give_pixels(s, end, false, true);
    else
        give_pixels(s, end, false, false);
}

static void split_piece(shadow *s)
{
    const ort_blocked_split *split = s->k->split;
    const bool half = s->block + 1 == split->blocks;
    const int64_t piece = half ? HALF_PIECE : WHOLE_PIECE, left = s->count - s->pixel;
    const int64_t count = left < piece ? left : piece, at = s->first + s->pixel;
    const float *x = split->x + at * split->step + s->block * split->x_block;
    char *to = split->to + at * LINE + s->block / 2 * 3 * split->third;
    s->size = split_pixels(split, x, to, count, half, s->size);
    s->pixel += count;
    if (s->pixel == s->count) {
        s->pixel = 0;
        s->block += 2;
    }
}

static inline bool has_split(const shadow *s)
{
    return s->count > 0 && s->block < s->k->blocks;
}

static __attribute__((noinline)) void work(shadow *s)
{
    if (s->given < s->pixels)
        give(s, s->quota);
    if (has_split(s))
        split_piece(s);
}

static inline void meanwhile(shadow *s)
{
    for (int i = 0; i < s->lines; i++, s->ahead += LINE)
        _mm_prefetch(s->ahead, _MM_HINT_T1);
    if (s->given < s->pixels || has_split(s))
        work(s);
}

static void finish(shadow *s)
{
    give(s, PIXELS);
    while (has_split(s))
        split_piece(s);
}

/* The pixels of a tile of sums that are in a row. */
static void list_tile(shadow *s, int64_t first, int count, int from)
{
    const ort_blocked_tiled *k = s->k;
    int64_t row = first / k->pitch, column = first % k->pitch;
    for (int i = 0; i < count; i++) {
        if (column < k->width) {
            s->to[s->pixels] = (row * k->width + column) * BLOCK;
            s->from[s->pixels++] = from + i;
        }
        if (++column == k->pitch) {
            column = 0;
            row++;
        }
    }
}

/* ---- products */

/* A block: two tiles of pixels, the second one may have none. */
typedef struct tile_block {
    int64_t first[2]; /* pixel, counted by pitch */
    int count[2];
} tile_block;

#define LOAD_PIXELS(third)                                                                         \
    TILE_LOAD(4, upper + (third), k->step);                                                        \
    if (both)                                                                                      \
        TILE_LOAD(5, lower + (third), k->step);
#define LOAD_WEIGHTS(tile)                                                                         \
    TILE_LOAD(6, w + (tile) * size, LINE);                                                         \
    if (right)                                                                                     \
        TILE_LOAD(7, w + (tile) * size + THIRDS_TILE, LINE);
#define MULTIPLY                                                                                   \
    THIRDS_FOUR(both, right);                                                                      \
    meanwhile(s);

/* All channels under one tap; the weights behind them. */
static inline __attribute__((always_inline)) const char *
multiply_channels(const ort_blocked_tiled *k, const char *upper, const char *lower, const char *w,
                  shadow *s, bool both, bool right)
{
    const int64_t size = right ? THIRDS_B_THIRD : THIRDS_TILE, third = k->third;
    for (int64_t b = k->blocks; b > 1; b -= 2) {
        LOAD_PIXELS(0)
        LOAD_WEIGHTS(2)
        MULTIPLY
        LOAD_WEIGHTS(1)
        MULTIPLY
        LOAD_WEIGHTS(0)
        MULTIPLY
        LOAD_PIXELS(2 * third)
        MULTIPLY
        LOAD_PIXELS(third)
        MULTIPLY
        LOAD_WEIGHTS(1)
        MULTIPLY
        upper += 3 * third;
        lower += 3 * third;
        w += ORT_BLOCKED_WHOLE_TILES * size;
    }
    if (k->blocks % 2) {
        LOAD_PIXELS(0)
        LOAD_WEIGHTS(0)
        MULTIPLY
        LOAD_PIXELS(third)
        MULTIPLY
        LOAD_PIXELS(2 * third)
        LOAD_WEIGHTS(1)
        MULTIPLY
        w += ORT_BLOCKED_HALF_TILES * size;
    }
    return w;
}

static inline __attribute__((always_inline)) void multiply(const ort_blocked_tiled *k,
                                                           const char *w, const tile_block *b,
                                                           shadow *s, bool both, bool right)
{
    const char *upper = k->x + b->first[0] * k->step;
    const char *lower = k->x + b->first[1] * k->step;
    TILE_ZERO(0);
    if (right)
        TILE_ZERO(1);
    if (both)
        TILE_ZERO(2);
    if (both && right)
        TILE_ZERO(3);
    for (int64_t t = 0; t < k->taps; t++)
        w = multiply_channels(k, upper + k->offset[t], lower + k->offset[t], w, s, both, right);
    finish(s);
    TILE_STORE(0, s->sum[0], LINE);
    if (right)
        TILE_STORE(1, s->sum[1], LINE);
    if (both)
        TILE_STORE(2, s->sum[0] + TILE_FLOATS, LINE);
    if (both && right)
        TILE_STORE(3, s->sum[1] + TILE_FLOATS, LINE);
}

static void multiply_block(const ort_blocked_tiled *k, const char *w, int64_t vector,
                           const tile_block *b, shadow *s)
{
    const bool right = k->vectors - vector > 1;
    if (b->count[1] > 0 && right)
        multiply(k, w, b, s, true, true);
    else if (b->count[1] > 0)
        multiply(k, w, b, s, true, false);
    else if (right)
        multiply(k, w, b, s, false, true);
    else
        multiply(k, w, b, s, false, false);
    s->given = s->pixels = 0;
    s->vector = vector;
    s->vectors = right ? 2 : 1;
    list_tile(s, b->first[0], b->count[0], 0);
    list_tile(s, b->first[1], b->count[1], ORT_BLOCKED_TILE);
}

/* The tile at *at, which then is the next one's; no pixels behind the last. */
static void take_tile(const ort_blocked_tiled *k, int64_t *at, tile_block *b, int i)
{
    const int64_t end = (k->rows - 1) * k->pitch + k->width, row = *at / k->pitch * k->pitch;
    const int64_t left = (k->gaps ? end : row + k->width) - *at;
    b->first[i] = *at;
    b->count[i] = *at < end ? (int)(left < k->tile ? left : k->tile) : 0;
    *at = k->gaps || left > k->tile ? *at + k->tile : row + k->pitch;
}

static int64_t tiles_of(const ort_blocked_tiled *k)
{
    const int64_t all = (k->rows - 1) * k->pitch + k->width;
    return k->gaps ? (all + k->tile - 1) / k->tile
                   : k->rows * ((k->width + k->tile - 1) / k->tile);
}

/* What the next block reads is to be split by then. */
static void split_next(const ort_blocked_tiled *k, shadow *s, int64_t first)
{
    const int64_t left = k->width - first, most = 2 * (int64_t)k->tile;
    s->first = first;
    s->count = left < most ? left : most;
    s->block = s->pixel = 0;
}

static void multiply_panel(const ort_blocked_tiled *k, const char *w, int64_t vector, shadow *s,
                           bool splits)
{
    const int64_t end = (k->rows - 1) * k->pitch + k->width;
    tile_block b;
    for (int64_t at = 0; at < end;) {
        take_tile(k, &at, &b, 0);
        take_tile(k, &at, &b, 1);
        if (splits)
            split_next(k, s, at);
        multiply_block(k, w, vector, &b, s);
    }
    s->count = 0;
}

static uint32_t tiled(const ort_blocked_tiled *k)
{
    const int64_t bytes = k->taps * ort_blocked_tiled_bytes(1, k->blocks);
    const int64_t shadows = 3 * k->taps * k->blocks, all = shadows * ((tiles_of(k) + 1) / 2);
    shadow s;
    s.k = k;
    s.given = s.pixels = 0;
    s.vector = s.vectors = 0;
    s.count = 0;
    s.size = _mm512_setzero_si512();
    s.quota = (int)((PIXELS + shadows - 1) / shadows);
    assert(k->tile > 0 && k->tile <= ORT_BLOCKED_TILE && k->vectors > 0 && k->taps > 0);
    assert(k->rows > 0 && k->width > 0 && k->pitch >= k->width && k->blocks > 0);
    assert(!k->split || (k->rows == 1 && k->taps == 1 && k->step == LINE));
    if (k->split) {
        split_next(k, &s, 0);
        finish(&s);
    }
    tile_begin(k->tile, k->tile, TILE_WORDS);
    for (int64_t v = 0; v < k->vectors; v += 2) {
        const int64_t next = k->vectors - v - 2; /* vectors behind this panel */
        const int64_t lines = (next > 2 ? 2 : next) * bytes / LINE;
        const int64_t last = k->ahead ? (k->vectors > 1 ? 2 : 1) * bytes / LINE : 0;
        s.ahead = next > 0 ? k->w + (v + 2) * bytes : k->ahead;
        s.lines = (int)(((next > 0 ? lines : last) + all - 1) / all);
        multiply_panel(k, k->w + v * bytes, v, &s, k->split && v == 0);
    }
    tile_end();
    finish(&s);
    return thirds_size(s.size);
}

void ort_blocked_plug_amx(ort_blocked_kernels *of8, ort_blocked_kernels *of16)
{
    (void)of8;
    if (!ort_cpu_get()->amx_bf16 || !ort_cpu_get()->avx512_bf16)
        return;
    of16->tiled_split = tiled_split;
    of16->tiled_pack = tiled_pack;
    of16->tiled_unpack = tiled_unpack;
    of16->tiled = tiled;
    of16->tiled_fits = thirds_size_fits;
}
