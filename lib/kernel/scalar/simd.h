/* simd.h - the inline SIMD names of the scalar tier: 4 lanes of the compiler's portable vectors
 * (SSE2 on x86-64, NEON on AArch64). Multiply-adds round twice, so results differ in the last bits
 * from the tiers that fuse them.
 */
#ifndef ORT_KERNEL_SCALAR_SIMD_H
#define ORT_KERNEL_SCALAR_SIMD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/num.h"

#define SIMD static inline __attribute__((always_inline, unused))
#define VF_LANES 4
#define VD_LANES 2
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));
typedef int32_t vm __attribute__((vector_size(16)));

#define PORTABLE(v, type, lanes)                                                                   \
    SIMD v v##_load(const type *p)                                                        \
    {                                                                                              \
        v a;                                                                                       \
        memcpy(&a, p, sizeof a);                                                                   \
        return a;                                                                                  \
    }                                                                                              \
    SIMD void v##_store(type *p, v a) { memcpy(p, &a, sizeof a); }                        \
    SIMD v v##_load_n(const type *p, int64_t n)                                           \
    {                                                                                              \
        v a = {0};                                                                                 \
        const char *from = (const char *)p; /* alignment isn't asked of p */                       \
        for (int64_t i = 0; i < lanes && i < n; i++, from += sizeof(type)) {                       \
            type element;                                                                          \
            memcpy(&element, from, sizeof element);                                                \
            a[i] = element;                                                                        \
        }                                                                                          \
        return a;                                                                                  \
    }                                                                                              \
    SIMD void v##_store_n(type *p, int64_t n, v a)                                        \
    {                                                                                              \
        for (int64_t i = 0; i < lanes && i < n; i++)                                               \
            p[i] = a[i];                                                                           \
    }                                                                                              \
    SIMD v v##_zero(void) { return (v){0}; }                                              \
    SIMD v v##_set1(type a) { return a - (v){0}; }                                        \
    SIMD v v##_add(v a, v b) { return a + b; }
PORTABLE(vf, float, 4)
PORTABLE(vd, double, 2)
PORTABLE(vi, int32_t, 4)
#undef PORTABLE

