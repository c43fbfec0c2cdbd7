/* bytes_vnni.c - kernels of the blocked layout of bytes of the AVX-512 VNNI tier: words of four
 * bytes, uint8 by int8 (vpdpbusd), which is exact. */
#include "base/cpu.h"
#include "kernel/blocked_bytes.h"

#include <math.h>
#include <string.h>

#include "kernel/vnni/bytes_store.h"

#define BYTES_PIXELS 14

static inline vi bytes_multiply(vi sum, vi x, vi w)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
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

/* Four pixels, each 16 channels: a word for each channel. */
static inline __attribute__((always_inline)) void bytes_words(const char *p, int64_t step,
                                                              char *out)
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
    _mm512_storeu_si512(out, _mm512_shuffle_epi8(_mm512_permutexvar_epi32(columns, v), bytes));
}

#include "kernel/blocked_bytes_depthwise.inc"
#include "kernel/vnni/bytes_window.inc"

/* ---- 3x3 windows: words of two int16 are half as fast, and a quarter as many */

static inline vi pairs_multiply(vi sum, const char *x, vi w)
{
    __asm__("vpdpwssd %1%{1to16%}, %2, %0"
            : "+v"(sum) : "m"(*(const bytes_word *)(const void *)x), "v"(w));
    return sum;
}

#define BT_TILES 14
#define BT_STEP(i) a##i = pairs_multiply(a##i, BB_P##i, w0);
#include "kernel/blocked_bytes_winograd.inc"

void ort_bytes_plug_vnni(ort_bytes_kernels *table)
{
    table->wide = 1;
    table->vector = VF_LANES;
    table->conv = bytes_conv;
    table->fours = NULL;
    table->depthwise = depthwise;
    table->depthwise_words = depthwise_words;
    table->pack_depthwise = pack_depthwise;
    table->arranged_bytes = arranged_bytes;
    table->arrange = arrange;
    table->takes_window = takes_window;
    table->window = window;
    table->floats = bytes_floats;
    table->tiles_in = tiles_in;
    table->tiles_multiply = tiles_multiply;
    table->tiles_out = tiles_out;
    table->conv_rate = 60;
    table->tiles_rate = 31;
}
