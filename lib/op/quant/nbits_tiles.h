/* nbits_tiles.h - products of many rows of floats with weights of a few bits on the tiles of a tier
 * (kernel/gemm.h: f32_tiles). */
#ifndef ORT_OP_QUANT_NBITS_TILES_H
#define ORT_OP_QUANT_NBITS_TILES_H

#include "op/op.h"

typedef struct ort_nbits_product {
    int64_t m, k;
    const float *a;      /* [m][k] */
    const ort_nbits *w;  /* with n, bias, y and y_row */
    void *space;         /* ort_nbits_tiles_space() */
} ort_nbits_product;

/* Whether they take less time than other ways. */
bool ort_nbits_tiles_pay(const ort_kernels *k, int64_t m, int64_t n, int64_t depth);
/* Bytes of the workspace, a multiple of 64, and of scratch per thread. */
size_t ort_nbits_tiles_space(const ort_kernels *k, int64_t m, int64_t depth);
size_t ort_nbits_tiles_scratch(const ort_kernels *k);

void ort_nbits_tiles_multiply(const ort_call *call, const ort_nbits_product *p);

#endif
