/* gemm_scalar.c - matrix, window and integer kernels for any machine: gemm.inc on 4 lanes of the
 * compiler's portable vectors (SSE2 on x86-64, NEON on AArch64). Multiply-adds round twice, so
 * results differ in the last bits from the tiers that fuse them. */
#include <stdint.h>
#include <string.h>

#include "kernel/gemm.h"

#define VF_LANES 4
#define VD_LANES 2
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));
typedef int32_t vm __attribute__((vector_size(16)));

#define PORTABLE(v, type, lanes)                                                                   \
    static inline v v##_load(const type *p)                                                        \
    {                                                                                              \
        v a;                                                                                       \
        memcpy(&a, p, sizeof a);                                                                   \
        return a;                                                                                  \
    }                                                                                              \
    static inline void v##_store(type *p, v a) { memcpy(p, &a, sizeof a); }                        \
    static inline v v##_load_n(const type *p, int64_t n)                                           \
    {                                                                                              \
        v a = {0};                                                                                 \
        for (int64_t i = 0; i < lanes && i < n; i++)                                               \
            a[i] = p[i];                                                                           \
        return a;                                                                                  \
    }                                                                                              \
    static inline void v##_store_n(type *p, int64_t n, v a)                                        \
    {                                                                                              \
        for (int64_t i = 0; i < lanes && i < n; i++)                                               \
            p[i] = a[i];                                                                           \
    }                                                                                              \
    static inline v v##_zero(void) { return (v){0}; }                                              \
    static inline v v##_set1(type a) { return a - (v){0}; }                                        \
    static inline v v##_add(v a, v b) { return a + b; }
PORTABLE(vf, float, 4)
PORTABLE(vd, double, 2)
PORTABLE(vi, int32_t, 4)
#undef PORTABLE

static inline vf vf_sub(vf a, vf b) { return a - b; }
static inline vf vf_mul(vf a, vf b) { return a * b; }
static inline vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
static inline vd vd_mul(vd a, vd b) { return a * b; }
static inline vd vd_fma(vd a, vd b, vd c) { return a * b + c; }
static inline vi vi_and(vi a, vi b) { return a & b; }
static inline vi vi_xor(vi a, vi b) { return a ^ b; }
static inline vi vi_sub(vi a, vi b) { return a - b; }
static inline vi bits_of(vf a)
{
    vi b;
    memcpy(&b, &a, sizeof b);
    return b;
}
static inline vf vf_select(vm m, vf yes, vf no)
{
    vi picked = (m & bits_of(yes)) | (~m & bits_of(no));
    vf r;
    memcpy(&r, &picked, sizeof r);
    return r;
}
static inline vf vf_max(vf a, vf b) { return vf_select(a > b, a, b); }
static inline vf vf_min(vf a, vf b) { return vf_select(a < b, a, b); }
static inline vm vf_isnan(vf a) { return a != a; }
static inline float vf_sum(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
static inline vi vi_shr(vi a, int count)
{
    typedef uint32_t vu __attribute__((vector_size(16)));
    vu b;
    memcpy(&b, &a, sizeof b);
    b >>= count;
    memcpy(&a, &b, sizeof a);
    return a;
}
static inline vf vf_from_vi(vi a) { return __builtin_convertvector(a, vf); }
static inline vi vi_from_vf(vf a)
{
    vi r;
    for (int i = 0; i < VF_LANES; i++)
        r[i] = (int32_t)__builtin_rintf(a[i]);
    return r;
}
static inline vi vi_wrap_add(vi a, vi b)
{
    typedef uint32_t vu __attribute__((vector_size(16)));
    vu x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&a, &x, sizeof a);
    return a;
}
static inline vi vi_dot_i16(vi a, vi b, vi c)
{
    vi r;
    for (int i = 0; i < VF_LANES; i++) {
        int16_t x[2], y[2];
        memcpy(x, (const char *)&a + 4 * i, 4);
        memcpy(y, (const char *)&b + 4 * i, 4);
        r[i] = (int32_t)((uint32_t)(x[0] * y[0]) + (uint32_t)(x[1] * y[1]));
    }
    return vi_wrap_add(r, c);
}

static inline vi vi_load_u8_n(const uint8_t *p, int64_t n)
{
    vi r = {0};
    for (int64_t i = 0; i < VF_LANES && i < n; i++)
        r[i] = p[i];
    return r;
}
static inline vi vi_load_u8(const uint8_t *p) { return vi_load_u8_n(p, VF_LANES); }

static inline void store_bytes(uint8_t *p, int64_t n, vi v)
{
    for (int64_t i = 0; i < VF_LANES && i < n; i++)
        p[i] = (uint8_t)v[i];
}

static void stride_copy(int64_t n, const float *in, int64_t stride, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = in[i * stride];
}

#define vi_add vi_wrap_add
#define GEMM_ROWS 4
#include "kernel/gemm.inc"

void ort_gemm_plug_scalar(ort_gemm_kernels *table)
{
    plug_table(table);
}
