/* attention_behind.c - what stands between the Softmax of an attention and the product with v:
 *
 *     Reshape [B*H,S,T]         for torch.bmm, where masks were added to [B,H,S,T]
 *     Where(IsNaN(p), 0, p)     PyTorch's guard of rows that a mask of -inf leaves no key
 *     Where(drop, 0, p)         DeBERTa's, drop being the condition that lowered the scores
 *
 * The first two operators do by themselves. So does Attention of opset 23 with the third, where the
 * scores are lowered to -infinity; MultiHeadAttention gives the mean of all values to a row without
 * a key, so those rows are put to 0 afterwards, what is dropped in others having no weight anyway:
 *
 *     Where(Reshape(ReduceMin(Cast(drop)) == 1, [B,S,1]), 0, y)
 */
#include "base/error.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"

static bool is_zero(const ort_graph *graph, const ort_node *node, int slot)
{
    const ort_tensor *t = ort_edit_constant(graph, node, slot);
    return t && ort_tensor_count(t) == 1 && ort_constant_is_all(t, 0);
}

/* Where(IsNaN(p), 0, p): its p, or ORT_ID_NONE. */
static ort_id unguarded(const ort_graph *graph, ort_node *node, ort_attention *a)
{
    ort_node *nan = ort_edit_producer(graph, node->inputs[0]);
    const ort_graph_value *p = graph->values.data[node->inputs[2]];
    if (!ort_edit_is(nan, ONNX, "IsNaN") || nan->inputs[0] != node->inputs[2] ||
        !is_zero(graph, node, 1) || ort_edit_only_reader(graph, nan->outputs[0]) != node ||
        p->is_output || p->use_count != 2)
        return ORT_ID_NONE;
    a->core[a->core_count++] = node;
    a->core[a->core_count++] = nan;
    a->guarded = true;
    return node->inputs[2];
}

/* Where(condition, 0, p) or Where(condition, p, 0): its p, or ORT_ID_NONE. */
static ort_id unzeroed(const ort_graph *graph, ort_node *node, ort_attention *a)
{
    int slot = is_zero(graph, node, 1) ? 2 : 1;
    if (!is_zero(graph, node, 3 - slot) ||
        ort_edit_only_reader(graph, node->inputs[slot]) != node)
        return ORT_ID_NONE;
    a->core[a->core_count++] = node;
    a->zeroed = node->inputs[0];
    a->zeroed_where_true = slot == 2;
    return node->inputs[slot];
}

ort_node *ort_attention_read_behind(const ort_graph *graph, ort_attention *a, ort_id *wide)
{
    ort_id id = a->root->inputs[0];
    const ort_node *reader = a->root;
    ort_node *node = ort_edit_producer(graph, id);
    *wide = ORT_ID_NONE;
    if (ort_edit_is(node, ONNX, "Reshape") && ort_edit_only_reader(graph, id) == reader &&
        ort_attention_folds(graph, node->inputs[0], id)) {
        a->core[a->core_count++] = node;
        reader = node;
        *wide = id = node->inputs[0];
    }
    node = ort_edit_producer(graph, id);
    if (ort_edit_is(node, ONNX, "Where") && ort_edit_only_reader(graph, id) == reader) {
        ort_id p = unguarded(graph, node, a);
        if (p == ORT_ID_NONE)
            p = unzeroed(graph, node, a);
        reader = p == ORT_ID_NONE || a->guarded ? reader : node;
        id = p == ORT_ID_NONE ? id : p;
    }
    node = ort_edit_producer(graph, id);
    if (ort_edit_is(node, ONNX, "Softmax") && !a->guarded &&
        ort_edit_only_reader(graph, id) != reader)
        a->why = "the probabilities are read elsewhere";
    return node;
}

/* ---- rows without a key */

bool ort_attention_has_rows(const ort_graph *graph, const ort_attention *a)
{
    const ort_type *keep = &graph->values.data[a->keep]->fact.type;
    return keep->rank == 4 && ort_dim_known(keep->dim[1]) && keep->dim[1].size == 1;
}

ort_status ort_attention_find_rows(ort_pass_context *c, ort_attention *a, ort_error *err)
{
    const int64_t last = -1, dims[3] = {0, -1, 1};
    bool listed = ort_model_opset(c->graph->model, ONNX) >= 18;
    ort_attr to = {.name = "to", .type = ORT_ATTR_INT, .i = ORT_DTYPE_FLOAT};
    ort_attr axes = {.name = "axes", .type = ORT_ATTR_INTS, .ints = &last, .count = 1};
    ort_id reduce[2] = {a->keep}, equal[2], reshape[2];
    if (a->zeroed == ORT_ID_NONE)
        return ORT_OK;
    ORT_TRY(ort_edit_add_result(c->graph, "Cast", reduce, 1, &to, 1, &reduce[0], err));
    if (listed)
        ORT_TRY(ort_constant_list(c->graph, &last, 1, &reduce[1], err));
    ORT_TRY(ort_edit_add_result(c->graph, a->keep_is_inverse ? "ReduceMin" : "ReduceMax", reduce,
                                listed ? 2 : 1, &axes, !listed, &equal[0], err));
    ORT_TRY(ort_constant_filled(c->graph, ORT_DTYPE_FLOAT, 0, NULL, a->keep_is_inverse, &equal[1],
                                err));
    ORT_TRY(ort_edit_add_result(c->graph, "Equal", equal, 2, NULL, 0, &reshape[0], err));
    ORT_TRY(ort_constant_list(c->graph, dims, 3, &reshape[1], err));
    return ort_edit_add_result(c->graph, "Reshape", reshape, 2, NULL, 0, &a->empty, err);
}
