/* conv_sum.c - Conv and the Add of its result to a tensor of the same shape become one FusedConv
 * with input Z, together with the activation after the Add: residual networks write each sum once.
 * In a file that may hold com.microsoft operators, too: onnxruntime has Z, and is as fast with it.
 */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/fuse/activation.h"

/* The Add that alone reads the Conv, and what it adds; NULL. */
static ort_node *sum_after(const ort_pass_context *c, const ort_node *conv, ort_id *other)
{
    const ort_graph *graph = c->graph;
    ort_node *add = ort_edit_only_reader(graph, conv->outputs[0]);
    if (!ort_edit_is(add, ONNX, "Add") || add->input_count != 2 || add->opset < 7)
        return NULL;
    *other = add->inputs[add->inputs[0] == conv->outputs[0] ? 1 : 0];
    if (*other == ORT_ID_NONE || graph->values.data[*other]->fact.value)
        return NULL;
    const ort_type *a = ort_fact_type(graph, conv->outputs[0]), *b = ort_fact_type(graph, *other);
    if (ort_facts_same_type(a, b) && a->dtype == ORT_DTYPE_FLOAT && a->rank >= 3)
        return add;
    ort_pass_note(c, add, "what is added to the Conv isn't known to be float of its shape");
    return NULL;
}

static ort_status fuse(ort_pass_context *c, ort_node *conv, ort_node *add, ort_id other,
                       ort_error *err)
{
    ort_id inputs[4] = {conv->inputs[0], conv->inputs[1], ort_edit_input(conv, 2), other};
    ort_attr set[2];
    ort_node_spec spec = {.domain = MS, .op_type = "FusedConv", .inputs = inputs,
                          .input_count = 4, .attrs = conv->attrs, .attr_count = conv->attr_count,
                          .set = set};
    ort_fused_activation activation;
    ort_node *next = ort_activation_after(c, add, &activation);
    if (next) {
        ort_node merged = *conv;
        merged.origin = ort_edit_origin(c->graph, conv, add);
        spec.origin = ort_edit_origin(c->graph, &merged, next);
        spec.outputs = next->outputs;
        spec.output_count = 1;
        spec.set_count = ort_activation_attrs(&activation, set);
        ort_graph_remove_node(c->graph, next);
    }
    return ort_edit_replace(c->graph, conv, add, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_id other;
        ort_node *add = ort_edit_is(node, ONNX, "Conv") ? sum_after(c, node, &other) : NULL;
        if (!add || !ort_pass_opset(c, node, MS, "FusedConv", 1))
            continue;
        ORT_TRY(fuse(c, node, add, other, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_conv_sum = {
    .name = "conv_sum",
    .level = 2,
    .doc = "Conv and the Add of a residual become one",
    .apply = apply,
};
