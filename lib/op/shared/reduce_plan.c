/* reduce_plan.c - the axes of a reduction, merged. */
#include "op/shared/reduce_plan.h"

#include <string.h>

static void add_axis(ort_axes *axes, int64_t dim, int64_t stride, bool merge)
{
    axes->total *= dim;
    if (merge && axes->count > 0) {
        axes->dim[axes->count - 1] *= dim;
        axes->stride[axes->count - 1] = stride;
    } else {
        axes->dim[axes->count] = dim;
        axes->stride[axes->count++] = stride;
    }
}

void ort_reduce_plan_make(ort_reduce_plan *plan, const ort_shape *shape, const bool *reduced)
{
    int64_t stride[ORT_MAX_RANK];
    int last = -1;
    memset(plan, 0, sizeof *plan);
    plan->kept.total = plan->reduced.total = 1;
    ort_shape_strides(shape, stride);
    for (int d = 0; d < shape->rank; d++) {
        if (shape->dim[d] == 1)
            continue;
        add_axis(reduced[d] ? &plan->reduced : &plan->kept, shape->dim[d], stride[d],
                 last >= 0 && reduced[last] == reduced[d]);
        last = d;
    }
    plan->inner_reduced = last >= 0 && reduced[last];
}
