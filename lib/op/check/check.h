/* check.h - the parts of the model check (check.c): nodes against their operator rows. */
#ifndef ORT_OP_CHECK_CHECK_H
#define ORT_OP_CHECK_CHECK_H

#include "base/findings.h"
#include "base/hashmap.h"
#include "op/op.h"

/* Arity, attributes, types of a node whose operator is known. Facts must have been inferred. */
void ort_check_node(const ort_graph *graph, const ort_node *node, const ort_op *op,
                    ort_findings *findings);
/* check_value.c: numbers of a node that run here and that others refuse or misread. divisors, empty
 * at first, is kept from node to node: each constant is read once. */
void ort_check_values(const ort_graph *graph, const ort_node *node, const ort_op *op,
                      ort_arena *arena, ort_hashmap *divisors, ort_findings *findings);
/* "ints", for a message. */
const char *ort_check_type_name(ort_attr_type type);
/* The newest version of a domain that is known here. */
int64_t ort_check_newest(const char *domain);
/* Why nobody has this operator: unknown (with the nearest name), too old, removed, domain not
 * imported. */
void ort_check_unknown(const ort_graph *graph, const ort_node *node, const ort_registry *registry,
                       ort_findings *findings);
/* check_newer.c: ORT_ERROR_MODEL for a newer IR or opset than is known, with the versions. */
ort_status ort_check_newer(const ort_model *model, ort_error *err);
/* check_message.c: the model's message as it was read, whatever was changed since. Nothing where
 * the model comes from no file. What it finds wrong need not keep a session from running. */
ort_status ort_check_message(const ort_model *model, ort_findings *findings, ort_error *err);
/* check_prepare.c: whether each node can be prepared for runs, as a session would. Facts must have
 * been inferred, and nothing else be wrong. */
ort_status ort_check_prepare(const ort_graph *graph, ort_findings *findings, ort_error *err);

/* check_whole.c: everything that ort_model_check finds, as one error. Infers the model on the way;
 * the second on a copy of it. */
ort_status ort_check_whole(ort_model *model, const ort_registry *registry, ort_error *err);
ort_status ort_check_copy(const ort_model *model, const ort_registry *registry, ort_error *err);

#endif
