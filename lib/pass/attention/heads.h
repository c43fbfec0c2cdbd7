/* heads.h - where batch, heads, rows and elements lie in a value.
 *
 * Heads are split off, folded into the batch and put together again by Transposes and Reshapes in
 * many an order. What is read here is their meaning: the letters that run along each axis.
 *
 *     "b h s d"    batch, heads, rows (of queries or keys), elements of a head
 *     "bh s d"     heads folded into the batch, as for torch.bmm
 *     "b s hd"     heads together;    "s b hd"  with steps first;    "b s phd"  q, k and v packed
 *
 * An axis of 1 has no letter: nothing moves where it goes, so it may stand for any. One step goes
 * through one node: a Transpose, a Reshape (Unsqueeze, Squeeze), a factor.
 */
#ifndef ORT_PASS_ATTENTION_HEADS_H
#define ORT_PASS_ATTENTION_HEADS_H

#include "op/edit.h"

typedef struct ort_heads {
    ort_id id;                  /* ORT_ID_NONE: there is none */
    const char *lie;            /* how it lies, of the ways that were asked for */
    char axis[ORT_MAX_RANK][8]; /* letters along each axis of it */
    ort_dim count, size;        /* of heads, of elements of each, as far as axes told */
    bool scaled;                /* may steps go through factors? */
    double factor;              /* all of them, multiplied */
} ort_heads;

/* A value that lies so; it must have as many axes. */
ort_heads ort_heads_at(const ort_graph *graph, ort_id id, const char *lie, bool scaled);
/* The nearest value, `from` or one that it is made of, that lies so, or in one of several ways:
 * "b h s d|b s h d"; without its own factors. */
ort_heads ort_heads_back(const ort_graph *graph, ort_heads from, const char *lies);
/* What the only reader of `from` makes of it, and its only reader of that, until it lies so. */
ort_heads ort_heads_forth(const ort_graph *graph, ort_heads from, const char *lies);

/* x * number or x / number: the slot of x, and the factor; -1: it is neither. */
int ort_heads_factor(const ort_graph *graph, const ort_node *node, double *factor);

#endif
