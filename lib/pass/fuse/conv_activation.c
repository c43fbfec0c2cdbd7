/* conv_activation.c - Conv and the activation after it become com.microsoft FusedConv: the
 * activation runs on each tile while it is in the cache. float only, as onnxruntime has it. */
#include "pass/fuse/activation.h"

static const char *const forms[] = {ORT_ACTIVATION_CLIP, NULL};

static const ort_rewrite rewrites[] = {
    {"@activation(n:(Conv x w b?))", ORT_FUSED_CONV("x w b"), ort_fused_conv_unless,
     ort_fused_conv_prepare, .example = "x:1,3,5,5 w#4,3,3,3 b#4 p=-0.5 q=0.5 opset=17"},
    {0},
};

const ort_pass ort_pass_conv_activation = {
    .name = "conv_activation",
    .level = 2,
    .doc = "Conv and the activation after it become FusedConv",
    .rewrites = rewrites,
    .forms = forms,
};
