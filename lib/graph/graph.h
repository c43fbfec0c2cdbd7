/* graph.h - the intermediate representation: model, graph, value, node, attribute.
 *
 * Values and nodes of a graph are numbered (ort_id); a node names its inputs and outputs by value
 * id. Invariants: every value has at most one producer; a value of an outer scope is represented
 * in the inner graph by a value whose `outer` is the id in the parent graph; `node->implicit`
 * lists, in the parent's ids, all that a node's subgraphs capture. All memory comes from the
 * model's arena, weights stay where they lie (mapping, stream buffer, external file) and are
 * shared by clones.
 *
 * This room stores. Whoever adds or changes nodes goes through op/edit.h, which infers at once.
 */
#ifndef ORT_GRAPH_GRAPH_H
#define ORT_GRAPH_GRAPH_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "graph/dim.h"
#include "tensor/tensor.h"

typedef uint32_t ort_id;
#define ORT_ID_NONE UINT32_MAX

/* ---- types and facts */

typedef struct ort_type {
    ort_type_kind kind;
    ort_dtype dtype; /* element of a tensor, key of a map; UNDEFINED when unknown */
    int rank;        /* of a tensor; -1 when unknown */
    ort_dim dim[ORT_MAX_RANK];
    const struct ort_type *element; /* of a sequence or optional; value type of a map */
} ort_type;

/* All that is known of a value before it is computed. The type comes last: it is large, and most
 * questions of passes are answered by what stands before it, in one line of the cache. */
typedef struct ort_fact {
    const ort_tensor *value; /* its constant value, or NULL */
    const ort_dim *symbolic; /* integer tensor of rank 0 or 1 whose elements are dims, or NULL */
    int symbolic_count;
    ort_type type;
} ort_fact;

/* "float[batch,3,224,224]", "seq(map(string,float))"; returns text. */
char *ort_type_format(const ort_dim_table *dims, const ort_type *type, char *text, size_t size);
ort_type ort_type_tensor(ort_dtype dtype, int rank, const ort_dim *dims); /* rank -1: unknown */
ort_type ort_type_of_tensor(const ort_tensor *tensor);
/* The public view of a value's type, in the arena; NULL: no memory. */
struct ort_graph_value;
const ort_type_info *ort_value_describe(const ort_dim_table *dims,
                                        const struct ort_graph_value *value, ort_arena *arena);
/* False when they certainly contradict each other (*why: one line); else *a gains what b knows. */
bool ort_type_merge(ort_type *a, const ort_type *b);

/* ---- attributes */

typedef enum ort_attr_type { /* onnx.AttributeProto.AttributeType */
    ORT_ATTR_UNDEFINED = 0,
    ORT_ATTR_FLOAT = 1,
    ORT_ATTR_INT = 2,
    ORT_ATTR_STRING = 3,
    ORT_ATTR_TENSOR = 4,
    ORT_ATTR_GRAPH = 5,
    ORT_ATTR_FLOATS = 6,
    ORT_ATTR_INTS = 7,
    ORT_ATTR_STRINGS = 8,
    ORT_ATTR_TENSORS = 9,
    ORT_ATTR_GRAPHS = 10,
    ORT_ATTR_SPARSE_TENSOR = 11,
    ORT_ATTR_SPARSE_TENSORS = 12,
    ORT_ATTR_TYPE_PROTO = 13,
    ORT_ATTR_TYPE_PROTOS = 14,
} ort_attr_type;

typedef struct ort_graph ort_graph;

typedef struct ort_attr {
    const char *name;
    ort_attr_type type;
    const char *reference; /* ref_attr_name inside a function body, or NULL */
    float f;
    int64_t i;
    ort_string s; /* NUL-terminated as well */
    const ort_tensor *t;
    ort_graph *g;
    const ort_type *type_proto;
    size_t count; /* of the lists below */
    const float *floats;
    const int64_t *ints;
    const ort_string *strings;
    const ort_tensor *tensors;
    ort_graph **graphs;
    const void *proto; /* the message it came from (kept for saving), or NULL when made here */
} ort_attr;

/* ---- nodes and values */

struct ort_op;       /* op/op.h */
struct ort_registry; /* op/op.h */
struct ort_source;   /* io/source.h: bytes of a model, mapped or owned */
struct ort_save_plan; /* graph/export.h: which weights go to external data */
typedef struct ort_uses ort_uses; /* graph/uses.h: who reads a value */

