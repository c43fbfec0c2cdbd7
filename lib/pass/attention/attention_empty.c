/* attention_empty.c - rows that a mask may leave no key, where the model says that they give 0
 * and the operator doesn't: softmax of nothing but -inf is no number.
 *
 *     Where(ReduceMax(mask) == -inf, 0, MultiHeadAttention(q, k, v, mask))
 *
 * A mask that is the same for all heads says it of whole rows of the result [B,S,H*E]; what is made
 * of the mask alone is shared by layers that share it. A mask that keeps only later keys out, or
 * that is finite, leaves no row empty. Where a condition puts probabilities to 0 besides,
 * MultiHeadAttention gives the mean of all values to a row without a key, so those rows are put to
 * 0, what is dropped in others having no weight anyway:
 *
 *     Where(Reshape(ReduceMin(Cast(drop)) == 1, [B,S,1]), 0, y)
 */
#include <math.h>

#include "pass/attention/attention_match.h"
#include "pass/facts/facts.h"

bool ort_attention_has_empty(const ort_pass_context *c, const ort_attention *a)
{
    ort_attention causal = *a;
    ort_attention_terms t = ort_attention_take_keys(c, a);
    if (!a->guarded || ort_attention_masks_finitely(c->graph, &t))
        return false;
    (void)ort_attention_uncache(c->graph, &causal);
    t = ort_attention_take_causal(c, &causal);
    return !t.causal || t.mask_count || t.keep != ORT_ID_NONE || t.keys.id != ORT_ID_NONE ||
           t.window != ORT_ID_NONE;
}

/* Is it the same for all heads? */
static bool is_of_rows(const ort_graph *graph, ort_id mask)
{
    const ort_type *type = ort_fact_type(graph, mask);
    return type->rank < 3 || ort_dim_is(type->dim[type->rank - 3], 1);
}

bool ort_attention_empty_fits(const ort_graph *graph, const ort_attention_terms *t)
{
    for (int i = 0; i < t->mask_count; i++)
        if (!is_of_rows(graph, t->masks[i]))
            return false;
    return t->window == ORT_ID_NONE && (t->keep == ORT_ID_NONE || is_of_rows(graph, t->keep));
}

bool ort_attention_zeroed_fits(const ort_graph *graph, const ort_attention_terms *t)
{
    const ort_type *keep = ort_fact_type(graph, t->keep);
    return keep->rank == 4 && ort_dim_is(keep->dim[1], 1);
}

ort_id ort_attention_find_empty(ort_emit *e, ort_id mask)
{
    bool apart = ort_emit_type(e, mask)->rank == 4;
    return ort_emit_formula(e, apart ? "(Squeeze (Equal (ReduceMax m [-1]) $none) [1])"
                                     : "(Equal (ReduceMax m [-1]) $none)",
                            "m $none", mask, (double)-INFINITY);
}

ort_id ort_attention_find_zeroed(ort_emit *e, const ort_attention_terms *t)
{
    ort_id keep = ort_emit_cast(e, t->keep, ORT_DTYPE_FLOAT);
    return ort_emit_formula(e, t->keep_is_inverse
                                   ? "(Reshape (Equal (ReduceMin k [-1]) 1) [0 -1 1])"
                                   : "(Reshape (Equal (ReduceMax k [-1]) 0) [0 -1 1])", "k", keep);
}
