/* simd.h - the inline SIMD names of the AVX2 tier, used by the shared bodies (kernel/ *.inc).
 *
 *   vf, vi, vm      float vector, 32-bit integer vector, mask of VF_LANES lanes
 *   *_n             the first n lanes only (0 <= n <= VF_LANES): nothing else is read or written,
 *                   lanes beyond n load as zero
 *   vf_max/vf_min   (a, b): b where either is NaN
 *   vm              all-ones lanes where true
 */
#ifndef ORT_KERNEL_AVX2_SIMD_H
#define ORT_KERNEL_AVX2_SIMD_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VF_LANES 8
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;

static const int32_t v_mask_source[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
static inline __m256i v_mask_n(int64_t n)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)(v_mask_source + 8 - n));
}

static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
static inline vf vf_load_n(const float *p, int64_t n) { return _mm256_maskload_ps(p, v_mask_n(n)); }
/* The first words of a; not by a mask, which AMD's processors take 18 cycles for, even where it is
 * all of them. */
static inline void v_store_words(void *p, int64_t words, __m256i a)
{
    __m128i v = _mm256_castsi256_si128(a);
    char *to = p;
    if (words == 8) {
        _mm256_storeu_si256((__m256i *)p, a);
        return;
    }
    if (words & 4) {
        _mm_storeu_si128((__m128i *)(void *)to, v);
        v = _mm256_extracti128_si256(a, 1);
        to += 16;
    }
    if (words & 2) {
        _mm_storel_epi64((__m128i *)(void *)to, v);
        v = _mm_unpackhi_epi64(v, v);
        to += 8;
    }
    if (words & 1) {
        const int32_t word = _mm_cvtsi128_si32(v);
        memcpy(to, &word, sizeof word);
    }
}
static inline void vf_store_n(float *p, int64_t n, vf a)
{
    v_store_words(p, n, _mm256_castps_si256(a));
}
static inline vf vf_zero(void) { return _mm256_setzero_ps(); }
static inline vf vf_set1(float a) { return _mm256_set1_ps(a); }
static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }   /* a * b + c */
/* The same in c's register: where twelve sums, two vectors and a number take fifteen, gcc would
 * write over the others and send one of the sums to memory in each round. What is added to it next
 * waits for it there, which is 7 % of a product's time on Zen 3. */
static inline vf vf_fma_in(vf a, vf b, vf c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
}
#define VF_FMA_IN(a, b, c) vf_fma_in(a, b, c)
/* p[index * times + at] in all lanes, of constants times (1 or 2) and at: one instruction, where
 * gcc would spend others on addresses, which count when another thread shares the processor. */
#define VF_SET1_AT(p, index, times, at)                                                            \
    ({                                                                                             \
        vf v_;                                                                                     \
        __asm__("vbroadcastss %c3(%1,%2,%c4), %0"                                                  \
                : "=x"(v_)                                                                         \
                : "r"(p), "r"(index), "i"(4 * (at)), "i"(4 * (times)),                             \
                  "m"(*(const float(*)[1 << 16])(p)));                                             \
        v_;                                                                                        \
    })
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); } /* c - a * b */
static inline vf vf_fms(vf a, vf b, vf c) { return _mm256_fmsub_ps(a, b, c); }   /* a * b - c */
static inline vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf vf_neg(vf a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
static inline vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline vf vf_and(vf a, vf b) { return _mm256_and_ps(a, b); }
static inline vf vf_or(vf a, vf b) { return _mm256_or_ps(a, b); }
static inline vf vf_xor(vf a, vf b) { return _mm256_xor_ps(a, b); }
static inline vf vf_round(vf a) /* to nearest even */
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vf vf_floor(vf a) { return _mm256_floor_ps(a); }
static inline vf vf_ceil(vf a) { return _mm256_ceil_ps(a); }
static inline vf vf_trunc(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
static inline vm vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline vm vf_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
static inline vm vf_gt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
static inline vm vf_ge(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
static inline vm vf_not_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_NLE_UQ); }
static inline vm vf_isnan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
static inline vm vm_and(vm a, vm b) { return _mm256_and_ps(a, b); }
static inline vm vm_or(vm a, vm b) { return _mm256_or_ps(a, b); }
static inline vm vm_not(vm a)
{
    return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1)));
}
static inline int vm_any(vm a) { return _mm256_movemask_ps(a) != 0; }
/* The numbers from `first` on of the lanes that are set, to `to`, which has room for all; how many.
 */
