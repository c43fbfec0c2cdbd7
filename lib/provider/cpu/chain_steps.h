/* chain_steps.h - which operators chains of elementwise steps are made of (op/shared/chain.h,
 * op/quant/code_chain.c), and how their kernels are named.
 */
#ifndef ORT_PROVIDER_CPU_CHAIN_STEPS_H
#define ORT_PROVIDER_CPU_CHAIN_STEPS_H

#include "op/op.h"

/* The ort_binary of a node of two operands, or -1. */
int ort_chain_binary(const ort_node *node);
/* The function of a node of one operand, or of a Clip with known bounds. */
bool ort_chain_unary(const ort_graph *graph, const ort_node *node, ort_unary *id, float *a,
                     float *b);

#endif
