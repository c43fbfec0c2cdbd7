/* invariants.h - checks the rules that every edit of a graph must keep. */
#ifndef ORT_GRAPH_INVARIANTS_H
#define ORT_GRAPH_INVARIANTS_H

#include "graph/graph.h"

/* Producers and slots agree with what nodes list, the order has every live node once and producers
 * first, readers are counted and indexed, bodies know their node and it what they capture, a name
 * stands for one value, inputs and outputs are marked; in bodies, too. ORT_ERROR_RUN names the
 * first that isn't so. The index is asked for the first 64 readers of a value. */
ort_status ort_graph_verify(const ort_graph *graph, ort_error *err);

#endif
