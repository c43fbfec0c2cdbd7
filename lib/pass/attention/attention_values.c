/* attention_values.c - the small questions that readers of an attention ask of nodes and values
 * (attention_match.h): is this a factor, a Transpose, heads folded into the batch, a mask.
 */
#include <math.h>

#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "tensor/scalar.h"

void ort_attention_drop(ort_attention *a, ort_node *node)
{
    if (a->around_count < ORT_ATTENTION_AROUND)
        a->around[a->around_count++] = node;
}

bool ort_attention_ranked(const ort_graph *graph, ort_id id, int rank)
{
    const ort_type *type = &graph->values.data[id]->fact.type;
    return type->kind == ORT_TYPE_TENSOR && type->rank == rank;
}

bool ort_attention_has_perm(const ort_node *node, const int64_t perm[], size_t count)
{
    size_t have;
    if (!ort_edit_is(node, ONNX, "Transpose"))
        return false;
    const int64_t *list = ort_node_ints(node, "perm", &have);
    if (!list || have != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (list[i] != perm[i])
            return false;
    return true;
}

bool ort_attention_folds(const ort_graph *graph, ort_id wide, ort_id folded)
{
    const ort_type *from = &graph->values.data[wide]->fact.type;
    const ort_type *to = &graph->values.data[folded]->fact.type;
    return ort_attention_ranked(graph, wide, 4) && ort_attention_ranked(graph, folded, 3) &&
           ort_dim_equal(from->dim[2], to->dim[1]) && ort_dim_equal(from->dim[3], to->dim[2]);
}

/* ---- factors */

bool ort_attention_number_at(const ort_graph *graph, const ort_node *node, int slot,
                             double *number)
{
    return ort_tensor_one_f64(ort_edit_constant(graph, node, slot), number);
}

int ort_attention_scaled(const ort_graph *graph, const ort_node *node, double *factor)
{
    if (ort_edit_is(node, ONNX, "Mul"))
        for (int slot = 0; slot < 2; slot++)
            if (ort_attention_number_at(graph, node, 1 - slot, factor))
                return slot;
    if (!ort_edit_is(node, ONNX, "Div") || !ort_attention_number_at(graph, node, 1, factor))
        return -1;
    *factor = 1 / *factor;
    return 0;
}

ort_id ort_attention_unscaled(const ort_graph *graph, ort_id id, ort_attention *a)
{
    double factor;
    int slot;
    for (ort_node *node = ort_edit_producer(graph, id);
         node && (slot = ort_attention_scaled(graph, node, &factor)) >= 0 && isfinite(factor) &&
         factor > 0;
         node = ort_edit_producer(graph, id)) {
        const ort_type *in = &graph->values.data[node->inputs[slot]]->fact.type;
        if (in->rank != graph->values.data[id]->fact.type.rank)
            break;
        a->scale *= factor;
        ort_attention_drop(a, node);
        id = node->inputs[slot];
    }
    return id;
}

/* ---- masks */

ort_type ort_attention_queries(const ort_graph *graph, const ort_attention *a)
{
    const ort_type *q = &graph->values.data[a->q]->fact.type;
    ort_type type = *q;
    if (!a->steps && !a->row)
        return type;
    type.rank = 4;
    type.dim[0] = q->dim[a->steps ? 1 : 0];
    type.dim[1] = ort_dim_of(a->q_heads);
    type.dim[2] = q->dim[a->steps ? 0 : 1];
    type.dim[3] = ort_dim_known(q->dim[2]) ? ort_dim_of(q->dim[2].size / a->q_heads)
                                           : ort_dim_unknown();
    return type;
}

bool ort_attention_mask_fits(const ort_type *mask, const ort_type *scores, ort_dtype dtype)
{
    if (mask->kind != ORT_TYPE_TENSOR || mask->rank < 2 || mask->rank > 4 || mask->dtype != dtype)
        return false;
    for (int i = 0; i < mask->rank; i++) {
        ort_dim m = mask->dim[mask->rank - 1 - i], s = scores->dim[3 - i];
        bool one = ort_dim_known(m) && m.size == 1;
        if (!ort_dim_equal(m, s) && (!one || i == 0))
            return false;
    }
    return true;
}

bool ort_attention_is_mask(const ort_graph *graph, const ort_attention *a, ort_id mask)
{
    ort_type scores = ort_attention_queries(graph, a);
    scores.dim[3] = a->T;
    return ort_attention_mask_fits(&graph->values.data[mask]->fact.type, &scores, scores.dtype);
}
