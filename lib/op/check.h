/* check.h - the parts of the model check (check.c): nodes against their operator rows. Internal to
 * op/. */
#ifndef ORT_OP_CHECK_H
#define ORT_OP_CHECK_H

#include "base/findings.h"
#include "op/op.h"

/* Arity, attributes, types of a node whose operator is known. Facts must have been inferred. */
void ort_check_node(const ort_graph *graph, const ort_node *node, const ort_op *op,
                    ort_findings *findings);
/* Why nobody has this operator: unknown (with the nearest name), too old, removed, domain not
 * imported. */
void ort_check_unknown(const ort_graph *graph, const ort_node *node, const ort_registry *registry,
                       ort_findings *findings);

#endif
