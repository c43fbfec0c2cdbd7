/* ml_tree.h - decision tree ensembles in one compact array.
 *
 * A node is 16 bytes; the two children of a node are neighbours (true first), so a step is one
 * load, one comparison and one addition. A leaf is its own true child and its test always holds:
 * a walk may take more steps than a tree is high, so that several walks go in step without a
 * branch. Leaves own a run of (target, weight) pairs. All three ONNX encodings (classifier,
 * regressor, TreeEnsemble-5) are built into this form; orders other than <= are rewritten as it
 * (x < s is x <= the number before s; x > s and x >= s swap the children), exactly.
 *
 * All of it lies in one block (ort_forest_head and the arrays behind it), which a pack file holds:
 * a forest that is found there is checked, place by place, and used where it lies.
 */
#ifndef ORT_OP_ML_ML_TREE_H
#define ORT_OP_ML_ML_TREE_H

#include "op/ml/ml_common.h"

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
    uint64_t first, count;
} ort_tree_set;

typedef enum ort_tree_aggregate {
    ORT_TREE_AVERAGE,
    ORT_TREE_SUM,
    ORT_TREE_MIN,
    ORT_TREE_MAX
} ort_tree_aggregate;

/* The beginning of the block. */
typedef struct ort_forest_head {
    uint64_t node_count, root_count, base_count, set_count, member_count;
    uint64_t run_count, pair_count; /* of lists: node_count and the weights, or 0 */
    uint64_t alone_count;           /* node_count, or 0 */
    uint32_t rounds_to_float, one_class, all_positive; /* 0 or 1 */
    uint32_t max_feature; /* of a test */
} ort_forest_head;

/* The beginnings of the trees as kernels score them for rows of floats (ml_tree_pieces.c): a piece
 * of each tree, as large as ORT_TREE_LEAVES leaves. */
typedef struct ort_tree_pieces {
    const ort_tree_test *tests;     /* NULL: there are none, and rows walk */
    const uint32_t *first, *counts; /* [root_count] tests of a tree */
    const uint32_t *exits;          /* [root_count][ORT_TREE_LEAVES] nodes at leaves of pieces */
    const double *weights;          /* the same: `alone` of them; or NULL */
    bool whole;                     /* all exits are leaves of their trees */
} ort_tree_pieces;

typedef struct ort_forest {
    const ort_tree_node *nodes;
    size_t node_count;
    const uint32_t *roots;
    const uint32_t *heights; /* [root_count] steps from the root to the deepest leaf */
    size_t root_count;
    const ort_tree_run *runs;   /* [node_count] */
    const ort_tree_pair *pairs;
    const double *alone;   /* [node_count] the weight of a leaf, in place of runs and pairs; NULL:
                            * not sums of one target, or not one pair at every leaf */
    const ort_tree_set *sets;
    const double *members; /* of the sets */
    int64_t max_feature;
    bool all_leq;          /* every test is <= */
    int64_t targets;
    const double *base;    /* [base_count] added to the scores */
    size_t base_count;
    ort_tree_aggregate aggregate;
    ort_ml_post post;
    bool rounds_to_float;  /* splits are float: inputs are rounded to float before comparing */
    bool one_class;        /* of a classifier: all weights are for the same class */
    bool all_positive;     /* no weight is negative */
    ort_tree_pieces pieces;
} ort_forest;

/* Build from the attributes of each encoding, or find what was built in the pack. The caller has
 * set targets, and aggregate of ml3. */
ort_status ort_forest_build_ml3(ort_prep *p, const char *prefix, ort_forest *forest,
                                ort_error *err);
ort_status ort_forest_build_ml5(ort_prep *p, ort_forest *forest, ort_error *err);

/* ---- ml_tree_block.c */

/* Arrays of a block, to be filled. */
typedef struct ort_forest_parts {
    ort_tree_node *nodes;
    uint32_t *roots, *heights;
    double *base, *members, *alone;
    ort_tree_run *runs;
    ort_tree_pair *pairs;
    ort_tree_set *sets;
} ort_forest_parts;

/* A block of the pack or the session for so much; empty arrays are NULL. */
ort_status ort_forest_block_new(ort_prep *p, const ort_forest_head *head, ort_forest_head **block,
                                ort_forest_parts *parts, ort_error *err);
/* The forest of a block that has just been filled; finds what the nodes tell. */
void ort_forest_block_use(const ort_forest_head *block, ort_forest *forest);
/* The forest of a mapped block: an error when any number in it could lead outside of it. */
ort_status ort_forest_block_find(ort_prep *p, ort_forest *forest, ort_error *err);

/* ---- ml_tree_pieces.c: of a forest that is all_leq; memory is the session's */

ort_status ort_forest_cut_pieces(ort_arena *arena, ort_forest *forest, ort_error *err);

/* ---- ml_tree_score.c: seen[t] tells whether a leaf spoke of target t */

/* Rows that walk together. */
enum { ORT_TREE_ROWS = 8 };

/* One row into score[targets]. */
void ort_forest_score(const ort_forest *f, const double *row, double *score, bool *seen);
/* Blocks of ORT_TREE_ROWS rows, columns[b * block + feature * ORT_TREE_ROWS + row], none of them
 * NaN, of a forest that is all_leq; scores and seen are [b][row][target]. */
void ort_forest_score_doubles(const ort_forest *f, int64_t blocks, const double *columns,
                              int64_t block, double *scores, bool *seen);
/* The same for blocks of ORT_TREE_LANES rows of floats, of a forest that has pieces. */
void ort_forest_score_floats(const ort_forest *f, const ort_vmath_kernels *k, int64_t blocks,
                             const float *columns, int64_t block, double *scores, bool *seen);
bool ort_tree_has_nan(const double *row, int64_t count);

#endif
