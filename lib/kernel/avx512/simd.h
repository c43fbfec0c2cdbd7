/* simd.h - the inline SIMD names over which the shared kernel bodies (*.inc) are written: AVX-512
 * (F, BW, DQ, VL). The names and their meaning are those of avx2/simd.h.
 */
#ifndef ORT_KERNEL_SIMD_AVX512_H
#define ORT_KERNEL_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VL 16
#define SIMD static inline __attribute__((always_inline, unused))

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

SIMD vm simd_tail_mask(size_t n) { return (vm)((1u << n) - 1u); }

SIMD vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
SIMD void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
SIMD vf vf_loadn(const float *p, size_t n) { return _mm512_maskz_loadu_ps(simd_tail_mask(n), p); }
SIMD void vf_storen(float *p, vf v, size_t n) { _mm512_mask_storeu_ps(p, simd_tail_mask(n), v); }
SIMD vf vf_set1(float x) { return _mm512_set1_ps(x); }
SIMD vf vf_zero(void) { return _mm512_setzero_ps(); }
SIMD vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
SIMD vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
SIMD vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
SIMD vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
SIMD vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
SIMD vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
SIMD vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
SIMD vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
SIMD vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
SIMD vf vf_floor(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
SIMD vf vf_ceil(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
SIMD vf vf_rint(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SIMD vi vf_bits(vf a) { return _mm512_castps_si512(a); }
SIMD vf vi_float_bits(vi a) { return _mm512_castsi512_ps(a); }
SIMD vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
SIMD vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
SIMD vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
SIMD vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
SIMD vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
SIMD vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
#define vi_shl(a, k) _mm512_slli_epi32(a, k)
#define vi_shr(a, k) _mm512_srli_epi32(a, k)
#define vi_sar(a, k) _mm512_srai_epi32(a, k)
SIMD vi vi_min(vi a, vi b) { return _mm512_min_epi32(a, b); }
SIMD vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
SIMD vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
SIMD vi vi_loadn(const int32_t *p, size_t n)
{
    return _mm512_maskz_loadu_epi32(simd_tail_mask(n), p);
}
SIMD void vi_store(int32_t *p, vi v) { _mm512_storeu_si512(p, v); }
SIMD vi vf_to_int(vf a) { return _mm512_cvtps_epi32(a); }
SIMD vf vi_to_float(vi a) { return _mm512_cvtepi32_ps(a); }

SIMD vf vf_abs(vf a) { return _mm512_abs_ps(a); }
SIMD vf vf_neg(vf a) { return _mm512_xor_ps(_mm512_set1_ps(-0.0f), a); }
SIMD vf vf_with_sign(vf magnitude, vf s)
{
    return _mm512_or_ps(magnitude, _mm512_and_ps(_mm512_set1_ps(-0.0f), s));
}
SIMD vf vf_xor_bits(vf a, vi bits) { return _mm512_xor_ps(a, _mm512_castsi512_ps(bits)); }

SIMD vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
SIMD vm vf_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
SIMD vm vf_gt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
SIMD vm vf_ge(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
SIMD vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
SIMD vm vf_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
SIMD vm vi_nonzero(vi a) { return _mm512_test_epi32_mask(a, a); }
SIMD vm vm_and(vm a, vm b) { return a & b; }
SIMD vm vm_or(vm a, vm b) { return a | b; }
SIMD int vm_any(vm m) { return m != 0; }
SIMD vf vf_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
SIMD vf vf_keep(vm m, vf a) { return _mm512_maskz_mov_ps(m, a); }

SIMD vf vf_scale2(vf x, vf k) { return _mm512_scalef_ps(x, k); }
SIMD vf vf_pow2_normal(vf k)
{
    vi n = _mm512_add_epi32(_mm512_cvtps_epi32(k), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(n, 23));
}

SIMD float vf_sum(vf v) { return _mm512_reduce_add_ps(v); }
SIMD void vf_spill(vf v, float out[VL]) { _mm512_storeu_ps(out, v); }

SIMD vf vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
SIMD void vf_store_f16(uint16_t *p, vf v)
{
    _mm256_storeu_si256((__m256i *)p,
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
SIMD vf vf_load_bf16(const uint16_t *p)
{
    vi w = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
}
SIMD void vi_store_u16(uint16_t *p, vi v)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(v));
}
SIMD vi vi_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
SIMD vi vi_load_s8(const int8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}
SIMD void vi_store_byte(void *p, vi v)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
}
SIMD void vm_store_bytes(uint8_t *p, vm m)
{
    _mm_storeu_si128((__m128i *)p, _mm_maskz_set1_epi8(m, 1));
}

#endif
