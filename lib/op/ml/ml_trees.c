/* ml_trees.c - TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble.
 *
 * Scores are summed in double in tree order and rounded once at the end. Rows are independent: the
 * grid is blocks of rows, whatever the number of threads. A walk waits for a load and a comparison
 * at each step, so that eight go in step: one tree over eight rows, or eight trees over one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/ml/ml_tree.h"

enum { ROWS_PER_TASK = 64, BLOCKS_PER_TASK = ROWS_PER_TASK / ORT_TREE_ROWS };

/* ---- traversal */

static bool is_member(const ort_forest *f, const ort_tree_set *set, double x)
{
    for (size_t i = 0; i < set->count; i++)
        if (f->members[set->first + i] == x)
            return true;
    return false;
}

static bool test(const ort_forest *f, const ort_tree_node *n, double x)
{
    switch (n->feature & 7) {
    case ORT_TREE_LEQ:
        return x <= n->split;
    case ORT_TREE_LT:
        return x < n->split;
    case ORT_TREE_GTE:
        return x >= n->split;
    case ORT_TREE_GT:
        return x > n->split;
    case ORT_TREE_EQ:
        return x == n->split;
    case ORT_TREE_NEQ:
        return x != n->split;
    default:
        return is_member(f, &f->sets[(size_t)n->split], x);
    }
}

/* One tree, any tests and values. */
static uint32_t walk(const ort_forest *f, uint32_t root, const double *row)
{
    uint32_t at = root;
    for (;;) {
        const ort_tree_node *n = &f->nodes[at];
        if ((n->feature & 7) == ORT_TREE_LEAF)
            return at;
        double x = row[n->feature >> 4];
        bool yes = isnan(x) ? (n->feature & 8) != 0 : test(f, n, x);
        at = n->child + !yes;
    }
}

/* Eight walks through tests of <=, without NaN. Step is `x <= split ? child : child + 1`; after
 * some steps all may have come to leaves, where they stay. `value(lane, feature)` is x. */
#define EVERY_LANE(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define LANE_BEGIN(j) const ort_tree_node *n##j = nodes + at[j];
#define LANE_END(j) at[j] = (uint32_t)(n##j - nodes);
#define LANE_STEP(j) n##j = nodes + (n##j->child + (VALUE(j, n##j->feature) > n##j->split));
#define LANE_LEAF(j) leaves &= n##j->feature;
#define WALK(height)                                                                               \
    EVERY_LANE(LANE_BEGIN)                                                                         \
    for (uint32_t left = (height); left > 0;) {                                                    \
        uint32_t leaves = ORT_TREE_LEAF;                                                           \
        for (uint32_t k = left < 4 ? left : 4; k > 0; k--, left--) {                               \
            EVERY_LANE(LANE_STEP)                                                                  \
        }                                                                                          \
        EVERY_LANE(LANE_LEAF)                                                                      \
        if (leaves == ORT_TREE_LEAF)                                                               \
            break;                                                                                 \
    }                                                                                              \
    EVERY_LANE(LANE_END)

static void walk_rows(const ort_tree_node *nodes, const double *columns, uint32_t height,
                      uint32_t *at)
{
    /* feature >> 4 rows of columns, in two instructions less. */
#define VALUE(j, feature) columns[(size_t)((feature) & ~15u) * ORT_TREE_ROWS / 16 + j]
    WALK(height)
#undef VALUE
}

static void walk_trees(const ort_tree_node *nodes, const double *row, uint32_t height,
                       uint32_t *at)
{
#define VALUE(j, feature) row[(feature) >> 4]
    WALK(height)
#undef VALUE
}

static void take(const ort_forest *f, uint32_t leaf, double *score, bool *seen)
{
    if (f->alone != NULL) {
        *score += f->alone[leaf];
        *seen = true;
        return;
    }
    const ort_tree_pair *pair = &f->pairs[f->runs[leaf].first];
    const ort_tree_pair *end = pair + f->runs[leaf].count;
    bool sums = f->aggregate == ORT_TREE_SUM || f->aggregate == ORT_TREE_AVERAGE;
    for (; pair < end; pair++) {
        double *s = &score[pair->target];
        if (sums)
            *s += pair->weight;
        else if (!seen[pair->target] ||
                 (f->aggregate == ORT_TREE_MIN ? pair->weight < *s : pair->weight > *s))
            *s = pair->weight;
        seen[pair->target] = true;
    }
}

