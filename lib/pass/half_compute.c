/* half_compute.c - what a model computes in float16 is computed in float, from weights converted
 * once; only graph inputs and outputs, and what passes between nodes that stay, keep their type.
 *
 * There are no float16 kernels: an operator would convert its inputs at each run, and round its
 * result. The rounding is also what models that a tool has converted don't survive: squares and
 * sums of theirs leave the range of float16, and onnxruntime, which computes them in float as well,
 * is what they were tried on. Every node with a float16 tensor is rebuilt (twins.h) when its schema
 * allows float in the same places. A graph without float16 weights stays as it is, and so
 * do casts of the model itself. A saved file keeps its types, so this is not for it.
 */
#include "op/edit.h"
#include "pass/pass.h"
#include "pass/twins.h"

/* Operators whose documentation rounds what they hold between two steps to their type. */
static bool rounds_between(const ort_node *node)
{
    return ort_edit_is(node, MS, "GatedAdd") || ort_edit_is(node, MS, "ScaledSiLU");
}

/* Whether float may stand wherever the node has float16. */
static bool suits(const ort_twins *twins, const ort_node *node)
{
    ort_schema schema;
    ort_type real = ort_type_tensor(ORT_DTYPE_FLOAT, -1, NULL);
    bool any = false;
    for (int i = 0; i < node->input_count; i++)
        any = any || ort_twins_is_from(twins, node->inputs[i]);
    if (!any || rounds_between(node) || !ort_twins_follow(twins, node, &schema))
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

/* Float16 weights, here or around: without them no tool has converted the model, and each operator
 * rounds as it is written. */
static bool has_weights(const ort_graph *graph)
{
    for (; graph; graph = graph->parent)
        for (ort_id id = 0; id < graph->values.count; id++) {
            const ort_graph_value *value = ort_graph_value_at(graph, id);
            if (value->fact.type.kind == ORT_TYPE_TENSOR &&
                value->fact.type.dtype == ORT_DTYPE_FLOAT16 && value->producer == ORT_ID_NONE &&
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

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_twins twins = {.graph = c->graph, .from = ORT_DTYPE_FLOAT16, .to = ORT_DTYPE_FLOAT,
                       .cast_opset = ORT_NEWEST_OPSET};
    ort_status status = ORT_OK;
    ort_node *node;
    if (c->portable || !ort_model_opset(c->graph->model, ONNX) || !has_two(&twins) ||
        !has_weights(c->graph))
        return ORT_OK;
    ORT_EACH_NODE(c->graph, node)
    {
        if (status || !suits(&twins, node))
            continue;
        status = ort_twins_rebuild(&twins, node, err);
        ++*changes;
    }
    ort_twins_release(&twins);
    drop_unread_casts(c->graph);
    return status;
}

const ort_pass ort_pass_half_compute = {
    .name = "half_compute",
    .level = 2,
    .doc = "what is computed in float16 is computed in float",
    .apply = apply,
};
