/* dim_source.h - where a symbolic dimension can be read: from a graph input, so that all nodes that
 * need the dimension read the same number.
 */
#ifndef ORT_PASS_CLEAN_DIM_SOURCE_H
#define ORT_PASS_CLEAN_DIM_SOURCE_H

#include "pass/pass.h"

/* The first graph input that has the dim, and the axis; false: none, and both stay. */
bool ort_dim_source(const ort_pass_context *context, ort_dim dim, ort_id *id, int64_t *axis);

#endif
