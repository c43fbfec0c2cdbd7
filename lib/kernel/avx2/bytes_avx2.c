/* bytes_avx2.c - kernels of the blocked layout of bytes of the AVX2 tier: words of two int16, since
 * vpmaddubsw saturates, and of four bytes where these are seen not to. */
#include "kernel/blocked_bytes.h"

#include <math.h>
#include <string.h>

#include "kernel/avx2/simd.h"

#define BYTES_PIXELS 6
#define BYTES_AHEAD /* weights take two bytes */
#define BYTES_PLACES /* few words a tap: most convolutions are multiplied by fours */

static inline vi bytes_multiply(vi sum, vi x, vi w)
{
    return vi_dot_i16(x, w, sum);
}

#include "kernel/avx2/bytes_store.h"
#include "kernel/blocked_bytes.inc"
#include "kernel/avx2/bytes_fours.inc"

/* ---- depthwise: two taps of a row in a word */

#define BYTES_TAPS 2
typedef int16_t bytes_weight;

static inline __attribute__((always_inline)) void bytes_words(const char *p, int64_t step,
                                                              char *out)
{
    const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i second = _mm_loadu_si128((const __m128i *)(const void *)(p + step));
    __m256i *to = (__m256i *)(void *)out;
    _mm256_storeu_si256(to, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(first, second)));
    _mm256_storeu_si256(to + 1, _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(first, second)));
}

#include "kernel/blocked_bytes_depthwise.inc"
#include "kernel/avx2/bytes_window.inc"

/* ---- 3x3 windows: words of two int16 leave room for transformed ones */

#define BT_TILES 6
#define BT_STEP BB_STEP2
#include "kernel/blocked_bytes_winograd.inc"
#include "kernel/avx2/bytes_filter.inc"

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

/* Four pixels of four bytes to twelve of three words; all of the last vector is somebody's. */
static inline void store_threes(__m128i pixels, bool last, int16_t *out)
{
    const __m128i threes = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i words = _mm256_cvtepu8_epi16(_mm_shuffle_epi8(pixels, threes));
    if (!last) {
        _mm256_storeu_si256((__m256i *)(void *)out, words);
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(words));
    _mm_storel_epi64((__m128i *)(void *)(out + 8), _mm256_extracti128_si256(words, 1));
}

static void gather3_wide(const uint8_t *in, int64_t plane, int64_t count, uint8_t flip,
                         int16_t *out)
{
    for (int64_t i = 0; i < count; i += 16) {
        const int64_t left = count - i < 16 ? count - i : 16;
        __m128i pixels[4];
        gather4(in + i, plane, 3, left, flip, (uint8_t *)pixels);
        for (int64_t n = 0; left == 16 && n < 4; n++)
            store_threes(pixels[n], n == 3, out + 3 * (i + 4 * n));
        for (int64_t n = 0; left < 16 && n < 3 * left; n++)
            out[3 * i + n] = ((const uint8_t *)pixels)[n / 3 * 4 + n % 3];
    }
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
                                 .fours = fours,
                                 .fours_space = fours_space,
                                 .fours_peak_bytes = fours_peak_bytes,
                                 .fours_peaks = fours_peaks,
                                 .fours_limits = fours_limits,
                                 .depthwise = depthwise,
                                 .depthwise_words = all_depthwise_words,
                                 .pack_depthwise = pack_all_depthwise,
                                 .arranged_bytes = arranged_bytes,
                                 .arrange = arrange,
                                 .takes_window = takes_window,
                                 .window = window,
                                 .tiles_in = tiles_in,
                                 .tiles_multiply = tiles_multiply,
                                 .tiles_out = tiles_out,
                                 .tiles_filter = tiles_filter,
                                 .conv_rate = 27,
                                 .tiles_rate = 21,
                                 .gather4 = gather4,
                                 .gather3_wide = gather3_wide,
                                 .gather = gather,
                                 .scatter = scatter,
                                 .pick = pick,
                                 .floats = bytes_floats};
}
