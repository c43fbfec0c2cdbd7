/* attention_group.c - causal attention with fewer heads of keys than of queries becomes
 * GroupQueryAttention of com.microsoft, with its cache.
 *
 * The operator wants to be told how many keys there are, past ones included, as
 * total_sequence_length [1], and the number of the last one for each row of the batch, seqlens_k
 * [B], both int32: they are made of shapes, once for all layers. onnxruntime 1.31 takes past keys
 * together with more than one new token only for a batch of 1, so that must be known.
 */
#include "base/error.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"
#include "pass/facts/dim_source.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return &c->graph->values.data[id]->fact.type;
}

static bool is_one(ort_dim dim)
{
    return ort_dim_known(dim) && dim.size == 1;
}

/* Why it can't be; heads are together by now. NULL: it can. */
static const char *misfit(const ort_pass_context *c, const ort_attention *a)
{
    const ort_type *q = type_of(c, a->q), *k = type_of(c, a->k), *v = type_of(c, a->v);
    if (q->dtype != ORT_DTYPE_FLOAT)
        return "GroupQueryAttention would fit if it were float";
    if (!a->causal || a->mask_count || a->window != ORT_ID_NONE || a->keep != ORT_ID_NONE)
        return "GroupQueryAttention would fit if its mask only kept later keys out";
    if (!ort_dim_known(q->dim[2]) || !ort_dim_known(k->dim[2]) ||
        !ort_dim_equal(k->dim[2], v->dim[2]) ||
        q->dim[2].size * a->kv_heads != k->dim[2].size * a->q_heads)
        return "heads of queries, keys and values aren't of the same size";
    if (a->past_k != ORT_ID_NONE && !is_one(q->dim[0]) && !is_one(q->dim[1]))
        return "GroupQueryAttention would fit if the batch were 1 (--dim)";
    return ort_model_opset(c->graph->model, ONNX) < 15 ? "its lengths need Shape of opset 15"
                                                       : NULL;
}

/* One dimension of `like` as [1], read where layers share it. */
static ort_status size_of(ort_pass_context *c, ort_id like, int axis, ort_id *size, ort_error *err)
{
    ort_dim dim = type_of(c, like)->dim[axis];
    int64_t at = axis;
    if (ort_dim_known(dim))
        return ort_constant_list(c->graph, &dim.size, 1, size, err);
    (void)ort_dim_source(c, dim, &like, &at);
    ort_attr ends[2] = {{.name = "start", .type = ORT_ATTR_INT, .i = at},
                        {.name = "end", .type = ORT_ATTR_INT, .i = at + 1}};
    return ort_edit_add_result(c->graph, "Shape", &like, 1, ends, 2, size, err);
}

static ort_status lengths(ort_pass_context *c, const ort_attention *a, ort_id *each, ort_id *total,
                          ort_error *err)
{
    const int64_t one = 1;
    ort_attr to = {.name = "to", .type = ORT_ATTR_INT, .i = ORT_DTYPE_INT32};
    ort_id sum[2], less[2], expand[2];
    ORT_TRY(size_of(c, a->q, 1, &sum[0], err));
    if (a->past_k != ORT_ID_NONE) {
        ORT_TRY(size_of(c, a->past_k, 2, &sum[1], err));
        ORT_TRY(ort_edit_add_result(c->graph, "Add", sum, 2, NULL, 0, &sum[0], err));
    }
    ORT_TRY(ort_edit_add_result(c->graph, "Cast", sum, 1, &to, 1, total, err));
    less[0] = sum[0];
    ORT_TRY(ort_constant_list(c->graph, &one, 1, &less[1], err));
    ORT_TRY(ort_edit_add_result(c->graph, "Sub", less, 2, NULL, 0, &less[0], err));
    ORT_TRY(ort_edit_add_result(c->graph, "Cast", less, 1, &to, 1, &expand[0], err));
    ORT_TRY(size_of(c, a->q, 0, &expand[1], err));
    return ort_edit_add_result(c->graph, "Expand", expand, 2, NULL, 0, each, err);
}

static ort_status write(ort_pass_context *c, const ort_attention *a, ort_error *err)
{
    ort_id inputs[7] = {a->q, a->k, a->v, a->past_k, a->past_v};
    ort_id outputs[3] = {ORT_ID_NONE, a->present_k, a->present_v};
    ort_attr set[4] = {{.name = "num_heads", .type = ORT_ATTR_INT, .i = a->q_heads},
                       {.name = "kv_num_heads", .type = ORT_ATTR_INT, .i = a->kv_heads},
                       {.name = "scale", .type = ORT_ATTR_FLOAT, .f = (float)a->scale},
                       {.name = "softcap", .type = ORT_ATTR_FLOAT, .f = (float)a->softcap}};
    ORT_TRY(lengths(c, a, &inputs[5], &inputs[6], err));
    for (int i = 1; i < 3; i++) {
        if (outputs[i] == ORT_ID_NONE)
            outputs[i] = ort_graph_add_value(c->graph, "");
        if (outputs[i] == ORT_ID_NONE)
            return ort_error_memory(err, sizeof *outputs);
    }
    ort_node_spec spec = {.domain = MS, .op_type = "GroupQueryAttention", .inputs = inputs,
                          .input_count = 7, .outputs = outputs, .output_count = 3, .set = set,
                          .set_count = a->softcap > 0 ? 4 : 3, .opset = 1};
    return ort_attention_replace(c, a, &spec, outputs, err);
}

ort_status ort_attention_fuse_group(ort_pass_context *c, const ort_attention *found, bool *done,
                                    ort_error *err)
{
    ort_attention a = *found;
    *done = false;
    if (!ort_attention_ungroup(c, &a) || type_of(c, a.k)->rank != 4 || type_of(c, a.v)->rank != 4)
        return ORT_OK;
    (void)ort_attention_uncache(c, &a);
    (void)ort_attention_is_causal(c, &a);
    if (!ort_attention_join(c->graph, &a)) {
        ort_pass_note(c, found->root,
                      "heads aren't split and put together as GroupQueryAttention does");
        return ORT_OK;
    }
    const char *why = misfit(c, &a);
    if (why) {
        ort_pass_note(c, found->root, "%s", why);
        return ORT_OK;
    }
    if (!ort_pass_opset(c, found->root, MS, "GroupQueryAttention", 1))
        return ORT_OK;
    *done = true;
    return write(c, &a, err);
}
