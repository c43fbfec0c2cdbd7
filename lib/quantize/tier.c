/* tier.c - the kernel tier of float runs that decide about a file: one that nearly every x86
 * machine has, and the portable one where there is none.
 */
#include "kernel/kernel.h"
#include "ort.h"

const char *ort_quantize_tier(void)
{
    static const char common[] = "avx2";
    return ort_kernels_get(common) ? common : "scalar";
}
