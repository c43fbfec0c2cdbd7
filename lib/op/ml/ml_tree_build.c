/* ml_tree_build.c - from ONNX's parallel attribute lists to the compact node array.
 *
 * Trees are laid out depth first; every placed node was reached from a root by a true or false
 * edge, and the number placed is bounded by what a tree can have, so that cycles in a hostile file
 * end in an error.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hashmap.h"
#include "op/ml/ml_tree.h"

/* ---- attribute lists, of floats or in a tensor of the same name + "_as_tensor" */

typedef struct numbers {
    const float *floats; /* or */
    const ort_tensor *tensor;
    size_t count;
} numbers;

static double number_at(const numbers *n, size_t i)
{
    return n->tensor ? ort_tensor_get_f64(n->tensor, (int64_t)i) : (double)n->floats[i];
}

static ort_status read_numbers(ort_prep *p, const char *name, numbers *out, ort_error *err)
{
    char tensor_name[80];
    size_t count = 0;
    const float *floats = ort_node_floats(p->node, name, &count);
    snprintf(tensor_name, sizeof tensor_name, "%s_as_tensor", name);
    const ort_tensor *t = ort_node_tensor(p->node, tensor_name);
    if (t == NULL)
        t = ort_node_tensor(p->node, name);
    if (t != NULL && (t->dtype == ORT_DTYPE_STRING || ort_dtype_get(t->dtype)->bits > 64))
        return ort_prep_fail(p, err, "attribute %s must hold numbers", name);
    *out = (numbers){floats, t, t != NULL ? (size_t)ort_tensor_count(t) : count};
    return ORT_OK;
}

static bool is_double(const numbers *n)
{
    return n->tensor && n->tensor->dtype == ORT_DTYPE_DOUBLE;
}

/* ---- placing */

typedef struct task { /* place source node `source` (or leaf) at slot `slot` */
    size_t source;
    uint32_t slot;
    bool leaf;
} task;

/* What a block is made of. */
typedef struct builder {
    ort_prep *p;
    ort_forest *forest;
    ORT_VEC(ort_tree_node) nodes;
    ORT_VEC(ort_tree_run) runs; /* as many as nodes */
    ORT_VEC(uint32_t) roots;
    ORT_VEC(task) stack;
    size_t limit;
    numbers weight, base, split, members;
    const int64_t *target; /* by weight */
    uint32_t *place;       /* of a weight among the pairs; NULL: its own number */
    ort_tree_set *sets;
    size_t set_count;
    ort_arena scratch;     /* what only building needs */
} builder;

static bool push(builder *b, size_t source, uint32_t slot, bool leaf)
{
    task t = {source, slot, leaf};
    return ort_vec_push(&b->stack, t);
}

static bool reserve(builder *b)
{
    ort_tree_node none = {0};
    ort_tree_run empty = {0};
    return ort_vec_push(&b->nodes, none) && ort_vec_push(&b->runs, empty);
}

static void put_leaf(builder *b, uint32_t slot, ort_tree_run pairs)
{
    b->nodes.data[slot] = (ort_tree_node){INFINITY, ORT_TREE_LEAF, slot};
    b->runs.data[slot] = pairs;
}

static ort_status too_large(builder *b, ort_error *err)
{
    return ort_prep_fail(b->p, err,
                         "the nodes form no trees (more than %zu are reachable: a cycle, "
                         "or a node with two parents)",
                         b->limit);
}

typedef struct tree_test {
    int mode;
    int64_t feature;
    bool missing_true;
    double split;
} tree_test;

/* Turn an order into <=; true when the children change places. Infinite splits stay as they are:
 * there is no number before the least. */
static bool rewrite(tree_test *t)
{
    bool swaps = t->mode == ORT_TREE_GT || t->mode == ORT_TREE_GTE;
    if (!isfinite(t->split) || (!swaps && t->mode != ORT_TREE_LT))
        return false;
    if (t->mode != ORT_TREE_GT)
        t->split = nextafter(t->split, -INFINITY);
    t->mode = ORT_TREE_LEQ;
    t->missing_true ^= swaps;
    return swaps;
}