static inline int64_t vm_list(vm a, int64_t first, uint16_t *to)
{
    const unsigned set = (unsigned)_mm256_movemask_ps(a);
    int64_t n = 0;
    for (unsigned i = 0; i < VF_LANES; i++) {
        to[n] = (uint16_t)(first + i);
        n += set >> i & 1;
    }
    return n;
}
static inline vf vf_select(vm m, vf yes, vf no) { return _mm256_blendv_ps(no, yes, m); }
/* m ? a & b : a */
static inline vf vf_and_where(vm m, vf a, vf b)
{
    return _mm256_andnot_ps(_mm256_andnot_ps(b, m), a);
}
static inline float vf_sum(vf a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
/* out[i] = scale * the sum of the i-th vector: half the shuffles of four vf_sum. */
static inline void vf_store_sums4(float *out, vf a, vf b, vf c, vf d, float scale)
{
    vf sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
    _mm_storeu_ps(out, _mm_mul_ps(four, _mm_set1_ps(scale)));
}
static inline float vf_hmax(vf a)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
static inline float vf_hmin(vf a)
{
    __m128 s = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_min_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_min_ss(s, _mm_movehdup_ps(s)));
}

static inline vi vi_load(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline void vi_store(int32_t *p, vi a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, a);
}
static inline vi vi_load_n(const int32_t *p, int64_t n)
{
    return _mm256_maskload_epi32(p, v_mask_n(n));
}
static inline void vi_store_n(int32_t *p, int64_t n, vi a)
{
    v_store_words(p, n, a);
}
/* Lanes of a and b by turns. */
static inline void vi_store_zip(int32_t *p, vi a, vi b)
{
    const vi low = _mm256_unpacklo_epi32(a, b), high = _mm256_unpackhi_epi32(a, b);
    vi_store(p, _mm256_permute2x128_si256(low, high, 0x20));
    vi_store(p + VF_LANES, _mm256_permute2x128_si256(low, high, 0x31));
}
static inline vi vi_zero(void) { return _mm256_setzero_si256(); }
static inline vi vi_set1(int32_t a) { return _mm256_set1_epi32(a); }
static inline vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vi vi_mul(vi a, vi b) { return _mm256_mullo_epi32(a, b); }
static inline vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
static inline vi vi_min(vi a, vi b) { return _mm256_min_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
#define vi_shl(a, count) _mm256_slli_epi32(a, count)
static inline vf vf_permute(vf a, vi index) { return _mm256_permutevar8x32_ps(a, index); }
/* VF_LANES rows of as many elements, transposed. */
static inline void vf_transpose(const float *from, int64_t step, float *to, int64_t to_step)
{
    __m256 t[8], u[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        __m256 a = vf_load(from + i * step), b = vf_load(from + (i + 1) * step);
        t[i] = _mm256_unpacklo_ps(a, b);
        t[i + 1] = _mm256_unpackhi_ps(a, b);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        u[i] = (__m256)_mm256_unpacklo_pd((__m256d)t[i], (__m256d)t[i + 2]);
        u[i + 1] = (__m256)_mm256_unpackhi_pd((__m256d)t[i], (__m256d)t[i + 2]);
        u[i + 2] = (__m256)_mm256_unpacklo_pd((__m256d)t[i + 1], (__m256d)t[i + 3]);
        u[i + 3] = (__m256)_mm256_unpackhi_pd((__m256d)t[i + 1], (__m256d)t[i + 3]);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        vf_store(to + c * to_step, _mm256_permute2f128_ps(u[c], u[4 + c], 0x20));
        vf_store(to + (4 + c) * to_step, _mm256_permute2f128_ps(u[c], u[4 + c], 0x31));
    }
}
#define vi_shr(a, count) _mm256_srli_epi32(a, count) /* logical */
#define vi_sra(a, count) _mm256_srai_epi32(a, count) /* arithmetic */
static inline vi vi_from_vf(vf a) { return _mm256_cvtps_epi32(a); } /* nearest even */
static inline vf vf_from_vi(vi a) { return _mm256_cvtepi32_ps(a); }
static inline vi vi_bits(vf a) { return _mm256_castps_si256(a); }
static inline vf vf_bits(vi a) { return _mm256_castsi256_ps(a); }
static inline vf vf_from_f16(const uint16_t *p) /* VF_LANES of them */
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline void vf_to_f16(uint16_t *p, vf a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}
/* VF_SET1_AT of int32. */
#define VI_SET1_AT(p, index, times, at)                                                            \
    _mm256_castps_si256(VF_SET1_AT((const float *)(const void *)(p), index, times, at))
/* Sum of products of neighbouring int16 pairs, added to c; at once and in place: gcc would form the
 * products of all sums first and spill them, or copy each sum. */
static inline vi vi_dot_i16(vi a, vi b, vi c)
{
    __asm__("vpaddd %1, %0, %0" : "+x"(c) : "x"(_mm256_madd_epi16(a, b)));
    return c;
}

/* VF_LANES pairs of int8 as int16. */
static inline vi vi_from_pairs_s8(const uint16_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}

#define VD_LANES 4
typedef __m256d vd;
static inline __m256i vd_mask_n(int64_t n)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)(v_mask_source + 8 - 2 * n));
}
static inline vd vd_load(const double *p) { return _mm256_loadu_pd(p); }
static inline void vd_store(double *p, vd a) { _mm256_storeu_pd(p, a); }
static inline vd vd_load_n(const double *p, int64_t n)
{
    return _mm256_maskload_pd(p, vd_mask_n(n));
}
static inline void vd_store_n(double *p, int64_t n, vd a)
{
    v_store_words(p, 2 * n, _mm256_castpd_si256(a));
}
static inline vd vd_zero(void) { return _mm256_setzero_pd(); }
static inline vd vd_set1(double a) { return _mm256_set1_pd(a); }
static inline vd vd_add(vd a, vd b) { return _mm256_add_pd(a, b); }
static inline vd vd_mul(vd a, vd b) { return _mm256_mul_pd(a, b); }
static inline vd vd_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
/* table[index[j]], of a table of 32; not by a gather, which costs more on many machines. */
static inline vd vd_look_up(const double *table, const uint32_t *index)
{
    return _mm256_setr_pd(table[index[0]], table[index[1]], table[index[2]], table[index[3]]);
}