SIMD vf vf_sub(vf a, vf b) { return a - b; }
SIMD vf vf_mul(vf a, vf b) { return a * b; }
SIMD vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
SIMD vf vf_fnma(vf a, vf b, vf c) { return c - a * b; }
SIMD vd vd_mul(vd a, vd b) { return a * b; }
SIMD vd vd_fma(vd a, vd b, vd c) { return a * b + c; }
/* table[index[j]], of a table of 32. */
SIMD vd vd_look_up(const double *table, const uint32_t *index)
{
    return (vd){table[index[0]], table[index[1]]};
}
SIMD vi vi_and(vi a, vi b) { return a & b; }
SIMD vi vi_xor(vi a, vi b) { return a ^ b; }
SIMD vi vi_sub(vi a, vi b) { return a - b; }
SIMD vi vi_bits(vf a)
{
    vi b;
    memcpy(&b, &a, sizeof b);
    return b;
}
SIMD vf vf_bits(vi a)
{
    vf b;
    memcpy(&b, &a, sizeof b);
    return b;
}
SIMD vf vf_and(vf a, vf b) { return vf_bits(vi_bits(a) & vi_bits(b)); }
SIMD vf vf_select(vm m, vf yes, vf no)
{
    return vf_bits((m & vi_bits(yes)) | (~m & vi_bits(no)));
}
/* m ? a & b : a */
SIMD vf vf_and_where(vm m, vf a, vf b) { return vf_bits(vi_bits(a) & (vi_bits(b) | ~m)); }
SIMD vm vf_lt(vf a, vf b) { return a < b; }
SIMD vm vf_le(vf a, vf b) { return a <= b; }
SIMD vf vf_max(vf a, vf b) { return vf_select(a > b, a, b); }
SIMD vf vf_min(vf a, vf b) { return vf_select(a < b, a, b); }
SIMD vm vf_not_le(vf a, vf b) { return ~(a <= b); }
SIMD vm vf_isnan(vf a) { return a != a; }
SIMD vm vm_or(vm a, vm b) { return a | b; }
SIMD int vm_any(vm a) { return (a[0] | a[1] | a[2] | a[3]) != 0; }
SIMD float vf_sum(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
/* out[i] = scale * the sum of the i-th vector. */
SIMD void vf_store_sums4(float *out, vf a, vf b, vf c, vf d, float scale)
{
    out[0] = scale * vf_sum(a);
    out[1] = scale * vf_sum(b);
    out[2] = scale * vf_sum(c);
    out[3] = scale * vf_sum(d);
}
SIMD vf vf_permute(vf a, vi index)
{
#ifdef __clang__ /* which shuffles by constants only */
    return (vf){a[index[0] & 3], a[index[1] & 3], a[index[2] & 3], a[index[3] & 3]};
#else
    return __builtin_shuffle(a, index);
#endif
}
/* VF_LANES rows of as many elements, transposed. */
SIMD void vf_transpose(const float *from, int64_t step, float *to, int64_t to_step)
{
    for (int i = 0; i < VF_LANES; i++) {
        const vf row = vf_load(from + i * step); /* which may be unaligned */
        for (int j = 0; j < VF_LANES; j++)
            to[j * to_step + i] = row[j];
    }
}
SIMD vf vf_abs(vf a) { return vf_max(a, -a); }
SIMD float vf_hmax(vf a)
{
    float x = a[0] > a[2] ? a[0] : a[2], y = a[1] > a[3] ? a[1] : a[3];
    return x > y ? x : y;
}
SIMD vi vi_or(vi a, vi b) { return a | b; }
SIMD vi vi_sra(vi a, int count) { return a >> count; }
SIMD vi vi_shl(vi a, int count)
{
    typedef uint32_t vu __attribute__((vector_size(16)));
    vu b;
    memcpy(&b, &a, sizeof b);
    b <<= count;
    memcpy(&a, &b, sizeof a);
    return a;
}
SIMD vi vi_shr(vi a, int count)
{
    typedef uint32_t vu __attribute__((vector_size(16)));
    vu b;
    memcpy(&b, &a, sizeof b);
    b >>= count;
    memcpy(&a, &b, sizeof a);
    return a;
}
SIMD vf vf_from_vi(vi a) { return __builtin_convertvector(a, vf); }
SIMD vi vi_from_vf(vf a)
{
    vi r;
    for (int i = 0; i < VF_LANES; i++)
        r[i] = (int32_t)__builtin_rintf(a[i]);
    return r;
}
SIMD vi vi_wrap_add(vi a, vi b)
{
    typedef uint32_t vu __attribute__((vector_size(16)));
    vu x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&a, &x, sizeof a);
    return a;
}
SIMD vi vi_dot_i16(vi a, vi b, vi c)
{
#if defined(__SSE2__)
    return vi_wrap_add((vi)_mm_madd_epi16((__m128i)a, (__m128i)b), c);
#else
    vi low = (a << 16 >> 16) * (b << 16 >> 16), high = (a >> 16) * (b >> 16);
    return vi_wrap_add(vi_wrap_add(low, high), c);
#endif
}
/* VF_LANES pairs of int8 as int16. */
SIMD vi vi_from_pairs_s8(const uint16_t *p)
{
    typedef int8_t bytes __attribute__((vector_size(8)));
    typedef int16_t wide __attribute__((vector_size(16)));
    bytes x;
    memcpy(&x, p, sizeof x);
    return (vi)__builtin_convertvector(x, wide);
}
/* Four vectors, saturated to codes. */
SIMD void vi_store_codes(uint8_t *p, const vi *v, bool is_signed)
{
#if defined(__SSE2__)
    __m128i low = _mm_packs_epi32((__m128i)v[0], (__m128i)v[1]);
    __m128i high = _mm_packs_epi32((__m128i)v[2], (__m128i)v[3]);
    low = is_signed ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high);
    _mm_storeu_si128((__m128i *)(void *)p, low);
#else
    const int least = is_signed ? -128 : 0;
    for (int i = 0; i < 4 * VF_LANES; i++) {
        int code = v[i / VF_LANES][i % VF_LANES];
        p[i] = (uint8_t)(code < least ? least : code > least + 255 ? least + 255 : code);
    }
#endif
}
/* Lanes of a and b by turns. */
SIMD void vi_store_zip(int32_t *p, vi a, vi b)
{
    vi_store(p, (vi){a[0], b[0], a[1], b[1]});
    vi_store(p + VF_LANES, (vi){a[2], b[2], a[3], b[3]});
}
/* Lanes hold 0..65535. */
SIMD void vi_to_u16(uint16_t *p, vi v)
{
    for (int i = 0; i < VF_LANES; i++)
        p[i] = (uint16_t)v[i];
}
SIMD vi vi_from_u8(const uint8_t *p) { return (vi){p[0], p[1], p[2], p[3]}; }
SIMD vf vf_div(vf a, vf b) { return a / b; }
SIMD vf vf_from_f16(const uint16_t *p) /* VF_LANES of them */
{
    return (vf){ort_f16_to_f32(p[0]), ort_f16_to_f32(p[1]), ort_f16_to_f32(p[2]),
                ort_f16_to_f32(p[3])};
}
SIMD vf vf_from_bf16(const uint16_t *p)
{
    return (vf){ort_bf16_to_f32(p[0]), ort_bf16_to_f32(p[1]), ort_bf16_to_f32(p[2]),
                ort_bf16_to_f32(p[3])};
}

#endif
