/* min_cut.c - Dinic: levels by breadth first search, then blocking flows along them. The search
 * for a path keeps its own stack: graphs of models are deep. */
#include "base/min_cut.h"

#include <stdlib.h>

#define END UINT32_MAX

uint32_t ort_min_cut_vertex(ort_min_cut *cut)
{
    if (!ort_vec_push(&cut->heads, END))
        return END;
    return (uint32_t)cut->heads.count - 1;
}

static bool add(ort_min_cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    ort_cut_edge edge = {to, cut->heads.data[from], capacity};
    if (!ort_vec_push(&cut->edges, edge))
        return false;
    cut->heads.data[from] = (uint32_t)cut->edges.count - 1;
    return true;
}

bool ort_min_cut_edge(ort_min_cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    return add(cut, from, to, capacity) && add(cut, to, from, 0);
}

typedef struct search {
    ort_min_cut *cut;
    uint32_t *level, *at, *queue; /* per vertex; at: next edge to try */
    uint32_t *path;               /* edges from the source on */
} search;

/* Levels from `root`; backwards: along edges that still have room towards it. */
static void spread(search *s, uint32_t root, bool backwards)
{
    size_t count = s->cut->heads.count, begin = 0, end = 0;
    for (size_t v = 0; v < count; v++)
        s->level[v] = END;
    s->level[root] = 0;
    s->queue[end++] = root;
    while (begin < end) {
        uint32_t v = s->queue[begin++];
        for (uint32_t e = s->cut->heads.data[v]; e != END; e = s->cut->edges.data[e].next) {
            const ort_cut_edge *edge = &s->cut->edges.data[e];
            int64_t room = backwards ? s->cut->edges.data[e ^ 1].room : edge->room;
            if (room <= 0 || s->level[edge->to] != END)
                continue;
            s->level[edge->to] = s->level[v] + 1;
            s->queue[end++] = edge->to;
        }
    }
}

/* One path from source to sink along rising levels; its room, or 0. */
static int64_t push_path(search *s)
{
    ort_cut_edge *edges = s->cut->edges.data;
    uint32_t v = 0, depth = 0;
    while (v != 1) {
        uint32_t e = s->at[v];
        if (e == END) {
            if (depth == 0)
                return 0;
            s->level[v] = END; /* a dead end */
            v = edges[s->path[--depth] ^ 1].to;
            s->at[v] = edges[s->at[v]].next;
            continue;
        }
        if (edges[e].room > 0 && s->level[edges[e].to] == s->level[v] + 1) {
            s->path[depth++] = e;
            v = edges[e].to;
        } else {
            s->at[v] = edges[e].next;
        }
    }
    int64_t room = INT64_MAX;
    for (uint32_t i = 0; i < depth; i++)
        room = edges[s->path[i]].room < room ? edges[s->path[i]].room : room;
    for (uint32_t i = 0; i < depth; i++) {
        edges[s->path[i]].room -= room;
        edges[s->path[i] ^ 1].room += room;
    }
    return room;
}

static int64_t flow(search *s)
{
    int64_t total = 0, more;
    for (;;) {
        spread(s, 0, false);
        if (s->level[1] == END)
            return total;
        for (size_t v = 0; v < s->cut->heads.count; v++)
            s->at[v] = s->cut->heads.data[v];
        while ((more = push_path(s)) > 0)
            total += more;
    }
}

bool ort_min_cut_run(ort_min_cut *cut, bool *sink_side, int64_t *cost)
{
    size_t count = cut->heads.count;
    uint32_t *memory = calloc(4 * count + 1, sizeof *memory);
    search s = {cut, memory, memory + count, memory + 2 * count, memory + 3 * count};
    if (!memory)
        return false;
    *cost = flow(&s);
    spread(&s, 1, true);
    for (size_t v = 0; v < count; v++)
        sink_side[v] = s.level[v] != END;
    free(memory);
    return true;
}

void ort_min_cut_release(ort_min_cut *cut)
{
    ort_vec_release(&cut->heads);
    ort_vec_release(&cut->edges);
}
