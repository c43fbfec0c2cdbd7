/* partition_assign.c - claims: asks each provider of each node, in the order of the list, and runs
 * each one's lowering inside of what it was given.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/partition.h"

typedef struct asking {
    ort_partition *partition;
    const ort_graph *graph;
    bool *constant; /* by value: the same in every run */
    ort_refusal_fn *tell;
    void *arg;
} asking;

/* ---- what only the host is asked about */

static bool is_constant(const asking *a, ort_id id)
{
    return id == ORT_ID_NONE || a->constant[id];
}

/* Computed once, when the session is made. */
static bool folds(const asking *a, const ort_node *node)
{
    if (!node->op || (node->op->traits & (ORT_TRAIT_RANDOM | ORT_TRAIT_CONTROL)))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (!is_constant(a, node->inputs[i]))
            return false;
    return node->input_count > 0;
}

/* Its results follow from shapes: a plan knows them, and no run computes them. */
static bool is_planned(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        const ort_fact *fact = &graph->values.data[node->outputs[i]]->fact;
        if (!fact->value && !fact->symbolic)
            return false;
        for (int k = 0; !fact->value && k < fact->symbolic_count; k++)
            if (fact->symbolic[k].expr == ORT_DIM_UNKNOWN)
                return false;
    }
    return true;
}

/* Will a plan know the shape? */
static bool has_shape(const ort_graph *graph, ort_id id)
{
    if (id == ORT_ID_NONE)
        return true;
    const ort_type *type = &graph->values.data[id]->fact.type;
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 0)
        return false;
    for (int d = 0; d < type->rank; d++)
        if (type->dim[d].expr == ORT_DIM_UNKNOWN)
            return false;
    return true;
}

static const char *only_host(const asking *a, const ort_node *node)
{
    if (!node->op)
        return "the operator is unknown";
    if (node->body_count)
        return "it has bodies";
    if (folds(a, node))
        return "its inputs are constants: it is computed once";
    if (is_planned(a->graph, node))
        return "it follows from shapes: no run computes it";
    for (int i = 0; i < node->input_count; i++)
        if (!has_shape(a->graph, node->inputs[i]))
            return "the shape of an input is unknown before a run";
    for (int i = 0; i < node->output_count; i++)
        if (!has_shape(a->graph, node->outputs[i]))
            return "the shape of an output is unknown before a run";
    return NULL;
}

/* ---- claims */

static bool claims(const ort_open_provider *o, const ort_graph *graph, const ort_node *node,
                   const char **why)
{
    *why = "no kernel";
    return o->row->claim(o->device, graph, node, why);
}

static int claim(const asking *a, const ort_node *node, const char **why)
{
    const ort_partition *p = a->partition;
    const char *first = p->count > 1 ? only_host(a, node) : NULL;
    for (int i = 0; i < p->count; i++) {
        const ort_open_provider *o = &p->list[i];
        *why = first;
        if ((o->row->host || !first) && claims(o, a->graph, node, why))
            return i;
        if (a->tell)
            a->tell(a->arg, node, o->row, *why);
    }
    return -1;
}

/* Which values and nodes no run computes. */
static void note_idle(asking *a)
{
    const ort_graph *graph = a->graph;
    const ort_node *node;
    for (size_t id = 0; id < graph->values.count; id++)
        a->constant[id] = graph->values.data[id]->fact.value && !graph->values.data[id]->is_input &&
                          graph->producers.data[id] == ORT_ID_NONE;
    ORT_EACH_NODE(graph, node)
    {
        bool known = folds(a, node);
        a->partition->idle[node->id] = known || is_planned(graph, node);
        for (int i = 0; known && i < node->output_count; i++)
            if (node->outputs[i] != ORT_ID_NONE)
                a->constant[node->outputs[i]] = true;
    }
}

