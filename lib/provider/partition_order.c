/* partition_order.c - turns: what one provider runs stands together in the graph's order.
 *
 * A turn takes every node of one provider that has all it reads, also those that become ready by
 * others of the turn. Nothing that runs later could have been part of it, so with two providers no
 * order has fewer turns, once the better of two beginnings is found. Nodes that no run computes
 * belong to any turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/partition.h"

/* ---- turns */

typedef struct turns {
    const ort_partition *partition;
    const ort_graph *graph;
    ort_id *nodes; /* that live, in the graph's order */
    size_t count;
    bool *done; /* by node id */
} turns;

static bool is_done(const turns *t, ort_id value)
{
    ort_id producer = ort_graph_producer(t->graph, value);
    return producer == ORT_ID_NONE || t->done[producer] ||
           t->graph->nodes.data[producer]->removed;
}

static bool is_ready(const turns *t, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (!is_done(t, node->inputs[i]))
            return false;
    for (int i = 0; i < node->implicit_count; i++)
        if (!is_done(t, node->implicit[i]))
            return false;
    return true;
}

/* One turn; what it took goes behind `taken` of `order`. */
static size_t take_turn(turns *t, size_t first, int owner, ort_id *order, size_t taken)
{
    for (size_t i = first; i < t->count; i++) {
        const ort_node *node = t->graph->nodes.data[t->nodes[i]];
        if (t->done[node->id] || (!ort_partition_idles(t->partition, node) &&
                                  ort_partition_owner(t->partition, node) != owner) ||
            !is_ready(t, node))
            continue;
        t->done[node->id] = true;
        order[taken++] = node->id;
    }
    return taken;
}

/* The order that begins with a turn of `owner`; the number of turns. */
static int order_from(turns *t, int owner, ort_id *order)
{
    size_t taken = 0, first = 0;
    int count = 0;
    memset(t->done, 0, t->graph->nodes.count * sizeof *t->done);
    for (;;) {
        size_t before = taken;
        taken = take_turn(t, first, owner, order, taken);
        count += taken > before;
        while (first < t->count && t->done[t->nodes[first]])
            first++;
        if (first == t->count)
            return count;
        /* The first node left has all it reads: the order was right before. */
        owner = ort_partition_owner(t->partition, t->graph->nodes.data[t->nodes[first]]);
    }
}

static ort_status order(turns *t, ort_graph *graph, ort_error *err)
{
    int providers = t->partition->count, fewest = 0;
    ort_id *best = malloc((t->count + 1) * sizeof *best);
    ort_id *other = malloc((t->count + 1) * sizeof *other);
    if (best && other) {
        fewest = order_from(t, providers - 1, best);
        for (int i = 0; i < providers - 1; i++) {
            int count = order_from(t, i, other);
            if (count >= fewest)
                continue;
            fewest = count;
            memcpy(best, other, t->count * sizeof *best);
        }
        memcpy(graph->order.data, best, t->count * sizeof *best);
        graph->order.count = t->count;
    }
    free(other);
    bool ok = best && (other || !t->count);
    free(best);
    return ok ? ORT_OK : ort_error_memory(err, t->count * sizeof *best);
}

static ort_status order_graph(const ort_partition *partition, ort_graph *graph, ort_error *err)
{
    turns t = {.partition = partition, .graph = graph};
    const ort_node *node;
    t.nodes = malloc((graph->order.count + 1) * sizeof *t.nodes);
    t.done = malloc((graph->nodes.count + 1) * sizeof *t.done);
    ort_status status = t.nodes && t.done ? ORT_OK : ort_error_memory(err, graph->nodes.count);
    if (status == ORT_OK) {
        ORT_EACH_NODE(graph, node)
            t.nodes[t.count++] = node->id;
        status = order(&t, graph, err);
    }
    free(t.nodes);
    free(t.done);
    return status;
}

ort_status ort_partition_order(const ort_partition *partition, ort_graph *graph, ort_error *err)
{
    const ort_node *node;
    if (partition->divided)
        ORT_TRY(order_graph(partition, graph, err));
    ORT_EACH_NODE(graph, node)
        for (int b = 0; partition->divided_within && b < node->body_count; b++)
            if (ort_partition_body(partition, node, b))
                ORT_TRY(ort_partition_order(ort_partition_body(partition, node, b),
                                            node->bodies[b], err));
    return ORT_OK;
}

/* ---- what it comes to */

