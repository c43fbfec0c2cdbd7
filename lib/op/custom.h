/* custom.h - operators that come from an operator library (ort.h): a registry row like any other,
 * whose impl (custom.c) calls the library. Internal to op/.
 *
 * The row of the library is copied, so that libraries built with an older, shorter row fit; its
 * strings stay where they are.
 */
#ifndef ORT_OP_CUSTOM_H
#define ORT_OP_CUSTOM_H

#include "op/op.h"

typedef struct custom_op {
    ort_op op; /* first member: what the registry points at */
    ort_ops_row row;
    const ort_ops_library *library;
    ort_schema schema;
    ort_attr *defaults; /* by position in schema.attrs; UNDEFINED: none */
} custom_op;

typedef struct custom_state {
    const custom_op *row;
    void *user;          /* what create gave */
    bool check_inputs;   /* types of inputs were not all known when the node was made ready */
    ort_dtype dtypes[];  /* of outputs */
} custom_state;

enum { CUSTOM_INFER = 1, CUSTOM_CREATE = 2, CUSTOM_RUN = 4 };

#define CUSTOM_SMALL 16 /* inputs and outputs of most nodes: no allocation in run */

/* What stands behind the ort_ops_node of a callback, on the caller's stack. */
typedef struct custom_node {
    ort_ops_node shown; /* first member */
    int phase;
    const custom_op *row;
    const ort_node *node;
    ort_infer *x;                /* CUSTOM_INFER */
    ort_prep *p;                 /* CUSTOM_CREATE */
    ort_call *call;              /* CUSTOM_RUN */
    const custom_state *state;
    int in_count, out_count;
    bool *present;               /* [in_count] */
    ort_ops_tensor *in, *out;
    bool *asked;                 /* [out_count]: run has asked for its memory */
    ORT_VEC(ort_dim) sizes;      /* CUSTOM_INFER: entry -2 - i of dims stands for sizes.data[i] */
    ort_arena scratch;           /* until the callback returns */
    char misuse[200];            /* the first question that made no sense */
} custom_node;

extern const ort_op_impl ort_custom_impl;
extern const ort_ops_api ort_custom_api; /* custom_api.c */

static inline custom_node *ort_custom_hidden(const ort_ops_node *node)
{
    return (custom_node *)(uintptr_t)node;
}

/* A size as a library sees it; unknown when memory is exhausted. */
int64_t ort_custom_size(custom_node *c, ort_dim dim);
/* The size that a library sees as this number. */
ort_dim ort_custom_dim(const custom_node *c, int64_t size);
/* A type as a library sees it, in the callback's memory; NULL: memory is exhausted. */
ort_ops_tensor *ort_custom_view_type(custom_node *c, const ort_type *type);

/* Members of ort_custom_api (custom_names.c). */
const void *ort_custom_data(const ort_ops_node *node);
const char *ort_custom_node_name(const ort_ops_node *node);
const char *ort_custom_input_name(const ort_ops_node *node, int index);
const char *ort_custom_output_name(const ort_ops_node *node, int index);
const char *ort_custom_attr_name(const ort_ops_node *node, int index);
char ort_custom_attr_kind(const ort_ops_node *node, const char *name);
const ort_ops_tensor *ort_custom_output_type(ort_ops_node *node, int index);
const char *ort_custom_dim_name(ort_ops_node *node, int64_t size);
int64_t ort_custom_dim_named(ort_ops_node *node, const char *name);
const ort_value *ort_custom_input_value(const ort_ops_node *node, int index);

static inline const custom_op *ort_custom_of(const ort_op *op)
{
    return (const custom_op *)(const void *)op;
}

/* Check the table and make a registry row of each of its rows. ORT_ERROR_USAGE names the library's
 * fault; whether an operator exists already is the registry's business. */
ort_status ort_custom_rows(const ort_ops_library *library, ort_arena *arena,
                           const ort_op ***rows, ort_error *err);

#endif
