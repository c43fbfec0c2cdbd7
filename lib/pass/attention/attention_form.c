/* attention_form.c - softmax(q k^T scale + mask) v spelled in products becomes Attention (of
 * opset 23), or an operator of com.microsoft (attention_multi.c).
 *
 * What attention_match.h finds around it goes in as well. An Attention that is there already is
 * looked at again: what stands around it may have become plain since it was written.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/facts.h"

static const int64_t heads_first[4] = {0, 2, 1, 3};

/* Keys [B,T,G,D], or [B,T,D] of one head, as [B,G,T,D]. */
static ort_id keys_of(ort_emit *e, const ort_attention *a)
{
    static const int64_t one = 1;
    if (!a->k_is_rows || a->kv_heads)
        return a->k;
    return ort_fact_type(e->graph, a->k)->rank == 3
               ? ort_emit_unsqueeze(e, a->k, &one, 1)
               : ort_emit_transpose(e, a->k, heads_first, 4);
}

/* Keys and values of groups without the dimension along which they were repeated. */
static bool ungroup(ort_emit *e, ort_attention *a)
{
    static const int64_t two = 2;
    ort_id kv[2];
    if (!ort_attention_ungroup(e->graph, a, kv))
        return false;
    for (int i = 0; i < 2; i++)
        if (ort_fact_type(e->graph, kv[i])->rank != 4)
            kv[i] = ort_emit_squeeze(e, kv[i], &two, 1);
    if (e->status != ORT_OK)
        return false;
    a->k = kv[0];
    a->v = kv[1];
    return true;
}

/* The mask as the operator takes it; settled: it is the one of an Attention. */
static ort_id mask_of(const ort_pass_context *c, ort_emit *e, const ort_attention *a, bool settled)
{
    ort_id mask = ort_attention_mask(c, e, a);
    if (c->portable && !settled)
        mask = ort_attention_raise_mask(e, mask);
    return c->portable && mask != ORT_ID_NONE /* onnxruntime 1.31 doesn't broadcast rows */
               ? ort_attention_full_rows(c, e, a->q, true, mask) : mask;
}

static ort_status write(ort_pass_context *c, ort_emit *e, const ort_attention *a, int opset,
                        bool settled)
{
    ort_id k = keys_of(e, a), mask = mask_of(c, e, a, settled);
    const ort_id inputs[6] = {a->q, k, a->v, mask, a->cache.past_k, a->cache.past_v};
    const ort_attention_operator attention = {ONNX, "Attention", opset, inputs, 6};
    return e->status != ORT_OK ? e->status
                               : ort_attention_replace(c, a, &attention, ORT_ID_NONE, e->err);
}

static ort_status fuse(ort_pass_context *c, ort_attention *a, int *changes, ort_error *err)
{
    ort_emit e = ort_emit_to(c->graph, err);
    int opset = ort_pass_opset(c, a->root, ONNX, "Attention", 23);
    if (!opset)
        return ort_attention_fuse_multi(c, a, changes, err);
    ort_attention_scale_heads(&e, a);
    if (e.status != ORT_OK || (!ungroup(&e, a) && e.status != ORT_OK))
        return e.status;
    if (c->portable && ort_attention_masks_low(c->graph, &a->terms))
        a->terms = ort_attention_take_keys(c, a);
    (void)ort_attention_uncache(c->graph, a);
    a->terms = ort_attention_take_causal(c, a);
    if (!ort_attention_join(c->graph, a))
        (void)ort_attention_unpack(&e, a);
    ++*changes;
    ort_attention_part_row(&e, a);
    ort_attention_turn_steps(&e, a);
    if (a->terms.keys.id != ORT_ID_NONE)
        ort_attention_lower_keys(&e, a);
    if (a->terms.zeroed) /* of a row of it the operator makes 0 */
        a->terms.fill = ort_emit_number(&e, a->q, -INFINITY);
    return e.status != ORT_OK ? e.status : write(c, &e, a, opset, false);
}

/* ---- an Attention that is there */

/* As it would have been found; false: it is of a kind that isn't written here. */
static bool read_attention(const ort_graph *graph, ort_node *node, ort_attention *a)
{
    static const char *const others[] = {"q_num_heads", "qk_matmul_output_mode",
                                         "softmax_precision", "left_window_size",
                                         "right_window_size"};
    ort_id in[6] = {ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE};
    ort_id out[3] = {ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE};
    if (node->input_count > 6 || node->output_count > 3 || !ort_node_has(node, "scale"))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ort_node_has(node, others[i]))
            return false;
    memcpy(in, node->inputs, sizeof *in * (size_t)node->input_count);
    memcpy(out, node->outputs, sizeof *out * (size_t)node->output_count);
    *a = (ort_attention){
        .root = node, .q = in[0], .k = in[1], .v = in[2], .parted = ORT_ID_NONE,
        .scale = (double)ort_node_attr_float(node, "scale"),
        .softcap = (double)ort_node_attr_float(node, "softcap"), .head_scale = ORT_ID_NONE,
        .terms = {.masks = {in[3]}, .mask_count = in[3] != ORT_ID_NONE, .keep = ORT_ID_NONE,
                  .fill = ORT_ID_NONE, .window = ORT_ID_NONE, .apart = ORT_ID_NONE,
                  .keys = {.id = ORT_ID_NONE}, .causal = ort_node_attr_int(node, "is_causal") != 0},
        .cache = {in[4], in[5], out[1], out[2]}};
    return ort_fact_ranked(graph, a->q, 4) && ort_fact_ranked(graph, a->k, 4) &&
           ort_fact_ranked(graph, a->v, 4);
}

/* Does it take in more of what stands around it? */
static ort_status extend(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_emit e = ort_emit_to(c->graph, err);
    ort_attention a;
    if (!read_attention(c->graph, node, &a))
        return ORT_OK;
    bool causal = a.terms.causal, more = !causal && ungroup(&e, &a);
    more = (!causal && ort_attention_uncache(c->graph, &a)) || more;
    a.terms = ort_attention_take_causal(c, &a);
    more = more || a.terms.causal != causal;
    more = ort_attention_join(c->graph, &a) || ort_attention_unpack(&e, &a) || more;
    if (!more || e.status != ORT_OK)
        return e.status;
    ++*changes;
    return write(c, &e, &a, node->opset, true);
}

/* ---- the pass */

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_attention a;
    ort_node *node;
    const char *why;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (ort_edit_is(node, ONNX, "Attention")) {
            ORT_TRY(extend(c, node, changes, err));
        } else if (ort_edit_is(node, ONNX, "MatMul")) {
            if (ort_attention_match(c, node, &a, &why))
                ORT_TRY(fuse(c, &a, changes, err));
            else if (why)
                ort_pass_note(c, node, "%s", why);
        }
    }
    return ORT_OK;
}

const ort_pass ort_pass_attention_form = {
    .name = "attention_form",
    .level = 2,
    .doc = "softmax(q k + mask) v becomes Attention",
    .apply = apply,
};
