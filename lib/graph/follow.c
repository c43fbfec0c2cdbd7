/* follow.c - the followed names in the origins of nodes (follow.h). They are added when following
 * begins and where functions are expanded, before any pass runs; from then on they move with the
 * origins. They stand in front, because long origins are cut off at their end.
 */
#include "graph/follow.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

const char *ort_node_origin(const ort_node *node)
{
    return node->origin ? node->origin : node->name && node->name[0] ? node->name : node->op_type;
}

bool ort_origin_lists(const char *origin, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = origin; at && length && (at = strstr(at, name)); at++)
        if ((at == origin || at[-1] == '+') && (!at[length] || at[length] == '+'))
            return true;
    return false;
}

const char *ort_follow_join(ort_model *model, const char *origin, const char *lost)
{
    for (const char *const *name = model->followed; name && *name && origin; name++)
        if (ort_origin_lists(lost, *name) && !ort_origin_lists(origin, *name))
            origin = ort_arena_printf(&model->arena, "%s+%s", *name, origin);
    return origin;
}

ort_status ort_follow_merge(ort_graph *graph, ort_node *into, const ort_node *lost, ort_error *err)
{
    if (!graph->model->followed || !lost->origin)
        return ORT_OK;
    const char *own = ort_node_origin(into);
    const char *origin = ort_follow_join(graph->model, own, lost->origin);
    if (!origin)
        return ort_error_memory(err, strlen(own));
    if (origin != own)
        into->origin = origin;
    return ORT_OK;
}

ort_status ort_follow_node(ort_graph *graph, ort_node *node, const char *origin, ort_error *err)
{
    ort_model *model = graph->model;
    const char *all = ort_follow_join(model, ort_node_origin(node), node->op_type);
    all = ort_follow_join(model, all, origin);
    if (!all)
        return ort_error_memory(err, strlen(node->op_type));
    for (const char *const *name = model->followed; name && *name; name++)
        if (ort_origin_lists(all, *name))
            node->origin = all;
    return ORT_OK;
}

ort_status ort_follow_nodes(ort_graph *graph, size_t first, const char *origin, ort_error *err)
{
    assert(first <= graph->nodes.count);
    if (!graph->model->followed)
        return ORT_OK;
    for (size_t i = first; i < graph->nodes.count; i++) {
        ort_node *node = graph->nodes.data[i];
        if (node->removed)
            continue;
        ORT_TRY(ort_follow_node(graph, node, origin, err));
        for (int b = 0; b < node->body_count; b++)
            ORT_TRY(ort_follow_nodes(node->bodies[b], 0, origin, err));
    }
    return ORT_OK;
}

ort_status ort_model_follow_names(ort_model *model, const char *const *names, ort_error *err)
{
    size_t count = 0;
    while (names && names[count])
        count++;
    if (!count)
        return ORT_OK;
    const char **list = ort_arena_array(&model->arena, count + 1, sizeof *list);
    if (!list)
        return ort_error_memory(err, (count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++)
        if (!(list[i] = ort_arena_strdup(&model->arena, names[i])))
            return ort_error_memory(err, strlen(names[i]));
    list[count] = NULL;
    model->followed = list;
    return ort_follow_nodes(model->graph, 0, NULL, err);
}
