/* pad_conv.c - zeros that Pad puts around the space of a Conv become the pads of the Conv: the
 * padded copy of the input is never made. */
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/pass.h"

/* The amounts of a Pad of zeros as [begin..., end...] over all axes; false when it is anything
 * else. */
static bool zero_pads(const ort_graph *graph, const ort_node *pad, int rank, int64_t *pads)
{
    size_t count = 0;
    if (strcmp(ort_node_string(pad, "mode", "constant"), "constant"))
        return false;
    if (pad->opset < 11) {
        const int64_t *attr = ort_node_ints(pad, "pads", &count);
        if (count != (size_t)rank * 2 || ort_node_float(pad, "value", 0.0f) != 0.0f)
            return false;
        memcpy(pads, attr, count * sizeof *pads);
        return true;
    }
    const ort_tensor *amounts = ort_edit_constant(graph, pad, 1);
    if (!amounts || ort_tensor_count(amounts) != (int64_t)rank * 2 ||
        (pad->input_count > 3 && pad->inputs[3] != ORT_ID_NONE))
        return false;
    if (pad->input_count > 2 && pad->inputs[2] != ORT_ID_NONE) {
        const ort_tensor *value = ort_edit_constant(graph, pad, 2);
        if (!value || ort_tensor_count(value) != 1 || ort_tensor_get_f64(value, 0) != 0)
            return false;
    }
    for (int i = 0; i < 2 * rank; i++)
        pads[i] = ort_tensor_get_i64(amounts, i);
    return true;
}

/* The Conv's own pads plus those of the Pad; false when channels or batch are padded, or cut. */
static bool sum_pads(const ort_node *conv, const int64_t *pads, int rank, int64_t *sum)
{
    size_t count = 0;
    const int64_t *own = ort_node_ints(conv, "pads", &count);
    int space = rank - 2;
    if (strcmp(ort_node_string(conv, "auto_pad", "NOTSET"), "NOTSET") ||
        (count && count != (size_t)space * 2))
        return false;
    for (int i = 0; i < 2 * rank; i++) {
        int axis = i % rank;
        if (pads[i] < 0 || pads[i] > INT32_MAX || (axis < 2 && pads[i]))
            return false;
        if (axis >= 2) {
            int at = (i / rank) * space + axis - 2;
            sum[at] = pads[i] + (count ? own[at] : 0);
        }
    }
    return true;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *pad;
    ORT_EACH_NODE(c->graph, pad)
    {
        int64_t pads[2 * ORT_MAX_RANK], sum[2 * ORT_MAX_RANK];
        if (!ort_edit_is(pad, ONNX, "Pad"))
            continue;
        ort_node *conv = ort_edit_only_reader(c->graph, pad->outputs[0]);
        const ort_graph_value *in = ort_graph_value_at(c->graph, pad->inputs[0]);
        int rank = in ? in->fact.type.rank : -1;
        if (!conv || !ort_edit_is(conv, ONNX, "Conv") || conv->inputs[0] != pad->outputs[0] ||
            rank < 3)
            continue;
        if (!zero_pads(c->graph, pad, rank, pads) || !sum_pads(conv, pads, rank, sum)) {
            ort_pass_note(c, pad, "it does more than put constant zeros around the space");
            continue;
        }
        ort_attr attr = {.name = "pads", .type = ORT_ATTR_INTS, .ints = sum,
                         .count = (size_t)(rank - 2) * 2};
        ort_node_set_input(c->graph, conv, 0, pad->inputs[0]);
        conv->origin = ort_edit_origin(c->graph, pad, conv);
        ort_graph_remove_node(c->graph, pad);
        ORT_TRY(ort_edit_set_attr(c->graph, conv, &attr, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_pad_conv = {
    .name = "pad_conv",
    .level = 1,
    .doc = "zeros of a Pad become pads of the Conv after it",
    .apply = apply,
};
