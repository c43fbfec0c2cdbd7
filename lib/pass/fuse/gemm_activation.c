/* gemm_activation.c - Gemm and the activation after it become com.microsoft FusedGemm. float only.
 */
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/fuse/activation.h"

static ort_status set_params(ort_graph *graph, ort_node *node,
                             const ort_fused_activation *activation, ort_error *err)
{
    static const char *const names[] = {"activation_alpha", "activation_beta"};
    ort_attr name = {.name = "activation", .type = ORT_ATTR_STRING};
    name.s = (ort_string){activation->name, strlen(activation->name)};
    ORT_TRY(ort_node_set_attr(graph, node, &name, err));
    for (int i = 0; i < activation->param_count; i++) {
        ort_attr param = {.name = names[i], .type = ORT_ATTR_FLOAT, .f = activation->params[i]};
        ORT_TRY(ort_node_set_attr(graph, node, &param, err));
    }
    return ORT_OK;
}

static ort_status fuse(ort_pass_context *c, ort_node *gemm, ort_node *next,
                       const ort_fused_activation *activation, ort_error *err)
{
    ort_id output = next->outputs[0];
    ort_node *fused = NULL;
    ort_node_spec spec = {.domain = MS,
                          .op_type = "FusedGemm",
                          .name = gemm->name,
                          .inputs = gemm->inputs,
                          .input_count = gemm->input_count,
                          .outputs = &output,
                          .output_count = 1,
                          .attrs = gemm->attrs,
                          .attr_count = gemm->attr_count,
                          .origin = ort_edit_origin(c->graph, gemm, next)};
    ort_graph_remove_node(c->graph, next);
    ort_graph_remove_node(c->graph, gemm);
    ORT_TRY(ort_edit_add_node(c->graph, &spec, &fused, err));
    return set_params(c->graph, fused, activation, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_fused_activation activation;
        if (!ort_edit_is(node, ONNX, "Gemm") || node->opset < 7)
            continue;
        ort_node *next = ort_edit_only_reader(c->graph, node->outputs[0]);
        if (!next || next->inputs[0] != node->outputs[0] ||
            !ort_activation_match(c, next, &activation) ||
            !ort_pass_opset(c, node, MS, "FusedGemm", 1))
            continue;
        if (!strcmp(activation.name, "Clip")) {
            ort_pass_note(c, node, "FusedGemm has no Clip");
            continue;
        }
        if (c->graph->values.data[node->outputs[0]]->fact.type.dtype != ORT_DTYPE_FLOAT) {
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
