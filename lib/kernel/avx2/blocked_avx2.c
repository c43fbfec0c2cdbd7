/* blocked_avx2.c - kernels of the blocked layout of the AVX2 tier, for blocks of 8 channels. Micro
 * tiles of 6 pixels by 16 channels: 12 sums, 2 loads of weights and 1 broadcast fill the 16
 * registers. */
#include "kernel/avx2/blocked16.h"

#include <math.h>
#include <string.h>

#include "kernel/avx2/simd.h"

#define BLOCKED_PIXELS 6
#define BLOCK 8
#define BLOCKED(name) of8_##name
#include "kernel/blocked.inc"

void ort_blocked_plug_avx2(ort_blocked_kernels *of8, ort_blocked_kernels *of16)
{
    of8_plug(of8);
    ort_blocked16_plug_avx2(of16);
}
