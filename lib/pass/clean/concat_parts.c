/* concat_parts.c - what is joined and taken apart again, or the other way round.
 *
 *     Split of a Concat into the same parts      the parts
 *     Slice of a Concat that is one part         the part
 *     Gather of one index inside of a part       Squeeze or Gather of the part
 *     Concat of all parts of a Split             what was split
 *
 * The sizes along the axis must be known as far as the question reaches.
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"
#include "tensor/scalar.h"

/* The axis, counted from the front; -1 when the rank isn't known. */
static int axis_of(const ort_graph *graph, const ort_node *node)
{
    const ort_type *type = ort_fact_tensor(graph, node->inputs[0]);
    return type ? ort_fact_axis(node, type->rank) : -1;
}

/* Elements of value `id` along the axis, or -1. */
static int64_t length(const ort_graph *graph, ort_id id, int axis)
{
    const ort_type *type = ort_fact_tensor(graph, id);
    return type && axis < type->rank && ort_dim_known(type->dim[axis]) ? type->dim[axis].size : -1;
}

/* The part that holds index `at` (negative: from the end), and the index in it; -1: not known. */
static int part_at(const ort_graph *graph, const ort_node *concat, int axis, int64_t at,
                   int64_t *inside)
{
    bool back = at < 0;
    int64_t left = back ? -at : at + 1; /* the so-manieth from that end */
    for (int i = 0; i < concat->input_count; i++) {
        int k = back ? concat->input_count - 1 - i : i;
        int64_t have = length(graph, concat->inputs[k], axis);
        if (have < 0)
            return -1;
        if (left <= have) {
            *inside = back ? have - left : left - 1;
            return k;
        }
        left -= have;
    }
    return -1;
}

static ort_node *concat_before(const ort_graph *graph, const ort_node *node)
{
    ort_node *producer = ort_edit_producer(graph, node->inputs[0]);
    return ort_edit_is(producer, ONNX, "Concat") ? producer : NULL;
}

static bool pass_through(ort_graph *graph, ort_node *node, int slot, ort_id part)
{
    ort_id out = node->outputs[slot];
    if (out == ORT_ID_NONE)
        return true;
    if (graph->values.data[out]->is_output)
        return false;
    ort_graph_replace_uses(graph, out, part);
    return true;
}

/* ---- Gather */

static ort_status squeeze(ort_pass_context *c, ort_node *node, ort_id part, int axis,
                          ort_error *err)
{
    const int64_t list[1] = {axis};
    ort_id inputs[2] = {part, ORT_ID_NONE};
    ort_attr axes = ort_attr_ints("axes", list, 1);
    bool listed = ort_model_opset(c->graph->model, ONNX) >= 13;
    ort_node_spec spec = {.op_type = "Squeeze", .inputs = inputs, .input_count = 2, .set = &axes,
                          .set_count = listed ? 0 : 1};
    if (listed)
        ORT_TRY(ort_constant_named(c->graph, "axes", list, 1, &inputs[1], err));
    return ort_edit_replace(c->graph, node, NULL, &spec, err);
}

static ort_status gather(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    const ort_node *concat = concat_before(graph, node);
    const ort_tensor *index = ort_edit_constant(graph, node, 1);
    int axis = concat ? axis_of(graph, concat) : -1;
    int64_t at, inside;
    if (axis < 0 || axis != axis_of(graph, node) || !ort_tensor_one_i64(index, &at) ||
        index->shape.rank > 0)
        return ORT_OK;
    int k = part_at(graph, concat, axis, at, &inside);
    if (k < 0) {
        ort_pass_note(c, node, "the sizes of what is joined aren't known");
        return ORT_OK;
    }
    if (length(graph, concat->inputs[k], axis) == 1) {
        ++*changes;
        return squeeze(c, node, concat->inputs[k], axis, err);
    }
    if (ort_edit_only_reader(graph, concat->outputs[0]) != node)
        return ORT_OK; /* the Concat would stay */
    ort_tensor t = {.dtype = ORT_DTYPE_INT64, .data = &inside};
    ort_id id;
    ORT_TRY(ort_edit_add_constant(graph, "index", &t, &id, err));
    ort_node_set_input(graph, node, 0, concat->inputs[k]);
    ort_node_set_input(graph, node, 1, id);
    ++*changes;
    return ort_node_infer(graph, node, err);
}

/* ---- Slice and Split */