/* Put a test at `slot` and its children on the stack. */
static ort_status put_test(builder *b, uint32_t slot, tree_test t, task yes, task no,
                           ort_error *err)
{
    if (t.feature < 0 || t.feature >= (1 << 27))
        return ort_prep_fail(b->p, err, "a node tests feature %lld", (long long)t.feature);
    bool swaps = rewrite(&t);
    uint32_t child = (uint32_t)b->nodes.count;
    yes.slot = child + swaps;
    no.slot = child + !swaps;
    if (!reserve(b) || !reserve(b) || !ort_vec_push(&b->stack, no) ||
        !ort_vec_push(&b->stack, yes))
        return ort_error_memory(err, 0);
    if (b->nodes.count > b->limit)
        return too_large(b, err);
    b->nodes.data[slot] = (ort_tree_node){
        t.split, (uint32_t)t.feature << 4 | (t.missing_true ? 8u : 0u) | (uint32_t)t.mode, child};
    return ORT_OK;
}

/* A tree from its root. */
static ort_status begin_tree(builder *b, size_t source, ort_error *err)
{
    uint32_t slot = (uint32_t)b->nodes.count;
    return ort_vec_push(&b->roots, slot) && push(b, source, slot, false) && reserve(b)
               ? ORT_OK
               : ort_error_memory(err, 0);
}

/* ---- the block */

/* Sums of one target need no lists where each leaf has one weight. */
static bool is_alone(const builder *b)
{
    const ort_forest *f = b->forest;
    if (f->targets != 1 || f->aggregate == ORT_TREE_MIN || f->aggregate == ORT_TREE_MAX)
        return false;
    for (size_t i = 0; i < b->nodes.count; i++)
        if ((b->nodes.data[i].feature & 7) == ORT_TREE_LEAF && b->runs.data[i].count != 1)
            return false;
    return true;
}

static ort_forest_head head_of(const builder *b)
{
    bool alone = is_alone(b);
    ort_forest_head h = {.node_count = b->nodes.count,
                         .root_count = b->roots.count,
                         .base_count = b->base.count,
                         .set_count = b->set_count,
                         .member_count = b->members.count,
                         .run_count = alone ? 0 : b->nodes.count,
                         .pair_count = alone ? 0 : b->weight.count,
                         .alone_count = alone ? b->nodes.count : 0,
                         .rounds_to_float = !is_double(&b->split),
                         .one_class = 1,
                         .all_positive = 1};
    for (size_t i = 0; i < b->nodes.count; i++)
        if (b->nodes.data[i].feature >> 4 > h.max_feature)
            h.max_feature = b->nodes.data[i].feature >> 4;
    for (size_t k = 0; k < b->weight.count; k++) {
        h.one_class = h.one_class && b->target[k] == b->target[0];
        h.all_positive = h.all_positive && number_at(&b->weight, k) >= 0;
    }
    return h;
}

/* Children stand behind their parent. */
static ort_status find_heights(const builder *b, uint32_t *heights, ort_error *err)
{
    uint32_t *height = calloc(b->nodes.count + 1, sizeof *height);
    if (height == NULL)
        return ort_error_memory(err, b->nodes.count * sizeof *height);
    for (size_t i = b->nodes.count; i-- > 0;) {
        const ort_tree_node *n = &b->nodes.data[i];
        if ((n->feature & 7) == ORT_TREE_LEAF)
            continue;
        uint32_t yes = height[n->child], no = height[n->child + 1];
        height[i] = 1 + (yes > no ? yes : no);
    }
    for (size_t r = 0; r < b->roots.count; r++)
        heights[r] = height[b->roots.data[r]];
    free(height);
    return ORT_OK;
}

/* By field: what lies between them stays zero. */
static void fill_pairs(const builder *b, ort_tree_pair *pairs)
{
    for (size_t k = 0; k < b->weight.count; k++) {
        ort_tree_pair *pair = &pairs[b->place ? b->place[k] : k];
        pair->target = (uint32_t)b->target[k];
        pair->weight = number_at(&b->weight, k);
    }
}

