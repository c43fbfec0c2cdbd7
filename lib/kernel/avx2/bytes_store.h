/* bytes_store.h - sums to codes on vectors of 256 bits, for blocked_bytes.inc. */
#ifndef ORT_KERNEL_AVX2_BYTES_STORE_H
#define ORT_KERNEL_AVX2_BYTES_STORE_H

#include "kernel/avx2/simd.h"
#include "kernel/blocked_bytes.h"

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

/* The lanes of four vectors behind each other. */
static inline vi codes4(vi a, vi b, vi c, vi d, int zero)
{
    const vi zeros = _mm256_set1_epi16((int16_t)zero);
    const vi order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    vi first = _mm256_adds_epi16(_mm256_packs_epi32(a, b), zeros);
    vi second = _mm256_adds_epi16(_mm256_packs_epi32(c, d), zeros);
    return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), order);
}

static inline void bytes_store4(uint8_t *p, vi a, vi b, vi c, vi d, int zero)
{
    const vi codes = codes4(a, b, c, d, zero);
    __m128i low = _mm256_castsi256_si128(codes), high = _mm256_extracti128_si256(codes, 1);
    _mm_storel_epi64((__m128i *)(void *)p, low);
    _mm_storeh_pd((double *)(void *)(p + ORT_BYTES_BLOCK), _mm_castsi128_pd(low));
    _mm_storel_epi64((__m128i *)(void *)(p + 2 * ORT_BYTES_BLOCK), high);
    _mm_storeh_pd((double *)(void *)(p + 3 * ORT_BYTES_BLOCK), _mm_castsi128_pd(high));
}

#define BYTES_STORES_BLOCKS
static inline void bytes_store_blocks(uint8_t *p, vi a, vi b, vi c, vi d, int zero)
{
    _mm256_storeu_si256((__m256i *)(void *)p, codes4(a, b, c, d, zero));
}

#endif
