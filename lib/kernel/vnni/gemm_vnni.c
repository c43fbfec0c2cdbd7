/* gemm_vnni.c - integer products of the AVX-512 VNNI tier: bytes by fours (vpdpbusd, which sums
 * exactly), int16 pairs with a fused accumulation (vpdpwssd), weights of a few bits by bytes.
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

#define TILE(name) i16_##name
#define T_FMA(x, b, c) _mm512_dpwssd_epi32(c, x, b)
#include "kernel/gemm_tile.inc"

#define GEMM_ROWS 14
#define BYTES_WORD 4
#define BYTES_DOT(x, b, c) _mm512_dpbusd_epi32(c, x, b)
#include "kernel/bytes.inc"

#define NBITS_ROWS1 6
#define NBITS_ROWS3 3
#define NBITS_PARTS INT32_MAX
static inline vi nbits_begin(vi p, int bits) { return p; }
static inline vi nbits_end(vi p, vi part, int bits) { return part; }
static inline vi nbits_add(vi part, vi codes, vi bytes, int bits)
{
    /* gcc copies the sums of the intrinsic */
    __asm__("vpdpbusd %2, %1, %0" : "+v"(part) : "v"(codes), "v"(bytes));
    return part;
}
#include "kernel/nbits_read.inc"
#include "kernel/nbits_fixed.inc"
#include "kernel/nbits_row.inc"

void ort_gemm_plug_vnni(ort_gemm_kernels *table)
{
    table->i16 = i16_run;
    plug_bytes(table);
    table->nbits = nbits_by_row;
}