static ort_status fill_alone(builder *b, double *alone, ort_error *err)
{
    uint32_t *weight_at = ort_arena_array(&b->scratch, b->weight.count + 1, sizeof *weight_at);
    if (weight_at == NULL)
        return ort_error_memory(err, b->weight.count * sizeof *weight_at);
    for (size_t k = 0; k < b->weight.count; k++)
        weight_at[b->place ? b->place[k] : k] = (uint32_t)k;
    for (size_t i = 0; i < b->nodes.count; i++)
        alone[i] = (b->nodes.data[i].feature & 7) == ORT_TREE_LEAF
                       ? number_at(&b->weight, weight_at[b->runs.data[i].first])
                       : 0;
    return ORT_OK;
}

static ort_status make_block(builder *b, ort_error *err)
{
    ort_forest_head head = head_of(b), *block;
    ort_forest_parts parts;
    ORT_TRY(ort_forest_block_new(b->p, &head, &block, &parts, err));
    memcpy(parts.nodes, b->nodes.data, b->nodes.count * sizeof *parts.nodes);
    memcpy(parts.roots, b->roots.data, b->roots.count * sizeof *parts.roots);
    for (size_t i = 0; i < b->base.count; i++)
        parts.base[i] = number_at(&b->base, i);
    for (size_t i = 0; i < b->members.count; i++)
        parts.members[i] = number_at(&b->members, i);
    if (b->set_count)
        memcpy(parts.sets, b->sets, b->set_count * sizeof *parts.sets);
    ORT_TRY(find_heights(b, parts.heights, err));
    if (parts.alone != NULL) {
        ORT_TRY(fill_alone(b, parts.alone, err));
    } else {
        memcpy(parts.runs, b->runs.data, b->runs.count * sizeof *parts.runs);
        fill_pairs(b, parts.pairs);
    }
    ort_forest_block_use(block, b->forest);
    return ORT_OK;
}

static void release(builder *b)
{
    ort_vec_release(&b->nodes);
    ort_vec_release(&b->runs);
    ort_vec_release(&b->roots);
    ort_vec_release(&b->stack);
    ort_arena_release(&b->scratch);
}

/* Those of all encodings but for what a packed forest still needs. */
static const char *const packed_attrs[] = {"nodes_", "class_", "target_", "leaf_", "tree_roots",
                                           "membership_values", "base_values", NULL};

/* ---- classifier and regressor: nodes named by (tree, node), leaves are nodes */

typedef struct tree_span {
    int64_t tree;
    size_t first, count; /* positions */
} tree_span;

typedef struct ml3 {
    const int64_t *tree, *node, *feature, *yes, *no, *missing;
    const ort_string *mode;
    size_t count, missing_count;
    const int64_t *leaf_tree, *leaf_node;
    size_t weights;
    /* Of files that number the nodes of a tree 0, 1, 2... and keep them together: its nodes are
     * [first, first + count). Then `index` holds trees, else (tree, node). */
    ORT_VEC(tree_span) spans;
    size_t last_span;
    ort_hashmap index;          /* to a span or a position; keys in `tree` or `keys` */
    int64_t (*keys)[2];
    uint32_t *first_pair, *pair_count;
} ml3;

static int mode_of(const ort_string *s)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    for (int i = 0; i < 8; i++)
        if (strlen(names[i]) == s->length && !memcmp(names[i], s->ptr, s->length))
            return i;
    return -1;
}

static const int64_t *ints_of(ort_prep *p, const char *name, size_t *count)
{
    return ort_node_ints(p->node, name, count);
}

static const int64_t *leaf_ints(ort_prep *p, const char *prefix, const char *name, size_t *count)
{
    char text[64];
    snprintf(text, sizeof text, "%s_%s", prefix, name);
    return ort_node_ints(p->node, text, count);
}

