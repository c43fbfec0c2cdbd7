/* ort_ops.h - operators of one's own for libort; ort.h includes it.
 *
 * An operator library adds operators of its own: a shared object that exports one const table named
 * ort_ops_entry. The tools load it with --ops-lib LIB.so, a program with ort_env_add_ops_library,
 * or with ort_env_add_ops when the table is linked in. It needs this header and no symbol of
 * libort: all it asks of the runtime goes through node->api. From then on check, inference,
 * reports, constant folding, plans and bodies of control flow treat its rows as they treat
 * built-in ones. A whole library (cc -shared -fPIC acme.c -o acme.so):
 *
 *     #include <ort.h>
 *     static ort_status infer(ort_ops_node *node, ort_error *err)
 *     {
 *         const ort_ops_tensor *x = node->api->input(node, 0);
 *         return node->api->set_type(node, 0, x->dtype, x->rank, x->dims, err);
 *     }
 *     static ort_status run(ort_ops_node *node, void *state, ort_error *err)
 *     {
 *         const ort_ops_tensor *x = node->api->input(node, 0);
 *         ort_ops_tensor *y = node->api->output(node, 0, x->rank, x->dims, err);
 *         float factor = node->api->attr_float(node, "factor");
 *         if (!y)
 *             return err->status;
 *         for (int64_t i = 0; i < x->count; i++)
 *             ((float *)y->data)[i] = factor * ((const float *)x->data)[i];
 *         return ORT_OK;
 *     }
 *     static const ort_ops_row rows[] = {
 *         {.domain = "acme", .name = "Scale", .since = 1, .signature = "X:T -> Y:T",
 *          .types = "T:f32", .attributes = "factor:f=1", .infer = infer, .run = run},
 *     };
 *     const ort_ops_library ort_ops_entry = {
 *         .abi = 1, .row_bytes = sizeof *rows, .name = "acme", .rows = rows, .row_count = 1};
 *
 * examples/example_ops.c shows the rest: several types, threads, constant, optional and variadic
 * inputs, strings, state, output shapes that depend on data.
 *
 * Rules
 * - err is never NULL in a callback. What it returns but ORT_OK ends the load or the run, with the
 *   node's name in front of its message.
 * - A `node` and what node->api gives from it are good until the callback returns. What create sees
 *   in attributes and in the data of constant inputs, and its memory from alloc, stay as long as
 *   the state.
 * - infer and create may be called for several nodes and sessions at once, run for one node at once
 *   by concurrent runs of a session: what run changes in the state, the library must guard. In a
 *   task of parallel, node->api must not be called (views fetched before are fine).
 * - Results must depend on inputs, attributes and creation only, unless the row says
 *   ORT_OPS_IMPURE: the runtime computes nodes with constant inputs once, while loading.
 * - The table and all that it refers to must stay until the environment is freed.
 */
#ifndef ORT_OPS_H
#define ORT_OPS_H

#include "ort.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define ORT_OPS_ABI 2 /* goes up when members are added, always at the end of a struct */

/* A tensor as a callback sees it: row-major without gaps. Elements of less than 8 bits are packed
 * as in ONNX (the first in the low bits), strings are reached by get_string and set_string. */
typedef struct ort_ops_tensor {
    ort_dtype dtype;     /* ORT_DTYPE_UNDEFINED: not known (infer only) */
    int rank;            /* -1: not known (infer only) */
    const int64_t *dims; /* infer: a negative entry is a size not known yet. Equal entries other
                            than -1 are certainly equal sizes; copy them to outputs */
    int64_t count;       /* elements; -1: not known */
    void *data;          /* aligned to the element, 64 bytes where the runtime allocates. Inputs are
                            not to be written. infer, create: NULL unless the value is a constant
                            that is known by then */
} ort_ops_tensor;

typedef struct ort_ops_api ort_ops_api;

/* The node that a callback works for. */
typedef struct ort_ops_node {
    const ort_ops_api *api; /* what lies behind is the runtime's */
} ort_ops_node;

/* task: its number; thread: 0..threads-1, for scratch memory. */
typedef void ort_ops_task(void *arg, size_t task, int thread);

/* What a callback may ask for. A question that makes no sense (an attribute that the row does not
 * list, an output in infer) gives NULL or 0, and fails the callback with a message that says so. */
struct ort_ops_api {
    uint32_t abi;        /* of the runtime: members of later numbers are not there */
    const char *(*version)(void); /* of the runtime, as "0.1.0" */

