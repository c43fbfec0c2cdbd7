/* partition_cost.c - what moving is worth: a least cut between the host and one provider.
 *
 * The source's side stays on the host, the sink's goes to the provider. A node that the provider
 * claims costs on either side what it takes there. A value costs a copy, once, where its producer
 * and any of its readers lie on different sides; inputs and outputs of the graph lie on the host.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/min_cut.h"
#include "provider/partition.h"

enum { SOURCE, SINK };

/* Sizes of open dimensions, for estimates: one of a batch, and a few dozen of anything else. */
enum { ASSUMED_BATCH = 1, ASSUMED_LENGTH = 64 };

typedef struct weighing {
    ort_partition *partition;
    const ort_graph *graph;
    int provider;
    ort_min_cut cut;
    uint32_t *vertex; /* by node id; 0 (the source): stays on the host whatever it costs */
    bool ok;          /* memory was enough */
} weighing;

bool ort_partition_moves(const ort_graph *graph, ort_id id)
{
    const ort_fact *fact = id == ORT_ID_NONE ? NULL : &graph->values.data[id]->fact;
    return fact && !fact->symbolic && (!fact->value || graph->values.data[id]->is_input);
}

static int64_t picoseconds(double seconds)
{
    double p = seconds * 1e12;
    return p > 1e15 ? (int64_t)1e15 : p >= 1 ? (int64_t)p : 1; /* also of what is no number */
}

static ort_type settled(const ort_type *type)
{
    ort_type t = *type;
    for (int d = 0; d < t.rank; d++)
        if (!ort_dim_known(t.dim[d]))
            t.dim[d] = ort_dim_of(d ? ASSUMED_LENGTH : ASSUMED_BATCH);
    return t;
}

static double bytes_of(const ort_graph *graph, ort_id id)
{
    double bytes = 0;
    ort_type type = settled(&graph->values.data[id]->fact.type);
    return ort_type_bytes(&type, &bytes) ? bytes : 0;
}

enum { MOST_SLOTS = 16 };

void ort_partition_work(const ort_graph *graph, const ort_node *node, ort_cost *cost, double *bytes)
{
    ort_fact facts[2 * MOST_SLOTS];
    const ort_fact *in[MOST_SLOTS];
    int ins = node->input_count < MOST_SLOTS ? node->input_count : MOST_SLOTS;
    int outs = node->output_count < MOST_SLOTS ? node->output_count : MOST_SLOTS;
    *bytes = 0;
    for (int i = 0; i < ins + outs; i++) {
        ort_id id = i < ins ? node->inputs[i] : node->outputs[i - ins];
        facts[i] = (ort_fact){0};
        if (i < ins)
            in[i] = id == ORT_ID_NONE ? NULL : &facts[i];
        if (id == ORT_ID_NONE)
            continue;
        facts[i] = graph->values.data[id]->fact;
        facts[i].type = settled(&facts[i].type);
        *bytes += bytes_of(graph, id);
    }
    ort_infer x = {.node = node, .op = node->op, .opset = node->opset, .in_count = ins,
                   .out_count = outs, .in = in, .out = facts + ins, .graph = graph};
    ort_cost_of(&x, cost);
}

static void add_edge(weighing *w, uint32_t from, uint32_t to, int64_t capacity)
{
    w->ok = w->ok && ort_min_cut_edge(&w->cut, from, to, capacity);
}

static uint32_t add_vertex(weighing *w)
{
    uint32_t v = w->ok ? ort_min_cut_vertex(&w->cut) : UINT32_MAX;
    w->ok = w->ok && v != UINT32_MAX;
    return w->ok ? v : SOURCE;
}

double ort_partition_seconds(const ort_partition *partition, const ort_graph *graph,
                             const ort_node *node, int provider)
{
    const ort_open_provider *o = &partition->list[provider];
    ort_cost cost;
    double bytes;
    ort_partition_work(graph, node, &cost, &bytes);
    const ort_node_work work = {cost.macs, cost.flops, bytes, cost.of_bytes};
    return o->row->cost(o->device, &work);
}

double ort_partition_copy_seconds(const ort_partition *partition, const ort_graph *graph, ort_id id,
                                  int provider)
{
    const ort_open_provider *o = &partition->list[provider];
    return o->row->copy_cost(o->device, bytes_of(graph, id));
}

static void add_node(weighing *w, const ort_node *node)
{
    const ort_partition *p = w->partition;
    uint32_t v = w->vertex[node->id] = add_vertex(w);
    add_edge(w, SOURCE, v, picoseconds(ort_partition_seconds(p, w->graph, node, w->provider)));
    add_edge(w, v, SINK, picoseconds(ort_partition_seconds(p, w->graph, node, p->count - 1)));
}

typedef struct tie { /* of a value: made when a first reader may lie on the other side */
    uint32_t up, down; /* 0: none yet */
} tie;

