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
    unsigned made; /* how often */
    bool broken;   /* it lacks uses, for want of memory: to be made again */
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
    assert(slot == ORT_READS_ANYWHERE ||
           (slot >= 0 && slot < graph->nodes.data[node]->input_count));
    ort_uses *uses = graph->uses;
    if (uses && !uses->broken && value != ORT_ID_NONE)
        uses->broken = !add(uses, value, node, slot);
}

/* Latest first lists: nodes are entered backwards, so that readers come in the order of ids. */
static void build(ort_graph *graph)
{
    if (!graph->uses && !(graph->uses = calloc(1, sizeof *graph->uses)))
        return;
    ort_vec_clear(&graph->uses->heads);
    ort_vec_clear(&graph->uses->list);
    graph->uses->made++;
    graph->uses->broken = false;
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
    if (!graph->uses || graph->uses->broken)
        build(r.graph);
    r.scan = !graph->uses || graph->uses->broken;
    r.made = r.scan ? 0 : graph->uses->made;
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
    return ort_ids_have(node->inputs, (size_t)node->input_count, value) ||
           ort_ids_have(node->implicit, (size_t)node->implicit_count, value);
}

/* Is the index not the one that was asked any more? Edits on the way may break it. */
static bool is_gone(const ort_graph *graph, const ort_readers *r)
{
    return !graph->uses || graph->uses->broken || graph->uses->made != r->made;
}

ort_node *ort_readers_next(ort_readers *r)
{
    const ort_graph *graph = r->graph;
    for (;;) {
        ort_node *node;
        int slot = ORT_READS_ANYWHERE;
        if (!r->scan && is_gone(graph, r)) {
            r->scan = true; /* from the first on: some come again */
            r->at = 0;
        }
        if (r->scan) {
            if (r->at >= graph->nodes.count)
                return NULL;
            node = graph->nodes.data[r->at++];
        } else {
            if (r->at == END)
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
