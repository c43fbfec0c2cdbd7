/* bytes_avx2.c - kernels of the blocked layout of bytes of the AVX2 tier: words of two int16, since
 * vpmaddubsw saturates. */
#include "kernel/blocked_bytes.h"

#include <math.h>
#include <string.h>

#include "kernel/avx2/simd.h"

#define BYTES_PIXELS 6

static inline vi bytes_multiply(vi sum, vi x, vi w)
{
    return vi_add(sum, _mm256_madd_epi16(x, w));
}

static inline vi bytes_round(vf v)
{
    return vi_from_vf(v); /* the least int32 for what none holds */
}

/* Codes of 16 bits saturate before the zero point is added, and again behind it. */
static inline void bytes_store(uint8_t *p, vi v, int zero)
{
    __m128i codes = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    codes = _mm_adds_epi16(codes, _mm_set1_epi16((int16_t)zero));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(codes, codes));
}

static inline void bytes_store4(uint8_t *p, vi a, vi b, vi c, vi d, int zero)
{
    bytes_store(p, a, zero);
    bytes_store(p + ORT_BYTES_BLOCK, b, zero);
    bytes_store(p + 2 * ORT_BYTES_BLOCK, c, zero);
    bytes_store(p + 3 * ORT_BYTES_BLOCK, d, zero);
}

#include "kernel/blocked_bytes.inc"

/* ---- depthwise: two taps of a row in a word. Unpacking leaves channels 0..3 and 8..11 in one
 * vector, the others in the second; packing to bytes puts them in order again. */

static inline __m256i load16(const void *p)
{
    return _mm256_loadu_si256(p);
}

static inline vi low_channels(vi first, vi second)
{
    return _mm256_permute2x128_si256(first, second, 0x20);
}
static inline vi high_channels(vi first, vi second)
{
    return _mm256_permute2x128_si256(first, second, 0x31);
}

static int64_t depthwise_words(const int64_t *kernel)
{
    return kernel[0] * ((kernel[1] + 1) / 2) * ORT_BYTES_BLOCK;
}

/* [kernel row][pair of taps][low or high channels][8][2] */
static void pack_depthwise(const int8_t *w, const int64_t *kernel, int32_t *out)
{
    static const int order[ORT_BYTES_BLOCK] = {0, 1, 2, 3, 8,  9,  10, 11,
                                               4, 5, 6, 7, 12, 13, 14, 15};
    int16_t *to = (int16_t *)(void *)out;
    const int64_t taps = kernel[0] * kernel[1];
    for (int64_t ky = 0; ky < kernel[0]; ky++)
        for (int64_t kx = 0; kx < kernel[1]; kx += 2)
            for (int c = 0; c < ORT_BYTES_BLOCK; c++) {
                const int8_t *from = w + order[c] * taps + ky * kernel[1] + kx;
                *to++ = from[0];
                *to++ = kx + 1 < kernel[1] ? from[1] : 0;
            }
}

static int64_t row_elements(const ort_bytes_band *b)
{
    return ((b->out.count - 1) * b->stride[1] + (b->kernel[1] - 1) * b->dilation[1] + 1) *
           ORT_BYTES_BLOCK;
}

static int64_t arranged_bytes(const ort_bytes_band *b)
{
    return row_elements(b) * (int64_t)sizeof(int16_t);
}

/* int16 */
static void arrange(const ort_bytes_band *b, const uint8_t *row, char *out)
{
    for (int64_t i = 0; i < row_elements(b); i += ORT_BYTES_BLOCK)
        _mm256_storeu_si256((__m256i *)(void *)(out + 2 * i),
                            _mm256_cvtepu8_epi16(_mm_loadu_si128(
                                (const __m128i *)(const void *)(row + i))));
}

