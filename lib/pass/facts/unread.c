/* unread.c - what a rewrite leaves behind goes at once: as a reader it would keep others from
 * fitting until dead_nodes.c comes by. Long chains, and nodes with bodies, are left to that. */
#include "pass/facts/unread.h"

#include "base/error.h"
#include "graph/follow.h"

enum { DEPTH = 32 };

static bool is_unread(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->outputs[i]);
        if (v && (v->is_output || v->use_count > 0))
            return false;
    }
    return true;
}

static ort_status drop(ort_graph *graph, ort_node *into, ort_id value, int depth, ort_error *err)
{
    ort_node *node = ort_edit_producer(graph, value);
    if (!node || depth > DEPTH || node->body_count || !is_unread(graph, node))
        return ORT_OK;
    ort_graph_remove_node(graph, node);
    ORT_TRY(ort_follow_merge(graph, into, node, err));
    for (int i = 0; i < node->input_count; i++)
        ORT_TRY(drop(graph, into, node->inputs[i], depth + 1, err));
    return ORT_OK;
}

ort_status ort_unread_drop(ort_graph *graph, ort_node *into, ort_id value, ort_error *err)
{
    return drop(graph, into, value, 0, err);
}

ort_status ort_unread_sweep(ort_graph *graph, ort_node *into, const ort_node *gone, ort_error *err)
{
    ORT_TRY(ort_follow_merge(graph, into, gone, err));
    for (int i = 0; i < gone->input_count; i++)
        ORT_TRY(drop(graph, into, gone->inputs[i], 1, err));
    return ORT_OK;
}
