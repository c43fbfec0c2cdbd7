/* blocked_chain.h - the attributes of BlockedConvChain (blocked_chain.c), which a pass writes and
 * the operator reads: one entry per stage in each list. */
#ifndef ORT_OP_BLOCKED_CHAIN_BLOCKED_CHAIN_H
#define ORT_OP_BLOCKED_CHAIN_BLOCKED_CHAIN_H

#include "graph/graph.h"
#include "op/shared/window.h"

enum {
    ORT_CHAIN_STAGES = 6,
    ORT_CHAIN_WINDOW = 11, /* group, kernel, strides, dilations, pads (begins, ends); group 0: a
                              maximum of windows, a stage without filter and bias */
    ORT_CHAIN_PARAMS = 2,  /* of an activation; param_counts says how many are given */
};

/* Can a depthwise convolution with this kernel read a ring of rows (kernel/blocked.h)? */
bool ort_chain_reads_ring(const int64_t *kernel, const ort_window_spec *spec);

#endif