/* First what every pass asks of every node: one line of the cache. */
typedef struct ort_node {
    const struct ort_op *op; /* resolved by check; NULL before, or when nobody has it */
    const char *op_type; /* once `op` is resolved, that of its row: not a text per node */
    ort_id *inputs;      /* ORT_ID_NONE: an absent optional input */
    ort_id *outputs;     /* ORT_ID_NONE: not wanted */
    ort_attr *attrs;
    ort_id id;
    int opset;           /* version of its domain that governs it */
    int input_count, output_count, attr_count;
    bool removed;        /* a pass took it out; skipped by every iteration */
    bool changed;        /* its members aren't those of proto any more */
    int implicit_count, body_count;
    const char *name;    /* "" when unnamed; messages use ort_node_label */
    const char *domain;  /* "" for ai.onnx */
    const char *overload;
    const char *doc;
    ort_id *implicit;    /* values of this graph that the bodies capture */
    ort_graph **bodies;  /* subgraphs in attribute order */
    const char *origin;  /* names of nodes it was fused from, joined by "+" (follow.h), or NULL */
    const void *proto;   /* the message it came from; NULL when made here. What it says beside the
                          * members above is kept on saving: metadata, unknown fields */
} ort_node;

typedef struct ort_graph_value {
    const char *name;
    int producer_slot; /* which output of its producer */
    ort_id outer;    /* id in the parent graph of a captured value, else ORT_ID_NONE */
    int use_count;   /* input slots of nodes, implicit captures, graph outputs */
    bool is_input, is_output;
    bool is_doubled; /* the file has this initializer more than once, with the same bits */
    bool is_watched; /* the session shows it to its caller when it is computed */
    bool is_sparse;  /* a sparse initializer (constant holds the dense form once asked for) */
    ort_fact fact;   /* declared at import, refined by inference; fact.value for initializers */
    const ort_type *declared; /* what the file says, kept by inference once it has run; or NULL */
    bool inferred;            /* inference has seen this value */
    const void *initializer_proto; /* kept for saving */
    const void *info_proto;
} ort_graph_value;

struct ort_graph {
    ort_model *model;
    ort_graph *parent;
    ort_id parent_node;
    const char *name, *doc;
    ORT_VEC(ort_node *) nodes;          /* by id; topological order is `order` */
    ORT_VEC(ort_graph_value *) values;  /* by id */
    ORT_VEC(ort_id) producers;          /* by value: the node that computes it, or ORT_ID_NONE (an
                                         * input, initializer, capture). Not in the value: passes
                                         * ask it of every input of every node. */
    ORT_VEC(ort_id) inputs;             /* value ids, in order */
    ORT_VEC(ort_id) outputs;
    ORT_VEC(ort_id) initializers;
    ORT_VEC(ort_id) order;              /* node ids so that producers precede consumers */
    ort_hashmap names;                  /* value name to id */
    ort_uses *uses;                     /* made when asked for; not copied by a clone */
    const void *proto;                  /* GraphProto it came from, or NULL */
    bool changed;                       /* differs from proto (set by every edit, also of bodies) */
    bool has_bodies;                    /* a node has or had one */
};

/* ---- model */

typedef struct ort_opset {
    const char *domain;
    int64_t version;
    bool assumed; /* the file doesn't import the domain: see assumed_opset in op/infer.c */
} ort_opset;

typedef struct ort_function { /* a model-local function */
    const char *domain, *name, *overload, *doc;
    int input_count, output_count, attr_count;
    const char **inputs, **outputs, **attrs; /* attrs without a default */
    ort_attr *defaults;
    int default_count;
    ort_opset *opsets;
    int opset_count;
    bool opsets_changed; /* they aren't those of proto */
    const void *proto; /* body nodes are instantiated from here at each call */
} ort_function;

typedef struct ort_blob ort_blob; /* io/blob.h: reference-counted bytes that hold weights */

