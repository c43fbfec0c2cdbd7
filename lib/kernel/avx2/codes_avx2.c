/* codes_avx2.c - kernels of 8-bit codes of the AVX2 tier. */
#include "kernel/codes.h"

#include <string.h>

#include "kernel/avx2/simd.h"
#include "kernel/contract.h"

typedef __m256i vb;

SIMD vb vb_load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
SIMD void vb_store(uint8_t *p, vb a) { _mm256_storeu_si256((__m256i *)(void *)p, a); }

/* NaN becomes the upper bound. */
SIMD __m128i half_from_f64(const double *x, double factor)
{
    vd v = _mm256_min_pd(vd_mul(vd_load(x), vd_set1(factor)), vd_set1(1e6));
    return _mm256_cvtpd_epi32(_mm256_max_pd(v, vd_set1(-1e6)));
}

SIMD vi vi_from_f64(const double *x, double factor)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(half_from_f64(x, factor)),
                                   half_from_f64(x + VD_LANES, factor), 1);
}

#include "kernel/codes.inc"

/* A row of 16 entries is looked up by the low half of a code. Rows are exclusive-ored with the one
 * before them, so that those up to the code's own give its entry; a code less 16 for each row is
 * negative behind it, where a shuffle gives 0. The upper half of the table is looked up by codes
 * less 128. */
typedef struct byte_rows {
    __m128i row[16];
} byte_rows;

static byte_rows rows_of(const uint8_t *table)
{
    byte_rows r;
    for (int k = 0; k < 16; k++) {
        __m128i row = _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * k));
        r.row[k] = k % 8 ? _mm_xor_si128(row, _mm_loadu_si128((const __m128i *)(const void *)(
                                                  table + 16 * (k - 1))))
                         : row;
    }
    return r;
}

SIMD vb entries(const byte_rows *r, vb x)
{
    vb low = x, high = _mm256_xor_si256(x, _mm256_set1_epi8(-128)), y = _mm256_setzero_si256();
    const vb step = _mm256_set1_epi8(16);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        vb a = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(r->row[k]), low);
        vb b = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(r->row[8 + k]), high);
        y = _mm256_xor_si256(y, _mm256_xor_si256(a, b));
        low = _mm256_subs_epi8(low, step);
        high = _mm256_subs_epi8(high, step);
    }
    return y;
}

static void look_up(const uint8_t *x, uint8_t *y, size_t n, const uint8_t *table)
{
    size_t i = 0;
    assert(ort_kernel_may_share(x, 1, y, 1, n));
    if (n >= 128) {
        byte_rows r = rows_of(table);
        for (; i + 32 <= n; i += 32)
            vb_store(y + i, entries(&r, vb_load(x + i)));
    }
    for (; i < n; i++)
        y[i] = table[x[i]];
}

/* Entries of codes by lines: nine or twelve shuffles for 32, where rows take sixteen and twice as
 * many other instructions. */
typedef struct byte_lines {
    vb base, slope, fine, more[2][2];
    __m128i shift;
} byte_lines;

SIMD vb both_halves(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

SIMD vb on_lines(const byte_lines *c, int planes, vb x)
{
    const vb low = _mm256_set1_epi8(15), one = _mm256_set1_epi8(1);
    const vb bits = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    const vb line = _mm256_and_si256(_mm256_srli_epi16(x, 4), low);
    const vb place = _mm256_and_si256(x, low);
    const vb slope = _mm256_shuffle_epi8(c->slope, line), fine = _mm256_shuffle_epi8(c->fine, line);
    vb first = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(place, one),
                                    _mm256_unpacklo_epi8(slope, fine));
    vb second = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(place, one),
                                     _mm256_unpackhi_epi8(slope, fine));
    first = _mm256_sra_epi16(first, c->shift), second = _mm256_sra_epi16(second, c->shift);
    vb y = _mm256_add_epi8(_mm256_packs_epi16(first, second), _mm256_shuffle_epi8(c->base, line));
    const vb eight = _mm256_and_si256(_mm256_srli_epi16(x, 3), low);
    const vb bit = _mm256_shuffle_epi8(bits, place);
    for (int p = 0; p < planes; p++) {
        const vb row = _mm256_blendv_epi8(_mm256_shuffle_epi8(c->more[p][0], eight),
                                          _mm256_shuffle_epi8(c->more[p][1], eight), x);
        const vb set = _mm256_cmpeq_epi8(_mm256_and_si256(row, bit), bit); /* -1 where it is */
        y = _mm256_sub_epi8(y, p ? _mm256_add_epi8(set, set) : set);
    }
    return y;
}