/* The only element of a constant list, as an input or (opset 1) an attribute. */
static bool only_element(const ort_graph *graph, const ort_node *node, int slot, const char *name,
                         int64_t *out)
{
    int64_t list[ORT_MAX_RANK];
    bool attribute = node->opset < 10;
    bool one = ort_fact_ints(graph, node, attribute ? name : NULL, attribute ? 0 : slot, list) == 1;
    *out = one ? list[0] : 0;
    return one;
}

static ort_status slice(ort_pass_context *c, ort_node *node, int *changes)
{
    ort_graph *graph = c->graph;
    const ort_node *concat = concat_before(graph, node);
    int axis = concat ? axis_of(graph, concat) : -1;
    int64_t start, end, on, step = 1, inside, at = 0;
    bool stepped = node->opset >= 10 && ort_edit_input(node, 4) != ORT_ID_NONE;
    if (axis < 0 || !only_element(graph, node, 1, "starts", &start) ||
        !only_element(graph, node, 2, "ends", &end) ||
        !only_element(graph, node, 3, "axes", &on) ||
        (stepped && !only_element(graph, node, 4, "", &step)) || step != 1)
        return ORT_OK;
    on += on < 0 ? ort_fact_type(graph, node->inputs[0])->rank : 0;
    int k = on == axis ? part_at(graph, concat, axis, start, &inside) : -1;
    if (k < 0 || inside != 0)
        return ORT_OK;
    /* It ends where the part ends: counted from the same end as the start, or beyond everything. */
    int64_t size = length(graph, concat->inputs[k], axis);
    bool last = k == concat->input_count - 1;
    if ((end < 0) == (start < 0) && end != INT64_MAX)
        at = end - start;
    bool to_end = last && (end == INT64_MAX ||
                           (length(graph, concat->outputs[0], axis) >= 0 &&
                            end >= length(graph, concat->outputs[0], axis)));
    if ((at != size && !to_end) || size <= 0)
        return ORT_OK;
    if (pass_through(graph, node, 0, concat->inputs[k])) {
        ort_graph_remove_node(graph, node);
        ++*changes;
    }
    return ORT_OK;
}

static ort_status split(ort_pass_context *c, ort_node *node, int *changes)
{
    ort_graph *graph = c->graph;
    const ort_node *concat = concat_before(graph, node);
    int axis = concat ? axis_of(graph, concat) : -1;
    if (axis < 0 || axis != axis_of(graph, node) || node->output_count != concat->input_count)
        return ORT_OK;
    for (int i = 0; i < node->output_count; i++) {
        ort_id out = node->outputs[i];
        int64_t size = length(graph, concat->inputs[i], axis);
        if (size < 0 || out == ORT_ID_NONE || graph->values.data[out]->is_output ||
            length(graph, out, axis) != size) {
            ort_pass_note(c, node, "its parts aren't those that were joined");
            return ORT_OK;
        }
    }
    for (int i = 0; i < node->output_count; i++)
        (void)pass_through(graph, node, i, concat->inputs[i]);
    ort_graph_remove_node(graph, node);
    ++*changes;
    return ORT_OK;
}

/* ---- Concat of a Split */

static ort_status concat(ort_pass_context *c, ort_node *node, int *changes)
{
    ort_graph *graph = c->graph;
    const ort_node *whole = ort_edit_producer(graph, node->inputs[0]);
    int axis = axis_of(graph, node);
    if (!ort_edit_is(whole, ONNX, "Split") || node->input_count < 2 || axis < 0 ||
        axis != axis_of(graph, whole) || whole->output_count != node->input_count)
        return ORT_OK;
    for (int i = 0; i < node->input_count; i++)
        if (whole->outputs[i] != node->inputs[i])
            return ORT_OK;
    if (pass_through(graph, node, 0, whole->inputs[0])) {
        ort_graph_remove_node(graph, node);
        ++*changes;
    }
    return ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (!node->input_count || node->inputs[0] == ORT_ID_NONE)
            continue;
        if (ort_edit_is(node, ONNX, "Gather"))
            ORT_TRY(gather(c, node, changes, err));
        else if (ort_edit_is(node, ONNX, "Slice"))
            ORT_TRY(slice(c, node, changes));
        else if (ort_edit_is(node, ONNX, "Split"))
            ORT_TRY(split(c, node, changes));
        else if (ort_edit_is(node, ONNX, "Concat"))
            ORT_TRY(concat(c, node, changes));
    }
    return ORT_OK;
}

const ort_pass ort_pass_concat_parts = {
    .name = "concat_parts",
    .level = 1,
    .exact = true,
    .doc = "what is joined and taken apart again, or the other way round, goes",
    .apply = apply,
};
