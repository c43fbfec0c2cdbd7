/* follow.h - finding nodes again after passes have rewritten them. A model can follow names of
 * operators and nodes: when a pass makes a node out of others, the followed names of these go into
 * its origin (names joined by "+"). A model that follows no names does no work for this.
 */
#ifndef ORT_GRAPH_FOLLOW_H
#define ORT_GRAPH_FOLLOW_H

#include "graph/graph.h"

/* What one node stands for: its origin, name or operator. */
const char *ort_node_origin(const ort_node *node);
/* Is this one of the names that an origin (or NULL) joins? */
bool ort_origin_lists(const char *origin, const char *name);

/* From here on the model follows these names of operators or nodes (NULL-terminated, copied). */
ort_status ort_model_follow_names(ort_model *model, const char *const *names, ort_error *err);
/* Add to the node's origin the followed names that the node has itself, and those that `origin`
 * lists: the origin of what the node was made from, or NULL. */
ort_status ort_follow_node(ort_graph *graph, ort_node *node, const char *origin, ort_error *err);
/* The same for the nodes of the graph from this index on, and those in bodies. */
ort_status ort_follow_nodes(ort_graph *graph, size_t first, const char *origin, ort_error *err);
/* `origin` with those followed names in front that only the origin `lost` lists; `origin` itself
 * where there are none. NULL when memory is exhausted. */
const char *ort_follow_join(ort_model *model, const char *origin, const char *lost);
/* The same for the origin of the node `into`, which takes the place of `lost` as well. */
ort_status ort_follow_merge(ort_graph *graph, ort_node *into, const ort_node *lost, ort_error *err);

#endif
