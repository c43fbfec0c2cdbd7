/* rule.h - what a row says of its node's outputs without code.
 *
 * Element types come from the signature: an output has that of the first input with its type
 * variable, or the only type that its variable (or code) stands for. Shapes come from the rule of
 * the row's impl, a text:
 *
 *   "same"                      output 0 is as input 0, whatever that is
 *   "broadcast"                 output 0: what all inputs broadcast to; "broadcast 0,3": those two
 *   "[M,K] [N,K] -> [M,N]"      shapes of inputs, then of outputs; '-' says nothing of one
 *
 * In an input's shape, a name stands for a dim, wherever it occurs for the same one; a number asks
 * for it, '_' takes any. D.. stands for any number of dims; where there are two of these, the
 * attribute behind '@' says at which axis the second dim lies: "[A..,K,B..]@axis". An input of
 * another rank, and two dims of one name, are refused; absent inputs, and unknown ranks, say
 * nothing. Without "->" that is all: the shapes of outputs are the infer function's to tell.
 *
 * In an output's shape, a name is a dim of an input, else an attribute, else the number that an
 * input of this name is. + - * / ( ) calculate ('/' rounds down), '_' is not known, D.. are dims of
 * an input or an attribute's list, 1^D as many ones. Behind ':' stands what says the element type
 * where the signature can't: attributes that name one, inputs that have it, the first of these that
 * is there: "[..] -> [..]:dtype|input".
 */
#ifndef ORT_OP_RULE_H
#define ORT_OP_RULE_H

#include "op/op.h"

/* Element types of outputs, ranks unknown; one that may be a sequence stays wholly unknown unless
 * an input tells. */
void ort_infer_signature(ort_infer *x);
/* Shapes of outputs. ORT_ERROR_RUN: the text is malformed. */
ort_status ort_infer_rule(ort_infer *x, const char *rule, ort_error *err);

#endif
