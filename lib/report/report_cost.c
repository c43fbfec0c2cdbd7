/* report_cost.c - what a model costs: parameters, multiply-accumulates, other arithmetic and bytes
 * per node (or per operator) and in total, from facts alone. A number that depends on an open
 * dimension is null and counts as nothing in the total, which then says how many nodes it leaves
 * out. Bodies count once.
 */
#include <string.h>

#include "graph/override.h"
#include "report/report.h"

typedef struct node_cost {
    ort_cost work;
    bool work_known;
    double parameters, weight_bytes, in_bytes, out_bytes;
    bool bytes_known;
} node_cost;

typedef struct operator_cost { /* of all nodes of one operator */
    const char *domain, *op_type;
    size_t nodes, open;
    double macs, weight_bytes;
} operator_cost;

typedef struct totals {
    ort_json *json;
    bool by_operator; /* sums are wanted, not a row per node */
    ORT_VEC(operator_cost) operators;
    double macs, flops, parameters, weight_bytes, bytes;
    size_t nodes, open;
    ort_hashmap seen; /* weights already counted in the total: pointer bytes */
    ort_arena arena;
} totals;

enum { MAX_SLOTS = 256 };

static bool all_known(const ort_graph *graph, const ort_id *ids, int count)
{
    double unused;
    for (int i = 0; i < count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, ids[i]);
        if (v && v->fact.type.kind == ORT_TYPE_TENSOR && !ort_type_bytes(&v->fact.type, &unused))
            return false;
        if (v && v->fact.type.kind == ORT_TYPE_UNKNOWN)
            return false;
    }
    return true;
}

static void cost_work(const ort_graph *graph, const ort_node *node, node_cost *c)
{
    const ort_fact *in[MAX_SLOTS];
    ort_fact out[16];
    if (node->input_count > MAX_SLOTS || node->output_count > 16 || !node->op ||
        !all_known(graph, node->inputs, node->input_count) ||
        !all_known(graph, node->outputs, node->output_count))
        return;
    c->work_known = true;
    for (int i = 0; i < node->input_count; i++) {
        ort_graph_value *v = ort_graph_value_at(graph, node->inputs[i]);
        in[i] = v ? &v->fact : NULL;
    }
    memset(out, 0, sizeof out);
    for (int i = 0; i < node->output_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->outputs[i]);
        if (v)
            out[i] = v->fact;
    }
    ort_infer x = {.node = node, .op = node->op, .opset = node->opset,
                   .in_count = node->input_count, .out_count = node->output_count, .in = in,
                   .out = out, .graph = graph};
    ort_cost_of(&x, &c->work);
}

static void cost_bytes(const ort_graph *graph, const ort_node *node, node_cost *c)
{
    double bytes;
    c->bytes_known = true;
    for (int i = 0; i < node->input_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->inputs[i]);
        if (!v)
            continue;
        bool known = ort_type_bytes(&v->fact.type, &bytes);
        c->bytes_known = c->bytes_known && known;
        if (!known)
            continue;
        if (ort_graph_is_weight(graph, node->inputs[i])) {
            c->weight_bytes += bytes;
            c->parameters += bytes * 8 / ort_dtype_get(v->fact.type.dtype)->bits;
        } else {
            c->in_bytes += bytes;
        }
    }
    for (int i = 0; i < node->output_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->outputs[i]);
        if (!v)
            continue;
        bool known = ort_type_bytes(&v->fact.type, &bytes);
        c->bytes_known = c->bytes_known && known;
        c->out_bytes += known ? bytes : 0;
    }
}

static void put_number(ort_json *json, const char *key, double value, bool known)
{
    ort_json_key(json, key);
    if (known)
        ort_json_int(json, (int64_t)value);
    else
        ort_json_null(json);
}

/* A weight that several nodes read is counted once in the total. */
static void count_weights(totals *t, const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->inputs[i]);
        double bytes;
        if (!v || !ort_graph_is_weight(graph, node->inputs[i]) ||
            !ort_type_bytes(&v->fact.type, &bytes))
            continue;
        if (ort_hashmap_get(&t->seen, (const char *)&v, sizeof v, NULL))
            continue;
        const ort_graph_value **key = ort_arena_alloc(&t->arena, sizeof *key);
        if (!key)
            continue;
        *key = v;
        (void)ort_hashmap_put(&t->seen, (const char *)key, sizeof *key, 1);
        t->weight_bytes += bytes;
        t->parameters += bytes * 8 / ort_dtype_get(v->fact.type.dtype)->bits;
    }
}

static void add_to_operator(totals *t, const ort_node *node, const node_cost *c)
{
    const char *domain = ort_report_domain(node->domain);
    size_t i = 0;
    while (i < t->operators.count && (strcmp(t->operators.data[i].op_type, node->op_type) ||
                                      strcmp(t->operators.data[i].domain, domain)))
        i++;
    operator_cost first = {.domain = domain, .op_type = node->op_type};
    if (i == t->operators.count && !ort_vec_push(&t->operators, first))
        return; /* a row is missing then: this is talk */
    operator_cost *sum = &t->operators.data[i];
    sum->nodes++;
    sum->open += !c->work_known;
    sum->macs += c->work.macs;
    sum->weight_bytes += c->weight_bytes;
}

