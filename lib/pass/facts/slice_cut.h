/* slice_cut.h - what a Slice of constant bounds takes. */
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

#endif
