/* space_to_depth.c - every other row and column of a picture, joined as channels (the focus of
 * detectors), is SpaceToDepth.
 *
 *     Concat(x[:, :, 0::2, 0::2], x[:, :, 1::2, 0::2], x[:, :, 0::2, 1::2], x[:, :, 1::2, 1::2])
 *     Gather(SpaceToDepth(x, 2), order of the channels along axis 1)
 *
 * Without the Gather where the pieces come in SpaceToDepth's own order, row by row. Pieces of equal
 * size, which Concat asks for, mean an even height and width.
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/facts/slice_cut.h"

enum { BLOCK = 2, PIECES = BLOCK * BLOCK, CHANNELS_MAX = 1024 };

/* Which of the four pieces of x the Slice takes, row * 2 + column; -1: none. */
static int piece_of(const ort_graph *graph, const ort_node *slice, ort_id x)
{
    ort_slice_cut cut;
    int piece = 0, seen = 0;
    if (!slice || !ort_slice_cut_read(graph, slice, &cut) || slice->inputs[0] != x ||
        cut.count != 2)
        return -1;
    const ort_type *type = ort_fact_type(graph, x);
    for (int i = 0; i < cut.count; i++) {
        int64_t axis = cut.axis[i];
        bool to_end = cut.end[i] >= INT32_MAX ||
                      (axis >= 2 && axis < 4 && ort_dim_known(type->dim[axis]) &&
                       cut.end[i] >= type->dim[axis].size);
        if (axis < 2 || axis > 3 || cut.step[i] != BLOCK || cut.start[i] < 0 ||
            cut.start[i] >= BLOCK || !to_end)
            return -1;
        piece += (int)cut.start[i] * (axis == 2 ? BLOCK : 1);
        seen |= 1 << axis;
    }
    return type->rank == 4 && seen == (1 << 2 | 1 << 3) ? piece : -1;
}

/* order[i]: the piece that comes i-th; false when it isn't each of them once. */
static bool read_pieces(const ort_graph *graph, const ort_node *concat, int order[PIECES])
{
    int64_t axis = ort_node_attr_int(concat, "axis");
    unsigned seen = 0;
    if (concat->input_count != PIECES || (axis != 1 && axis != -3))
        return false;
    const ort_node *first = ort_edit_producer(graph, concat->inputs[0]);
    for (int i = 0; first && i < PIECES; i++) {
        const ort_node *slice = ort_edit_producer(graph, concat->inputs[i]);
        order[i] = piece_of(graph, slice, first->inputs[0]);
        if (order[i] < 0 || ort_edit_only_reader(graph, slice->outputs[0]) != concat)
            return false;
        seen |= 1u << order[i];
    }
    return seen == (1u << PIECES) - 1;
}

/* The channels of SpaceToDepth in the order of the pieces. */
static ort_status add_gather(ort_pass_context *c, const ort_node *concat, ort_id x,
                             const int *order, int64_t channels, ort_error *err)
{
    ort_id inputs[2] = {x};
    int64_t list[PIECES * CHANNELS_MAX];
    for (int64_t i = 0; i < PIECES * channels; i++)
        list[i] = order[i / channels] * channels + i % channels;
    ort_attr axis = ort_attr_int("axis", 1);
    ORT_TRY(ort_constant_list(c->graph, list, (int)(PIECES * channels), &inputs[1], err));
    ort_node_spec spec = {.domain = ONNX, .op_type = "Gather", .name = "", .inputs = inputs,
                          .input_count = 2, .outputs = concat->outputs, .output_count = 1,
                          .set = &axis, .set_count = 1, .origin = ort_edit_origin_of(concat)};
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status fuse(ort_pass_context *c, ort_node *concat, const int *order, int *changes,
                       ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_id x = ort_edit_producer(graph, concat->inputs[0])->inputs[0], output = concat->outputs[0];
    const ort_type *type = ort_fact_type(graph, x);
    ort_dim channels = type->dim[1];
    bool sorted = order[0] == 0 && order[1] == 1 && order[2] == 2;
    if (type->dtype != ORT_DTYPE_FLOAT && type->dtype != ORT_DTYPE_DOUBLE) {
        ort_pass_note(c, concat, "SpaceToDepth would fit: onnxruntime has it for floats alone");
        return ORT_OK;
    }
    if (!sorted && (!ort_dim_known(channels) || channels.size > CHANNELS_MAX)) {
        ort_pass_note(c, concat, "SpaceToDepth would fit: the number of channels isn't known");
        return ORT_OK;
    }
    if (!sorted)
        output = ort_graph_add_value(graph, graph->values.data[output]->name);
    if (output == ORT_ID_NONE)
        return ort_error_memory(err, sizeof output);
    ort_attr block = ort_attr_int("blocksize", BLOCK);
    ort_node_spec spec = {.op_type = "SpaceToDepth", .inputs = &x, .input_count = 1,
                          .outputs = &output, .output_count = 1, .set = &block, .set_count = 1};
    ORT_TRY(ort_edit_replace(graph, concat, NULL, &spec, err));
    ++*changes;
    return sorted ? ORT_OK : add_gather(c, concat, output, order, channels.size, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    size_t count = c->graph->order.count;
    for (size_t i = 0; i < count; i++) {
        ort_node *node = c->graph->nodes.data[c->graph->order.data[i]];
        int order[PIECES];
        if (ort_edit_is(node, ONNX, "Concat") && read_pieces(c->graph, node, order))
            ORT_TRY(fuse(c, node, order, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_space_to_depth = {
    .name = "space_to_depth",
    .level = 1,
    .exact = true,
    .doc = "every other row and column, joined as channels, is SpaceToDepth",
    .apply = apply,
};
