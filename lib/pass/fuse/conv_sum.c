/* conv_sum.c - Conv and the Add of its result to a tensor of the same shape become one FusedConv
 * with input Z, together with the activation after the Add: residual networks write each sum once.
 * In a file that may hold com.microsoft operators, too: onnxruntime has Z, and is as fast with it.
 */
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/fuse/activation.h"

typedef struct residual {
    ort_node *conv, *add, *last; /* last: the activation after the Add, or the Add */
    ort_id other;
    ort_fused_activation activation;
} residual;

static bool same_shape(const ort_type *a, const ort_type *b)
{
    if (a->kind != ORT_TYPE_TENSOR || b->kind != ORT_TYPE_TENSOR || a->rank < 3 ||
        a->rank != b->rank || a->dtype != ORT_DTYPE_FLOAT || b->dtype != ORT_DTYPE_FLOAT)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (!ort_dim_equal(a->dim[d], b->dim[d]))
            return false;
    return true;
}

static bool match(const ort_pass_context *c, ort_node *conv, residual *r)
{
    const ort_graph *graph = c->graph;
    *r = (residual){.conv = conv};
    if (!ort_edit_is(conv, ONNX, "Conv"))
        return false;
    r->add = r->last = ort_edit_only_reader(graph, conv->outputs[0]);
    if (!ort_edit_is(r->add, ONNX, "Add") || r->add->input_count != 2 || r->add->opset < 7)
        return false;
    r->other = r->add->inputs[r->add->inputs[0] == conv->outputs[0] ? 1 : 0];
    if (r->other == ORT_ID_NONE || graph->values.data[r->other]->fact.value)
        return false;
    if (same_shape(&graph->values.data[conv->outputs[0]]->fact.type,
                   &graph->values.data[r->other]->fact.type))
        return true;
    ort_pass_note(c, r->add, "what is added to the Conv isn't known to be float of its shape");
    return false;
}

static ort_status fuse(ort_pass_context *c, residual *r, ort_error *err)
{
    ort_node *conv = r->conv, *fused = NULL, *next;
    ort_id inputs[4] = {conv->inputs[0], conv->inputs[1],
                        conv->input_count > 2 ? conv->inputs[2] : ORT_ID_NONE, r->other};
    const char *origin = ort_edit_origin(c->graph, conv, r->add);
    next = ort_edit_only_reader(c->graph, r->add->outputs[0]);
    if (next && next->inputs[0] == r->add->outputs[0] &&
        ort_activation_match(c, next, &r->activation)) {
        ort_node merged = *conv;
        merged.origin = origin;
        origin = ort_edit_origin(c->graph, &merged, next);
        r->last = next;
    }
    ort_id output = r->last->outputs[0];
    ort_node_spec spec = {.domain = MS,
                          .op_type = "FusedConv",
                          .name = conv->name,
                          .inputs = inputs,
                          .input_count = 4,
                          .outputs = &output,
                          .output_count = 1,
                          .attrs = conv->attrs,
                          .attr_count = conv->attr_count,
                          .origin = origin};
    if (r->last != r->add)
        ort_graph_remove_node(c->graph, r->last);
    ort_graph_remove_node(c->graph, r->add);
    ort_graph_remove_node(c->graph, conv);
    ORT_TRY(ort_edit_add_node(c->graph, &spec, &fused, err));
    if (!r->activation.name)
        return ORT_OK;
    ort_attr name = {.name = "activation", .type = ORT_ATTR_STRING};
    ort_attr params = {.name = "activation_params", .type = ORT_ATTR_FLOATS};
    name.s = (ort_string){r->activation.name, strlen(r->activation.name)};
    params.floats = r->activation.params;
    params.count = (size_t)r->activation.param_count;
    ORT_TRY(ort_node_set_attr(c->graph, fused, &name, err));
    return params.count ? ort_node_set_attr(c->graph, fused, &params, err) : ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    residual r;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (!match(c, node, &r) || !ort_pass_opset(c, node, MS, "FusedConv", 1))
            continue;
        ORT_TRY(fuse(c, &r, err));
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
