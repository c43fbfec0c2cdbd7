/* attention_form.c - softmax(q k^T scale + mask) v spelled in products becomes Attention (of
 * opset 23), or MultiHeadAttention or GroupQueryAttention of com.microsoft.
 *
 * What attention_match.h finds around it goes in as well. MultiHeadAttention has no groups of heads
 * (attention_group.c) and no softcap; it takes the keys that count (attention_keys.c), wants q, and
 * gives its result, with the heads together, and its bias in full along the query rows. An
 * Attention that is there already is looked at again: what stands around it may have become plain
 * since it was written.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return &c->graph->values.data[id]->fact.type;
}

/* ---- nodes on the way to the operator's inputs */

/* q times a->head_scale, which a product with k is as well. */
static ort_status scale_heads(ort_pass_context *c, ort_attention *a, ort_error *err)
{
    ort_id inputs[2] = {a->q, a->head_scale};
    if (a->head_scale == ORT_ID_NONE)
        return ORT_OK;
    a->head_scale = ORT_ID_NONE;
    return ort_edit_add_result(c->graph, "Mul", inputs, 2, NULL, 0, &a->q, err);
}

/* [B,T,D] as [B,1,T,D]. */
static ort_status split_one(ort_pass_context *c, ort_id *id, ort_error *err)
{
    static const int64_t one = 1;
    ort_attr axes = {.name = "axes", .type = ORT_ATTR_INTS, .ints = &one, .count = 1};
    bool listed = ort_model_opset(c->graph->model, ONNX) >= 13;
    ort_id inputs[2] = {*id};
    if (listed)
        ORT_TRY(ort_constant_list(c->graph, &one, 1, &inputs[1], err));
    return ort_edit_add_result(c->graph, "Unsqueeze", inputs, listed ? 2 : 1, &axes, !listed, id,
                               err);
}

static ort_status keys_of(ort_pass_context *c, const ort_attention *a, ort_id *k, ort_error *err)
{
    static const int64_t order[4] = {0, 2, 1, 3};
    ort_attr perm = {.name = "perm", .type = ORT_ATTR_INTS, .ints = order, .count = 4};
    *k = a->k;
    if (!a->k_is_rows || a->kv_heads)
        return ORT_OK;
    if (type_of(c, a->k)->rank == 3)
        return split_one(c, k, err);
    return ort_edit_add_result(c->graph, "Transpose", &a->k, 1, &perm, 1, k, err);
}

/* Keys or values of groups without the dimension along which they were repeated. */
static ort_status squeezed(ort_pass_context *c, ort_id *id, ort_error *err)
{
    const int64_t two = 2;
    ort_id inputs[2] = {*id};
    ort_attr axes = {.name = "axes", .type = ORT_ATTR_INTS, .ints = &two, .count = 1};
    bool listed = ort_model_opset(c->graph->model, ONNX) >= 13;
    if (type_of(c, *id)->rank == 4)
        return ORT_OK;
    if (listed)
        ORT_TRY(ort_constant_list(c->graph, &two, 1, &inputs[1], err));
    return ort_edit_add_result(c->graph, "Squeeze", inputs, listed ? 2 : 1, &axes, !listed, id,
                               err);
}

static ort_status ungroup(ort_pass_context *c, ort_attention *a, bool *done, ort_error *err)
{
    *done = ort_attention_ungroup(c, a);
    if (!*done)
        return ORT_OK;
    ORT_TRY(squeezed(c, &a->k, err));
    return squeezed(c, &a->v, err);
}

/* ---- heads together */

/* q, k and v out of one value: it is split along its last axis. */
static ort_status unpack(ort_pass_context *c, ort_attention *a, bool *done, ort_error *err)
{
    ort_attention before = *a;
    int64_t heads = 0;
    ort_id whole = a->q_heads || a->k_is_rows || a->past_k != ORT_ID_NONE ||
                           a->head_scale != ORT_ID_NONE
                       ? ORT_ID_NONE : ort_attention_packed(c->graph, a, &heads);
    *done = whole != ORT_ID_NONE && ort_attention_join_result(c->graph, a);
    if (!*done) {
        *a = before;
        return ORT_OK;
    }
    int64_t width = type_of(c, a->q)->dim[3].size * heads;
    ort_id sizes, inputs[2] = {whole}, parts[3];
    const int64_t list[3] = {width, width, width};
    bool listed = ort_model_opset(c->graph->model, ONNX) >= 13;
    ort_attr axis = {.name = "axis", .type = ORT_ATTR_INT, .i = 2};
    if (listed)
        ORT_TRY(ort_constant_list(c->graph, list, 3, &sizes, err));
    inputs[1] = listed ? sizes : ORT_ID_NONE;
    for (int i = 0; i < 3; i++)
        if ((parts[i] = ort_graph_add_value(c->graph, "")) == ORT_ID_NONE)
            return ort_error_memory(err, sizeof *parts);
    ort_node_spec spec = {.domain = ONNX, .op_type = "Split", .name = "", .inputs = inputs,
                          .input_count = listed ? 2 : 1, .outputs = parts, .output_count = 3,
                          .set = &axis, .set_count = 1};
    ORT_TRY(ort_edit_add_node(c->graph, &spec, NULL, err));
    a->q = parts[0];
    a->k = parts[1];
    a->v = parts[2];
    a->q_heads = a->kv_heads = heads;
    return ORT_OK;
}

