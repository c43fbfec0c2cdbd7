/* model_mark.h - a number that tells models apart whose values may hold other numbers. */
#ifndef ORT_QUANTIZE_MODEL_MARK_H
#define ORT_QUANTIZE_MODEL_MARK_H

#include "graph/graph.h"

/* Of names of values, operators with their attributes, and samples of all weights; names of nodes
 * and text for people don't count, nor whether weights lie in the file or beside it. */
uint64_t ort_model_mark(const ort_model *model);

#endif
