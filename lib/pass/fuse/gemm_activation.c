/* gemm_activation.c - Gemm and the activation after it become com.microsoft FusedGemm. float only.
 */
#include "pass/fuse/activation.h"

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    const ort_node *gemm = ort_match_node(m, "n");
    if (gemm->opset < 7)
        return "";
    return ort_match_type(m, "n")->dtype == ORT_DTYPE_FLOAT ? NULL : "FusedGemm is for float";
}

static const char *const forms[] = {ORT_ACTIVATION, NULL};

static const ort_rewrite rewrites[] = {
    {"@activation(n:(Gemm x w b?))",
     "n:(ms.FusedGemm x w b &n activation=&a activation_alpha=$p activation_beta=$q)", unless,
     .example = "x:2,3 w:3,4 b:4 opset=17"},
    {0},
};

const ort_pass ort_pass_gemm_activation = {
    .name = "gemm_activation",
    .level = 2,
    .doc = "Gemm and the activation after it become FusedGemm",
    .rewrites = rewrites,
    .forms = forms,
};
