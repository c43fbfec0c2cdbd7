/* strip.h - taking out of a model what no runtime needs. */
#ifndef ORT_GRAPH_STRIP_H
#define ORT_GRAPH_STRIP_H

#include "graph/graph.h"

/* what: ORT_STRIP_... of ort.h. Names of values stay: inputs and outputs are known by them, and
 * messages need the others. */
void ort_graph_strip(ort_model *model, unsigned what);

/* Initializers of this graph (not of its bodies) that nothing reads go, but for those that are its
 * inputs or outputs; returns how many. */
int ort_graph_drop_initializers(ort_graph *graph);

#endif
