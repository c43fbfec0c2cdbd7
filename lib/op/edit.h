/* edit.h - changing a graph: whoever adds or replaces nodes comes through here, so that operators
 * are resolved and facts are current at once. Order is restored by ort_edit_finish.
 */
#ifndef ORT_OP_EDIT_H
#define ORT_OP_EDIT_H

#include <string.h>

#include "op/op.h"

typedef struct ort_node_spec {
    const char *domain, *op_type, *name;
    const ort_id *inputs, *outputs;
    int input_count, output_count;
    const ort_attr *attrs; /* shared, not copied: of another node of this model */
    int attr_count;
    const ort_attr *set;   /* attributes set after those; copied */
    int set_count;
    int opset;             /* version that governs it; 0: the model's */
    const char *origin;    /* names of the nodes it replaces, joined by "+"; or NULL */
} ort_node_spec;

/* Attributes to set. */
static inline ort_attr ort_attr_int(const char *name, int64_t number)
{
    return (ort_attr){.name = name, .type = ORT_ATTR_INT, .i = number};
}
static inline ort_attr ort_attr_float(const char *name, double number)
{
    return (ort_attr){.name = name, .type = ORT_ATTR_FLOAT, .f = (float)number};
}
static inline ort_attr ort_attr_string(const char *name, const char *text)
{
    return (ort_attr){.name = name, .type = ORT_ATTR_STRING,
                      .s = {(char *)(uintptr_t)text, strlen(text)}};
}
static inline ort_attr ort_attr_ints(const char *name, const int64_t *list, int count)
{
    return (ort_attr){.name = name, .type = ORT_ATTR_INTS, .ints = list, .count = (size_t)count};
}

/* A new node with the facts of its outputs inferred. The domain joins the model's opset imports
 * when it isn't there (at version 1; ONNX's own domains must be there). */
ort_status ort_edit_add_node(ort_graph *graph, const ort_node_spec *spec, ort_node **node,
                             ort_error *err);
/* The node once more, for some members to be changed: not its origin where it has none. */
ort_node_spec ort_edit_again(const ort_node *node);
/* A node takes the place of `node` and of the one that reads its result (or NULL): they go. What
 * the spec leaves out it has from them: the domain is ai.onnx, the name that of `node`, the one
 * output output 0 of the last, the origin theirs, joined. Absent inputs at its end are dropped. */
ort_status ort_edit_replace(ort_graph *graph, ort_node *node, ort_node *reader,
                            ort_node_spec *spec, ort_error *err);
/* A node of ai.onnx without a name; *result is its one output, new, and may be among the inputs. */
ort_status ort_edit_add_result(ort_graph *graph, const char *op_type, const ort_id *inputs,
                               int input_count, const ort_attr *set, int set_count,
                               ort_id *result, ort_error *err);
/* An attribute set on a node; the facts of its outputs are inferred again. */
ort_status ort_edit_set_attr(ort_graph *graph, ort_node *node, const ort_attr *attr,
                             ort_error *err);
/* An initializer with a copy of the tensor's data (strings included). */
ort_status ort_edit_add_constant(ort_graph *graph, const char *name, const ort_tensor *tensor,
                                 ort_id *id, ort_error *err);
/* What was computed, for as long as the model lives: a large result leaves its storage to it,
 * others are copied. The value is only good to be freed then. */
ort_status ort_edit_keep(ort_graph *graph, ort_value *value, const ort_tensor **kept,
                         ort_error *err);
/* An initializer whose elements the caller fills in: *tensor is a view of them. No strings. */
ort_status ort_edit_new_constant(ort_graph *graph, const char *name, ort_dtype dtype,
                                 const ort_shape *shape, ort_tensor *tensor, ort_id *id,
                                 ort_error *err);
/* The output of a node becomes an initializer of the same name; the node goes when this was the
 * last. The tensor is copied unless it is the value's own fact. */
ort_status ort_edit_make_constant(ort_graph *graph, ort_id value, const ort_tensor *tensor,
                                  ort_error *err);
/* Output 0 of the node is its input `slot`: uses are redirected and the node goes. False when it
 * must stay (it links a graph input or constant, or another graph output, to a graph output). */
bool ort_edit_bypass(ort_graph *graph, ort_node *node, int slot);
/* "a+b" in the model's arena from the origins (or names) of two nodes; NULL when memory is
 * exhausted. */
