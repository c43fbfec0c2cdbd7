/* strip.c - removes documentation, names of nodes, and whatever is unused (strip.h). Unknown fields
 * and metadata of the rest are kept.
 */
#include "graph/strip.h"

#include <string.h>

static void strip_nodes(ort_graph *graph, unsigned what)
{
    ort_node *node;
    ort_graph_touch(graph, NULL);
    if (what & ORT_STRIP_DOCS)
        graph->doc = "";
    ORT_EACH_NODE(graph, node)
    {
        if (what & ORT_STRIP_DOCS)
            node->doc = "";
        if (what & ORT_STRIP_NAMES)
            node->name = "";
        for (int i = 0; i < node->body_count; i++)
            strip_nodes(node->bodies[i], what);
    }
}

/* ---- what nothing uses */

int ort_graph_drop_initializers(ort_graph *graph)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_graph_value *value = graph->values.data[graph->initializers.data[i]];
        if (value->use_count > 0 || value->is_output || value->is_input)
            graph->initializers.data[kept++] = graph->initializers.data[i];
    }
    int dropped = (int)(graph->initializers.count - kept);
    graph->initializers.count = kept;
    if (dropped)
        ort_graph_touch(graph, NULL);
    return dropped;
}

static void drop_everywhere(ort_graph *graph)
{
    ort_node *node;
    (void)ort_graph_drop_initializers(graph);
    ORT_EACH_NODE(graph, node)
        for (int i = 0; i < node->body_count; i++)
            drop_everywhere(node->bodies[i]);
}

static bool is_of_other(void *domain, const char *other, const char *op_type)
{
    return strcmp(domain, other);
}

/* Functions bring nodes of domains that the graph itself has not: with them all imports stay. */
static void drop_imports(ort_model *model)
{
    size_t kept = 0;
    if (!ort_graph_calls_functions(model->graph))
        model->functions.count = 0;
    for (size_t i = 0; i < model->opsets.count; i++) {
        ort_opset opset = model->opsets.data[i];
        if (model->functions.count || !*opset.domain || !strcmp(opset.domain, "ai.onnx") ||
            !ort_graph_each_operator(model->graph, is_of_other, (void *)(uintptr_t)opset.domain))
            model->opsets.data[kept++] = opset;
    }
    model->opsets.count = kept;
    model->changed = true;
}

void ort_graph_strip(ort_model *model, unsigned what)
{
    if (what & (ORT_STRIP_DOCS | ORT_STRIP_NAMES))
        strip_nodes(model->graph, what);
    if (what & ORT_STRIP_DOCS) {
        model->doc = "";
        model->without_docs = model->changed = true;
    }
    if (what & ORT_STRIP_UNUSED) {
        ort_graph_touch(model->graph, NULL);
        drop_everywhere(model->graph);
        drop_imports(model);
    }
}
