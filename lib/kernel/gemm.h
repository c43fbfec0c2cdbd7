#ifndef ORT_KERNEL_GEMM_H
#define ORT_KERNEL_GEMM_H
typedef struct ort_gemm_kernels { int mr; } ort_gemm_kernels;
#endif
