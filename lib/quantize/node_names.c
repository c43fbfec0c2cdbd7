/* node_names.c - names for nodes that have none, as exporters of old wrote them. */
#include "quantize/node_names.h"

#include <string.h>

#include "base/error.h"
#include "base/hashmap.h"

static bool collect(const ort_graph *graph, ort_hashmap *names)
{
    ort_node *node;
    bool ok = true;
    ORT_EACH_NODE(graph, node)
    {
        ok = ok && (!*node->name || ort_hashmap_put_str(names, node->name, 0));
        for (int b = 0; b < node->body_count && ok; b++)
            ok = collect(node->bodies[b], names);
    }
    return ok;
}

/* "" where it has no output with a name. */
static const char *first_output(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            return graph->values.data[node->outputs[i]]->name;
    return "";
}

static bool name_node(ort_arena *arena, ort_graph *graph, ort_node *node, ort_hashmap *names)
{
    const char *base = first_output(graph, node), *name = base;
    for (int i = 1; name && *name && ort_hashmap_get_str(names, name, NULL); i++)
        name = ort_arena_printf(arena, "%s_%d", base, i);
    if (!name)
        return false;
    if (!*name)
        return true;
    node->name = name;
    ort_graph_touch(graph, node);
    return ort_hashmap_put_str(names, name, 0);
}

/* Nobody chooses these, and files that were quantized before stay as they are. */
static bool stays_nameless(const ort_node *node)
{
    return ort_node_is_constant(node) || !strcmp(node->op_type, "QuantizeLinear") ||
           !strcmp(node->op_type, "DequantizeLinear");
}

static bool name_all(ort_arena *arena, ort_graph *graph, ort_hashmap *names)
{
    ort_node *node;
    bool ok = true;
    ORT_EACH_NODE(graph, node)
    {
        if (ok && !*node->name && !stays_nameless(node))
            ok = name_node(arena, graph, node, names);
        for (int b = 0; b < node->body_count && ok; b++)
            ok = name_all(arena, node->bodies[b], names);
    }
    return ok;
}

ort_status ort_quantize_name_nodes(ort_model *model, ort_error *err)
{
    ort_hashmap names = {0};
    const bool ok = collect(model->graph, &names) &&
                    name_all(&model->arena, model->graph, &names);
    ort_hashmap_release(&names);
    return ok ? ORT_OK : ort_error_memory(err, sizeof names);
}
