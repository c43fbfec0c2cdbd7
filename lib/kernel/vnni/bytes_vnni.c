/* bytes_vnni.c - kernels of the blocked layout of bytes of the AVX-512 VNNI tier: words of four
 * bytes, uint8 by int8 (vpdpbusd), which is exact. */
#include "kernel/blocked_bytes.h"

#include <math.h>
#include <string.h>

#include "kernel/avx512/simd.h"

#define BYTES_PIXELS 14

static inline vi bytes_multiply(vi sum, vi x, vi w)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}

static inline vi bytes_round(vf v)
{
    return vi_from_vf(v); /* the least int32 for what none holds */
}

static inline void bytes_store(uint8_t *p, vi v, int zero)
{
    __m256i codes = _mm256_adds_epi16(_mm512_cvtsepi32_epi16(v), _mm256_set1_epi16((int16_t)zero));
    _mm_storeu_si128((__m128i *)(void *)p, _mm_packus_epi16(_mm256_castsi256_si128(codes),
                                                            _mm256_extracti128_si256(codes, 1)));
}

/* Packing leaves four channels of each pixel in every quarter. Codes of 16 bits saturate before the
 * zero point is added, and again behind it. */
static inline void bytes_store4(uint8_t *p, vi a, vi b, vi c, vi d, int zero)
{
    const vi order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const vi zeros = _mm512_set1_epi16((int16_t)zero);
    vi first = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zeros);
    vi second = _mm512_adds_epi16(_mm512_packs_epi32(c, d), zeros);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second)));
}

#include "kernel/blocked_bytes.inc"

/* ---- depthwise: four taps of a row in a word */

static int64_t depthwise_words(const int64_t *kernel)
{
    return kernel[0] * ((kernel[1] + 3) / 4) * ORT_BYTES_BLOCK;
}

/* [kernel row][four taps][16][4] */
static void pack_depthwise(const int8_t *w, const int64_t *kernel, int32_t *out)
{
    int8_t *to = (int8_t *)out;
    const int64_t taps = kernel[0] * kernel[1];
    for (int64_t ky = 0; ky < kernel[0]; ky++)
        for (int64_t kx = 0; kx < kernel[1]; kx += 4)
            for (int c = 0; c < ORT_BYTES_BLOCK; c++)
                for (int64_t t = kx; t < kx + 4; t++)
                    *to++ = t < kernel[1] ? w[c * taps + ky * kernel[1] + t] : 0;
}

static inline __m128i load_pixel(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Four pixels, each 16 channels: a word for each channel. */
static inline __attribute__((always_inline)) vi words_of(const char *p, int64_t step)
{
    const vi columns = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const vi bytes = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400);
    vi v;
    if (step == ORT_BYTES_BLOCK) {
        v = _mm512_loadu_si512(p);
    } else {
        v = _mm512_castsi128_si512(load_pixel(p));
        v = _mm512_inserti32x4(v, load_pixel(p + step), 1);
        v = _mm512_inserti32x4(v, load_pixel(p + 2 * step), 2);
        v = _mm512_inserti32x4(v, load_pixel(p + 3 * step), 3);
    }
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(columns, v), bytes);
}

/* Output pixels between the words of one group of four taps and those of the next, where the words
 * of a later pixel are these; 0: they have words of their own. */
static int64_t group_pixels(const ort_bytes_band *b)
{
    const int64_t reach = 4 * b->dilation[1];
    return reach % b->stride[1] ? 0 : reach / b->stride[1];
}

static int64_t groups_of(const ort_bytes_band *b)
{
    return (b->kernel[1] + 3) / 4;
}

/* Vectors of words from one group to the next of a row. */
static int64_t group_step(const ort_bytes_band *b)
{
    return group_pixels(b) ? group_pixels(b) : b->out.count;
}

static int64_t arranged_bytes(const ort_bytes_band *b)
{
    return (b->out.count + (groups_of(b) - 1) * group_step(b)) * 4 * ORT_BYTES_BLOCK;
}

