/* layout_edit.h - what passes do that put regions of a graph into a blocked layout: each value of a
 * region gets a second one beside it, its form in the layout. */
#ifndef ORT_PROVIDER_CPU_LAYOUT_EDIT_H
#define ORT_PROVIDER_CPU_LAYOUT_EDIT_H

#include "pass/pass.h"

enum { ORT_LAYOUT_INPUTS = 64 }; /* of a node in a layout; others stay outside */

typedef struct ort_layout {
    ort_graph *graph;
    int64_t block;
    ort_id *blocked_of; /* by value id at the start: its form in the layout; NONE: not made yet */
} ort_layout;

/* The list lies in `space`. */
ort_status ort_layout_begin(ort_layout *l, ort_graph *graph, int64_t block, ort_arena *space,
                            ort_error *err);
/* A value named after another. */
ort_id ort_layout_value(ort_layout *l, ort_id like);
/* A node of our domain with those attributes of `from` (NULL: none) that it has too, the block,
 * without which shapes can't be inferred, and `extra`, which last as long as the graph. */
ort_status ort_layout_node(ort_layout *l, const ort_node *from, const char *op_type,
                           const ort_id *inputs, int input_count, ort_id output,
                           const ort_attr *extra, int extra_count, ort_error *err);
/* The form of a value, made by a node of type `convert` where nobody has made it. */
ort_status ort_layout_input(ort_layout *l, ort_id value, const char *convert, ort_id *blocked,
                            ort_error *err);

#endif
