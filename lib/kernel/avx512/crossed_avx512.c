/* crossed_avx512.c - what Winograd's inner product (kernel/crossed.h) takes, on 512 bits.
 *
 * A tile has up to 12 rows: 24 sums, 6 vectors of B of three k, and 2 crossed sums are the 32
 * registers, so that numbers of A come from memory with each instruction. gcc would keep them in
 * registers and spill, which is why a row's share of three k is written out.
 */
#include "kernel/avx512/simd.h"

#include <assert.h>
#include <math.h>

#include "kernel/crossed.h"
#include "kernel/gemm_follow.inc"

enum { NR = 2 * VF_LANES, ROWS_LEAST = 6, ROWS = 12 };

static float crossed_squares(int64_t n, const float *a)
{
    vf s0 = vf_zero(), s1 = s0;
    int64_t i = 0;
    for (; n - i >= 2 * VF_LANES; i += 2 * VF_LANES) {
        const vf x0 = vf_load(a + i), x1 = vf_load(a + i + VF_LANES);
        s0 = vf_fma(x0, x0, s0);
        s1 = vf_fma(x1, x1, s1);
    }
    for (; i < n; i += VF_LANES) {
        const vf x = vf_load_n(a + i, n - i < VF_LANES ? n - i : VF_LANES);
        s0 = vf_fma(x, x, s0);
    }
    return vf_sum(vf_add(s0, s1));
}

static float crossed_row(int64_t k, float by, const float *x, float *out)
{
    const vf scale = vf_set1(by);
    const vm pairs[3] = {0x9249, 0x4924, 0x2492}; /* lanes whose k is a multiple of 3 */
    for (int64_t i = 0; i < k; i += VF_LANES)
        vf_store(out + i, vf_mul(scale, vf_load_n(x + i, k - i < VF_LANES ? k - i : VF_LANES)));
    vf sum = vf_zero();
    int at = 0;
    for (int64_t i = 0; i < k / 3 * 3; i += VF_LANES, at = at == 2 ? 0 : at + 1) {
        const int64_t left = k / 3 * 3 - i;
        const vm lanes = pairs[at] & (left < VF_LANES ? v_mask_n(left) : 0xffff);
        sum = _mm512_mask3_fnmadd_ps(vf_load(out + i), vf_load(out + i + 1), sum, lanes);
    }
    return vf_sum(sum);
}

static void crossed_columns(int64_t k, int64_t part, const float *b, float *less, float *squares)
{
    vf square0 = vf_zero(), square1 = square0;
    for (; k > 0; k -= part, less += NR) {
        vf less0 = vf_zero(), less1 = less0;
        for (int64_t i = 0, n = k < part ? k : part; i < n; i++, b += NR) {
            const vf b0 = vf_load(b), b1 = vf_load(b + VF_LANES);
            square0 = vf_fma(b0, b0, square0);
            square1 = vf_fma(b1, b1, square1);
            if (i % 3 != 0 || n - i < 3)
                continue;
            less0 = vf_fnma(b0, vf_load(b + NR), less0);
            less1 = vf_fnma(b1, vf_load(b + NR + VF_LANES), less1);
        }
        vf_store(less, less0);
        vf_store(less + VF_LANES, less1);
    }
    vf_store(squares, square0);
    vf_store(squares + VF_LANES, square1);
}

/* ---- tiles */

#define CX_LIST6(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define CX_LIST7(X) CX_LIST6(X) X(6)
#define CX_LIST8(X) CX_LIST7(X) X(7)
#define CX_LIST9(X) CX_LIST8(X) X(8)
#define CX_LIST10(X) CX_LIST9(X) X(9)
#define CX_LIST11(X) CX_LIST10(X) X(10)
#define CX_LIST12(X) CX_LIST11(X) X(11)

/* Where the numbers of a row lie: a pointer for three of them. */
#define CX_AT_0 a0, "(%[p])"
#define CX_AT_1 a0, "(%[p],%[step],4)"
#define CX_AT_2 a0, "(%[p],%[step],8)"
#define CX_AT_3 a3, "(%[p])"
#define CX_AT_4 a3, "(%[p],%[step],4)"
#define CX_AT_5 a3, "(%[p],%[step],8)"
#define CX_AT_6 a6, "(%[p])"
#define CX_AT_7 a6, "(%[p],%[step],4)"
#define CX_AT_8 a6, "(%[p],%[step],8)"
#define CX_AT_9 a9, "(%[p])"
#define CX_AT_10 a9, "(%[p],%[step],4)"
#define CX_AT_11 a9, "(%[p],%[step],8)"

