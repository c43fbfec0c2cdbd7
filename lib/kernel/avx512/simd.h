/* simd.h - the inline SIMD names of the AVX-512 tier (F, BW, DQ, VL), used by the shared bodies
 * (kernel/ *.inc).
 *
 *   vf, vi, vm      float vector, 32-bit integer vector, mask of VF_LANES lanes
 *   *_n             the first n lanes only (0 <= n <= VF_LANES): nothing else is read or written,
 *                   lanes beyond n load as zero
 *   vf_max/vf_min   (a, b): b where either is NaN
 */
#ifndef ORT_KERNEL_AVX512_SIMD_H
#define ORT_KERNEL_AVX512_SIMD_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VF_LANES 16
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline __mmask16 v_mask_n(int64_t n) { return (__mmask16)((1u << n) - 1u); }

static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
static inline vf vf_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(v_mask_n(n), p);
}
static inline void vf_store_n(float *p, int64_t n, vf a)
{
    _mm512_mask_storeu_ps(p, v_mask_n(n), a);
}
static inline vf vf_zero(void) { return _mm512_setzero_ps(); }
static inline vf vf_set1(float a) { return _mm512_set1_ps(a); }
static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }   /* a * b + c */
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a * b */
static inline vf vf_fms(vf a, vf b, vf c) { return _mm512_fmsub_ps(a, b, c); }   /* a * b - c */
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_and(vf a, vf b) { return _mm512_and_ps(a, b); }
static inline vf vf_or(vf a, vf b) { return _mm512_or_ps(a, b); }
static inline vf vf_xor(vf a, vf b) { return _mm512_xor_ps(a, b); }
static inline vf vf_neg(vf a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
static inline vf vf_abs(vf a) { return _mm512_abs_ps(a); }
static inline vf vf_round(vf a) /* to nearest even */
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vf vf_floor(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
static inline vf vf_ceil(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
static inline vf vf_trunc(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
static inline vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm vf_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vm vf_gt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
static inline vm vf_ge(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
static inline vm vf_not_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLE_UQ); }
static inline vm vf_isnan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
static inline vm vm_and(vm a, vm b) { return (vm)(a & b); }
static inline vm vm_or(vm a, vm b) { return (vm)(a | b); }
static inline vm vm_not(vm a) { return (vm)~a; }
static inline int vm_any(vm a) { return a != 0; }
/* The numbers from `first` on of the lanes that are set, to `to`, which has room for all; how many.
 */
static inline int64_t vm_list(vm a, int64_t first, uint16_t *to)
{
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i all = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)first));
    _mm256_storeu_si256((__m256i *)(void *)to,
                        _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(a, all)));
    return __builtin_popcount(a);
}
static inline vf vf_select(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
/* m ? a & b : a */
static inline vf vf_and_where(vm m, vf a, vf b) { return _mm512_mask_and_ps(a, m, a, b); }
static inline float vf_sum(vf a) { return _mm512_reduce_add_ps(a); }
/* out[i] = scale * the sum of the i-th vector: half the shuffles of four vf_sum. */
static inline void vf_store_sums4(float *out, vf a, vf b, vf c, vf d, float scale)
{
    vf ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    vf cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    __m512d x = _mm512_castps_pd(ab), y = _mm512_castps_pd(cd);
    vf sums = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                            _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(sums),
                                _mm256_castpd_ps(_mm512_extractf64x4_pd(
                                    _mm512_castps_pd(sums), 1)));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    _mm_storeu_ps(out, _mm_mul_ps(four, _mm_set1_ps(scale)));
}
static inline float vf_hmax(vf a) { return _mm512_reduce_max_ps(a); }
static inline float vf_hmin(vf a) { return _mm512_reduce_min_ps(a); }

