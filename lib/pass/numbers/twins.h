/* twins.h - rebuilds nodes so that they compute in another element type, while the nodes around
 * them keep theirs.
 *
 *     x:from -> Op -> y:from     becomes     x -> Cast -> Op -> y':to -> Cast -> y
 *
 * y' is the twin of y. The next node that is rebuilt reads the twin instead of y, so that Casts
 * stay at the borders of regions only. The twin of a constant is a constant, converted once.
 */
#ifndef ORT_PASS_NUMBERS_TWINS_H
#define ORT_PASS_NUMBERS_TWINS_H

#include "base/vec.h"
#include "op/op.h"

typedef struct ort_twins {
    ort_graph *graph;
    ort_dtype from, to;
    int cast_opset;      /* of the Casts; 0: the model's */
    ORT_VEC(ort_id) twin; /* by value id; ORT_ID_NONE or past the end: none so far */
} ort_twins;

void ort_twins_release(ort_twins *twins);
/* Is this value a tensor of the type `from`? */
bool ort_twins_is_from(const ort_twins *twins, ort_id id);
bool ort_twins_has(const ort_twins *twins, ort_id id);
/* The schema of a node that may be rebuilt as far as outputs go: its type follows its inputs (no
 * Cast, no attribute that states a type, no bodies), it has tensors alone, and each output of the
 * type `from` has the type variable of such an input. Else false. */
bool ort_twins_follow(const ort_twins *twins, const ort_node *node, ort_schema *schema);
/* The same node from twins of its inputs, as far as its schema lets them vary, to twins of its
 * outputs, which are cast back. */
ort_status ort_twins_rebuild(ort_twins *twins, ort_node *node, ort_error *err);

#endif
