/* not_where.c - Where of a negated condition picks from its branches the other way round. */
#include "base/error.h"
#include "op/edit.h"
#include "pass/pass.h"

/* A move between the two: the condition is negated before it takes the form that Where reads. */
static void note_move(const ort_pass_context *c, const ort_node *where)
{
    if (!c->near_misses || !ort_edit_is(where, ONNX, "Where"))
        return;
    const ort_node *move = ort_edit_producer(c->graph, where->inputs[0]);
    if (move && move->input_count > 0 &&
        ort_edit_is(ort_edit_producer(c->graph, move->inputs[0]), ONNX, "Not"))
        ort_pass_note(c, where, "%s stands between it and the Not", move->op_type);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        const ort_node *negation = ort_edit_is(node, ONNX, "Where")
                                       ? ort_edit_producer(c->graph, node->inputs[0])
                                       : NULL;
        if (!ort_edit_is(negation, ONNX, "Not")) {
            note_move(c, node);
            continue;
        }
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
