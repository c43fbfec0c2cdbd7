/* blocked16_avx2.c - kernels of the AVX2 tier for blocks of 16 channels, on 8 lanes: calibration
 * runs on them on every machine, and files of other runtimes come with them; this tier's own layout
 * takes 8 (blocked_avx2.c). */
#include "kernel/avx2/blocked16.h"

#include <math.h>
#include <string.h>

#include "kernel/avx2/simd.h"

#define BLOCKED_PIXELS 6
#define BLOCKED_SMALL_POOLS /* they take no time of a calibration, and 30 KB of each tool */
#define BLOCK 16
#define BLOCKED(name) of16_##name
#include "kernel/blocked.inc"

void ort_blocked16_plug_avx2(ort_blocked_kernels *of16)
{
    of16_plug(of16);
}