static ort_status read_ml3(builder *b, const char *prefix, ml3 *m, ort_error *err)
{
    ort_prep *p = b->p;
    size_t n[7] = {0}, leaf[3] = {0};
    char text[64];
    memset(m, 0, sizeof *m);
    m->tree = ints_of(p, "nodes_treeids", &n[0]);
    m->node = ints_of(p, "nodes_nodeids", &n[1]);
    m->feature = ints_of(p, "nodes_featureids", &n[2]);
    m->yes = ints_of(p, "nodes_truenodeids", &n[3]);
    m->no = ints_of(p, "nodes_falsenodeids", &n[4]);
    m->mode = ort_node_strings(p->node, "nodes_modes", &n[5]);
    m->missing = ints_of(p, "nodes_missing_value_tracks_true", &m->missing_count);
    ORT_TRY(read_numbers(p, "nodes_values", &b->split, err));
    m->count = n[0];
    n[6] = b->split.count;
    for (int i = 1; i < 7; i++)
        if (n[i] != n[0])
            return ort_prep_fail(p, err, "the nodes_* attributes differ in length (%zu and %zu)",
                                 n[0], n[i]);
    if (n[0] == 0)
        return ort_prep_fail(p, err, "attribute nodes_treeids is missing or empty");
    for (size_t i = 0; i < m->count; i++)
        if (mode_of(&m->mode[i]) < 0)
            return ort_prep_fail(p, err, "nodes_modes holds '%.*s'",
                                 (int)ort_min_i64((int64_t)m->mode[i].length, 60), m->mode[i].ptr);
    m->leaf_tree = leaf_ints(p, prefix, "treeids", &leaf[0]);
    m->leaf_node = leaf_ints(p, prefix, "nodeids", &leaf[1]);
    b->target = leaf_ints(p, prefix, "ids", &leaf[2]);
    snprintf(text, sizeof text, "%s_weights", prefix);
    ORT_TRY(read_numbers(p, text, &b->weight, err));
    m->weights = b->weight.count;
    for (int i = 0; i < 3; i++)
        if (leaf[i] != m->weights)
            return ort_prep_fail(p, err, "the %s_* attributes differ in length (%zu and %zu)",
                                 prefix, m->weights, leaf[i]);
    return ORT_OK;
}

static bool find_node(ml3 *m, int64_t tree, int64_t node, size_t *position)
{
    int64_t key[2] = {tree, node};
    uint64_t value;
    if (!m->spans.count) {
        if (!ort_hashmap_get(&m->index, (const char *)key, sizeof key, &value))
            return false;
        *position = (size_t)value;
        return true;
    }
    if (m->spans.data[m->last_span].tree != tree) { /* neighbours are mostly of one tree */
        if (!ort_hashmap_get(&m->index, (const char *)key, sizeof *key, &value))
            return false;
        m->last_span = (size_t)value;
    }
    const tree_span *span = &m->spans.data[m->last_span];
    *position = span->first + (size_t)node;
    return node >= 0 && (uint64_t)node < span->count;
}

/* False when the nodes don't lie in spans, or without memory for them. */
static bool find_spans(ml3 *m)
{
    for (size_t i = 0; i < m->count; i++) {
        tree_span *last = m->spans.count ? &m->spans.data[m->spans.count - 1] : NULL;
        const char *key = (const char *)&m->tree[i];
        if (last && last->tree == m->tree[i]) {
            if (m->node[i] != (int64_t)last->count++)
                return false;
            continue;
        }
        tree_span span = {m->tree[i], i, 1};
        if (m->node[i] != 0 || ort_hashmap_get(&m->index, key, sizeof *m->tree, NULL) ||
            !ort_hashmap_put(&m->index, key, sizeof *m->tree, m->spans.count) ||
            !ort_vec_push(&m->spans, span))
            return false;
    }
    return true;
}

static ort_status index_nodes(builder *b, ml3 *m, ort_error *err)
{
    if (find_spans(m))
        return ORT_OK;
    ort_vec_release(&m->spans);
    ort_hashmap_release(&m->index);
    m->keys = ort_arena_array(&b->scratch, m->count, sizeof *m->keys);
    if (m->keys == NULL)
        return ort_error_memory(err, m->count * sizeof *m->keys);
    for (size_t i = 0; i < m->count; i++) {
        m->keys[i][0] = m->tree[i];
        m->keys[i][1] = m->node[i];
        if (!ort_hashmap_put(&m->index, (const char *)m->keys[i], sizeof m->keys[i], i))
            return ort_error_memory(err, 0);
    }
    return ORT_OK;
}

