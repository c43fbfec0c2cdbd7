/* report_partition.c - who runs which node and why nobody else does; which devices there are.
 *
 * The division is that of a session of these options, asked again on the graph that providers are
 * asked about: after the portable passes, before any provider's own.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/session.h"
#include "report/partition_report.h"
#include "report/report.h"

typedef struct refusal {
    const ort_node *node;
    const ort_provider *by;
    char *why;
} refusal;

typedef struct refusals {
    ORT_VEC(refusal) list;
    bool failed;
} refusals;

static void note(void *arg, const ort_partition *p, const ort_node *node, const ort_provider *by,
                 const char *why)
{
    refusals *r = arg;
    refusal one = {node, by, strdup(why)};
    if (one.why && ort_vec_push(&r->list, one))
        return;
    free(one.why);
    r->failed = true;
}

static void put_refusals(ort_json *json, const ort_node *node, const refusals *r)
{
    ort_json_key(json, "refused");
    ort_json_begin_array(json);
    for (size_t i = 0; i < r->list.count; i++) {
        if (r->list.data[i].node != node)
            continue;
        ort_json_begin_object(json);
        ort_report_text(json, "provider", r->list.data[i].by->name);
        ort_report_text(json, "reason", r->list.data[i].why);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

/* Of what a run computes. */
static double macs_of(const ort_partition *p, const ort_graph *graph, const ort_node *node)
{
    ort_cost cost;
    double bytes;
    if (ort_partition_idles(p, node))
        return 0;
    ort_partition_work(graph, node, &cost, &bytes);
    return cost.macs;
}

static void put_rounded(ort_json *json, double number)
{
    ort_json_double(json, rint(number * 1000) / 1000);
}

static bool weighed(const ort_partition *p, const ort_node *node, int provider, const refusals *r)
{
    if (provider == p->count - 1 || ort_partition_owner(p, node) == provider)
        return true;
    for (size_t i = 0; i < r->list.count; i++)
        if (r->list.data[i].node == node && r->list.data[i].by == p->list[provider].row &&
            !strncmp(r->list.data[i].why, "cost:", 5))
            return true;
    return false;
}

/* What it is guessed to take on those that could run it. */
static void put_estimates(ort_json *json, const ort_partition *p, const ort_graph *graph,
                          const ort_node *node, const refusals *r)
{
    ort_json_key(json, "estimated_us");
    ort_json_begin_object(json);
    for (int i = 0; i < p->count; i++) {
        if (ort_partition_idles(p, node) || !node->op || !weighed(p, node, i, r))
            continue;
        ort_json_key(json, p->list[i].row->name);
        put_rounded(json, 1e6 * ort_partition_seconds(p, graph, node, i));
    }
    ort_json_end_object(json);
}

/* Values that a run may copy. */
static void put_moving(ort_json *json, const char *key, const ort_graph *graph, const ort_id *ids,
                       int count)
{
    ort_json_key(json, key);
    ort_json_begin_array(json);
    for (int i = 0; i < count; i++)
        if (ort_partition_moves(graph, ids[i]))
            ort_json_string(json, graph->values.data[ids[i]]->name);
    ort_json_end_array(json);
}

/* Of its first input; of its result where it has none, or the type of that isn't known. */
static const char *element_type(const ort_graph *graph, const ort_node *node)
{
    ort_id in = node->input_count ? node->inputs[0] : ORT_ID_NONE;
    ort_id out = node->output_count ? node->outputs[0] : ORT_ID_NONE;
    ort_dtype dtype = ORT_DTYPE_UNDEFINED;
    if (in != ORT_ID_NONE)
        dtype = graph->values.data[in]->fact.type.dtype;
    if (dtype == ORT_DTYPE_UNDEFINED && out != ORT_ID_NONE)
        dtype = graph->values.data[out]->fact.type.dtype;
    return dtype == ORT_DTYPE_UNDEFINED ? "" : ort_dtype_name(dtype);
}

