/* peak.h - what this machine reaches: multiply-adds in registers, and streams through each level of
 * memory, with as many threads as a run has. The bound of a node is the roofline (Williams,
 * Waterman, Patterson, "Roofline", CACM 2009): it can't be faster than its arithmetic at the first
 * rate nor than its bytes at the second. */
#ifndef ORT_PROFILE_PEAK_H
#define ORT_PROFILE_PEAK_H

#include "base/pool.h"
#include "kernel/kernel.h"
#include "ort.h"

/* Measure on all threads of the pool (NULL: the caller alone), with the kernels of one tier. About
 * a quarter of a second. */
ort_status ort_peak_measure(const ort_kernels *kernels, ort_pool *pool, ort_peak *peak,
                            ort_error *err);
/* Nanoseconds that this work needs at least; 0 when there is none. `bytes` move within a memory of
 * `resident` bytes. */
double ort_peak_bound_ns(const ort_peak *peak, double flops, double bytes, double resident);

#endif
