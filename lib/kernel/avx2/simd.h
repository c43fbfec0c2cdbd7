/* simd.h - the inline SIMD names over which the shared kernel bodies (*.inc) are written: AVX2.
 *
 * vf: a vector of VL floats, vi: of VL int32, vm: a lane mask. Every tier that compiles the bodies has a
 * file of this name with the same names. All are static: nothing here is shared between objects.
 * Partial loads (n in 1..VL) give zeros in the lanes past n and read nothing there.
 */
#ifndef ORT_KERNEL_SIMD_AVX2_H
#define ORT_KERNEL_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VL 8
#define SIMD static inline __attribute__((always_inline, unused))

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;

SIMD vi simd_tail_mask(size_t n)
{
    static const int32_t table[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(table + 8 - n));
}

SIMD vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
SIMD void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
SIMD vf vf_loadn(const float *p, size_t n) { return _mm256_maskload_ps(p, simd_tail_mask(n)); }
SIMD void vf_storen(float *p, vf v, size_t n) { _mm256_maskstore_ps(p, simd_tail_mask(n), v); }
SIMD vf vf_set1(float x) { return _mm256_set1_ps(x); }
SIMD vf vf_zero(void) { return _mm256_setzero_ps(); }
SIMD vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
SIMD vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
SIMD vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
SIMD vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
/* a * b + c, c - a * b: one rounding */
SIMD vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
SIMD vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
/* b when either is NaN */
SIMD vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
SIMD vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
SIMD vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
SIMD vf vf_floor(vf a) { return _mm256_floor_ps(a); }
SIMD vf vf_ceil(vf a) { return _mm256_ceil_ps(a); }
SIMD vf vf_rint(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

SIMD vi vf_bits(vf a) { return _mm256_castps_si256(a); }
SIMD vf vi_float_bits(vi a) { return _mm256_castsi256_ps(a); }
SIMD vi vi_set1(int32_t x) { return _mm256_set1_epi32(x); }
SIMD vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
SIMD vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
SIMD vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
SIMD vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
SIMD vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
#define vi_shl(a, k) _mm256_slli_epi32(a, k)
#define vi_shr(a, k) _mm256_srli_epi32(a, k)
#define vi_sar(a, k) _mm256_srai_epi32(a, k)
SIMD vi vi_min(vi a, vi b) { return _mm256_min_epi32(a, b); }
SIMD vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
SIMD vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
SIMD vi vi_loadn(const int32_t *p, size_t n) { return _mm256_maskload_epi32(p, simd_tail_mask(n)); }
SIMD void vi_store(int32_t *p, vi v) { _mm256_storeu_si256((__m256i *)p, v); }
/* nearest, half to even; INT32_MIN when out of range */
SIMD vi vf_to_int(vf a) { return _mm256_cvtps_epi32(a); }
SIMD vf vi_to_float(vi a) { return _mm256_cvtepi32_ps(a); }

SIMD vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
SIMD vf vf_neg(vf a) { return _mm256_xor_ps(_mm256_set1_ps(-0.0f), a); }
/* magnitude (>= 0) with the sign of s */
SIMD vf vf_with_sign(vf magnitude, vf s)
{
    return _mm256_or_ps(magnitude, _mm256_and_ps(_mm256_set1_ps(-0.0f), s));
}
SIMD vf vf_xor_bits(vf a, vi bits) { return _mm256_xor_ps(a, _mm256_castsi256_ps(bits)); }

SIMD vm vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
SIMD vm vf_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
SIMD vm vf_gt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
SIMD vm vf_ge(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
SIMD vm vf_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
SIMD vm vf_nan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
SIMD vm vi_nonzero(vi a)
{
    return _mm256_castsi256_ps(_mm256_xor_si256(_mm256_cmpeq_epi32(a, _mm256_setzero_si256()),
                                                _mm256_set1_epi32(-1)));
}
SIMD vm vm_and(vm a, vm b) { return _mm256_and_ps(a, b); }
SIMD vm vm_or(vm a, vm b) { return _mm256_or_ps(a, b); }
SIMD int vm_any(vm m) { return _mm256_movemask_ps(m) != 0; }
/* m ? a : b, m ? a : 0 */
SIMD vf vf_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
SIMD vf vf_keep(vm m, vf a) { return _mm256_and_ps(m, a); }

/* x * 2^k for integral k; k beyond the exponent range saturates to 0 and infinity. */
SIMD vf vf_scale2(vf x, vf k)
{
    vi n = _mm256_cvtps_epi32(k), half = _mm256_srai_epi32(n, 1);
    vi rest = _mm256_sub_epi32(n, half), bias = _mm256_set1_epi32(127);
    vf a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    vf b = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(x, a), b);
}
/* The same where 2^k is a normal number (-126..127). */
SIMD vf vf_pow2_normal(vf k)
{
    vi n = _mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(n, 23));
}

SIMD float vf_sum(vf v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

/* Lane by lane into memory, for the reductions that are not worth a shuffle network. */
SIMD void vf_spill(vf v, float out[VL]) { _mm256_storeu_ps(out, v); }

SIMD vf vf_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
SIMD void vf_store_f16(uint16_t *p, vf v)
{
    _mm_storeu_si128((__m128i *)p,
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
SIMD vf vf_load_bf16(const uint16_t *p)
{
    vi w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(w, 16));
}
/* Low 16 bits of each lane (lanes hold 0..65535). */
SIMD void vi_store_u16(uint16_t *p, vi v)
{
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storeu_si128((__m128i *)p, packed);
}
SIMD vi vi_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
SIMD vi vi_load_s8(const int8_t *p)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
/* Low byte of each lane (lanes hold -128..255). */
SIMD void vi_store_byte(void *p, vi v)
{
    __m256i low = _mm256_shuffle_epi8(
        v, _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8,
                            12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    _mm_storel_epi64((__m128i *)p, both);
}
/* VL bytes of 0 or 1. */
SIMD void vm_store_bytes(uint8_t *p, vm m)
{
    vi_store_byte(p, _mm256_srli_epi32(_mm256_castps_si256(m), 31));
}

#endif
