/* half_compute.c - what a model computes in float16 or bfloat16 is computed in float, from weights
 * converted once or kept in 16 bits (op/half_weight.h); only graph inputs and outputs, tables that
 * rows are gathered from, and what passes between nodes that stay, keep their type.
 *
 * There are no kernels that sum in 16 bits (lib/README.md says why): an operator would convert its
 * inputs at each run, and round its result. The rounding is also what models that a tool has
 * converted don't survive: squares and sums of theirs leave the range of float16, and onnxruntime,
 * which computes them in float as well, is what they were tried on. Every node with such a tensor
 * is rebuilt (twins.h) when its schema allows float in the same places. A graph without weights of
 * the type stays as it is, and so do casts of the model itself. A saved file keeps its types, so
 * this is not for it.
 */
#include "base/error.h"
#include "op/edit.h"
#include "op/half_weight.h"
#include "pass/numbers/twins.h"
#include "pass/pass.h"

/* Operators whose documentation rounds what they hold between two steps to their type. */
static bool rounds_between(const ort_node *node)
{
    return ort_edit_is_any(node, "ms.GatedAdd|ms.ScaledSiLU");
}

/* A large table stays as it is: the gathered rows are widened. */
static bool gathers(const ort_twins *twins, const ort_node *node)
{
    return ort_edit_is(node, ONNX, "Gather") &&
           ort_half_is_kept(ort_graph_value_at(twins->graph, node->inputs[0])->fact.value);
}

/* Whether float may stand wherever the node has 16 bits. */
static bool suits(const ort_twins *twins, const ort_node *node)
{
    ort_schema schema;
    ort_type real = ort_type_tensor(ORT_DTYPE_FLOAT, -1, NULL);
    bool any = false;
    for (int i = 0; i < node->input_count; i++)
        any = any || ort_twins_is_from(twins, node->inputs[i]);
    if (!any || rounds_between(node) || gathers(twins, node) ||
        !ort_twins_follow(twins, node, &schema))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const ort_param *p = ort_schema_param(schema.inputs, schema.input_count, i);
        if (ort_twins_is_from(twins, node->inputs[i]) &&
            (!p || p->mixed || !ort_schema_allows(node->op, p->type, &real)))
            return false;
    }
    return true;
}

/* A lone operator converts and rounds all the same. */
static bool has_two(const ort_twins *twins)
{
    const ort_node *node;
    int count = 0;
    ORT_EACH_NODE(twins->graph, node)
        if (suits(twins, node) && ++count == 2)
            return true;
    return false;
}

#define WEIGHTS_MIN 256 /* elements; masks and scales that were folded are mostly smaller */

/* Weights of the type, here or around: without them no tool has converted the model, and each
 * operator rounds as it is written. */
static bool has_weights(const ort_graph *graph, ort_dtype dtype)
{
    for (; graph; graph = graph->parent)
        for (ort_id id = 0; id < graph->values.count; id++) {
            const ort_graph_value *value = ort_graph_value_at(graph, id);
            if (value->fact.type.kind == ORT_TYPE_TENSOR &&
                value->fact.type.dtype == dtype && graph->producers.data[id] == ORT_ID_NONE &&
                value->fact.value &&
                ort_tensor_count(value->fact.value) >= WEIGHTS_MIN)
                return true;
        }
    return false;
}

/* Results that nobody wants in float16 any more: gone at once, since a second reader hides a
 * pattern from the passes of this round. */
static void drop_unread_casts(ort_graph *graph)
{
    ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        const ort_graph_value *out = ort_edit_is(node, ONNX, "Cast")
                                         ? ort_graph_value_at(graph, node->outputs[0])
                                         : NULL;
        if (out && out->use_count == 0 && !out->is_output)
            ort_graph_remove_node(graph, node);
    }
}

static ort_status widen(ort_pass_context *c, ort_dtype dtype, int *changes, ort_error *err)
{
    ort_twins twins = {.graph = c->graph, .from = dtype, .to = ORT_DTYPE_FLOAT,
                       .cast_opset = ORT_NEWEST_OPSET};
    ort_status status = ORT_OK;
    ort_node *node;
    if (!has_two(&twins) || !has_weights(c->graph, dtype))
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (status != ORT_OK || !suits(&twins, node))
            continue;
        status = ort_twins_rebuild(&twins, node, err);
        ++*changes;
    }
    ort_twins_release(&twins);
    drop_unread_casts(c->graph);
    return status;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    if (c->portable || !ort_model_opset(c->graph->model, ONNX))
        return ORT_OK;
    ORT_TRY(widen(c, ORT_DTYPE_FLOAT16, changes, err));
    return widen(c, ORT_DTYPE_BFLOAT16, changes, err);
}

const ort_pass ort_pass_half_compute = {
    .name = "half_compute",
    .level = 2,
    .doc = "what is computed in float16 or bfloat16 is computed in float",
    .apply = apply,
};
