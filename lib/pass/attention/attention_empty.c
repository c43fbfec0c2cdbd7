/* attention_empty.c - rows that a mask may leave no key, where the model says that they give 0
 * (ort_attention.guarded) and the operator doesn't: softmax of nothing but -inf is no number.
 *
 *     Where(ReduceMax(mask) == -inf, 0, MultiHeadAttention(q, k, v, mask))
 *
 * A mask that is the same for all heads says it of whole rows of the result [B,S,H*E]; what is made
 * of the mask alone is shared by layers that share it. A mask that keeps only later keys out, or
 * that is finite, leaves no row empty.
 */
#include <math.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return &c->graph->values.data[id]->fact.type;
}

bool ort_attention_has_empty(const ort_pass_context *c, const ort_attention *a)
{
    ort_attention with_keys = *a, causal = *a;
    if (!a->guarded)
        return false;
    (void)ort_attention_take_keys(c, &with_keys);
    if (ort_attention_masks_finitely(c, &with_keys))
        return false;
    (void)ort_attention_uncache(c, &causal);
    return !ort_attention_is_causal(c, &causal) || causal.mask_count ||
           causal.keep != ORT_ID_NONE || causal.keys.id != ORT_ID_NONE ||
           causal.window != ORT_ID_NONE;
}

/* Is it the same for all heads? */
static bool is_of_rows(const ort_pass_context *c, ort_id mask)
{
    const ort_type *type = type_of(c, mask);
    ort_dim heads = type->rank > 2 ? type->dim[type->rank - 3] : ort_dim_of(1);
    return ort_dim_known(heads) && heads.size == 1;
}

bool ort_attention_empty_fits(const ort_pass_context *c, const ort_attention *a)
{
    for (int i = 0; i < a->mask_count; i++)
        if (!is_of_rows(c, a->masks[i]))
            return false;
    return a->window == ORT_ID_NONE && (a->keep == ORT_ID_NONE || is_of_rows(c, a->keep));
}

ort_status ort_attention_find_empty(ort_pass_context *c, ort_id mask, ort_id *empty,
                                    ort_error *err)
{
    static const int64_t last = -1, heads = 1;
    int64_t opset = ort_model_opset(c->graph->model, ONNX);
    ort_attr axes = {.name = "axes", .type = ORT_ATTR_INTS, .ints = &last, .count = 1};
    ort_id reduce[2] = {mask}, equal[2], squeeze[2];
    if (opset >= 18)
        ORT_TRY(ort_constant_list(c->graph, &last, 1, &reduce[1], err));
    ORT_TRY(ort_edit_add_result(c->graph, "ReduceMax", reduce, 1 + (opset >= 18), &axes,
                                opset < 18, &equal[0], err));
    ORT_TRY(ort_constant_filled(c->graph, type_of(c, mask)->dtype, 0, NULL, -INFINITY, &equal[1],
                                err));
    ORT_TRY(ort_edit_add_result(c->graph, "Equal", equal, 2, NULL, 0, empty, err));
    if (type_of(c, mask)->rank < 4)
        return ORT_OK;
    squeeze[0] = *empty;
    axes.ints = &heads;
    if (opset >= 13)
        ORT_TRY(ort_constant_list(c->graph, &heads, 1, &squeeze[1], err));
    return ort_edit_add_result(c->graph, "Squeeze", squeeze, 1 + (opset >= 13), &axes, opset < 13,
                               empty, err);
}

ort_status ort_attention_zero_empty(ort_pass_context *c, ort_id empty, ort_id result,
                                    ort_id *zeroed, ort_error *err)
{
    ort_id where[3] = {empty, ORT_ID_NONE, result};
    ORT_TRY(ort_constant_filled(c->graph, type_of(c, result)->dtype, 0, NULL, 0, &where[1], err));
    ort_node_spec spec = {.domain = ONNX, .op_type = "Where", .name = "", .inputs = where,
                          .input_count = 3, .outputs = zeroed, .output_count = 1};
    if (*zeroed == ORT_ID_NONE &&
        (*zeroed = ort_graph_add_value(c->graph, "")) == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *zeroed);
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}
