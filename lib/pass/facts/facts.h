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

/* ---- dims */

static inline bool ort_dim_is(ort_dim dim, int64_t size)
{
    return ort_dim_known(dim) && dim.size == size;
}

/* Is it a tensor of this rank? */
bool ort_fact_ranked(const ort_graph *graph, ort_id id, int rank);
/* Tensors of one rank whose dims certainly are the same. */
bool ort_facts_same_shape(const ort_type *a, const ort_type *b);
/* Has `wide` the dims of `narrow`, with a 1 put in at `axis`? Both are tensors. */
bool ort_facts_same_but_one(const ort_type *narrow, const ort_type *wide, int axis);

/* ---- constants */

/* A constant whose elements are known; else NULL. */
const ort_tensor *ort_fact_constant(const ort_graph *graph, ort_id id);
/* Is input `slot` a constant of one element? */
bool ort_fact_number(const ort_graph *graph, const ort_node *node, int slot, double *number);
/* Is it that integer? */
bool ort_fact_is_int(const ort_graph *graph, const ort_node *node, int slot, int64_t number);

/* ---- nodes */

/* Is it a Transpose by this list? */
bool ort_fact_permutes(const ort_node *node, const int64_t *perm, size_t count);
/* Is its attribute "axis", `fallback` if it has none, the last of so many? */
bool ort_fact_along_last(const ort_node *node, int64_t fallback, int rank);

#endif