/* ---- the operator */

static int trimmed(const ort_id *ids, int count)
{
    while (count > 1 && ids[count - 1] == ORT_ID_NONE)
        count--;
    return count;
}

/* The number of scores that are put to 0 afterwards: of a row of them the operator makes 0. */
static ort_status fill_zeroed(ort_pass_context *c, ort_attention *a, ort_error *err)
{
    return a->zeroed == ORT_ID_NONE
               ? ORT_OK : ort_constant_filled(c->graph, type_of(c, a->q)->dtype, 0, NULL,
                                              -INFINITY, &a->fill, err);
}

static ort_status write_attention(ort_pass_context *c, const ort_attention *a, int opset,
                                  ort_error *err)
{
    ort_id inputs[6] = {a->q, ORT_ID_NONE, a->v, ORT_ID_NONE, a->past_k, a->past_v};
    ort_id outputs[3] = {ORT_ID_NONE, a->present_k, a->present_v};
    ort_attr set[5] = {{.name = "scale", .type = ORT_ATTR_FLOAT, .f = (float)a->scale}};
    int set_count = 1;
    ORT_TRY(keys_of(c, a, &inputs[1], err));
    ORT_TRY(ort_attention_mask(c, a, &inputs[3], err));
    if (c->portable && !a->settled)
        ORT_TRY(ort_attention_raise_mask(c, &inputs[3], err));
    if (c->portable && inputs[3] != ORT_ID_NONE) /* onnxruntime 1.31 doesn't broadcast rows */
        ORT_TRY(ort_attention_full_rows(c, a->q, true, &inputs[3], err));
    if (a->causal)
        set[set_count++] = (ort_attr){.name = "is_causal", .type = ORT_ATTR_INT, .i = 1};
    if (a->softcap > 0)
        set[set_count++] = (ort_attr){.name = "softcap", .type = ORT_ATTR_FLOAT,
                                      .f = (float)a->softcap};
    if (a->q_heads) {
        set[set_count++] = (ort_attr){.name = "q_num_heads", .type = ORT_ATTR_INT,
                                      .i = a->q_heads};
        set[set_count++] = (ort_attr){.name = "kv_num_heads", .type = ORT_ATTR_INT,
                                      .i = a->kv_heads};
    }
    ort_node_spec spec = {.domain = ONNX, .op_type = "Attention", .inputs = inputs,
                          .input_count = trimmed(inputs, 6), .outputs = outputs,
                          .output_count = trimmed(outputs, 3), .set = set, .set_count = set_count,
                          .opset = opset};
    return ort_attention_replace(c, a, &spec, outputs, err);
}

/* ---- MultiHeadAttention */

/* Why MultiHeadAttention can't do it, whatever stands around; or NULL. */
static const char *multi_fits(const ort_pass_context *c, const ort_attention *a)
{
    if (type_of(c, a->q)->dtype != ORT_DTYPE_FLOAT)
        return "MultiHeadAttention would fit if it were float";
    if (a->softcap > 0)
        return "MultiHeadAttention has no softcap";
    if (a->shared)
        return "MultiHeadAttention has a head of keys for each of queries";
    if (a->open && !ort_attention_empty_fits(c, a))
        return "MultiHeadAttention would fit if its mask were finite, or one for all heads";
    if (a->zeroed != ORT_ID_NONE && !ort_attention_has_rows(c->graph, a))
        return "MultiHeadAttention would fit if the condition were the same for all heads";
    return NULL;
}

