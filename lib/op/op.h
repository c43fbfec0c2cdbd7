/* op.h - the operator registry row and the four phases of an operator.
 *
 *   infer    types, shapes, known values of the outputs. Pure. Called with symbolic dims when a
 *            model is loaded, and again with concrete dims (and whatever values are known by then)
 *            when a plan is made for given input shapes: one function serves both. It begins with
 *            what the row's signature and rule have said (rule.h), often all that there is to say.
 *   prepare  once per node and session: attributes into a typed state (bind.h does that), constants
 *            packed.
 *   shape    optional; once per distinct input shapes: scratch sizes, task grid, tables.
 *   run      inputs to outputs: no attribute look-up, no allocation.
 *
 * A row is one version of one operator (domain, name, since) and, in its history, the later ones
 * that only add to it; versions share an ort_op_impl.
 * Signatures, type sets and attributes are written in three short strings that check, inference,
 * help and coverage reports all read (schema.c parses them at first use):
 *   sig    "X:T,W:T,B?:T -> Y:T"   '?' optional, '*' variadic of one type, '**' of mixed types,
 *                                  '*0' variadic that may be empty; a type may be a variable or a
 *                                  code ("i64")
 *   types  "T:F,bf16 I:i32,i64"    codes or groups: F = f16 f32 f64, I = i8..i64, U = u8..u64,
 *                                  C = c64 c128, F8, F6, Q4, Q2; "seq(...)", "opt(...)", "map(k,v)"
 *   attrs  "axis:i=0 pads:is to:i! body:g!"   kinds f i s t g fs is ss ts sp tp; '!' required
 *   history "13:T+bf16 18 21:T+Q4 +end:i=0"  at 13, T is bf16 too; at 18, nothing of this changes;
 *                                  at 21, T has more types again and there is one attribute more
 *                                  (no list as its default). Until the row's next one.
 */
#ifndef ORT_OP_OP_H
#define ORT_OP_OP_H

#include "base/budget.h"
#include "base/log.h"
#include "base/pool.h"
#include "graph/graph.h"
#include "kernel/kernel.h"
#include "op/bind.h"

#define ONNX ""
#define ML "ai.onnx.ml"
#define MS "com.microsoft"
#define ORT_INTERNAL "ort.internal" /* operators of sessions alone, never saved */

typedef struct ort_op ort_op;

enum {
    ORT_TRAIT_ELEMENTWISE = 1 << 0, /* output element i depends on input elements i (broadcast) */
    ORT_TRAIT_INPLACE = 1 << 1,     /* output 0 may lie over an input of equal bytes and count */
    ORT_TRAIT_ALIAS = 1 << 2,       /* output 0 is input 0's data in another shape: no work */
    ORT_TRAIT_PICKS = 1 << 16,      /* each element of an output is one of input 0: what else goes
                                       in only says which */
    ORT_TRAITS_MOVE = ORT_TRAIT_ALIAS | ORT_TRAIT_PICKS,
    ORT_TRAIT_COMMUTATIVE = 1 << 3,
    ORT_TRAIT_SHAPE_ONLY = 1 << 4,  /* reads the shape of input 0, not its data (Shape, Size) */
    ORT_TRAIT_RANDOM = 1 << 5,      /* another result each run: never folded, never merged */
    ORT_TRAIT_CONTROL = 1 << 6,     /* runs its bodies through ort_call_body */
    ORT_TRAIT_EXTENSION = 1 << 7,   /* ONNX hasn't it at this version (a trial that is over, an
                                       early form); onnxruntime runs it */
    ORT_TRAIT_TRIAL = 1 << 15,      /* with EXTENSION: up to opset 9 it does */
    ORT_TRAIT_DEPRECATED = 1 << 8,  /* the domain dropped it at this version */
    ORT_TRAIT_DYNAMIC = 1 << 9,     /* output shape depends on data: run allocates its outputs */
    ORT_TRAIT_REWRITTEN = 1 << 10,  /* a session makes other operators of it: needs no run */
    ORT_TRAIT_JOINS = 1 << 13,      /* output 0 is the inputs side by side along attribute axis;
                                       run passes over inputs that lie in their place already */
    /* Large constants are used where a file has them, whatever their alignment: */
    ORT_TRAIT_READS_UNALIGNED = 1 << 11, /* run reads floating inputs so */
    ORT_TRAIT_PACKS_UNALIGNED = 1 << 12, /* prepare reads input 1 so, when it is float */
    ORT_TRAIT_ANY_ATTRIBUTES = 1 << 17, /* nodes may have attributes that the row doesn't list */
    ORT_TRAIT_PACKS_HALF = 1 << 14,      /* prepare packs input 1 also from 16 bits, as it lies
                                            (half_weight.h) */
};

