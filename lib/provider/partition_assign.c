/* partition_assign.c - claims: asks each provider of each node, in the order of the list, and runs
 * each one's lowering inside of what it was given. Bodies are divided like the graph around them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/partition.h"

typedef struct asking {
    ort_partition *partition;
    const ort_graph *graph;
    bool *constant; /* by value: the same in every run */
    bool *early;    /* by value: a plan knows it, or computes it */
    bool *settled;  /* by value: a plan knows its shape */
    ort_refusal_fn *tell;
    void *arg;
} asking;

/* ---- what only the host is asked about */

enum { MOST_OF_LIST = 8 }; /* elements for each of an open dimension */

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

static bool is_early(const asking *a, ort_id id)
{
    if (id == ORT_ID_NONE || a->early[id])
        return true;
    const ort_fact *fact = &a->graph->values.data[id]->fact;
    if (fact->value)
        return !a->graph->values.data[id]->is_input;
    for (int k = 0; fact->symbolic && k < fact->symbolic_count; k++)
        if (fact->symbolic[k].expr == ORT_DIM_UNKNOWN)
            return false;
    return fact->symbolic != NULL;
}

/* A list as long as an open dimension, or a few of it: plans evaluate what is small. */
static bool is_list(const ort_graph *graph, ort_id id)
{
    int64_t times = 1;
    int open = 0;
    if (id == ORT_ID_NONE)
        return true;
    const ort_type *type = &graph->values.data[id]->fact.type;
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 0)
        return false;
    for (int d = 0; d < type->rank && times <= MOST_OF_LIST; d++) {
        bool known = ort_dim_known(type->dim[d]);
        times *= known ? type->dim[d].size : 1;
        open += !known;
    }
    return times <= MOST_OF_LIST && open <= 1;
}

/* All that it is computed from follows from shapes, too: positions, for example. */
static bool is_evaluated(const asking *a, const ort_node *node)
{
    if (!node->op || node->body_count || !node->input_count ||
        (node->op->traits & (ORT_TRAIT_RANDOM | ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC)))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (!is_early(a, node->inputs[i]))
            return false;
    for (int i = 0; i < node->output_count; i++)
        if (!is_list(a->graph, node->outputs[i]))
            return false;
    return true;
}

/* ---- shapes that a plan knows */

static bool is_described(const ort_graph *graph, ort_id id)
{
    const ort_type *type = &graph->values.data[id]->fact.type;
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 0)
        return false;
    for (int d = 0; d < type->rank; d++)
        if (type->dim[d].expr == ORT_DIM_UNKNOWN)
            return false;
    return true;
}

static bool has_shape(const asking *a, ort_id id)
{
    return id == ORT_ID_NONE || a->settled[id];
}

/* Might the value say what shape results have? Lists of sizes, bounds, scales may. */
static bool may_tell_shapes(const asking *a, const ort_node *node, int input)
{
    const unsigned plain = ORT_TRAIT_ELEMENTWISE | ORT_TRAIT_JOINS | ORT_TRAIT_SHAPE_ONLY;
    ort_id id = node->inputs[input];
    if (id == ORT_ID_NONE || is_early(a, id) || node->op->traits & plain)
        return false;
    const ort_type *type = &a->graph->values.data[id]->fact.type;
    bool counts = type->dtype == ORT_DTYPE_INT64 || type->dtype == ORT_DTYPE_INT32;
    return type->rank <= 1 && (input || counts);
}

/* What inference with open dimensions can't name (the sum of two that may be equal) follows from
 * the numbers of a plan all the same, where it follows from the shapes of what is read. */
static bool is_settled_by_plans(const asking *a, const ort_node *node)
{
    if (!node->op || node->body_count ||
        (node->op->traits & (ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC)))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (!has_shape(a, node->inputs[i]) || may_tell_shapes(a, node, i))
            return false;
    return node->input_count > 0;
}

