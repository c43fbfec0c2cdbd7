/* strip.h - taking out of a model what no runtime needs. */
#ifndef ORT_GRAPH_STRIP_H
#define ORT_GRAPH_STRIP_H

#include "graph/graph.h"

/* what: ORT_STRIP_... of ort.h. Names of values stay: inputs and outputs are known by them, and
 * messages need the others. */
void ort_graph_strip(ort_model *model, unsigned what);

#endif