static void put_node(ort_json *json, const ort_partition *p, const ort_graph *graph,
                     const ort_node *node, const char *within, const refusals *r)
{
    ort_json_begin_object(json);
    ort_report_text(json, "name", node->name);
    ort_report_text(json, "domain", ort_report_domain(node->domain));
    ort_report_text(json, "op_type", node->op_type);
    ort_report_text(json, "element_type", element_type(graph, node));
    if (*within)
        ort_report_text(json, "within", within);
    ort_report_text(json, "provider", ort_partition_name(p, node));
    ort_json_key(json, "computed_by_runs");
    ort_json_bool(json, !ort_partition_idles(p, node));
    ort_report_int(json, "macs", (int64_t)macs_of(p, graph, node));
    put_moving(json, "inputs", graph, node->inputs, node->input_count);
    put_moving(json, "outputs", graph, node->outputs, node->output_count);
    put_estimates(json, p, graph, node, r);
    put_refusals(json, node, r);
    ort_json_end_object(json);
}

/* "loop/body", of a node without a name "Loop/body". */
static const char *path_of(const ort_node *node, int body, const char *within, char *path,
                           size_t size)
{
    const char *name = "";
    for (int i = 0; i < node->attr_count; i++)
        if (ort_node_body(node, node->attrs[i].name) == body)
            name = node->attrs[i].name;
    snprintf(path, size, "%s%s%s/%s", within, *within ? "/" : "",
             *node->name ? node->name : node->op_type, name);
    return path;
}

/* Those of bodies follow the node that has them. */
static void put_nodes(ort_json *json, const ort_partition *p, const ort_graph *graph,
                      const char *within, const refusals *r)
{
    const ort_node *node;
    char path[400];
    ORT_EACH_NODE(graph, node)
    {
        put_node(json, p, graph, node, within, r);
        for (int b = 0; b < node->body_count; b++)
            if (ort_partition_body(p, node, b))
                put_nodes(json, ort_partition_body(p, node, b), node->bodies[b],
                          path_of(node, b, within, path, sizeof path), r);
    }
}

static double macs_of_provider(const ort_partition *p, const ort_graph *graph, int index)
{
    double sum = 0;
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        if (ort_partition_owner(p, node) == index)
            sum += macs_of(p, graph, node);
        for (int b = 0; b < node->body_count; b++)
            if (ort_partition_body(p, node, b))
                sum += macs_of_provider(ort_partition_body(p, node, b), node->bodies[b], index);
    }
    return sum;
}

/* Of a run in which each body runs once: nodes where they are, and all on the host. */
static void add_estimates(const ort_partition *p, const ort_graph *graph, double *nodes,
                          double *host)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        int owner = ort_partition_owner(p, node);
        for (int b = 0; b < node->body_count; b++)
            if (ort_partition_body(p, node, b))
                add_estimates(ort_partition_body(p, node, b), node->bodies[b], nodes, host);
        if (ort_partition_idles(p, node) || owner < 0 || !node->op)
            continue;
        *nodes += ort_partition_seconds(p, graph, node, owner);
        *host += ort_partition_seconds(p, graph, node, p->count - 1);
    }
}

static void put_estimate(ort_json *json, const ort_partition *p, const ort_graph *graph,
                         const ort_tally *tally)
{
    double nodes = 0, host = 0;
    add_estimates(p, graph, &nodes, &host);
    ort_json_key(json, "estimated_ms");
    ort_json_begin_object(json);
    ort_json_key(json, "nodes");
    put_rounded(json, 1e3 * nodes);
    ort_json_key(json, "copies");
    put_rounded(json, 1e3 * tally->copy_seconds);
    ort_json_key(json, "host_alone");
    put_rounded(json, 1e3 * host);
    ort_json_end_object(json);
}

