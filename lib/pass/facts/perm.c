/* perm.c - permutations of axes (perm.h): inverse, product, with fewer and with more axes, and
 * constants laid out by them. */
#include "pass/facts/perm.h"

#include "base/error.h"
#include "op/shared/axes.h"
#include "op/shared/move.h"
#include "pass/facts/facts.h"

bool ort_perm_equal(const ort_perm *a, const ort_perm *b)
{
    return a->rank == b->rank && !memcmp(a->to, b->to, (size_t)a->rank * sizeof *a->to);
}

bool ort_perm_is_identity(const ort_perm *p)
{
    for (int i = 0; i < p->rank; i++)
        if (p->to[i] != i)
            return false;
    return true;
}

ort_perm ort_perm_identity(int rank)
{
    ort_perm p = {.rank = rank};
    for (int i = 0; i < rank; i++)
        p.to[i] = i;
    return p;
}

ort_perm ort_perm_inverse(const ort_perm *p)
{
    ort_perm inverse = {.rank = p->rank};
    for (int i = 0; i < p->rank; i++)
        inverse.to[p->to[i]] = i;
    return inverse;
}

ort_perm ort_perm_then(const ort_perm *first, const ort_perm *second)
{
    ort_perm both = {.rank = first->rank};
    for (int i = 0; i < first->rank; i++)
        both.to[i] = first->to[second->to[i]];
    return both;
}

bool ort_perm_of_node(const ort_graph *graph, const ort_node *node, ort_perm *perm)
{
    size_t count;
    const int64_t *given = ort_node_ints(node, "perm", &count), *list = count ? given : NULL;
    const ort_type *in = ort_fact_tensor(graph, node->inputs[0]);
    if (list ? !ort_axes_permute(list, count) || (in && (int)count != in->rank) : !in)
        return false;
    *perm = (ort_perm){.rank = list ? (int)count : in->rank};
    for (int i = 0; i < perm->rank; i++)
        perm->to[i] = list ? (int)list[i] : perm->rank - 1 - i;
    return true;
}

static bool listed(const int64_t *axes, int count, int axis)
{
    for (int i = 0; i < count; i++)
        if (axes[i] == axis)
            return true;
    return false;
}

ort_perm ort_perm_without(const ort_perm *p, const int64_t *axes, int count)
{
    ort_perm out = {.rank = 0};
    for (int i = 0; i < p->rank; i++) {
        int place = p->to[i];
        if (listed(axes, count, i))
            continue;
        for (int j = 0; j < count; j++)
            place -= p->to[axes[j]] < p->to[i];
        out.to[out.rank++] = place;
    }
    return out;
}

ort_perm ort_perm_with(const ort_perm *p, const int64_t *axes, int count)
{
    ort_perm out = {.rank = p->rank + count};
    int places[ORT_MAX_RANK], next = 0;
    for (int i = 0; i < out.rank; i++)
        if (!listed(axes, count, i))
            places[next++] = i;
    next = 0;
    for (int i = 0; i < out.rank; i++)
        out.to[i] = listed(axes, count, i) ? i : places[p->to[next++]];
    return out;
}

ort_attr ort_perm_attr(const ort_perm *p, int64_t list[ORT_MAX_RANK])
{
    for (int i = 0; i < p->rank; i++)
        list[i] = p->to[i];
    return ort_attr_ints("perm", list, p->rank);
}

ort_status ort_tensor_permuted(ort_graph *graph, const char *name, const ort_tensor *from,
                               const ort_shape *full, const ort_perm *p, bool keep_shape,
                               ort_id *made, ort_error *err)
{
    int64_t stride[ORT_MAX_RANK], to[ORT_MAX_RANK];
    ort_shape shape = {.rank = p->rank};
    ort_perm inverse = ort_perm_inverse(p);
    ort_value *copy = NULL;
    for (int i = 0; i < p->rank; i++)
        shape.dim[i] = full->dim[inverse.to[i]];
    ORT_TRY(ort_value_new_tensor_(from->dtype, &shape, &copy, err));
    ort_shape_strides(full, stride);
    ort_shape_strides(&shape, to);
    ort_move move = ort_move_between(from, &copy->tensor);
    for (int i = 0; i < p->rank; i++)
        ort_move_add(&move, shape.dim[i], stride[inverse.to[i]], to[i]);
    ort_move_run(&move, NULL);
    const ort_tensor *kept;
    ort_status status = ort_edit_keep(graph, copy, &kept, err);
    ort_value_free(copy);
    if (status != ORT_OK)
        return status;
    ort_tensor result = *kept;
    if (keep_shape)
        result.shape = from->shape;
    *made = ort_graph_add_constant(graph, name, &result);
    return *made == ORT_ID_NONE ? ort_error_memory(err, sizeof result) : ORT_OK;
}

ort_status ort_constant_permuted(ort_graph *graph, ort_id id, const ort_perm *p, ort_id *made,
                                 ort_error *err)
{
    const ort_graph_value *value = graph->values.data[id];
    const ort_tensor *from = value->fact.value;
    ort_shape full = {.rank = p->rank};
    int skip = p->rank - from->shape.rank;
    for (int i = 0; i < p->rank; i++)
        full.dim[i] = i < skip ? 1 : from->shape.dim[i - skip];
    return ort_tensor_permuted(graph, value->name, from, &full, p, false, made, err);
}
