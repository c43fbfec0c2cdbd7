/* bytes_amx.c - convolutions in the blocked layout of bytes on the AMX tier's tiles (tile.h): 32
 * output pixels by 32 output channels in four tiles of sums. Weights are those of the VNNI tier,
 * whose kernels take what has few pixels or channels.
 *
 * Bound: products where a pixel has many words, else making codes of sums, 4.5 instructions for 16.
 * Codes of one block are made while the products of the next are on their way. Sums begin with the
 * bias, one row of it read 16 times.
 */
#include "kernel/blocked_bytes.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/amx/tile.h"
#include "kernel/contract.h"
#include "kernel/vnni/bytes_store.h"

#define HIGH 1024.0f /* beyond every code, whatever the zero point */
enum {
    PIECE = 4,               /* pixels whose codes are made at a time */
    NEAR_BYTES = 24 << 10,   /* of pixels that stay in the nearest cache, beside a panel */
    NEAR_PIXELS = 2 * ORT_BYTES_TILED,
};

typedef struct piece { /* neighbours in a row */
    int from, count;
    int64_t to;
} piece;

/* Sums of two vectors of channels, of up to 32 pixels each, that wait for becoming codes. */
typedef struct sums_block {
    int32_t sum[2][ORT_BYTES_TILED * ORT_BYTES_BLOCK] __attribute__((aligned(64)));
    piece piece[ORT_BYTES_TILED];
    int pieces, given, quota; /* the quota: with each step */
    int64_t vector;
    int vectors;
} sums_block;

static inline vi code_of(const int32_t *sum, vf scale, bool bounded)
{
    const vf v = vf_mul(vf_from_vi(vi_load(sum)), scale);
    return bytes_round(bounded ? v : vf_min(vf_set1(HIGH), v));
}

static inline void give_codes(const int32_t *sum, int count, vf scale, bool bounded, int zero,
                              uint8_t *y)
{
    if (count == PIECE)
        bytes_store4(y, code_of(sum, scale, bounded),
                     code_of(sum + ORT_BYTES_BLOCK, scale, bounded),
                     code_of(sum + 2 * ORT_BYTES_BLOCK, scale, bounded),
                     code_of(sum + 3 * ORT_BYTES_BLOCK, scale, bounded), zero);
    for (; count % PIECE > 0; count--, sum += ORT_BYTES_BLOCK, y += ORT_BYTES_BLOCK)
        bytes_store(y, code_of(sum, scale, bounded), zero);
}

static void give_piece(const ort_bytes_out *o, const sums_block *s, const piece *p)
{
    for (int v = 0; v < s->vectors; v++) {
        const int64_t to = (s->vector + v) * o->y_block + p->to;
        const int32_t *from = s->sum[v] + p->from * ORT_BYTES_BLOCK;
        const vf scale = vf_load(o->scale + (s->vector + v) * ORT_BYTES_BLOCK);
        if (o->sums)
            memcpy(o->sums + to, from, (size_t)(p->count * ORT_BYTES_BLOCK) * sizeof *from);
        else if (o->bounded)
            give_codes(from, p->count, scale, true, o->zero, o->y + to);
        else
            give_codes(from, p->count, scale, false, o->zero, o->y + to);
    }
}

static inline void give(const ort_bytes_out *o, sums_block *s, int count)
{
    const int end = s->pieces - s->given < count ? s->pieces : s->given + count;
    for (; s->given < end; s->given++)
        give_piece(o, s, &s->piece[s->given]);
}

/* Of `count` pixels from `first` on, those of the rows' width. */
static void list_pieces(const ort_bytes_tiled *k, int64_t first, int count, sums_block *s)
{
    int64_t row = first / k->pitch, at = first % k->pitch;
    s->pieces = s->given = 0;
    for (int done = 0; done < count;) {
        const int64_t left = k->width - at;
        int run = count - done < PIECE ? count - done : PIECE;
        if (left > 0) {
            run = left < run ? (int)left : run;
            s->piece[s->pieces++] = (piece){done, run, (row * k->width + at) * ORT_BYTES_BLOCK};
        } else {
            run = k->pitch - at < count - done ? (int)(k->pitch - at) : count - done;
        }
        done += run;
        at += run;
        if (at == k->pitch) {
            at = 0;
            row++;
        }
    }
}

