/* ml_tree_block.c - the block that holds a forest (ml_tree.h): its layout, and the check of one
 * that comes from a pack file. A walk stays inside of its block because children stand behind their
 * parents, a leaf is its own child and passes every test, and both are within the nodes; what it
 * meets there leads nowhere else, since runs, sets and targets are checked as well. */
#include <math.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/ml/ml_tree.h"

enum { PARTS = 9, ALIGNMENT = 64 };

typedef struct layout {
    size_t offset[PARTS + 1]; /* the last: bytes of all */
} layout;

/* False when it is beyond memory. */
static bool lay_out(const ort_forest_head *h, layout *l)
{
    const struct { uint64_t count; size_t size; } part[PARTS] = {
        {h->node_count, sizeof(ort_tree_node)}, {h->root_count, sizeof(uint32_t)},
        {h->root_count, sizeof(uint32_t)},      {h->base_count, sizeof(double)},
        {h->set_count, sizeof(ort_tree_set)},   {h->member_count, sizeof(double)},
        {h->run_count, sizeof(ort_tree_run)},   {h->pair_count, sizeof(ort_tree_pair)},
        {h->alone_count, sizeof(double)},
    };
    size_t at = ort_round_up(sizeof *h, ALIGNMENT);
    for (int i = 0; i < PARTS; i++) {
        size_t bytes;
        l->offset[i] = at;
        if (part[i].count > UINT32_MAX ||
            !ort_mul_size((size_t)part[i].count, part[i].size, &bytes) ||
            !ort_add_size(at, bytes, &at) || at > SIZE_MAX - ALIGNMENT)
            return false;
        at = ort_round_up(at, ALIGNMENT);
    }
    l->offset[PARTS] = at;
    return true;
}

static void find_parts(const ort_forest_head *block, const layout *l, ort_forest_parts *parts)
{
    char *at = (char *)(uintptr_t)block;
    *parts = (ort_forest_parts){
        .nodes = (ort_tree_node *)(at + l->offset[0]),
        .roots = (uint32_t *)(at + l->offset[1]),
        .heights = (uint32_t *)(at + l->offset[2]),
        .base = (double *)(at + l->offset[3]),
        .sets = (ort_tree_set *)(at + l->offset[4]),
        .members = (double *)(at + l->offset[5]),
        .runs = (ort_tree_run *)(at + l->offset[6]),
        .pairs = (ort_tree_pair *)(at + l->offset[7]),
        .alone = block->alone_count ? (double *)(at + l->offset[8]) : NULL,
    };
}

ort_status ort_forest_block_new(ort_prep *p, const ort_forest_head *head, ort_forest_head **block,
                                ort_forest_parts *parts, ort_error *err)
{
    layout l;
    bool fill = true;
    if (!lay_out(head, &l))
        return ort_error_memory(err, SIZE_MAX);
    *block = ort_prep_pack(p, "forest", 0, l.offset[PARTS], &fill);
    if (!*block)
        return ort_error_memory(err, l.offset[PARTS]);
    **block = *head;
    find_parts(*block, &l, parts);
    return ORT_OK;
}

static void use_parts(const ort_forest_head *h, const ort_forest_parts *parts, ort_forest *f)
{
    f->nodes = parts->nodes;
    f->node_count = (size_t)h->node_count;
    f->roots = parts->roots;
    f->heights = parts->heights;
    f->root_count = (size_t)h->root_count;
    f->runs = parts->runs;
    f->pairs = parts->pairs;
    f->alone = parts->alone;
    f->sets = parts->sets;
    f->members = parts->members;
    f->base = parts->base;
    f->base_count = (size_t)h->base_count;
    f->rounds_to_float = h->rounds_to_float != 0;
    f->one_class = h->one_class != 0;
    f->all_positive = h->all_positive != 0;
    f->max_feature = 0;
    f->all_leq = true;
    for (size_t i = 0; i < f->node_count; i++) {
        const ort_tree_node *n = &f->nodes[i];
        if ((n->feature & 7) == ORT_TREE_LEAF)
            continue;
        f->all_leq = f->all_leq && (n->feature & 7) == ORT_TREE_LEQ;
        if (n->feature >> 4 > f->max_feature)
            f->max_feature = n->feature >> 4;
    }
}

void ort_forest_block_use(const ort_forest_head *block, ort_forest *forest)
{
    layout l;
    ort_forest_parts parts;
    (void)lay_out(block, &l); /* as when it was made */
    find_parts(block, &l, &parts);
    use_parts(block, &parts, forest);
}

/* ---- what a file says */

static bool nodes_stay(const ort_forest *f, uint64_t sets)
{
    for (size_t i = 0; i < f->node_count; i++) {
        const ort_tree_node *n = &f->nodes[i];
        int mode = n->feature & 7;
        if (mode == ORT_TREE_LEAF ? n->child != i || n->feature != ORT_TREE_LEAF ||
                                        !(isinf(n->split) && n->split > 0)
                                  : n->child <= i || n->child >= f->node_count - 1)
            return false;
        if (mode == ORT_TREE_MEMBER && !(n->split >= 0 && n->split < (double)sets))
            return false;
    }
    for (size_t r = 0; r < f->root_count; r++)
        if (f->roots[r] >= f->node_count)
            return false;
    return true;
}

static bool lists_stay(const ort_forest_head *h, const ort_forest *f)
{
    for (size_t i = 0; i < h->run_count; i++)
        if (f->runs[i].first > h->pair_count ||
            f->runs[i].count > h->pair_count - f->runs[i].first)
            return false;
    for (size_t i = 0; i < h->pair_count; i++)
        if (f->pairs[i].target >= f->targets)
            return false;
    for (size_t i = 0; i < h->set_count; i++)
        if (f->sets[i].first > h->member_count ||
            f->sets[i].count > h->member_count - f->sets[i].first)
            return false;
    return true;
}

/* Either form of the leaves' weights, for every node. */
static bool counts_fit(const ort_forest_head *h, const ort_forest *f)
{
    bool sums = f->aggregate != ORT_TREE_MIN && f->aggregate != ORT_TREE_MAX;
    if (!h->node_count || !h->root_count)
        return false;
    return h->alone_count ? h->alone_count == h->node_count && f->targets == 1 && sums
                          : h->run_count == h->node_count;
}

ort_status ort_forest_block_find(ort_prep *p, ort_forest *f, ort_error *err)
{
    size_t bytes;
    layout l;
    ort_forest_parts parts;
    const ort_forest_head *h = ort_prep_packed(p, "forest", &bytes);
    bool fits = h && bytes >= sizeof *h && lay_out(h, &l) && l.offset[PARTS] == bytes;
    if (fits) {
        find_parts(h, &l, &parts);
        use_parts(h, &parts, f);
        fits = f->max_feature == h->max_feature && counts_fit(h, f) &&
               nodes_stay(f, h->set_count) && lists_stay(h, f);
    }
    return fits ? ORT_OK : ort_prep_fail(p, err, "its block of trees is damaged");
}
