/* reduce.h - what the reduction operators share: the plan of a reduction and the loops of the types
 * that have no kernel (reduce_typed.c).
 */
#ifndef ORT_OP_MATH_REDUCE_H
#define ORT_OP_MATH_REDUCE_H

#include "op/op.h"

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

/* Axes of one kind (kept or reduced), neighbours merged, in elements of the input. */
typedef struct ort_axes {
    int count;
    int64_t dim[ORT_MAX_RANK], stride[ORT_MAX_RANK];
    int64_t total; /* product of dims */
} ort_axes;

typedef struct ort_reduce_plan {
    ort_axes kept, reduced;
    bool inner_reduced; /* the contiguous axis of the input is a reduced one */
    int64_t pieces;     /* > 0: each long run is cut into so many partial sums (workspace) */
} ort_reduce_plan;

/* Offset of the index-th combination of these axes. */
static inline int64_t ort_axes_offset(const ort_axes *axes, int count, int64_t index)
{
    int64_t offset = 0;
    for (int d = count - 1; d > 0; d--) {
        offset += index % axes->dim[d] * axes->stride[d];
        index /= axes->dim[d];
    }
    return count > 0 ? offset + index * axes->stride[0] : 0;
}

/* Axes of extent 1 are left out, neighbours of one kind merged. reduced: one flag per axis. */
void ort_reduce_plan_make(ort_reduce_plan *plan, const ort_shape *shape, const bool *reduced);
/* The kernel's accumulation behind a reduction. */
ort_accum ort_reduce_accum(ort_reduction op);
/* Outputs [first, first + count) of a tensor whose type is f64, an integer or bool, or whose
 * reduction is ORT_REDUCE_LOG_SUM_EXP. */
void ort_reduce_typed(const ort_reduce_plan *plan, ort_reduction op, const ort_tensor *x,
                      ort_tensor *y, int64_t first, int64_t count);

#endif