/* ---- names of the math kernels (vmath_*.inc) */

#define SIMD static inline __attribute__((always_inline, unused))

/* A magnitude (>= 0) with the sign of s. */
SIMD vf vf_with_sign(vf magnitude, vf s)
{
    return _mm256_or_ps(magnitude, _mm256_and_ps(_mm256_set1_ps(-0.0f), s));
}
SIMD vf vf_xor_bits(vf a, vi bits) { return _mm256_xor_ps(a, _mm256_castsi256_ps(bits)); }
SIMD vm vi_nonzero(vi a)
{
    return vm_not(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, _mm256_setzero_si256())));
}
SIMD vf vf_keep(vm m, vf a) { return _mm256_and_ps(m, a); }    /* m ? a : 0 */
SIMD vf vf_drop(vm m, vf a) { return _mm256_andnot_ps(m, a); } /* m ? 0 : a */
/* Either is NaN. */
SIMD vm vf_unordered(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
/* The first n elements, `other` in the lanes beyond. */
SIMD vf vf_load_n_or(const float *p, int64_t n, vf other)
{
    __m256i m = v_mask_n(n);
    return _mm256_blendv_ps(other, _mm256_maskload_ps(p, m), _mm256_castsi256_ps(m));
}
/* n / d within 0.6 ULP where |d| is in 1e-37..8e37 and the quotient is normal. */
SIMD vf vf_over(vf n, vf d) { return vf_div(n, d); }
/* n / d where d is in 1..8e37: what the division gives for any n. */
SIMD vf vf_part(vf n, vf d) { return vf_div(n, d); }
/* x * 2^k for integral |k| <= 252; results beyond the range become 0 or infinity. */
SIMD vf vf_scale2(vf x, vf k)
{
    vi n = _mm256_cvtps_epi32(k), half = _mm256_srai_epi32(n, 1);
    vi rest = _mm256_sub_epi32(n, half), bias = _mm256_set1_epi32(127);
    vf a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    vf b = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(x, a), b);
}
SIMD vf vf_from_bf16(const uint16_t *p)
{
    vi w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(w, 16));
}
/* Lanes hold 0..65535. */
SIMD void vi_to_u16(uint16_t *p, vi v)
{
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storeu_si128((__m128i *)(void *)p, packed);
}
SIMD vi vi_from_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
SIMD vi vi_from_s8(const int8_t *p)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
/* The low byte of each lane. */
SIMD void vi_to_byte(void *p, vi v)
{
    __m256i pick = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                    0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i low = _mm256_shuffle_epi8(v, pick);
    __m128i both =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    _mm_storel_epi64((__m128i *)p, both);
}
/* Four vectors, saturated to codes. */
SIMD void vi_store_codes(uint8_t *p, const vi *v, bool is_signed)
{
    vi low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
    vi both = is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    vi order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    both = _mm256_permutevar8x32_epi32(both, order);
    _mm256_storeu_si256((__m256i *)(void *)p, both);
}
/* VF_LANES bytes of 0 or 1. */
SIMD void vm_to_bytes(uint8_t *p, vm m)
{
    vi_to_byte(p, _mm256_srli_epi32(_mm256_castps_si256(m), 31));
}

#endif
