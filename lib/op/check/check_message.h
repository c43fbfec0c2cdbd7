/* check_message.h - the checks of a model's message as it stands in the file: what reading it into
 * a graph loses, since sessions can do without. Internal to op/check/.
 *
 * What both onnx.checker and onnxruntime refuse is an error; what one of them refuses while the
 * other runs it is a warning, unless the file contradicts itself. */
#ifndef ORT_OP_CHECK_CHECK_MESSAGE_H
#define ORT_OP_CHECK_CHECK_MESSAGE_H

#include "base/findings.h"
#include "base/hashmap.h"
#include "graph/graph.h"
#include "io/message.h"

/* Names that are known at a point of a graph, those of the graphs around it included. */
typedef struct ort_name_scope {
    ort_hashmap names;
    const struct ort_name_scope *outer;
} ort_name_scope;

typedef struct ort_message_check {
    const ort_model *model;
    ort_findings *findings;
    const ort_name_scope *scope; /* of the node that is looked at */
    const char *node;            /* "node 'x' (If)" */
    ort_function_index functions;
    bool in_function;
    ort_status status; /* why the check stopped: no memory, no time */
    ort_error *err;
} ort_message_check;

/* check_message_graph.c; place: "in a body of node 'x' (If): ", or "". */
void ort_check_message_graph(ort_message_check *c, const Onnx__GraphProto *graph,
                             const char *place);
/* The nodes of a graph or a function, with what is known at its begin in `scope`, which gains the
 * values they define. */
void ort_check_nodes(ort_message_check *c, Onnx__NodeProto *const *nodes, size_t count,
                     ort_name_scope *scope, bool is_main, const char *place);
/* The graphs in an attribute of c->node, or of a function. */
void ort_check_bodies(ort_message_check *c, const Onnx__AttributeProto *attr);

/* check_function.c */
void ort_check_function(ort_message_check *c, const Onnx__FunctionProto *f);

/* check_attribute.c: all but its graphs; place: "node 'x' (If): " behind the one above. */
void ort_check_attribute(ort_message_check *c, const Onnx__AttributeProto *attr,
                         const char *place);

/* check_tensor.c */
void ort_check_tensor(ort_message_check *c, const Onnx__TensorProto *tensor, const char *place);
void ort_check_sparse(ort_message_check *c, const Onnx__SparseTensorProto *sparse,
                      const char *place);

/* check_names.c */
bool ort_check_is_known(const ort_name_scope *scope, const char *name);
/* The scope gains a name, unless that is NULL or "". */
void ort_check_know(ort_message_check *c, ort_name_scope *scope, const char *name);
/* A set of names gains one; false when it was there already. */
bool ort_check_first(ort_message_check *c, ort_hashmap *seen, const char *name);

/* check_type.c; is_main: of the main graph, whose inputs and outputs need names and types. */
typedef enum ort_value_role { ORT_ROLE_INPUT, ORT_ROLE_OUTPUT, ORT_ROLE_INSIDE } ort_value_role;
void ort_check_value_info(ort_message_check *c, const Onnx__ValueInfoProto *info,
                          ort_value_role role, bool is_main, const char *place);
void ort_check_type(ort_message_check *c, const Onnx__TypeProto *type, bool needed,
                    const char *place);

static inline const char *ort_check_text(const char *text) { return text ? text : ""; }

#endif