static inline vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline void vi_store(int32_t *p, vi a) { _mm512_storeu_si512(p, a); }
static inline vi vi_load_n(const int32_t *p, int64_t n)
{
    return _mm512_maskz_loadu_epi32(v_mask_n(n), p);
}
static inline void vi_store_n(int32_t *p, int64_t n, vi a)
{
    _mm512_mask_storeu_epi32(p, v_mask_n(n), a);
}
/* Lanes of a and b by turns. */
static inline void vi_store_zip(int32_t *p, vi a, vi b)
{
    const vi low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const vi high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    vi_store(p, _mm512_permutex2var_epi32(a, low, b));
    vi_store(p + VF_LANES, _mm512_permutex2var_epi32(a, high, b));
}
static inline vi vi_zero(void) { return _mm512_setzero_si512(); }
static inline vi vi_set1(int32_t a) { return _mm512_set1_epi32(a); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_mul(vi a, vi b) { return _mm512_mullo_epi32(a, b); }
static inline vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
static inline vi vi_min(vi a, vi b) { return _mm512_min_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
#define vi_shl(a, count) _mm512_slli_epi32(a, count)
static inline vf vf_permute(vf a, vi index) { return _mm512_permutexvar_ps(index, a); }
/* VF_LANES rows of as many elements, transposed. */
static inline void vf_transpose(const float *from, int64_t step, float *to, int64_t to_step)
{
    __m512 t[16], u[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        __m512 a = vf_load(from + i * step), b = vf_load(from + (i + 1) * step);
        t[i] = _mm512_unpacklo_ps(a, b);
        t[i + 1] = _mm512_unpackhi_ps(a, b);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        u[i] = (__m512)_mm512_unpacklo_pd((__m512d)t[i], (__m512d)t[i + 2]);
        u[i + 1] = (__m512)_mm512_unpackhi_pd((__m512d)t[i], (__m512d)t[i + 2]);
        u[i + 2] = (__m512)_mm512_unpacklo_pd((__m512d)t[i + 1], (__m512d)t[i + 3]);
        u[i + 3] = (__m512)_mm512_unpackhi_pd((__m512d)t[i + 1], (__m512d)t[i + 3]);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) { /* u[4 g + c]: rows 4 g.. of the columns 4 l + c, l = 0..3 */
        __m512 a = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x88);
        __m512 b = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x88);
        __m512 d = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xdd);
        __m512 e = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xdd);
        vf_store(to + c * to_step, _mm512_shuffle_f32x4(a, b, 0x88));
        vf_store(to + (4 + c) * to_step, _mm512_shuffle_f32x4(d, e, 0x88));
        vf_store(to + (8 + c) * to_step, _mm512_shuffle_f32x4(a, b, 0xdd));
        vf_store(to + (12 + c) * to_step, _mm512_shuffle_f32x4(d, e, 0xdd));
    }
}
#define vi_shr(a, count) _mm512_srli_epi32(a, count) /* logical */
#define vi_sra(a, count) _mm512_srai_epi32(a, count) /* arithmetic */
static inline vi vi_from_vf(vf a) { return _mm512_cvtps_epi32(a); } /* nearest even */
static inline vf vf_from_vi(vi a) { return _mm512_cvtepi32_ps(a); }
static inline vi vi_bits(vf a) { return _mm512_castps_si512(a); }
static inline vf vf_bits(vi a) { return _mm512_castsi512_ps(a); }
static inline vf vf_from_f16(const uint16_t *p) /* VF_LANES of them */
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline void vf_to_f16(uint16_t *p, vf a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}
/* Sum of products of neighbouring int16 pairs, added to c; at once: gcc would form the products of
 * all sums first and spill them. */
static inline vi vi_dot_i16(vi a, vi b, vi c)
{
    c = _mm512_add_epi32(_mm512_madd_epi16(a, b), c);
    __asm__("" : "+v"(c));
    return c;
}

