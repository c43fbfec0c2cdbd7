/* transpose_rules.h - which operators give the same when their data lies permuted, and how the
 * node then reads.
 *
 * A value v lies permuted as v' with v = Transpose(v', perm): v.dim[i] = v'.dim[perm[i]]. A node
 * that computes out from data inputs has a form when some node computes out' from in'.
 */
#ifndef ORT_PASS_TRANSPOSE_RULES_H
#define ORT_PASS_TRANSPOSE_RULES_H

#include "op/edit.h"
#include "pass/pass.h"

typedef struct ort_perm {
    int rank;
    int to[ORT_MAX_RANK];
} ort_perm;

bool ort_perm_equal(const ort_perm *a, const ort_perm *b);
bool ort_perm_is_identity(const ort_perm *p);
ort_perm ort_perm_inverse(const ort_perm *p);
/* Transpose by `first`, then by `second`, as one. */
ort_perm ort_perm_then(const ort_perm *first, const ort_perm *second);
/* Of a Transpose node; false when it can't be known. */
bool ort_perm_of_node(const ort_graph *graph, const ort_node *node, ort_perm *perm);

typedef struct ort_permuted { /* of a node: perms of its data inputs and of its outputs */
    ort_perm in, out;
} ort_permuted;

/* The form of a node one of whose data inputs (or, `forward` false, outputs) lies permuted by
 * `known`; false when there is none. */
bool ort_node_permuted(const ort_graph *graph, const ort_node *node, const ort_perm *known,
                       bool forward, ort_permuted *form);
/* A constant that may be laid anew: nobody else reads it as it is, or it is small. */
bool ort_constant_moves(const ort_graph *graph, ort_id id);
/* Does input `slot` hold data that a form permutes? Scalars lie as they are. */
bool ort_slot_permuted(const ort_graph *graph, const ort_node *node, int slot);
/* The node in its form: data inputs are `inputs` (others as the node has them), results `outputs`
 * (ORT_ID_NONE: not wanted). The node stays. */
ort_status ort_add_permuted(ort_pass_context *c, const ort_node *node, const ort_permuted *form,
                            const ort_id *inputs, const ort_id *outputs, ort_error *err);

#endif
