/* gradient.h - differentiation: Gradient nodes of ai.onnx.preview.training, and what their rules
 * are written with. Rules emit ONNX operators of the model's own opset (emit/emit.h).
 */
#ifndef ORT_GRADIENT_GRADIENT_H
#define ORT_GRADIENT_GRADIENT_H

#include "emit/emit.h"

#define ORT_GRAD_TRAINING "ai.onnx.preview.training"
#define ORT_GRAD_MIN_OPSET 12 /* of ai.onnx: the release that brought Gradient */

/* What a gradient is formed with: ort_emit.tape. All zero is valid. */
typedef struct ort_tape {
    ORT_VEC(ort_node *) nodes; /* differentiated, producers first */
    ORT_VEC(uint8_t) active;   /* by value: depends on xs through floating-point values */
    ORT_VEC(ort_id) sums;      /* by value: its gradient so far, or ORT_ID_NONE */
} ort_tape;

/* How to differentiate one operator of ai.onnx. One of the fields after op_type is set. */
typedef struct ort_grad_rule {
    const char *op_type;
    /* Gradients of inputs 0 to 2 as texts (emit/notation.h) of g (gradient of output 0), y
     * (output 0), a b c (the inputs) and attributes; broadcasting is undone by the caller. */
    const char *slope[3];
    /* The same for input 0 alone, in its very shape: the operator doesn't broadcast. */
    const char *whole;
    /* Output 0 as a text of a b c and attributes: the operator is differentiated as that. */
    const char *same;
    /* Emits the operator as others: fills outputs[i] for i < node->output_count. */
    void (*expand)(ort_emit *g, const ort_node *node, ort_id *outputs);
    /* Adds to the gradients of the node's inputs. */
    void (*back)(ort_emit *g, const ort_node *node);
    bool zero; /* constant wherever it is differentiable */
} ort_grad_rule;

/* expansion.c: the Gradient nodes of a graph, its bodies not, become the nodes that compute them;
 * *count is raised by how many did. */
ort_status ort_gradient_expand(ort_graph *graph, int *count, ort_error *err);

/* gradient_rules.c: the rule of (domain, op_type), or NULL. */
const ort_grad_rule *ort_grad_find_rule(const ort_node *node);
/* Rows of the families, each ended by one without a name. */
extern const ort_grad_rule ort_grad_elementwise[], ort_grad_algebra[], ort_grad_moves[],
    ort_grad_windows[], ort_grad_norms[];

/* ---- gradients of values (gradient_tape.c) */

/* May a gradient pass through a value of this type? Integers, booleans and strings end a path;
 * what else isn't a float of 16 to 64 bits is refused. */
typedef enum ort_grad_passage {
    ORT_GRAD_PASSES,
    ORT_GRAD_ENDS,
    ORT_GRAD_UNCLEAR
} ort_grad_passage;
ort_grad_passage ort_grad_passage_of(const ort_type *type);
/* The value is one to differentiate by, or depends on one. */
void ort_grad_set_variable(ort_emit *g, ort_id value);
/* Put a node on the tape when a gradient may pass through it; producers come before readers.
 * replaced: filled with what stands for its outputs when it is differentiated as other operators;
 * NULL for emitted nodes, which have rules of their own. */
void ort_grad_record(ort_emit *g, ort_node *node, ort_id *replaced);
/* Ones like y, and the tape backwards. */
void ort_grad_run_back(ort_emit *g, ort_id y);
/* The gradient of a value so far, or ORT_ID_NONE. */
ort_id ort_grad_sum(const ort_emit *g, ort_id value);

/* Does anyone want the gradient of input `slot`? */
bool ort_grad_wants(const ort_emit *g, const ort_node *node, int slot);
/* Gradient of output `slot`, or ORT_ID_NONE when nothing came back to it. */
ort_id ort_grad_of(const ort_emit *g, const ort_node *node, int slot);
/* The input has another contribution to its gradient, of exactly its shape. Nothing when the
 * gradient isn't wanted. */
void ort_grad_add(ort_emit *g, const ort_node *node, int slot, ort_id value);
/* Output 0 of the node as that of a text of a b c (its inputs) and attributes. */
static inline ort_id ort_grad_same(ort_emit *g, const ort_node *node, const char *text)
{
    return ort_emit_formula(g, text, "a b c", node->inputs[0], ort_edit_input(node, 1),
                            ort_edit_input(node, 2));
}
/* A text of a gradient: of g (gradient of output 0), y (output 0), a b c and attributes. */
ort_id ort_grad_text(ort_emit *g, const ort_node *node, const char *text);
/* The same for a value of the shape that all inputs broadcast to: summed to this input's. */
void ort_grad_add_summed(ort_emit *g, const ort_node *node, int slot, ort_id value);

#endif
