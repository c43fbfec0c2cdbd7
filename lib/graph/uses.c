/* uses.c - the index of readers: per value a list of uses, latest first, in one array. A use says
 * where its node reads: nodes may have a hundred thousand inputs. */
#include "graph/uses.h"

#include <assert.h>
#include <stdlib.h>

#define END UINT32_MAX

typedef struct use {
    ort_id node;
    int slot; /* of its inputs; ORT_READS_ANYWHERE: a capture */
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

static bool add(ort_uses *uses, ort_id value, ort_id node, int slot)
{
    while (uses->heads.count <= value)
        if (!ort_vec_push(&uses->heads, END))
            return false;
    use entry = {node, slot, uses->heads.data[value]};
    uint32_t at = (uint32_t)uses->list.count;
    if (at == END || !ort_vec_push(&uses->list, entry))
        return false;
    uses->heads.data[value] = at;
    return true;
}

void ort_uses_add(ort_graph *graph, ort_id value, ort_id node, int slot)
{
    assert(node < graph->nodes.count);
    assert(slot == ORT_READS_ANYWHERE || (slot >= 0 && slot < graph->nodes.data[node]->input_count));
    if (graph->uses && value != ORT_ID_NONE && !add(graph->uses, value, node, slot))
        ort_uses_release(graph); /* made again, or scanned without, at the next question */
}

/* Latest first lists: nodes are entered backwards, so that readers come in the order of ids. */
static void build(ort_graph *graph)
{
    graph->uses = calloc(1, sizeof *graph->uses);
    for (size_t n = graph->nodes.count; n-- > 0;) {
        const ort_node *node = graph->nodes.data[n];
        for (int i = 0; !node->removed && i < node->input_count; i++)
            ort_uses_add(graph, node->inputs[i], node->id, i);
        for (int i = 0; !node->removed && i < node->implicit_count; i++)
            ort_uses_add(graph, node->implicit[i], node->id, ORT_READS_ANYWHERE);
    }
}

ort_readers ort_readers_of(const ort_graph *graph, ort_id value)
{
    ort_readers r = {.graph = (ort_graph *)(uintptr_t)graph, .value = value}; /* a cache */
    assert(ort_graph_has_value(graph, value));
    if (!graph->uses)
        build(r.graph);
    r.scan = !graph->uses;
    if (r.scan)
        r.at = 0;
    else if (value < graph->uses->heads.count && graph->values.data[value]->use_count > 0)
        r.at = graph->uses->heads.data[value];
    else
        r.at = END;
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
        int slot = ORT_READS_ANYWHERE;
        if (r->scan) {
            if (r->at >= graph->nodes.count)
                return NULL;
            node = graph->nodes.data[r->at++];
        } else {
            if (!graph->uses || r->at == END)
                return NULL;
            assert(r->at < graph->uses->list.count);
            const use *entry = &graph->uses->list.data[r->at];
            assert(entry->next == END || entry->next < r->at); /* latest first: it ends */
            node = graph->nodes.data[entry->node];
            slot = entry->slot;
            r->at = entry->next;
        }
        if (node->removed)
            continue;
        bool there = slot >= 0 && slot < node->input_count && node->inputs[slot] == r->value;
        r->slot = there ? slot : ORT_READS_ANYWHERE;
        if (there || reads(node, r->value))
            return node;
    }
}
