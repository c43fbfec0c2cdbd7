/* opset.h - a model rewritten for another version of ai.onnx, up or down.
 *
 * The walk goes version by version; a node takes part where its operator has a new row:
 *
 *   opset 12            12 -> 13                                opset 13
 *   ReduceSum-11  -->   rules of (ReduceSum, 13), up    -->     ReduceSum-13, checked against
 *   axes=[1]            then what the rows say alone            its row
 *
 * What the rows say alone (opset_fit.c): attributes that aren't there any more go when they say
 * what their absence means, defaults that changed are written out, and arity and element types must
 * fit. Rules (opset_rules.c lists the families) are for what rows can't say: an attribute that
 * became an input, a meaning that changed, an operator spelled in older ones. They emit nodes of
 * the version they go to, which take part in the steps that follow.
 *
 * What can't be said in the other version is a blocker: a finding that names the node, the reason
 * and the version that has it. The walk goes on behind one, so that all are listed.
 */
#ifndef ORT_OPSET_OPSET_H
#define ORT_OPSET_OPSET_H

#include "gradient/gradient.h"

#define ORT_OPSET_OLDEST 7 /* nobody runs older ones any more; opset 6 can be left */

/* ort_model_set_opset of ort.h, on a loaded model of any state. */
ort_status ort_model_convert_opset(ort_model *model, const ort_registry *registry, int opset,
                                   bool keep_functions, ort_findings *blockers, int *reach,
                                   ort_error *err);

/* Nodes that come from expanded functions of other versions are rewritten for the model's own.
 * Those that can't be are blockers; they are left as they were. */
ort_status ort_model_settle_opsets(ort_model *model, const ort_registry *registry,
                                   ort_findings *blockers, ort_error *err);

/* ---- functions that are kept (opset_functions.c) */

/* Do all operators in functions mean the same at `opset`? Those that don't are blockers. */
bool ort_opset_functions_stay(const ort_model *model, const ort_registry *registry, int opset,
                              ort_findings *blockers);
ort_status ort_opset_restamp_functions(ort_model *model, int opset, ort_error *err);

/* ---- for rules */

enum { ORT_OPSET_REASONS = 6 };

/* One node on its way over one border between versions. */
typedef struct ort_opset_step {
    ort_emit g;       /* emits nodes of the version that the step goes to, in node's graph */
    ort_node *node;
    const ort_op *from, *to; /* rows; NULL: the operator isn't there */
    int version;       /* the newer of the two */
    int goal;          /* where the walk goes */
    bool up;
    bool replaced;     /* the node went: others stand for it */
    size_t first;      /* nodes emitted for it have ids from here on */
    int blocked;       /* reasons so far; the first ones are kept, in the model's arena */
    const char *reasons[ORT_OPSET_REASONS];
} ort_opset_step;

/* What is to be done when a node crosses the border below `since`, besides what rows say. */
typedef struct ort_opset_rule {
    const char *op_type;
    int since;
    void (*up)(ort_opset_step *s);   /* or NULL */
    void (*down)(ort_opset_step *s); /* or NULL */
    /* Instead, what stands for the node: a text (emit/notation.h) of a b c d, its inputs, and of
     * attributes. */
    const char *text_up, *text_down;
} ort_opset_rule;

/* Rows of the families, each ended by one without a name. Of several rows for one border all are
 * applied, in the order of opset_rules.c. */
extern const ort_opset_rule ort_opset_axes[], ort_opset_broadcast[], ort_opset_windows[],
    ort_opset_norms[], ort_opset_types[], ort_opset_expand[], ort_opset_attention[],
    ort_opset_legacy[];
/* Apply the rules of this step; then, unless the node was replaced, attributes that became inputs
 * or were some (opset_moves.c). */
void ort_opset_apply_rules(ort_opset_step *s);
void ort_opset_move(ort_opset_step *s);
/* Does one of either kind apply to this operator at the border below `version`? */
bool ort_opset_has_rule(const char *op_type, int version, bool up);
bool ort_opset_has_move(const char *op_type, int version);
/* What the rows say alone: the node as one of `to`. */
void ort_opset_fit(ort_opset_step *s);
/* Types only: of a node that a rule emitted. */
void ort_opset_check_types(ort_opset_step *s, const ort_node *node, const ort_op *row);

/* Reports that the node can't cross: "node 'x' (Op): reason". The version is added when down. */
void ort_opset_block(ort_opset_step *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- edits of the node in place */

void ort_opset_drop(ort_opset_step *s, const char *attr);
void ort_opset_set_int(ort_opset_step *s, const char *attr, int64_t number);
void ort_opset_set_ints(ort_opset_step *s, const char *attr, const int64_t *numbers, int count);
void ort_opset_set_string(ort_opset_step *s, const char *attr, const char *text);
void ort_opset_set(ort_opset_step *s, const ort_attr *attr);
/* Input `slot` becomes `value`; slots between are absent, absent ones at the end go. */
void ort_opset_set_input(ort_opset_step *s, int slot, ort_id value);
void ort_opset_rename(ort_opset_step *s, const char *op_type);
/* The node computes output `slot` as another value, which is returned; who reads the old one is to
 * be given what is made from that (ort_opset_give). */
ort_id ort_opset_take_output(ort_opset_step *s, int slot, const ort_type *type);
/* `value` is known as `out` from here on, which nobody computes. */
void ort_opset_give(ort_opset_step *s, ort_id out, ort_id value);
/* The node goes; values[i] stands for its output i. */
void ort_opset_replace(ort_opset_step *s, const ort_id *values, int count);
/* The same with output 0 as a text of a b c d, the node's inputs, and its attributes. */
void ort_opset_replace_text(ort_opset_step *s, const char *text);
static inline void ort_opset_replace_by(ort_opset_step *s, ort_id value)
{
    ort_opset_replace(s, &value, 1);
}

/* ---- what is known of the node */

static inline ort_id ort_opset_in(const ort_opset_step *s, int slot)
{
    return ort_edit_input(s->node, slot);
}
static inline bool ort_opset_has_output(const ort_opset_step *s, int slot)
{
    return slot < s->node->output_count && s->node->outputs[slot] != ORT_ID_NONE;
}
const ort_tensor *ort_opset_constant(const ort_opset_step *s, int slot); /* or NULL */
/* All of a constant integer input; false when it isn't one, or has more than `capacity`. */
bool ort_opset_ints(const ort_opset_step *s, int slot, int64_t *numbers, int capacity, int *count);
int ort_opset_rank(const ort_opset_step *s, ort_id value); /* -1: not known */
ort_dtype ort_opset_dtype(const ort_opset_step *s, ort_id value);
/* Size of dim `axis` of a value; -1 when not known. */
int64_t ort_opset_dim(const ort_opset_step *s, ort_id value, int axis);
/* New constants. */
/* 0, 1, ... as many as x has along `axis`: int64, one dimension. */
ort_id ort_opset_positions(ort_opset_step *s, ort_id x, int axis);
ort_id ort_opset_add_floats(ort_opset_step *s, const float *numbers, int count);

#endif
