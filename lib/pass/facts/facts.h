/* facts.h - what passes ask of values, and of a node's inputs and attributes, besides what
 * op/edit.h tells: type, dims, constants.
 */
#ifndef ORT_PASS_FACTS_FACTS_H
#define ORT_PASS_FACTS_FACTS_H

#include "op/edit.h"

/* ---- dims */

/* Has `wide` the dims of `narrow`, with a 1 put in at `axis`? Both are tensors. */
bool ort_facts_same_but_one(const ort_type *narrow, const ort_type *wide, int axis);

/* ---- constants */

/* Is input `slot` a constant of one element? */
bool ort_fact_number(const ort_graph *graph, const ort_node *node, int slot, double *number);
/* Is it that integer? */
bool ort_fact_is_int(const ort_graph *graph, const ort_node *node, int slot, int64_t number);
/* Has it one dimension, of so many elements? */
static inline bool ort_tensor_is_row(const ort_tensor *t, int64_t count)
{
    return t->shape.rank == 1 && t->shape.dim[0] == count;
}
/* Are its elements 0, 1, 2 and so on? */
bool ort_tensor_counts_up(const ort_tensor *t);

/* ---- nodes */

/* Its attribute "axis" (or what the operator has for it), counted from the front; -1: outside. */
int ort_fact_axis(const ort_node *node, int rank);
/* A list of integers that is attribute `name` (or NULL) or constant input `slot` (or 0, which is
 * none): how many; 0 when it isn't given, -1 when it isn't known, or longer than ORT_MAX_RANK. */
int ort_fact_ints(const ort_graph *graph, const ort_node *node, const char *name, int slot,
                  int64_t *list);
/* "axes" likewise, counted from the front. */
int ort_fact_axes(const ort_graph *graph, const ort_node *node, int slot, int rank, int64_t *axes);
/* The axes that a reduction keeps as ones, one bit each; 0: not known, not kept, or all. */
unsigned ort_fact_kept_axes(const ort_graph *graph, const ort_node *reduce, int rank);
/* What bounds a Clip: attributes before opset 11, inputs since. A bound that is absent stays what
 * it was; false: it isn't known, or NaN. */
bool ort_fact_bounds(const ort_graph *graph, const ort_node *clip, double *low, double *high);
/* What a Pad puts before and behind each of `rank` axes, [begin..., end...]; false: not known. */
bool ort_fact_pads(const ort_graph *graph, const ort_node *pad, int rank, int64_t *pads);
/* Is it a Transpose by this list? */
bool ort_fact_permutes(const ort_node *node, const int64_t *perm, size_t count);
/* Are these numbers of codes (a DequantizeLinear's), moves of elements alone in between? */
bool ort_fact_is_coded(const ort_graph *graph, ort_id id);
/* Is its attribute "axis" the last of so many? */
bool ort_fact_along_last(const ort_node *node, int rank);

#endif
