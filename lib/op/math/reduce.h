/* reduce.h - what the reduction operators share: the plan of a reduction and the loops of the types
 * that have no kernel (reduce_typed.c).
 */
#ifndef ORT_OP_MATH_REDUCE_H
#define ORT_OP_MATH_REDUCE_H

#include "op/op.h"
#include "op/shared/reduce_plan.h"

typedef enum ort_reduction {
    ORT_REDUCE_SUM,
    ORT_REDUCE_MEAN,
    ORT_REDUCE_MAX,
    ORT_REDUCE_MIN,
    ORT_REDUCE_PROD,
    ORT_REDUCE_L1,
    ORT_REDUCE_L2,
    ORT_REDUCE_LOG_SUM,
    ORT_REDUCE_LOG_SUM_EXP,
    ORT_REDUCE_SUM_SQUARE,
    ORT_REDUCE_COUNT
} ort_reduction;

/* The kernel's accumulation behind a reduction. */
ort_accum ort_reduce_accum(ort_reduction op);
/* Outputs [first, first + count) of a tensor whose type is f64, an integer or bool, or whose
 * reduction is ORT_REDUCE_LOG_SUM_EXP. */
void ort_reduce_typed(const ort_reduce_plan *plan, ort_reduction op, const ort_tensor *x,
                      ort_tensor *y, int64_t first, int64_t count);

#endif
