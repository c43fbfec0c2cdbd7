/* gemm_scalar.c - matrix, window and integer kernels for any machine: gemm.inc on 4 lanes of the
 * compiler's portable vectors (SSE2 on x86-64, NEON on AArch64). Multiply-adds round twice, so
 * results differ in the last bits from the tiers that fuse them. */
#include <stdint.h>
#include <string.h>

#include "kernel/gemm.h"
#include "kernel/scalar/simd.h"

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

/* Every eighth of 8 * VF_LANES elements. */
static inline vf vf_load_eighth(const float *p)
{
    vf r;
    for (int i = 0; i < VF_LANES; i++)
        r[i] = p[8 * i];
    return r;
}

#define NIBBLE_WORDS INT64_MAX
static inline vi vi_nibbles_begin(vi p) { return p; }
static inline vi vi_nibbles_end(vi p, vi part)
{
    return part;
}
/* p + the products of four nibbles of low with signed bytes of even, and of high with odd. */
static inline vi vi_nibbles(vi p, vi low, vi high, vi even, vi odd)
{
    for (int i = 0; i < VF_LANES; i++)
        for (int byte = 0; byte < 32; byte += 8)
            p[i] += (low[i] >> byte & 15) * (int8_t)((uint32_t)even[i] >> byte) +
                    (high[i] >> byte & 15) * (int8_t)((uint32_t)odd[i] >> byte);
    return p;
}

#define vi_add vi_wrap_add
#define GEMM_ROWS 4
#include "kernel/gemm.inc"

void ort_gemm_plug_scalar(ort_gemm_kernels *table)
{
    plug_table(table);
}
