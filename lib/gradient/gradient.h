/* gradient.h - what rules of differentiation are written with. Internal to pass/.
 *
 * An ort_grad is one Gradient node being expanded. Rules emit ONNX operators of the model's own
 * opset through it, each inferred at once. Failure sticks: after the first, every call below does
 * nothing and gives ORT_ID_NONE, so that a rule reads as the formula it is; gradient.c returns the
 * status. Values are ids of the graph; "like x" means of x's shape as it is at run time.
 */
#ifndef ORT_GRADIENT_GRADIENT_H
#define ORT_GRADIENT_GRADIENT_H

#include "op/edit.h"

#define ORT_GRAD_TRAINING "ai.onnx.preview.training"
#define ORT_GRAD_MIN_OPSET 12 /* of ai.onnx: the release that brought Gradient */

typedef struct ort_grad {
    ort_graph *graph;
    const ort_node *target; /* the Gradient node */
    const ort_node *at;     /* the node whose rule runs; attributes in formulas are its */
    const char *stem;       /* in front of every new name */
    const char *purpose;    /* what is emitted, for messages; NULL: a gradient */
    int opset;              /* of ai.onnx */
    int made;               /* nodes emitted so far */
    int limit;              /* how many may be: chains of Gradients grow exponentially */
    ort_status status;
    ort_error *err;
    ORT_VEC(ort_node *) tape; /* differentiated nodes, producers first */
    ORT_VEC(uint8_t) active;  /* by value: depends on xs through floating-point values */
    ORT_VEC(ort_id) sums;     /* by value: its gradient so far, or ORT_ID_NONE */
} ort_grad;

/* How to differentiate one operator of ai.onnx. One of the fields after op_type is set. */
typedef struct ort_grad_rule {
    const char *op_type;
    /* Gradients of inputs 0 to 2 as formulas (gradient_formula.c) of g (gradient of output 0), y
     * (output 0), a b c (the inputs) and attributes; broadcasting is undone by the caller. */
    const char *slope[3];
    /* Output 0 as a formula of a b c and attributes: the operator is differentiated as that. */
    const char *same;
    /* Emits the operator as others: fills outputs[i] for i < node->output_count. */
    void (*expand)(ort_grad *g, const ort_node *node, ort_id *outputs);
    /* Adds to the gradients of the node's inputs. */
    void (*back)(ort_grad *g, const ort_node *node);
    bool zero; /* constant wherever it is differentiable */
} ort_grad_rule;

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
void ort_grad_set_variable(ort_grad *g, ort_id value);
/* Put a node on the tape when a gradient may pass through it; producers come before readers.
 * replaced: filled with what stands for its outputs when it is differentiated as other operators;
 * NULL for emitted nodes, which have rules of their own. */
void ort_grad_record(ort_grad *g, ort_node *node, ort_id *replaced);
/* Ones like y, and the tape backwards. */
void ort_grad_run_back(ort_grad *g, ort_id y);
/* The gradient of a value so far, or ORT_ID_NONE. */
ort_id ort_grad_sum(const ort_grad *g, ort_id value);

/* Does anyone want the gradient of input `slot`? */
bool ort_grad_wants(const ort_grad *g, const ort_node *node, int slot);
/* Gradient of output `slot`, or ORT_ID_NONE when nothing came back to it. */
ort_id ort_grad_of(const ort_grad *g, const ort_node *node, int slot);
/* The input has another contribution to its gradient, of exactly its shape. Nothing when the
 * gradient isn't wanted. */
