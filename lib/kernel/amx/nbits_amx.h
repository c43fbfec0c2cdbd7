/* nbits_amx.h - gemm.h's nbits_round and nbits_rounded. */
#ifndef ORT_KERNEL_AMX_NBITS_AMX_H
#define ORT_KERNEL_AMX_NBITS_AMX_H

#include "kernel/gemm.h"

bool ort_nbits_round(int64_t k, const ort_nbits *w, const float *a, int32_t *fixed);
void ort_nbits_rounded(int64_t first, int64_t last, const ort_nbits *w);

#endif
