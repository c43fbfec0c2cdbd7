/* ml_tree.h - decision tree ensembles in one compact array.
 *
 * A node is 16 bytes; the two children of a node are neighbours (true first), so a step is one
 * load, one comparison and one addition. A leaf is its own true child and its test always holds:
 * a walk may take more steps than a tree is high, so that several walks go in step without a
 * branch. Leaves own a run of (target, weight) pairs. All three ONNX encodings (classifier,
 * regressor, TreeEnsemble-5) are built into this form; orders other than <= are rewritten as it
 * (x < s is x <= the number before s; x > s and x >= s swap the children), exactly.
 */
#ifndef ORT_OP_ML_TREE_H
#define ORT_OP_ML_TREE_H

#include "op/ml_common.h"

enum { /* numbers of TreeEnsemble-5's nodes_modes */
    ORT_TREE_LEQ,
    ORT_TREE_LT,
    ORT_TREE_GTE,
    ORT_TREE_GT,
    ORT_TREE_EQ,
    ORT_TREE_NEQ,
    ORT_TREE_MEMBER,
    ORT_TREE_LEAF,
};

typedef struct ort_tree_node {
    double split;     /* threshold; of a member test: index into `sets`; of a leaf: infinity */
    uint32_t feature; /* feature << 4 | missing-goes-true << 3 | mode */
    uint32_t child;   /* true child; the false child follows. Of a leaf: itself */
} ort_tree_node;

typedef struct ort_tree_pair {
    uint32_t target;
    double weight;
} ort_tree_pair;

typedef struct ort_tree_run { /* the pairs of a leaf */
    uint32_t first, count;
} ort_tree_run;

typedef struct ort_tree_set { /* members of a set test */
    const double *values;
    size_t count;
} ort_tree_set;

typedef enum ort_tree_aggregate {
    ORT_TREE_AVERAGE,
    ORT_TREE_SUM,
    ORT_TREE_MIN,
    ORT_TREE_MAX
} ort_tree_aggregate;

typedef struct ort_forest {
    ort_tree_node *nodes;
    size_t node_count;
    uint32_t *roots;
    uint32_t *heights;     /* [root_count] steps from the root to the deepest leaf */
    size_t root_count;
    ort_tree_run *runs;    /* [node_count] */
    ort_tree_pair *pairs;
    double *alone;         /* [node_count] the weight of a leaf, or NULL: sums of one target, and
                            * one pair at every leaf */
    ort_tree_set *sets;
    int64_t max_feature;
    bool all_leq;          /* every test is <= */
    int64_t targets;
    const double *base;    /* [base_count] added to the scores */
    size_t base_count;
    ort_tree_aggregate aggregate;
    ort_ml_post post;
    bool rounds_to_float;  /* splits are float: inputs are rounded to float before comparing */
} ort_forest;

/* Build from the attributes of each encoding; states live in p->arena. */
ort_status ort_forest_build_ml3(ort_prep *p, const char *prefix, ort_forest *forest,
                                ort_error *err);
ort_status ort_forest_build_ml5(ort_prep *p, ort_forest *forest, ort_error *err);

/* Rows that are scored together. */
enum { ORT_TREE_ROWS = 8 };

/* Aggregate one row into score[targets]; seen[t] tells whether a leaf spoke of target t. */
void ort_forest_score(const ort_forest *forest, const double *row, double *score, bool *seen);
/* The same for blocks of ORT_TREE_ROWS rows, columns[b * block + feature * ORT_TREE_ROWS + row],
 * none of them NaN, of a forest that is all_leq; scores and seen are [b][row][target]. To the bit
 * what ort_forest_score gives. */
void ort_forest_score_rows(const ort_forest *forest, int64_t blocks, const double *columns,
                           int64_t block, double *scores, bool *seen);

#endif