static inline __attribute__((always_inline)) void depthwise_row(const ort_bytes_band *b,
                                                                const char *x, int64_t columns,
                                                                uint8_t *y)
{
    const ort_bytes_out *o = &b->out;
    const vf lo = vf_set1((float)-o->zero), hi = vf_set1((float)(255 - o->zero));
    const __m256i zero = _mm256_set1_epi16((int16_t)o->zero);
    const vi bias0 = vi_load(o->bias), bias1 = vi_load(o->bias + 8);
    const vi scale0 = _mm256_castps_si256(vf_load(o->scale));
    const vi scale1 = _mm256_castps_si256(vf_load(o->scale + 8));
    const vi bias_low = low_channels(bias0, bias1), bias_high = high_channels(bias0, bias1);
    const vf scale_low = _mm256_castsi256_ps(low_channels(scale0, scale1));
    const vf scale_high = _mm256_castsi256_ps(high_channels(scale0, scale1));
    const int64_t step = b->dilation[1] * 32, down = b->dilation[0] * b->x_row;
    for (int64_t i = 0; i < o->count; i++, x += b->stride[1] * 32, y += ORT_BYTES_BLOCK) {
        const int32_t *w = b->w;
        const char *row = x;
        vi low = bias_low, high = bias_high;
        for (int64_t ky = 0; ky < b->kernel[0]; ky++, row += down)
            for (int64_t kx = 0; kx < columns; kx += 2, w += 16) {
                vi first = load16(row + kx * step);
                vi second = kx + 1 < columns ? load16(row + (kx + 1) * step) : vi_zero();
                low = bytes_multiply(low, _mm256_unpacklo_epi16(first, second), vi_load(w));
                high = bytes_multiply(high, _mm256_unpackhi_epi16(first, second), vi_load(w + 8));
            }
        vf f = vf_mul(vf_from_vi(low), scale_low), g = vf_mul(vf_from_vi(high), scale_high);
        low = vi_from_vf(vf_min(hi, vf_max(lo, f)));
        high = vi_from_vf(vf_min(hi, vf_max(lo, g)));
        vi both = _mm256_add_epi16(_mm256_packs_epi32(low, high), zero);
        _mm_storeu_si128((__m128i *)(void *)y,
                         _mm_packus_epi16(_mm256_castsi256_si128(both),
                                          _mm256_extracti128_si256(both, 1)));
    }
}

static void depthwise(const ort_bytes_band *b)
{
    assert(b->kernel[0] * b->kernel[1] < 1 << 16); /* sums stay in 32 bits */
    for (int64_t r = 0; r < b->rows; r++) {
        const char *x = b->x + r * b->stride[0] * b->x_row;
        uint8_t *y = b->out.y + r * b->out.count * ORT_BYTES_BLOCK;
        if (b->kernel[1] == 3)
            depthwise_row(b, x, 3, y);
        else if (b->kernel[1] == 5)
            depthwise_row(b, x, 5, y);
        else
            depthwise_row(b, x, b->kernel[1], y);
    }
}

/* ---- conversions: 16 channels of 16 pixels at a time */

static inline void interleave(const __m128i *in, __m128i *out)
{
    for (int i = 0; i < 8; i++) {
        out[2 * i] = _mm_unpacklo_epi8(in[i], in[i + 8]);
        out[2 * i + 1] = _mm_unpackhi_epi8(in[i], in[i + 8]);
    }
}

/* Rows and columns of 16 x 16 bytes change places. */
static inline void transpose(__m128i *tile)
{
    __m128i other[16];
    interleave(tile, other);
    interleave(other, tile);
    interleave(tile, other);
    interleave(other, tile);
}

static inline void flip_all(__m128i *tile, uint8_t flip)
{
    const __m128i mask = _mm_set1_epi8((char)flip);
    for (int i = 0; i < 16; i++)
        tile[i] = _mm_xor_si128(tile[i], mask);
}

static void gather4(const uint8_t *in, int64_t plane, int64_t channels, int64_t count, uint8_t flip,
                    uint8_t *out)
{
    const __m128i mask = _mm_set1_epi8((char)flip);
    int64_t i = 0;
    for (; count - i >= 16; i += 16) {
        __m128i c[4];
        for (int n = 0; n < 4; n++)
            c[n] = n < channels ? _mm_xor_si128(mask, _mm_loadu_si128((const __m128i *)(
                                                          const void *)(in + n * plane + i)))
                                : _mm_setzero_si128();
        __m128i low = _mm_unpacklo_epi8(c[0], c[1]), high = _mm_unpackhi_epi8(c[0], c[1]);
        __m128i low2 = _mm_unpacklo_epi8(c[2], c[3]), high2 = _mm_unpackhi_epi8(c[2], c[3]);
        __m128i *to = (__m128i *)(void *)(out + 4 * i);
        _mm_storeu_si128(to, _mm_unpacklo_epi16(low, low2));
        _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(low, low2));
        _mm_storeu_si128(to + 2, _mm_unpacklo_epi16(high, high2));
        _mm_storeu_si128(to + 3, _mm_unpackhi_epi16(high, high2));
    }
    for (; i < count; i++)
        for (int64_t n = 0; n < 4; n++)
            out[4 * i + n] = n < channels ? in[n * plane + i] ^ flip : 0;
}

