/* attention_around.c - what stands around the products of an attention and the operator takes in:
 *
 *     heads      split off before q, k and v, put together behind the result (heads.h)
 *     packed     q, k and v as the thirds of one value, by a Split, Slice or Gather along axis 0
 *     groups     [B,G,1,T,D], Expand [B,G,n,T,D], Reshape [B,G*n,T,D]
 *     cache      Concat of past and new rows along T, the whole being a result of the graph
 *
 * Shapes are compared as facts, so that how a shape was computed doesn't matter.
 */
#include "graph/uses.h"
#include "pass/attention/attention_match.h"
#include "pass/attention/heads.h"
#include "pass/facts/facts.h"
#include "pass/facts/slice_cut.h"

enum { DEPTH = 24, LOOKS = 256 };

/* ---- groups */

/* What was repeated so that this [B,G*n,T,D] came out: [B,G,T,D], or [B,G,1,T,D] where that was
 * made of something else; or ORT_ID_NONE. */
static ort_id unrepeated(const ort_graph *graph, ort_id id)
{
    ort_heads all = ort_heads_at(graph, id, "b gn s d", false);
    ort_heads wide = ort_heads_back(graph, all, "b g n s d");
    const ort_node *expand = wide.id == ORT_ID_NONE ? NULL : ort_edit_producer(graph, wide.id);
    if (!ort_edit_is_any(expand, "Expand|Tile") || !ort_fact_ranked(graph, expand->inputs[0], 5))
        return ORT_ID_NONE;
    const ort_type *from = ort_fact_type(graph, expand->inputs[0]);
    for (int d = 0; d < 5; d++)
        if (d == 2 ? !ort_dim_is(from->dim[d], 1)
                   : !ort_dim_equal(from->dim[d], ort_fact_type(graph, wide.id)->dim[d]))
            return ORT_ID_NONE;
    ort_heads one = ort_heads_at(graph, expand->inputs[0], "b g n s d", false);
    ort_heads four = ort_heads_back(graph, one, "b g s d");
    return !ort_dim_known(from->dim[1]) ? ORT_ID_NONE
           : four.id != ORT_ID_NONE     ? four.id
                                        : one.id;
}

bool ort_attention_ungroup(const ort_graph *graph, const ort_attention *a, ort_id kv[2])
{
    kv[0] = a->k;
    kv[1] = a->v;
    if (a->k_is_rows || a->q_heads || a->shared)
        return a->shared && !a->k_is_rows && !a->q_heads;
    kv[0] = unrepeated(graph, a->k);
    kv[1] = unrepeated(graph, a->v);
    return kv[0] != ORT_ID_NONE && kv[1] != ORT_ID_NONE &&
           ort_dim_equal(ort_fact_type(graph, kv[0])->dim[1], ort_fact_type(graph, kv[1])->dim[1]);
}

/* ---- what goes */

/* Will the operator read it, or what is written before it? */
static bool is_kept(const ort_attention *a, ort_id id)
{
    const ort_attention_terms *t = &a->terms;
    for (int i = 0; i < t->mask_count; i++)
        if (t->masks[i] == id)
            return true;
    return id == a->q || id == t->keep || id == t->fill || id == t->window || id == t->keys.id ||
           id == a->cache.past_k || id == a->cache.past_v || id == a->head_scale ||
           (t->unfold && id == t->unfold->inputs[1]);
}

/* Does this node certainly go when the operator is written? Only what goes reads it then. */
static bool goes(const ort_graph *graph, const ort_attention *a, const ort_node *node, int depth,
                 int *looks)
{
    if (node == a->root)
        return true;
    if (depth > DEPTH || --*looks < 0 || node->body_count)
        return false;
    for (int o = 0; o < node->output_count; o++) {
        ort_id id = node->outputs[o];
        const ort_graph_value *value = ort_graph_value_at(graph, id);
        if (!value)
            continue;
        if (value->is_output || is_kept(a, id))
            return false;
        ort_readers readers = ort_readers_of(graph, id);
        for (const ort_node *reader; (reader = ort_readers_next(&readers));)
            if (!goes(graph, a, reader, depth + 1, looks))
                return false;
    }
    return true;
}

/* ---- cache */

/* The Concat of past and new rows that only what goes reads, and maybe the caller. What stays would
 * hang on the operator's result, and a mask on that. */
