/* bytes_amx.c - convolutions in the blocked layout of bytes on the AMX tier's tiles (tile.h): 32
 * output pixels by 32 output channels in four tiles of sums. Weights are those of the VNNI tier,
 * whose kernels take what has few pixels or channels.
 *
 * Bound: products where a pixel has many words, else making codes of sums. Codes of one block are
 * made while the products of the next are on their way.
 */
#include "kernel/blocked_bytes.h"

#include <stdbool.h>

#include "kernel/amx/tile.h"
#include "kernel/contract.h"
#include "kernel/vnni/bytes_store.h"

#define HIGH 1024.0f /* beyond every code, whatever the zero point */

/* Sums of two blocks of channels, of neighbouring pixels each. */
typedef struct sums_block {
    int32_t sum[2][ORT_BYTES_TILED * ORT_BYTES_BLOCK] __attribute__((aligned(64)));
    int64_t first, vector; /* pixel, of those of all rows; vector of channels */
    int count, vectors;    /* 0 pixels: nothing */
} sums_block;

static inline vi code_of(const int32_t *sum, vf scale)
{
    return bytes_round(vf_min(vf_set1(HIGH), vf_mul(vf_from_vi(vi_load(sum)), scale)));
}

static inline void give_codes(const int32_t *sum, int64_t count, vf scale, int zero, uint8_t *y)
{
    for (; count >= 4; count -= 4, sum += 4 * ORT_BYTES_BLOCK, y += 4 * ORT_BYTES_BLOCK)
        bytes_store4(y, code_of(sum, scale), code_of(sum + ORT_BYTES_BLOCK, scale),
                     code_of(sum + 2 * ORT_BYTES_BLOCK, scale),
                     code_of(sum + 3 * ORT_BYTES_BLOCK, scale), zero);
    for (; count > 0; count--, sum += ORT_BYTES_BLOCK, y += ORT_BYTES_BLOCK)
        bytes_store(y, code_of(sum, scale), zero);
}

static inline void give_sums(const int32_t *sum, int64_t count, int32_t *to)
{
    for (int64_t i = 0; i < count; i++)
        vi_store(to + i * ORT_BYTES_BLOCK, vi_load(sum + i * ORT_BYTES_BLOCK));
}

/* Of the pixels of a block, those of the rows' width. */
static inline void give_vector(const ort_bytes_tiled *k, const sums_block *b, int v)
{
    const ort_bytes_out *o = &k->out;
    const int64_t block = (b->vector + v) * o->y_block;
    const vf scale = vf_load(o->scale + (b->vector + v) * ORT_BYTES_BLOCK);
    int64_t row = b->first / k->pitch, at = b->first % k->pitch;
    for (int64_t done = 0, run; done < b->count; done += run, row++, at = 0) {
        run = k->pitch - at < b->count - done ? k->pitch - at : b->count - done;
        const int64_t count = k->width - at < run ? k->width - at : run;
        const int64_t to = block + (row * k->width + at) * ORT_BYTES_BLOCK;
        const int32_t *from = b->sum[v] + done * ORT_BYTES_BLOCK;
        if (o->sums)
            give_sums(from, count, o->sums + to);
        else
            give_codes(from, count, scale, o->zero, o->y + to);
    }
}

static inline void give(const ort_bytes_tiled *k, const sums_block *b)
{
    for (int v = 0; v < b->vectors && b->count > 0; v++)
        give_vector(k, b, v);
}

