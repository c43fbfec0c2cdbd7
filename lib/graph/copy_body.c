/* copy_body.c - copies the nodes of a body into the graph around the body (copy_body.h). Values
 * that the body captured become plain inputs. Its initializers and results become values of the
 * graph around, under names that no graph has, from the outermost one inwards.
 */
#include "graph/copy_body.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/uses.h"

/* ---- names in use */

static bool count_names(ort_name_counts *counts, const ort_graph *graph, int step)
{
    const ort_node *node;
    for (size_t i = 0; i < graph->names.count; i++) {
        const ort_hashmap_entry *e = &graph->names.entries[i];
        uint64_t count = 0;
        (void)ort_hashmap_get(&counts->names, e->key, e->key_length, &count);
        assert(step > 0 || count > 0);
        if (!ort_hashmap_put(&counts->names, e->key, e->key_length, count + (uint64_t)step))
            return false;
    }
    ORT_EACH_NODE(graph, node)
        for (int b = 0; b < node->body_count; b++)
            if (!count_names(counts, node->bodies[b], step))
                return false;
    return true;
}

ort_status ort_name_counts_take(ort_name_counts *counts, const ort_graph *graph,
                                const ort_node *node, ort_error *err)
{
    bool counted = counts->names.count || count_names(counts, graph, 1);
    for (int b = 0; counted && b < node->body_count; b++)
        counted = count_names(counts, node->bodies[b], -1);
    return counted ? ORT_OK : ort_error_memory(err, sizeof(ort_hashmap_entry));
}

void ort_name_counts_release(ort_name_counts *counts)
{
    ort_hashmap_release(&counts->names);
}

bool ort_body_is_copyable(const ort_graph *body, bool once)
{
    const ort_node *node;
    for (size_t i = 0; i < body->initializers.count; i++) {
        const ort_graph_value *value = body->values.data[body->initializers.data[i]];
        if (value->is_sparse || !value->fact.value || value->is_input)
            return false;
    }
    ORT_EACH_NODE(body, node)
        if (!node->op || (node->body_count && !once))
            return false;
    return true;
}

/* ---- names */

static bool is_taken(const void *arg, const char *name)
{
    const ort_body_copy *c = arg;
    uint64_t count = 0;
    for (const ort_graph *graph = c->graph; graph; graph = graph->parent)
        if (ort_graph_find_value(graph, name) != ORT_ID_NONE)
            return true;
    return ort_hashmap_get_str(&c->counts->names, name, &count) && count;
}

/* The name with the suffix, or that with _2, _3... behind it. */
static const char *new_name(const ort_body_copy *c, const char *name)
{
    ort_arena *arena = &c->graph->model->arena;
    const char *wanted = *c->suffix ? ort_arena_printf(arena, "%s%s", name, c->suffix) : name;
    return !wanted || !is_taken(c, wanted) ? wanted : ort_free_name(arena, wanted, 2, is_taken, c);
}

/* ---- values */

static void map_captures(const ort_body_copy *c)
{
    assert(c->body->parent == c->graph);
    for (size_t v = 0; v < c->body->values.count; v++)
        if (c->body->values.data[v]->outer != ORT_ID_NONE)
            c->map[v] = c->body->values.data[v]->outer;
}

static ort_status map_constants(const ort_body_copy *c, ort_error *err)
{
    for (size_t i = 0; i < c->body->initializers.count && !c->keeps_constants; i++) {
        ort_id id = c->body->initializers.data[i];
        const ort_graph_value *value = c->body->values.data[id];
        const char *name = new_name(c, value->name);
        c->map[id] = name ? ort_graph_add_named(c->graph, name) : ORT_ID_NONE;
        if (c->map[id] == ORT_ID_NONE ||
            !ort_graph_give_constant(c->graph, c->map[id], value->fact.value))
            return ort_error_memory(err, sizeof *value);
    }
    return ORT_OK;
}

static ort_status map_result(const ort_body_copy *c, ort_id id, ort_error *err)
{
    const ort_graph_value *value = c->body->values.data[id];
    const char *name = new_name(c, value->name);
    c->map[id] = name ? ort_graph_add_named(c->graph, name) : ORT_ID_NONE;
    if (c->map[id] == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *value);
    ort_graph_value *made = c->graph->values.data[c->map[id]];
    made->fact = value->fact;
    made->declared = value->declared;
    return ORT_OK;
}

