/* blocked_avx512.c - kernels of the blocked layout of the AVX-512 tier: 16 channels in a vector,
 * micro tiles of 14 pixels by 32 channels. Blocks of 8 keep the kernels of the tier below.
 */
#include "kernel/blocked.h"

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "kernel/avx512/simd.h"
#include "kernel/crossed.h"

#define BLOCKED_PIXELS 14

/* In c's register: of 28 sums, two vectors and a number, gcc would send some to memory. */
static inline vf vf_fma_in(vf a, vf b, vf c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
#define VF_FMA_IN(a, b, c) vf_fma_in(a, b, c)

#define BLOCK 16
#define BLOCKED(name) of16_##name
#include "kernel/blocked.inc"
#undef BLOCK
#undef BLOCKED

static void conv_crossed(const ort_blocked_conv *conv, const ort_blocked_crossed *crossed)
{
    ort_blocked_crossed_avx512(conv, crossed, of16_conv);
}

void ort_blocked_plug_avx512(ort_blocked_kernels *of8, ort_blocked_kernels *of16)
{
    (void)of8;
    of16_plug(of16);
    if (ort_cpu_get()->adds_apart) {
        of16->conv_crossed = conv_crossed;
        of16->is_sparse = ort_blocked_sparse_avx512;
    }
}
