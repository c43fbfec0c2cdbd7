/* reduce_plan.h - the axes of a reduction, kept and reduced, as few as there can be. */
#ifndef ORT_OP_SHARED_REDUCE_PLAN_H
#define ORT_OP_SHARED_REDUCE_PLAN_H

#include "op/op.h"

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

#endif
