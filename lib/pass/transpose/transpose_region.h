/* transpose_region.h - the region around Transposes by a permutation p and its inverse: the
 * operators that can compute on data that lies permuted, and which of them should
 * (transpose_cut.c).
 */
#ifndef ORT_PASS_TRANSPOSE_TRANSPOSE_REGION_H
#define ORT_PASS_TRANSPOSE_TRANSPOSE_REGION_H

#include "base/vec.h"
#include "pass/transpose/transpose_rules.h"

enum { ORT_REGION_PERMS = 64 }; /* most permutations of a region */

typedef struct ort_member { /* an operator of the region */
    ort_node *node;
    ort_permuted form;
    uint32_t vertex; /* of the cut */
} ort_member;

typedef struct ort_region {
    ort_pass_context *c;
    ort_graph *graph;
    int *member_of;  /* by node id: index into members, or -1 */
    short *perm_of;  /* by value id: index into perms, or -1: not of the region */
    size_t node_count, value_count;
    ORT_VEC(ort_perm) perms;
    ORT_VEC(ort_member) members;
    /* Those that lie another way when they lie permuted: what p leaves in place belongs to both. */
    ORT_VEC(ort_id) values;
} ort_region;

/* Found for p; false when memory is exhausted, then too release. */
bool ort_region_find(ort_region *r, ort_pass_context *c, const ort_perm *p);
void ort_region_release(ort_region *r);

/* A Transpose of a known permutation that moves something and isn't part of a product; p may be
 * NULL. */
bool ort_region_transpose(const ort_graph *graph, const ort_node *node, ort_perm *p);
/* The permutation of a value of the region, which perm_of names. */
static inline const ort_perm *ort_region_perm(const ort_region *r, ort_id id)
{
    return &r->perms.data[r->perm_of[id]];
}
/* The member that a node is, or NULL. */
static inline const ort_member *ort_region_member(const ort_region *r, const ort_node *node)
{
    int index = node && node->id < r->node_count ? r->member_of[node->id] : -1;
    return index >= 0 ? &r->members.data[index] : NULL;
}
/* Is y of y = Transpose(x) the permuted x? */
bool ort_region_undoes(const ort_region *r, const ort_node *node);
/* Is x of y = Transpose(x) the permuted y? */
bool ort_region_makes(const ort_region *r, const ort_node *node);

/* Which members change so that Transposes are least, an entry by `vertex`; the caller frees it,
 * after a failure as well. *gain: whether there is one. */
ort_status ort_region_decide(ort_region *r, bool **changes, bool *gain, ort_error *err);

#endif