static void note_shapes(asking *a, const ort_node *node)
{
    bool by_plans = is_settled_by_plans(a, node);
    for (int i = 0; i < node->output_count; i++) {
        ort_id id = node->outputs[i];
        if (id == ORT_ID_NONE)
            continue;
        const ort_type *type = &a->graph->values.data[id]->fact.type;
        a->settled[id] = is_described(a->graph, id) ||
                         (by_plans && type->kind == ORT_TYPE_TENSOR && type->rank >= 0);
    }
}

static const char *only_host(const asking *a, const ort_node *node)
{
    if (!node->op)
        return "the operator is unknown";
    if (node->body_count)
        return "it has bodies, which are divided by themselves";
    if (folds(a, node))
        return "its inputs are constants: it is computed once";
    if (is_planned(a->graph, node) || ort_partition_idles(a->partition, node))
        return "it follows from shapes: no run computes it";
    for (int i = 0; i < node->input_count; i++)
        if (!has_shape(a, node->inputs[i]))
            return "the shape of an input is unknown before a run";
    for (int i = 0; i < node->output_count; i++)
        if (!has_shape(a, node->outputs[i]))
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
            a->tell(a->arg, p, node, o->row, *why);
    }
    return -1;
}

/* Which values and nodes no run computes, and which shapes plans know. */
static void look_at_all(asking *a)
{
    const ort_graph *graph = a->graph;
    const ort_node *node;
    for (size_t id = 0; id < graph->values.count; id++) {
        a->settled[id] = is_described(graph, (ort_id)id);
        a->constant[id] = graph->values.data[id]->fact.value && !graph->values.data[id]->is_input &&
                          graph->producers.data[id] == ORT_ID_NONE;
    }
    ORT_EACH_NODE(graph, node)
    {
        bool known = folds(a, node), early = known || is_planned(graph, node);
        early = early || is_evaluated(a, node);
        a->partition->idle[node->id] = early;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != ORT_ID_NONE) {
                a->constant[node->outputs[i]] = known;
                a->early[node->outputs[i]] = early;
            }
        note_shapes(a, node);
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

/* ---- the graph, and its bodies */

static ort_status assign_bodies(asking *a, ort_error *err)
{
    ort_partition *p = a->partition;
    const ort_node *node;
    ORT_EACH_NODE(a->graph, node)
    {
        if (!node->body_count)
            continue;
        if (!p->bodies)
            p->bodies = calloc(p->owner_count + 1, sizeof *p->bodies);
        ort_bodies *b = p->bodies ? &p->bodies[node->id] : NULL;
        if (b)
            b->list = calloc((size_t)node->body_count, sizeof *b->list);
        if (!b || !b->list)
            return ort_error_memory(err, p->owner_count * sizeof *p->bodies);
        for (b->count = 0; b->count < node->body_count;) {
            ort_partition *own = &b->list[b->count++];
            memcpy(own->list, p->list, sizeof own->list);
            own->count = p->count;
            own->host_named = p->host_named;
            ORT_TRY(ort_partition_assign(own, node->bodies[b->count - 1], NULL, a->tell, a->arg,
                                         err));
            p->divided_within = p->divided_within || ort_partition_has_device(own);
        }
    }
    return ORT_OK;
}

static ort_status assign(asking *a, ort_findings *findings, ort_error *err)
{
    ort_partition *p = a->partition;
    size_t count = a->graph->nodes.count;
    bool asks = p->count > 1;
    p->owner = malloc(count + 1);
    p->idle = asks ? calloc(count + 1, sizeof *p->idle) : NULL;
    a->constant = asks ? calloc(a->graph->values.count + 1, sizeof *a->constant) : NULL;
    a->early = asks ? calloc(a->graph->values.count + 1, sizeof *a->early) : NULL;
    a->settled = asks ? calloc(a->graph->values.count + 1, sizeof *a->settled) : NULL;
    if (!p->owner || (asks && (!a->constant || !a->early || !a->settled || !p->idle)))
        return ort_error_memory(err, count);
    p->owner_count = count;
    memset(p->owner, -1, count + 1);
    if (asks)
        look_at_all(a);
    ask_all(a, findings);
    for (int i = 0; p->divided && i < p->count - 1; i++)
        if (p->list[i].by_cost)
            ORT_TRY(ort_partition_weigh(p, a->graph, i, a->tell, a->arg, err));
    return asks ? assign_bodies(a, err) : ORT_OK;
}

ort_status ort_partition_assign(ort_partition *partition, const ort_graph *graph,
                                ort_findings *findings, ort_refusal_fn *tell, void *arg,
                                ort_error *err)
{
    asking a = {.partition = partition, .graph = graph, .tell = tell, .arg = arg};
    ort_partition_forget(partition);
    ort_status status = assign(&a, findings, err);
    free(a.constant);
    free(a.early);
    free(a.settled);
    return status;
}

/* ---- lowering */

/* To the passes of one provider, nodes of the others are operators that nobody knows: no pass looks
 * into them, or takes them for its own. */
typedef struct hidden_node {
    ort_node *node;
    const ort_op *op;
} hidden_node;

typedef ORT_VEC(hidden_node) hidden;

static ort_status hide_others(const ort_partition *p, const ort_graph *graph, int owner, hidden *h,
                              ort_error *err)
{
    for (size_t i = 0; i < graph->nodes.count && i < p->owner_count; i++) {
        ort_node *node = graph->nodes.data[i];
        const hidden_node one = {node, node->op};
        for (int b = 0; !node->removed && b < node->body_count; b++) {
            const ort_partition *own = ort_partition_body(p, node, b);
            if (own)
                ORT_TRY(hide_others(own, node->bodies[b], owner, h, err));
        }
        if (node->removed || !node->op || ort_partition_owner(p, node) == owner)
            continue;
        if (!ort_vec_push(h, one))
            return ort_error_memory(err, sizeof one);
        node->op = NULL;
    }
    return ORT_OK;
}

static void show_others(hidden *h)
{
    for (size_t i = 0; i < h->count; i++)
        h->data[i].node->op = h->data[i].op;
    ort_vec_release(h);
}

static bool grow(void **list, size_t size, size_t from, size_t to)
{
    char *grown = *list ? realloc(*list, (to + 1) * size) : NULL;
    if (!grown)
        return !*list;
    memset(grown + from * size, 0, (to - from) * size);
    *list = grown;
    return true;
}

/* Nodes that a provider's lowering made. */
static ort_status own_new_nodes(ort_partition *p, const ort_graph *graph, int owner,
                                ort_error *err)
{
    size_t before = p->owner_count, count = graph->nodes.count;
    void *owners = p->owner, *idle = p->idle, *bodies = p->bodies;
    bool ok = grow(&owners, sizeof *p->owner, before, count);
    ok = grow(&idle, sizeof *p->idle, before, count) && ok;
    ok = grow(&bodies, sizeof *p->bodies, before, count) && ok;
    p->owner = owners;
    p->idle = idle;
    p->bodies = bodies;
    if (!ok)
        return ort_error_memory(err, count);
    memset(p->owner + before, owner, count - before);
    p->owner_count = count;
    for (size_t i = 0; p->bodies && i < before; i++)
        for (int b = 0; !graph->nodes.data[i]->removed && b < p->bodies[i].count; b++)
            ORT_TRY(own_new_nodes(&p->bodies[i].list[b], graph->nodes.data[i]->bodies[b], owner,
                                  err));
    return ORT_OK;
}

ort_status ort_partition_lower(ort_partition *partition, ort_model *model,
                               const ort_pass_options *options, ort_error *err)
{
    for (int i = 0; i < partition->count; i++) {
        ort_pass_options own = *options;
        ort_status status = ORT_OK;
        hidden h = {0};
        own.table = partition->list[i].row->lower;
        if (!own.table)
            continue;
        if (ort_partition_has_device(partition))
            status = hide_others(partition, model->graph, i, &h, err);
        if (status == ORT_OK)
            status = ort_passes_run(model, &own, err);
        show_others(&h);
        if (status != ORT_OK)
            return status;
        ORT_TRY(own_new_nodes(partition, model->graph, i, err));
    }
    return ORT_OK;
}
