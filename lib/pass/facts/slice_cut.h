/* slice_cut.h - what a Slice of constant bounds takes, and which part of another a value is. */
#ifndef ORT_PASS_CLEAN_SLICE_CUT_H
#define ORT_PASS_CLEAN_SLICE_CUT_H

#include "pass/pass.h"

typedef struct ort_slice_cut { /* along each axis, in the order given */
    int count;
    int64_t start[ORT_MAX_RANK], end[ORT_MAX_RANK], axis[ORT_MAX_RANK], step[ORT_MAX_RANK];
} ort_slice_cut;

/* Starts, ends, axes and steps of a Slice that has them as constant inputs (opset 10 on); axes are
 * counted from the front, a missing list of them is the first ones. False for anything else. */
bool ort_slice_cut_read(const ort_graph *graph, const ort_node *node, ort_slice_cut *cut);

/* A value as a part of another along one axis, by a Slice, Split or Gather of constant numbers. */
typedef struct ort_part {
    ort_id of;                /* ORT_ID_NONE: it is none */
    int axis;                 /* counted from the front */
    int64_t start, end, step; /* where the axis's size is known: not negative, nor past it */
    bool taken;               /* one index of it, and the axis is gone */
} ort_part;

ort_part ort_part_of(const ort_graph *graph, ort_id value);

#endif
