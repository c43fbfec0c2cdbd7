/* ml_tree_score.c - the leaves that rows come to, and the sum of their weights.
 *
 * Scores are summed in double in tree order, in whatever way the leaves are found: rows alone and
 * together give the same bits. A walk waits for a load and a comparison at each step, so that eight
 * go in step: one tree over eight rows, or eight trees over one. Rows of floats don't walk but for
 * the rest of trees that are larger than a piece (ml_tree_pieces.c).
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/ml/ml_tree.h"

/* ---- walks */

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

bool ort_tree_has_nan(const double *row, int64_t count)
{
    bool any = false;
    for (int64_t i = 0; i < count; i++)
        any |= isnan(row[i]);
    return any;
}

void ort_forest_score(const ort_forest *f, const double *row, double *score, bool *seen)
{
    size_t r = 0;
    memset(score, 0, (size_t)f->targets * sizeof *score);
    memset(seen, 0, (size_t)f->targets * sizeof *seen);
    bool plain = f->all_leq && !ort_tree_has_nan(row, f->max_feature + 1);
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

void ort_forest_score_doubles(const ort_forest *f, int64_t blocks, const double *columns,
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

/* ---- pieces */

/* On from the exits of a piece. */
static void walk_floats(const ort_tree_node *nodes, const float *columns, uint32_t height,
                        uint32_t *at)
{
#define VALUE(j, feature) (double)columns[(size_t)((feature) & ~15u) * ORT_TREE_LANES / 16 + j]
    WALK(height)
#undef VALUE
}

/* What the rows of a block get from one tree. */
static void take_exits(const ort_forest *f, size_t tree, const uint32_t *exits,
                       const float *columns, double *scores, bool *seen)
{
    const ort_tree_pieces *p = &f->pieces;
    const uint32_t *nodes = p->exits + tree * ORT_TREE_LEAVES;
    for (int half = 0; half < ORT_TREE_LANES; half += ORT_TREE_ROWS) {
        uint32_t at[ORT_TREE_ROWS];
        for (int j = 0; j < ORT_TREE_ROWS; j++)
            at[j] = nodes[exits[half + j]];
        if (!p->whole)
            walk_floats(f->nodes, columns + half, f->heights[tree], at);
        take_all(f, at, scores + half * f->targets, seen + half * f->targets, f->targets);
    }
}

enum { TREES_TOGETHER = 32 }; /* so that their tests stay in the first-level cache */

/* A whole piece of every tree, all of one target. */
static void sum_trees(const ort_forest *f, const ort_vmath_kernels *k, const ort_tree_list *trees,
                      size_t first, const ort_tree_rows *rows, double *scores)
{
    const double(*weights)[ORT_TREE_LEAVES] = (const void *)f->pieces.weights;
    k->tree_sums(trees, rows, weights + first, (double(*)[ORT_TREE_LANES])(void *)scores);
}

static void take_trees(const ort_forest *f, const ort_vmath_kernels *k, const ort_tree_list *trees,
                       size_t first, const ort_tree_rows *rows, double *scores, bool *seen)
{
    const int64_t count = f->targets * ORT_TREE_LANES;
    uint32_t exits[TREES_TOGETHER][ORT_TREE_BLOCKS][ORT_TREE_LANES];
    k->tree_exits(trees, rows, exits);
    for (size_t b = 0; b < rows->blocks; b++)
        for (size_t t = 0; t < trees->count; t++)
            take_exits(f, first + t, exits[t][b], rows->columns + b * rows->step,
                       scores + (int64_t)b * count, seen + (int64_t)b * count);
}

void ort_forest_score_floats(const ort_forest *f, const ort_vmath_kernels *k, int64_t blocks,
                             const float *columns, int64_t block, double *scores, bool *seen)
{
    const ort_tree_pieces *p = &f->pieces;
    const int64_t count = f->targets * ORT_TREE_LANES;
    const bool sums = f->alone && p->whole;
    memset(scores, 0, (size_t)(count * blocks) * sizeof *scores);
    memset(seen, sums, (size_t)(count * blocks) * sizeof *seen);
    for (size_t first = 0, trees; first < f->root_count; first += trees) {
        trees = f->root_count - first < TREES_TOGETHER ? f->root_count - first : TREES_TOGETHER;
        const ort_tree_list list = {p->tests + p->first[first], p->counts + first, trees};
        for (int64_t b = 0; b < blocks; b += ORT_TREE_BLOCKS) {
            const ort_tree_rows rows = {columns + b * block, (size_t)block,
                                        (size_t)ort_min_i64(blocks - b, ORT_TREE_BLOCKS)};
            if (sums)
                sum_trees(f, k, &list, first, &rows, scores + b * count);
            else
                take_trees(f, k, &list, first, &rows, scores + b * count, seen + b * count);
        }
    }
    average(f, scores, count * blocks);
}
