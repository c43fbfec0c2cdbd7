/* attention_multi.c - MultiHeadAttention of com.microsoft, where the opset has no Attention.
 *
 * It has no groups of heads (attention_group.c) and no softcap; it takes the keys that count
 * (attention_keys.c), wants q, and gives its result, with the heads together, and its bias in full
 * along the query rows. Projections of one value become its Attention (attention_packed.c).
 */
#include "base/error.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/facts.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return ort_fact_type(c->graph, id);
}

/* Why it can't be, whatever stands around; or NULL. empty: rows without a key must be told. */
static const char *misfit(const ort_pass_context *c, const ort_attention *a, bool empty)
{
    if (type_of(c, a->q)->dtype != ORT_DTYPE_FLOAT)
        return "MultiHeadAttention would fit if it were float";
    if (a->softcap > 0)
        return "MultiHeadAttention has no softcap";
    if (a->shared)
        return "MultiHeadAttention has a head of keys for each of queries";
    if (empty && !ort_attention_empty_fits(c->graph, &a->terms))
        return "MultiHeadAttention would fit if its mask were finite, or one for all heads";
    if (a->terms.zeroed && !ort_attention_zeroed_fits(c->graph, &a->terms))
        return "MultiHeadAttention would fit if the condition were the same for all heads";
    return NULL;
}

static ort_status write(ort_pass_context *c, const ort_attention *a, bool may_be_empty,
                        ort_error *err)
{
    ort_emit e = ort_emit_to(c->graph, err);
    const ort_attention_terms *t = &a->terms;
    ort_id empty = t->zeroed ? ort_attention_find_zeroed(&e, t) : ORT_ID_NONE;
    ort_id keys = ort_attention_write_keys(&e, &t->keys), mask = ort_attention_mask(c, &e, a);
    if (may_be_empty && e.status == ORT_OK)
        empty = ort_attention_find_empty(&e, mask);
    if (mask != ORT_ID_NONE)
        mask = ort_attention_full_rows(c, &e, a->q, false, mask);
    bool packed = false;
    if (e.status == ORT_OK)
        e.status = ort_attention_fuse_packed(c, a, mask, keys, empty, &packed, err);
    if (e.status != ORT_OK || packed)
        return e.status;
    const ort_id inputs[8] = {a->q, a->k, a->v, ORT_ID_NONE, keys, mask, a->cache.past_k,
                              a->cache.past_v};
    const ort_attention_operator multi = {MS, "MultiHeadAttention", 1, inputs, 8};
    return ort_attention_replace(c, a, &multi, empty, err);
}

/* ---- heads together */

/* A value of four dims, of rows [B,S,H,D] or heads [B,H,S,D] first, with its heads together. */
static ort_id gather_heads(ort_emit *e, bool rows, ort_id id)
{
    static const int64_t order[4] = {0, 2, 1, 3};
    const ort_type *type = ort_emit_type(e, id);
    const int64_t list[3] = {0, 0, type->dim[rows ? 2 : 1].size * type->dim[3].size};
    return ort_emit_reshape_to(e, rows ? id : ort_emit_transpose(e, id, order, 4), list, 3);
}

static bool knows_heads(const ort_pass_context *c, ort_id id, int axis)
{
    return ort_dim_known(type_of(c, id)->dim[axis]) && ort_dim_known(type_of(c, id)->dim[3]);
}

/* Are the heads of k and v known to be of one size? onnxruntime takes others only put together. */
static bool same_size(const ort_pass_context *c, const ort_attention *a)
{
    const ort_type *k = type_of(c, a->k), *v = type_of(c, a->v);
    return ort_dim_equal(k->dim[k->rank - 1], v->dim[v->rank - 1]);
}

/* May heads of k and v be put together? */
static bool knows_keys(const ort_pass_context *c, const ort_attention *a)
{
    return (type_of(c, a->k)->rank == 3 || knows_heads(c, a->k, a->k_is_rows ? 2 : 1)) &&
           knows_heads(c, a->v, 1);
}

/* k and v as [B,G,T,D], q and the result with heads together: the operator takes it so. Where the
 * heads of q weren't split off (but normalized, scaled, cut), they are put together, and so are
 * those of k and v where k has rows first or heads of another size. */
static bool join_queries(ort_pass_context *c, ort_emit *e, ort_attention *a)
{
    int64_t heads = 0;
    if (a->q_heads || a->cache.past_k != ORT_ID_NONE)
        return false;
    ort_id q = a->head_scale == ORT_ID_NONE ? ort_attention_join_queries(c->graph, a, &heads)
                                            : ORT_ID_NONE;
    bool apart = q == ORT_ID_NONE, gather = a->k_is_rows || !same_size(c, a);
    if ((apart && !knows_heads(c, a->q, 1)) || (gather && !knows_keys(c, a)) ||
        !ort_attention_join_result(c->graph, a))
        return false;
    if (apart) {
        heads = type_of(c, a->q)->dim[1].size;
        ort_attention_scale_heads(e, a);
        q = gather_heads(e, false, a->q);
    }
    if (gather) {
        if (type_of(c, a->k)->rank == 4)
            a->k = gather_heads(e, a->k_is_rows, a->k);
        a->v = gather_heads(e, false, a->v);
    }
    a->q = q;
    a->q_heads = a->kv_heads = heads;
    a->k_is_rows = false;
    return true;
}

/* All heads together and the cache found, q and k having as many; false: it isn't so. */
static bool join_all(const ort_pass_context *c, ort_attention *a, bool may_be_empty)
{
    ort_attention whole = *a;
    (void)ort_attention_uncache(c->graph, &whole);
    if (!may_be_empty)
        whole.terms = ort_attention_take_causal(c, &whole);
    if (!ort_attention_join(c->graph, &whole) || whole.q_heads != whole.kv_heads)
        return false;
    *a = whole;
    return true;
}

static bool lay_heads(ort_pass_context *c, ort_emit *e, ort_attention *a, bool may_be_empty)
{
    if (join_all(c, a, may_be_empty) || ort_attention_unpack(e, a))
        return true;
    if (a->row)
        a->kv_heads = a->q_heads;
    return a->steps || (a->row ? same_size(c, a) : join_queries(c, e, a));
}

ort_status ort_attention_fuse_multi(ort_pass_context *c, ort_attention *a, int *changes,
                                    ort_error *err)
{
    bool done;
    ort_emit e = ort_emit_to(c->graph, err);
    ort_node *root = a->root;
    ORT_TRY(ort_attention_fuse_group(c, a, &done, err));
    *changes += done;
    if (done)
        return ORT_OK;
    bool may_be_empty = ort_attention_has_empty(c, a);
    if (!may_be_empty)
        a->terms = ort_attention_take_keys(c, a);
    const char *why = misfit(c, a, may_be_empty);
    if (why)
        ort_pass_note(c, root, "%s", why);
    if (why || !ort_pass_opset(c, root, MS, "MultiHeadAttention", 1))
        return ORT_OK;
    if (!lay_heads(c, &e, a, may_be_empty)) {
        ort_pass_note(c, root, "heads aren't split and put together as MultiHeadAttention does");
        return e.status;
    }
    ++*changes;
    ort_attention_turn_steps(&e, a);
    return e.status != ORT_OK ? e.status : write(c, a, may_be_empty, err);
}
