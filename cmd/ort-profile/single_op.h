/* single_op.h - a model of one operator in memory, for measuring a kernel through a session. */
#ifndef PROFILE_SINGLE_OP_H
#define PROFILE_SINGLE_OP_H

#include "common/tool.h"

enum { SINGLE_OP_INPUTS = 4, SINGLE_OP_RANK = 5, SINGLE_OP_ATTRIBUTES = 5 };

typedef struct single_op {
    const char *op_type; /* of ai.onnx, opset 17; or DOMAIN.NAME of its version 1 */
    /* float tensors (or of `dtype`), up to the first of rank 0; the first is the model's input, as
     * are the next `variables - 1`; the others are weights, cast to float when they have 16 bits */
    struct { int rank; int64_t dim[SINGLE_OP_RANK]; ort_dtype dtype; } in[SINGLE_OP_INPUTS];
    int variables; /* 0: 1 */
    /* int (count 0) or ints attributes, up to the first without a name */
    struct { const char *name; int count; int64_t value[4]; } attribute[SINGLE_OP_ATTRIBUTES];
    ort_dtype out; /* 0: float */
    bool quantized; /* a scale and a zero point stand behind every tensor of bytes, as in
                       QLinearConv; the output's stand last */
    bool any_codes; /* weights of int8 are any, else at most 64: what two of them make of bytes fits
                       in 16 bits then, as of the weights that ort-quantize writes */
} single_op;

/* Bytes of an ONNX file; weights are drawn, within 1 of 0. The caller frees them. */
char *single_op_model(const single_op *op, size_t *size);

#endif
