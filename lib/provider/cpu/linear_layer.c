/* linear_layer.c - a product by a constant matrix, the row that is added to it and the activation
 * after it become one Linear: tiles of the product end with them, where they would read and write
 * every row again. Level 3: the operator is ours, so it is never saved.
 */
#include "op/edit.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

/* A product of floats by one constant matrix. */
static bool is_product(const ort_graph *graph, const ort_node *node)
{
    if (!ort_edit_is(node, ONNX, "MatMul"))
        return false;
    const ort_tensor *w = ort_fact_constant(graph, node->inputs[1]);
    const ort_type *y = ort_fact_type(graph, node->outputs[0]);
    return w && w->shape.rank == 2 && y->dtype == ORT_DTYPE_FLOAT && ort_type_rank(y) >= 2;
}

/* The constant row that `node` adds to `value`; ORT_ID_NONE: it does something else. */
static ort_id row_beside(const ort_graph *graph, const ort_node *node, ort_id value)
{
    if (!ort_edit_is(node, ONNX, "Add") || node->opset < 7)
        return ORT_ID_NONE;
    const ort_type *y = ort_fact_type(graph, value);
    ort_id other = node->inputs[node->inputs[0] == value ? 1 : 0];
    const ort_tensor *row = ort_fact_constant(graph, other);
    bool fits = row && row->shape.rank == 1 && ort_dim_is(y->dim[y->rank - 1], row->shape.dim[0]);
    return fits ? other : ORT_ID_NONE;
}

/* An activation as fused operators name it; NULL: another operator. */
static const char *activation_of(const ort_node *node)
{
    if (ort_edit_is_any(node, "Gelu|ms.Gelu")) {
        const ort_attr *form = ort_node_attr_of(node, "approximate", ORT_ATTR_STRING);
        return form && !strcmp(form->s.ptr, "tanh") ? NULL : "Gelu";
    }
    return ort_edit_is_any(node, "Relu|Tanh|Sigmoid") ? node->op_type : NULL;
}

/* The node and its only reader become one Linear that adds the row and has the activation. */
static ort_status take_over(ort_pass_context *c, ort_node *node, ort_node *next, ort_id row,
                            const char *activation, ort_error *err)
{
    const ort_id inputs[3] = {node->inputs[0], node->inputs[1],
                              row == ORT_ID_NONE ? ort_edit_input(node, 2) : row};
    ort_attr set = ort_attr_string("activation", activation ? activation : "");
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "Linear", .inputs = inputs,
                          .input_count = 3, .set = &set, .set_count = activation ? 1 : 0};
    return ort_edit_replace(c->graph, node, next, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        bool linear = ort_edit_is(node, ORT_INTERNAL, "Linear");
        if ((!linear && !is_product(c->graph, node)) || ort_node_attr(node, "activation"))
            continue;
        ort_node *next = ort_edit_only_reader(c->graph, node->outputs[0]);
        ort_id row = next && !linear ? row_beside(c->graph, next, node->outputs[0]) : ORT_ID_NONE;
        const char *activation = next ? activation_of(next) : NULL;
        if (row == ORT_ID_NONE && !activation)
            continue;
        ORT_TRY(take_over(c, node, next, row, activation, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_linear_layer = {
    .name = "linear_layer",
    .level = 3,
    .doc = "a product, the row added to it and its activation become one (cpu only)",
    .apply = apply,
};
