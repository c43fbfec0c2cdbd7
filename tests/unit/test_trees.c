/* test_trees.c - forests over rows in batches give each row the bits that it has alone, on every
 * kernel tier and for threads that each take a part of them: trees from a lone leaf to more leaves
 * than a piece has, orders of both sides, splits that rows hit, rows with NaN, and element types
 * whose rows go as floats and as doubles. */
#include <math.h>
#include <stdlib.h>

#include "ort.h"
#include "test.h"
#include "workers.h"

enum { FEATURES = 19, TREES = 9, NODES_MAX = TREES * 400, ROWS_MAX = 131 };

typedef struct forest {
    int64_t tree[NODES_MAX], node[NODES_MAX], feature[NODES_MAX], yes[NODES_MAX], no[NODES_MAX];
    const char *mode[NODES_MAX];
    float split[NODES_MAX], weight[NODES_MAX];
    int64_t leaf_tree[NODES_MAX], leaf_node[NODES_MAX], target[NODES_MAX];
    int64_t missing[NODES_MAX];
    size_t nodes, leaves;
} forest;

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)*state * below >> 32);
}

/* Splits are quarters, as are the features, so that rows often hit them. */
static float quarter(uint32_t *state)
{
    return ((float)draw(state, 33) - 16) / 4;
}

static void put_leaf(forest *f, int64_t tree, int64_t node, int targets, uint32_t *state)
{
    f->mode[f->nodes] = "LEAF";
    f->leaf_tree[f->leaves] = tree;
    f->leaf_node[f->leaves] = node;
    f->target[f->leaves] = draw(state, (uint32_t)targets);
    f->weight[f->leaves++] = ((float)draw(state, 2001) - 1000) / 777;
}

/* A tree of `leaves` leaves, numbered as they are split off. */
static void put_tree(forest *f, int64_t tree, int leaves, bool mixed, int targets, uint32_t *state)
{
    static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"};
    int64_t sons[400][2] = {{0}};
    int count = 1;
    for (int made = 1; made < leaves; made++) {
        int at = (int)draw(state, (uint32_t)count);
        while (sons[at][0])
            at = (at + 1) % count;
        sons[at][0] = count++;
        sons[at][1] = count++;
    }
    for (int i = 0; i < count; i++, f->nodes++) {
        size_t n = f->nodes;
        f->tree[n] = tree;
        f->node[n] = i;
        f->feature[n] = draw(state, FEATURES);
        f->yes[n] = sons[i][0];
        f->no[n] = sons[i][1];
        f->split[n] = quarter(state);
        f->missing[n] = draw(state, 2);
        f->mode[n] = modes[mixed ? draw(state, 4) : 0];
        if (!sons[i][0])
            put_leaf(f, tree, i, targets, state);
    }
}

static ort_attribute_spec ints(const char *name, const int64_t *list, size_t count)
{
    return (ort_attribute_spec){.name = name, .kind = 'I', .ints = list, .count = count};
}

static ort_attribute_spec floats(const char *name, const float *list, size_t count)
{
    return (ort_attribute_spec){.name = name, .kind = 'F', .floats = list, .count = count};
}

/* Rows [first, first + rows) of x through the forest; NULL on failure. */
static ort_value *score(ort_env *env, const forest *f, int targets, const ort_value *x,
                        int64_t first, int64_t rows)
{
    const int64_t dims[] = {rows, FEATURES};
    const char *row = ort_value_data((ort_value *)(uintptr_t)x);
    size_t bytes = ort_value_bytes(x) / ROWS_MAX;
    ort_value *part = NULL, *y = NULL;
    const ort_attribute_spec attributes[] = {
        ints("nodes_treeids", f->tree, f->nodes),
        ints("nodes_nodeids", f->node, f->nodes),
        ints("nodes_featureids", f->feature, f->nodes),
        ints("nodes_truenodeids", f->yes, f->nodes),
        ints("nodes_falsenodeids", f->no, f->nodes),
        ints("nodes_missing_value_tracks_true", f->missing, f->nodes),
        floats("nodes_values", f->split, f->nodes),
        {.name = "nodes_modes", .kind = 'S', .strings = f->mode, .count = f->nodes},
        ints("target_treeids", f->leaf_tree, f->leaves),
        ints("target_nodeids", f->leaf_node, f->leaves),
        ints("target_ids", f->target, f->leaves),
        floats("target_weights", f->weight, f->leaves),
        {.name = "n_targets", .kind = 'i', .i = targets},
    };
    if (ort_value_new_tensor(ort_value_dtype(x), 2, dims, &part, NULL))
        return NULL;
    memcpy(ort_value_data(part), row + (size_t)first * bytes, (size_t)rows * bytes);
    if (ort_op_run(env, "ai.onnx.ml", "TreeEnsembleRegressor", 3, attributes,
                   sizeof attributes / sizeof *attributes, &part, 1, &y, 1, NULL))
        y = NULL;
    ort_value_free(part);
    return y;
}

