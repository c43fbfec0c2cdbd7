/* default_inputs.c - optional inputs are removed where they say the same as their absence.
 *
 *     initial_h, initial_c of RNN, GRU, LSTM    zeros, of whatever shape
 *     constant_value of Pad                     0
 *     target_type of CastLike                   a type that is known: Cast
 *
 * Exporters build zero states from the batch size at run time, with Shape, Gather, ConstantOfShape
 * and operators that move the zeros about. All of these then go, too.
 */
#include <string.h>

#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

enum { DEPTH_MAX = 16, CONCAT_MAX = 8 };

static bool is_move(const ort_node *node)
{
    return ort_node_has_trait(node, ORT_TRAITS_MOVE) || ort_edit_is(node, ONNX, "Cast");
}

/* Is every element of the value zero, however many there are? */
static bool is_zeros(const ort_graph *graph, ort_id id, int depth)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    if (!value || value->is_input || depth > DEPTH_MAX)
        return false;
    if (value->fact.value)
        return ort_constant_is_all(value->fact.value, 0);
    const ort_node *node = ort_edit_producer(graph, id);
    if (!node || !node->input_count)
        return false;
    if (ort_edit_is(node, ONNX, "ConstantOfShape")) {
        const ort_tensor *fill = ort_node_tensor(node, "value");
        return !fill || ort_constant_is_all(fill, 0);
    }
    if (ort_edit_is(node, ONNX, "Concat")) {
        bool all = node->input_count <= CONCAT_MAX;
        for (int i = 0; all && i < node->input_count; i++)
            all = is_zeros(graph, node->inputs[i], depth + 4);
        return all;
    }
    return is_move(node) && is_zeros(graph, node->inputs[0], depth + 1);
}

static const struct {
    const char *op_type;
    int slot, since;
} rules[] = {
    {"LSTM", 5, 1}, {"LSTM", 6, 1}, {"GRU", 5, 1}, {"RNN", 5, 1}, {"Pad", 2, 11},
};

/* What the caller gives, or a constant that says something else, is no near-miss. */
static void note(const ort_pass_context *c, const ort_node *node, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(c->graph, id);
    if (value && !value->is_input && !value->fact.value && ort_edit_producer(c->graph, id))
        ort_pass_note(c, node, "'%s' isn't known to be zeros alone", value->name);
}

static bool drop(const ort_pass_context *c, ort_node *node, int slot)
{
    ort_graph *graph = c->graph;
    if (slot >= node->input_count)
        return false;
    if (!is_zeros(graph, node->inputs[slot], 0)) {
        note(c, node, node->inputs[slot]);
        return false;
    }
    ort_node_set_input(graph, node, slot, ORT_ID_NONE);
    while (node->input_count && node->inputs[node->input_count - 1] == ORT_ID_NONE)
        node->input_count--;
    return true;
}

/* A constant that isn't larger in the other type: the Cast will be folded. */
static bool folds(const ort_pass_context *c, const ort_node *node, ort_dtype dtype)
{
    const ort_tensor *t = ort_edit_constant(c->graph, node, 0);
    return t && ort_dtype_bits(dtype) <= ort_dtype_bits(t->dtype);
}

/* Without "Like" and its second input a message is shorter, with the attribute `to` it is longer:
 * in a file the short one is written, unless something else goes with that input. */
static bool lengthens(const ort_pass_context *c, const ort_graph_value *like)
{
    enum { TO_BYTES = 11, LIKE_BYTES = 4, INPUT_BYTES = 2 };
    bool goes = like->use_count == 1 && !like->is_input && !like->is_output &&
                like->outer == ORT_ID_NONE;
    return c->portable && !goes && strlen(like->name) + LIKE_BYTES + INPUT_BYTES < TO_BYTES;
}

static ort_status cast_to(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    const ort_graph_value *like = ort_graph_value_at(c->graph, node->inputs[1]);
    ort_dtype dtype = like ? like->fact.type.dtype : ORT_DTYPE_UNDEFINED;
    ort_attr to = ort_attr_int("to", dtype);
    ort_node_spec spec = {.op_type = "Cast", .inputs = node->inputs, .input_count = 1,
                          .attrs = node->attrs, .attr_count = node->attr_count, .set = &to,
                          .set_count = 1, .opset = node->opset};
    if (dtype == ORT_DTYPE_UNDEFINED || (lengthens(c, like) && !folds(c, node, dtype)))
        return ORT_OK;
    ++*changes;
    return ort_edit_replace(c->graph, node, NULL, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
            if (ort_edit_is(node, ONNX, rules[i].op_type) && node->opset >= rules[i].since)
                *changes += drop(c, node, rules[i].slot);
        if (ort_edit_is(node, ONNX, "CastLike"))
            ORT_TRY(cast_to(c, node, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_default_inputs = {
    .name = "default_inputs",
    .level = 1,
    .exact = true,
    .doc = "optional inputs that hold what their absence means go",
    .apply = apply,
};