SIMD void follow_by(const byte_lines *c, int planes, const uint8_t *x, uint8_t *y, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        vb_store(y + i, on_lines(c, planes, vb_load(x + i)));
    if (i < n) {
        uint8_t rest[32] = {0};
        memcpy(rest, x + i, n - i);
        vb_store(rest, on_lines(c, planes, vb_load(rest)));
        memcpy(y + i, rest, n - i);
    }
}

static void follow(const uint8_t *x, uint8_t *y, size_t n, const ort_byte_lines *l)
{
    const byte_lines c = {both_halves(l->base), both_halves(l->slope), both_halves(l->fine),
                          {{both_halves(l->more[0]), both_halves(l->more[0] + 16)},
                           {both_halves(l->more[1]), both_halves(l->more[1] + 16)}},
                          _mm_cvtsi32_si128(l->shift)};
    assert(ort_kernel_may_share(x, 1, y, 1, n));
    if (l->planes < 2)
        follow_by(&c, 1, x, y, n);
    else
        follow_by(&c, 2, x, y, n);
}

static void choose(const uint8_t *c, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        vb no = _mm256_cmpeq_epi8(vb_load(c + i), _mm256_setzero_si256());
        vb_store(y + i, _mm256_blendv_epi8(vb_load(a + i), vb_load(b + i), no));
    }
    for (; i < n; i++)
        y[i] = c[i] ? a[i] : b[i];
}

static int64_t sum(const uint8_t *x, size_t n, bool is_signed)
{
    const vb flip = _mm256_set1_epi8(is_signed ? -128 : 0);
    vb s = _mm256_setzero_si256();
    uint8_t lanes[32];
    int64_t part[4];
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        s = _mm256_add_epi64(s, _mm256_sad_epu8(_mm256_xor_si256(vb_load(x + i), flip),
                                                _mm256_setzero_si256()));
    if (i < n) {
        memset(lanes, is_signed ? 128 : 0, sizeof lanes);
        memcpy(lanes, x + i, n - i);
        s = _mm256_add_epi64(s, _mm256_sad_epu8(_mm256_xor_si256(vb_load(lanes), flip),
                                                _mm256_setzero_si256()));
    }
    _mm256_storeu_si256((__m256i *)(void *)part, s);
    return part[0] + part[1] + part[2] + part[3] - (is_signed ? 128 * (int64_t)n : 0);
}

static int largest(const uint8_t *x, size_t n, uint8_t flip)
{
    const vb flips = _mm256_set1_epi8((char)flip);
    vb most = _mm256_setzero_si256();
    uint8_t lanes[32];
    size_t i = 0;
    int top = 0;
    assert(n > 0);
    for (; i + 32 <= n; i += 32)
        most = _mm256_max_epu8(most, _mm256_xor_si256(vb_load(x + i), flips));
    vb_store(lanes, most);
    for (int k = 0; k < 32; k++)
        top = lanes[k] > top ? lanes[k] : top;
    for (; i < n; i++)
        top = (x[i] ^ flip) > top ? x[i] ^ flip : top;
    return top;
}

/* Rows of a block of the blocked layout of bytes: 16 bits have room for 257 of them. */
static void add_rows(int32_t *sums, const uint8_t *x, size_t rows, size_t stride, size_t n,
                     bool is_signed)
{
    if (n != ORT_BYTE_ROW || is_signed) {
        byte_add_rows(sums, x, rows, stride, n, is_signed);
        return;
    }
    while (rows > 0) {
        const size_t some = rows < 257 ? rows : 257;
        vi words = _mm256_setzero_si256();
        for (size_t r = 0; r < some; r++, x += stride)
            words = _mm256_add_epi16(
                words, _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)x)));
        const vi low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words));
        const vi high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1));
        vi_store(sums, vi_add(vi_load(sums), low));
        vi_store(sums + VF_LANES, vi_add(vi_load(sums + VF_LANES), high));
        rows -= some;
    }
}

void ort_code_plug_avx2(ort_code_kernels *table)
{
    table->look_up = look_up;
    table->follow = follow;
    table->choose = choose;
    table->add = byte_add;
    table->multiply = byte_multiply;
    table->multiply_rows = byte_multiply_rows;
    table->sum = sum;
    table->sum_squares = byte_sum_squares;
    table->add_rows = add_rows;
    table->largest = largest;
    table->round_f64 = byte_round_f64;
}
