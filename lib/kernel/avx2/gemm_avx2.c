/* gemm_avx2.c - matrix, window and integer kernels of the AVX2 tier: gemm.inc on 8 lanes, micro
 * tiles of 6 x 16 (12 sums, 2 loads of B and 1 of A fill the 16 registers). */
#include "kernel/avx2/simd.h"

#include "kernel/gemm.h"

static inline vi vi_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

/* Every eighth of 8 * VF_LANES elements. */
static inline vf vf_load_eighth(const float *p)
{
    return _mm256_i32gather_ps(p, _mm256_setr_epi32(0, 8, 16, 24, 32, 40, 48, 56), 4);
}

/* Sums of four words stay in 16 bits: 16 products of at most 15 * 128 there, of bytes that are
 * no less than -128. */
#define NIBBLE_WORDS 4
static inline vi vi_nibbles_begin(vi p)
{
    return vi_zero();
}
static inline vi vi_nibbles(vi part, vi low, vi high, vi even, vi odd)
{
    vi pairs = _mm256_add_epi16(_mm256_maddubs_epi16(low, even), _mm256_maddubs_epi16(high, odd));
    return _mm256_add_epi16(part, pairs);
}
static inline vi vi_nibbles_end(vi p, vi part)
{
    return vi_add(p, _mm256_madd_epi16(part, _mm256_set1_epi16(1)));
}

/* The low byte of the first n lanes. */
static inline void store_bytes(uint8_t *p, int64_t n, vi v)
{
    const __m256i low = _mm256_set1_epi64x(0x0c080400);
    __m256i picked = _mm256_shuffle_epi8(v, low);
    __m128i joined = _mm_unpacklo_epi32(_mm256_castsi256_si128(picked),
                                        _mm256_extracti128_si256(picked, 1));
    if (n == VF_LANES) {
        _mm_storel_epi64((__m128i *)(void *)p, joined);
        return;
    }
    uint8_t bytes[16];
    _mm_storeu_si128((__m128i *)(void *)bytes, joined);
    for (int64_t i = 0; i < n; i++)
        p[i] = bytes[i];
}

static void stride_copy(int64_t n, const float *in, int64_t stride, float *out)
{
    int64_t i = 0;
    if (stride == 2)
        for (; n - i > VF_LANES; i += VF_LANES) {
            vf a = vf_load(in + 2 * i), b = vf_load(in + 2 * i + VF_LANES);
            vf even = _mm256_shuffle_ps(a, b, 0x88);
            vf_store(out + i, _mm256_castpd_ps(
                                  _mm256_permute4x64_pd(_mm256_castps_pd(even), 0xd8)));
        }
    for (; i < n; i++)
        out[i] = in[i * stride];
}

#define GEMM_ROWS 6
#include "kernel/gemm.inc"

void ort_gemm_plug_avx2(ort_gemm_kernels *table)
{
    plug_table(table);
    table->nbits4_fixed_is_fast = true;
}
