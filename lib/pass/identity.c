/* identity.c - nodes that give back their input go: Identity, Dropout outside training, Cast to
 * the same type. */
#include "base/error.h"
#include "op/edit.h"
#include "pass/pass.h"

/* Dropout passes its input through unless training_mode says otherwise; its mask must be unread. */
static bool idle_dropout(const ort_graph *graph, const ort_node *node)
{
    if (node->output_count > 1 && node->outputs[1] != ORT_ID_NONE) {
        const ort_graph_value *mask = graph->values.data[node->outputs[1]];
        if (mask->use_count > 0 || mask->is_output)
            return false;
    }
    if (node->opset < 7)
        return ort_node_int(node, "is_test", 0) != 0;
    if (node->opset >= 12 && node->input_count > 2 && node->inputs[2] != ORT_ID_NONE) {
        const ort_tensor *training = ort_edit_constant(graph, node, 2);
        return training && ort_tensor_count(training) == 1 && !ort_tensor_get_i64(training, 0);
    }
    return true;
}

static bool idle_cast(const ort_graph *graph, const ort_node *node)
{
    const ort_graph_value *in = ort_graph_value_at(graph, node->inputs[0]);
    return in && in->fact.type.kind == ORT_TYPE_TENSOR &&
           in->fact.type.dtype != ORT_DTYPE_UNDEFINED &&
           ort_node_int(node, "to", -1) == (int64_t)in->fact.type.dtype;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    (void)err;
    ORT_EACH_NODE(c->graph, node)
    {
        bool idle = ort_edit_is(node, ONNX, "Identity") ||
                    (ort_edit_is(node, ONNX, "Dropout") && idle_dropout(c->graph, node)) ||
                    (ort_edit_is(node, ONNX, "Cast") && idle_cast(c->graph, node));
        if (!idle)
            continue;
        if (ort_edit_bypass(c->graph, node))
            ++*changes;
        else
            ort_pass_note(c, node, "it gives a graph output that no other node can give");
    }
    return ORT_OK;
}

const ort_pass ort_pass_identity = {
    .name = "identity",
    .level = 1,
    .doc = "nodes that give back their input go",
    .apply = apply,
};
