/* chain.h - the operator that runs a chain of elementwise operators on one tile after another, so
 * that what lies between them stays in the first-level cache. Made by provider/cpu/chain_fusion.c,
 * never saved.
 *
 *   domain ORT_INTERNAL, ElementwiseChain: inputs*:T -> y:T, float only. Input 0 starts the chain.
 *   program: pairs (code, input); params: pairs (a, b), one for each step.
 *
 * code: an ort_unary (input ignored), or an ort_binary + ORT_CHAIN_LEFT (value OP input), or
 * + ORT_CHAIN_RIGHT (input OP value). Inputs broadcast onto input 0, whose shape all steps keep.
 */
#ifndef ORT_OP_SHARED_CHAIN_H
#define ORT_OP_SHARED_CHAIN_H

#include "op/op.h"

#define ORT_CHAIN_LEFT 1000
#define ORT_CHAIN_RIGHT 2000
#define ORT_CHAIN_STEPS 24
#define ORT_CHAIN_INPUTS 16

typedef struct ort_chain_step {
    ort_unary_fn *unary; /* or */
    ort_binary_fn *binary;
    int input;
    bool right; /* the operand stands on the left: input OP value */
    float a, b;
} ort_chain_step;

/* The steps of a program and its numbers: ORT_CHAIN_STEPS at most, whose inputs are there. */
ort_status ort_chain_read(const ort_prep *p, const ort_ints *program, const ort_floats *params,
                          ort_chain_step *steps, int *count, ort_error *err);

#endif
