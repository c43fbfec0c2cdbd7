/* matmul_shape.h - a matrix product by its shapes: inference, cost, and the described problem that
 * it is for floats and integers. */
#ifndef ORT_OP_SHARED_MATMUL_SHAPE_H
#define ORT_OP_SHARED_MATMUL_SHAPE_H

#include <stdlib.h>

#include "base/checked.h"
#include "op/shared/fused.h"

typedef struct matmul_state {
    bool gemm, trans_a, trans_b, trans_batch_a, trans_batch_b;
    float alpha, beta;
    ort_string activation;  /* of the epilogue */
    ort_epilogue epilogue;  /* alpha, clamp and activation; additions are known at run */
    const void *packed;     /* constant B, one packed matrix per batch entry; NULL */
    ort_dtype form;         /* its numbers: float, float16, bfloat16 (or double) */
    size_t packed_bytes;    /* of one */
    void *notes;            /* on one matrix of floats (matrix.h), or NULL */
} matmul_state;

typedef struct matmul_plan {
    int64_t m, n, k, batch;
    int64_t a_row, a_col, b_row, b_col;       /* element strides */
    int batch_rank;
    int64_t batch_dim[ORT_MAX_RANK], a_batch[ORT_MAX_RANK], b_batch[ORT_MAX_RANK];
    bool dots;       /* both operands run along k: one dot product per element */
    bool per_batch;  /* a task is one product of the batch */
    size_t a_wide, b_wide, y_wide, c_space, shared; /* offsets into the workspace */
    bool on_tiles;
    size_t tiles;     /* bytes for each thread of a product on tiles or of fewer multiply-adds
                       * (matrix.h), or 0 */
    size_t split;     /* of these, where the rows that tiles read begin in a product's space */
    size_t row_bytes; /* of A rewritten row by row, when it is transposed */
} matmul_plan;

/* Element strides of one operand: rows, columns, batch axes (aligned left in `batch`). */
void ort_matmul_strides(const ort_shape *s, bool trans, bool trans_batch, int64_t *row,
                        int64_t *column, int64_t *batch, int64_t *batch_dim, int *batch_rank);
/* The problem of these shapes; fills all but the workspace. */
ort_status ort_matmul_describe(const ort_shape *a, const ort_shape *b, const matmul_state *s,
                               matmul_plan *plan, ort_error *err);
/* Output 0 of a numpy-style product of two inputs, and of a Gemm. */
ort_status ort_matmul_infer_shape(ort_infer *x, int a_input, int b_input, ort_error *err);
ort_status ort_gemm_infer_shape(ort_infer *x, int a_input, int b_input, ort_error *err);
/* Of inputs 0 and 1. */
ort_status ort_matmul_infer(ort_infer *x, ort_error *err);
ort_status ort_gemm_infer(ort_infer *x, ort_error *err);
void ort_matmul_cost(const ort_infer *x, ort_cost *cost);

/* Offset of batch entry `index` by these strides. */
static inline int64_t matmul_offset(const matmul_plan *p, const int64_t *stride, int64_t index)
{
    int64_t offset = 0;
    for (int d = p->batch_rank - 1; d >= 0; d--) {
        offset += index % p->batch_dim[d] * stride[d];
        index /= p->batch_dim[d];
    }
    return offset;
}

#endif