/* The same of ORT_TREE_ROWS walks, walk j into scores[j * step]. */
static inline void take_all(const ort_forest *f, const uint32_t *at, double *scores, bool *seen,
                            int64_t step)
{
    if (f->alone != NULL)
        for (int j = 0; j < ORT_TREE_ROWS; j++) {
            scores[j * step] += f->alone[at[j]];
            seen[j * step] = true;
        }
    else
        for (int j = 0; j < ORT_TREE_ROWS; j++)
            take(f, at[j], scores + j * step, seen + j * step);
}

static void average(const ort_forest *f, double *scores, int64_t count)
{
    if (f->aggregate == ORT_TREE_AVERAGE)
        for (int64_t t = 0; t < count; t++)
            scores[t] /= (double)f->root_count;
}

static bool has_nan(const double *row, int64_t count)
{
    bool any = false;
    for (int64_t i = 0; i < count; i++)
        any |= isnan(row[i]);
    return any;
}

/* Aggregate one row into score[targets]; seen[t] tells whether a leaf spoke of target t. */
static void forest_score(const ort_forest *f, const double *row, double *score, bool *seen)
{
    size_t r = 0;
    memset(score, 0, (size_t)f->targets * sizeof *score);
    memset(seen, 0, (size_t)f->targets * sizeof *seen);
    bool plain = f->all_leq && !has_nan(row, f->max_feature + 1);
    for (; plain && r + ORT_TREE_ROWS <= f->root_count; r += ORT_TREE_ROWS) {
        uint32_t at[ORT_TREE_ROWS], height = 0;
        memcpy(at, &f->roots[r], sizeof at);
        for (int j = 0; j < ORT_TREE_ROWS; j++)
            height = f->heights[r + (size_t)j] > height ? f->heights[r + (size_t)j] : height;
        walk_trees(f->nodes, row, height, at);
        take_all(f, at, score, seen, 0);
    }
    for (; r < f->root_count; r++)
        take(f, walk(f, f->roots[r], row), score, seen);
    average(f, score, f->targets);
}

/* The same for blocks of ORT_TREE_ROWS rows, columns[b * block + feature * ORT_TREE_ROWS + row],
 * none of them NaN, of a forest that is all_leq; scores and seen are [b][row][target]. To the bit
 * what forest_score gives. */
static void score_rows_of_blocks(const ort_forest *f, int64_t blocks, const double *columns,
                                 int64_t block, double *scores, bool *seen)
{
    const int64_t count = f->targets * ORT_TREE_ROWS;
    memset(scores, 0, (size_t)(count * blocks) * sizeof *scores);
    memset(seen, 0, (size_t)(count * blocks) * sizeof *seen);
    for (size_t r = 0; r < f->root_count; r++)
        for (int64_t b = 0; b < blocks; b++) {
            uint32_t at[ORT_TREE_ROWS];
            for (int j = 0; j < ORT_TREE_ROWS; j++)
                at[j] = f->roots[r];
            walk_rows(f->nodes, columns + b * block, f->heights[r], at);
            take_all(f, at, scores + b * count, seen + b * count, f->targets);
        }
    average(f, scores, count * blocks);
}

/* ---- state and grid */

typedef struct forest_state {
    ort_forest forest;
    ort_ml_labels labels;
    bool classifier, binary_one_class, all_positive;
} forest_state;

#define FOREST_POST                                                                                \
    ORT_BIND_AS(forest_state, forest.post, "post_transform", ORT_WORDS(ORT_ML_POST_WORDS))
#define FOREST_TARGETS                                                                             \
    ORT_BIND_AS(forest_state, forest.targets, "n_targets", ORT_WITHIN(1, INT32_MAX), ORT_ELSE(1))
static const ort_bind classifier_bind[] = {FOREST_POST, {0}};
static const ort_bind regressor_bind[] = {
    FOREST_POST, FOREST_TARGETS,
    ORT_BIND_AS(forest_state, forest.aggregate, "aggregate_function",
                ORT_WORDS("AVERAGE SUM MIN MAX")), {0}};
static const ort_bind ensemble_bind[] = {
    FOREST_TARGETS,
    ORT_BIND_AS(forest_state, forest.aggregate, "aggregate_function", ORT_WITHIN(0, 3)),
    ORT_BIND_AS(forest_state, forest.post, "post_transform", ORT_WITHIN(0, 4)), {0}};

