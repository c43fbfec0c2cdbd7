/* capture.c - what bodies of control flow take from the graph around them: new captures, and those
 * that nothing reads any more.
 */
#include <string.h>

#include "graph/graph.h"
#include "graph/uses.h"

static bool list_capture(ort_graph *graph, ort_node *node, ort_id outer)
{
    size_t count = (size_t)node->implicit_count;
    if (ort_ids_have(node->implicit, count, outer))
        return true;
    ort_id *list = ort_arena_array(&graph->model->arena, count + 1, sizeof *list);
    if (!list)
        return false;
    if (count)
        memcpy(list, node->implicit, count * sizeof *list);
    list[count] = outer;
    node->implicit = list;
    node->implicit_count++;
    graph->values.data[outer]->use_count++;
    ort_uses_add(graph, outer, node->id, ORT_READS_ANYWHERE);
    ort_graph_touch(graph, node);
    return true;
}

ort_id ort_graph_capture(ort_graph *body, ort_id outer)
{
    ort_graph *graph = body->parent;
    assert(graph && ort_graph_has_value(graph, outer));
    for (size_t v = 0; v < body->values.count; v++)
        if (body->values.data[v]->outer == outer)
            return list_capture(graph, graph->nodes.data[body->parent_node], outer)
                       ? (ort_id)v
                       : ORT_ID_NONE;
    ort_id id = ort_graph_new_value(body, graph->values.data[outer]->name);
    if (id == ORT_ID_NONE || !list_capture(graph, graph->nodes.data[body->parent_node], outer))
        return ORT_ID_NONE;
    body->values.data[id]->outer = outer;
    body->values.data[id]->fact.type = graph->values.data[outer]->fact.type;
    ort_graph_name_captures(body, outer, graph->values.data[outer]->name);
    return id;
}

static bool is_captured(const ort_node *node, ort_id outer)
{
    for (int b = 0; b < node->body_count; b++)
        for (size_t v = 0; v < node->bodies[b]->values.count; v++) {
            const ort_graph_value *value = node->bodies[b]->values.data[v];
            if (value->outer == outer && (value->use_count > 0 || value->is_output))
                return true;
        }
    return false;
}

int ort_graph_drop_captures(ort_graph *graph, ort_node *node)
{
    int kept = 0, before = node->implicit_count;
    for (int i = 0; i < before; i++) {
        if (is_captured(node, node->implicit[i]))
            node->implicit[kept++] = node->implicit[i];
        else
            graph->values.data[node->implicit[i]]->use_count--;
    }
    node->implicit_count = kept;
    if (kept < before)
        ort_graph_touch(graph, node);
    return before - kept;
}
