/* uses.h - who reads a value: an index of the graph, made when it is first asked and kept up by
 * every edit, so that passes cost time in proportion to the graph. Entries are only ever added; an
 * entry is skipped when its node has gone or reads another value by now. Without memory for the
 * index, the nodes are searched.
 */
#ifndef ORT_GRAPH_USES_H
#define ORT_GRAPH_USES_H

#include "graph/graph.h"

#define ORT_READS_ANYWHERE (-1)

/* The live nodes of the value's graph that read or capture it; a node may come more than once, and
 * not in the order of the graph. Edits are allowed on the way. */
typedef struct ort_readers {
    ort_graph *graph;
    ort_id value;
    uint32_t at; /* entry of the index, or next node id of a scan */
    int slot;    /* where the node reads it; another slot comes by itself. ORT_READS_ANYWHERE: in
                  * any of its inputs and captures */
    bool scan;
    unsigned made; /* the index that `at` is of */
} ort_readers;

ort_readers ort_readers_of(const ort_graph *graph, ort_id value);
ort_node *ort_readers_next(ort_readers *readers); /* NULL: no more */

/* ---- for graph.c: `node` reads `value` in input `slot` or captures it (ORT_READS_ANYWHERE) now;
 * the index goes with its graph */
void ort_uses_add(ort_graph *graph, ort_id value, ort_id node, int slot);
void ort_uses_release(ort_graph *graph);

#endif
