/* node_names.h - every node has a name, so that reports, lists and rules can speak of it; the rule
 * by which lists of names do, the same for every verb.
 */
#ifndef ORT_QUANTIZE_NODE_NAMES_H
#define ORT_QUANTIZE_NODE_NAMES_H

#include "graph/graph.h"

/* Nodes without a name, those of bodies too, are called by what they compute: their first output,
 * with a number where another node has that name. */
ort_status ort_quantize_name_nodes(ort_model *model, ort_error *err);

/* '*' any text, '?' any letter. */
bool ort_name_matches(const char *pattern, const char *name);
/* By the node's name, or one that its origin joins. */
bool ort_node_is_called(const ort_node *node, const char *pattern);
/* So, or by its operator. */
bool ort_node_is_named(const ort_node *node, const char *pattern);

/* Lists of patterns that end with NULL; or NULL: none. A node of a body may be called by the nodes
 * around it, too: "loop1/matmul". */
bool ort_node_is_listed(const ort_graph *graph, const ort_node *node, const char *const *patterns);
/* Why a node stays as it is: excluded, or not included where something is; or NULL. */
const char *ort_node_unwanted(const ort_graph *graph, const ort_node *node,
                              const char *const *include, const char *const *exclude);
/* A pattern that no node of the model meets, of bodies neither, is ORT_ERROR_USAGE; whether what it
 * meets could become codes doesn't matter. */
ort_status ort_nodes_check_lists(const ort_graph *graph, const char *const *include,
                                 const char *const *exclude, ort_error *err);

#endif
