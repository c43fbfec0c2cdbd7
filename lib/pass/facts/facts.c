/* facts.c - what is known of values and nodes (facts.h). */
#include "pass/facts/facts.h"

#include "tensor/scalar.h"

bool ort_fact_ranked(const ort_graph *graph, ort_id id, int rank)
{
    const ort_type *type = ort_fact_type(graph, id);
    return type->kind == ORT_TYPE_TENSOR && type->rank == rank;
}

bool ort_facts_same_shape(const ort_type *a, const ort_type *b)
{
    if (a->kind != ORT_TYPE_TENSOR || b->kind != ORT_TYPE_TENSOR || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (!ort_dim_equal(a->dim[d], b->dim[d]))
            return false;
    return a->rank >= 0;
}

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

const ort_tensor *ort_fact_constant(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    return value && !value->is_input && value->fact.value && value->fact.value->data
               ? value->fact.value
               : NULL;
}

bool ort_fact_number(const ort_graph *graph, const ort_node *node, int slot, double *number)
{
    return ort_tensor_one_f64(ort_edit_constant(graph, node, slot), number);
}

bool ort_fact_is_int(const ort_graph *graph, const ort_node *node, int slot, int64_t number)
{
    int64_t own;
    return ort_tensor_one_i64(ort_edit_constant(graph, node, slot), &own) && own == number;
}

bool ort_fact_permutes(const ort_node *node, const int64_t *perm, size_t count)
{
    size_t have;
    const int64_t *list = ort_edit_is(node, ONNX, "Transpose") ? ort_node_ints(node, "perm", &have)
                                                               : NULL;
    return list && have == count && !memcmp(list, perm, count * sizeof *perm);
}

bool ort_fact_along_last(const ort_node *node, int64_t fallback, int rank)
{
    int64_t axis = ort_node_int(node, "axis", fallback);
    return axis == -1 || axis == rank - 1;
}