typedef struct work {
    const ort_call *call;
    const forest_state *s;
    const ort_tensor *x;
    int64_t rows, features;
} work;

/* Scores of two classes from what the leaves said; returns the label's class. Which rule holds when
 * the leaves speak of one class only is onnxruntime's choice (see ml_common.h). */
static int64_t finish_two(const forest_state *s, double *score, bool *seen)
{
    const ort_forest *f = &s->forest;
    if (f->base_count == 2) {
        if (seen[1]) {
            if (!seen[0] || s->binary_one_class) {
                score[1] += f->base[1];
                score[0] = -score[1];
                return score[1] > 0;
            }
        }
        score[0] += f->base[0];
        score[1] += f->base[1];
    } else if (f->base_count == 1) {
        score[0] += f->base[0];
    }
    if (!s->binary_one_class) {
        ort_ml_post_row(f->post, score, 2);
        return score[1] > score[0];
    }
    double value = seen[1] ? score[1] : score[0];
    int64_t label = s->all_positive ? value > 0.5 : value > 0;
    if (f->post == ORT_ML_PROBIT) {
        score[1] = ort_ml_probit(value);
        score[0] = 1 - score[1];
    } else if (s->all_positive) {
        score[0] = 1 - value;
        score[1] = value;
    } else {
        score[0] = -value;
        score[1] = value;
        if (f->post == ORT_ML_LOGISTIC)
            ort_ml_post_row(f->post, score, 2);
    }
    return label;
}

static int64_t finish_many(const forest_state *s, double *score)
{
    const ort_forest *f = &s->forest;
    int64_t best = 0;
    for (int64_t t = 0; t < f->targets && f->base_count > 0; t++)
        score[t] += f->base[f->base_count > 1 ? t : 0];
    for (int64_t t = 1; t < f->targets; t++)
        if (score[t] > score[best])
            best = t;
    ort_ml_post_row(f->post, score, f->targets);
    return best;
}

static void finish_row(const work *w, int64_t row, double *score, bool *seen)
{
    const forest_state *s = w->s;
    const ort_forest *f = &s->forest;
    ort_tensor *labels = s->classifier ? ort_call_out(w->call, 0) : NULL;
    ort_tensor *out = ort_call_out(w->call, s->classifier ? 1 : 0);
    if (s->classifier) {
        int64_t label = f->targets == 2 ? finish_two(s, score, seen) : finish_many(s, score);
        if (labels != NULL)
            ort_ml_set_label(&s->labels, labels, row, label);
    } else {
        for (int64_t t = 0; t < f->targets && f->base_count > 0; t++)
            score[t] += f->base[f->base_count > 1 ? t : 0];
        ort_ml_post_row(f->post, score, f->targets);
    }
    for (int64_t t = 0; out != NULL && t < f->targets; t++)
        ort_tensor_set_f64(out, row * f->targets + t, score[t]);
}

static void load_row(const work *w, int64_t r, double *row)
{
    ort_ml_load_row(w->x, r * w->features, w->features, row);
    if (w->s->forest.rounds_to_float && w->x->dtype != ORT_DTYPE_DOUBLE)
        for (int64_t i = 0; i < w->features; i++)
            row[i] = (double)(float)row[i];
}

/* Whether rows [r, r + ORT_TREE_ROWS) can be scored together; then they lie in `columns`. */
static bool load_columns(const work *w, int64_t r, double *row, double *columns)
{
    for (int j = 0; j < ORT_TREE_ROWS; j++) {
        load_row(w, r + j, row);
        if (has_nan(row, w->features))
            return false;
        for (int64_t i = 0; i < w->features; i++)
            columns[i * ORT_TREE_ROWS + j] = row[i];
    }
    return true;
}

/* Blocks of rows that each tree meets one after the other, while it is in the first-level cache:
 * as many as leave room for it there. */
static int64_t blocks_together(int64_t features)
{
    int64_t bytes = ort_max_i64(features, 1) * ORT_TREE_ROWS * (int64_t)sizeof(double);
    return ort_max_i64(ort_min_i64((16 << 10) / bytes, BLOCKS_PER_TASK), 1);
}

