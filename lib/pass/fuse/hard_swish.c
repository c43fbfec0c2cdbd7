/* hard_swish.c - x * clip(x + 3, 0, 6) / 6, as exporters spell it before opset 14, becomes
 * HardSwish, or HardSigmoid and Mul where the opset has no HardSwish.
 *
 *     x -> Add 3 -> Clip 0 6 -> Mul x -> Div 6        and        ... Clip 0 6 -> Div 6 -> Mul x
 */
#include "base/error.h"
#include "op/edit.h"
#include "pass/fuse/activation.h"
#include "tensor/scalar.h"

typedef struct chain {
    ort_node *nodes[4]; /* from x down; the last gives the result */
    ort_id x;
} chain;

static bool is_scalar(const ort_graph *graph, const ort_node *node, int slot, double number)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    double own;
    return ort_tensor_one_f64(t, &own) && t->shape.rank <= 1 && t->dtype == ORT_DTYPE_FLOAT &&
           own == number;
}

/* Is value `id`, read by `reader` alone, clip(x + 3, 0, 6)? */
static bool match_gate(const ort_pass_context *c, ort_id id, const ort_node *reader, chain *found)
{
    const ort_graph *graph = c->graph;
    ort_fused_activation bounds;
    ort_node *clip = ort_edit_producer(graph, id), *add;
    if (!ort_edit_is(clip, ONNX, "Clip") || !ort_activation_match(c, clip, &bounds) ||
        bounds.params[0] != 0.0f || bounds.params[1] != 6.0f)
        return false;
    add = ort_edit_producer(graph, clip->inputs[0]);
    if (!ort_edit_is(add, ONNX, "Add"))
        return false;
    int slot = is_scalar(graph, add, 0, 3.0) ? 0 : is_scalar(graph, add, 1, 3.0) ? 1 : -1;
    if (slot < 0)
        return false;
    if (ort_edit_only_reader(graph, id) != reader ||
        ort_edit_only_reader(graph, clip->inputs[0]) != clip) {
        ort_pass_note(c, reader, "the sum or the Clip has another reader");
        return false;
    }
    found->x = add->inputs[1 - slot];
    found->nodes[0] = add;
    found->nodes[1] = clip;
    return true;
}

/* mul(x, gate) in either order. */
static bool match_product(const ort_pass_context *c, ort_node *mul, chain *found)
{
    for (int slot = 0; slot < 2; slot++)
        if (match_gate(c, mul->inputs[slot], mul, found) && mul->inputs[1 - slot] == found->x)
            return true;
    return false;
}

static bool match(const ort_pass_context *c, ort_node *last, chain *found)
{
    const ort_graph *graph = c->graph;
    found->nodes[3] = last;
    if (ort_edit_is(last, ONNX, "Div") && is_scalar(graph, last, 1, 6.0)) {
        found->nodes[2] = ort_edit_producer(graph, last->inputs[0]);
        return ort_edit_is(found->nodes[2], ONNX, "Mul") &&
               ort_edit_only_reader(graph, last->inputs[0]) == last &&
               match_product(c, found->nodes[2], found);
    }
    for (int slot = 0; ort_edit_is(last, ONNX, "Mul") && slot < 2; slot++) {
        ort_node *div = found->nodes[2] = ort_edit_producer(graph, last->inputs[slot]);
        if (ort_edit_is(div, ONNX, "Div") && is_scalar(graph, div, 1, 6.0) &&
            ort_edit_only_reader(graph, last->inputs[slot]) == last &&
            match_gate(c, div->inputs[0], div, found) && last->inputs[1 - slot] == found->x)
            return true;
    }
    return false;
}

static ort_status add_hard_sigmoid(ort_graph *graph, const ort_node_spec *like, ort_id y,
                                   ort_error *err)
{
    ort_attr alpha = {.name = "alpha", .type = ORT_ATTR_FLOAT, .f = 1.0f / 6.0f};
    ort_attr beta = {.name = "beta", .type = ORT_ATTR_FLOAT, .f = 0.5f};
    ort_id gate = ort_graph_add_value(graph, ""), inputs[2] = {like->inputs[0], gate};
    ort_node_spec first = *like, second = *like;
    ort_node *node = NULL;
    if (gate == ORT_ID_NONE)
        return ort_error_memory(err, sizeof(ort_graph_value));
    first.op_type = "HardSigmoid";
    first.outputs = &gate;
    ORT_TRY(ort_edit_add_node(graph, &first, &node, err));
    ORT_TRY(ort_node_set_attr(graph, node, &alpha, err));
    ORT_TRY(ort_node_set_attr(graph, node, &beta, err));
    second.op_type = "Mul";
    second.name = "";
    second.inputs = inputs;
    second.input_count = 2;
    second.outputs = &y;
    return ort_edit_add_node(graph, &second, NULL, err);
}

static ort_status replace(ort_graph *graph, const chain *found, ort_error *err)
{
    ort_id x = found->x, y = found->nodes[3]->outputs[0];
    int opset = found->nodes[3]->opset;
    ort_node_spec spec = {.domain = ONNX,
                          .op_type = "HardSwish",
                          .name = found->nodes[3]->name,
                          .inputs = &x,
                          .input_count = 1,
                          .outputs = &y,
                          .output_count = 1,
                          .origin = ort_edit_origin(graph, found->nodes[0], found->nodes[3])};
    for (int i = 3; i >= 0; i--)
        ort_graph_remove_node(graph, found->nodes[i]);
    return opset >= 14 ? ort_edit_add_node(graph, &spec, NULL, err)
                       : add_hard_sigmoid(graph, &spec, y, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        chain found = {{0}, ORT_ID_NONE};
        if (!node->op || node->input_count != 2 || !match(c, node, &found))
            continue;
        ORT_TRY(replace(c->graph, &found, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_hard_swish = {.name = "hard_swish",
                                      .level = 2,
                                      .doc = "x * clip(x + 3, 0, 6) / 6 becomes HardSwish",
                                      .apply = apply};
