/* floats_amx.h - products of floats on tiles: of the AMX tier, where the processor has those of
 * bfloat16. */
#ifndef ORT_KERNEL_AMX_FLOATS_AMX_H
#define ORT_KERNEL_AMX_FLOATS_AMX_H

#include "kernel/gemm.h"

void ort_floats_plug_amx(ort_gemm_kernels *table);

#endif
