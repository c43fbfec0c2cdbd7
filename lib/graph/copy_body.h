/* copy_body.h - copies the nodes of a body into the graph around it: for an If that is inlined, and
 * a Loop that is unrolled.
 */
#ifndef ORT_GRAPH_COPY_BODY_H
#define ORT_GRAPH_COPY_BODY_H

#include "graph/graph.h"

/* How many graphs have a value of each name, counting a graph and all bodies inside of it: a new
 * name must not be one of theirs. The counts are kept up while bodies are copied into the graph; a
 * count of 0 is a name that is no longer used. */
typedef struct ort_name_counts {
    ort_hashmap names;
} ort_name_counts;

/* Count the names of `graph`, if that hasn't been done, without those in the bodies of `node`: its
 * bodies are gone once they are copied. */
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

/* Can the body be copied? Its constants must be at hand. Bodies inside of it move to the copy,
 * which works `once`; to be copied more than once it must contain none. */
bool ort_body_is_copyable(const ort_graph *body, bool once);
/* Add copies of the body's nodes at the end of the graph's order, with the operators that the body
 * found for them; their facts aren't known yet. Bodies inside of the body move to the copies, so
 * that it can't be used afterwards. */
ort_status ort_body_copy_nodes(const ort_body_copy *copy, ort_error *err);

#endif
