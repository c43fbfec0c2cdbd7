/* conv_activation.c - Conv and the activation after it become com.microsoft FusedConv: the
 * activation runs on each tile while it is in the cache. float only, as onnxruntime has it. */
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/fuse/activation.h"

static bool all_are(const ort_attr *a, int64_t value)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->ints[i] != value)
            return false;
    return a->type == ORT_ATTR_INTS;
}

/* Does the attribute say what holds without it? */
static bool is_default(const ort_attr *a)
{
    if (!strcmp(a->name, "group"))
        return a->type == ORT_ATTR_INT && a->i == 1;
    if (!strcmp(a->name, "dilations") || !strcmp(a->name, "strides"))
        return all_are(a, 1);
    return !strcmp(a->name, "pads") && all_are(a, 0);
}

/* Without those: a file with the domain's name in each node must not be larger than it was. */
static const ort_attr *spell_attrs(ort_graph *graph, const ort_node *conv, int *count)
{
    size_t most = (size_t)conv->attr_count + 1;
    ort_attr *kept = ort_arena_alloc(&graph->model->arena, most * sizeof *kept);
    *count = 0;
    for (int i = 0; kept && i < conv->attr_count; i++)
        if (!is_default(&conv->attrs[i]))
            kept[(*count)++] = conv->attrs[i];
    return kept;
}

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
                          .origin = ort_edit_origin(c->graph, conv, next)};
    ort_attr name = {.name = "activation", .type = ORT_ATTR_STRING};
    ort_attr params = {.name = "activation_params", .type = ORT_ATTR_FLOATS};
    spec.attrs = spell_attrs(c->graph, conv, &spec.attr_count);
    if (!spec.attrs)
        return ort_error_memory(err, sizeof *spec.attrs);
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
    ORT_PASS_EACH_NODE(c->graph, node)
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