/* Group the weights by leaf: pairs of node i are [first_pair[i], first_pair[i] + pair_count[i]). */
static ort_status group_pairs(builder *b, ml3 *m, ort_error *err)
{
    b->place = ort_arena_array(&b->scratch, m->weights + 1, sizeof *b->place);
    m->first_pair = ort_arena_array(&b->scratch, m->count + 1, sizeof *m->first_pair);
    m->pair_count = ort_arena_array(&b->scratch, m->count + 1, sizeof *m->pair_count);
    if (b->place == NULL || m->first_pair == NULL || m->pair_count == NULL)
        return ort_error_memory(err, m->weights * sizeof *b->place);
    for (size_t k = 0; k < m->weights; k++) {
        size_t owner;
        if (!find_node(m, m->leaf_tree[k], m->leaf_node[k], &owner))
            return ort_prep_fail(b->p, err,
                                 "a weight names node %lld of tree %lld, which isn't there",
                                 (long long)m->leaf_node[k], (long long)m->leaf_tree[k]);
        if (b->target[k] < 0 || b->target[k] >= b->forest->targets)
            return ort_prep_fail(b->p, err, "a weight names target %lld of %lld",
                                 (long long)b->target[k], (long long)b->forest->targets);
        b->place[k] = (uint32_t)owner;
        m->pair_count[owner]++;
    }
    for (size_t i = 0, at = 0; i < m->count; i++) {
        m->first_pair[i] = (uint32_t)at;
        at += m->pair_count[i];
        m->pair_count[i] = 0;
    }
    for (size_t k = 0; k < m->weights; k++) { /* from the leaf to the place in its run */
        size_t i = b->place[k];
        b->place[k] = m->first_pair[i] + m->pair_count[i]++;
    }
    return ORT_OK;
}

static ort_status place_ml3(builder *b, ml3 *m, const task *t, ort_error *err)
{
    size_t i = t->source, yes, no;
    int mode = mode_of(&m->mode[i]);
    if (mode < 0 || mode == ORT_TREE_MEMBER)
        return ort_prep_fail(b->p, err, "nodes_modes holds '%.*s'", (int)m->mode[i].length,
                             m->mode[i].ptr);
    if (mode == ORT_TREE_LEAF) {
        put_leaf(b, t->slot, (ort_tree_run){m->first_pair[i], m->pair_count[i]});
        return ORT_OK;
    }
    if (!find_node(m, m->tree[i], m->yes[i], &yes) || !find_node(m, m->tree[i], m->no[i], &no))
        return ort_prep_fail(b->p, err, "node %lld of tree %lld has a child that isn't there",
                             (long long)m->node[i], (long long)m->tree[i]);
    tree_test test = {mode, m->feature[i], i < m->missing_count && m->missing[i] != 0,
                      number_at(&b->split, i)};
    return put_test(b, t->slot, test, (task){.source = yes}, (task){.source = no}, err);
}

/* Roots are the nodes that are nobody's child, in file order. */
static ort_status place_trees(builder *b, ml3 *m, ort_error *err)
{
    bool *is_child = ort_arena_array(&b->scratch, m->count, sizeof *is_child);
    if (is_child == NULL || !ort_vec_reserve(&b->nodes, m->count) ||
        !ort_vec_reserve(&b->runs, m->count))
        return ort_error_memory(err, m->count);
    for (size_t i = 0; i < m->count; i++) {
        size_t child;
        if (mode_of(&m->mode[i]) == ORT_TREE_LEAF)
            continue;
        if (find_node(m, m->tree[i], m->yes[i], &child))
            is_child[child] = true;
        if (find_node(m, m->tree[i], m->no[i], &child))
            is_child[child] = true;
    }
    for (size_t i = 0; i < m->count; i++) {
        if (is_child[i])
            continue;
        ORT_TRY(begin_tree(b, i, err));
        while (b->stack.count > 0) {
            task t = ort_vec_pop(&b->stack);
            ORT_TRY(place_ml3(b, m, &t, err));
        }
    }
    if (!b->roots.count)
        return ort_prep_fail(b->p, err, "no tree has a root");
    return b->nodes.count >= m->count
               ? ORT_OK
               : ort_prep_fail(b->p, err,
                               "%zu nodes are reached from no root: they are each other's children",
                               m->count - b->nodes.count);
}