static void ask_all(asking *a, ort_findings *findings)
{
    ort_partition *p = a->partition;
    const ort_node *node;
    char label[256];
    ORT_EACH_NODE(a->graph, node)
    {
        const char *why = "no provider was opened";
        int owner = claim(a, node, &why);
        p->owner[node->id] = (int8_t)owner;
        p->divided = p->divided || (owner >= 0 && owner < p->count - 1);
        if (owner < 0 && findings)
            ort_findings_add(findings, ORT_FINDING_ERROR,
                             "%s: no provider runs operator %s%s%s of opset %d: %s",
                             ort_node_label(node, label, sizeof label), node->domain,
                             node->domain[0] ? "." : "", node->op_type, node->opset, why);
    }
}

ort_status ort_partition_assign(ort_partition *partition, const ort_graph *graph,
                                ort_findings *findings, ort_refusal_fn *tell, void *arg,
                                ort_error *err)
{
    asking a = {.partition = partition, .graph = graph, .tell = tell, .arg = arg};
    bool asks = partition->count > 1;
    free(partition->owner);
    free(partition->idle);
    partition->owner = malloc(graph->nodes.count + 1);
    partition->idle = asks ? calloc(graph->nodes.count + 1, sizeof *partition->idle) : NULL;
    partition->owner_count = graph->nodes.count;
    partition->divided = false;
    a.constant = asks ? calloc(graph->values.count + 1, sizeof *a.constant) : NULL;
    if (!partition->owner || (asks && (!a.constant || !partition->idle))) {
        free(a.constant);
        return ort_error_memory(err, graph->nodes.count);
    }
    memset(partition->owner, -1, graph->nodes.count + 1);
    if (asks)
        note_idle(&a);
    ask_all(&a, findings);
    free(a.constant);
    for (int i = 0; partition->divided && i < partition->count - 1; i++)
        if (partition->list[i].by_cost)
            ORT_TRY(ort_partition_weigh(partition, graph, i, tell, arg, err));
    return ORT_OK;
}

/* ---- lowering */

/* To the passes of one provider, nodes of the others are operators that nobody knows: no pass looks
 * into them, or takes them for its own. */
typedef struct hidden {
    const ort_op **ops; /* by node id; NULL: not hidden */
    size_t count;
} hidden;

static ort_status hide_others(const ort_partition *p, const ort_graph *graph, int owner, hidden *h,
                              ort_error *err)
{
    h->count = graph->nodes.count;
    h->ops = calloc(h->count + 1, sizeof *h->ops);
    if (!h->ops)
        return ort_error_memory(err, h->count * sizeof *h->ops);
    for (size_t i = 0; i < h->count; i++) {
        ort_node *node = graph->nodes.data[i];
        if (node->removed || ort_partition_owner(p, node) == owner)
            continue;
        h->ops[i] = node->op;
        node->op = NULL;
    }
    return ORT_OK;
}

static void show_others(const ort_graph *graph, hidden *h)
{
    for (size_t i = 0; h->ops && i < h->count; i++)
        if (h->ops[i])
            graph->nodes.data[i]->op = h->ops[i];
    free(h->ops);
}

/* Nodes that a provider's lowering made. */
static ort_status own_new_nodes(ort_partition *p, const ort_graph *graph, int owner,
                                ort_error *err)
{
    size_t before = p->owner_count, count = graph->nodes.count;
    int8_t *owners = realloc(p->owner, count + 1);
    if (!owners)
        return ort_error_memory(err, count);
    p->owner = owners;
    memset(owners + before, owner, count - before);
    if (p->idle) {
        bool *idle = realloc(p->idle, count + 1);
        if (!idle)
            return ort_error_memory(err, count);
        p->idle = idle;
        memset(idle + before, 0, count - before);
    }
    p->owner_count = count;
    return ORT_OK;
}

ort_status ort_partition_lower(ort_partition *partition, ort_model *model,
                               const ort_pass_options *options, ort_error *err)
{
    for (int i = 0; i < partition->count; i++) {
        ort_pass_options own = *options;
        hidden h = {0};
        own.table = partition->list[i].row->lower;
        if (!own.table)
            continue;
        if (partition->divided)
            ORT_TRY(hide_others(partition, model->graph, i, &h, err));
        ort_status status = ort_passes_run(model, &own, err);
        show_others(model->graph, &h);
        if (status != ORT_OK)
            return status;
        ORT_TRY(own_new_nodes(partition, model->graph, i, err));
    }
    return ORT_OK;
}