/* A reader of value `id` at vertex `to`, SOURCE for all that stays on the host. */
static void add_reader(weighing *w, tie *ties, ort_id id, uint32_t to)
{
    ort_id producer = ort_graph_producer(w->graph, id);
    uint32_t from = producer == ORT_ID_NONE ? SOURCE : w->vertex[producer];
    if (from == to)
        return;
    int64_t copy = picoseconds(ort_partition_copy_seconds(w->partition, w->graph, id,
                                                          w->provider));
    if (to != SOURCE) {
        if (!ties[id].up) {
            ties[id].up = add_vertex(w);
            add_edge(w, from, ties[id].up, copy);
        }
        add_edge(w, ties[id].up, to, ORT_CUT_NEVER);
    }
    if (from != SOURCE) {
        if (!ties[id].down) {
            ties[id].down = add_vertex(w);
            add_edge(w, ties[id].down, from, copy);
        }
        add_edge(w, to, ties[id].down, ORT_CUT_NEVER);
    }
}

/* What a plan knows is no copy of a run. */
static bool moves(const weighing *w, ort_id id)
{
    ort_id producer = id == ORT_ID_NONE ? ORT_ID_NONE : ort_graph_producer(w->graph, id);
    return ort_partition_moves(w->graph, id) &&
           (producer == ORT_ID_NONE ||
            !ort_partition_idles(w->partition, w->graph->nodes.data[producer]));
}

static void add_values(weighing *w, tie *ties)
{
    const ort_graph *graph = w->graph;
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        for (int i = 0; i < node->input_count; i++)
            if (moves(w, node->inputs[i]))
                add_reader(w, ties, node->inputs[i], w->vertex[node->id]);
        for (int i = 0; i < node->implicit_count; i++)
            if (moves(w, node->implicit[i]))
                add_reader(w, ties, node->implicit[i], SOURCE);
    }
    for (size_t i = 0; i < graph->outputs.count; i++)
        if (moves(w, graph->outputs.data[i]))
            add_reader(w, ties, graph->outputs.data[i], SOURCE);
}

/* "cost: 36.0 us and copies; 2.1 us on cpu" */
static void tell_cost(const weighing *w, const ort_node *node, ort_refusal_fn *tell, void *arg)
{
    const ort_partition *p = w->partition;
    int host = p->count - 1;
    char why[200];
    snprintf(why, sizeof why, "cost: %.1f us and copies; %.1f us on %s",
             ort_partition_seconds(p, w->graph, node, w->provider) * 1e6,
             ort_partition_seconds(p, w->graph, node, host) * 1e6, p->list[host].row->name);
    tell(arg, p, node, p->list[w->provider].row, why);
}

static void give_back(weighing *w, const bool *sink_side, ort_refusal_fn *tell, void *arg)
{
    ort_partition *p = w->partition;
    const ort_node *node;
    p->divided = false;
    ORT_EACH_NODE(w->graph, node)
    {
        if (w->vertex[node->id] && !sink_side[w->vertex[node->id]]) {
            p->owner[node->id] = (int8_t)(p->count - 1);
            if (tell)
                tell_cost(w, node, tell, arg);
        }
        p->divided = p->divided ||
                     (p->owner[node->id] >= 0 && p->owner[node->id] < p->count - 1);
    }
}

/* Only nodes that the host could run, too, have a choice. */
static bool has_choice(const weighing *w, const ort_node *node)
{
    const ort_open_provider *host = &w->partition->list[w->partition->count - 1];
    const char *why = NULL;
    return w->partition->owner[node->id] == w->provider &&
           host->row->claim(host->device, w->graph, node, &why);
}

ort_status ort_partition_weigh(ort_partition *partition, const ort_graph *graph, int provider,
                               ort_refusal_fn *tell, void *arg, ort_error *err)
{
    weighing w = {.partition = partition, .graph = graph, .provider = provider, .ok = true};
    const ort_node *node;
    bool *sink_side = NULL;
    int64_t cost;
    tie *ties = calloc(graph->values.count + 1, sizeof *ties);
    w.vertex = calloc(graph->nodes.count + 1, sizeof *w.vertex);
    w.ok = ties && w.vertex;
    if (w.ok) { /* the source and the sink */
        add_vertex(&w);
        add_vertex(&w);
        ORT_EACH_NODE(graph, node)
            if (has_choice(&w, node))
                add_node(&w, node);
        add_values(&w, ties);
    }
    if (w.ok)
        sink_side = calloc(w.cut.heads.count + 1, sizeof *sink_side);
    w.ok = w.ok && sink_side && ort_min_cut_run(&w.cut, sink_side, &cost);
    if (w.ok)
        give_back(&w, sink_side, tell, arg);
    ort_min_cut_release(&w.cut);
    free(sink_side);
    free(w.vertex);
    free(ties);
    return w.ok ? ORT_OK : ort_error_memory(err, graph->values.count * sizeof *ties);
}