/* Three k of a row: x0 + y1 and x1 + y0, their product, and x2 y2, for two vectors of columns. */
#define CX_TRIPLE__(r, pointer, at)                                                                \
    __asm__("vaddps " at "%{1to16%}, %[y10], %[u]\n\t"                                             \
            "vaddps 4" at "%{1to16%}, %[y00], %[w]\n\t"                                            \
            "vfmadd231ps 8" at "%{1to16%}, %[y20], %[c0]\n\t"                                      \
            "vfmadd231ps 8" at "%{1to16%}, %[y21], %[c1]\n\t"                                      \
            "vfmadd231ps %[u], %[w], %[c0]\n\t"                                                    \
            "vaddps " at "%{1to16%}, %[y11], %[u]\n\t"                                             \
            "vaddps 4" at "%{1to16%}, %[y01], %[w]\n\t"                                            \
            "vfmadd231ps %[u], %[w], %[c1]"                                                        \
            : [c0] "+v"(c##r##_0), [c1] "+v"(c##r##_1), [u] "=&v"(u), [w] "=&v"(w)                 \
            : [y00] "v"(y00), [y01] "v"(y01), [y10] "v"(y10), [y11] "v"(y11), [y20] "v"(y20),      \
              [y21] "v"(y21), [p] "r"(pointer), [step] "r"(lda),                                   \
              "m"(*(const float(*)[])(pointer)));
#define CX_TRIPLE_(...) CX_TRIPLE__(__VA_ARGS__)
#define CX_TRIPLE(r) CX_TRIPLE_(r, CX_AT_##r)

/* One k of it. */
#define CX_SINGLE__(r, pointer, at)                                                                \
    __asm__("vfmadd231ps " at "%{1to16%}, %[y0], %[c0]\n\t"                                        \
            "vfmadd231ps " at "%{1to16%}, %[y1], %[c1]"                                            \
            : [c0] "+v"(c##r##_0), [c1] "+v"(c##r##_1)                                             \
            : [y0] "v"(y00), [y1] "v"(y01), [p] "r"(pointer), [step] "r"(lda),                     \
              "m"(*(const float(*)[])(pointer)));
#define CX_SINGLE_(...) CX_SINGLE__(__VA_ARGS__)
#define CX_SINGLE(r) CX_SINGLE_(r, CX_AT_##r)

#define CX_BEGIN(r)                                                                                \
    vf c##r##_0 = vf_add(less0, vf_set1(t->row[r])), c##r##_1 = vf_add(less1, vf_set1(t->row[r]));
#define CX_BRING(r)                                                                                \
    __builtin_prefetch(c + r * ldc, 1);                                                            \
    __builtin_prefetch(c + r * ldc + VF_LANES, 1);                                                 \
    __builtin_prefetch(c + r * ldc + NR - 1, 1);
#define CX_PUT(r)                                                                                  \
    crossed_put(vf_fma(c##r##_0, vf_set1(t->back[r]), bias0), c + r * ldc,                         \
                add ? add + r * ldadd : NULL, clamps, t);                                          \
    crossed_put(vf_fma(c##r##_1, vf_set1(t->back[r]), bias1), c + r * ldc + next,                  \
                add ? add + r * ldadd + next : NULL, clamps, t);
#define CX_NEXT(n)                                                                                 \
    a0 += n;                                                                                       \
    a3 += n;                                                                                       \
    a6 += n;                                                                                       \
    a9 += n;                                                                                       \
    b += n * NR;

static inline __attribute__((always_inline)) void crossed_put(vf v, float *c, const float *add,
                                                              bool clamps,
                                                              const ort_crossed_tile *t)
{
    if (add)
        v = vf_add(v, vf_load(add));
    if (clamps)
        v = vf_min(vf_set1(t->hi), vf_max(vf_set1(t->lo), v));
    vf_store(c, v);
}

#define CX_TILE(rows)                                                                              \
    static __attribute__((noinline)) void crossed_tile##rows(int64_t k, const ort_crossed_tile *t) \
    {                                                                                              \
        const int64_t lda = t->lda, ldc = t->ldc, ldadd = t->ldadd, next = t->next;                \
        const float *a0 = t->a, *a3 = a0 + 3 * lda, *a6 = a3 + 3 * lda, *a9 = a6 + 3 * lda;        \
        const float *b = t->b, *ahead = t->ahead, *add = t->add;                                   \
        const bool clamps = t->lo != -INFINITY || t->hi != INFINITY;                               \
        float *c = t->c;                                                                           \
        CX_LIST##rows(CX_BRING)                                                                    \
        const vf less0 = vf_load(t->column), less1 = vf_load(t->column + VF_LANES);                \
        CX_LIST##rows(CX_BEGIN)                                                                    \
        vf u, w;                                                                                   \
        for (; k >= 3; k -= 3) {                                                                   \
            __builtin_prefetch(ahead, 0, 2);                                                       \
            ahead += VF_LANES;                                                                     \
            const vf y00 = vf_load(b), y01 = vf_load(b + VF_LANES);                                \
            const vf y10 = vf_load(b + NR), y11 = vf_load(b + NR + VF_LANES);                      \
            const vf y20 = vf_load(b + 2 * NR), y21 = vf_load(b + 2 * NR + VF_LANES);              \
            CX_LIST##rows(CX_TRIPLE)                                                               \
            CX_NEXT(3)                                                                             \
        }                                                                                          \
        for (; k > 0; k--) {                                                                       \
            const vf y00 = vf_load(b), y01 = vf_load(b + VF_LANES);                                \
            CX_LIST##rows(CX_SINGLE)                                                               \
            CX_NEXT(1)                                                                             \
        }                                                                                          \
        const vf bias0 = t->bias ? vf_load(t->bias) : vf_zero();                                   \
        const vf bias1 = t->bias ? vf_load(t->bias + VF_LANES) : vf_zero();                        \
        CX_LIST##rows(CX_PUT)                                                                      \
    }
CX_TILE(6) CX_TILE(7) CX_TILE(8) CX_TILE(9) CX_TILE(10) CX_TILE(11) CX_TILE(12)

static void crossed_tile(int64_t rows, int64_t k, const ort_crossed_tile *t)
{
    static void (*const of[])(int64_t, const ort_crossed_tile *) = {
        crossed_tile6, crossed_tile7,  crossed_tile8, crossed_tile9,
        crossed_tile10, crossed_tile11, crossed_tile12};
    assert(rows >= ROWS_LEAST && rows <= ROWS);
    of[rows - ROWS_LEAST](k, t);
}

const ort_crossed_kernels ort_crossed_avx512 = {
    .rows = ROWS, .rows_least = ROWS_LEAST, .squares = crossed_squares, .row = crossed_row,
    .columns = crossed_columns, .tile = crossed_tile,
};
