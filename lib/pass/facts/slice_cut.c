/* slice_cut.c - reads the bounds of a Slice. */
#include "pass/facts/slice_cut.h"

#include "pass/facts/facts.h"

/* Input `slot` as `count` numbers; an absent one leaves them what they are. */
static bool read_list(const ort_graph *graph, const ort_node *node, int slot, int count,
                      int64_t *list)
{
    int64_t own[ORT_MAX_RANK];
    if (ort_edit_input(node, slot) == ORT_ID_NONE)
        return slot > 2;
    if (ort_fact_ints(graph, node, NULL, slot, own) != count)
        return false;
    memcpy(list, own, (size_t)count * sizeof *list);
    return true;
}

bool ort_slice_cut_read(const ort_graph *graph, const ort_node *node, ort_slice_cut *c)
{
    if (!ort_edit_is(node, ONNX, "Slice") || node->opset < 10 || node->input_count < 3)
        return false;
    const ort_type *in = ort_fact_tensor(graph, node->inputs[0]);
    c->count = ort_fact_ints(graph, node, NULL, 1, c->start);
    if (!in || c->count < 0 || c->count > in->rank)
        return false;
    for (int i = 0; i < c->count; i++) {
        c->axis[i] = i;
        c->step[i] = 1;
    }
    if (!read_list(graph, node, 2, c->count, c->end) ||
        !read_list(graph, node, 3, c->count, c->axis) ||
        !read_list(graph, node, 4, c->count, c->step))
        return false;
    for (int i = 0; i < c->count; i++)
        c->axis[i] += c->axis[i] < 0 ? in->rank : 0;
    return true;
}
