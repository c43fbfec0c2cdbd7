/* facts.h - what is known of values, as passes ask it: type, dims, constant; and the same of a
 * node's inputs and attributes.
 */
#ifndef ORT_PASS_FACTS_FACTS_H
#define ORT_PASS_FACTS_FACTS_H

#include "op/edit.h"

static inline const ort_type *ort_fact_type(const ort_graph *graph, ort_id id)
{
    return &graph->values.data[id]->fact.type;
}
/* The type of a tensor of known rank; NULL: it is none, or ORT_ID_NONE. */
static inline const ort_type *ort_fact_tensor(const ort_graph *graph, ort_id id)
{
    const ort_type *type = id == ORT_ID_NONE ? NULL : ort_fact_type(graph, id);
    return type && type->kind == ORT_TYPE_TENSOR && type->rank >= 0 ? type : NULL;
}

/* ---- dims */

static inline bool ort_dim_is(ort_dim dim, int64_t size)
{
    return ort_dim_known(dim) && dim.size == size;
}
/* -1: not known, or no tensor. */
static inline int ort_type_rank(const ort_type *type)
{
    return type->kind == ORT_TYPE_TENSOR ? type->rank : -1;
}
/* Numbers that scales, shifts and bounds may be of: 16 bits and more. */
static inline bool ort_dtype_is_real(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_DOUBLE || dtype == ORT_DTYPE_FLOAT16 ||
           dtype == ORT_DTYPE_BFLOAT16;
}

/* Is it a tensor of this rank? */
bool ort_fact_ranked(const ort_graph *graph, ort_id id, int rank);
/* Tensors of one rank whose dims certainly are the same. */
bool ort_facts_same_shape(const ort_type *a, const ort_type *b);
/* The same, and of one element type, which is known. */
bool ort_facts_same_type(const ort_type *a, const ort_type *b);
/* Has `wide` the dims of `narrow`, with a 1 put in at `axis`? Both are tensors. */
bool ort_facts_same_but_one(const ort_type *narrow, const ort_type *wide, int axis);

/* ---- constants */

/* A constant whose elements are known; else NULL. */
const ort_tensor *ort_fact_constant(const ort_graph *graph, ort_id id);
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

/* An axis counted from the front; -1: there is none such. */
static inline int ort_axis_in(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}
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
/* Is a list attribute `number` alone, or absent? */
bool ort_fact_ints_are(const ort_node *node, const char *name, int64_t number);
/* Is it a Transpose by this list? */
bool ort_fact_permutes(const ort_node *node, const int64_t *perm, size_t count);
/* Is its attribute "axis" the last of so many? */
bool ort_fact_along_last(const ort_node *node, int rank);

#endif
