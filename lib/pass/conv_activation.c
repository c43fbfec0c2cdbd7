/* conv_activation.c - Conv and the activation after it become com.microsoft FusedConv: the
 * activation runs on each tile while it is in the cache. float only, as onnxruntime has it. */
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/activation.h"

static ort_status fuse(ort_pass_context *c, ort_node *conv, ort_node *next,
                       const ort_fused_activation *activation, ort_error *err)
{
    ort_id output = next->outputs[0];
    ort_node *fused = NULL;
    ort_node_spec spec = {.domain = MS,
                          .op_type = "FusedConv",
                          .name = conv->name,
                          .inputs = conv->inputs,
                          .input_count = conv->input_count,
                          .outputs = &output,
                          .output_count = 1,
                          .attrs = conv->attrs,
                          .attr_count = conv->attr_count,
                          .origin = ort_edit_origin(c->graph, conv, next)};
    ort_attr name = {.name = "activation", .type = ORT_ATTR_STRING};
    ort_attr params = {.name = "activation_params", .type = ORT_ATTR_FLOATS};
    name.s = (ort_string){activation->name, strlen(activation->name)};
    params.floats = activation->params;
    params.count = (size_t)activation->param_count;
    ort_graph_remove_node(c->graph, next);
    ort_graph_remove_node(c->graph, conv);
    ORT_TRY(ort_edit_add_node(c->graph, &spec, &fused, err));
    ORT_TRY(ort_node_set_attr(c->graph, fused, &name, err));
    return params.count ? ort_node_set_attr(c->graph, fused, &params, err) : ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(c->graph, node)
    {
        ort_fused_activation activation;
        const ort_graph_value *out;
        if (!ort_edit_is(node, ONNX, "Conv"))
            continue;
        ort_node *next = ort_edit_only_reader(c->graph, node->outputs[0]);
        if (!next || next->inputs[0] != node->outputs[0] ||
            !ort_activation_match(c, next, &activation) ||
            !ort_pass_opset(c, node, MS, "FusedConv", 1))
            continue;
        out = c->graph->values.data[node->outputs[0]];
        if (out->fact.type.dtype != ORT_DTYPE_FLOAT) {
            ort_pass_note(c, node, "FusedConv is for float, this is %s",
                          ort_dtype_name(out->fact.type.dtype));
            continue;
        }
        ORT_TRY(fuse(c, node, next, &activation, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_conv_activation = {
    .name = "conv_activation",
    .level = 2,
    .doc = "Conv and the activation after it become FusedConv",
    .apply = apply,
};
