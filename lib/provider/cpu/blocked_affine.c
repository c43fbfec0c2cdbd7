/* blocked_affine.c - a Mul by one number and an Add of one number behind a convolution of the
 * blocked layout become the attributes `scale` and `shift` of that convolution: y = activation(sum)
 * * scale + shift. Some networks have such learnable numbers behind every activation; as operators
 * they would read and write every plane twice more. Each step rounds as the operators do.
 */
#include <string.h>

#include "op/edit.h"
#include "pass/pass.h"
#include "tensor/scalar.h"

/* The number that `node` multiplies or adds to `value`; false: it does something else. */
static bool number_beside(const ort_graph *graph, const ort_node *node, ort_id value, float *number)
{
    if (node->input_count != 2 || node->opset < 7 || node->inputs[0] == node->inputs[1])
        return false;
    const ort_tensor *t = ort_edit_constant(graph, node, node->inputs[0] == value ? 1 : 0);
    return t && t->shape.rank <= 1 && ort_tensor_one_f32(t, number);
}

/* The convolution takes over `next`, its only reader, and gives its output. */
static ort_status take_over(ort_pass_context *c, ort_node *conv, ort_node *next, const char *name,
                            float number, ort_error *err)
{
    ort_attr set = ort_attr_float(name, (double)number);
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "BlockedConv",
                          .inputs = conv->inputs, .input_count = conv->input_count,
                          .attrs = conv->attrs, .attr_count = conv->attr_count, .set = &set,
                          .set_count = 1};
    return ort_edit_replace(c->graph, conv, next, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        float number;
        if (!ort_edit_is(node, ORT_INTERNAL, "BlockedConv") || ort_node_attr(node, "shift"))
            continue;
        ort_node *next = ort_edit_only_reader(c->graph, node->outputs[0]);
        bool scale = ort_edit_is(next, ONNX, "Mul") && !ort_node_attr(node, "scale");
        if ((!scale && !ort_edit_is(next, ONNX, "Add")) ||
            !number_beside(c->graph, next, node->outputs[0], &number))
            continue;
        ORT_TRY(take_over(c, node, next, scale ? "scale" : "shift", number, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_blocked_affine = {
    .name = "blocked_affine",
    .level = 3,
    .doc = "numbers multiplied and added behind a blocked convolution join it (cpu only)",
    .apply = apply,
};
