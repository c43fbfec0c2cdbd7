/* weight_inputs.c - weights that are also listed as inputs become constants.
 *
 * Before IR version 4 every initializer had to be listed as an input, and exporters went on to do
 * so when an input's initializer had become a default that a caller may override. A model that
 * lists all of them, the weights of its layers too, means none of them: where an input is meant to
 * be overridden, the weights stand beside it unlisted. As inputs they would keep every fold and
 * fusion away. Where one initializer is no input, all inputs stay.
 */
#include "graph/defaults.h"
#include "op/edit.h"
#include "pass/pass.h"

/* Operators whose later inputs are weights. */
static bool is_layer(const ort_node *node)
{
    return ort_edit_is_any(node, "Conv|ConvTranspose|Gemm|MatMul|RNN|GRU|LSTM|BatchNormalization");
}

/* The weights of a layer are an input with a default? */
static bool lists_layers(const ort_graph *graph)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        ort_id weights = ort_edit_input(node, 1);
        if (weights != ORT_ID_NONE && is_layer(node) && graph->values.data[weights]->is_input)
            return true;
    }
    return false;
}

static bool lists_all(const ort_graph *graph)
{
    for (size_t i = 0; i < graph->initializers.count; i++)
        if (!graph->values.data[graph->initializers.data[i]]->is_input)
            return false;
    return true;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    const ort_hidden_defaults *hidden = c->hidden;
    size_t kept = 0;
    if (graph->parent || !hidden || !hidden->list.count || !lists_layers(graph))
        return ORT_OK;
    if (!lists_all(graph)) {
        ort_pass_note(c, graph->nodes.data[graph->order.data[0]],
                      "some weights are inputs with a default, others are not: all stay");
        return ORT_OK;
    }
    for (size_t i = 0; i < hidden->list.count; i++) {
        ort_graph_value *value = graph->values.data[hidden->list.data[i].value];
        value->is_input = false;
        value->fact.value = hidden->list.data[i].tensor;
        ort_graph_touch_value(graph, hidden->list.data[i].value);
        ++*changes;
    }
    for (size_t i = 0; i < graph->inputs.count; i++)
        if (graph->values.data[graph->inputs.data[i]]->is_input)
            graph->inputs.data[kept++] = graph->inputs.data[i];
    graph->inputs.count = kept;
    return ort_graph_infer(graph, c->registry, NULL, err);
}

const ort_pass ort_pass_weight_inputs = {
    .name = "weight_inputs",
    .level = 1,
    .exact = true,
    .doc = "weights listed as inputs, where all are, become constants and are no inputs any more",
    .apply = apply,
};