/* ---- infer */

typedef struct ort_infer {
    const ort_node *node;
    const ort_op *op;
    int opset;
    int in_count, out_count;
    const ort_fact *const *in; /* [in_count]; NULL: absent optional */
    ort_fact *out;             /* [out_count]; zeroed: nothing known */
    ort_dim_table *dims;       /* NULL at plan time (every dim is known or unknown) */
    ort_arena *arena;          /* for known values that outlive the call */
    const ort_graph *graph;
    /* Infer body `index` (node->bodies) for these input facts; fills `outputs` facts. err NULL: the
     * body never runs; what contradicts in it is no error and stays unknown. */
    ort_status (*infer_body)(struct ort_infer *x, int index, const ort_fact *inputs,
                             int input_count, ort_fact *outputs, int output_count,
                             ort_error *err);
    void *driver;
    /* Of the prepared node, and of its plan, when a run is reported; NULL elsewhere. */
    const void *state, *plan_state;
} ort_infer;

/* What an infer function is made of (infer_util.c). All return ORT_ERROR_MODEL with the slot's name
 * on contradiction. */
const ort_fact *ort_infer_in(const ort_infer *x, int index); /* NULL when absent or beyond count */
bool ort_infer_in_ranked(const ort_infer *x, int index);     /* tensor of known rank */
/* Dim `axis` of an input; unknown when the input is absent or its rank is unknown or too small. */
ort_dim ort_infer_dim(const ort_infer *x, int input, int axis);
void ort_infer_set_type(ort_infer *x, int output, ort_dtype dtype, int rank, const ort_dim *dims);
void ort_infer_set_dtype(ort_infer *x, int output, ort_dtype dtype); /* rank stays unknown */
/* In the element type that the output has already: that of the signature (rule.h). */
void ort_infer_set_shape(ort_infer *x, int output, int rank, const ort_dim *dims);
/* Axis attribute into [0, rank); error when out of range. */
ort_status ort_infer_axis(const ort_infer *x, int64_t axis, int rank, int *out, ort_error *err);
ort_status ort_infer_need_rank(const ort_infer *x, int input, int rank, ort_error *err);
ort_status ort_infer_fail(const ort_infer *x, ort_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Element `index` of an integer input as a dim: from its constant or symbolic value. False when
 * not known at all. */
bool ort_infer_int(const ort_infer *x, int input, int index, ort_dim *out);
/* Number of elements of a known or symbolic integer input, or of its known one-dimensional shape;
 * -1 when not known. */
int ort_infer_int_count(const ort_infer *x, int input);
/* All of a known integer input (constant, or symbolic with known elements); false otherwise. */
bool ort_infer_ints(const ort_infer *x, int input, int64_t *out, int capacity, int *count);
/* Give output `output` a symbolic value (copied): an integer tensor of rank 0 or 1. */
void ort_infer_set_symbolic(ort_infer *x, int output, const ort_dim *elements, int count);

/* Broadcast shape of inputs [first, first+count) into *type (rank -1 when unknown). */
ort_status ort_infer_broadcast_shape(ort_infer *x, int first, int count, ort_type *type,
                                     ort_error *err);

/* ---- prepare */

#define ORT_PACK_ANY_SIZE SIZE_MAX

/* Where packed constants come from and go to: a pack file, other nodes (exec/step_packs.h). */
typedef struct ort_pack_services {
    /* The mapped bytes of this node's packed constant; or those of another node that packed the
     * same inputs `of`; NULL: neither. *bytes: its size; ORT_PACK_ANY_SIZE: told here. */
    const void *(*find)(void *arg, const char *kind, unsigned of, size_t *bytes);
    /* Told of every packed constant that was made here. */
    bool (*made)(void *arg, const char *kind, unsigned of, const void *packed, size_t bytes);
    void (*absorbed)(void *arg, int input);
    /* Memory of constants that nobody reads any more, for a packed one; NULL: none that large. */
    void *(*room)(void *arg, size_t bytes);
    bool reads; /* packed constants come from a file: there is nothing to make them of */
    bool clean; /* they begin as zeros, so that gaps between panels have the same bytes each time */
    void *arg;
} ort_pack_services;

/* Output `output` is the rows of input `input` and, behind them along `axis` (1 or more), new ones:
 * a cache. */
typedef struct ort_append {
    int input, output, axis;
} ort_append;

/* The caches that an operator extends, all along together. A session may lay input and output of a
 * pair into one memory that has room for more rows: then both tensors have the same data and the
 * same strides (those of a contiguous tensor but for a longer `axis`), and run writes the new rows
 * alone. run reads the number of rows from the tensors of the call: where none of `row_inputs` and
 * `row_outputs` (bits; what has other shapes when there are more rows) is there, a plan that was
 * made for more rows serves it. */
typedef struct ort_appends {
    int count;
    ort_append pair[2];
    unsigned row_inputs, row_outputs;
} ort_appends;

typedef struct ort_prep {
    const ort_node *node;
    const ort_op *op;
    int opset;
    int in_count, out_count;
    const ort_fact *const *in;  /* value != NULL: a constant that lives as long as the session */
    const ort_fact *const *out;
    const ort_graph *graph;     /* that holds the node; NULL outside of one */
    const ort_kernels *k;
    bool math_strict, math_fast;
    ort_arena *arena;           /* the session's: states and packed weights */
    ort_pool *pool;             /* of threads that pack large weights; NULL: the caller does */
    const ort_pack_services *packs; /* NULL: no file takes part */
    void *state;                /* result; bound attributes are there when prepare begins. NULL
                                 * when the operator needs none */
    void (*release)(const void *state); /* result: gives back what lies outside of the arena */
    int64_t rounds; /* result: of how many elements of the first input each is rounded to a 127th of
                     * the largest, because of math_fast alone; 0: none is */
    const ort_appends *appends; /* result: the caches that run extends in place; NULL: none */
    /* result: beginnings of the names of attributes that nobody reads again once they are packed: a
     * pack file's graph has them without elements; NULL-terminated, constant. NULL: none */
    const char *const *packed_attrs;
} ort_prep;

/* Zeroed state of `bytes`, stored in p->state; NULL when memory is exhausted. */
void *ort_prep_state(ort_prep *p, size_t bytes);
/* Packed constants of this node, 64-byte aligned, that live as long as the session. *fill true: the
 * caller writes them now, all of it, from constant inputs and attributes alone, and never numbers
 * that runs take for places (a file may be damaged); false: they are mapped from a pack file, or
 * another node has them too, and must not be written. `kind` names this block among the node's (at
 * most 15 characters): file and session match by it and by the size. `of`: the inputs that it is
 * made of, as bits: nodes of one operator with the same attributes, types and such inputs share it;
 * 0: not shared. NULL: out of memory, or a file that doesn't fit. */
void *ort_prep_pack(ort_prep *p, const char *kind, unsigned of, size_t bytes, bool *fill);
/* fn(arg, task, thread) for each task that fills a part of a block of so many bytes: by the pool's
 * threads where it is large. When the session's budget is over, parts are left out. */
void ort_prep_fill(const ort_prep *p, size_t bytes, size_t tasks, ort_task_fn *fn, void *arg);
/* Threads that may take part: numbers of threads are below. */
int ort_prep_threads(const ort_prep *p);
/* The inputs that are constants, as bits. */
unsigned ort_prep_constants(const ort_prep *p);
/* Does a file give this node's packed constants? */
bool ort_prep_is_packed(const ort_prep *p);
/* Then one of a size that only the file knows. It may hold places, if the caller checks each of
 * them. NULL: a file that doesn't fit. */
const void *ort_prep_packed(ort_prep *p, const char *kind, size_t *bytes);
/* Runs read no element of this constant input any more, only its type and shape: what they need was
 * packed. A pack file then leaves the input's data out; so a prepare that finds its packed
 * constants reads none of it either. */
void ort_prep_absorb(ort_prep *p, int input);
const ort_tensor *ort_prep_constant(const ort_prep *p, int input); /* NULL: not a constant */
ort_dtype ort_prep_dtype(const ort_prep *p, int input);            /* UNDEFINED when absent */
/* ORT_ERROR_UNSUPPORTED: "element type X of input N isn't implemented". */
ort_status ort_prep_unsupported_dtype(const ort_prep *p, int input, ort_error *err);
/* The same unless the input is a float, double, float16 or bfloat16. */
ort_status ort_prep_need_real(const ort_prep *p, int input, ort_error *err);
ort_status ort_prep_fail(const ort_prep *p, ort_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- shape */

typedef struct ort_shaping {
    const ort_node *node;
    const void *state;
    int in_count, out_count;
    const ort_tensor *const *in;  /* NULL: absent; data may be NULL (not computed yet) */
    const ort_tensor *const *out; /* dtype and shape set by inference */
    const ort_kernels *k;
    ort_arena *arena;             /* the plan's */
    void *plan_state;             /* result, read by run */
    size_t workspace_bytes;       /* result: shared scratch */
    size_t thread_bytes;          /* result: scratch per thread */
} ort_shaping;

/* ---- run */

typedef struct ort_call ort_call;

/* Outputs [first, first + count) of a body that the operator only hands on: to the body's next run,
 * or to an output of its own. Their elements may lie on a device, out of its sight. Others may have
 * places there: what is made on that device is written to its place, and is it then. */
typedef struct ort_handed {
    int first, count;
    ort_value *const *places; /* by output; or NULL */
} ort_handed;

/* For tensors of the operator that a body reads or gives slice by slice along the first axis: the
 * whole lies on the device whose parts alone do, and slices are parts of it. */
typedef struct ort_slice_services {
    /* Input `input` of the call, of which the body's input `formal` is a slice; and room for
     * `count` slices that are the body's output `output`. NULL: no such device, or slices that its
     * parts can't be. */
    ort_status (*input)(ort_call *call, int body, int formal, int input, ort_value **whole,
                        ort_error *err);
    ort_status (*room)(ort_call *call, int body, int output, const ort_tensor *slice,
                       int64_t count, ort_value **whole, ort_error *err);
    ort_status (*part)(ort_value *whole, int64_t index, ort_value **slice, ort_error *err);
    ort_status (*fill)(ort_call *call, ort_value *slice, const ort_value *from, ort_error *err);
} ort_slice_services;

/* What the executor (or the plain interpreter) provides to a running operator. */
typedef struct ort_call_services {
    void *(*alloc)(ort_call *call, size_t bytes); /* lives until the run ends; NULL on failure */
    ort_status (*output)(ort_call *call, int index, ort_dtype dtype, const ort_shape *shape,
                         ort_error *err);
    ort_status (*body)(ort_call *call, int index, ort_value *const *inputs, int input_count,
                       ort_value **outputs, int output_count, ort_handed handed, ort_error *err);
    void (*set_output)(ort_call *call, int index, ort_value *value); /* takes the reference */
    const ort_slice_services *slices; /* NULL: all values lie here */
} ort_call_services;

struct ort_call {
    const ort_node *node;
    const void *state;
    const void *plan_state;
    int in_count, out_count;
    ort_value *const *in; /* NULL: absent. Tensors are contiguous but for caches (ort_appends) */
    ort_value **out;      /* NULL: not wanted. Storage ready unless ORT_TRAIT_DYNAMIC */
    void *workspace;
    void *thread_space;   /* thread t owns [t * thread_bytes, (t + 1) * thread_bytes) */
    size_t thread_bytes;
    const ort_kernels *k;
    ort_pool *pool;       /* may be NULL */
    uint64_t seed;        /* random operators: another one at each call of a run */
    struct ort_mt19937 *stream; /* what they all draw from instead, or NULL (random_draw.h) */
    const ort_call_services *services;
    void *executor;
    struct ort_written *written; /* who wants output 0 in parts (written.h), or NULL */
};

static inline const ort_tensor *ort_call_in(const ort_call *call, int index)
{
    return index < call->in_count && call->in[index] ? &call->in[index]->tensor : NULL;
}
static inline ort_tensor *ort_call_out(const ort_call *call, int index)
{
    return index < call->out_count && call->out[index] ? &call->out[index]->tensor : NULL;
}
static inline void *ort_call_scratch(const ort_call *call, int thread)
{
    return (char *)call->thread_space + (size_t)thread * call->thread_bytes;
}
/* The same call for a task that calls what has loops itself: on this thread alone, with its scratch
 * whatever the thread that they are told. */
static inline ort_call ort_call_alone(const ort_call *call, int thread)
{
    ort_call own = *call;
    own.pool = NULL;
    own.thread_space = ort_call_scratch(call, thread);
    own.thread_bytes = 0;
    own.written = NULL;
    return own;
}
/* What the pool remembers the call's loops by. */
static inline const void *ort_call_key(const ort_call *call)
{
    return call->plan_state ? call->plan_state : call->state ? call->state : call->node;
}
/* Tasks 0..count-1 on the pool; a task may depend on its number only. */
static inline void ort_call_parallel(const ort_call *call, size_t count, ort_task_fn *fn, void *arg)
{
    ort_pool_run_again(call->pool, ort_call_key(call), count, fn, arg);
}
/* Threads to cut the call's loop for (ort_pool_width). */
static inline int ort_call_width(const ort_call *call)
{
    return ort_pool_width(call->pool, ort_call_key(call));
}
/* Give output `index` this type and shape and memory (operators with ORT_TRAIT_DYNAMIC). */
static inline ort_status ort_call_output(ort_call *call, int index, ort_dtype dtype,
                                         const ort_shape *shape, ort_error *err)
{
    return call->services->output(call, index, dtype, shape, err);
}
/* Run body `index` of the node. inputs: the body's formal inputs; captured values are found by the
 * executor. outputs: filled with new references that the caller drops with ort_value_free. */
static inline ort_status ort_call_body(ort_call *call, int index, ort_value *const *inputs,
                                       int input_count, ort_value **outputs, int output_count,
                                       ort_error *err)
{
    return call->services->body(call, index, inputs, input_count, outputs, output_count,
                                (ort_handed){0, 0, NULL}, err);
}
static inline ort_status ort_call_body_handing(ort_call *call, int index, ort_value *const *inputs,
                                               int input_count, ort_value **outputs,
                                               int output_count, ort_handed handed, ort_error *err)
{
    return call->services->body(call, index, inputs, input_count, outputs, output_count, handed,
                                err);
}
/* Memory that lives until the run ends: the bytes of strings made by this operator. */
static inline void *ort_call_alloc(ort_call *call, size_t bytes)
{
    return call->services->alloc(call, bytes);
}
/* Output `index` becomes `value` (reference taken): sequences, maps, optionals, pass-through. */
void ort_call_set_output(ort_call *call, int index, ort_value *value);
ort_status ort_call_fail(const ort_call *call, ort_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Split [0, total) into chunks of about `grain` for a parallel loop; depends on total only. */
static inline size_t ort_task_count(int64_t total, int64_t grain)
{
    return total <= 0 ? 0 : (size_t)((total + grain - 1) / grain);
}
/* Each of these chunks is a task: fn has its items [first, end). call.c. */
typedef void ort_range_fn(void *arg, int64_t first, int64_t end, int thread);
void ort_call_range(const ort_call *call, int64_t total, int64_t grain, ort_range_fn *fn,
                    void *arg);

/* ---- the row */

typedef struct ort_cost { /* of one node, from facts */
    double macs;          /* multiply-accumulates, as the operator is defined */
    double flops;         /* other arithmetic */
    double done_macs;     /* of the algorithm that was chosen, where it does fewer; else 0 */
    bool of_bytes;        /* macs are those of integers of 8 bits, */
    bool on_tiles;        /* or those of floats on the tier's tiles */
} ort_cost;

/* cost.c: bytes of a tensor type; false when open, or when an assumed size leaves less than
 * nothing. */
bool ort_type_bytes(const ort_type *type, double *bytes);
/* cost: `flops` per element of output 0. */
void ort_elementwise_cost(const ort_infer *x, ort_cost *cost);
/* The same per element of input 0, of operators that reduce it. */
void ort_reduction_cost(const ort_infer *x, ort_cost *cost);
/* cost.c: the work of a node whose types and shapes are all known (x->in, x->out). */
void ort_cost_of(const ort_infer *x, ort_cost *cost);

typedef struct ort_op_impl {
    size_t state;         /* bytes; 0: none, or prepare's own business */
    const ort_bind *bind; /* what attributes fill of it, before prepare; may be NULL */
    const char *rule;     /* shapes of the outputs (rule.h), or what infer needs of the inputs */
    ort_status (*infer)(ort_infer *x, ort_error *err);    /* may be NULL */
    ort_status (*prepare)(ort_prep *p, ort_error *err);   /* may be NULL */
    ort_status (*shape)(ort_shaping *s, ort_error *err);  /* may be NULL */
    ort_status (*run)(ort_call *call, ort_error *err);    /* NULL: known, but not run here */
    void (*cost)(const ort_infer *x, ort_cost *cost);     /* may be NULL; x->out is filled */
    unsigned numbers; /* bits: inputs that are one number each (shared/number.h reads them) */
    /* Elements [first, first + n) of output 0, as a run makes them, of the same elements of its
     * inputs: for the task that has just written some of these. May be NULL. */
    void (*part)(const ort_call *call, int64_t first, int64_t n, int thread);
    bool (*has_parts)(const ort_call *call); /* of a planned call; beside `part` */
} ort_op_impl;

struct ort_op {
    const char *domain, *name;
    int since;
    const char *sig, *types, *attrs;
    unsigned traits;
    const ort_op_impl *impl;
    const char *history; /* read up to `since`: registry.c makes a row per version. NULL: none */
    int variant; /* which of the operators that share an impl: an enum of the family */
};

/* Is there anything to prepare? Then this does it (bind.c): the state, its attributes, prepare. */
static inline bool ort_op_prepares(const ort_op *op)
{
    return op->impl->prepare || op->impl->state;
}
ort_status ort_op_prepare(ort_prep *p, ort_error *err);
/* Has a node that is there an operator with one of these traits? */
static inline bool ort_node_has_trait(const ort_node *node, unsigned traits)
{
    return node && !node->removed && node->op && (node->op->traits & traits);
}
/* Does a session run nodes of this row? */
static inline bool ort_op_runs(const ort_op *op)
{
    return op->impl && (op->impl->run || (op->traits & ORT_TRAIT_REWRITTEN));
}

/* ---- registry */

typedef struct ort_registry ort_registry;

/* The built-in rows (families.def). */
ort_status ort_registry_new(ort_registry **registry, ort_error *err);
void ort_registry_free(ort_registry *registry);
/* The row that governs (domain, name) at opset `version`; NULL. "ai.onnx" is "". */
const ort_op *ort_registry_find(const ort_registry *registry, const char *domain,
                                const char *name, int64_t version);
/* The oldest version known, 0 when the operator is unknown: tells "too old" from "unknown". */
int ort_registry_oldest(const ort_registry *registry, const char *domain, const char *name);
/* Whether any operator of this domain is known; and for messages on an unknown operator: where
 * operators of unknown domains come from, "" for known ones. */
bool ort_registry_has_domain(const ort_registry *registry, const char *domain);
const char *ort_registry_hint(const ort_registry *registry, const char *domain);
/* Add the rows of an operator library, all or none (custom_row.c). The library must outlive the
 * registry. ORT_ERROR_USAGE when a row is malformed or its operator exists already. */
ort_status ort_registry_add(ort_registry *registry, const ort_ops_library *library, ort_error *err);
/* The library that a row comes from; NULL for a built-in one. */
const ort_ops_library *ort_op_library(const ort_op *op);
/* All rows, grouped by operator, versions ascending. */
size_t ort_registry_count(const ort_registry *registry);
const ort_op *ort_registry_at(const ort_registry *registry, size_t index);

#define ORT_NEWEST_OPSET 28
#define ORT_NEWEST_ML_OPSET 5
#define ORT_NEWEST_IR 14

/* ---- schema: the parsed form of sig, types and attrs (schema.c) */

typedef struct ort_param {
    char name[64];
    char type[32];   /* variable name, or a type code */
    bool optional, variadic, mixed;
    int minimum;     /* of a variadic */
} ort_param;

typedef struct ort_attr_spec {
    char name[64];
    ort_attr_type type;
    bool required;
    char fallback[64]; /* default as text, "" when none */
} ort_attr_spec;

#define ORT_SCHEMA_MAX 48
typedef struct ort_schema {
    int input_count, output_count, attr_count;
    ort_param inputs[ORT_SCHEMA_MAX], outputs[ORT_SCHEMA_MAX];
    ort_attr_spec attrs[ORT_SCHEMA_MAX];
    int min_inputs, max_inputs, min_outputs, max_outputs; /* max -1: unbounded */
} ort_schema;

ort_status ort_schema_parse(const ort_op *op, ort_schema *schema, ort_error *err);
/* The parameter of a slot: the last one serves all further slots when it is variadic. NULL beyond.
 */
const ort_param *ort_schema_param(const ort_param *params, int count, int slot);
/* Is this the name of a type variable of the row? Is it the letter of a group of types? */
bool ort_schema_is_variable(const ort_op *op, const char *type);
bool ort_schema_is_group(const char *token, size_t length);
/* Has the node the inputs that the row requires, and no more inputs or outputs than it has? Quick:
 * reads the signature in place. */
bool ort_schema_fits(const ort_op *op, const ort_node *node);
/* An attribute of the row, found in place. *text: its default, which ends at ' ' or '\0', a list at
 * ']'; NULL: none. ORT_ATTR_UNDEFINED: the row has no such attribute. */
ort_attr_type ort_schema_attr(const ort_op *op, const char *name, const char **text);
/* Does the type variable (or code) `type` of this row allow a value of this type? An unknown type
 * is allowed. */
bool ort_schema_allows(const ort_op *op, const char *type, const ort_type *actual);
/* The allowed types of a variable as text for messages: "float16, float, double". */
char *ort_schema_format_types(const ort_op *op, const char *type, char *text, size_t size);

bool ort_op_has_attr(const ort_op *op, const char *name);
/* What an attribute is for this node: its own value, or else the default of its row. 0 and "" where
 * the row has none, hasn't this attribute (another version may), or isn't known. */
int64_t ort_node_attr_int(const ort_node *node, const char *name);
float ort_node_attr_float(const ort_node *node, const char *name);
bool ort_node_attr_is(const ort_node *node, const char *name, const char *text); /* a string */
/* A string, copied to `text` as far as it fits. */
const char *ort_node_attr_text(const ort_node *node, const char *name, char *text, size_t size);

/* ---- inference over a graph (infer.c) */

/* Fill the facts of every value of the graph, bodies included. registry resolves node->op first
 * (unknown operators, and nodes without the inputs that theirs requires, leave their outputs
 * unknown and op NULL). findings may be NULL: then the first contradiction is returned as an
 * error; else all are added. */
ort_status ort_graph_infer(ort_graph *graph, const ort_registry *registry, ort_findings *findings,
                           ort_error *err);
/* facts_verify.c: does what is known of each node's outputs agree with what its operator infers
 * now? ORT_ERROR_RUN names the first value whose facts are stale. Constants of a few elements only;
 * nodes with bodies, or of more than 64 inputs or outputs, aren't asked. */
ort_status ort_facts_verify(const ort_graph *graph, ort_error *err);
/* Infer one node from the facts of its inputs, into the facts of its outputs. */
ort_status ort_node_infer(ort_graph *graph, ort_node *node, ort_error *err);
/* The type of a node that has its operator becomes the text of that row, one for all such nodes.
 * Not that of an operator library: it goes with the environment, which a model may outlive. */
void ort_node_share_type(ort_node *node);

/* The rule and infer of op->impl, after element types by the signature, and the shapes of inputs
 * that are one number each (number.c). */
ort_status ort_op_infer(ort_infer *x, ort_error *err);
/* One call of it for given input facts, with body inference and error context in
 * place. Symbolic results whose elements are all known also become constant values. dims NULL:
 * plan time (bodies keep the facts of load time, symbolic dims dropped). out: zeroed by the call.
 */
ort_status ort_infer_call(const ort_graph *graph, const ort_node *node, const ort_fact *const *in,
                          int in_count, ort_fact *out, int out_count, ort_dim_table *dims,
                          ort_arena *arena, ort_error *err);

/* check.c: everything that ort_model_check of ort.h promises. */
ort_status ort_graph_check(ort_model *model, const ort_registry *registry, ort_findings *findings,
                           ort_error *err);

/* eval.c: run one node on values with the scalar tier, no pool: constant folding and ort_op_run.
 * inputs may hold NULL; outputs are new values. */
ort_status ort_node_eval(const ort_node *node, const ort_fact *const *in_facts,
                         const ort_kernels *k, ort_pool *pool, ort_value *const *inputs,
                         int input_count, ort_value **outputs, int output_count, ort_error *err);

#endif
