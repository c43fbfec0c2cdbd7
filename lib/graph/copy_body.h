/* copy_body.h - the nodes of a body once more in the graph around it: If inlined, Loop unrolled. */
#ifndef ORT_GRAPH_COPY_BODY_H
#define ORT_GRAPH_COPY_BODY_H

#include "graph/graph.h"

/* All graphs of a model: new names must not shadow one of another body, nor be shadowed. */
typedef struct ort_graph_list {
    ORT_VEC(ort_graph *) graphs;
} ort_graph_list;

bool ort_graph_list_fill(ort_graph_list *list, const ort_model *model);
void ort_graph_list_release(ort_graph_list *list);

typedef struct ort_body_copy {
    ort_graph *graph, *body;      /* body->parent is graph */
    const ort_graph_list *graphs; /* of the model */
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
