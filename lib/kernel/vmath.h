#ifndef ORT_KERNEL_VMATH_H
#define ORT_KERNEL_VMATH_H
typedef struct ort_vmath_kernels { int lanes; } ort_vmath_kernels;
#endif
