/* follow.h - finding again what passes made of nodes: the origin of a node (names joined by "+")
 * tells, besides, the operators and nodes that are followed. A model that follows nothing pays
 * nothing.
 */
#ifndef ORT_GRAPH_FOLLOW_H
#define ORT_GRAPH_FOLLOW_H

#include "graph/graph.h"

/* What one node stands for: its origin, name or operator. */
const char *ort_node_origin(const ort_node *node);
/* Is this one of the names that an origin (or NULL) joins? */
bool ort_origin_lists(const char *origin, const char *name);

/* From here on the model follows these names, of operators or nodes (NULL-terminated, copied). */
ort_status ort_model_follow_names(ort_model *model, const char *const *names, ort_error *err);
/* The node's origin gets the followed names that it bears itself, and those that `origin` (what it
 * was made from; or NULL) lists. */
ort_status ort_follow_node(ort_graph *graph, ort_node *node, const char *origin, ort_error *err);
/* The same for the nodes of the graph from this index on, and those in bodies. */
ort_status ort_follow_nodes(ort_graph *graph, size_t first, const char *origin, ort_error *err);
/* `origin` with the followed names that only `lost` lists in front; `origin` itself where there are
 * none. NULL when memory is exhausted. */
const char *ort_follow_join(ort_model *model, const char *origin, const char *lost);
/* The same for a node that takes the place of one more. */
ort_status ort_follow_merge(ort_graph *graph, ort_node *into, const ort_node *lost, ort_error *err);

#endif
