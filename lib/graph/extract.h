/* extract.h - a part of a model as a model of its own. */
#ifndef ORT_GRAPH_EXTRACT_H
#define ORT_GRAPH_EXTRACT_H

#include "graph/graph.h"

/* The nodes that compute `outputs` from `inputs` (values of the main graph, by name). No inputs:
 * the graph inputs that the outputs need. `typed` is the same model after inference: it declares
 * the types of new inputs and outputs. The part shares weights with the model. */
ort_status ort_graph_extract(const ort_model *model, const ort_model *typed,
                             const char *const *inputs, size_t input_count,
                             const char *const *outputs, size_t output_count, ort_model **part,
                             ort_error *err);

#endif