void ort_grad_add(ort_grad *g, const ort_node *node, int slot, ort_id value);
/* The same for a value of the shape that all inputs broadcast to: summed to this input's. */
void ort_grad_add_summed(ort_grad *g, const ort_node *node, int slot, ort_id value);
/* ORT_ERROR_UNSUPPORTED with the name of the node whose rule runs. */
void ort_grad_refuse(ort_grad *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ort_grad_fail_memory(ort_grad *g);

/* ---- emitting operators (gradient_emit.c) */

/* One output of an operator of ai.onnx. Lists in attributes are copied. */
ort_id ort_grad_op(ort_grad *g, const char *op_type, const ort_id *inputs, int input_count,
                   const ort_attr *attrs, int attr_count);
/* All of them. */
void ort_grad_ops(ort_grad *g, const char *op_type, const ort_id *inputs, int input_count,
                  const ort_attr *attrs, int attr_count, ort_id *outputs, int output_count);

static inline ort_id ort_grad_op1(ort_grad *g, const char *op_type, ort_id a)
{
    return ort_grad_op(g, op_type, &a, 1, NULL, 0);
}
static inline ort_id ort_grad_op2(ort_grad *g, const char *op_type, ort_id a, ort_id b)
{
    return ort_grad_op(g, op_type, (const ort_id[]){a, b}, 2, NULL, 0);
}
static inline ort_id ort_grad_op3(ort_grad *g, const char *op_type, ort_id a, ort_id b, ort_id c)
{
    return ort_grad_op(g, op_type, (const ort_id[]){a, b, c}, 3, NULL, 0);
}
static inline ort_attr ort_grad_int_attr(const char *name, int64_t number)
{
    return (ort_attr){.name = name, .type = ORT_ATTR_INT, .i = number};
}
static inline ort_attr ort_grad_ints_attr(const char *name, const int64_t *numbers, int count)
{
    return (ort_attr){
        .name = name, .type = ORT_ATTR_INTS, .ints = numbers, .count = (size_t)count};
}

/* Type of a value; one of unknown kind for ORT_ID_NONE. */
const ort_type *ort_grad_type(const ort_grad *g, ort_id value);
/* Rank of a value; refuses (and gives 0) when it isn't known. */
int ort_grad_rank(ort_grad *g, ort_id value);
/* Attribute `axis` of the node as 0 <= axis < rank; refuses (and gives 0) what lies outside. */
int ort_grad_axis(ort_grad *g, const ort_node *node, int64_t fallback, int rank);
/* Input `slot` of a node, ORT_ID_NONE when absent. */
static inline ort_id ort_grad_in(const ort_node *node, int slot)
{
    return slot < node->input_count ? node->inputs[slot] : ORT_ID_NONE;
}

/* A scalar of the element type of `like`. */
ort_id ort_grad_number(ort_grad *g, ort_id like, double number);
/* int64: a scalar, and a list. */
ort_id ort_grad_int(ort_grad *g, int64_t number);
ort_id ort_grad_ints(ort_grad *g, const int64_t *numbers, int count);

ort_id ort_grad_cast(ort_grad *g, ort_id value, ort_dtype dtype); /* itself when it has the type */
ort_id ort_grad_shape(ort_grad *g, ort_id value);                 /* int64 list */
ort_id ort_grad_dims(ort_grad *g, ort_id value, int first, int last); /* dims [first, last) */
ort_id ort_grad_concat(ort_grad *g, const ort_id *lists, int count);  /* along axis 0 */
ort_id ort_grad_count(ort_grad *g, ort_id value, ort_id like); /* elements, as a number of like */
ort_id ort_grad_zeros(ort_grad *g, ort_id like);
ort_id ort_grad_expand(ort_grad *g, ort_id value, ort_id like); /* broadcast to like's shape */
ort_id ort_grad_reshape(ort_grad *g, ort_id value, ort_id shape);
ort_id ort_grad_reshape_like(ort_grad *g, ort_id value, ort_id like);
ort_id ort_grad_unsqueeze(ort_grad *g, ort_id value, const int64_t *axes, int count);
ort_id ort_grad_transpose(ort_grad *g, ort_id value, const int64_t *perm, int count);
/* A reduction with keepdims, over these axes (none: all). */
ort_id ort_grad_reduce(ort_grad *g, const char *op_type, ort_id value, const int64_t *axes,
                       int count, bool keepdims);
/* The same over the axes in a value (ORT_ID_NONE: all). */
ort_id ort_grad_reduce_by(ort_grad *g, const char *op_type, ort_id value, ort_id axes,
                          bool keepdims);
/* The transpose of broadcasting `like` to the shape of `value`: sums over what was repeated. */
ort_id ort_grad_sum_to(ort_grad *g, ort_id value, ort_id like);
/* The flat indices of x's elements, in x's shape. */
ort_id ort_grad_iota(ort_grad *g, ort_id x);
/* Zeros like x with value[i] added at the flat index indices[i]. repeated: an index may occur
 * more than once. */
ort_id ort_grad_scatter(ort_grad *g, ort_id x, ort_id indices, ort_id value, bool repeated);
/* Refuses when the opset is older than what `what` needs. */
bool ort_grad_need_opset(ort_grad *g, int opset, const char *what);

/* ---- formulas (gradient_formula.c)
 *
 *   expression   + - * / and unary minus, parentheses, numbers
 *   Name(e, ...) an operator of ai.onnx without attributes
 *   letter       the value with that letter in `letters`
 *   word         a float attribute of the node whose rule runs, or its default
 *
 * letters: one letter per value that follows; numbers have the element type of the first value. */
ort_id ort_grad_formula(ort_grad *g, const char *text, const char *letters, ...);

#endif
