/* blocked_affine.c - what follows a convolution of the blocked layout, or a BlockedAffine, joins
 * it.
 *
 * The slopes of a PRelu behind a convolution without another activation become its attribute
 * `slopes`; behind a BlockedAffine they join its own, and so does an activation. A Mul by one
 * number and an Add of one number behind a convolution become its attributes `scale` and `shift`:
 * y = activation(sum) * scale + shift. Some networks have such learnable numbers behind every
 * activation; as operators they would read and write every plane twice more. Each step rounds as
 * the operators do.
 */
#include <string.h>

#include "op/edit.h"
#include "op/shared/fused.h"
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

static bool is_affine(const ort_node *node)
{
    return ort_edit_is(node, ORT_INTERNAL, "BlockedAffine");
}

/* A PRelu that stands alone so far. */
static bool only_leaks(const ort_node *node)
{
    return is_affine(node) && ort_node_attr(node, "slopes") && !ort_node_attr(node, "scales") &&
           !ort_node_attr(node, "shifts") && !ort_node_attr(node, "activation");
}

/* Nothing of a BlockedConv or BlockedAffine but sums so far. */
static bool gives_sums(const ort_node *node)
{
    const ort_attr *name = ort_node_attr_of(node, "activation", ORT_ATTR_STRING);
    return (!name || name->s.ptr[0] == '\0') && !ort_node_attr(node, "slopes") &&
           !ort_node_attr(node, "scale") && !ort_node_attr(node, "shift");
}

/* An activation without parameters of its own that an epilogue knows. */
static bool activates(const ort_node *node)
{
    ort_epilogue e = ort_epilogue_none();
    return node && node->op && !strcmp(node->op->domain, ONNX) && node->input_count == 1 &&
           node->attr_count == 0 && !ort_edit_is(node, ONNX, "Identity") &&
           ort_epilogue_activate(&e, node->op_type, NULL, 0);
}

/* What `next`, the only reader, adds to `node`; false: it stays. */
static bool joins(const ort_node *node, const ort_node *next, ort_attr *set)
{
    if (!next || !gives_sums(node))
        return false;
    if (only_leaks(next))
        *set = *ort_node_attr(next, "slopes");
    else if (is_affine(node) && activates(next))
        *set = ort_attr_string("activation", next->op_type);
    else
        return false;
    return true;
}

static ort_status join(ort_pass_context *c, ort_node *node, ort_node *next, const ort_attr *set,
                       ort_error *err)
{
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = node->op_type,
                          .inputs = node->inputs, .input_count = node->input_count,
                          .attrs = node->attrs, .attr_count = node->attr_count, .set = set,
                          .set_count = 1};
    return ort_edit_replace(c->graph, node, next, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        float number;
        ort_attr set;
        bool conv = ort_edit_is(node, ORT_INTERNAL, "BlockedConv");
        if (!conv && !is_affine(node))
            continue;
        ort_node *next = ort_edit_only_reader(c->graph, node->outputs[0]);
        if (joins(node, next, &set)) {
            ORT_TRY(join(c, node, next, &set, err));
            ++*changes;
            continue;
        }
        if (!conv || ort_node_attr(node, "shift"))
            continue;
        bool scale = ort_edit_is(next, ONNX, "Mul") && !ort_node_attr(node, "scale");
        if ((!scale && !ort_edit_is(next, ONNX, "Add")) ||
            !number_beside(c->graph, next, node->outputs[0], &number))
            continue;
        set = ort_attr_float(scale ? "scale" : "shift", (double)number);
        ORT_TRY(join(c, node, next, &set, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_blocked_affine = {
    .name = "blocked_affine",
    .level = 3,
    .doc = "slopes, numbers and activations behind blocked operators join them (cpu only)",
    .apply = apply,
};
