/* split_slices.c - Slices that together take all of a value along one axis become a Split.
 *
 *     x[:, 0:4], x[:, 4:8], x[:, 8:12]     Split(x) of 4, 4, 4 along axis 1
 *
 * In a file alone, and after the fusions that look for Slices: in a session both are views.
 */
#include <stdlib.h>

#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/facts/slice_cut.h"

enum { PARTS_MAX = 64 };

typedef struct part {
    ort_node *node;
    int64_t start, end;
} part;

typedef struct parts {
    part list[PARTS_MAX];
    int count;
    int64_t axis, size; /* of the axis */
} parts;

static int64_t clamp(int64_t index, int64_t size)
{
    index += index < 0 ? size : 0;
    return index < 0 ? 0 : index > size ? size : index;
}

/* One axis, forwards by one; *p: where. */
static bool read_part(const ort_graph *graph, ort_node *node, int64_t *axis, part *p)
{
    ort_slice_cut cut;
    if (!ort_slice_cut_read(graph, node, &cut) || cut.count != 1 || cut.step[0] != 1)
        return false;
    const ort_type *in = ort_fact_type(graph, node->inputs[0]);
    *axis = cut.axis[0];
    if (*axis < 0 || *axis >= in->rank || !ort_dim_known(in->dim[*axis]))
        return false;
    int64_t size = in->dim[*axis].size;
    *p = (part){node, clamp(cut.start[0], size), clamp(cut.end[0], size)};
    return p->start < p->end;
}

static int by_start(const void *a, const void *b)
{
    const part *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* All readers of the value that cut it like `first`, in order; false unless they are all of it. */
static bool collect(const ort_graph *graph, ort_node *first, parts *p)
{
    ort_id id = first->inputs[0];
    ort_readers readers = ort_readers_of(graph, id);
    ort_node *node;
    part one;
    int64_t axis;
    p->count = 0;
    if (graph->values.data[id]->fact.value || !read_part(graph, first, &p->axis, &one))
        return false; /* parts of a weight are for folding, one by one where they must be */
    p->size = ort_fact_type(graph, id)->dim[p->axis].size;
    while ((node = ort_readers_next(&readers))) {
        bool is_slice = ort_edit_is(node, ONNX, "Slice") && node->inputs[0] == id;
        if (!is_slice || !read_part(graph, node, &axis, &one) || axis != p->axis)
            continue;
        if (p->count == PARTS_MAX)
            return false;
        p->list[p->count++] = one;
    }
    qsort(p->list, (size_t)p->count, sizeof *p->list, by_start);
    int64_t at = 0;
    for (int i = 0; i < p->count; at = p->list[i++].end)
        if (p->list[i].start != at)
            return false;
    return p->count > 1 && at == p->size;
}

static ort_status split(ort_pass_context *c, const parts *p, ort_error *err)
{
    ort_graph *graph = c->graph;
    const ort_node *first = p->list[0].node;
    ort_id outputs[PARTS_MAX], inputs[2] = {first->inputs[0]};
    int64_t sizes[PARTS_MAX];
    bool by_input = ort_model_opset(graph->model, ONNX) >= 13;
    for (int i = 0; i < p->count; i++) {
        sizes[i] = p->list[i].end - p->list[i].start;
        outputs[i] = p->list[i].node->outputs[0];
    }
    if (by_input)
        ORT_TRY(ort_constant_list(graph, sizes, p->count, &inputs[1], err));
    ort_attr set[2] = {ort_attr_int("axis", p->axis), ort_attr_ints("split", sizes, p->count)};
    ort_node_spec spec = {.domain = ONNX, .op_type = "Split", .name = first->name,
                          .inputs = inputs, .input_count = by_input ? 2 : 1, .outputs = outputs,
                          .output_count = p->count, .set = set, .set_count = by_input ? 1 : 2,
                          .origin = ort_edit_origin(graph, first, p->list[1].node)};
    for (int i = 0; i < p->count; i++)
        ort_graph_remove_node(graph, p->list[i].node);
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    size_t count = c->graph->order.count;
    parts p;
    if (!c->portable)
        return ORT_OK;
    for (size_t i = 0; i < count; i++) {
        ort_node *node = c->graph->nodes.data[c->graph->order.data[i]];
        if (!ort_edit_is(node, ONNX, "Slice") || !collect(c->graph, node, &p))
            continue;
        ORT_TRY(split(c, &p, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_split_slices = {
    .name = "split_slices",
    .level = 2,
    .exact = true,
    .doc = "slices that together take all of a value become a Split",
    .apply = apply,
};
