/* blocked16.h - what blocked16_avx2.c has for blocked_avx2.c. */
#ifndef ORT_KERNEL_AVX2_BLOCKED16_H
#define ORT_KERNEL_AVX2_BLOCKED16_H

#include "kernel/blocked.h"

void ort_blocked16_plug_avx2(ort_blocked_kernels *of16);

#endif
