/* chain_steps.h - which operators chains of elementwise steps are made of (op/shared/chain.h,
 * op/quant/code_chain.c), how their kernels are named, and a chain while its steps are found.
 */
#ifndef ORT_PROVIDER_CPU_CHAIN_STEPS_H
#define ORT_PROVIDER_CPU_CHAIN_STEPS_H

#include "op/op.h"
#include "op/shared/chain.h"

/* The ort_binary of a node of two operands, or -1. */
int ort_chain_binary(const ort_node *node);
/* The function of a node of one operand, or of a Clip with known bounds. */
bool ort_chain_unary(const ort_graph *graph, const ort_node *node, ort_unary *id, float *a,
                     float *b);

typedef struct ort_chain_steps {
    ort_node *nodes[ORT_CHAIN_STEPS];
    int count;
    int64_t program[2 * ORT_CHAIN_STEPS];
    float params[2 * ORT_CHAIN_STEPS];
} ort_chain_steps;

/* The number among a chain's inputs of `other`, an operand beside its `value`; -1: it can't be. */
typedef int ort_chain_operand_fn(const ort_graph *graph, void *chain, ort_id value, ort_id other);

/* A float tensor of known rank. */
bool ort_chain_is_float(const ort_type *type);
/* Append `node`, which reads `value`; `operand` numbers what else it reads, for `chain`. False when
 * it isn't elementwise, changes the shape, or there is no room. */
bool ort_chain_append(const ort_graph *graph, ort_chain_steps *steps, ort_node *node, ort_id value,
                      ort_chain_operand_fn *operand, void *chain);
/* The attributes "program" and "params"; they last as long as the steps. */
void ort_chain_attrs(const ort_chain_steps *steps, ort_attr set[2]);

#endif
