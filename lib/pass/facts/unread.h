/* unread.h - what a rewrite leaves behind. */
#ifndef ORT_PASS_FACTS_UNREAD_H
#define ORT_PASS_FACTS_UNREAD_H

#include "op/edit.h"

/* Takes out the nodes that computed what `gone`, a node that went, read, and what those read, as
 * far as nobody reads their results any more. Followed names (graph/follow.h) go to `into`. */
ort_status ort_unread_sweep(ort_graph *graph, ort_node *into, const ort_node *gone,
                            ort_error *err);
/* The same of the node that computes this value, if nobody reads it. */
ort_status ort_unread_drop(ort_graph *graph, ort_node *into, ort_id value, ort_error *err);

#endif