static ort_status build_ml3(builder *b, ml3 *m, const char *prefix, ort_error *err)
{
    ORT_TRY(read_ml3(b, prefix, m, err));
    ORT_TRY(read_numbers(b->p, "base_values", &b->base, err));
    ORT_TRY(index_nodes(b, m, err));
    ORT_TRY(group_pairs(b, m, err));
    b->limit = 2 * m->count + 1;
    ORT_TRY(place_trees(b, m, err));
    return make_block(b, err);
}

ort_status ort_forest_build_ml3(ort_prep *p, const char *prefix, ort_forest *f, ort_error *err)
{
    ml3 m = {0};
    builder b = {.p = p, .forest = f};
    p->packed_attrs = packed_attrs;
    if (ort_prep_is_packed(p))
        return ort_forest_block_find(p, f, err);
    ort_status status = build_ml3(&b, &m, prefix, err);
    ort_hashmap_release(&m.index);
    ort_vec_release(&m.spans);
    release(&b);
    return status;
}

/* ---- TreeEnsemble-5: interior nodes and leaves in separate lists */

typedef struct ml5 {
    const int64_t *yes, *no, *yes_leaf, *no_leaf, *feature, *missing, *roots;
    const ort_tensor *mode;
    size_t count, leaves, root_count, missing_count;
    size_t *set_of; /* node to its set */
    uint32_t *placed; /* node to 1 + the tree that it was placed in last; leaves may be shared */
    uint32_t tree;
} ml5;

static ort_status read_ml5(builder *b, ml5 *m, ort_error *err)
{
    ort_prep *p = b->p;
    size_t n[5] = {0}, leaf_targets = 0;
    memset(m, 0, sizeof *m);
    m->feature = ints_of(p, "nodes_featureids", &n[0]);
    m->yes = ints_of(p, "nodes_truenodeids", &n[1]);
    m->no = ints_of(p, "nodes_falsenodeids", &n[2]);
    m->yes_leaf = ints_of(p, "nodes_trueleafs", &n[3]);
    m->no_leaf = ints_of(p, "nodes_falseleafs", &n[4]);
    m->missing = ints_of(p, "nodes_missing_value_tracks_true", &m->missing_count);
    m->roots = ints_of(p, "tree_roots", &m->root_count);
    b->target = ints_of(p, "leaf_targetids", &leaf_targets);
    m->mode = ort_node_tensor(p->node, "nodes_modes");
    ORT_TRY(read_numbers(p, "nodes_splits", &b->split, err));
    ORT_TRY(read_numbers(p, "leaf_weights", &b->weight, err));
    ORT_TRY(read_numbers(p, "membership_values", &b->members, err));
    m->count = n[0];
    m->leaves = b->weight.count;
    for (int i = 1; i < 5; i++)
        if (n[i] != n[0])
            return ort_prep_fail(p, err, "the nodes_* attributes differ in length (%zu and %zu)",
                                 n[0], n[i]);
    if (m->missing_count != m->count && ort_node_has(p->node, "nodes_missing_value_tracks_true"))
        return ort_prep_fail(p, err,
                             "nodes_missing_value_tracks_true has %zu elements for %zu nodes",
                             m->missing_count, m->count);
    if (m->mode == NULL || m->mode->dtype != ORT_DTYPE_UINT8 ||
        (size_t)ort_tensor_count(m->mode) != m->count || b->split.count != m->count)
        return ort_prep_fail(p, err, "nodes_modes (uint8) and nodes_splits need %zu elements",
                             m->count);
    if (leaf_targets != m->leaves || m->count == 0 || m->root_count == 0)
        return ort_prep_fail(p, err, "leaf_targetids has %zu elements, leaf_weights %zu",
                             leaf_targets, m->leaves);
    return ORT_OK;
}

