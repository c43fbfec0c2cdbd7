/* half_weight.h - float16 and bfloat16 weights that a session keeps in 16 bits.
 *
 *     W:float16 -> Cast -> W':float -> MatMul        (and Gemm, FusedMatMul, ...)
 *
 * Operators with ORT_TRAIT_PACKS_HALF pack W as it is and widen it in registers: half the memory,
 * half of what a product with few rows reads, and the same bits. So such a Cast is neither folded
 * nor run: the constant of W' is W itself, whose element type alone says so.
 */
#ifndef ORT_OP_HALF_WEIGHT_H
#define ORT_OP_HALF_WEIGHT_H

#include "op/op.h"

/* Elements from which 16 bits pay: smaller weights stay in the second-level cache as floats too. */
#define ORT_HALF_MIN ((int64_t)1 << 17)

/* float16 or bfloat16, a matrix, and large enough? */
bool ort_half_is_kept(const ort_tensor *t);
/* Is this a Cast of such a constant to float which nobody reads but operators that pack it? */
bool ort_half_is_kept_cast(const ort_graph *graph, const ort_node *node);

#endif
