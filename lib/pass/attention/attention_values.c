/* attention_values.c - how the queries of an attention lie, and whether a mask fits onto its scores
 * (attention_match.h).
 */
#include "pass/attention/attention_match.h"
#include "pass/facts/dim_source.h"
#include "pass/facts/facts.h"

ort_type ort_attention_queries(const ort_graph *graph, const ort_attention *a)
{
    const ort_type *q = ort_fact_type(graph, a->q);
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
        if (!ort_dim_equal(m, s) && (!ort_dim_is(m, 1) || i == 0))
            return false;
    }
    return true;
}

bool ort_attention_is_mask(const ort_graph *graph, const ort_attention *a, ort_id mask)
{
    ort_type scores = ort_attention_queries(graph, a);
    scores.dim[3] = a->T;
    return ort_attention_mask_fits(ort_fact_type(graph, mask), &scores, scores.dtype);
}

ort_id ort_attention_size(const ort_pass_context *c, ort_emit *e, ort_id like, int axis)
{
    ort_dim dim = ort_emit_type(e, like)->dim[axis];
    int64_t at = axis;
    if (ort_dim_known(dim))
        return ort_emit_ints(e, &dim.size, 1);
    (void)ort_dim_source(c, dim, &like, &at);
    return ort_emit_dim(e, like, (int)at);
}
