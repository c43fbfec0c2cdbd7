/* slice_cut.c - reads the bounds of a Slice. */
#include "pass/facts/slice_cut.h"

#include "op/edit.h"

/* Input `slot` as numbers; false when it isn't constant or not `count` of them. */
static bool read_list(const ort_graph *graph, const ort_node *node, int slot, int count,
                      int64_t *list)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    if (!t || !t->data || ort_tensor_count(t) != count)
        return false;
    for (int i = 0; i < count; i++)
        list[i] = ort_tensor_get_i64(t, i);
    return true;
}

static bool has(const ort_node *node, int slot)
{
    return slot < node->input_count && node->inputs[slot] != ORT_ID_NONE;
}

bool ort_slice_cut_read(const ort_graph *graph, const ort_node *node, ort_slice_cut *c)
{
    if (!ort_edit_is(node, ONNX, "Slice") || node->opset < 10 || node->input_count < 3)
        return false;
    const ort_tensor *starts = ort_edit_constant(graph, node, 1);
    const ort_type *in = &graph->values.data[node->inputs[0]]->fact.type;
    if (!starts || in->kind != ORT_TYPE_TENSOR || in->rank < 0 ||
        ort_tensor_count(starts) > in->rank)
        return false;
    c->count = (int)ort_tensor_count(starts);
    for (int i = 0; i < c->count; i++) {
        c->axis[i] = i;
        c->step[i] = 1;
    }
    if (!read_list(graph, node, 1, c->count, c->start) ||
        !read_list(graph, node, 2, c->count, c->end) ||
        (has(node, 3) && !read_list(graph, node, 3, c->count, c->axis)) ||
        (has(node, 4) && !read_list(graph, node, 4, c->count, c->step)))
        return false;
    for (int i = 0; i < c->count; i++)
        c->axis[i] += c->axis[i] < 0 ? in->rank : 0;
    return true;
}