static void put_operators(ort_json *json, const totals *t)
{
    ort_json_key(json, "operators");
    ort_json_begin_array(json);
    for (size_t i = 0; i < t->operators.count; i++) {
        const operator_cost *sum = &t->operators.data[i];
        ort_json_begin_object(json);
        ort_report_text(json, "domain", sum->domain);
        ort_report_text(json, "op_type", sum->op_type);
        ort_report_int(json, "nodes", (int64_t)sum->nodes);
        ort_report_int(json, "open_nodes", (int64_t)sum->open);
        put_number(json, "macs", sum->macs, true);
        put_number(json, "weight_bytes", sum->weight_bytes, true);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

static void put_node(void *arg, const ort_graph *graph, const ort_node *node, const char *path)
{
    totals *t = arg;
    node_cost c = {.work_known = false};
    if (ort_node_is_constant(node))
        return;
    cost_work(graph, node, &c);
    cost_bytes(graph, node, &c);
    count_weights(t, graph, node);
    t->nodes++;
    t->open += !c.work_known;
    t->macs += c.work.macs;
    t->flops += c.work.flops;
    t->bytes += c.in_bytes + c.out_bytes + c.weight_bytes;
    if (t->by_operator) {
        add_to_operator(t, node, &c);
        return;
    }
    ort_json_begin_object(t->json);
    ort_report_int(t->json, "id", node->id);
    ort_report_text(t->json, "name", node->name);
    ort_report_text(t->json, "domain", ort_report_domain(node->domain));
    ort_report_text(t->json, "op_type", node->op_type);
    if (*path)
        ort_report_text(t->json, "graph", path);
    ort_report_values(t->json, "outputs", graph, node->outputs, node->output_count);
    put_number(t->json, "parameters", c.parameters, true);
    put_number(t->json, "macs", c.work.macs, c.work_known);
    put_number(t->json, "flops", c.work.flops, c.work_known);
    put_number(t->json, "weight_bytes", c.weight_bytes, true);
    put_number(t->json, "input_bytes", c.in_bytes, c.bytes_known);
    put_number(t->json, "output_bytes", c.out_bytes, c.bytes_known);
    ort_json_end_object(t->json);
}

/* ---- open dimensions */

void ort_report_assume(ort_model *model)
{
    ort_graph *graph = model->graph;
    char name[256];
    for (size_t i = 0; i < graph->inputs.count; i++) {
        ort_type *type = &graph->values.data[graph->inputs.data[i]]->fact.type;
        for (int d = 0; type->kind == ORT_TYPE_TENSOR && d < type->rank; d++) {
            if (ort_dim_known(type->dim[d]))
                continue;
            ort_dim_format(model->dims, type->dim[d], name, sizeof name);
            if (type->dim[d].expr != ORT_DIM_UNKNOWN)
                (void)ort_graph_set_dim(model, name, 1, NULL);
            if (!ort_dim_known(type->dim[d]))
                type->dim[d] = ort_dim_of(1);
        }
    }
}

static void put_assumed(ort_json *json, const ort_model *model)
{
    const ort_graph *graph = model->graph;
    char name[256];
    ort_json_key(json, "assumed_one");
    ort_json_begin_array(json);
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const ort_graph_value *value = graph->values.data[graph->inputs.data[i]];
        const ort_type *type = &value->fact.type;
        for (int d = 0; type->kind == ORT_TYPE_TENSOR && d < type->rank; d++) {
            if (ort_dim_known(type->dim[d]))
                continue;
            ort_json_begin_object(json);
            ort_report_text(json, "input", value->name);
            ort_report_int(json, "axis", d);
            ort_report_text(json, "dim",
                            ort_dim_format(model->dims, type->dim[d], name, sizeof name));
            ort_json_end_object(json);
        }
    }
    ort_json_end_array(json);
}

void ort_report_cost(ort_json *json, const ort_model *original, const ort_model *model,
                     bool by_operator)
{
    totals t = {.json = json, .by_operator = by_operator};
    put_assumed(json, original);
    if (by_operator) {
        ort_report_each_node(model->graph, "", put_node, &t);
        put_operators(json, &t);
    } else {
        ort_json_key(json, "nodes");
        ort_json_begin_array(json);
        ort_report_each_node(model->graph, "", put_node, &t);
        ort_json_end_array(json);
    }
    ort_json_key(json, "total");
    ort_json_begin_object(json);
    ort_report_int(json, "nodes", (int64_t)t.nodes);
    ort_report_int(json, "open_nodes", (int64_t)t.open);
    put_number(json, "parameters", t.parameters, true);
    put_number(json, "macs", t.macs, true);
    put_number(json, "flops", t.flops, true);
    put_number(json, "weight_bytes", t.weight_bytes, true);
    put_number(json, "moved_bytes", t.bytes, true);
    ort_json_end_object(json);
    ort_vec_release(&t.operators);
    ort_hashmap_release(&t.seen);
    ort_arena_release(&t.arena);
}
