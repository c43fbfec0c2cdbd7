/* reshape_groups.h - which axes a Reshape keeps together.
 *
 *     [2, 3, 4, 6] -> [2, 3, 24]      groups {2|2} {3|3} {4, 6|24}
 *
 * The least groups of neighbouring axes with as many elements on both sides. Data may lie permuted
 * on both sides as long as the axes of a group stay together in their order, and the groups come in
 * the same order. Axes of 1 belong to no group and may lie anywhere.
 */
#ifndef ORT_PASS_CLEAN_RESHAPE_GROUPS_H
#define ORT_PASS_CLEAN_RESHAPE_GROUPS_H

#include "pass/facts/perm.h"

typedef struct ort_groups_side {
    int rank;
    signed char of[ORT_MAX_RANK]; /* the group of an axis, counted from 0; -1: it is 1 */
} ort_groups_side;

typedef struct ort_groups {
    int count;
    ort_groups_side in, out;
} ort_groups;

/* False when the shapes aren't known well enough, or hold no elements. */
bool ort_groups_of(ort_dim_table *dims, const ort_type *in, const ort_type *out,
                   ort_groups *groups);
/* The order of groups where that side lies permuted by p: v = Transpose(v', p). False when p tears
 * a group apart. */
bool ort_groups_order(const ort_groups_side *side, const ort_perm *p, int order[ORT_MAX_RANK]);
/* A permutation that puts the groups in this order; axes of 1 stay behind the axis before them. */
ort_perm ort_groups_perm(const ort_groups_side *side, const int *order, int count);

/* The shape `to` as a Reshape of `from` can say it: numbers, 0 for a dim in the same place, one
 * -1. False when it can't. */
bool ort_reshape_says(const ort_type *from, const ort_type *to, int64_t list[ORT_MAX_RANK]);

#endif
