/* attention_write.c - the operator in the place of what was found: the result has the form and the
 * name that its readers know, and what nobody reads any more goes.
 */
#include "base/error.h"
#include "graph/follow.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/facts.h"
#include "pass/facts/unread.h"

enum { ATTRIBUTES = 9 };

static const int64_t batch_first[3] = {1, 0, 2};

/* ---- before the operator */

void ort_attention_scale_heads(ort_emit *e, ort_attention *a)
{
    if (a->head_scale != ORT_ID_NONE)
        a->q = ort_emit_op2(e, "Mul", a->q, a->head_scale);
    a->head_scale = ORT_ID_NONE;
}

bool ort_attention_unpack(ort_emit *e, ort_attention *a)
{
    int64_t heads;
    if (a->q_heads || a->k_is_rows || a->cache.past_k != ORT_ID_NONE ||
        a->head_scale != ORT_ID_NONE)
        return false;
    ort_id whole = ort_attention_packed(e->graph, a, &heads), parts[3];
    int64_t width = ort_fact_type(e->graph, a->q)->dim[3].size * heads;
    if (whole == ORT_ID_NONE || !ort_attention_join_result(e->graph, a))
        return false;
    ort_attr axis = ort_attr_int("axis", 2);
    bool listed = e->opset >= 13;
    ort_id inputs[2] = {whole};
    if (listed)
        inputs[1] = ort_emit_ints(e, (const int64_t[]){width, width, width}, 3);
    ort_emit_ops(e, "Split", inputs, listed ? 2 : 1, &axis, 1, parts, 3);
    a->q = parts[0];
    a->k = parts[1];
    a->v = parts[2];
    a->q_heads = a->kv_heads = heads;
    return true;
}

void ort_attention_part_row(ort_emit *e, ort_attention *a)
{
    if (!a->joined || a->kv_heads)
        return;
    a->parted = a->root->outputs[0];
    if (!a->row)
        return;
    int64_t heads = a->q_heads, width = ort_fact_type(e->graph, a->q)->dim[2].size;
    a->q = ort_emit_reshape_to(e, a->q, (const int64_t[]){0, heads, 1, width / heads}, 4);
    a->q_heads = 0;
}

void ort_attention_turn_steps(ort_emit *e, ort_attention *a)
{
    ort_id *const parts[3] = {&a->q, &a->k, &a->v};
    for (int i = 0; a->steps && i < 3; i++)
        *parts[i] = ort_emit_transpose(e, *parts[i], batch_first, 3);
}

/* ---- behind it */

/* The result [B,S,H*E] with its heads apart, or its steps first, under the name that readers know;
 * or that of one query [B,H,1,E] with its heads together. */
static void part_result(ort_emit *e, const ort_attention *a, ort_id result)
{
    const ort_type *type = ort_fact_type(e->graph, a->parted);
    bool apart = type->rank == 4;
    int64_t list[4] = {0, !apart, type->dim[2].size, apart ? type->dim[3].size : 0};
    if (a->steps) {
        result = ort_emit_transpose(e, result, batch_first, 3);
        list[1] = apart ? 0 : -1;
    }
    ort_id inputs[2] = {result, ort_emit_ints(e, list, type->rank)};
    ort_emit_op_as(e, "Reshape", inputs, 2, NULL, 0, a->parted);
}

/* The result with zeros where `empty` is true. */
static ort_id zero_empty(ort_emit *e, const ort_attention *a, ort_id empty, ort_id result)
{
    ort_id inputs[3] = {empty, ort_emit_number(e, result, 0), result};
    if (a->parted != ORT_ID_NONE)
        return ort_emit_op(e, "Where", inputs, 3, NULL, 0);
    ort_emit_op_as(e, "Where", inputs, 3, NULL, 0, a->root->outputs[0]);
    return a->root->outputs[0];
}

/* The Concat of past and new rows: its result is the operator's from now on. */
static ort_node *take_over(ort_graph *graph, ort_id present)
{
    ort_node *concat = present == ORT_ID_NONE ? NULL : ort_edit_producer(graph, present);
    if (concat)
        ort_graph_remove_node(graph, concat);
    return concat;
}

/* What the operator has an attribute for. */
static int attributes_of(const ort_attention *a, const ort_op *op, ort_attr set[ATTRIBUTES])
{
    bool microsoft = !strcmp(op->domain, MS), parts = !microsoft && a->q_heads;
    const struct {
        bool given;
        ort_attr attr;
    } all[ATTRIBUTES] = {
        {microsoft, ort_attr_int("num_heads", a->q_heads)},
        {microsoft, ort_attr_int("kv_num_heads", a->kv_heads)},
        {true, ort_attr_float("scale", a->scale)},
        {a->terms.causal, ort_attr_int("is_causal", 1)},
        {a->terms.causal, ort_attr_int("unidirectional", 1)},
        {a->softcap > 0, ort_attr_float("softcap", a->softcap)},
        {a->terms.keys.id != ORT_ID_NONE, ort_attr_float("mask_filter_value", a->terms.keys.low)},
        {parts, ort_attr_int("q_num_heads", a->q_heads)},
        {parts, ort_attr_int("kv_num_heads", a->kv_heads)},
    };
    int count = 0;
    for (int i = 0; i < ATTRIBUTES; i++)
        if (all[i].given && ort_op_has_attr(op, all[i].attr.name))
            set[count++] = all[i].attr;
    return count;
}

/* How many of an operator's inputs or outputs there are, up to the last that isn't absent. */
static int trimmed(const ort_id *ids, int count)
{
    while (count > 1 && ids[count - 1] == ORT_ID_NONE)
        count--;
    return count;
}

ort_status ort_attention_replace(ort_pass_context *c, const ort_attention *a,
                                 const ort_attention_operator *o, ort_id empty, ort_error *err)
{
    ort_emit e = ort_emit_to(c->graph, err);
    const ort_op *op = ort_registry_find(c->graph->model->registry, o->domain, o->op_type,
                                         o->opset);
    bool last = a->parted == ORT_ID_NONE && empty == ORT_ID_NONE;
    ort_node *root = a->root, *made;
    ort_id outputs[3] = {last ? root->outputs[0] : ort_graph_add_value(c->graph, ""),
                         a->cache.present_k, a->cache.present_v};
    ort_attr set[ATTRIBUTES];
    if (outputs[0] == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *outputs);
    ort_node_spec spec = {.domain = o->domain, .op_type = o->op_type, .opset = o->opset,
                          .inputs = o->inputs, .input_count = trimmed(o->inputs, o->input_count),
                          .outputs = outputs, .output_count = trimmed(outputs, 3), .set = set,
                          .set_count = attributes_of(a, op, set), .name = root->name};
    spec.origin = ort_edit_origin(c->graph, a->softmax ? a->softmax : root, root);
    ort_graph_remove_node(c->graph, root);
    ort_node *concats[2] = {take_over(c->graph, a->cache.present_k),
                            take_over(c->graph, a->cache.present_v)};
    ORT_TRY(ort_edit_add_node(c->graph, &spec, &made, err));
    for (int i = 0; i < 2; i++)
        if (concats[i])
            ORT_TRY(ort_follow_merge(c->graph, made, concats[i], err));
    ort_id result = empty == ORT_ID_NONE ? outputs[0] : zero_empty(&e, a, empty, outputs[0]);
    if (a->parted != ORT_ID_NONE)
        part_result(&e, a, result);
    return e.status != ORT_OK ? e.status : ort_unread_sweep(c->graph, made, root, err);
}
