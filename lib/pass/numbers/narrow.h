/* narrow.h - a float model stored and computed in 16 bits where its operators allow it. */
#ifndef ORT_PASS_NUMBERS_NARROW_H
#define ORT_PASS_NUMBERS_NARROW_H

#include "op/op.h"

/* ort_model_narrow of ort.h, on a checked model of any state; infers. */
ort_status ort_graph_narrow(ort_model *model, const ort_registry *registry,
                            const ort_narrow_options *options, ort_error *err);

/* Of one graph, inferred, the nodes that are wanted and suit. wanted NULL: all. */
typedef bool ort_narrow_wanted(void *arg, const ort_node *node);
ort_status ort_graph_narrow_nodes(ort_graph *graph, const ort_narrow_options *options,
                                  ort_narrow_wanted *wanted, void *arg, ort_error *err);

#endif
