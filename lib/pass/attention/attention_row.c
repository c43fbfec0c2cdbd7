/* attention_row.c - attention of one query, a decoder's step with a cache. Splitting heads off a
 * single row, and putting them together, moves nothing: Transposes are gone by now, and a Reshape
 * is all that is left.
 *
 *     [B,1,H*D] to [B,H,1,D]      of q, and of the k and v that are appended
 *     [B,1,H*D] to [B*H,1,D]      where batch and heads are folded (torch.bmm): q has no form of
 *                                 four dims then, and is taken as it was before (ort_attention.row)
 *     and back                    of the result
 */
#include "base/error.h"
#include "graph/uses.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"

static const ort_type *type_of(const ort_graph *graph, ort_id id)
{
    return &graph->values.data[id]->fact.type;
}

static bool is_number(ort_dim dim, int64_t number)
{
    return ort_dim_known(dim) && dim.size == number;
}

/* Are these one row of heads together, [B,1,H*D], and the same apart, [B,H,1,D]? */
static bool are_heads(const ort_graph *graph, ort_id row, ort_id apart)
{
    const ort_type *from = type_of(graph, row), *to = type_of(graph, apart);
    return ort_attention_ranked(graph, row, 3) && ort_attention_ranked(graph, apart, 4) &&
           ort_dim_equal(from->dim[0], to->dim[0]) && is_number(from->dim[1], 1) &&
           is_number(to->dim[2], 1) && ort_dim_known(to->dim[1]) && ort_dim_known(to->dim[3]) &&
           is_number(from->dim[2], to->dim[1].size * to->dim[3].size);
}

/* The same, folded into the batch, [B*H,1,D], `like` being [B,H,T,D]. */
static bool are_folded(const ort_graph *graph, ort_id row, ort_id folded, ort_id like)
{
    const ort_type *from = type_of(graph, row), *to = type_of(graph, folded);
    const ort_type *heads = type_of(graph, like);
    return ort_attention_ranked(graph, row, 3) && ort_attention_ranked(graph, folded, 3) &&
           ort_attention_ranked(graph, like, 4) && ort_dim_equal(from->dim[0], heads->dim[0]) &&
           is_number(from->dim[1], 1) && is_number(to->dim[1], 1) &&
           ort_dim_known(heads->dim[1]) && heads->dim[1].size > 0 &&
           ort_dim_known(heads->dim[3]) &&
           is_number(to->dim[2], heads->dim[3].size) &&
           is_number(from->dim[2], heads->dim[1].size * heads->dim[3].size);
}

ort_node *ort_attention_row_split(const ort_graph *graph, ort_id id)
{
    ort_node *reshape = ort_edit_producer(graph, id);
    return ort_edit_is(reshape, ONNX, "Reshape") && are_heads(graph, reshape->inputs[0], id)
               ? reshape : NULL;
}

ort_node *ort_attention_row_joined(const ort_graph *graph, ort_id id)
{
    ort_node *reshape = ort_edit_only_reader(graph, id);
    return ort_edit_is(reshape, ONNX, "Reshape") && reshape->inputs[0] == id &&
                   are_heads(graph, reshape->outputs[0], id)
               ? reshape : NULL;
}

ort_id ort_attention_row_unfold(const ort_graph *graph, ort_id id, ort_id k, ort_attention *a)
{
    ort_node *reshape = ort_edit_producer(graph, id);
    if (!ort_edit_is(reshape, ONNX, "Reshape") || !are_folded(graph, reshape->inputs[0], id, k))
        return ORT_ID_NONE;
    a->row = true;
    a->q_heads = type_of(graph, k)->dim[1].size;
    ort_attention_drop(a, reshape);
    return reshape->inputs[0];
}

ort_node *ort_attention_row_unfolded(const ort_graph *graph, ort_id id, ort_id v)
{
    ort_node *reshape = ort_edit_only_reader(graph, id);
    return ort_edit_is(reshape, ONNX, "Reshape") && reshape->inputs[0] == id &&
                   are_folded(graph, reshape->outputs[0], id, v)
               ? reshape : NULL;
}

ort_status ort_attention_part_row(ort_pass_context *c, ort_attention *a, ort_error *err)
{
    ort_id inputs[2] = {a->q};
    if (!a->joined || a->kv_heads)
        return ORT_OK;
    a->parted = a->root->outputs[0];
    if (!a->row)
        return ORT_OK;
    const int64_t list[4] = {0, a->q_heads, 1, type_of(c->graph, a->q)->dim[2].size / a->q_heads};
    ORT_TRY(ort_constant_list(c->graph, list, 4, &inputs[1], err));
    ORT_TRY(ort_edit_add_result(c->graph, "Reshape", inputs, 2, NULL, 0, &a->q, err));
    a->q_heads = 0;
    return ORT_OK;
}