static double bytes_of(const ort_graph *graph, ort_id id, bool *open)
{
    ort_type type = graph->values.data[id]->fact.type;
    double bytes = 0;
    for (int d = 0; type.kind == ORT_TYPE_TENSOR && d < type.rank; d++)
        if (!ort_dim_known(type.dim[d])) {
            type.dim[d] = ort_dim_of(1);
            *open = true;
        }
    return ort_type_bytes(&type, &bytes) ? bytes : 0;
}

static void tally_node(const ort_partition *p, const ort_node *node, uint32_t *readers,
                       ort_tally *tally, int *last)
{
    int owner = ort_partition_owner(p, node);
    if (ort_partition_idles(p, node) || owner < 0)
        return;
    tally->nodes[owner]++;
    tally->around += node->body_count && owner == p->count - 1;
    tally->turns += owner != *last;
    *last = owner;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE)
            readers[node->inputs[i]] |= 1u << owner;
    for (int i = 0; i < node->implicit_count; i++)
        readers[node->implicit[i]] |= 1u << (p->count - 1);
}

/* Of a value that these devices compute or read: by way of the host, which may want it itself. */
static void add_copies(const ort_partition *p, const ort_graph *graph, ort_id id, uint32_t devices,
                       ort_tally *tally)
{
    double bytes = bytes_of(graph, id, &tally->open);
    for (int i = 0; i < p->count - 1; i++) {
        if (!(devices >> i & 1))
            continue;
        tally->borders++;
        tally->bytes += bytes;
        tally->copy_seconds += ort_partition_copy_seconds(p, graph, id, i);
    }
}

static void tally_values(const ort_partition *p, const ort_graph *graph, const uint32_t *readers,
                         ort_tally *tally)
{
    uint32_t host = 1u << (p->count - 1);
    for (size_t id = 0; id < graph->values.count; id++) {
        ort_id producer = ort_graph_producer(graph, (ort_id)id);
        const ort_node *node = producer == ORT_ID_NONE ? NULL : graph->nodes.data[producer];
        uint32_t home = node && !node->removed && ort_partition_owner(p, node) >= 0
                            ? 1u << ort_partition_owner(p, node)
                            : host;
        uint32_t away = readers[id] & ~home;
        if (!away || !ort_partition_moves(graph, (ort_id)id) ||
            (node && ort_partition_idles(p, node)))
            continue;
        add_copies(p, graph, (ort_id)id, (home | away) & ~host, tally);
    }
}

static ort_status tally_graph(const ort_partition *p, const ort_graph *graph, ort_tally *tally,
                              ort_error *err)
{
    uint32_t *readers = calloc(graph->values.count + 1, sizeof *readers);
    const ort_node *node;
    int last = -1;
    if (!readers)
        return ort_error_memory(err, graph->values.count * sizeof *readers);
    ORT_EACH_NODE(graph, node)
        tally_node(p, node, readers, tally, &last);
    for (size_t i = 0; i < graph->outputs.count; i++)
        readers[graph->outputs.data[i]] |= 1u << (p->count - 1);
    tally_values(p, graph, readers, tally);
    free(readers);
    ORT_EACH_NODE(graph, node)
        for (int b = 0; b < node->body_count; b++) {
            const ort_partition *body = ort_partition_body(p, node, b);
            if (!body)
                continue;
            tally->open = tally->open || ort_partition_has_device(body);
            ORT_TRY(tally_graph(body, node->bodies[b], tally, err));
        }
    return ORT_OK;
}

ort_status ort_partition_tally(const ort_partition *partition, const ort_graph *graph,
                               ort_tally *tally, ort_error *err)
{
    memset(tally, 0, sizeof *tally);
    return tally_graph(partition, graph, tally, err);
}

static const char *bytes_text(double bytes, char *text, size_t size)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    int unit = 0;
    while (bytes >= 1000 && unit < 4) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, size, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

const char *ort_partition_line(const ort_partition *partition, const ort_tally *tally, char *text,
                               size_t size)
{
    char bytes[40];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < partition->count; i++) {
        used = strlen(text);
        snprintf(text + used, size - used, "%s%s: %d%s", i ? ", " : "",
                 partition->list[i].row->name, tally->nodes[i], i ? "" : " nodes");
    }
    used = strlen(text);
    snprintf(text + used, size - used, ", %d borders, %s%s copied per run", tally->borders,
             tally->open ? "at least " : "", bytes_text(tally->bytes, bytes, sizeof bytes));
    return text;
}
