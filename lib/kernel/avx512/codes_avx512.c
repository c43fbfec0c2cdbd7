/* codes_avx512.c - kernels of 8-bit codes of the AVX-512 tier. Tables are four vectors, where the
 * processor has VBMI; else the AVX2 tier's functions stay. */
#include "kernel/codes.h"

#include <string.h>

#include "base/cpu.h"
#include "kernel/avx512/simd.h"
#include "kernel/contract.h"

typedef __m512i vb;

SIMD vb vb_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
SIMD void vb_store(uint8_t *p, vb a) { _mm512_storeu_si512(p, a); }
SIMD __mmask64 vb_mask_n(size_t n) { return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1; }
SIMD vb vb_load_n(const uint8_t *p, size_t n) { return _mm512_maskz_loadu_epi8(vb_mask_n(n), p); }
SIMD void vb_store_n(uint8_t *p, size_t n, vb a) { _mm512_mask_storeu_epi8(p, vb_mask_n(n), a); }

/* NaN becomes the upper bound. */
SIMD __m256i half_from_f64(const double *x, double factor)
{
    vd v = _mm512_min_pd(vd_mul(vd_load(x), vd_set1(factor)), vd_set1(1e6));
    return _mm512_cvtpd_epi32(_mm512_max_pd(v, vd_set1(-1e6)));
}

SIMD vi vi_from_f64(const double *x, double factor)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(half_from_f64(x, factor)),
                              half_from_f64(x + VD_LANES, factor), 1);
}

#include "kernel/codes.inc"

static void choose(const uint8_t *c, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i += 64) {
        vb test = vb_load_n(c + i, n - i);
        vb_store_n(y + i, n - i, _mm512_mask_blend_epi8(_mm512_test_epi8_mask(test, test),
                                                        vb_load_n(b + i, n - i),
                                                        vb_load_n(a + i, n - i)));
    }
}

static int64_t sum(const uint8_t *x, size_t n, bool is_signed)
{
    const vb flip = _mm512_set1_epi8(is_signed ? -128 : 0), none = _mm512_setzero_si512();
    vb s = none;
    size_t i = 0;
    for (; i + 64 <= n; i += 64)
        s = _mm512_add_epi64(s, _mm512_sad_epu8(_mm512_xor_si512(vb_load(x + i), flip), none));
    if (i < n) {
        vb last = _mm512_maskz_mov_epi8(vb_mask_n(n - i),
                                        _mm512_xor_si512(vb_load_n(x + i, n - i), flip));
        s = _mm512_add_epi64(s, _mm512_sad_epu8(last, none));
    }
    return _mm512_reduce_add_epi64(s) - (is_signed ? 128 * (int64_t)n : 0);
}

static int largest(const uint8_t *x, size_t n, uint8_t flip)
{
    const vb flips = _mm512_set1_epi8((char)flip);
    vb most = _mm512_setzero_si512();
    assert(n > 0);
    for (size_t i = 0; i < n; i += 64)
        most = _mm512_max_epu8(most, _mm512_maskz_mov_epi8(
                                         vb_mask_n(n - i),
                                         _mm512_xor_si512(vb_load_n(x + i, n - i), flips)));
    __m256i half = _mm256_max_epu8(_mm512_castsi512_si256(most),
                                   _mm512_extracti64x4_epi64(most, 1));
    __m128i rest = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    rest = _mm_max_epu8(rest, _mm_srli_epi16(rest, 8)); /* of each pair, in its low byte */
    rest = _mm_and_si128(rest, _mm_set1_epi16(255));
    return 65535 - _mm_extract_epi16(_mm_minpos_epu16(_mm_sub_epi16(_mm_set1_epi16(-1), rest)), 0);
}

/* ---- tables of 256, by VBMI */

#define VBMI __attribute__((target("avx512vbmi")))

typedef struct byte_table {
    vb quarter[4];
} byte_table;

static inline VBMI byte_table table_of(const uint8_t *table)
{
    return (byte_table){{vb_load(table), vb_load(table + 64), vb_load(table + 128),
                         vb_load(table + 192)}};
}
static inline VBMI vb entries(const byte_table *t, vb x)
{
    vb low = _mm512_permutex2var_epi8(t->quarter[0], x, t->quarter[1]);
    vb high = _mm512_permutex2var_epi8(t->quarter[2], x, t->quarter[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
}

static VBMI void look_up_vbmi(const uint8_t *x, uint8_t *y, size_t n, const uint8_t *table)
{
    byte_table t = table_of(table);
    size_t i = 0;
    assert(ort_kernel_may_share(x, 1, y, 1, n));
    for (; i + 64 <= n; i += 64)
        vb_store(y + i, entries(&t, vb_load(x + i)));
    if (i < n)
        vb_store_n(y + i, n - i, entries(&t, vb_load_n(x + i, n - i)));
}

/* Byte by byte of the exponentials: 64 codes have their bytes of one weight added in one step.
 * Registers have room for the tables of three weights. */
static VBMI uint64_t exp_sum_vbmi(const uint8_t *x, size_t n, int top, uint8_t flip,
                                  const ort_byte_exps *exps)
{
    const vb lift = _mm512_set1_epi8((char)(255 - top)), flips = _mm512_set1_epi8((char)flip);
    const vb none = _mm512_setzero_si512();
    uint64_t total = 0;
    assert(top >= 0 && top <= 255 && ORT_BYTE_PLANES % 3 == 0);
/* Adds the entries of codes `at`; `keep`: those of them that count. */
#define ADD(keep)                                                                                  \
    s0 = _mm512_add_epi64(s0, _mm512_sad_epu8(keep(entries(&t0, at)), none));                      \
    s1 = _mm512_add_epi64(s1, _mm512_sad_epu8(keep(entries(&t1, at)), none));                      \
    s2 = _mm512_add_epi64(s2, _mm512_sad_epu8(keep(entries(&t2, at)), none));
#define ALL(e) (e)
#define LIVE(e) _mm512_maskz_mov_epi8(vb_mask_n(n - i), e)
    for (int p = 0; p < ORT_BYTE_PLANES; p += 3) {
        const byte_table t0 = table_of(exps->planes[p]), t1 = table_of(exps->planes[p + 1]);
        const byte_table t2 = table_of(exps->planes[p + 2]);
        vb s0 = none, s1 = none, s2 = none;
        size_t i = 0;
        for (; i + 64 <= n; i += 64) {
            vb at = _mm512_add_epi8(_mm512_xor_si512(vb_load(x + i), flips), lift);
            ADD(ALL)
        }
        if (i < n) {
            vb at = _mm512_add_epi8(_mm512_xor_si512(vb_load_n(x + i, n - i), flips), lift);
            ADD(LIVE)
        }
        s0 = _mm512_add_epi64(s0, _mm512_add_epi64(_mm512_slli_epi64(s1, 8),
                                                   _mm512_slli_epi64(s2, 16)));
        total += (uint64_t)_mm512_reduce_add_epi64(s0) << 8 * p;
    }
#undef ADD
#undef ALL
#undef LIVE
    return total;
}

void ort_code_plug_avx512(ort_code_kernels *table)
{
    table->choose = choose;
    table->add = byte_add;
    table->multiply = byte_multiply;
    table->multiply_rows = byte_multiply_rows;
    table->sum = sum;
    table->sum_squares = byte_sum_squares;
    table->add_rows = byte_add_rows;
    table->largest = largest;
    table->round_f64 = byte_round_f64;
    if (ort_cpu_get()->avx512_vbmi) {
        table->look_up = look_up_vbmi;
        table->exp_sum = exp_sum_vbmi;
    }
}
