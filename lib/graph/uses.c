/* uses.c - the index of readers: per value a list of node ids, latest first, in one array. */
#include "graph/uses.h"

#include <stdlib.h>

#define END UINT32_MAX

typedef struct use {
    ort_id node;
    uint32_t next;
} use;

struct ort_uses {
    ORT_VEC(uint32_t) heads; /* by value id */
    ORT_VEC(use) list;
};

void ort_uses_release(ort_graph *graph)
{
    if (!graph->uses)
        return;
    ort_vec_release(&graph->uses->heads);
    ort_vec_release(&graph->uses->list);
    free(graph->uses);
    graph->uses = NULL;
}

static bool add(ort_uses *uses, ort_id value, ort_id node)
{
    while (uses->heads.count <= value)
        if (!ort_vec_push(&uses->heads, END))
            return false;
    use entry = {node, uses->heads.data[value]};
    uint32_t at = (uint32_t)uses->list.count;
    if (at == END || !ort_vec_push(&uses->list, entry))
        return false;
    uses->heads.data[value] = at;
    return true;
}

void ort_uses_add(ort_graph *graph, ort_id value, ort_id node)
{
    if (graph->uses && value != ORT_ID_NONE && !add(graph->uses, value, node))
        ort_uses_release(graph); /* made again, or scanned without, at the next question */
}

/* Latest first lists: nodes are entered backwards, so that readers come in the order of ids. */
static void build(ort_graph *graph)
{
    graph->uses = calloc(1, sizeof *graph->uses);
    for (size_t n = graph->nodes.count; n-- > 0;) {
        const ort_node *node = graph->nodes.data[n];
        for (int i = 0; !node->removed && i < node->input_count; i++)
            ort_uses_add(graph, node->inputs[i], node->id);
        for (int i = 0; !node->removed && i < node->implicit_count; i++)
            ort_uses_add(graph, node->implicit[i], node->id);
    }
}

ort_readers ort_readers_of(const ort_graph *graph, ort_id value)
{
    ort_readers r = {.graph = (ort_graph *)(uintptr_t)graph, .value = value}; /* a cache */
    if (!graph->uses)
        build(r.graph);
    r.scan = !graph->uses;
    r.at = r.scan ? 0 : value < graph->uses->heads.count ? graph->uses->heads.data[value] : END;
    return r;
}

static bool reads(const ort_node *node, ort_id value)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] == value)
            return true;
    for (int i = 0; i < node->implicit_count; i++)
        if (node->implicit[i] == value)
            return true;
    return false;
}

ort_node *ort_readers_next(ort_readers *r)
{
    const ort_graph *graph = r->graph;
    for (;;) {
        ort_node *node;
        if (r->scan) {
            if (r->at >= graph->nodes.count)
                return NULL;
            node = graph->nodes.data[r->at++];
        } else {
            if (!graph->uses || r->at == END)
                return NULL;
            const use *entry = &graph->uses->list.data[r->at];
            node = graph->nodes.data[entry->node];
            r->at = entry->next;
        }
        if (!node->removed && reads(node, r->value))
            return node;
    }
}
