/* partition.c - the table of providers, opening a list of them, and giving nodes to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/findings.h"
#include "provider/provider.h"

static const ort_provider *const providers[] = {&ort_provider_cpu, NULL};

const ort_provider *ort_provider_at(int index)
{
    int count = (int)(sizeof providers / sizeof *providers) - 1;
    return index >= 0 && index < count ? providers[index] : NULL;
}

static const ort_provider *find(const char *name, size_t length)
{
    for (int i = 0; providers[i]; i++)
        if (strlen(providers[i]->name) == length && !memcmp(providers[i]->name, name, length))
            return providers[i];
    return NULL;
}

static ort_status unknown(const char *name, size_t length, ort_error *err)
{
    char list[256] = "";
    for (int i = 0; providers[i]; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", providers[i]->name);
    }
    return ort_error_set(err, ORT_ERROR_USAGE, "provider '%.*s' is unknown; this build has: %s",
                         (int)length, name, list);
}

static ort_status open_one(ort_partition *p, const ort_provider *provider, bool last, bool strict,
                           const ort_log *log, ort_error *err)
{
    ort_error problem = {0};
    void *device = NULL;
    for (int i = 0; i < p->provider_count; i++)
        if (p->providers[i] == provider)
            return ORT_OK;
    if (p->provider_count == ORT_PROVIDERS_MAX)
        return ort_error_set(err, ORT_ERROR_USAGE, "more than %d providers", ORT_PROVIDERS_MAX);
    ort_status status = provider->open(&device, &problem);
    if (status != ORT_OK && (strict || (last && !p->provider_count)))
        return ort_error_set(err, status, "provider '%s': %s", provider->name, problem.message);
    if (status != ORT_OK) {
        ort_log_write(log, ORT_LOG_WARNING, "provider '%s' is left out: %s", provider->name,
                      problem.message);
        return ORT_OK;
    }
    p->providers[p->provider_count] = provider;
    p->devices[p->provider_count++] = device;
    return ORT_OK;
}

ort_status ort_partition_open(ort_partition *partition, const char *list, bool strict,
                              const ort_log *log, ort_error *err)
{
    const char *p = list && *list ? list : providers[0]->name;
    while (*p) {
        size_t length = strcspn(p, ",");
        const ort_provider *provider = find(p, length);
        if (!provider)
            return unknown(p, length, err);
        ORT_TRY(open_one(partition, provider, !p[length], strict, log, err));
        p += length + (p[length] == ',');
    }
    return ORT_OK;
}

static int claim(const ort_partition *p, const ort_graph *graph, const ort_node *node,
                 const char **why)
{
    for (int i = 0; i < p->provider_count; i++)
        if (p->providers[i]->claim(p->devices[i], graph, node, why))
            return i;
    return -1;
}

static void count_cuts(ort_partition *p, const ort_graph *graph)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
        for (int i = 0; i < node->input_count; i++) {
            ort_id from = ort_graph_producer(graph, node->inputs[i]);
            if (from != ORT_ID_NONE && p->owner[from] != p->owner[node->id])
                p->cut_edges++;
        }
}

ort_status ort_partition_assign(ort_partition *partition, const ort_graph *graph,
                                ort_findings *findings, ort_error *err)
{
    const ort_node *node;
    char label[256];
    free(partition->owner);
    partition->owner = malloc(graph->nodes.count + 1);
    if (!partition->owner)
        return ort_error_memory(err, graph->nodes.count);
    memset(partition->owner, -1, graph->nodes.count + 1);
    ORT_EACH_NODE(graph, node)
    {
        const char *why = "no provider was opened";
        partition->owner[node->id] = (int8_t)claim(partition, graph, node, &why);
        if (partition->owner[node->id] < 0)
            ort_findings_add(findings, ORT_FINDING_ERROR,
                             "%s: no provider runs operator %s%s%s of opset %d: %s",
                             ort_node_label(node, label, sizeof label), node->domain,
                             node->domain[0] ? "." : "", node->op_type, node->opset, why);
    }
    count_cuts(partition, graph);
    return ORT_OK;
}

/* Nodes that a provider's lowering made. */
static ort_status own_new_nodes(ort_partition *p, const ort_graph *graph, size_t before, int owner,
                                ort_error *err)
{
    int8_t *owners = realloc(p->owner, graph->nodes.count + 1);
    if (!owners)
        return ort_error_memory(err, graph->nodes.count);
    memset(owners + before, owner, graph->nodes.count - before);
    p->owner = owners;
    return ORT_OK;
}

ort_status ort_partition_lower(ort_partition *partition, ort_model *model,
                               const ort_pass_options *options, ort_error *err)
{
    for (int i = 0; i < partition->provider_count; i++) {
        size_t before = model->graph->nodes.count;
        ort_pass_options own = *options;
        own.table = partition->providers[i]->lower;
        if (!own.table)
            continue;
        ORT_TRY(ort_passes_run(model, &own, err));
        ORT_TRY(own_new_nodes(partition, model->graph, before, i, err));
    }
    return ORT_OK;
}

const char *ort_partition_name(const ort_partition *partition, const ort_node *node)
{
    int owner = partition->owner ? partition->owner[node->id] : -1;
    return owner >= 0 ? partition->providers[owner]->name : "none";
}

const char *ort_partition_names(const ort_partition *partition, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < partition->provider_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i ? "," : "", partition->providers[i]->name);
    }
    return text;
}

void ort_partition_release(ort_partition *partition)
{
    for (int i = 0; i < partition->provider_count; i++)
        partition->providers[i]->close(partition->devices[i]);
    free(partition->owner);
    memset(partition, 0, sizeof *partition);
}
