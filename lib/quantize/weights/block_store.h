/* block_store.h - a matrix of weights as columns of blocks, and where their codes go.
 *
 * A product sums over K and has N columns. The matrix lies as [K][N], or turned as [N][K]. Blocks
 * are runs of `block` numbers of a column; the last one may be shorter. What is stored has one of
 * two layouts:
 *
 *     by columns  codes [N][blocks][bytes of a block], scales [N][blocks], zero points [N][blocks],
 *                 rows of whole bytes: MatMulNBits and GatherBlockQuantized (com.microsoft)
 *     as it lies  codes in the order of the matrix; scales, zero points as [blocks][N], or turned:
 *                 DequantizeLinear with block_size (ONNX, opset 21)
 */
#ifndef ORT_QUANTIZE_BLOCK_STORE_H
#define ORT_QUANTIZE_BLOCK_STORE_H

#include "kernel/grids.h"
#include "tensor/tensor.h"

typedef struct ort_block_matrix {
    const ort_tensor *from; /* FLOAT, FLOAT16 or BFLOAT16; its data may lie anywhere */
    bool turned;
    int64_t k, n, block, blocks;
} ort_block_matrix;

ort_block_matrix ort_block_matrix_of(const ort_tensor *t, bool turned, int64_t block);

/* Columns n .. n + ORT_BLOCK_LANES - 1 as out[k][ORT_BLOCK_LANES]; those beyond N are 0. False: one
 * of the numbers isn't finite. */
bool ort_block_columns(const ort_block_matrix *w, int64_t n, float *out);

typedef struct ort_block_store {
    ort_block_matrix matrix;
    ort_block_form form;
    bool by_columns;
    uint8_t *codes, *zeros; /* zeroed at first; zeros NULL: symmetric */
    void *scales;           /* of form.scale */
    size_t code_bytes, scale_bytes, zero_bytes;
} ort_block_store;

/* Sizes of what will be stored. */
ort_block_store ort_block_store_of(const ort_block_matrix *shape, const ort_block_form *form,
                                     bool by_columns);
ort_status ort_block_store_alloc(ort_block_store *c, ort_error *err);
void ort_block_store_release(ort_block_store *c);

/* Columns that may be stored by one thread while others store others: a multiple of
 * ORT_BLOCK_LANES. */
int64_t ort_block_store_stride(const ort_block_store *c);

/* Block b of columns n .. n + ORT_BLOCK_LANES - 1; codes[numbers of the block][lanes]. */
void ort_block_store_put(ort_block_store *c, int64_t n, int64_t b, const ort_block_grid *grid,
                          const uint8_t *codes);

#endif
