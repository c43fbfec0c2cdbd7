/* swish.c - x * sigmoid(x) becomes com.microsoft QuickGelu with alpha 1. float only. */
#include "base/error.h"
#include "op/edit.h"
#include "pass/pass.h"

/* The Sigmoid that makes `mul` a swish, or NULL. */
static ort_node *match(const ort_graph *graph, const ort_node *mul)
{
    for (int slot = 0; slot < 2; slot++) {
        ort_node *sigmoid = ort_edit_producer(graph, mul->inputs[slot]);
        if (ort_edit_is(sigmoid, ONNX, "Sigmoid") && sigmoid->inputs[0] == mul->inputs[1 - slot] &&
            ort_edit_only_reader(graph, sigmoid->outputs[0]) == mul &&
            graph->values.data[mul->outputs[0]]->fact.type.dtype == ORT_DTYPE_FLOAT)
            return sigmoid;
    }
    return NULL;
}

static ort_status fuse(ort_graph *graph, ort_node *mul, ort_node *sigmoid, ort_error *err)
{
    ort_id x = sigmoid->inputs[0], y = mul->outputs[0];
    ort_node *node = NULL;
    ort_attr alpha = {.name = "alpha", .type = ORT_ATTR_FLOAT, .f = 1.0f};
    ort_node_spec spec = {.domain = MS,
                          .op_type = "QuickGelu",
                          .name = mul->name,
                          .inputs = &x,
                          .input_count = 1,
                          .outputs = &y,
                          .output_count = 1,
                          .origin = ort_edit_origin(graph, sigmoid, mul)};
    ort_graph_remove_node(graph, mul);
    ort_graph_remove_node(graph, sigmoid);
    ORT_TRY(ort_edit_add_node(graph, &spec, &node, err));
    return ort_node_set_attr(graph, node, &alpha, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(c->graph, node)
    {
        ort_node *sigmoid;
        if (!ort_edit_is(node, ONNX, "Mul") || !(sigmoid = match(c->graph, node)))
            continue;
        ORT_TRY(fuse(c->graph, node, sigmoid, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_swish = {
    .name = "swish", .level = 2, .doc = "x * sigmoid(x) becomes QuickGelu", .apply = apply};