struct ort_model {
    ort_arena arena;
    ort_limits limits;            /* of calls on this model */
    ort_account *account;         /* of what loading and rewriting it took and holds, or NULL */
    ort_slab node_slab, value_slab, id_slab;
    ort_graph *graph;
    ort_dim_table *dims;
    int64_t ir_version, model_version;
    const char *producer_name, *producer_version, *domain, *doc;
    ORT_VEC(ort_opset) opsets;
    ORT_VEC(ort_function) functions;
    ORT_VEC(ort_blob *) blobs;    /* references this model holds */
    struct { const char *key, *value; } *metadata;
    size_t metadata_count;
    const char *path;             /* label for messages */
    struct ort_reach *reach;      /* where external data may lie (io/reach.h) */
    const void *proto;            /* the unpacked skeleton, kept for saving */
    const struct ort_wire_payload *payloads; /* bulk fields that proto refers to (io/wire.h) */
    size_t payload_count;
    const struct ort_registry *registry;
    size_t file_bytes, external_bytes;
    ort_hashmap body_names;       /* names that bodies define, once there were new names */
    bool body_names_known;
    bool skeleton;                /* data of large tensors is NULL */
    bool as_stored;               /* data of large tensors may be unaligned (weight.c) */
    bool refixed;                 /* a caller gave an input other sizes than the file does */
    bool changed;                 /* opsets, functions or metadata differ from proto */
    bool without_docs;            /* documentation is left out on saving */
    const char *const *followed;  /* names that origins keep (follow.h), or NULL */
    struct ort_spool *spool;      /* where large new constants go (io/spool.h); NULL: memory */
    ort_model *base;              /* a clone shares names, attributes, weights with this one */
    int references;               /* atomic: owner and clones */
};

/* import.c: unpacked bytes to model; functions stay functions until ort_graph_inline_functions. */
ort_status ort_model_import(const struct ort_source *source, const struct ort_registry *registry,
                            ort_model **model, ort_error *err);
/* A deep copy of the graph; weights, names and attributes are shared: the copy keeps the original
 * alive (ort_model_free drops a reference). */
ort_status ort_model_clone(const ort_model *model, ort_model **copy, ort_error *err);
/* Replace every call of a model-local function (also nested, also in bodies) by its nodes. */
ort_status ort_graph_inline_functions(ort_graph *graph, ort_error *err);
/* The same of a whole model, which has none then. */
ort_status ort_model_inline_functions(ort_model *model, ort_error *err);
/* function.c: does a node of this graph, or of a body in it, call a function of its model? (Without
 * memory to tell, true.) */
bool ort_graph_calls_functions(const ort_graph *graph);
/* The functions of a model by name; good until one is added or taken out. */
typedef struct ort_function_index {
    const ort_model *model;
    const ort_function **sorted; /* by domain, name, overload */
    size_t count;
} ort_function_index;
ort_status ort_functions_index(const ort_model *model, ort_function_index *index, ort_error *err);
void ort_functions_index_release(ort_function_index *index);
/* NULL: there is none. overload NULL: any. */
const ort_function *ort_functions_find(const ort_function_index *index, const char *domain,
                                       const char *name, const char *overload);
/* Nodes in the body of a function, Constant nodes not. */
size_t ort_function_node_count(const ort_function *function);
/* function.c: the operators in a function, those of bodies included, until `visit` says no. */
typedef bool ort_function_visit(void *arg, const char *domain, const char *op_type);
bool ort_function_each_operator(const ort_function *function, ort_function_visit *visit,
                                void *arg);
/* The same of a graph as it is now. */
bool ort_graph_each_operator(const ort_graph *graph, ort_function_visit *visit, void *arg);
/* The version that the function imports of `domain` becomes another one. */
ort_status ort_function_set_opset(ort_model *model, ort_function *function, const char *domain,
                                  int64_t version, ort_error *err);
/* Constant nodes of a graph as it was loaded whose output a later one gives again, so that they
 * count for nothing (build.c); *name: of the last such output. */
size_t ort_graph_replaced(const ort_graph *graph, const char **name);

/* ---- walking */

/* for-loop over the live nodes in topological order: `ort_node *node; ORT_EACH_NODE(graph, node) {
 * }` */