static ort_status write_multi(ort_pass_context *c, ort_attention *a, ort_error *err)
{
    ort_id inputs[8] = {a->q, a->k, a->v, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, a->past_k,
                        a->past_v};
    ort_id outputs[3] = {ORT_ID_NONE, a->present_k, a->present_v};
    ort_attr set[4] = {{.name = "num_heads", .type = ORT_ATTR_INT, .i = a->q_heads},
                       {.name = "scale", .type = ORT_ATTR_FLOAT, .f = (float)a->scale}};
    int set_count = 2;
    if (a->causal)
        set[set_count++] = (ort_attr){.name = "unidirectional", .type = ORT_ATTR_INT, .i = 1};
    if (a->keys.id != ORT_ID_NONE)
        set[set_count++] = (ort_attr){.name = "mask_filter_value", .type = ORT_ATTR_FLOAT,
                                      .f = (float)a->keys.low};
    ORT_TRY(ort_attention_write_keys(c, a, &inputs[4], err));
    ORT_TRY(ort_attention_mask(c, a, &inputs[5], err));
    if (a->open)
        ORT_TRY(ort_attention_find_empty(c, inputs[5], &a->empty, err));
    if (inputs[5] != ORT_ID_NONE)
        ORT_TRY(ort_attention_full_rows(c, a->q, false, &inputs[5], err));
    bool packed;
    ORT_TRY(ort_attention_fuse_packed(c, a, inputs[5], inputs[4], &packed, err));
    if (packed)
        return ORT_OK;
    ort_node_spec spec = {.domain = MS, .op_type = "MultiHeadAttention", .inputs = inputs,
                          .input_count = trimmed(inputs, 8), .outputs = outputs,
                          .output_count = trimmed(outputs, 3), .set = set,
                          .set_count = set_count, .opset = 1};
    return ort_attention_replace(c, a, &spec, outputs, err);
}

