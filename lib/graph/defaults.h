/* defaults.h - inputs with a default value. A caller may override a default, so it is no constant;
 * it is hidden while a graph is inferred and rewritten, which would take it for one, and restored
 * afterwards.
 */
#ifndef ORT_GRAPH_DEFAULTS_H
#define ORT_GRAPH_DEFAULTS_H

#include "graph/graph.h"

typedef struct ort_hidden_default {
    ort_id value; /* an input of the main graph */
    const ort_tensor *tensor;
} ort_hidden_default;
typedef struct ort_hidden_defaults { /* all zero is valid */
    ORT_VEC(ort_hidden_default) list;
} ort_hidden_defaults;

ort_status ort_defaults_hide(ort_graph *graph, ort_hidden_defaults *hidden, ort_error *err);
/* Give the defaults back to those values that are still inputs, and free the list. */
void ort_defaults_restore(ort_graph *graph, ort_hidden_defaults *hidden);

#endif
