/* shape_source.c - the shape of an elementwise result is that of its input: Shape and Size read the
 * latter where nobody else reads the result, which then isn't computed. */
#include "op/edit.h"
#include "pass/pass.h"

static bool keeps_shape(const ort_node *node)
{
    return node && node->op && (node->op->traits & ORT_TRAIT_ELEMENTWISE) &&
           node->input_count == 1 && node->output_count == 1 && !node->body_count;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    (void)err;
    ORT_EACH_NODE(c->graph, node)
    {
        if (!ort_edit_is(node, ONNX, "Shape") && !ort_edit_is(node, ONNX, "Size"))
            continue;
        const ort_node *source = ort_edit_producer(c->graph, node->inputs[0]);
        if (!keeps_shape(source) || ort_edit_only_reader(c->graph, source->outputs[0]) != node)
            continue;
        ort_node_set_input(c->graph, node, 0, source->inputs[0]);
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_shape_source = {
    .name = "shape_source",
    .level = 1,
    .exact = true,
    .doc = "Shape of an elementwise result reads the input of that",
    .apply = apply,
};