static ort_value *draw_rows(ort_dtype dtype, bool with_nan, uint32_t *state)
{
    const int64_t dims[] = {ROWS_MAX, FEATURES};
    ort_value *x = NULL;
    if (ort_value_new_tensor(dtype, 2, dims, &x, NULL))
        return NULL;
    for (int64_t i = 0; i < ROWS_MAX * FEATURES; i++)
        ort_value_set_double(x, i, with_nan && draw(state, 20) == 0 ? NAN : quarter(state));
    return x;
}

/* Batches of many sizes against rows one by one. */
static bool agree(ort_env *env, const forest *f, int targets, const ort_value *x)
{
    static const int64_t sizes[] = {2, 3, 4, 5, 15, 16, 17, 31, 48, 63, 64, 65, ROWS_MAX};
    size_t bytes = (size_t)targets * sizeof(float);
    char *alone = malloc(ROWS_MAX * bytes);
    bool same = true;
    for (int64_t r = 0; r < ROWS_MAX && same; r++) {
        ort_value *y = score(env, f, targets, x, r, 1);
        same = y && ort_value_bytes(y) == bytes;
        if (same)
            memcpy(alone + (size_t)r * bytes, ort_value_data(y), bytes);
        ort_value_free(y);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && same; i++) {
        int64_t first = (ROWS_MAX - sizes[i]) / 2;
        ort_value *y = score(env, f, targets, x, first, sizes[i]);
        same = y && !memcmp(ort_value_data(y), alone + (size_t)first * bytes,
                            (size_t)sizes[i] * bytes);
        ort_value_free(y);
    }
    free(alone);
    return same;
}

typedef struct kind {
    int leaves;   /* the largest tree's */
    bool mixed;   /* orders of all kinds */
    bool with_nan;
    int targets;
    ort_dtype dtype;
} kind;

static bool agrees_with(const char *isa, int threads, const kind *k)
{
    static forest f;
    uint32_t state = (uint32_t)k->leaves;
    ort_env_options options;
    ort_env *env = NULL;
    ort_env_options_init(&options);
    options.isa = isa;
    options.threads = threads;
    options.own_threads = &workers_at_once;
    if (ort_env_new(&options, &env, NULL))
        return true; /* a tier that this machine lacks */
    f.nodes = f.leaves = 0;
    for (int tree = 0; tree < TREES; tree++) {
        int leaves = tree ? 1 + (int)draw(&state, (uint32_t)k->leaves) : k->leaves;
        put_tree(&f, tree, leaves, k->mixed, k->targets, &state);
    }
    ort_value *x = draw_rows(k->dtype, k->with_nan, &state);
    bool same = x && agree(env, &f, k->targets, x);
    ort_value_free(x);
    ort_env_free(env);
    return same;
}

static bool agrees(const char *isa, const kind *k)
{
    return agrees_with(isa, 1, k) && agrees_with(isa, 3, k);
}

static void batches_give_the_bits_of_single_rows(test_state *test)
{
    static const char *const tiers[] = {"scalar", "avx2", "avx512", "vnni", "amx"};
    static const int leaves[] = {1, 2, 31, 32, 33, 150};
    for (size_t t = 0; t < sizeof tiers / sizeof *tiers; t++)
        for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
            CHECK(agrees(tiers[t], &(kind){leaves[i], false, false, 1, ORT_DTYPE_FLOAT}));
            CHECK(agrees(tiers[t], &(kind){leaves[i], true, false, 1, ORT_DTYPE_FLOAT}));
            CHECK(agrees(tiers[t], &(kind){leaves[i], true, true, 3, ORT_DTYPE_FLOAT}));
            CHECK(agrees(tiers[t], &(kind){leaves[i], false, false, 3, ORT_DTYPE_DOUBLE}));
            CHECK(agrees(tiers[t], &(kind){leaves[i], false, false, 2, ORT_DTYPE_INT64}));
        }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, batches_give_the_bits_of_single_rows);
    return test.failures != 0;
}