/* A value of four dims, of rows [B,S,H,D] or heads [B,H,S,D] first, with its heads together. */
static ort_status gather_heads(ort_pass_context *c, bool rows, ort_id *id, ort_error *err)
{
    static const int64_t order[4] = {0, 2, 1, 3};
    const ort_attr perm = {.name = "perm", .type = ORT_ATTR_INTS, .ints = order, .count = 4};
    const ort_type *type = type_of(c, *id);
    const int64_t list[3] = {0, 0, type->dim[rows ? 2 : 1].size * type->dim[3].size};
    ort_id inputs[2] = {*id};
    if (!rows)
        ORT_TRY(ort_edit_add_result(c->graph, "Transpose", id, 1, &perm, 1, &inputs[0], err));
    ORT_TRY(ort_constant_list(c->graph, list, 3, &inputs[1], err));
    return ort_edit_add_result(c->graph, "Reshape", inputs, 2, NULL, 0, id, err);
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

/* k and v as [B,G,T,D], q and the result with heads together: MultiHeadAttention takes it so. Where
 * the heads of q weren't split off (but normalized, scaled, cut), they are put together, and so are
 * those of k and v where k has rows first or heads of another size. */
static ort_status join_queries(ort_pass_context *c, ort_attention *a, bool *done, ort_error *err)
{
    ort_attention before = *a;
    int64_t heads;
    if (a->q_heads || a->past_k != ORT_ID_NONE)
        return ORT_OK;
    ort_id q = a->head_scale == ORT_ID_NONE ? ort_attention_unsplit(c->graph, a->q, &heads, a)
                                            : ORT_ID_NONE;
    bool apart = q == ORT_ID_NONE, gather = a->k_is_rows || !same_size(c, a);
    *done = (!apart || knows_heads(c, a->q, 1)) && (!gather || knows_keys(c, a)) &&
            ort_attention_join_result(c->graph, a);
    if (!*done) {
        *a = before;
        return ORT_OK;
    }
    if (apart) {
        heads = type_of(c, a->q)->dim[1].size;
        ORT_TRY(scale_heads(c, a, err));
        q = a->q;
        ORT_TRY(gather_heads(c, false, &q, err));
    }
    if (gather) {
        if (type_of(c, a->k)->rank == 4)
            ORT_TRY(gather_heads(c, a->k_is_rows, &a->k, err));
        ORT_TRY(gather_heads(c, false, &a->v, err));
    }
    a->q = q;
    a->q_heads = a->kv_heads = heads;
    a->k_is_rows = false;
    return ORT_OK;
}

static ort_status fuse_multi(ort_pass_context *c, ort_attention *a, int *changes, ort_error *err)
{
    bool done = false;
    ort_attention plain = *a;
    ORT_TRY(ort_attention_fuse_group(c, a, &done, err));
    *changes += done;
    if (done)
        return ORT_OK;
    a->open = ort_attention_has_empty(c, a);
    if (!a->open)
        (void)ort_attention_take_keys(c, a);
    plain = *a;
    const char *why = multi_fits(c, a);
    int opset = why ? 0 : ort_pass_opset(c, a->root, MS, "MultiHeadAttention", 1);
    if (why)
        ort_pass_note(c, a->root, "%s", why);
    if (!opset)
        return ORT_OK;
    (void)ort_attention_uncache(c, a);
    if (!a->open)
        (void)ort_attention_is_causal(c, a);
    done = ort_attention_join(c->graph, a) && a->q_heads == a->kv_heads;
    if (!done) {
        *a = plain; /* with a cache the new keys must have their heads together */
        ORT_TRY(unpack(c, a, &done, err));
        if (!done && !a->steps && !a->row)
            ORT_TRY(join_queries(c, a, &done, err));
        if (a->row)
            a->kv_heads = a->q_heads;
        done = done || a->steps || (a->row && same_size(c, a));
    }
    if (done) {
        ++*changes;
        ORT_TRY(ort_attention_turn_steps(c, a, err));
        ORT_TRY(ort_attention_find_rows(c, a, err));
        return write_multi(c, a, err);
    }
    ort_pass_note(c, plain.root, "heads aren't split and put together as MultiHeadAttention does");
    return ORT_OK;
}

/* ---- the pass */

static ort_status fuse(ort_pass_context *c, ort_attention *a, int *changes, ort_error *err)
{
    bool done;
    int opset = ort_pass_opset(c, a->root, ONNX, "Attention", 23);
    if (!opset)
        return fuse_multi(c, a, changes, err);
    ORT_TRY(scale_heads(c, a, err));
    ORT_TRY(ungroup(c, a, &done, err));
    if (c->portable && ort_attention_masks_low(c->graph, a))
        (void)ort_attention_take_keys(c, a);
    (void)ort_attention_uncache(c, a);
    (void)ort_attention_is_causal(c, a);
    if (!ort_attention_join(c->graph, a))
        ORT_TRY(unpack(c, a, &done, err));
    ++*changes;
    ORT_TRY(ort_attention_part_row(c, a, err));
    ORT_TRY(ort_attention_turn_steps(c, a, err));
    if (a->keys.id != ORT_ID_NONE)
        ORT_TRY(ort_attention_lower_keys(c, a, err));
    ORT_TRY(fill_zeroed(c, a, err));
    return write_attention(c, a, opset, err);
}

/* An Attention as it would have been found; false: it is of a kind that isn't written here. */
static bool read_attention(ort_node *node, ort_attention *a)
{
    ort_id in[6] = {ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE};
    if (node->input_count > 6 || node->output_count > 3 || ort_node_has(node, "q_num_heads") ||
        ort_node_has(node, "qk_matmul_output_mode") || ort_node_has(node, "softmax_precision") ||
        ort_node_has(node, "left_window_size") || ort_node_has(node, "right_window_size") ||
        !ort_node_has(node, "scale"))
        return false;
    memcpy(in, node->inputs, sizeof *in * (size_t)node->input_count);
    *a = (ort_attention){.root = node, .q = in[0], .k = in[1], .v = in[2], .masks = {in[3]},
                         .mask_count = in[3] != ORT_ID_NONE, .window = ORT_ID_NONE,
                         .keep = ORT_ID_NONE, .fill = ORT_ID_NONE, .parted = ORT_ID_NONE,
                         .keys = {.id = ORT_ID_NONE}, .empty = ORT_ID_NONE,
                         .head_scale = ORT_ID_NONE,
                         .scale = (double)ort_node_float(node, "scale", 1),
                         .softcap = (double)ort_node_float(node, "softcap", 0), .past_k = in[4],
                         .past_v = in[5], .causal = ort_node_int(node, "is_causal", 0) != 0,
                         .settled = true,
                         .zeroed = ORT_ID_NONE, .core = {node},
                         .core_count = 1};
    a->present_k = node->output_count > 1 ? node->outputs[1] : ORT_ID_NONE;
    a->present_v = node->output_count > 2 ? node->outputs[2] : ORT_ID_NONE;
    return true;
}

/* An Attention that is there: does it take in more of what stands around it? */
static ort_status extend(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_attention a;
    bool unpacked = false;
    if (!read_attention(node, &a) || !ort_attention_ranked(c->graph, a.q, 4) ||
        !ort_attention_ranked(c->graph, a.k, 4) || !ort_attention_ranked(c->graph, a.v, 4))
        return ORT_OK;
    bool more = false;
    if (!a.causal)
        ORT_TRY(ungroup(c, &a, &more, err));
    more = (!a.causal && ort_attention_uncache(c, &a)) || more;
    more = ort_attention_is_causal(c, &a) || more;
    if (ort_attention_join(c->graph, &a))
        more = true;
    else
        ORT_TRY(unpack(c, &a, &unpacked, err));
    if (!more && !unpacked)
        return ORT_OK;
    ++*changes;
    return write_attention(c, &a, node->opset, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_attention a;
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (ort_edit_is(node, ONNX, "Attention")) {
            ORT_TRY(extend(c, node, changes, err));
        } else if (ort_edit_is(node, ONNX, "MatMul")) {
            if (ort_attention_match(c, node, &a))
                ORT_TRY(fuse(c, &a, changes, err));
            else if (a.why)
                ort_pass_note(c, node, "%s", a.why);
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