    /* In every callback. */
    int (*opset)(const ort_ops_node *node); /* version of the domain that the model imports */
    int (*input_count)(const ort_ops_node *node); /* slots that the node names, "" among them */
    int (*output_count)(const ort_ops_node *node);
    const ort_ops_tensor *(*input)(const ort_ops_node *node, int index); /* NULL: left out */
    bool (*wanted)(const ort_ops_node *node, int output); /* false: left out */
    /* Attributes by name; the row's default when the node has none, else 0, NULL or an empty list.
     * Lists give their element count. Strings end with a NUL that is not counted. */
    bool (*attr_given)(const ort_ops_node *node, const char *name);
    int64_t (*attr_int)(const ort_ops_node *node, const char *name);
    float (*attr_float)(const ort_ops_node *node, const char *name);
    const char *(*attr_string)(const ort_ops_node *node, const char *name, size_t *length);
    const ort_ops_tensor *(*attr_tensor)(const ort_ops_node *node, const char *name);
    const int64_t *(*attr_ints)(const ort_ops_node *node, const char *name, size_t *count);
    const float *(*attr_floats)(const ort_ops_node *node, const char *name, size_t *count);
    size_t (*attr_count)(const ort_ops_node *node, const char *name); /* of any list */
    const char *(*attr_strings_at)(const ort_ops_node *node, const char *name, size_t index,
                                   size_t *length);
    const ort_ops_tensor *(*attr_tensors_at)(const ort_ops_node *node, const char *name,
                                             size_t index);
    /* Element of a string tensor, row-major: its bytes (no NUL behind them). */
    const char *(*get_string)(const ort_ops_tensor *tensor, int64_t index, size_t *length);
    /* Zeroed bytes, 64-byte aligned, given back by the runtime: what create took with the state,
     * else when the callback returns. NULL: memory is exhausted. */
    void *(*alloc)(ort_ops_node *node, size_t bytes);
    /* Fills err and returns `status`: `return node->api->fail(err, ORT_ERROR_RUN, "...", ...)`. */
    ort_status (*fail)(ort_error *err, ort_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

    /* In infer. */
    /* dtype UNDEFINED: what the signature says. rank -1: not known. dims: sizes, negative entries
     * of inputs or of `dim`, -1. */
    ort_status (*set_type)(ort_ops_node *node, int output, ort_dtype dtype, int rank,
                           const int64_t *dims, ort_error *err);
    /* a op b for sizes that may not be known yet: '+', '-', '*', '/' (rounds down), '^' (divides,
     * rounds up), 'm' (min), 'M' (max). */
    int64_t (*dim)(ort_ops_node *node, char op, int64_t a, int64_t b);

    /* In run. */
    /* Memory of output `index` for this shape, of the element type that was inferred; not zeroed,
     * never the memory of an input. Every output that the node names must be asked for. One that is
     * left out gets memory that nobody reads. NULL on failure. */
    ort_ops_tensor *(*output)(ort_ops_node *node, int index, int rank, const int64_t *dims,
                              ort_error *err);
    /* Element of a string output; the bytes are copied. An element never set is "". */
    ort_status (*set_string)(ort_ops_node *node, ort_ops_tensor *output, int64_t index,
                             const char *text, size_t length, ort_error *err);
    int (*threads)(const ort_ops_node *node); /* that parallel may use, the caller included */
    /* Run task(arg, t, thread) for t in [0, count), return when all are done. What a task computes
     * may depend on its number only: results must be the same for every number of threads. */
    void (*parallel)(const ort_ops_node *node, size_t count, ort_ops_task *task, void *arg);
    bool (*cancelled)(const ort_ops_node *node); /* then clean up and return ORT_ERROR_CANCELLED */
    uint64_t (*seed)(const ort_ops_node *node);  /* of an IMPURE row: one draw per node and run */

    /* From ABI 2 on. In every callback. */
    const void *(*data)(const ort_ops_node *node);      /* that of the row */
    const char *(*node_name)(const ort_ops_node *node); /* "": it has none */
    const char *(*input_name)(const ort_ops_node *node, int index); /* of values; "": left out */
    const char *(*output_name)(const ort_ops_node *node, int index);
    /* Name of attribute number `index` of the node, in the model's order; NULL: it has fewer. */
    const char *(*attr_name)(const ort_ops_node *node, int index);
    /* Its kind, a letter as in ort_attribute_spec (i f s t I F S T); 0: there is none of this name,
     * or it is of another kind. */
    char (*attr_kind)(const ort_ops_node *node, const char *name);
    /* What is known of an output before the run; NULL: left out. In infer: from signature and
     * model. */
    const ort_ops_tensor *(*output_type)(ort_ops_node *node, int index);
    /* What a size is called that isn't known yet ("batch", "2*n"); "": it has no name. */
    const char *(*dim_name)(ort_ops_node *node, int64_t size);
    /* In infer: the size called so; -1 once the sizes of a run are known. */
    int64_t (*dim_named)(ort_ops_node *node, const char *name);
    /* In run: an input as a value, good until the callback returns. */
    const ort_value *(*input_value)(const ort_ops_node *node, int index);
};

/* What else holds for a row. */
enum {
    /* Another result each run (random numbers, state that run changes, the world outside): never
     * computed while loading, never merged with its like. */
    ORT_OPS_IMPURE = 1 << 0,
    /* Output shapes depend on data: they are settled by what run asks of `output`. infer may still
     * say types, ranks and some of the sizes. Implied when infer is NULL. Without it infer must say
     * every shape once those of the inputs are known, and the runtime plans the memory. */
    ORT_OPS_DYNAMIC = 1 << 1,
    /* Nodes may have attributes that the row doesn't list (ABI 2). */
    ORT_OPS_ANY_ATTRIBUTES = 1 << 2,
};

/* One version of one operator. */
typedef struct ort_ops_row {
    const char *domain; /* "acme". "" or "ai.onnx": a name that ONNX does not have */
    const char *name;
    int since;          /* first version of the domain that this row is for, from 1 */
    unsigned flags;     /* ORT_OPS_... */
    /* "X:T,W:T,B?:T,Rest*:T -> Y:T,Z?:i64". Name, then '?' (may be left out), '*' (last; one or
     * more of one type), '**' (of mixed types), '*0' (zero or more), then a type: a variable, or a
     * code: f16 f32 f64 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool str c64 c128 f8e4m3fn f8e4m3fnuz
     * f8e5m2 f8e5m2fnuz f8e8m0 f6e2m3 f6e3m2 f4e2m1 i4 u4 i2 u2. */
    const char *signature;
    /* "T:F,bf16 I:i32,i64": each variable's codes or groups (F = f16 f32 f64, I = i8..i64, U =
     * u8..u64, C, F8, F6, Q4, Q2). A variable has one type in all its slots. NULL: none. */
    const char *types;
    /* "alpha:f=0.5 axis:i! pads:is=[0,0] names:ss table:t": kinds i f s t is fs ss ts; '!' must be
     * given; '=' a default (of i f s is fs). NULL: none. */
    const char *attributes;
    /* Types and shapes of outputs. Called when a model is loaded (sizes may be open) and when the
     * shapes of a run are known. NULL: element types follow from the signature or from what the
     * model declares, shapes from the run. */
    ort_status (*infer)(ort_ops_node *node, ort_error *err);
    /* Once per node and session: attributes and constant inputs into *state. NULL: no state. */
    ort_status (*create)(ort_ops_node *node, void **state, ort_error *err);
    void (*destroy)(void *state); /* after a create that succeeded; may be NULL */
    ort_status (*run)(ort_ops_node *node, void *state, ort_error *err);
    const void *data; /* ABI 2: what node->api->data gives, for rows that share their functions */
} ort_ops_row;

typedef struct ort_ops_library {
    uint32_t abi;       /* lowest ORT_OPS_ABI that has all it uses */
    uint32_t row_bytes; /* sizeof(ort_ops_row) */
    const char *name, *version; /* for messages and reports; version may be NULL */
    const ort_ops_row *rows;
    size_t row_count;
} ort_ops_library;

/* What an operator library defines (libort does not). */
extern const ort_ops_library ort_ops_entry;

/* Add an operator library to an environment: all of its rows or, after an error, none. A file that
 * can't be opened or is no shared object is ORT_ERROR_IO. Without the table, with an ABI newer than
 * ORT_OPS_ABI, a string that doesn't parse, an operator that is built in or already added, it is
 * ORT_ERROR_USAGE. Not while another thread uses the environment; models loaded before see it when
 * a session is made. */
ORT_WARN_UNUSED ort_status ort_env_add_ops_library(ort_env *env, const char *path, ort_error *err);
ORT_WARN_UNUSED ort_status ort_env_add_ops(ort_env *env, const ort_ops_library *library,
                                           ort_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
