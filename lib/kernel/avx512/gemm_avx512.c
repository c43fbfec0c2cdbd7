/* gemm_avx512.c - matrix, window and integer kernels of the AVX-512 tier: gemm.inc on 16 lanes,
 * micro tiles of 14 x 32 (28 sums, 2 loads of B and 1 of A in the 32 registers). */
#include "kernel/avx512/simd.h"

#include "base/cpu.h"
#include "kernel/crossed.h"
#include "kernel/gemm.h"

/* Codes of up to 4 bits: sums of eight stay in 16 bits, 16 products of at most 15 * 128, of bytes
 * that are no less than -128. Codes of 8 bits are multiplied in pairs of int16. */
#define NBITS_ROWS1 6
#define NBITS_ROWS3 3
#define NBITS_PARTS 8
static inline vi nbits_begin(vi p, int bits)
{
    return bits == 8 ? p : vi_zero();
}
static inline vi nbits_add(vi part, vi codes, vi bytes, int bits)
{
    if (bits < 8)
        return _mm512_add_epi16(part, _mm512_maddubs_epi16(codes, bytes));
    const vi even = _mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 8);
    const vi odd = _mm512_srai_epi16(bytes, 8);
    part = vi_dot_i16(_mm512_and_si512(codes, _mm512_set1_epi16(255)), even, part);
    return vi_dot_i16(_mm512_srli_epi16(codes, 8), odd, part);
}
static inline vi nbits_end(vi p, vi part, int bits)
{
    return bits == 8 ? part : vi_add(p, _mm512_madd_epi16(part, _mm512_set1_epi16(1)));
}

static inline int32_t vi_sum(vi a) { return _mm512_reduce_add_epi32(a); }

/* The low byte of the first n lanes. */
static inline void store_bytes(uint8_t *p, int64_t n, vi v)
{
    __m128i bytes = _mm512_cvtepi32_epi8(v);
    if (n == VF_LANES)
        _mm_storeu_si128((__m128i *)(void *)p, bytes);
    else
        _mm_mask_storeu_epi8(p, v_mask_n(n), bytes);
}

/* Of each four lanes their third bytes, their second and their first: VF_LANES * 3 bytes. */
static inline void store_digits3(int32_t *out, vi v)
{
    const vi bytes = _mm512_set4_epi32(-1, 0x0c080400, 0x0d090501, 0x0e0a0602);
    const vi words = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15);
    v = _mm512_permutexvar_epi32(words, _mm512_shuffle_epi8(v, bytes));
    vi_store_n(out, 3 * VF_LANES / 4, v);
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
#define GEMM_STRASSEN
#include "kernel/gemm.inc"

void ort_gemm_plug_avx512(ort_gemm_kernels *table)
{
    plug_table(table);
    if (ort_cpu_get()->adds_apart)
        table->crossed = ort_crossed_avx512;
}
