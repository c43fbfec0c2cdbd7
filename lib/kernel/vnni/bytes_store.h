/* bytes_store.h - codes out of scaled sums, on vectors of 512 bits: what the kernels of the blocked
 * layout of bytes share (blocked_bytes.inc says what each does). */
#ifndef ORT_KERNEL_VNNI_BYTES_STORE_H
#define ORT_KERNEL_VNNI_BYTES_STORE_H

#include "kernel/avx512/simd.h"

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

/* Codes of 16 bits of four pixels, which packing leaves by four channels in every quarter. */
static inline vi bytes_ordered(vi first, vi second)
{
    const vi order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second));
}

/* Codes of 16 bits saturate before the zero point is added, and again behind it. */
static inline vi bytes_codes4(vi a, vi b, vi c, vi d, int zero)
{
    const vi zeros = _mm512_set1_epi16((int16_t)zero);
    return bytes_ordered(_mm512_adds_epi16(_mm512_packs_epi32(a, b), zeros),
                         _mm512_adds_epi16(_mm512_packs_epi32(c, d), zeros));
}

/* The zero point is in them. */
static inline vi bytes_packed4(vi a, vi b, vi c, vi d)
{
    return bytes_ordered(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
}

static inline void bytes_store4(uint8_t *p, vi a, vi b, vi c, vi d, int zero)
{
    _mm512_storeu_si512(p, bytes_codes4(a, b, c, d, zero));
}

#endif
