/* eval.h - the plain interpreter: one node at a time on values, nothing planned.
 *
 * Used where speed doesn't matter: constants folded by a pass (scalar tier), nodes whose inputs are
 * known while a plan is made, single operators. Bodies of control flow are interpreted recursively;
 * what they capture must be constant in the enclosing graph.
 */
#ifndef ORT_OP_EVAL_H
#define ORT_OP_EVAL_H

#include "op/op.h"

/* As ort_node_eval (op.h) for a node that was prepared already: `state` is its prepared state.
 * values: the inputs, then the outputs. */
ort_status ort_node_eval_prepared(const ort_node *node, const void *state,
                                  const ort_fact *const *in_facts, const ort_kernels *k,
                                  ort_pool *pool, ort_value **values, int input_count,
                                  int output_count, ort_error *err);

/* What is known of a value that exists: its type, and its data when it is a tensor. */
ort_fact ort_fact_of_value(const ort_value *value);
/* True when the type is a tensor whose element type and every dim are known; fills *shape. */
bool ort_type_concrete(const ort_type *type, ort_shape *shape);
/* Put the node's label in front of the message in err, unless it is there. Returns `status`. */
ort_status ort_node_wrap_error(const ort_node *node, ort_error *err, ort_status status);

#endif
