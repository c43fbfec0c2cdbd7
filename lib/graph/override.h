/* override.h - giving a model sizes for its symbolic dimensions, and shapes for its inputs. */
#ifndef ORT_GRAPH_OVERRIDE_H
#define ORT_GRAPH_OVERRIDE_H

#include "graph/graph.h"

/* Replace the symbol in every declared and inferred shape. ORT_ERROR_USAGE with the names there
 * are when the model has no such symbol. */
ort_status ort_graph_set_dim(ort_model *model, const char *name, int64_t size, ort_error *err);
/* Declare the shape of an input (-1: keep that dim). What was declared or inferred for computed
 * values is forgotten but for element types. */
ort_status ort_graph_set_shape(ort_model *model, const char *input, int rank, const int64_t *dims,
                               ort_error *err);
/* Axis of an input becomes a symbol; what was declared or inferred for computed values is
 * forgotten. */
ort_status ort_graph_open_dim(ort_model *model, const char *input, int axis, const char *symbol,
                              ort_error *err);
/* A metadata property becomes `value` (copied), is added, or with NULL goes. */
ort_status ort_graph_set_metadata(ort_model *model, const char *key, const char *value,
                                  ort_error *err);
/* Its value, or NULL. */
const char *ort_graph_metadata(const ort_model *model, const char *key);
/* An initializer of the main graph gets a copy of this data, of the type and shape that it has. */
ort_status ort_graph_set_initializer(ort_model *model, const char *name, const ort_tensor *data,
                                     ort_error *err);
/* A constant by name: an initializer, or the value of a Constant node, also in bodies. NULL. */
const ort_tensor *ort_graph_find_constant(const ort_graph *graph, const char *name);

#endif
