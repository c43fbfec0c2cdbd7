/* nbits_amx.h - gemm.h's nbits on tiles, of rows of one digit. */
#ifndef ORT_KERNEL_AMX_NBITS_AMX_H
#define ORT_KERNEL_AMX_NBITS_AMX_H

#include "kernel/gemm.h"

void ort_nbits_tiles(int64_t first, int64_t last, const ort_nbits *w);

#endif