/* NaN ends a set; sets belong to the member tests in order. */
static ort_status read_sets(builder *b, ml5 *m, ort_error *err)
{
    size_t at = 0;
    const uint8_t *mode = m->mode->data;
    m->set_of = ort_arena_array(&b->scratch, m->count, sizeof *m->set_of);
    b->sets = ort_arena_array(&b->scratch, m->count + 1, sizeof *b->sets);
    if (m->set_of == NULL || b->sets == NULL)
        return ort_error_memory(err, m->count * sizeof *b->sets);
    for (size_t i = 0; i < m->count; i++) {
        if (mode[i] != ORT_TREE_MEMBER)
            continue;
        size_t begin = at;
        while (at < b->members.count && !isnan(number_at(&b->members, at)))
            at++;
        if (begin >= b->members.count)
            return ort_prep_fail(b->p, err, "membership_values has fewer sets than there are "
                                 "member tests");
        m->set_of[i] = b->set_count;
        b->sets[b->set_count++] = (ort_tree_set){begin, at - begin};
        at++;
    }
    return ORT_OK;
}

static ort_status place_ml5(builder *b, const ml5 *m, const task *t, ort_error *err)
{
    size_t i = t->source;
    if (i >= (t->leaf ? m->leaves : m->count))
        return ort_prep_fail(b->p, err, "a node names %s %zu of %zu", t->leaf ? "leaf" : "node", i,
                             t->leaf ? m->leaves : m->count);
    if (t->leaf) {
        put_leaf(b, t->slot, (ort_tree_run){(uint32_t)i, 1});
        return ORT_OK;
    }
    int mode = ((const uint8_t *)m->mode->data)[i];
    if (m->placed[i] == m->tree + 1)
        return ort_prep_fail(b->p, err, "the nodes form no trees: node %zu has two parents, or is "
                             "reached from itself", i);
    m->placed[i] = m->tree + 1;
    if (mode > ORT_TREE_MEMBER)
        return ort_prep_fail(b->p, err, "nodes_modes holds %d, at most 6 is known", mode);
    const double split = mode == ORT_TREE_MEMBER ? (double)m->set_of[i]
                                           : number_at(&b->split, i);
    tree_test test = {mode, m->feature[i], i < m->missing_count && m->missing[i] != 0, split};
    return put_test(b, t->slot, test,
                    (task){.source = (size_t)m->yes[i], .leaf = m->yes_leaf[i] != 0},
                    (task){.source = (size_t)m->no[i], .leaf = m->no_leaf[i] != 0}, err);
}

static ort_status place_roots(builder *b, ml5 *m, ort_error *err)
{
    for (size_t r = 0; r < m->root_count; r++) {
        m->tree = (uint32_t)r;
        ORT_TRY(begin_tree(b, (size_t)m->roots[r], err));
        while (b->stack.count > 0) {
            task t = ort_vec_pop(&b->stack);
            ORT_TRY(place_ml5(b, m, &t, err));
        }
    }
    return ORT_OK;
}

static ort_status build_ml5(builder *b, ort_error *err)
{
    ml5 m;
    ORT_TRY(read_ml5(b, &m, err));
    ORT_TRY(read_sets(b, &m, err));
    for (size_t i = 0; i < m.leaves; i++)
        if (b->target[i] < 0 || b->target[i] >= b->forest->targets)
            return ort_prep_fail(b->p, err, "leaf_targetids holds %lld, n_targets is %lld",
                                 (long long)b->target[i], (long long)b->forest->targets);
    /* A leaf may be shared by two edges, so twice the lists is what trees can reach. */
    b->limit = 2 * (m.count + m.leaves) + m.root_count + 2;
    m.placed = ort_arena_array(&b->scratch, m.count, sizeof *m.placed);
    if (m.placed == NULL)
        return ort_error_memory(err, m.count * sizeof *m.placed);
    ORT_TRY(place_roots(b, &m, err));
    return make_block(b, err);
}

ort_status ort_forest_build_ml5(ort_prep *p, ort_forest *f, ort_error *err)
{
    builder b = {.p = p, .forest = f};
    p->packed_attrs = packed_attrs;
    if (ort_prep_is_packed(p))
        return ort_forest_block_find(p, f, err);
    ort_status status = build_ml5(&b, err);
    release(&b);
    return status;
}
