/* attention_group.c - causal attention with fewer heads of keys than of queries becomes
 * GroupQueryAttention of com.microsoft, with its cache.
 *
 * The operator wants to be told how many keys there are, past ones included, as
 * total_sequence_length [1], and the number of the last one for each row of the batch, seqlens_k
 * [B], both int32: they are made of shapes, once for all layers. onnxruntime 1.31 takes past keys
 * together with more than one new token only for a batch of 1, so that must be known.
 */
#include "base/error.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/facts.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return ort_fact_type(c->graph, id);
}

/* Why it can't be; heads are together by now. NULL: it can. */
static const char *misfit(const ort_pass_context *c, const ort_attention *a)
{
    const ort_type *q = type_of(c, a->q), *k = type_of(c, a->k), *v = type_of(c, a->v);
    const ort_attention_terms *t = &a->terms;
    if (q->dtype != ORT_DTYPE_FLOAT)
        return "GroupQueryAttention would fit if it were float";
    if (!t->causal || t->mask_count || t->window != ORT_ID_NONE || t->keep != ORT_ID_NONE)
        return "GroupQueryAttention would fit if its mask only kept later keys out";
    if (!ort_dim_known(q->dim[2]) || !ort_dim_known(k->dim[2]) ||
        !ort_dim_equal(k->dim[2], v->dim[2]) ||
        q->dim[2].size * a->kv_heads != k->dim[2].size * a->q_heads)
        return "heads of queries, keys and values aren't of the same size";
    if (a->cache.past_k != ORT_ID_NONE && !ort_dim_is(q->dim[0], 1) && !ort_dim_is(q->dim[1], 1))
        return "GroupQueryAttention would fit if the batch were 1 (--dim)";
    return ort_model_opset(c->graph->model, ONNX) < 15 ? "its lengths need Shape of opset 15"
                                                       : NULL;
}

static void lengths(const ort_pass_context *c, ort_emit *e, const ort_attention *a, ort_id *each,
                    ort_id *total)
{
    static const int64_t one = 1;
    ort_id keys = ort_attention_size(c, e, a->q, 1);
    if (a->cache.past_k != ORT_ID_NONE)
        keys = ort_emit_op2(e, "Add", keys, ort_attention_size(c, e, a->cache.past_k, 2));
    *total = ort_emit_cast(e, keys, ORT_DTYPE_INT32);
    ort_id last = ort_emit_op2(e, "Sub", keys, ort_emit_ints(e, &one, 1));
    last = ort_emit_cast(e, last, ORT_DTYPE_INT32);
    *each = ort_emit_op2(e, "Expand", last, ort_attention_size(c, e, a->q, 0));
}

static ort_status write(ort_pass_context *c, ort_attention *a, ort_error *err)
{
    ort_emit e = ort_emit_to(c->graph, err);
    ort_id inputs[7] = {a->q, a->k, a->v, a->cache.past_k, a->cache.past_v};
    ort_id *const presents[2] = {&a->cache.present_k, &a->cache.present_v};
    lengths(c, &e, a, &inputs[5], &inputs[6]);
    if (e.status != ORT_OK)
        return e.status;
    for (int i = 0; i < 2; i++) /* results that it always has */
        if (*presents[i] == ORT_ID_NONE &&
            (*presents[i] = ort_graph_add_value(c->graph, "")) == ORT_ID_NONE)
            return ort_error_memory(err, sizeof **presents);
    const ort_attention_operator group = {MS, "GroupQueryAttention", 1, inputs, 7};
    return ort_attention_replace(c, a, &group, ORT_ID_NONE, err);
}

ort_status ort_attention_fuse_group(ort_pass_context *c, const ort_attention *found, bool *done,
                                    ort_error *err)
{
    ort_attention a = *found;
    ort_id kv[2];
    *done = false;
    if (!ort_attention_ungroup(c->graph, found, kv) || type_of(c, kv[0])->rank != 4 ||
        type_of(c, kv[1])->rank != 4)
        return ORT_OK;
    a.k = kv[0];
    a.v = kv[1];
    (void)ort_attention_uncache(c->graph, &a);
    a.terms = ort_attention_take_causal(c, &a);
    const char *why = ort_attention_join(c->graph, &a)
                          ? misfit(c, &a)
                          : "heads aren't split and put together as GroupQueryAttention does";
    if (why)
        ort_pass_note(c, found->root, "%s", why);
    *done = !why && ort_pass_opset(c, found->root, MS, "GroupQueryAttention", 1);
    return *done ? write(c, &a, err) : ORT_OK;
}
