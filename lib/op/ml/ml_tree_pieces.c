/* ml_tree_pieces.c - the beginning of each tree in the form of lib/kernel/trees.inc: tests without
 * order, each with the leaves that it strikes.
 *
 * A piece grows from the root, always at the exit that most leaves lie behind, to 32 exits. Trees
 * of boosting mostly end there; from an exit that is no leaf rows walk on. A split becomes the
 * largest float that isn't above it, which is the same for every float that is compared with it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/ml/ml_tree.h"

typedef struct piece_node { /* of a piece: an exit, or a test with two nodes behind it */
    uint32_t node;
    int yes, no; /* places in the piece; 0: an exit */
} piece_node;

typedef struct piece {
    piece_node at[2 * ORT_TREE_LEAVES - 1]; /* the root first */
    int count, leaves;
} piece;

enum { MANY_LEAVES = 1 << 30 }; /* nodes of a damaged file may share their children */

/* Leaves behind each node; children stand behind their parent. */
static uint32_t *count_leaves(const ort_forest *f)
{
    uint32_t *leaves = malloc((f->node_count + 1) * sizeof *leaves);
    for (size_t i = f->node_count; leaves && i-- > 0;) {
        const ort_tree_node *n = &f->nodes[i];
        bool leaf = (n->feature & 7) == ORT_TREE_LEAF;
        uint32_t behind = leaf ? 1 : leaves[n->child] + leaves[n->child + 1];
        leaves[i] = behind < MANY_LEAVES ? behind : MANY_LEAVES;
    }
    return leaves;
}

static int widest_exit(const piece *p, const uint32_t *leaves)
{
    int best = 0;
    for (int i = 1; i < p->count; i++)
        if (!p->at[i].yes && (p->at[best].yes || leaves[p->at[i].node] > leaves[p->at[best].node]))
            best = i;
    return best;
}

static void open_exit(const ort_forest *f, piece *p, int i)
{
    uint32_t child = f->nodes[p->at[i].node].child;
    p->at[i].yes = p->count;
    p->at[i].no = p->count + 1;
    p->at[p->count++] = (piece_node){.node = child};
    p->at[p->count++] = (piece_node){.node = child + 1};
    p->leaves++;
}

static void grow(const ort_forest *f, uint32_t root, const uint32_t *leaves, piece *p)
{
    p->at[0] = (piece_node){.node = root};
    p->count = p->leaves = 1;
    for (int i = 0; leaves[root] <= ORT_TREE_LEAVES && i < p->count; i++)
        if (leaves[p->at[i].node] > 1)
            open_exit(f, p, i);
    while (leaves[root] > ORT_TREE_LEAVES && p->leaves < ORT_TREE_LEAVES)
        open_exit(f, p, widest_exit(p, leaves));
}

static float float_below(double split)
{
    float value = (float)split;
    return (double)value > split ? nextafterf(value, -INFINITY) : value;
}

typedef struct writing {
    const ort_forest *f;
    const piece *piece;
    ort_tree_test *test; /* the next one */
    uint32_t *exits;     /* of the tree */
} writing;

/* Leaves [first, end) of the tree lie behind place `i`; returns end. */
static uint32_t write_node(writing *w, int i, uint32_t first)
{
    const piece_node *at = &w->piece->at[i];
    const ort_tree_node *n = &w->f->nodes[at->node];
    if (!at->yes) {
        w->exits[first] = at->node;
        return first + 1;
    }
    ort_tree_test *test = w->test++;
    uint32_t middle = write_node(w, at->yes, first);
    uint32_t struck = (uint32_t)((((uint64_t)1 << (middle - first)) - 1) << (32 - middle));
    *test = (ort_tree_test){.split = float_below(n->split),
                            .keep = ~struck,
                            .column = (n->feature >> 4) * ORT_TREE_LANES};
    return write_node(w, at->no, middle);
}

/* Where denormals count as zero, a split among them would strike other leaves than a walk finds. */
static bool has_denormal(const ort_tree_test *tests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fpclassify(tests[i].split) == FP_SUBNORMAL)
            return true;
    return false;
}

typedef struct parts { /* to be filled */
    ort_tree_test *tests;
    uint32_t *first, *counts, *exits;
    double *weights;
} parts;

static bool take_memory(ort_arena *arena, const ort_forest *f, size_t tests, parts *to)
{
    size_t exits = f->root_count * ORT_TREE_LEAVES;
    to->tests = ort_arena_array(arena, tests + 1, sizeof *to->tests);
    to->first = ort_arena_array(arena, f->root_count, sizeof *to->first);
    to->counts = ort_arena_array(arena, f->root_count, sizeof *to->counts);
    to->exits = ort_arena_array(arena, exits, sizeof *to->exits);
    to->weights = f->alone ? ort_arena_array(arena, exits, sizeof *to->weights) : NULL;
    return to->tests && to->first && to->counts && to->exits && (to->weights || !f->alone);
}

static size_t count_tests(const ort_forest *f, const uint32_t *leaves)
{
    size_t tests = 0;
    for (size_t r = 0; r < f->root_count; r++) {
        uint32_t of = leaves[f->roots[r]];
        tests += (of < ORT_TREE_LEAVES ? of : ORT_TREE_LEAVES) - 1;
    }
    return tests;
}

static void fill(const ort_forest *f, const uint32_t *leaves, parts *to, bool *whole)
{
    piece p;
    writing w = {.f = f, .piece = &p, .test = to->tests};
    memset(to->exits, 0, f->root_count * ORT_TREE_LEAVES * sizeof *to->exits);
    *whole = true;
    for (size_t r = 0; r < f->root_count; r++) {
        grow(f, f->roots[r], leaves, &p);
        *whole = *whole && leaves[f->roots[r]] <= ORT_TREE_LEAVES;
        to->first[r] = (uint32_t)(w.test - to->tests);
        to->counts[r] = (uint32_t)p.leaves - 1;
        w.exits = to->exits + r * ORT_TREE_LEAVES;
        (void)write_node(&w, 0, 0);
    }
    for (size_t i = 0; to->weights && i < f->root_count * ORT_TREE_LEAVES; i++)
        to->weights[i] = f->alone[to->exits[i]];
}

ort_status ort_forest_cut_pieces(ort_arena *arena, ort_forest *f, ort_error *err)
{
    parts to;
    bool whole;
    if (!f->all_leq || f->max_feature >= INT32_MAX / ORT_TREE_LANES)
        return ORT_OK;
    uint32_t *leaves = count_leaves(f);
    size_t tests = leaves ? count_tests(f, leaves) : 0;
    if (!leaves || !take_memory(arena, f, tests, &to)) {
        free(leaves);
        return ort_error_memory(err, tests * sizeof *to.tests);
    }
    fill(f, leaves, &to, &whole);
    free(leaves);
    if (!has_denormal(to.tests, tests))
        f->pieces = (ort_tree_pieces){to.tests, to.first, to.counts, to.exits, to.weights, whole};
    return ORT_OK;
}