#define ORT_EACH_NODE(graph, node)                                                                 \
    for (size_t node##_k_ = 0; node##_k_ < (graph)->order.count; node##_k_++)                      \
        if (((node) = (graph)->nodes.data[(graph)->order.data[node##_k_]])->removed) {             \
        } else

/* Is there a value of this number; does the node stand in this graph? What edits rely on. */
static inline bool ort_graph_has_value(const ort_graph *graph, ort_id id)
{
    return id < graph->values.count && id < graph->producers.count;
}
static inline bool ort_graph_has_node(const ort_graph *graph, const ort_node *node)
{
    return node->id < graph->nodes.count && graph->nodes.data[node->id] == node;
}

/* Is the id one of these? */
static inline bool ort_ids_have(const ort_id *ids, size_t count, ort_id id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static inline ort_graph_value *ort_graph_value_at(const ort_graph *graph, ort_id id)
{
    assert(id == ORT_ID_NONE || ort_graph_has_value(graph, id));
    return id == ORT_ID_NONE ? NULL : graph->values.data[id];
}
/* The node that computes the value, also one that a pass took out; or ORT_ID_NONE. */
static inline ort_id ort_graph_producer(const ort_graph *graph, ort_id value)
{
    assert(value == ORT_ID_NONE || ort_graph_has_value(graph, value));
    return value == ORT_ID_NONE ? ORT_ID_NONE : graph->producers.data[value];
}
/* Value by name in this graph only (not outer scopes); ORT_ID_NONE. */
ort_id ort_graph_find_value(const ort_graph *graph, const char *name);
/* "node 'conv1' (Conv)", or "node #17 (Conv)" when unnamed; returns text. */
char *ort_node_label(const ort_node *node, char *text, size_t size);

/* Attribute look-up; the default when the attribute is absent or of another type. */
const ort_attr *ort_node_attr(const ort_node *node, const char *name);
/* The attribute when it has this type and a value of its own; NULL. */
const ort_attr *ort_node_attr_of(const ort_node *node, const char *name, ort_attr_type type);
bool ort_node_has(const ort_node *node, const char *name);
int64_t ort_node_int(const ort_node *node, const char *name, int64_t default_value);
float ort_node_float(const ort_node *node, const char *name, float default_value);
/* NUL-terminated. */
const char *ort_node_string(const ort_node *node, const char *name, const char *default_value);
const int64_t *ort_node_ints(const ort_node *node, const char *name, size_t *count);
const float *ort_node_floats(const ort_node *node, const char *name, size_t *count);
const ort_string *ort_node_strings(const ort_node *node, const char *name, size_t *count);
const ort_tensor *ort_node_tensor(const ort_node *node, const char *name);
/* An operator of ONNX's own that only gives a constant. */
bool ort_node_is_constant(const ort_node *node);
/* The tensor that one gives; NULL: it is none, or says its value otherwise. */
const ort_tensor *ort_node_constant(const ort_node *node);
/* The initializer that the input reads, or the value of a Constant node; NULL: neither. */
const ort_tensor *ort_node_constant_input(const ort_graph *graph, const ort_node *node, int slot);
/* The subgraph attribute of this name, and its index in node->bodies (-1 when absent). */
int ort_node_body(const ort_node *node, const char *name);

/* weight.c: the constant of a value (or NULL), aligned for its type: in a model loaded as stored a
 * large weight is copied at its first use. NULL also when memory is exhausted. */
const ort_tensor *ort_graph_weight(ort_graph *graph, ort_id id);
/* A constant in the file, of this graph or one around it. */
bool ort_graph_is_weight(const ort_graph *graph, ort_id id);
/* Of all values, bodies included. */
ort_status ort_graph_align_weights(ort_graph *graph, ort_error *err);
/* Constants that edits make from now on leave memory for a file in the folder (NULL: they don't),
 * as far as they are large and someone forgets them. */
ort_status ort_model_spool(ort_model *model, const char *folder, ort_error *err);
/* Bytes for a new constant, aligned; NULL: *status says why. */
void *ort_model_room(ort_model *model, size_t bytes, ort_error *err, ort_status *status);
/* These bytes of weights won't be read soon: where they lie in a mapped file they leave memory. */
void ort_model_forget(const ort_model *model, const void *bytes, size_t count);

/* ---- editing (used by op/edit.c, import and function inlining) */

/* STEM_N in the arena, where N is the first number from `first` on that isn't taken, if the taken
 * ones follow each other; else a free one behind a taken one. Asks about the logarithm of them.
 * NULL: no memory. */
typedef bool ort_taken(const void *arg, const char *name);
const char *ort_free_name(ort_arena *arena, const char *stem, size_t first, ort_taken *taken,
                          const void *arg);
/* The string's bytes become a copy in the arena; false: no memory. */
bool ort_string_own(ort_arena *arena, ort_string *string);
/* A value with this name; ORT_ID_NONE when memory is exhausted. It is made unique when it is "" or
 * taken: names of graphs around a body are known inside it (ONNX IR, "Names Within a Graph"), so no
 * two graphs of which one is inside the other may both define a name. */
ort_id ort_graph_add_value(ort_graph *graph, const char *name);
/* The same of a name in the arena which the caller knows to be free in all of these graphs. */
ort_id ort_graph_add_named(ort_graph *graph, const char *unique);
/* The value becomes an initializer that borrows `tensor`, as below; false: no memory. */
bool ort_graph_give_constant(ort_graph *graph, ort_id value, const ort_tensor *tensor);
/* For graph/: a body defines this name. False: no memory. */
bool ort_graph_note_name(const ort_graph *graph, const char *name);
/* An initializer that borrows `tensor` (its data must outlive the model: arena or blob). */
ort_id ort_graph_add_constant(ort_graph *graph, const char *name, const ort_tensor *tensor);
/* A node at the end of `order`; inputs and outputs are copied; producers are set. */
ort_node *ort_graph_add_node(ort_graph *graph, const char *domain, const char *op_type,
                             const char *name, const ort_id *inputs, int input_count,
                             const ort_id *outputs, int output_count);
ort_status ort_node_set_attr(ort_graph *graph, ort_node *node, const ort_attr *attr,
                             ort_error *err); /* adds or replaces; copies into the arena */
void ort_node_set_input(ort_graph *graph, ort_node *node, int slot, ort_id value);
/* All uses of `from` (inputs, captures, graph outputs excepted) become `to`. */
void ort_graph_replace_uses(ort_graph *graph, ort_id from, ort_id to);
void ort_graph_remove_node(ort_graph *graph, ort_node *node);
/* A file says by its name alone what a body captures: what it captures of `outer`, here and in
 * bodies further in, bears this name; a local value that has it gets another. */
void ort_graph_name_captures(ort_graph *body, ort_id outer, const char *name);
/* capture.c: the value of the body that stands for `outer` of the graph around it, made where there
 * is none yet; ORT_ID_NONE: no memory. */
ort_id ort_graph_capture(ort_graph *body, ort_id outer);
/* What the node's bodies have ceased to read keeps nothing alive out here. How many these are. */
int ort_graph_drop_captures(ort_graph *graph, ort_node *node);
/* A node or value was changed in place: it, its graph and all around them are written anew on
 * saving. Every function above does this by itself. node may be NULL. */
void ort_graph_touch(ort_graph *graph, ort_node *node);
/* Give a value another type or name for saving: forgets the message it came from. */
void ort_graph_touch_value(ort_graph *graph, ort_id value);
/* Recompute `order` (stable: keeps the present order where it can); ORT_ERROR_MODEL on a cycle,
 * naming the nodes on it. */
ort_status ort_graph_sort(ort_graph *graph, ort_error *err);

/* export.c: the model as protobuf bytes, handed to a sink piece by piece (payloads straight from
 * where they lie). */
typedef ort_status ort_sink_fn(void *arg, const void *bytes, size_t count, ort_error *err);
ort_status ort_model_export(const ort_model *model, const struct ort_save_plan *plan,
                            ort_sink_fn *sink, void *arg, ort_error *err);

/* An empty model (no graph yet) with one reference; used by import, clone and extract. */
ort_model *ort_model_new(void);
/* Zeroed, of the model; NULL: no memory. Nodes, values and lists of ids stand beside others of
 * their kind, so that a pass over a large graph reads few lines of the cache. */
ort_node *ort_model_new_node(ort_model *model);
ort_id *ort_model_new_ids(ort_model *model, size_t count);
ort_id *ort_model_copy_ids(ort_model *model, const ort_id *ids, int count);
/* A value that nothing computes so far and no map of names knows; it borrows the name.
 * ORT_ID_NONE: no memory. */
ort_id ort_graph_new_value(ort_graph *graph, const char *name);
/* A new graph of the model; parent NULL for the main graph. */
ort_graph *ort_graph_new(ort_model *model, ort_graph *parent, ort_id parent_node);

#endif
