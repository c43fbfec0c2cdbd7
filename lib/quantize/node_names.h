/* node_names.h - every node has a name, so that reports, lists and rules can speak of it. */
#ifndef ORT_QUANTIZE_NODE_NAMES_H
#define ORT_QUANTIZE_NODE_NAMES_H

#include "graph/graph.h"

/* Nodes without a name, those of bodies too, are called by what they compute: their first output,
 * with a number where another node has that name. */
ort_status ort_quantize_name_nodes(ort_model *model, ort_error *err);

#endif
