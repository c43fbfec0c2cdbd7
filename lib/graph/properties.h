/* properties.h - metadata properties (key and value) of the parts of a model. Those of the model
 * itself are members of it. */
#ifndef ORT_GRAPH_PROPERTIES_H
#define ORT_GRAPH_PROPERTIES_H

#include "graph/graph.h"

/* owner: "graph", "node 'x' (Op)", "value 'x'", "initializer 'x'", "function 'domain.name'"; of
 * parts of a body, preceded by the node that has it. */
typedef void ort_property_fn(void *arg, const char *owner, const char *key, const char *value);

/* Each property of graphs, nodes, declared values, initializers and functions, as the file has
 * them. */
void ort_properties_each(const ort_model *model, ort_property_fn *fn, void *arg);

#endif
