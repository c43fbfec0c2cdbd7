/* slice_cut.c - reads the bounds of a Slice, and parts of a value. */
#include "pass/facts/slice_cut.h"

#include "pass/facts/facts.h"
#include "tensor/scalar.h"

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

/* ---- parts */

static const ort_part none = {.of = ORT_ID_NONE};

static ort_part sliced(const ort_graph *graph, const ort_node *slice)
{
    ort_slice_cut cut;
    if (!ort_slice_cut_read(graph, slice, &cut) || cut.count != 1)
        return none;
    return (ort_part){slice->inputs[0], (int)cut.axis[0], cut.start[0], cut.end[0], cut.step[0],
                      false};
}

static ort_part split(const ort_graph *graph, const ort_node *node, ort_id value)
{
    const ort_type *whole = ort_fact_tensor(graph, node->inputs[0]);
    int axis = whole ? ort_fact_axis(node, whole->rank) : -1;
    int64_t start = 0;
    if (axis < 0)
        return none;
    for (int i = 0; i < node->output_count && node->outputs[i] != ORT_ID_NONE; i++) {
        const ort_type *type = ort_fact_type(graph, node->outputs[i]);
        if (type->rank != whole->rank || !ort_dim_known(type->dim[axis]))
            return none;
        int64_t end = start + type->dim[axis].size;
        if (node->outputs[i] == value)
            return (ort_part){node->inputs[0], axis, start, end, 1, false};
        start = end;
    }
    return none;
}

static ort_part gathered(const ort_graph *graph, const ort_node *node)
{
    const ort_tensor *at = ort_edit_constant(graph, node, 1);
    const ort_type *whole = ort_fact_tensor(graph, node->inputs[0]);
    int axis = whole ? ort_fact_axis(node, whole->rank) : -1;
    int64_t index;
    if (axis < 0 || !ort_tensor_one_i64(at, &index) || at->shape.rank)
        return none;
    index += index < 0 && ort_dim_known(whole->dim[axis]) ? whole->dim[axis].size : 0;
    return (ort_part){node->inputs[0], axis, index, index + 1, 1, true};
}

/* Bounds as they count from the front, within the axis. */
static int64_t settled(ort_dim size, int64_t bound)
{
    if (!ort_dim_known(size))
        return bound;
    bound += bound < 0 ? size.size : 0;
    return bound < size.size ? bound : size.size;
}

static ort_part part_by(const ort_graph *graph, const ort_node *node, ort_id value)
{
    ort_part part = ort_edit_is(node, ONNX, "Slice")    ? sliced(graph, node)
                    : ort_edit_is(node, ONNX, "Split")  ? split(graph, node, value)
                    : ort_edit_is(node, ONNX, "Gather") ? gathered(graph, node)
                                                        : none;
    if (part.of == ORT_ID_NONE || part.axis < 0 ||
        part.axis >= ort_fact_type(graph, part.of)->rank)
        return none;
    ort_dim size = ort_fact_type(graph, part.of)->dim[part.axis];
    part.start = settled(size, part.start);
    part.end = settled(size, part.end);
    return part;
}

ort_part ort_part_of(const ort_graph *graph, ort_id value)
{
    const ort_node *node = ort_edit_producer(graph, value);
    if (!ort_edit_is(node, ONNX, "Squeeze"))
        return part_by(graph, node, value);
    ort_id one = node->inputs[0];
    ort_part part = part_by(graph, ort_edit_producer(graph, one), one);
    if (part.of == ORT_ID_NONE || part.taken ||
        !ort_facts_same_but_one(ort_fact_type(graph, value), ort_fact_type(graph, one), part.axis))
        return none;
    part.taken = true;
    return part;
}