static void put_sums(ort_json *json, const ort_partition *p, const ort_graph *graph,
                     const ort_tally *tally)
{
    char line[300];
    ort_report_text(json, "line", ort_partition_line(p, tally, line, sizeof line));
    ort_report_int(json, "turns", tally->turns);
    ort_report_int(json, "borders", tally->borders);
    ort_report_int(json, "copied_bytes", (int64_t)tally->bytes);
    ort_json_key(json, "open_dimensions_count_as_one");
    ort_json_bool(json, tally->open);
    put_estimate(json, p, graph, tally);
    ort_json_key(json, "providers");
    ort_json_begin_array(json);
    for (int i = 0; i < p->count; i++) {
        ort_json_begin_object(json);
        ort_report_text(json, "name", p->list[i].row->name);
        ort_report_int(json, "nodes", tally->nodes[i]);
        ort_report_int(json, "macs", (int64_t)macs_of_provider(p, graph, i));
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

/* The session runs by its own division: this is another of the same list. */
static ort_status describe(const ort_session *s, ort_json *json, ort_error *err)
{
    ort_graph *graph = s->model->graph;
    ort_partition p = {.count = s->partition.count, .host_named = s->partition.host_named};
    ort_tally tally;
    refusals r = {0};
    memcpy(p.list, s->partition.list, sizeof p.list);
    ort_status status = ort_partition_assign(&p, graph, NULL, note, &r, err);
    if (status == ORT_OK && r.failed)
        status = ort_error_memory(err, sizeof(refusal));
    if (status == ORT_OK)
        status = ort_partition_order(&p, graph, err);
    if (status == ORT_OK)
        status = ort_partition_tally(&p, graph, &tally, err);
    if (status == ORT_OK) {
        put_sums(json, &p, graph, &tally);
        ort_json_key(json, "nodes");
        ort_json_begin_array(json);
        put_nodes(json, &p, graph, "", &r);
        ort_json_end_array(json);
    }
    for (size_t i = 0; i < r.list.count; i++)
        free(r.list.data[i].why);
    ort_vec_release(&r.list);
    ort_partition_forget(&p);
    return status;
}

ort_status ort_exec_partition_report(ort_env *env, const ort_model *model,
                                     const ort_session_options *options, ort_strbuf *out,
                                     ort_error *err)
{
    ort_session_options own = *options;
    ort_session *session = NULL;
    ort_json json;
    own.level = own.level < 0 || own.level > 2 ? 2 : own.level;
    ORT_TRY(ort_exec_session_new(env, model, &own, &session, err));
    ort_report_begin(&json, out, "partition", model);
    ort_status status = describe(session, &json, err);
    ort_json_end_object(&json);
    ort_exec_session_release(session);
    return status;
}

/* ---- devices */

static void put_text(ort_json *json, const char *key, const char *text)
{
    ort_report_text(json, key, text ? text : "");
}

static void put_device(void *arg, const ort_device_info *d)
{
    ort_json *json = arg;
    ort_json_begin_object(json);
    put_text(json, "name", d->name);
    put_text(json, "kind", d->kind);
    put_text(json, "vendor", d->vendor);
    put_text(json, "platform", d->platform);
    put_text(json, "driver", d->driver);
    put_text(json, "version", d->version);
    ort_report_int(json, "memory_bytes", (int64_t)d->memory_bytes);
    ort_report_int(json, "units", d->units);
    ort_report_int(json, "clock_mhz", d->clock_mhz);
    ort_json_key(json, "float16");
    ort_json_bool(json, d->half);
    ort_json_key(json, "int8_dot");
    ort_json_bool(json, d->int8_dot);
    ort_json_key(json, "host_memory");
    ort_json_bool(json, d->unified);
    ort_json_end_object(json);
}

void ort_report_providers(const ort_provider *const *table, ort_strbuf *out)
{
    ort_json json;
    ort_report_begin(&json, out, "providers", NULL);
    ort_json_key(&json, "providers");
    ort_json_begin_array(&json);
    for (int i = 0; table[i]; i++) {
        const ort_provider *p = table[i];
        ort_error problem = {0};
        ort_json_begin_object(&json);
        ort_report_text(&json, "name", p->name);
        ort_report_text(&json, "doc", p->doc);
        ort_json_key(&json, "options");
        ort_json_begin_array(&json);
        for (int k = 0; p->options && p->options[k]; k++)
            ort_json_string(&json, p->options[k]);
        ort_json_end_array(&json);
        ort_json_key(&json, "devices");
        ort_json_begin_array(&json);
        ort_status status = p->devices(put_device, &json, &problem);
        ort_json_end_array(&json);
        if (status != ORT_OK)
            ort_report_text(&json, "problem", problem.message);
        ort_json_end_object(&json);
    }
    ort_json_end_array(&json);
    ort_json_end_object(&json);
}
