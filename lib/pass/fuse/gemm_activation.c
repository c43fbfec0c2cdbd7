/* gemm_activation.c - Gemm and the activation after it become com.microsoft FusedGemm. float only.
 */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/fuse/activation.h"

static ort_status fuse(ort_pass_context *c, ort_node *gemm, ort_node *next,
                       const ort_fused_activation *activation, ort_error *err)
{
    ort_attr set[3] = {ort_attr_string("activation", activation->name),
                       ort_attr_float("activation_alpha", (double)activation->params[0]),
                       ort_attr_float("activation_beta", (double)activation->params[1])};
    ort_node_spec spec = {.domain = MS, .op_type = "FusedGemm", .inputs = gemm->inputs,
                          .input_count = gemm->input_count, .attrs = gemm->attrs,
                          .attr_count = gemm->attr_count, .set = set,
                          .set_count = 1 + activation->param_count};
    return ort_edit_replace(c->graph, gemm, next, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_fused_activation activation;
        ort_node *next = ort_edit_is(node, ONNX, "Gemm") && node->opset >= 7
                             ? ort_activation_after(c, node, &activation) : NULL;
        if (!next || !ort_pass_opset(c, node, MS, "FusedGemm", 1))
            continue;
        if (!strcmp(activation.name, "Clip")) {
            ort_pass_note(c, node, "FusedGemm has no Clip");
            continue;
        }
        if (ort_fact_type(c->graph, node->outputs[0])->dtype != ORT_DTYPE_FLOAT) {
            ort_pass_note(c, node, "FusedGemm is for float");
            continue;
        }
        ORT_TRY(fuse(c, node, next, &activation, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_gemm_activation = {
    .name = "gemm_activation",
    .level = 2,
    .doc = "Gemm and the activation after it become FusedGemm",
    .apply = apply,
};
