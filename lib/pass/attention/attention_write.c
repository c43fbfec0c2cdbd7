/* attention_write.c - the operator in the place of what was matched: what nobody reads any more
 * goes, and the result has the form and the name that its readers know.
 */
#include "base/error.h"
#include "graph/follow.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"

static bool unread(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->outputs[i]);
        if (v && (v->is_output || v->use_count > 0))
            return false;
    }
    return true;
}

/* The result [B,S,H*E] with its heads apart, under the name that readers know; or that of one query
 * [B,H,1,E] with its heads together. */
static ort_status part_result(ort_pass_context *c, ort_id result, ort_id parted, ort_error *err)
{
    const ort_type *type = &c->graph->values.data[parted]->fact.type;
    const int64_t list[4] = {0, type->rank == 3, type->dim[2].size, type->dim[3].size};
    ort_id inputs[2] = {result};
    ORT_TRY(ort_constant_list(c->graph, list, type->rank, &inputs[1], err));
    ort_node_spec spec = {.domain = ONNX, .op_type = "Reshape", .name = "", .inputs = inputs,
                          .input_count = 2, .outputs = &parted, .output_count = 1};
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

ort_status ort_attention_replace(ort_pass_context *c, const ort_attention *a, ort_node_spec *spec,
                                 ort_id *outputs, ort_error *err)
{
    bool last = a->parted == ORT_ID_NONE && a->empty == ORT_ID_NONE;
    outputs[0] = last ? a->root->outputs[0] : ort_graph_add_value(c->graph, "");
    if (outputs[0] == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *outputs);
    const ort_node *root = a->root, *softmax = a->core[a->core_count > 1 ? 1 : 0];
    spec->name = root->name;
    spec->origin = ort_edit_origin(c->graph, softmax, root);
    for (int i = 0; i < a->core_count; i++)
        ort_graph_remove_node(c->graph, a->core[i]);
    ort_node *made;
    ORT_TRY(ort_edit_add_node(c->graph, spec, &made, err));
    for (int i = 0; i < a->core_count; i++)
        ORT_TRY(ort_follow_merge(c->graph, made, a->core[i], err));
    ort_id result = outputs[0];
    if (a->empty != ORT_ID_NONE) {
        ort_id zeroed = a->parted == ORT_ID_NONE ? root->outputs[0] : ORT_ID_NONE;
        ORT_TRY(ort_attention_zero_empty(c, a->empty, result, &zeroed, err));
        result = zeroed;
    }
    if (a->parted != ORT_ID_NONE)
        ORT_TRY((a->steps ? ort_attention_part_steps : part_result)(c, result, a->parted, err));
    for (int i = 0; i < a->around_count; i++)
        if (!a->around[i]->removed && unread(c->graph, a->around[i])) {
            ort_graph_remove_node(c->graph, a->around[i]);
            ORT_TRY(ort_follow_merge(c->graph, made, a->around[i], err));
        }
    return ORT_OK;
}
