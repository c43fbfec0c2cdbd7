/* gemm_avx2.c - matrix, window and integer kernels of the AVX2 tier: gemm.inc on 8 lanes, micro
 * tiles of 6 x 16 (12 sums, 2 loads of B and 1 of A fill the 16 registers) and of 3 x 32. */
#include "kernel/avx2/simd.h"

#include "kernel/gemm.h"

/* Codes of up to 4 bits: sums of eight stay in 16 bits, 16 products of at most 15 * 128, of bytes
 * that are no less than -128. Codes of 8 bits are multiplied in pairs of int16. */
#define NBITS_ROWS1 3
#define NBITS_ROWS3 1
#define NBITS_PARTS 8
#define NBITS_OWN_ROW "kernel/avx2/nbits_one.inc"
static inline vi nbits_begin(vi p, int bits)
{
    return bits == 8 ? p : vi_zero();
}
static inline vi nbits_add(vi part, vi codes, vi bytes, int bits)
{
    if (bits < 8)
        return _mm256_add_epi16(part, _mm256_maddubs_epi16(codes, bytes));
    const vi even = _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8);
    const vi odd = _mm256_srai_epi16(bytes, 8);
    part = vi_dot_i16(_mm256_and_si256(codes, _mm256_set1_epi16(255)), even, part);
    return vi_dot_i16(_mm256_srli_epi16(codes, 8), odd, part);
}
static inline vi nbits_end(vi p, vi part, int bits)
{
    return bits == 8 ? part : vi_add(p, _mm256_madd_epi16(part, _mm256_set1_epi16(1)));
}

static inline int32_t vi_sum(vi a)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
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

/* As nbits_fix.inc has it. Bits of floats without their signs are in the order of their values, and
 * those of NaN the largest. */
#define NBITS_OWN_FIX
static inline float nbits_most(const float *a, int64_t count, vf *odd)
{
    const vi all = _mm256_set1_epi32(INT32_MAX);
    vi most = _mm256_setzero_si256();
    (void)odd;
    for (int64_t i = 0; i < count; i += VF_LANES)
        most = _mm256_max_epi32(_mm256_and_si256(vi_load((const void *)(a + i)), all), most);
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(m));
}
/* 16 bytes at a time, which are within -127 and 127. */
static inline int32_t nbits_digits1(const float *a, int64_t count, float times, int32_t *out)
{
    const vf by = vf_set1(times);
    vi sum = vi_zero();
    for (int64_t i = 0; i < count; i += 2 * VF_LANES) {
        const vi words = _mm256_packs_epi32(vi_from_vf(vf_mul(vf_load(a + i), by)),
                                            vi_from_vf(vf_mul(vf_load(a + i + VF_LANES), by)));
        const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words),
                                              _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128((__m128i *)(void *)(out + i / 4), _mm_shuffle_epi32(bytes, 0xd8));
        sum = vi_dot_i16(words, _mm256_set1_epi16(1), sum);
    }
    return vi_sum(sum);
}

/* Of each four lanes their third bytes, their second and their first: VF_LANES * 3 bytes. */
static inline void store_digits3(int32_t *out, vi v)
{
    const vi bytes = _mm256_broadcastsi128_si256(
        _mm_setr_epi32(0x0e0a0602, 0x0d090501, 0x0c080400, -1));
    const vi words = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    v = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v, bytes), words);
    _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(v));
    _mm_storel_epi64((__m128i *)(void *)(out + 4), _mm256_extracti128_si256(v, 1));
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
#define GEMM_WIDE "kernel/avx2/gemm_wide.inc"
#include "kernel/gemm.inc"
#include "kernel/avx2/nbits_bytes.inc"
#include "kernel/avx2/gemm_fours.inc"

void ort_gemm_plug_avx2(ort_gemm_kernels *table)
{
    plug_table(table);
    table->bytes_fours = bytes_fours;
    table->fours_pack = pack_fours;
    table->nbits = nbits_by_bytes;
    table->nbits_widen = nbits_widen_fours;
}
