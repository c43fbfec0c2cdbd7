/* order.c - topological order. Depth-first along producers, nodes taken in their present order: a
 * graph that is sorted keeps its order, and a node that was appended moves right before its first
 * user. No recursion: graphs are as deep as they are long. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "graph/graph.h"

typedef struct frame {
    ort_id node;
    int next; /* input to look at: inputs, then captures */
} frame;

typedef struct sorter {
    const ort_graph *graph;
    uint8_t *state; /* by node: 0 new, 1 on the stack, 2 placed */
    frame *stack;
    size_t depth;
    ORT_VEC(ort_id) order;
} sorter;

/* The producer of source number `index` of a node; ORT_ID_NONE when it has none. */
static ort_id source_node(const ort_graph *graph, const ort_node *node, int index)
{
    assert(index >= 0 && index < node->input_count + node->implicit_count);
    ort_id value = index < node->input_count ? node->inputs[index]
                                             : node->implicit[index - node->input_count];
    return ort_graph_producer(graph, value);
}

static ort_status cycle(const sorter *s, ort_id again, ort_error *err)
{
    ort_strbuf names = {0};
    size_t first = s->depth;
    char label[256];
    while (first > 0 && s->stack[first - 1].node != again)
        first--;
    assert(first > 0); /* it is on the stack: its state says so */
    size_t length = s->depth - (first - 1);
    for (size_t i = s->depth; i >= first; i--) {
        size_t done = s->depth - i;
        if (done == 8 && length > 10) {
            ort_strbuf_addf(&names, "... %zu more ... -> ", length - 9);
            i = first;
        }
        ort_node_label(s->graph->nodes.data[s->stack[i - 1].node], label, sizeof label);
        ort_strbuf_addf(&names, "%s -> ", label);
    }
    ort_node_label(s->graph->nodes.data[s->stack[s->depth - 1].node], label, sizeof label);
    ort_status status = ort_error_set(err, ORT_ERROR_MODEL, "the graph has a cycle: %s%s",
                                      ort_strbuf_text(&names), label);
    ort_strbuf_release(&names);
    return status;
}

static ort_status visit(sorter *s, ort_id root, ort_error *err)
{
    s->depth = 0;
    s->stack[s->depth++] = (frame){root, 0};
    s->state[root] = 1;
    while (s->depth) {
        frame *top = &s->stack[s->depth - 1];
        const ort_node *node = s->graph->nodes.data[top->node];
        if (top->next == node->input_count + node->implicit_count) {
            s->state[top->node] = 2;
            assert(s->order.count < s->order.capacity);
            s->order.data[s->order.count++] = top->node;
            s->depth--;
            continue;
        }
        ort_id source = source_node(s->graph, node, top->next++);
        if (source == ORT_ID_NONE || s->state[source] == 2 || s->graph->nodes.data[source]->removed)
            continue;
        if (s->state[source] == 1)
            return cycle(s, source, err);
        s->state[source] = 1;
        assert(s->depth <= s->graph->nodes.count);
        s->stack[s->depth++] = (frame){source, 0};
    }
    return ORT_OK;
}

ort_status ort_graph_sort(ort_graph *graph, ort_error *err)
{
    size_t count = graph->nodes.count;
    sorter s = {.graph = graph};
    s.state = calloc(count + 1, 1);
    s.stack = malloc((count + 1) * sizeof *s.stack);
    ort_status status = ORT_OK;
    if (!s.state || !s.stack || !ort_vec_reserve(&s.order, count + 1))
        status = ort_error_memory(err, count * sizeof *s.stack);
    for (size_t i = 0; status == ORT_OK && i < graph->order.count; i++) {
        ort_id id = graph->order.data[i];
        if (!graph->nodes.data[id]->removed && s.state[id] == 0)
            status = visit(&s, id, err);
    }
    if (status == ORT_OK) {
        assert(s.order.count <= graph->order.count); /* every live node was in it */
        if (s.order.count > 0)
            memcpy(graph->order.data, s.order.data, s.order.count * sizeof(ort_id));
        graph->order.count = s.order.count;
    }
    ort_vec_release(&s.order);
    free(s.state);
    free(s.stack);
    return status;
}
