/* gemm_avx512.c - matrix, window and integer kernels of the AVX-512 tier: gemm.inc on 16 lanes,
 * micro tiles of 14 x 32 (28 sums, 2 loads of B and 1 of A in the 32 registers). */
#include "kernel/avx512/simd.h"

#include "kernel/gemm.h"

static inline vi vi_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
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
    vi pairs = _mm512_add_epi16(_mm512_maddubs_epi16(low, even), _mm512_maddubs_epi16(high, odd));
    return _mm512_add_epi16(part, pairs);
}
static inline vi vi_nibbles_end(vi p, vi part)
{
    return vi_add(p, _mm512_madd_epi16(part, _mm512_set1_epi16(1)));
}

/* The low byte of the first n lanes. */
static inline void store_bytes(uint8_t *p, int64_t n, vi v)
{
    __m128i bytes = _mm512_cvtepi32_epi8(v);
    if (n == VF_LANES)
        _mm_storeu_si128((__m128i *)(void *)p, bytes);
    else
        _mm_mask_storeu_epi8(p, v_mask_n(n), bytes);
}

static void stride_copy(int64_t n, const float *in, int64_t stride, float *out)
{
    int64_t i = 0;
    if (stride == 2) {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                               28, 30);
        for (; n - i > VF_LANES; i += VF_LANES)
            vf_store(out + i, _mm512_permutex2var_ps(vf_load(in + 2 * i), even,
                                                     vf_load(in + 2 * i + VF_LANES)));
        int64_t left = n - i, need = 2 * left - 1;
        if (left > 0) {
            vf a = vf_load_n(in + 2 * i, need < VF_LANES ? need : VF_LANES);
            vf b = need > VF_LANES ? vf_load_n(in + 2 * i + VF_LANES, need - VF_LANES) : a;
            vf_store_n(out + i, left, _mm512_permutex2var_ps(a, even, b));
        }
        return;
    }
    for (; i < n; i++)
        out[i] = in[i * stride];
}

#define GEMM_ROWS 14
#include "kernel/gemm.inc"

void ort_gemm_plug_avx512(ort_gemm_kernels *table)
{
    plug_table(table);
    table->nbits4_fixed_is_fast = true;
}
