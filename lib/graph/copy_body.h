/* copy_body.h - the nodes of a body once more in the graph around it: If inlined, Loop unrolled. */
#ifndef ORT_GRAPH_COPY_BODY_H
#define ORT_GRAPH_COPY_BODY_H

#include "graph/graph.h"

/* In how many graphs each name is, of a graph and all inside of it: a new one there must not be
 * shadowed. Kept while bodies are copied into it; a count of 0 is a name that went. */
typedef struct ort_name_counts {
    ort_hashmap names;
} ort_name_counts;

/* All of `graph`, when nothing is counted yet; without those of the bodies of its `node`, which die
 * when they are copied. */
ort_status ort_name_counts_take(ort_name_counts *counts, const ort_graph *graph,
                                const ort_node *node, ort_error *err);
void ort_name_counts_release(ort_name_counts *counts);

typedef struct ort_body_copy {
    ort_graph *graph, *body;      /* body->parent is graph */
    ort_name_counts *counts;      /* of `graph`, taken for the body's node */
    /* By value of the body: what it means in graph. The caller sets its inputs, and results that
     * have their value already; ORT_ID_NONE is filled in. */
    ort_id *map;
    const char *suffix; /* of new names; "" */
    bool keeps_constants; /* initializers are mapped already, by an earlier copy */
} ort_body_copy;

/* Can it be copied? Constants must be at hand; with `once` bodies inside move to the copy, else
 * there must be none. */
bool ort_body_is_copyable(const ort_graph *body, bool once);
/* Nodes are added at the end of the order; operators are resolved as in the body, facts are not
 * known yet. Bodies inside of the body move: it is dead afterwards. */
ort_status ort_body_copy_nodes(const ort_body_copy *copy, ort_error *err);

#endif
