/* bytes_op.h - operators on quantized tensors in the blocked layout of bytes
 * (kernel/blocked_bytes.h): [N, ceil(C / 16), spatial..., 16] of uint8, one or two spatial axes.
 *
 * A tensor of int8 is held there with 128 added to every code, its zero point too. So products have
 * one operand without a sign on every tier, as the instructions want it. Zero points that nodes
 * have as inputs are those of the plain tensors.
 */
#ifndef ORT_OP_BLOCKED_BYTES_OP_H
#define ORT_OP_BLOCKED_BYTES_OP_H

#include "kernel/blocked_bytes.h"
#include "op/blocked/blocked_op.h"

enum { ORT_BYTES_SUMS_IN = 7 }; /* of BytesConvFloat: added to the sums of each filter */

/* What is added to codes of a type in the layout, by an exclusive or. */
static inline uint8_t ort_bytes_flip(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT8 ? 128 : 0;
}

/* A zero point in the layout; NULL: the code 0 of `dtype`. */
int ort_bytes_zero(const ort_tensor *zero, ort_dtype dtype);
/* False when the shape isn't one of a tensor in the layout. */
bool ort_bytes_read(const ort_shape *shape, ort_blocked_dims *dims);

#endif
