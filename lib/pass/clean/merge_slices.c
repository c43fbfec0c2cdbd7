/* merge_slices.c - a Slice of a Slice along other axes is one Slice.
 *
 *     x[::2, :] then [:, 1::2]     x[::2, 1::2]
 *
 * Starts, ends, axes and steps must be constant, as inputs (opset 10 on); a missing list of axes is
 * the first ones. The first Slice stays when others read it.
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/slice_cut.h"

/* Both cuts in one; false when they share an axis. */
static bool join(ort_slice_cut *a, const ort_slice_cut *b)
{
    for (int i = 0; i < b->count; i++)
        for (int k = 0; k < a->count; k++)
            if (a->axis[k] == b->axis[i])
                return false;
    for (int i = 0; i < b->count; i++) {
        if (a->count >= ORT_MAX_RANK)
            return false;
        a->start[a->count] = b->start[i];
        a->end[a->count] = b->end[i];
        a->axis[a->count] = b->axis[i];
        a->step[a->count++] = b->step[i];
    }
    return true;
}

static ort_status write_cut(ort_pass_context *c, const ort_node *first, ort_node *second,
                            const ort_slice_cut *both, ort_error *err)
{
    const int64_t *const lists[4] = {both->start, both->end, both->axis, both->step};
    static const char *const names[4] = {"starts", "ends", "axes", "steps"};
    ort_id inputs[5] = {first->inputs[0]};
    for (int i = 0; i < 4; i++)
        ORT_TRY(ort_constant_named(c->graph, names[i], lists[i], both->count, &inputs[i + 1], err));
    ort_node_spec spec = {.op_type = "Slice", .inputs = inputs, .input_count = 5,
                          .opset = second->opset,
                          .origin = ort_edit_origin(c->graph, first, second)};
    return ort_edit_replace(c->graph, second, NULL, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_slice_cut a, b;
        const ort_node *first = node->input_count
                                    ? ort_edit_producer(c->graph, node->inputs[0])
                                    : NULL;
        if (!ort_slice_cut_read(c->graph, node, &b) || !first ||
            !ort_slice_cut_read(c->graph, first, &a))
            continue;
        if (!join(&a, &b)) {
            ort_pass_note(c, node, "the slice before it cuts the same axis");
            continue;
        }
        ORT_TRY(write_cut(c, first, node, &a, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_merge_slices = {
    .name = "merge_slices",
    .level = 1,
    .exact = true,
    .doc = "slices in a row along different axes become one",
    .apply = apply,
};