static void score_rows(void *arg, int64_t first, int64_t end, int thread)
{
    const work *w = arg;
    const ort_forest *f = &w->s->forest;
    const int64_t together = blocks_together(w->features), block = w->features * ORT_TREE_ROWS;
    double *row = ort_call_scratch(w->call, thread), *columns = row + w->features;
    double *scores = columns + together * block;
    bool *seen = (bool *)(scores + together * f->targets * ORT_TREE_ROWS);
    int64_t r = first;
    for (int64_t blocks = f->all_leq; blocks > 0; r += blocks * ORT_TREE_ROWS) {
        const int64_t most = ort_min_i64(together, (end - r) / ORT_TREE_ROWS);
        for (blocks = 0; blocks < most; blocks++)
            if (!load_columns(w, r + blocks * ORT_TREE_ROWS, row, columns + blocks * block))
                break;
        score_rows_of_blocks(f, blocks, columns, block, scores, seen);
        for (int64_t j = 0; j < blocks * ORT_TREE_ROWS; j++)
            finish_row(w, r + j, scores + j * f->targets, seen + j * f->targets);
    }
    for (; r < end; r++) {
        load_row(w, r, row);
        forest_score(f, row, scores, seen);
        finish_row(w, r, scores, seen);
    }
}

static ort_status forest_shape(ort_shaping *s, ort_error *err)
{
    const forest_state *state = s->state;
    int64_t rows, features;
    ort_ml_rows(s->in[0], &rows, &features);
    size_t rows_together = (size_t)blocks_together(features) * ORT_TREE_ROWS;
    size_t targets = (size_t)state->forest.targets * rows_together;
    s->thread_bytes = ((size_t)features * (1 + rows_together) + targets) * sizeof(double) +
                      targets + 64;
    return ORT_OK;
}

static ort_status forest_run(ort_call *call, ort_error *err)
{
    work w = {.call = call, .s = call->state, .x = ort_call_in(call, 0)};
    ort_ml_rows(w.x, &w.rows, &w.features);
    if (w.features <= w.s->forest.max_feature)
        return ort_call_fail(call, err, "input X has %lld features, the trees test feature %lld",
                             (long long)w.features, (long long)w.s->forest.max_feature);
    ort_call_range(call, w.rows, ROWS_PER_TASK, score_rows, &w);
    return ORT_OK;
}

/* ---- classifier */

static int64_t class_count(const ort_node *node)
{
    ort_ml_labels labels = ort_ml_read_labels(node, "classlabels_int64s", "classlabels_strings");
    return labels.count == 1 ? 2 : (int64_t)labels.count;
}

static ort_status classifier_infer(ort_infer *x, ort_error *err)
{
    ort_ml_labels labels =
        ort_ml_read_labels(x->node, "classlabels_int64s", "classlabels_strings");
    return ort_ml_infer_classifier(x, &labels, class_count(x->node), err);
}

static ort_status classifier_prepare(ort_prep *p, ort_error *err)
{
    forest_state *s = p->state;
    s->classifier = true;
    s->labels = ort_ml_read_labels(p->node, "classlabels_int64s", "classlabels_strings");
    s->forest.targets = class_count(p->node);
    s->forest.aggregate = ORT_TREE_SUM;
    if (s->forest.targets == 0)
        return ort_prep_fail(p, err, "neither classlabels_int64s nor classlabels_strings is given");
    ORT_TRY(ort_forest_build_ml3(p, "class", &s->forest, err));
    if (s->forest.base_count > 1 && (int64_t)s->forest.base_count != s->forest.targets)
        return ort_prep_fail(p, err, "base_values has %zu elements for %lld classes",
                             s->forest.base_count, (long long)s->forest.targets);
    s->binary_one_class = s->forest.targets == 2 && s->forest.one_class;
    s->all_positive = s->forest.all_positive;
    return ORT_OK;
}

/* ---- regressors */

static ort_status regressor_infer(ort_infer *x, ort_error *err)
{
    return ort_ml_infer_rows(x, ort_node_int(x->node, "n_targets", 1), err);
}

static ort_status regressor_prepare(ort_prep *p, ort_error *err)
{
    forest_state *s = p->state;
    ORT_TRY(ort_forest_build_ml3(p, "target", &s->forest, err));
    if (s->forest.base_count > 1 && (int64_t)s->forest.base_count != s->forest.targets)
        return ort_prep_fail(p, err, "base_values has %zu elements for %lld targets",
                             s->forest.base_count, (long long)s->forest.targets);
    return ORT_OK;
}

static ort_status ensemble_prepare(ort_prep *p, ort_error *err)
{
    forest_state *s = p->state;
    return ort_forest_build_ml5(p, &s->forest, err);
}