/* Products of up to 32 pixels by one or two vectors; what was pending is given meanwhile. */
static inline __attribute__((always_inline)) void tile_block(const ort_bytes_tiled *k,
                                                             const char *b, sums_block *s,
                                                             const sums_block *next, bool lower,
                                                             bool right)
{
    const char *x = k->x + next->first * k->step;
    const int64_t below = TILE_ROWS_MOST * k->step, b_row = right ? 128 : 64;
    const int32_t *bias = k->out.bias + next->vector * ORT_BYTES_BLOCK;
    TILE_LOAD(0, bias, 0);
    if (right)
        TILE_LOAD(1, bias + ORT_BYTES_BLOCK, 0);
    if (lower)
        TILE_LOAD(2, bias, 0);
    if (lower && right)
        TILE_LOAD(3, bias + ORT_BYTES_BLOCK, 0);
    for (int64_t i = 0; i < k->steps; i++, b += k->words * b_row) {
        const char *a = x + k->offset[i];
        TILE_LOAD(4, a, k->step);
        TILE_LOAD(6, b, b_row);
        TILE_DOT(0, 4, 6);
        if (right) {
            TILE_LOAD(7, b + 64, b_row);
            TILE_DOT(1, 4, 7);
        }
        if (lower) {
            TILE_LOAD(5, a + below, k->step);
            TILE_DOT(2, 5, 6);
        }
        if (lower && right)
            TILE_DOT(3, 5, 7);
    }
    give(k, s);
    TILE_STORE(0, s->sum[0], 64);
    if (right)
        TILE_STORE(1, s->sum[1], 64);
    if (lower)
        TILE_STORE(2, s->sum[0] + TILE_ROWS_MOST * ORT_BYTES_BLOCK, 64);
    if (lower && right)
        TILE_STORE(3, s->sum[1] + TILE_ROWS_MOST * ORT_BYTES_BLOCK, 64);
    s->first = next->first;
    s->vector = next->vector;
    s->count = next->count;
    s->vectors = next->vectors;
}

static void tiled(const ort_bytes_tiled *k)
{
    const int64_t total = (k->rows - 1) * k->pitch + k->width, words = k->steps * k->words;
    sums_block s, next;
    assert(k->words > 0 && k->words <= TILE_WORDS && k->steps > 0 && k->pitch >= k->width);
    assert(k->out.count == k->rows * k->width && k->out.zero >= 0 && k->out.zero <= 255);
    s.count = 0;
    tile_begin(TILE_ROWS_MOST, TILE_ROWS_MOST, k->words);
    for (int64_t v = 0; v < k->vectors; v += 2)
        for (int64_t q = 0; q < total; q += ORT_BYTES_TILED) {
            const char *b = (const char *)(k->w + v * words * VF_LANES);
            next.first = q;
            next.vector = v;
            next.count = (int)(total - q < ORT_BYTES_TILED ? total - q : ORT_BYTES_TILED);
            next.vectors = k->vectors - v < 2 ? 1 : 2;
            const bool lower = next.count > TILE_ROWS_MOST;
            if (lower && next.vectors > 1)
                tile_block(k, b, &s, &next, true, true);
            else if (lower)
                tile_block(k, b, &s, &next, true, false);
            else if (next.vectors > 1)
                tile_block(k, b, &s, &next, false, true);
            else
                tile_block(k, b, &s, &next, false, false);
        }
    tile_end();
    give(k, &s);
}

static inline __m128i load_pixel(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static void side_by_side(const uint8_t *x, int64_t x_block, int64_t x_step, int64_t blocks,
                         int64_t count, char *out, int64_t out_step)
{
    for (; blocks >= 4; blocks -= 4, x += 4 * x_block, out += 4 * ORT_BYTES_BLOCK) {
        const uint8_t *from = x;
        char *to = out;
        for (int64_t i = 0; i < count; i++, from += x_step, to += out_step) {
            vi v = _mm512_castsi128_si512(load_pixel(from));
            v = _mm512_inserti32x4(v, load_pixel(from + x_block), 1);
            v = _mm512_inserti32x4(v, load_pixel(from + 2 * x_block), 2);
            v = _mm512_inserti32x4(v, load_pixel(from + 3 * x_block), 3);
            _mm512_storeu_si512(to, v);
        }
    }
    for (; blocks > 0; blocks--, x += x_block, out += ORT_BYTES_BLOCK)
        for (int64_t i = 0; i < count; i++)
            _mm_storeu_si128((__m128i *)(void *)(out + i * out_step), load_pixel(x + i * x_step));
}

void ort_bytes_plug_amx(ort_bytes_kernels *table)
{
    table->tiled = tiled;
    table->side_by_side = side_by_side;
}
