/* diff.h - what differs between two models, blind to the order of nodes and the names of
 * temporaries. */
#ifndef ORT_GRAPH_DIFF_H
#define ORT_GRAPH_DIFF_H

#include "base/strbuf.h"
#include "graph/graph.h"

/* A digest of what a graph computes: operators, attributes, constants, wiring, names of inputs. */
ort_status ort_graph_hash(const ort_graph *graph, uint64_t *hash, ort_error *err);
/* *equal when both compute the same in the same way. `out` gets a line per difference. */
ort_status ort_graph_diff(const ort_model *a, const ort_model *b, bool *equal, ort_strbuf *out,
                          ort_error *err);

#endif