/* For each output pixel the words of its taps. Shuffling takes longer than multiplying: here it is
 * done once for all kernel rows. */
static void arrange(const ort_bytes_band *b, const uint8_t *row, char *out)
{
    const int64_t step = b->dilation[1] * ORT_BYTES_BLOCK, next = b->stride[1] * ORT_BYTES_BLOCK;
    const bool shared = group_pixels(b) != 0;
    const int64_t stretches = shared ? 1 : groups_of(b);
    const int64_t count = shared ? b->out.count + (groups_of(b) - 1) * group_step(b) : b->out.count;
    for (int64_t g = 0; g < stretches; g++) {
        const char *from = (const char *)row + 4 * g * step;
        for (int64_t i = 0; i < count; i++, from += next, out += 4 * ORT_BYTES_BLOCK)
            _mm512_storeu_si512(out, step == ORT_BYTES_BLOCK ? words_of(from, ORT_BYTES_BLOCK)
                                                             : words_of(from, step));
    }
}

/* As many pixels at a time as there are sums in flight. */
static inline __attribute__((always_inline)) void depthwise_row(const ort_bytes_band *b,
                                                                const char *x, int64_t rows,
                                                                int64_t groups, uint8_t *y)
{
    enum { SIZE = 4 * ORT_BYTES_BLOCK };
    const ort_bytes_out *o = &b->out;
    const vf hi = vf_set1(BB_HIGH);
    const vi bias = vi_load(o->bias);
    const vf scale0 = vf_load(o->scale);
    const int64_t down = b->dilation[0] * b->x_row, group = group_step(b) * SIZE;
    const int zero = o->zero;
    int64_t i = 0;
#define SUM(n) vi s##n = bias;
#define ADD(n) s##n = bytes_multiply(s##n, _mm512_loadu_si512(from + n * SIZE), w);
#define PIXELS(pixels)                                                                             \
    BK_LIST##pixels(SUM)                                                                           \
    for (int64_t ky = 0; ky < rows; ky++)                                                          \
        for (int64_t g = 0; g < groups; g++) {                                                     \
            const vi w = vi_load(b->w + (ky * groups + g) * ORT_BYTES_BLOCK);                      \
            const char *from = x + ky * down + i * SIZE + g * group;                               \
            BK_LIST##pixels(ADD)                                                                   \
        }
    for (; o->count - i >= 4; i += 4) {
        PIXELS(4)
        BB_FOUR(0, 1, 2, 3, s, 0, y + i * ORT_BYTES_BLOCK)
    }
    for (; i < o->count; i++) {
        PIXELS(1)
        BB_ONE(0, s, 0, y + i * ORT_BYTES_BLOCK)
    }
#undef SUM
#undef ADD
#undef PIXELS
}

static void depthwise(const ort_bytes_band *b)
{
    const int64_t groups = groups_of(b);
    assert(b->kernel[0] * b->kernel[1] < 1 << 16); /* sums stay in 32 bits */
    for (int64_t r = 0; r < b->rows; r++) {
        const char *x = b->x + r * b->stride[0] * b->x_row;
        uint8_t *y = b->out.y + r * b->out.count * ORT_BYTES_BLOCK;
        if (groups == 1 && b->kernel[0] == 3)
            depthwise_row(b, x, 3, 1, y);
        else if (groups == 2 && b->kernel[0] == 5)
            depthwise_row(b, x, 5, 2, y);
        else
            depthwise_row(b, x, b->kernel[0], groups, y);
    }
}

void ort_bytes_plug_vnni(ort_bytes_kernels *table)
{
    table->wide = 1;
    table->vector = VF_LANES;
    table->conv = bytes_conv;
    table->depthwise = depthwise;
    table->depthwise_words = depthwise_words;
    table->pack_depthwise = pack_depthwise;
    table->arranged_bytes = arranged_bytes;
    table->arrange = arrange;
}