/* VF_LANES pairs of int8 as int16. */
static inline vi vi_from_pairs_s8(const uint16_t *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

#define VD_LANES 8
typedef __m512d vd;
static inline __mmask8 vd_mask_n(int64_t n) { return (__mmask8)((1u << n) - 1u); }
static inline vd vd_load(const double *p) { return _mm512_loadu_pd(p); }
static inline void vd_store(double *p, vd a) { _mm512_storeu_pd(p, a); }
static inline vd vd_load_n(const double *p, int64_t n)
{
    return _mm512_maskz_loadu_pd(vd_mask_n(n), p);
}
static inline void vd_store_n(double *p, int64_t n, vd a)
{
    _mm512_mask_storeu_pd(p, vd_mask_n(n), a);
}
static inline vd vd_zero(void) { return _mm512_setzero_pd(); }
static inline vd vd_set1(double a) { return _mm512_set1_pd(a); }
static inline vd vd_add(vd a, vd b) { return _mm512_add_pd(a, b); }
static inline vd vd_mul(vd a, vd b) { return _mm512_mul_pd(a, b); }
static inline vd vd_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
/* table[index[j]], of a table of 32. */
static inline vd vd_look_up(const double *table, const uint32_t *index)
{
    __m512i at = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)index));
    __m512d low = _mm512_permutex2var_pd(vd_load(table), at, vd_load(table + 8));
    __m512d high = _mm512_permutex2var_pd(vd_load(table + 16), at, vd_load(table + 24));
    return _mm512_mask_blend_pd(_mm512_test_epi64_mask(at, _mm512_set1_epi64(16)), low, high);
}

/* ---- names of the math kernels (vmath_*.inc) */

#define SIMD static inline __attribute__((always_inline, unused))

/* A magnitude (>= 0) with the sign of s. */
SIMD vf vf_with_sign(vf magnitude, vf s)
{
    return _mm512_or_ps(magnitude, _mm512_and_ps(_mm512_set1_ps(-0.0f), s));
}
SIMD vf vf_xor_bits(vf a, vi bits) { return _mm512_xor_ps(a, _mm512_castsi512_ps(bits)); }
SIMD vm vi_nonzero(vi a) { return _mm512_test_epi32_mask(a, a); }
SIMD vf vf_keep(vm m, vf a) { return _mm512_maskz_mov_ps(m, a); }           /* m ? a : 0 */
SIMD vf vf_drop(vm m, vf a) { return _mm512_maskz_mov_ps((vm)~m, a); } /* m ? 0 : a */
/* Either is NaN. */
SIMD vm vf_unordered(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
/* The first n elements, `other` in the lanes beyond. */
SIMD vf vf_load_n_or(const float *p, int64_t n, vf other)
{
    return _mm512_mask_loadu_ps(other, (vm)((1u << n) - 1), p);
}
/* n / d within 0.6 ULP where |d| is in 1e-37..8e37 and the quotient is normal; a NaN stays one. An
 * estimate of 14 bits and one correction: the division proper is 16 cycles. */
SIMD vf vf_over(vf n, vf d)
{
    vf r = _mm512_rcp14_ps(d), q = vf_mul(n, r);
    return vf_fma(r, vf_fnma(q, d, n), q);
}
/* n / d where d is in 1..8e37, for any n: within 1.1 ULP where the quotient is normal. */
SIMD vf vf_part(vf n, vf d) { return vf_mul(n, vf_over(vf_set1(1.0f), d)); }
/* x * 2^k for integral |k| <= 252; results beyond the range become 0 or infinity. */
SIMD vf vf_scale2(vf x, vf k) { return _mm512_scalef_ps(x, k); }
SIMD vf vf_from_bf16(const uint16_t *p)
{
    vi w = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
}
/* Lanes hold 0..65535. */
SIMD void vi_to_u16(uint16_t *p, vi v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(v));
}
SIMD vi vi_from_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SIMD vi vi_from_s8(const int8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* The low byte of each lane. */
SIMD void vi_to_byte(void *p, vi v) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v)); }
/* Four vectors, saturated to codes. */
SIMD void vi_store_codes(uint8_t *p, const vi *v, bool is_signed)
{
    vi low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
    vi both = is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    vi order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, both));
}
/* VF_LANES bytes of 0 or 1. */
SIMD void vm_to_bytes(uint8_t *p, vm m)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm_maskz_set1_epi8(m, 1));
}

#endif