static const ort_node *appended(const ort_graph *graph, ort_id id, const ort_attention *a)
{
    const ort_node *concat = ort_edit_producer(graph, id);
    if (!ort_edit_is(concat, ONNX, "Concat") || concat->input_count != 2 ||
        !ort_fact_ranked(graph, concat->inputs[0], 4) ||
        !ort_fact_ranked(graph, concat->inputs[1], 4))
        return NULL;
    int64_t axis = ort_node_attr_int(concat, "axis");
    if (axis != 2 && axis != -2)
        return NULL;
    ort_readers readers = ort_readers_of(graph, id);
    int looks = LOOKS;
    for (const ort_node *reader; (reader = ort_readers_next(&readers));)
        if (!goes(graph, a, reader, 0, &looks))
            return NULL;
    return concat;
}

bool ort_attention_uncache(const ort_graph *graph, ort_attention *a)
{
    if (a->k_is_rows || (a->q_heads && !a->row) || a->cache.past_k != ORT_ID_NONE)
        return false;
    const ort_node *k = appended(graph, a->k, a), *v = appended(graph, a->v, a);
    if (!k || !v || k == v)
        return false;
    a->cache = (ort_attention_cache){k->inputs[0], v->inputs[0], a->k, a->v};
    a->k = k->inputs[1];
    a->v = v->inputs[1];
    return true;
}

/* ---- heads */

/* This value of four dims (k: or of rows) with its heads together. */
static ort_heads joined(const ort_graph *graph, ort_id id, bool rows, bool scaled)
{
    const char *lie = !rows ? "b h s d" : ort_fact_ranked(graph, id, 3) ? "b s hd" : "b s h d";
    ort_heads from = ort_heads_at(graph, id, lie, scaled);
    if (from.id != ORT_ID_NONE && ort_fact_ranked(graph, id, 3))
        from.count = ort_dim_of(1);
    return ort_heads_back(graph, from, "b s hd");
}

bool ort_attention_join_result(const ort_graph *graph, ort_attention *a)
{
    if (a->joined)
        return true;
    ort_heads result = ort_heads_at(graph, a->root->outputs[0], "b h s d", false);
    ort_heads whole = ort_heads_forth(graph, result, "b s hd"), parts = whole;
    if (whole.id == ORT_ID_NONE) {
        parts = ort_heads_forth(graph, result, "b s h d");
        if (parts.id == ORT_ID_NONE || !ort_dim_known(parts.count) || !ort_dim_known(parts.size))
            return false;
        a->parted = parts.id;
    }
    a->root = ort_edit_producer(graph, parts.id);
    return true;
}

ort_id ort_attention_join_queries(const ort_graph *graph, const ort_attention *a, int64_t *heads)
{
    ort_heads q = joined(graph, a->q, false, false);
    *heads = ort_dim_known(q.count) ? q.count.size : 0;
    return ort_dim_known(q.count) ? q.id : ORT_ID_NONE;
}

bool ort_attention_join(const ort_graph *graph, ort_attention *a)
{
    if ((a->q_heads && !a->row) || a->head_scale != ORT_ID_NONE)
        return false;
    ort_heads q = a->row ? ort_heads_at(graph, a->q, "b s hd", true)
                         : joined(graph, a->q, false, true);
    ort_heads k = joined(graph, a->k, a->k_is_rows, true), v = joined(graph, a->v, false, false);
    if (a->row)
        q.count = ort_dim_of(a->q_heads);
    if (q.id == ORT_ID_NONE || k.id == ORT_ID_NONE || v.id == ORT_ID_NONE ||
        !ort_dim_known(q.count) || !ort_dim_known(k.count) || !ort_dim_equal(k.count, v.count) ||
        !ort_attention_join_result(graph, a))
        return false;
    a->q = q.id;
    a->k = k.id;
    a->v = v.id;
    a->scale *= q.factor * k.factor;
    a->q_heads = q.count.size;
    a->kv_heads = k.count.size;
    return true;
}

/* ---- packed */

ort_id ort_attention_packed(const ort_graph *graph, const ort_attention *a, int64_t *heads)
{
    const ort_id ids[3] = {a->q, a->k, a->v};
    ort_id whole = ORT_ID_NONE;
    for (int i = 0; i < 3; i++) {
        ort_part part = ort_part_of(graph, ids[i]);
        if (part.of == ORT_ID_NONE || (i && part.of != whole) || !part.taken || part.axis != 0 ||
            part.start != i)
            return ORT_ID_NONE;
        whole = part.of;
    }
    ort_heads from = ort_heads_at(graph, whole, "p b h s d", false);
    if (from.id == ORT_ID_NONE || !ort_dim_is(ort_fact_type(graph, whole)->dim[0], 3) ||
        !ort_dim_known(from.count) || !ort_dim_known(from.size))
        return ORT_ID_NONE;
    *heads = from.count.size;
    return ort_heads_back(graph, from, "b s phd").id;
}
