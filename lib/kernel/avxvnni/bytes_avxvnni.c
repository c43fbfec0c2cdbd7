/* bytes_avxvnni.c - kernels of the blocked layout of bytes of the AVX-VNNI tier, over AVX2's: words
 * of four bytes, uint8 by int8 (vpdpbusd on 256 bits), which is exact. */
#include "kernel/blocked_bytes.h"

#include <math.h>
#include <string.h>

#include "kernel/avx2/bytes_store.h"

#define BYTES_PIXELS 6

static inline vi bytes_multiply(vi sum, vi x, vi w)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "x"(w));
    return sum;
}

#include "kernel/blocked_bytes.inc"

/* ---- depthwise: four taps of a row in a word */

#define BYTES_TAPS 4
typedef int8_t bytes_weight;

static inline __m128i load_pixel(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline __attribute__((always_inline)) void bytes_words(const char *p, int64_t step,
                                                              char *out)
{
    const __m128i a = load_pixel(p), b = load_pixel(p + step);
    const __m128i c = load_pixel(p + 2 * step), d = load_pixel(p + 3 * step);
    const __m128i low_ab = _mm_unpacklo_epi8(a, b), high_ab = _mm_unpackhi_epi8(a, b);
    const __m128i low_cd = _mm_unpacklo_epi8(c, d), high_cd = _mm_unpackhi_epi8(c, d);
    __m128i *to = (__m128i *)(void *)out;
    _mm_storeu_si128(to, _mm_unpacklo_epi16(low_ab, low_cd));
    _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(low_ab, low_cd));
    _mm_storeu_si128(to + 2, _mm_unpacklo_epi16(high_ab, high_cd));
    _mm_storeu_si128(to + 3, _mm_unpackhi_epi16(high_ab, high_cd));
}

#include "kernel/blocked_bytes_depthwise.inc"

void ort_bytes_plug_avxvnni(ort_bytes_kernels *table)
{
    table->wide = 1;
    table->conv = bytes_conv;
    table->fours = NULL;
    table->depthwise = depthwise;
    table->depthwise_words = depthwise_words;
    table->pack_depthwise = pack_depthwise;
    table->arranged_bytes = arranged_bytes;
    table->arrange = arrange;
    table->takes_window = NULL; /* whose words are AVX2's */
    table->floats = bytes_floats;
    table->tiles_in = NULL; /* four bytes in a word are faster than transformed int16 */
    table->tiles_out = NULL;
}
