/* gemm_scalar.c - matrix, window and integer kernels for any machine: gemm.inc on 4 lanes of the
 * compiler's portable vectors (SSE2 on x86-64, NEON on AArch64). Multiply-adds round twice, so
 * results differ in the last bits from the tiers that fuse them. */
#include <stdint.h>
#include <string.h>

#include "kernel/gemm.h"
#include "kernel/scalar/simd.h"

static inline int32_t vi_sum(vi a) { return a[0] + a[1] + a[2] + a[3]; }

static inline void store_bytes(uint8_t *p, int64_t n, vi v)
{
    for (int64_t i = 0; i < VF_LANES && i < n; i++)
        p[i] = (uint8_t)v[i];
}

/* Of each four lanes their third bytes, their second and their first: VF_LANES * 3 bytes. */
static inline void store_digits3(int32_t *out, vi v)
{
    store_bytes((uint8_t *)out, VF_LANES, v >> 16);
    store_bytes((uint8_t *)(out + VF_LANES / 4), VF_LANES, v >> 8);
    store_bytes((uint8_t *)(out + VF_LANES / 2), VF_LANES, v);
}

static void stride_copy(int64_t n, const float *in, int64_t stride, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = in[i * stride];
}

#define vi_add vi_wrap_add
#define NBITS_ROWS1 3
#define NBITS_ROWS3 1
#define NBITS_PARTS INT32_MAX
static inline vi nbits_begin(vi p, int bits) { return p; }
static inline vi nbits_end(vi p, vi part, int bits) { return part; }
/* Pairs of int16, of the codes without a sign. */
static inline vi nbits_add(vi part, vi codes, vi bytes, int bits)
{
    typedef int16_t wide __attribute__((vector_size(16)));
    const vi low = vi_set1(0x00ff00ff);
    wide odd = (wide)bytes >> 8, even = (wide)((wide)vi_shl(bytes, 8)) >> 8;
    part = vi_dot_i16(vi_and(codes, low), (vi)even, part);
    return vi_dot_i16(vi_and(vi_shr(codes, 8), low), (vi)odd, part);
}

#define GEMM_ROWS 4
#include "kernel/gemm.inc"

void ort_gemm_plug_scalar(ort_gemm_kernels *table)
{
    plug_table(table);
}