const char *ort_edit_origin(ort_graph *graph, const ort_node *a, const ort_node *b);
/* Origins of more bytes end in "+...": thousands of nodes may become one. Names that the model
 * follows stay (graph/follow.h). */
#define ORT_EDIT_ORIGIN_BYTES 4096
#define ORT_EDIT_ORIGIN_MORE "+..."
/* What one node stands for: its origin, name or operator. */
const char *ort_edit_origin_of(const ort_node *node);
/* After a batch of edits: restore topological order. */
ort_status ort_edit_finish(ort_graph *graph, ort_error *err);

/* ---- looking around */

/* The node that computes a value, or NULL. */
ort_node *ort_edit_producer(const ort_graph *graph, ort_id value);
/* The only node that reads a value that is neither captured nor a graph output; else NULL. */
ort_node *ort_edit_only_reader(const ort_graph *graph, ort_id value);
/* The constant value of input `slot`, or NULL. */
const ort_tensor *ort_edit_constant(const ort_graph *graph, const ort_node *node, int slot);
/* Is this the operator `op_type` of `domain`, resolved and live? */
static inline bool ort_edit_is(const ort_node *node, const char *domain, const char *op_type)
{
    /* Passes ask this of every node: most answers are in the first letter. */
    return node && node->op_type[0] == op_type[0] && !node->removed && node->op &&
           !strcmp(node->op_type, op_type) && !strcmp(node->op->domain, domain);
}

/* Is it one of these operators, "Add|ms.Gelu", those of com.microsoft behind "ms."? */
bool ort_edit_names(const char *names, size_t length, const ort_op *op);
static inline bool ort_edit_is_any(const ort_node *node, const char *names)
{
    return node && !node->removed && node->op && ort_edit_names(names, strlen(names), node->op);
}
/* An attribute, or else the default of the operator's row, which goes to `own`; NULL: it has
 * neither. */
const ort_attr *ort_edit_attr(const ort_node *node, const char *name, ort_attr *own);
/* Input `slot`; ORT_ID_NONE when it is absent. */
static inline ort_id ort_edit_input(const ort_node *node, int slot)
{
    return slot < node->input_count ? node->inputs[slot] : ORT_ID_NONE;
}

/* Is a list attribute `number` alone, or absent? */
bool ort_fact_ints_are(const ort_node *node, const char *name, int64_t number);

/* ---- what is known of values */

static inline const ort_type *ort_fact_type(const ort_graph *graph, ort_id id)
{
    return &graph->values.data[id]->fact.type;
}
/* The type of a tensor of known rank; NULL: it is none, or ORT_ID_NONE. */
static inline const ort_type *ort_fact_tensor(const ort_graph *graph, ort_id id)
{
    const ort_type *type = id == ORT_ID_NONE ? NULL : ort_fact_type(graph, id);
    return type && type->kind == ORT_TYPE_TENSOR && type->rank >= 0 ? type : NULL;
}
static inline bool ort_dim_is(ort_dim dim, int64_t size)
{
    return ort_dim_known(dim) && dim.size == size;
}
/* -1: not known, or no tensor. */
static inline int ort_type_rank(const ort_type *type)
{
    return type->kind == ORT_TYPE_TENSOR ? type->rank : -1;
}
/* Numbers that scales, shifts and bounds may be of: 16 bits and more. */
static inline bool ort_dtype_is_real(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_DOUBLE || dtype == ORT_DTYPE_FLOAT16 ||
           dtype == ORT_DTYPE_BFLOAT16;
}

/* Is it a tensor of this rank? */
bool ort_fact_ranked(const ort_graph *graph, ort_id id, int rank);
/* Tensors of one rank whose dims certainly are the same. */
bool ort_facts_same_shape(const ort_type *a, const ort_type *b);
/* The same, and of one element type, which is known. */
bool ort_facts_same_type(const ort_type *a, const ort_type *b);
/* A constant, or NULL; and one whose elements are known. */
const ort_tensor *ort_fact_value(const ort_graph *graph, ort_id id);
const ort_tensor *ort_fact_constant(const ort_graph *graph, ort_id id);
/* An axis counted from the front; -1: there is none such. */
static inline int ort_axis_in(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

/* About what a node takes in a file: tags and lengths, names, attributes (bodies not). */
size_t ort_edit_message_bytes(const ort_graph *graph, const ort_node *node);

#endif