static void gather(const uint8_t *in, int64_t plane, int64_t channels, int64_t count, uint8_t flip,
                   uint8_t *block)
{
    const __m128i filled = _mm_set1_epi8((char)flip);
    int64_t i = 0;
    for (; count - i >= 16; i += 16) {
        __m128i tile[16];
        for (int c = 0; c < 16; c++)
            tile[c] = c < channels
                          ? _mm_loadu_si128((const __m128i *)(const void *)(in + c * plane + i))
                          : filled;
        transpose(tile);
        flip_all(tile, flip);
        for (int p = 0; p < 16; p++)
            _mm_storeu_si128((__m128i *)(void *)(block + (i + p) * ORT_BYTES_BLOCK), tile[p]);
    }
    for (; i < count; i++)
        for (int64_t c = 0; c < ORT_BYTES_BLOCK; c++)
            block[i * ORT_BYTES_BLOCK + c] = c < channels ? in[c * plane + i] ^ flip : 0;
}

static void scatter(const uint8_t *block, int64_t plane, int64_t channels, int64_t count,
                    uint8_t flip, uint8_t *out)
{
    int64_t i = 0;
    for (; count - i >= 16; i += 16) {
        __m128i tile[16];
        for (int p = 0; p < 16; p++)
            tile[p] = _mm_loadu_si128(
                (const __m128i *)(const void *)(block + (i + p) * ORT_BYTES_BLOCK));
        transpose(tile);
        flip_all(tile, flip);
        for (int c = 0; c < 16 && c < channels; c++)
            _mm_storeu_si128((__m128i *)(void *)(out + c * plane + i), tile[c]);
    }
    for (; i < count; i++)
        for (int64_t c = 0; c < channels; c++)
            out[c * plane + i] = block[i * ORT_BYTES_BLOCK + c] ^ flip;
}

/* Negative lanes become zero by the instruction; what is to stay there is put in. */
static void pick(const uint8_t *in, const int8_t *lanes, bool fresh, int64_t count, uint8_t *out)
{
    const __m128i one = _mm_loadu_si128((const __m128i *)(const void *)lanes);
    const __m256i from = _mm256_broadcastsi128_si256(one);
    const __m256i old = fresh ? _mm256_setzero_si256()
                              : _mm256_cmpgt_epi8(_mm256_setzero_si256(), from);
    int64_t i = 0;
    for (; count - i >= 2; i += 2) {
        __m256i *to = (__m256i *)(void *)(out + i * ORT_BYTES_BLOCK);
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(in + i * ORT_BYTES_BLOCK));
        __m256i y = fresh ? old : _mm256_and_si256(_mm256_loadu_si256(to), old);
        _mm256_storeu_si256(to, _mm256_or_si256(_mm256_shuffle_epi8(x, from), y));
    }
    if (i < count) {
        __m128i *to = (__m128i *)(void *)(out + i * ORT_BYTES_BLOCK);
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(in + i * ORT_BYTES_BLOCK));
        __m128i y = fresh ? _mm_setzero_si128()
                          : _mm_and_si128(_mm_loadu_si128(to), _mm256_castsi256_si128(old));
        _mm_storeu_si128(to, _mm_or_si128(_mm_shuffle_epi8(x, one), y));
    }
}

void ort_bytes_plug_avx2(ort_bytes_kernels *table)
{
    *table = (ort_bytes_kernels){.wide = 2,
                                 .vector = VF_LANES,
                                 .conv = bytes_conv,
                                 .depthwise = depthwise,
                                 .depthwise_words = depthwise_words,
                                 .pack_depthwise = pack_depthwise,
                                 .arranged_bytes = arranged_bytes,
                                 .arrange = arrange,
                                 .gather4 = gather4,
                                 .gather = gather,
                                 .scatter = scatter,
                                 .pick = pick};
}
