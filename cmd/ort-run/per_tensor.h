/* per_tensor.h - values of a float model and of a quantized one that belong together.
 */
#ifndef ORT_RUN_PER_TENSOR_H
#define ORT_RUN_PER_TENSOR_H

#include <json-c/json.h>

#include "run.h"

typedef struct common_value {
    char *name, *other; /* in the float model, in the quantized one */
    const char *kind;   /* "input", "value", "output", "weight" */
    ort_value *kept;    /* of the present run */
    ort_distance distance;
    bool seen;          /* in some run */
    const char *why;    /* it can't be compared; or NULL */
    ort_value *scale, *zero; /* of codes that nothing dequantizes; or NULL */
} common_value;

typedef struct party {
    const char *path;
    ort_model *model;
    ort_session *session;
    json_object *nodes; /* rows of ORT_REPORT_NODES */
    string_list names;  /* of what nodes give, sorted */
    size_t inputs, outputs;
    ort_value **in, **out;
} party;

typedef struct per_tensor {
    const run_options *options;
    const ort_run_options *how;
    ort_env *env;
    party a, b; /* float, quantized */
    common_value *values;
    size_t count, capacity;
    common_value **by_name, **by_other; /* [count], sorted */
    size_t runs;
} per_tensor;

/* ---- value_pairs.c */

/* The nodes of a model that was loaded, and the names of what they give. */
int pairs_read(party *p);
/* Common values, by the float session's inputs and outputs and what both files hold; weights are
 * measured at once. */
int pairs_find(per_tensor *t);
bool pairs_has(const string_list *sorted, const char *name);
int pairs_by_name(const void *x, const void *y);
int pairs_by_other(const void *x, const void *y);

#endif
