/* gemm_avxvnni.c - integer products of the AVX-VNNI tier: bytes by fours (vpdpbusd on 256 bits,
 * which sums exactly). Everything else is the AVX2 tier's. */
#include "kernel/avx2/simd.h"

#include "kernel/gemm.h"

static inline vi dot_bytes(vi x, vi b, vi c)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(c) : "x"(x), "x"(b));
    return c;
}

#define GEMM_ROWS 6
#define BYTES_WORD 4
#define BYTES_DOT(x, b, c) dot_bytes(x, b, c)
#include "kernel/bytes.inc"

void ort_gemm_plug_avxvnni(ort_gemm_kernels *table)
{
    plug_bytes(table);
}
