/* transpose_rules.h - which operators can compute on data that lies permuted, and what such a node
 * looks like.
 *
 * A value v lies permuted as v' with v = Transpose(v', perm): v.dim[i] = v'.dim[perm[i]]. Let a
 * node compute `out` from its data inputs `in`. It has a form when there is a node that computes
 * out' from in'.
 */
#ifndef ORT_PASS_TRANSPOSE_TRANSPOSE_RULES_H
#define ORT_PASS_TRANSPOSE_TRANSPOSE_RULES_H

#include "pass/facts/perm.h"
#include "pass/pass.h"

typedef struct ort_permuted { /* of a node: perms of its data inputs and of its outputs */
    ort_perm in, out;
    int extra; /* nodes that the form adds, on lists of numbers */
} ort_permuted;

typedef struct ort_perm_hints { /* what the other side of a node would like to lie permuted by */
    const ort_perm *perms;
    size_t count;
} ort_perm_hints;

/* The form of a node one of whose data inputs (or, `forward` false, outputs) lies permuted by
 * `known`; false when there is none. Where axes come or go the other side has a choice: the first
 * hint that fits. */
bool ort_node_permuted(const ort_graph *graph, const ort_node *node, const ort_perm *known,
                       bool forward, const ort_perm_hints *hints, ort_permuted *form);
/* Does input `slot` hold data that a form permutes? Scalars lie as they are. */
bool ort_slot_permuted(const ort_graph *graph, const ort_node *node, int slot);
/* Likewise output `slot`. */
bool ort_output_permuted(const ort_node *node, int slot);
/* The node in its form: data inputs are `inputs` (others as the node has them), results `outputs`
 * (ORT_ID_NONE: not wanted). The node may be removed by now. */
ort_status ort_add_permuted(ort_pass_context *c, const ort_node *node, const ort_permuted *form,
                            const ort_id *inputs, const ort_id *outputs, ort_error *err);

#endif
