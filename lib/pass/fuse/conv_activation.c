/* conv_activation.c - Conv and the activation after it become com.microsoft FusedConv: the
 * activation runs on each tile while it is in the cache. float only, as onnxruntime has it. */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/fuse/activation.h"

/* Does the attribute say what holds without it? */
static bool is_default(const ort_node *conv, const ort_attr *a)
{
    if (!strcmp(a->name, "group"))
        return a->type == ORT_ATTR_INT && a->i == 1;
    if (!strcmp(a->name, "dilations") || !strcmp(a->name, "strides"))
        return ort_fact_ints_are(conv, a->name, 1);
    return !strcmp(a->name, "pads") && ort_fact_ints_are(conv, a->name, 0);
}

/* Without those: a file with the domain's name in each node must not be larger than it was. */
static const ort_attr *spell_attrs(ort_graph *graph, const ort_node *conv, int *count)
{
    size_t most = (size_t)conv->attr_count + 1;
    ort_attr *kept = ort_arena_alloc(&graph->model->arena, most * sizeof *kept);
    *count = 0;
    for (int i = 0; kept && i < conv->attr_count; i++)
        if (!is_default(conv, &conv->attrs[i]))
            kept[(*count)++] = conv->attrs[i];
    return kept;
}

static ort_status fuse(ort_pass_context *c, ort_node *conv, ort_node *next,
                       const ort_fused_activation *activation, ort_error *err)
{
    ort_attr set[2];
    ort_node_spec spec = {.domain = MS, .op_type = "FusedConv", .inputs = conv->inputs,
                          .input_count = conv->input_count, .set = set,
                          .set_count = ort_activation_attrs(activation, set)};
    spec.attrs = spell_attrs(c->graph, conv, &spec.attr_count);
    if (!spec.attrs)
        return ort_error_memory(err, sizeof *spec.attrs);
    return ort_edit_replace(c->graph, conv, next, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_fused_activation activation;
        ort_node *next = ort_edit_is(node, ONNX, "Conv")
                             ? ort_activation_after(c, node, &activation) : NULL;
        if (!next || !ort_pass_opset(c, node, MS, "FusedConv", 1))
            continue;
        ort_dtype dtype = ort_fact_type(c->graph, node->outputs[0])->dtype;
        if (dtype != ORT_DTYPE_FLOAT) {
            ort_pass_note(c, node, "FusedConv is for float, this is %s", ort_dtype_name(dtype));
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
