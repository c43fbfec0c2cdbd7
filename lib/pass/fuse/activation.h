/* activation.h - an activation after a node, as the fused operators of com.microsoft name it: only
 * those that onnxruntime's FusedConv and FusedGemm know, since a saved model must load there. What
 * is found is called a, its parameters p and q. */
#ifndef ORT_PASS_FUSE_ACTIVATION_H
#define ORT_PASS_FUSE_ACTIVATION_H

#include "pass/rewrite.h"

/* Named forms of rows; FusedGemm has no Clip. */
#define ORT_ACTIVATION                                                                             \
    "activation(y): a:(Relu|Sigmoid|Tanh y) | a:(LeakyRelu y alpha=$p)"                            \
    " | a:(HardSigmoid y alpha=$p beta=$q)"
#define ORT_ACTIVATION_CLIP ORT_ACTIVATION " | a:(Clip y $p? $q?)"
/* The Conv called n with those inputs, and the activation, if there is one. */
#define ORT_FUSED_CONV(inputs)                                                                     \
    "n:(ms.FusedConv " inputs " &n activation=&a activation_params=$p,$q)"

/* ort_rewrite.unless: n isn't a Conv in float, or the bounds of a Clip are NaN. */
const char *ort_fused_conv_unless(const ort_pass_context *context, ort_match *match);
/* ort_rewrite.prepare: attributes of n that say what holds without them are left out. A file with
 * the domain's name in each node must not be larger than it was. */
ort_status ort_fused_conv_prepare(ort_pass_context *context, ort_match *match, ort_error *err);

#endif
