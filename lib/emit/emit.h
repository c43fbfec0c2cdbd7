/* emit.h - ONNX operators written into a graph, each inferred at once, in the form that one opset
 * has: what rules of differentiation and of opset conversion are written with.
 *
 * Failure sticks: after the first, every call below does nothing and gives ORT_ID_NONE, so that a
 * rule reads as the formula it is; whoever runs the rule returns the status. Values are ids of the
 * graph; "like x" means of x's shape as it is at run time.
 */
#ifndef ORT_EMIT_EMIT_H
#define ORT_EMIT_EMIT_H

#include "op/edit.h"

typedef struct ort_emit {
    ort_graph *graph;
    const ort_node *at;     /* the node whose rule runs; attributes in formulas are its */
    const char *stem;       /* in front of every new name; NULL: new nodes have none */
    const char *origin;     /* of every new node; or NULL */
    const char *purpose;    /* what is emitted, for messages: "gradient" */
    /* What its node can't be, said behind the node's name: "differentiated". NULL: whoever runs the
     * rule names the node. */
    const char *refused;
    int opset;              /* of ai.onnx */
    /* The version in which an operator that began at `since` may be written, 0 when it may not;
     * NULL: the model's imports say. */
    int (*opset_of)(void *arg, const char *domain, const char *op_type, int since);
    void *opset_arg;
    int made;               /* nodes emitted so far */
    int limit;              /* how many may be: chains of Gradients grow exponentially */
    ort_status status;
    ort_error *err;
    struct ort_tape *tape;  /* gradient/gradient.h: of a gradient; else NULL */
} ort_emit;

/* For a pass: nodes without names, at the opset of the model. */
ort_emit ort_emit_to(ort_graph *graph, ort_error *err);

/* ORT_ERROR_UNSUPPORTED with the name of the node whose rule runs. */
void ort_emit_refuse(ort_emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ort_emit_fail_memory(ort_emit *e);

/* ---- nodes */

/* One output of an operator of ai.onnx. Lists in attributes are copied. */
ort_id ort_emit_op(ort_emit *e, const char *op_type, const ort_id *inputs, int input_count,
                   const ort_attr *attrs, int attr_count);
/* All of them. */
void ort_emit_ops(ort_emit *e, const char *op_type, const ort_id *inputs, int input_count,
                  const ort_attr *attrs, int attr_count, ort_id *outputs, int output_count);

/* The same with a value of the graph, which nothing computes any more, as its output. */
void ort_emit_op_as(ort_emit *e, const char *op_type, const ort_id *inputs, int input_count,
                    const ort_attr *attrs, int attr_count, ort_id output);

static inline ort_id ort_emit_op1(ort_emit *e, const char *op_type, ort_id a)
{
    return ort_emit_op(e, op_type, &a, 1, NULL, 0);
}
static inline ort_id ort_emit_op2(ort_emit *e, const char *op_type, ort_id a, ort_id b)
{
    return ort_emit_op(e, op_type, (const ort_id[]){a, b}, 2, NULL, 0);
}
static inline ort_id ort_emit_op3(ort_emit *e, const char *op_type, ort_id a, ort_id b, ort_id c)
{
    return ort_emit_op(e, op_type, (const ort_id[]){a, b, c}, 3, NULL, 0);
}

/* Type of a value; one of unknown kind for ORT_ID_NONE. */
const ort_type *ort_emit_type(const ort_emit *e, ort_id value);
/* Rank of a value; refuses (and gives 0) when it isn't known. */
int ort_emit_rank(ort_emit *e, ort_id value);
/* Attribute `axis` of the node as 0 <= axis < rank; refuses (and gives 0) what lies outside. */
int ort_emit_axis(ort_emit *e, const ort_node *node, int rank);

/* A constant with a copy of the tensor's data. */
ort_id ort_emit_tensor(ort_emit *e, const ort_tensor *tensor);
/* A scalar of the element type of `like`, or of this one. */
ort_id ort_emit_number(ort_emit *e, ort_id like, double number);
ort_id ort_emit_number_of(ort_emit *e, ort_dtype dtype, double number);
/* int64: a scalar, and a list. */
ort_id ort_emit_int(ort_emit *e, int64_t number);
ort_id ort_emit_ints(ort_emit *e, const int64_t *numbers, int count);

ort_id ort_emit_cast(ort_emit *e, ort_id value, ort_dtype dtype); /* itself when it has the type */
ort_id ort_emit_cast_like(ort_emit *e, ort_id value, ort_id like);
ort_id ort_emit_shape(ort_emit *e, ort_id value);                 /* int64 list */
ort_id ort_emit_dims(ort_emit *e, ort_id value, int first, int last); /* dims [first, last) */
ort_id ort_emit_dim(ort_emit *e, ort_id value, int axis); /* the same of one, read at run time */
ort_id ort_emit_concat(ort_emit *e, const ort_id *lists, int count);  /* along axis 0 */
ort_id ort_emit_zeros(ort_emit *e, ort_id like);
ort_id ort_emit_expand(ort_emit *e, ort_id value, ort_id like); /* broadcast to like's shape */
ort_id ort_emit_reshape_to(ort_emit *e, ort_id value, const int64_t *dims, int count);
ort_id ort_emit_reshape_like(ort_emit *e, ort_id value, ort_id like);
ort_id ort_emit_unsqueeze(ort_emit *e, ort_id value, const int64_t *axes, int count);
ort_id ort_emit_squeeze(ort_emit *e, ort_id value, const int64_t *axes, int count);
ort_id ort_emit_transpose(ort_emit *e, ort_id value, const int64_t *perm, int count);
/* The transpose of broadcasting `like` to the shape of `value`: sums over what was repeated. */
ort_id ort_emit_sum_to(ort_emit *e, ort_id value, ort_id like);
/* The flat indices of x's elements, in x's shape. */
ort_id ort_emit_iota(ort_emit *e, ort_id x);
/* Zeros like x with value[i] added at the flat index indices[i]. repeated: an index may occur
 * more than once. */
ort_id ort_emit_scatter(ort_emit *e, ort_id x, ort_id indices, ort_id value, bool repeated);
/* Refuses when the opset is older than what `what` needs. */
bool ort_emit_need_opset(ort_emit *e, int opset, const char *what);

/* ---- nodes of texts (write.c, formula.c) */

/* The version of an operator that began at `since` in which a node of it is written. */
int ort_emit_opset(ort_emit *e, const char *domain, const char *op_type, int since);
/* A node as the spec says, its outputs new ones unless it has them. */
void ort_emit_spec(ort_emit *e, ort_node_spec *spec, ort_id *outputs, int output_count);
/* A text (notation.h), its last value. names: of what follows: values, "$n" numbers (double),
 * "$list[]" lists (const int64_t *, int), as "x y $n $axes[]". Any other $word is an attribute of
 * the node whose rule runs, or its default. Numbers that no input gives a type have that of the
 * first value. */
ort_id ort_emit_formula(ort_emit *e, const char *text, const char *names, ...);

#endif
