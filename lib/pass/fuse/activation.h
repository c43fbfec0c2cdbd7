/* activation.h - an activation node as the fused operators of com.microsoft name it. */
#ifndef ORT_PASS_FUSE_ACTIVATION_H
#define ORT_PASS_FUSE_ACTIVATION_H

#include "op/edit.h"
#include "pass/pass.h"

typedef struct ort_fused_activation {
    const char *name;
    float params[2]; /* in the operator's order: alpha, beta; Clip: min, max */
    int param_count;
} ort_fused_activation;

/* The activation that alone reads a convolution or product and may follow it in one operator; or
 * NULL. When it is one but can't be fused, a note goes to the log. */
ort_node *ort_activation_after(const ort_pass_context *context, const ort_node *node,
                               ort_fused_activation *activation);
/* The attributes by which a FusedConv says it; how many. They borrow from it. */
int ort_activation_attrs(const ort_fused_activation *activation, ort_attr set[2]);

#endif
