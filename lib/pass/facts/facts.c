/* facts.c - what passes ask of values and nodes (facts.h). */
#include "pass/facts/facts.h"

#include <math.h>

#include "tensor/scalar.h"

/* ---- dims */

bool ort_facts_same_but_one(const ort_type *narrow, const ort_type *wide, int axis)
{
    if (narrow->kind != ORT_TYPE_TENSOR || wide->kind != ORT_TYPE_TENSOR ||
        wide->rank != narrow->rank + 1 || narrow->rank < 0 || !ort_dim_is(wide->dim[axis], 1))
        return false;
    for (int d = 0; d < narrow->rank; d++)
        if (!ort_dim_equal(narrow->dim[d], wide->dim[d < axis ? d : d + 1]))
            return false;
    return true;
}

/* ---- constants */

bool ort_fact_number(const ort_graph *graph, const ort_node *node, int slot, double *number)
{
    return ort_tensor_one_f64(ort_edit_constant(graph, node, slot), number);
}

bool ort_fact_is_int(const ort_graph *graph, const ort_node *node, int slot, int64_t number)
{
    int64_t own;
    return ort_tensor_one_i64(ort_edit_constant(graph, node, slot), &own) && own == number;
}

bool ort_tensor_counts_up(const ort_tensor *t)
{
    for (int64_t i = 0; i < ort_tensor_count(t); i++)
        if (ort_tensor_get_i64(t, i) != i)
            return false;
    return true;
}

/* ---- nodes */

int ort_fact_axis(const ort_node *node, int rank)
{
    return ort_axis_in(ort_node_attr_int(node, "axis"), rank);
}

int ort_fact_ints(const ort_graph *graph, const ort_node *node, const char *name, int slot,
                  int64_t *list)
{
    size_t count = 0;
    const int64_t *own = name ? ort_node_ints(node, name, &count) : NULL;
    bool given = slot > 0 && ort_edit_input(node, slot) != ORT_ID_NONE;
    const ort_tensor *t = given ? ort_edit_constant(graph, node, slot) : NULL;
    if (t)
        count = (size_t)ort_tensor_count(t);
    if ((given && (!t || t->shape.rank != 1 || (count && !t->data))) || count > ORT_MAX_RANK)
        return -1;
    for (size_t i = 0; i < count; i++)
        list[i] = t ? ort_tensor_get_i64(t, (int64_t)i) : own[i];
    return (int)count;
}

int ort_fact_axes(const ort_graph *graph, const ort_node *node, int slot, int rank, int64_t *axes)
{
    int count = ort_fact_ints(graph, node, "axes", slot, axes);
    for (int i = 0; i < count; i++)
        if ((axes[i] = ort_axis_in(axes[i], rank)) < 0)
            return -1;
    return count;
}

unsigned ort_fact_kept_axes(const ort_graph *graph, const ort_node *reduce, int rank)
{
    int64_t axes[ORT_MAX_RANK];
    unsigned set = 0;
    int count = ort_node_attr_int(reduce, "keepdims") == 1
                    ? ort_fact_axes(graph, reduce, 1, rank, axes) : -1;
    for (int i = 0; i < count; i++) {
        if (set >> axes[i] & 1)
            return 0;
        set |= 1u << axes[i];
    }
    return set;
}

bool ort_fact_bounds(const ort_graph *graph, const ort_node *clip, double *low, double *high)
{
    double *const bounds[2] = {low, high};
    static const char *const names[2] = {"min", "max"};
    for (int i = 0; i < 2; i++) {
        if (clip->opset < 11 && ort_node_has(clip, names[i]))
            *bounds[i] = (double)ort_node_attr_float(clip, names[i]);
        if (clip->opset >= 11 && ort_edit_input(clip, i + 1) != ORT_ID_NONE &&
            !ort_fact_number(graph, clip, i + 1, bounds[i]))
            return false;
    }
    return !isnan(*low) && !isnan(*high);
}

bool ort_fact_pads(const ort_graph *graph, const ort_node *pad, int rank, int64_t *pads)
{
    size_t own;
    int64_t axes[ORT_MAX_RANK];
    bool all = ort_edit_input(pad, 3) == ORT_ID_NONE;
    const int64_t *list = ort_node_ints(pad, "pads", &own);
    const ort_tensor *t = ort_edit_constant(graph, pad, 1);
    if (pad->opset < 11) {
        if (list && own == (size_t)rank * 2)
            memcpy(pads, list, own * sizeof *pads);
        return list && own == (size_t)rank * 2;
    }
    int count = all ? rank : ort_fact_axes(graph, pad, 3, rank, axes);
    if (count < 0 || count > rank || !t || !t->data || ort_tensor_count(t) != 2 * count)
        return false;
    memset(pads, 0, 2 * (size_t)rank * sizeof *pads);
    for (int i = 0; i < count; i++) {
        int axis = all ? i : (int)axes[i];
        pads[axis] = ort_tensor_get_i64(t, i);
        pads[rank + axis] = ort_tensor_get_i64(t, count + i);
    }
    return true;
}

bool ort_fact_permutes(const ort_node *node, const int64_t *perm, size_t count)
{
    size_t have;
    const int64_t *list = ort_edit_is(node, ONNX, "Transpose") ? ort_node_ints(node, "perm", &have)
                                                               : NULL;
    return list && have == count && !memcmp(list, perm, count * sizeof *perm);
}

bool ort_fact_along_last(const ort_node *node, int rank)
{
    int64_t axis = ort_node_attr_int(node, "axis");
    return axis == -1 || axis == rank - 1;
}

bool ort_fact_is_coded(const ort_graph *graph, ort_id id)
{
    enum { DEPTH = 8 };
    const ort_node *node = ort_edit_producer(graph, id);
    for (int i = 0; i < DEPTH && ort_edit_is_any(node, "MaxPool|Reshape|Flatten|Transpose|Squeeze|"
                                                       "Unsqueeze|Slice|Split|Concat|Gather|Expand|"
                                                       "Tile|DepthToSpace|SpaceToDepth");
         i++)
        node = ort_edit_producer(graph, node->inputs[0]);
    return ort_edit_is(node, ONNX, "DequantizeLinear");
}
