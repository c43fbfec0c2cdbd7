/* transpose_table.h - inside of transpose_rules.c and transpose_anew.c: operators by what a
 * permutation does to them, and how their axes are read. */
#ifndef ORT_PASS_TRANSPOSE_TRANSPOSE_TABLE_H
#define ORT_PASS_TRANSPOSE_TRANSPOSE_TABLE_H

#include "pass/facts/facts.h"
#include "pass/transpose/transpose_rules.h"

typedef enum ort_rule_kind {
    ORT_RULE_ELEMENTWISE,
    ORT_RULE_AXIS,      /* attribute "axis" */
    ORT_RULE_NORMALIZE, /* the same; before opset 13 it means all axes from there on */
    ORT_RULE_SCALES,    /* "axis" of scales with one dimension */
    ORT_RULE_AXIS_IN,   /* input 1 */
    ORT_RULE_REMOVE,    /* "axis" goes unless keepdims */
    ORT_RULE_PICK,      /* Gather: "axis" goes when one index picks */
    ORT_RULE_REDUCE,    /* "axes", attribute or input 1 */
    ORT_RULE_MEANS,     /* "axes", attribute; they stay */
    ORT_RULE_FRONT,     /* the first two axes stay where they are */
    ORT_RULE_TAIL,      /* the axes from "axis" on stay where they are */
    ORT_RULE_SQUEEZE,
    ORT_RULE_UNSQUEEZE,
    ORT_RULE_RESHAPE,
    ORT_RULE_SHAPE,
    ORT_RULE_EXPAND,
    ORT_RULE_SLICE,
    ORT_RULE_PAD,
    ORT_RULE_TILE,
    ORT_RULE_RESIZE,
    ORT_RULE_PRODUCT,
} ort_rule_kind;

#define ORT_RULE_ALL_DATA UINT64_MAX
#define ORT_RULE_FIRST_DATA UINT64_C(1)

typedef struct ort_rule {
    const char *domain, *op_type;
    ort_rule_kind kind;
    uint64_t data; /* inputs that hold data, a bit each; of further ones nothing is known */
    int since;     /* of the operator */
    bool first;    /* only the first output holds data */
} ort_rule;

/* The rule of a node, or NULL. */
const ort_rule *ort_rule_of(const ort_node *node);
/* The first input that holds data. */
int ort_rule_slot(const ort_rule *r);
/* The type of an input that is a tensor of known rank; else NULL. */
const ort_type *ort_rule_type(const ort_graph *graph, const ort_node *node, int slot);
/* "axis" from the front; -1: out of range. */
int ort_rule_axis(const ort_rule *r, const ort_node *node, int rank);
/* Those of a rule that drops them (of a REDUCE without any: all); -1: not known. */
int ort_rule_dropped(const ort_graph *graph, const ort_node *node, const ort_rule *r, int rank,
                     int64_t *axes);
/* A constant list of numbers, or NULL. */
const ort_tensor *ort_rule_list(const ort_graph *graph, const ort_node *node, int slot);
/* The slot of the scales or sizes of a Resize. */
int ort_rule_resize_slot(const ort_graph *graph, const ort_node *node);
/* The new type of data that lies permuted: v' of v = Transpose(v', p). */
ort_type ort_permuted_type(const ort_type *type, const ort_perm *p);

/* A Reshape whose last axis joins axes that p tears apart, read by products with constant weights
 * alone: rows of the weights can change places instead (transpose_joined.c). */
typedef struct ort_joined {
    ort_perm order;             /* of the joined axes alone */
    int64_t dim[ORT_MAX_RANK];  /* of these */
} ort_joined;
bool ort_joins_for_products(const ort_graph *graph, const ort_node *node, const ort_perm *p,
                            ort_joined *joined);
/* The weights of all readers of the node's result, so that they fit the permuted input. They read
 * *row, a new value: it holds other numbers than the one whose name stays behind. */
ort_status ort_join_weights(ort_graph *graph, const ort_node *node, const ort_joined *joined,
                            ort_id *row, ort_error *err);

#endif
