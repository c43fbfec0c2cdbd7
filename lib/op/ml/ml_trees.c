/* ml_trees.c - TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble.
 *
 * Scores are summed in double in tree order (ml_tree_score.c) and rounded once at the end. Rows are
 * independent: the grid is blocks of rows, whatever the number of threads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/ml/ml_tree.h"

enum { ROWS_PER_TASK = 64 };

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

/* ---- rows together: in blocks [feature][row], of floats where the forest has pieces for them */

typedef struct grid {
    bool floats;
    int64_t rows;      /* of a block */
    int64_t together;  /* blocks that the trees meet one after the other */
    size_t block;      /* bytes */
} grid;

/* Comparisons of these numbers are the same as floats. */
static bool has_float_rows(const ort_forest *f, const ort_tensor *x)
{
    return f->pieces.tests && (x->dtype == ORT_DTYPE_FLOAT ||
                               (f->rounds_to_float && x->dtype != ORT_DTYPE_DOUBLE));
}

/* As many blocks as leave room for trees in the first-level cache, within a task. */
static grid grid_of(const ort_forest *f, const ort_tensor *x, int64_t features)
{
    bool floats = has_float_rows(f, x);
    grid g = {.floats = floats, .rows = floats ? ORT_TREE_LANES : ORT_TREE_ROWS};
    int64_t bytes = features * g.rows * (int64_t)(floats ? sizeof(float) : sizeof(double));
    g.block = ort_round_up((size_t)ort_max_i64(bytes, 1), 64);
    g.together = ort_min_i64((16 << 10) / (int64_t)g.block, ROWS_PER_TASK / g.rows);
    g.together = ort_max_i64(g.together, 1);
    return g;
}

/* Rows from r on as a block: `given` of them, the last one again for the others. False: one holds a
 * NaN. */
static bool load_block(const work *w, const grid *g, int64_t r, int64_t given, double *row,
                       void *block)
{
    float *floats = block;
    double *doubles = block;
    if (w->x->dtype == ORT_DTYPE_FLOAT && g->floats)
        return w->call->k->math.tree_columns((const float *)w->x->data + r * w->features,
                                             (size_t)w->features, (size_t)given, floats);
    for (int64_t j = 0; j < g->rows; j++) {
        if (j < given)
            load_row(w, r + j, row);
        if (ort_tree_has_nan(row, w->features))
            return false;
        for (int64_t i = 0; i < w->features && g->floats; i++)
            floats[i * g->rows + j] = (float)row[i];
        for (int64_t i = 0; i < w->features && !g->floats; i++)
            doubles[i * g->rows + j] = row[i];
    }
    return true;
}

static void score_blocks(const work *w, const grid *g, int64_t blocks, const void *columns,
                         double *scores, bool *seen)
{
    const ort_forest *f = &w->s->forest;
    if (g->floats)
        ort_forest_score_floats(f, &w->call->k->math, blocks, columns,
                                (int64_t)(g->block / sizeof(float)), scores, seen);
    else
        ort_forest_score_doubles(f, blocks, columns, (int64_t)(g->block / sizeof(double)), scores,
                                 seen);
}

enum { FEW_ROWS = 4 }; /* fewer are scored one by one: a block takes as long for one as for all */

static void score_rows(void *arg, int64_t first, int64_t end, int thread)
{
    const work *w = arg;
    const ort_forest *f = &w->s->forest;
    const grid g = grid_of(f, w->x, w->features);
    char *columns = ort_call_scratch(w->call, thread);
    double *scores = (double *)(void *)(columns + (size_t)g.together * g.block);
    double *row = scores + g.together * g.rows * f->targets;
    bool *seen = (bool *)(row + w->features);
    int64_t r = first, least = g.floats ? FEW_ROWS : g.rows;
    for (int64_t blocks = f->all_leq, rows; blocks > 0; r += rows) {
        blocks = rows = 0;
        for (; blocks < g.together && end - r - rows >= least; blocks++) {
            int64_t given = ort_min_i64(g.rows, end - r - rows);
            if (!load_block(w, &g, r + rows, given, row, columns + (size_t)blocks * g.block))
                break;
            rows += given;
        }
        score_blocks(w, &g, blocks, columns, scores, seen);
        for (int64_t j = 0; j < rows; j++)
            finish_row(w, r + j, scores + j * f->targets, seen + j * f->targets);
    }
    for (; r < end; r++) {
        load_row(w, r, row);
        ort_forest_score(f, row, scores, seen);
        finish_row(w, r, scores, seen);
    }
}

static ort_status forest_shape(ort_shaping *s, ort_error *err)
{
    const forest_state *state = s->state;
    int64_t rows, features;
    ort_ml_rows(s->in[0], &rows, &features);
    const grid g = grid_of(&state->forest, s->in[0], features);
    size_t targets = (size_t)(state->forest.targets * g.together * g.rows);
    s->thread_bytes = (size_t)g.together * g.block +
                      ((size_t)features + targets) * sizeof(double) + targets + 64;
    return ORT_OK;
}

/* A part for each thread, where there are fewer tasks; few walks are over before a second thread
 * has come. */
static int64_t rows_per_task(const work *w)
{
    enum { FEW_WALKS = 512 };
    const ort_forest *f = &w->s->forest;
    int64_t width = ort_call_width(w->call);
    if (width == 1 || w->rows * (int64_t)f->root_count < FEW_WALKS)
        return ROWS_PER_TASK;
    int64_t block = grid_of(f, w->x, w->features).rows;
    int64_t even = (int64_t)ort_round_up((size_t)((w->rows + width - 1) / width), (size_t)block);
    return ort_min_i64(even, ROWS_PER_TASK);
}

static ort_status forest_run(ort_call *call, ort_error *err)
{
    work w = {.call = call, .s = call->state, .x = ort_call_in(call, 0)};
    ort_ml_rows(w.x, &w.rows, &w.features);
    if (w.features <= w.s->forest.max_feature)
        return ort_call_fail(call, err, "input X has %lld features, the trees test feature %lld",
                             (long long)w.features, (long long)w.s->forest.max_feature);
    ort_call_range(call, w.rows, rows_per_task(&w), score_rows, &w);
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
    return ort_forest_cut_pieces(p->arena, &s->forest, err);
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
    return ort_forest_cut_pieces(p->arena, &s->forest, err);
}

static ort_status ensemble_prepare(ort_prep *p, ort_error *err)
{
    forest_state *s = p->state;
    ORT_TRY(ort_forest_build_ml5(p, &s->forest, err));
    return ort_forest_cut_pieces(p->arena, &s->forest, err);
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