/* ---- rows */

static const ort_op_impl classifier = {
    .state = sizeof(forest_state), .bind = classifier_bind,
    .infer = classifier_infer, .prepare = classifier_prepare, .shape = forest_shape,
    .run = forest_run,
};
static const ort_op_impl regressor = {
    .state = sizeof(forest_state), .bind = regressor_bind,
    .infer = regressor_infer, .prepare = regressor_prepare, .shape = forest_shape,
    .run = forest_run,
};
static const ort_op_impl ensemble = {
    .state = sizeof(forest_state), .bind = ensemble_bind, .rule = "[_,_]", .infer = regressor_infer,
    .prepare = ensemble_prepare, .shape = forest_shape, .run = forest_run,
};

#define CLASSIFIER_SIG "X:T1 -> Y:T2,Z:f32"
#define CLASSIFIER_TYPES "T1:f32,f64,i64,i32 T2:str,i64"
#define CLASSIFIER_ATTRS_3                                                                         \
    "base_values:fs base_values_as_tensor:t class_ids:is class_nodeids:is class_treeids:is "       \
    "class_weights:fs class_weights_as_tensor:t classlabels_int64s:is classlabels_strings:ss "     \
    "nodes_falsenodeids:is nodes_featureids:is nodes_hitrates:fs nodes_hitrates_as_tensor:t "      \
    "nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is nodes_treeids:is "         \
    "nodes_truenodeids:is nodes_values:fs nodes_values_as_tensor:t post_transform:s=NONE"
#define REGRESSOR_ATTRS_3                                                                          \
    "aggregate_function:s=SUM base_values:fs base_values_as_tensor:t n_targets:i "                 \
    "nodes_falsenodeids:is nodes_featureids:is nodes_hitrates:fs nodes_hitrates_as_tensor:t "      \
    "nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is nodes_treeids:is "         \
    "nodes_truenodeids:is nodes_values:fs nodes_values_as_tensor:t post_transform:s=NONE "         \
    "target_ids:is target_nodeids:is target_treeids:is target_weights:fs "                         \
    "target_weights_as_tensor:t"

const ort_op ort_ops_ml_trees[] = {
    {ML, "TreeEnsembleClassifier", 1, CLASSIFIER_SIG, CLASSIFIER_TYPES,
     "base_values:fs class_ids:is class_nodeids:is class_treeids:is class_weights:fs "
     "classlabels_int64s:is classlabels_strings:ss nodes_falsenodeids:is nodes_featureids:is "
     "nodes_hitrates:fs nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is "
     "nodes_treeids:is nodes_truenodeids:is nodes_values:fs post_transform:s=NONE",
     0, &classifier,
     .history = "3:+base_values_as_tensor:t +class_weights_as_tensor:t +nodes_hitrates_as_tensor:t "
                "+nodes_values_as_tensor:t"},
    /* Deprecated at 5 in favour of TreeEnsemble, with the same meaning: old exporters still write
     * it. */
    {ML, "TreeEnsembleClassifier", 5, CLASSIFIER_SIG, CLASSIFIER_TYPES, CLASSIFIER_ATTRS_3, 0,
     &classifier},
    {ML, "TreeEnsembleRegressor", 1, "X:T -> Y:f32", "T:f32,f64,i64,i32",
     "aggregate_function:s=SUM base_values:fs n_targets:i nodes_falsenodeids:is "
     "nodes_featureids:is "
     "nodes_hitrates:fs nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is "
     "nodes_treeids:is nodes_truenodeids:is nodes_values:fs post_transform:s=NONE target_ids:is "
     "target_nodeids:is target_treeids:is target_weights:fs",
     0, &regressor,
     .history = "3:+base_values_as_tensor:t +nodes_hitrates_as_tensor:t +nodes_values_as_tensor:t "
                "+target_weights_as_tensor:t 5"},
    {ML, "TreeEnsemble", 5, "X:T -> Y:T", "T:F",
     "aggregate_function:i=1 leaf_targetids:is! leaf_weights:t! membership_values:t n_targets:i "
     "nodes_falseleafs:is! nodes_falsenodeids:is! nodes_featureids:is! nodes_hitrates:t "
     "nodes_missing_value_tracks_true:is nodes_modes:t! nodes_splits:t! nodes_trueleafs:is! "
     "nodes_truenodeids:is! post_transform:i=0 tree_roots:is!",
     0, &ensemble},
    {0},
};
