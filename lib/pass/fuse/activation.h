/* activation.h - an activation node as the fused operators of com.microsoft name it. */
#ifndef ORT_PASS_FUSE_ACTIVATION_H
#define ORT_PASS_FUSE_ACTIVATION_H

#include "pass/pass.h"

typedef struct ort_fused_activation {
    const char *name;
    float params[2]; /* in the operator's order: alpha, beta; Clip: min, max */
    int param_count;
} ort_fused_activation;

/* Is `node` an activation that may follow a convolution or product in one operator? When it is one
 * but can't be fused, a note goes to the log. */
bool ort_activation_match(const ort_pass_context *context, const ort_node *node,
                          ort_fused_activation *activation);

#endif
