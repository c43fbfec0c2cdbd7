/* not_where.c - Where of a negated condition picks from its branches the other way round. */
#include "base/error.h"
#include "op/edit.h"
#include "pass/pass.h"

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    (void)err;
    ORT_EACH_NODE(c->graph, node)
    {
        const ort_node *negation = ort_edit_is(node, ONNX, "Where")
                                       ? ort_edit_producer(c->graph, node->inputs[0])
                                       : NULL;
        if (!ort_edit_is(negation, ONNX, "Not"))
            continue;
        ort_id first = node->inputs[1];
        ort_node_set_input(c->graph, node, 0, negation->inputs[0]);
        ort_node_set_input(c->graph, node, 1, node->inputs[2]);
        ort_node_set_input(c->graph, node, 2, first);
        node->origin = ort_edit_origin(c->graph, negation, node);
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_not_where = {
    .name = "not_where",
    .level = 1,
    .exact = true,
    .doc = "Where of a negated condition swaps its branches",
    .apply = apply,
};
