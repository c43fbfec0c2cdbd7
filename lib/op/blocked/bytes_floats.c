/* bytes_floats.c - sums of products of bytes that become floats: scaled, shifted and bounded, they
 * go to the planes of their maps, to the blocked layout of floats, or through a function to codes
 * of the layout of bytes. */
#include <string.h>

#include "op/blocked/bytes_conv.h"

static void slope_negatives(float *x, int64_t pixels, const float *slope)
{
    for (int64_t i = 0; i < pixels; i++, x += ORT_BYTES_BLOCK)
        for (int64_t k = 0; k < ORT_BYTES_BLOCK; k++)
            x[k] = x[k] < 0 ? x[k] * slope[k] : x[k];
}

/* Codes of the layout of `count` pixels of a block's floats, from pixel `pixel` of an image on, of
 * lanes [lane, lane + lanes) alone. */
static void give_codes(const bytes_floats *f, float *from, int64_t lane, int64_t lanes,
                       int64_t image, int64_t pixel, int64_t count)
{
    enum { PIECE = 64 };
    const bytes_state *s = f->s;
    const ort_vmath_kernels *m = &f->call->k->math;
    const int64_t block = lane / ORT_BYTES_BLOCK, in = lane % ORT_BYTES_BLOCK;
    uint8_t codes[PIECE * ORT_BYTES_BLOCK];
    uint8_t *y = f->codes +
                 ((image * f->out->blocks + block) * f->out->plane + pixel) * ORT_BYTES_BLOCK;
    for (int64_t i = 0; i < count; i += PIECE) {
        float *x = from + i * ORT_BYTES_BLOCK;
        const int64_t pixels = ort_min_i64(PIECE, count - i), n = pixels * ORT_BYTES_BLOCK;
        if (s->act >= 0)
            m->unary[s->act](x, x, (size_t)n, s->act_a, s->act_b);
        if (s->slope)
            slope_negatives(x, pixels, s->slope + block * ORT_BYTES_BLOCK);
        m->quantize_u8(x, codes, (size_t)n, s->y_scale, s->y_zero);
        if (lanes == ORT_BYTES_BLOCK)
            memcpy(y + i * ORT_BYTES_BLOCK, codes, (size_t)n);
        for (int64_t k = 0; k < pixels && lanes < ORT_BYTES_BLOCK; k++)
            memcpy(y + (i + k) * ORT_BYTES_BLOCK + in, codes + k * ORT_BYTES_BLOCK + in,
                   (size_t)lanes);
    }
}

/* The same as floats in blocks of s->blocks, which may be narrower than those of bytes; lanes
 * behind the last such block are nobody's. */
static void give_blocks(const bytes_floats *f, const float *from, int64_t lane, int64_t lanes,
                        int64_t image, int64_t pixel, int64_t count)
{
    const int64_t wide = f->s->blocks, blocks = ort_blocked_count(f->s->maps, wide);
    const int64_t end = ort_min_i64(lane + lanes, blocks * wide);
    for (int64_t at = lane, n; at < end; at += n) {
        const float *x = from + at % ORT_BYTES_BLOCK;
        float *y = f->floats + ((image * blocks + at / wide) * f->out->plane + pixel) * wide +
                   at % wide;
        n = ort_min_i64(wide - at % wide, end - at);
        if (n == 8)
            for (int64_t i = 0; i < count; i++)
                memcpy(y + i * wide, x + i * ORT_BYTES_BLOCK, 8 * sizeof *y);
        else
            for (int64_t i = 0; i < count; i++)
                memcpy(y + i * wide, x + i * ORT_BYTES_BLOCK, (size_t)n * sizeof *y);
        const int64_t rest = at + n < f->s->maps ? 0 : wide - (at + n - 1) % wide - 1;
        for (int64_t i = 0; rest > 0 && i < count; i++) /* no vector was multiplied for these */
            memset(y + i * wide + n, 0, (size_t)rest * sizeof *y);
    }
}

void ort_bytes_give_floats(const bytes_floats *f, const ort_bytes_out *o, int64_t first,
                           int64_t lanes, int64_t image, int64_t pixel)
{
    const bytes_state *s = f->s;
    const int64_t plane = f->out->plane, wide = s->group_blocks * ORT_BYTES_BLOCK;
    const int64_t maps = s->depthwise ? s->maps : s->maps / s->group;
    for (int64_t done = 0; done < lanes; done += ORT_BYTES_BLOCK) {
        int64_t lane = first + done, block = lane / ORT_BYTES_BLOCK * ORT_BYTES_BLOCK;
        int64_t map = lane / wide * maps + lane % wide, some = ort_min_i64(lanes - done,
                                                                          ORT_BYTES_BLOCK);
        int64_t count = ort_min_i64(some, maps - lane % wide);
        int32_t *sums = o->sums + done / ORT_BYTES_BLOCK * o->y_block;
        float *to = (float *)(void *)sums;
        s->k->floats(sums, f->scale + block, s->shift + block, s->low, s->high, o->count, to);
        if (s->coded)
            give_codes(f, to, lane, some, image, pixel, o->count);
        else if (s->blocks)
            give_blocks(f, to, lane, some, image, pixel, o->count);
        else if (count > 0)
            f->call->k->blocked16.scatter(to + lane % ORT_BYTES_BLOCK, plane, count, o->count,
                                          f->floats + (image * s->maps + map) * plane + pixel);
    }
}
