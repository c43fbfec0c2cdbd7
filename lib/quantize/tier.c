/* tier.c - the kernels of float runs that decide about a file: those whose bits nearly every x86
 * machine has (kernel/dispatch.c), and the portable ones where there are none.
 */
#include "kernel/kernel.h"
#include "ort.h"

const char *ort_quantize_tier(void)
{
    static const char common[] = "common";
    return ort_kernels_get(common) ? common : "scalar";
}
