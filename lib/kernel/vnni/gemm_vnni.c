/* gemm_vnni.c - integer products of the AVX-512 VNNI tier: bytes by fours (vpdpbusd, which sums
 * exactly), int16 pairs with a fused accumulation (vpdpwssd), nibbles by bytes (vpdpbusd).
 * Everything else is the AVX-512 tier's. */
#include <stdbool.h>
#include <string.h>

#include "kernel/avx512/simd.h"

#include "kernel/gemm.h"

#define TILE_ROWS 14
#define T_ELEM int32_t
#define T_ARGS ort_tile_i32
#define T_VEC vi
#define T_LANES VF_LANES
#define T_ZERO() vi_zero()
#define T_SET1(x) vi_set1(x)
#define T_LOAD(p) vi_load(p)
#define T_LOAD_N(p, n) vi_load_n(p, n)
#define T_ADD(a, b) vi_add(a, b)
#define T_STORE(p, v) vi_store(p, v)
#define T_STORE_N(p, n, v) vi_store_n(p, n, v)
#define T_PLAIN(t) true
#define T_FINISH(sum, t, i, add, j, n) (add ? vi_add(sum, vi_load_n(add, n)) : (sum))
#define T_AHEAD(t) NULL

#define TILE(name) i16_##name
#define T_FMA(x, b, c) _mm512_dpwssd_epi32(c, x, b)
#include "kernel/gemm_tile.inc"

#define GEMM_ROWS 14
#define BYTES_WORD 4
#define BYTES_DOT(x, b, c) _mm512_dpbusd_epi32(c, x, b)
#include "kernel/bytes.inc"

#define NIBBLE_WORDS INT64_MAX
static inline vi vi_nibbles_begin(vi p) { return p; }
static inline vi vi_nibbles_end(vi p, vi part)
{
    return part;
}
/* p + the products of four nibbles of low with signed bytes of even, and of high with odd. */
static inline vi vi_nibbles(vi p, vi low, vi high, vi even, vi odd)
{
    return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(p, low, even), high, odd);
}
#include "kernel/nbits_store.inc"
#include "kernel/nbits_fixed.inc"

void ort_gemm_plug_vnni(ort_gemm_kernels *table)
{
    table->i16 = i16_run;
    plug_bytes(table);
    table->nbits4_fixed = nbits4_fixed;
}