/* ---- bodies inside */

static ort_status move_bodies(const ort_body_copy *c, ort_node *from, ort_node *to,
                              ort_error *err)
{
    assert(!to->body_count);
    to->bodies = from->bodies;
    to->body_count = from->body_count;
    from->body_count = 0;
    for (int b = 0; b < to->body_count; b++) {
        ort_graph *body = to->bodies[b];
        body->parent = c->graph;
        body->parent_node = to->id;
        for (size_t v = 0; v < body->values.count; v++)
            if (body->values.data[v]->outer != ORT_ID_NONE)
                body->values.data[v]->outer = c->map[body->values.data[v]->outer];
        for (int i = 0; i < to->implicit_count; i++)
            ort_graph_name_captures(body, to->implicit[i],
                                    c->graph->values.data[to->implicit[i]]->name);
        if (!count_names(c->counts, body, 1))
            return ort_error_memory(err, sizeof(ort_hashmap_entry));
    }
    return ORT_OK;
}

static ort_status map_implicit(const ort_body_copy *c, const ort_node *from, ort_node *to,
                               ort_error *err)
{
    to->implicit = ort_arena_array(&c->graph->model->arena, (size_t)from->implicit_count,
                                   sizeof *to->implicit);
    if (!to->implicit)
        return ort_error_memory(err, sizeof *to->implicit);
    for (int i = 0; i < from->implicit_count; i++) {
        ort_id id = c->map[from->implicit[i]];
        assert(ort_graph_has_value(c->graph, id));
        if (ort_ids_have(to->implicit, (size_t)to->implicit_count, id))
            continue;
        to->implicit[to->implicit_count++] = id;
        c->graph->values.data[id]->use_count++;
        ort_uses_add(c->graph, id, to->id, ORT_READS_ANYWHERE);
    }
    return ORT_OK;
}

/* ---- nodes */

static ort_status copy_node(const ort_body_copy *c, ort_node *from, ort_id *ids, ort_error *err)
{
    ort_arena *arena = &c->graph->model->arena;
    int total = from->input_count + from->output_count;
    const char *name = *from->name && *c->suffix
                           ? ort_arena_printf(arena, "%s%s", from->name, c->suffix)
                           : from->name;
    for (int i = 0; i < from->output_count; i++)
        if (from->outputs[i] != ORT_ID_NONE && c->map[from->outputs[i]] == ORT_ID_NONE)
            ORT_TRY(map_result(c, from->outputs[i], err));
    for (int i = 0; i < total; i++) {
        ort_id id = i < from->input_count ? from->inputs[i]
                                          : from->outputs[i - from->input_count];
        ids[i] = id == ORT_ID_NONE ? ORT_ID_NONE : c->map[id];
    }
    ort_node *to = name ? ort_graph_add_node(c->graph, from->domain, from->op_type, name, ids,
                                             from->input_count, ids + from->input_count,
                                             from->output_count)
                        : NULL;
    if (!to)
        return ort_error_memory(err, sizeof *to);
    to->overload = from->overload;
    to->doc = from->doc;
    to->attrs = from->attrs; /* shared: edits replace the whole array */
    to->attr_count = from->attr_count;
    to->op = from->op;
    to->opset = from->opset;
    to->origin = from->origin;
    if (!from->body_count)
        return ORT_OK;
    ORT_TRY(map_implicit(c, from, to, err));
    return move_bodies(c, from, to, err);
}

ort_status ort_body_copy_nodes(const ort_body_copy *c, ort_error *err)
{
    ort_status status = ORT_OK;
    ort_node *node;
    int most = 1;
    ORT_EACH_NODE(c->body, node)
        most = node->input_count + node->output_count > most
                   ? node->input_count + node->output_count
                   : most;
    map_captures(c);
    ORT_TRY(map_constants(c, err));
    ort_id *ids = malloc((size_t)most * sizeof *ids);
    if (!ids)
        return ort_error_memory(err, (size_t)most * sizeof *ids);
    ORT_EACH_NODE(c->body, node)
    {
        status = copy_node(c, node, ids, err);
        if (status != ORT_OK)
            break;
    }
    free(ids);
    return status;
}
