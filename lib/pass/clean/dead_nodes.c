/* dead_nodes.c - nodes and initializers that nothing reads go. Graph inputs stay: they are the
 * model's signature. */
#include "base/error.h"
#include "graph/strip.h"
#include "op/edit.h"
#include "pass/pass.h"

static bool is_read(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    return value && (value->is_output || value->use_count > 0);
}

static bool dead(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (is_read(graph, node->outputs[i]))
            return false;
    return true;
}

/* A node of several results stays for one of them. */
static void note_partly_dead(const ort_pass_context *c, const ort_node *node)
{
    const char *read = NULL, *unread = NULL;
    for (int i = 0; c->near_misses && i < node->output_count; i++) {
        const ort_graph_value *value = ort_graph_value_at(c->graph, node->outputs[i]);
        if (value && is_read(c->graph, node->outputs[i]))
            read = value->name;
        else if (value)
            unread = value->name;
    }
    if (read && unread)
        ort_pass_note(c, node, "nothing reads '%s', but '%s' is read", unread, read);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    for (size_t i = c->graph->order.count; i-- > 0;) {
        ort_node *node = c->graph->nodes.data[c->graph->order.data[i]];
        if (node->removed)
            continue;
        if (!dead(c->graph, node)) {
            note_partly_dead(c, node);
            *changes += ort_graph_drop_captures(c->graph, node);
            continue;
        }
        ort_graph_remove_node(c->graph, node);
        ++*changes;
    }
    *changes += ort_graph_drop_initializers(c->graph);
    return ORT_OK;
}

const ort_pass ort_pass_dead_nodes = {
    .name = "dead_nodes",
    .level = 1,
    .exact = true,
    .doc = "nodes and initializers that nothing reads go",
    .apply = apply,
};