/* Products of up to 32 pixels from `first` on by one or two vectors; what waits is given
 * meanwhile. */
static inline __attribute__((always_inline)) void multiply(const ort_bytes_tiled *k, int64_t first,
                                                           int64_t vector, sums_block *s,
                                                           bool lower, bool right)
{
    const char *x = k->x + first / TILE_ROWS_MOST * k->tile;
    const char *b = (const char *)(k->w + vector * k->steps * k->words * VF_LANES);
    const int64_t below = k->tile, b_row = right ? 128 : 64;
    const int32_t *bias = k->out.bias + vector * ORT_BYTES_BLOCK;
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
        give(&k->out, s, s->quota);
    }
    TILE_STORE(0, s->sum[0], 64);
    if (right)
        TILE_STORE(1, s->sum[1], 64);
    if (lower)
        TILE_STORE(2, s->sum[0] + TILE_ROWS_MOST * ORT_BYTES_BLOCK, 64);
    if (lower && right)
        TILE_STORE(3, s->sum[1] + TILE_ROWS_MOST * ORT_BYTES_BLOCK, 64);
}

static void multiply_block(const ort_bytes_tiled *k, int64_t first, int count, int64_t vector,
                           sums_block *s)
{
    const bool lower = count > TILE_ROWS_MOST, right = k->vectors - vector > 1;
    if (lower && right)
        multiply(k, first, vector, s, true, true);
    else if (lower)
        multiply(k, first, vector, s, true, false);
    else if (right)
        multiply(k, first, vector, s, false, true);
    else
        multiply(k, first, vector, s, false, false);
    list_pieces(k, first, count, s);
    s->quota = (int)((s->pieces + k->steps - 1) / k->steps);
    s->vector = vector;
    s->vectors = right ? 2 : 1;
}

/* Pixels that all vectors are multiplied by before the next: as many as stay near, if those are
 * enough for the weights, which then come from further away. */
static int64_t pixels_at_once(const ort_bytes_tiled *k, int64_t total)
{
    const int64_t near = NEAR_BYTES / (k->tile / TILE_ROWS_MOST) / ORT_BYTES_TILED *
                         ORT_BYTES_TILED;
    return near < NEAR_PIXELS || near > total ? total : near;
}

static void tiled(const ort_bytes_tiled *k)
{
    const int64_t total = (k->rows - 1) * k->pitch + k->width, near = pixels_at_once(k, total);
    sums_block s;
    assert(k->words > 0 && k->words <= TILE_WORDS && k->steps > 0 && k->pitch >= k->width);
    assert(k->out.count == k->rows * k->width && k->out.zero >= 0 && k->out.zero <= 255);
    s.pieces = s.given = s.quota = 0;
    tile_begin(TILE_ROWS_MOST, TILE_ROWS_MOST, k->words);
    for (int64_t n = 0; n < total; n += near)
        for (int64_t v = 0; v < k->vectors; v += 2)
            for (int64_t q = n; q < total && q < n + near; q += ORT_BYTES_TILED)
                multiply_block(k, q,
                               (int)(total - q < ORT_BYTES_TILED ? total - q : ORT_BYTES_TILED), v,
                               &s);
    tile_end();
    give(&k->out, &s, ORT_BYTES_TILED);
}

static inline __m128i load_pixel(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static void side_by_side(const uint8_t *x, int64_t x_block, int64_t x_step, int64_t blocks,
                         int64_t count, char *out, int64_t out_step, int64_t out_next)
{
    for (; blocks >= 4; blocks -= 4, x += 4 * x_block, out += out_next) {
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
    table->tiles_in = NULL; /* its own tiles are faster than transformed int16 */
    table->tiles_multiply = NULL;
    table->tiles_out = NULL;
}
