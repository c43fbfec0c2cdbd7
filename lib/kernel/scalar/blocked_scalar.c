/* blocked_scalar.c - kernels of the blocked layout of the scalar tier: both sizes on 4 lanes. */
#include "kernel/blocked.h"

#include <math.h>
#include <string.h>

#include "kernel/scalar/simd.h"

#define BLOCKED_PIXELS 6

#define BLOCK 8
#define BLOCKED(name) of8_##name
#include "kernel/blocked.inc"
#undef BLOCK
#undef BLOCKED

#define BLOCK 16
#define BLOCKED(name) of16_##name
#include "kernel/blocked.inc"
#undef BLOCK
#undef BLOCKED

void ort_blocked_plug_scalar(ort_blocked_kernels *of8, ort_blocked_kernels *of16)
{
    of8_plug(of8);
    of16_plug(of16);
}
