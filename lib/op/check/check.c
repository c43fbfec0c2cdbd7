/* check.c - everything that can be said about a model without running it: versions, structure,
 * scopes, operators, arity, attributes, types. All findings, in the order of the file. */
#include <string.h>

#include "base/error.h"
#include "base/hashmap.h"
#include "op/check/check.h"

/* ---- versions */

int64_t ort_check_newest(const char *domain)
{
    return !*domain ? ORT_NEWEST_OPSET : !strcmp(domain, ML) ? ORT_NEWEST_ML_OPSET : INT64_MAX;
}

/* Does the file import the domain of entry `i`, if with a version that is none? */
static bool names_domain(const ort_model *model, size_t i)
{
    for (size_t j = 0; j < model->opsets.count; j++)
        if (j != i && !strcmp(model->opsets.data[j].domain, model->opsets.data[i].domain))
            return true;
    return false;
}

static void check_imported_once(const ort_model *model, size_t i, const char *name,
                                ort_findings *findings)
{
    const ort_opset *o = &model->opsets.data[i], *before = model->opsets.data;
    for (; before < o; before++)
        if (!strcmp(before->domain, o->domain) && before->version > 0)
            break;
    if (before < o && o->version > 0 && !o->assumed)
        ort_findings_add(findings,
                         before->version == o->version ? ORT_FINDING_WARNING : ORT_FINDING_ERROR,
                         "opset '%s' is imported twice: versions %lld and %lld", name,
                         (long long)before->version, (long long)o->version);
}

static void check_versions(const ort_model *model, ort_findings *findings)
{
    if (model->opsets.count == 0)
        ort_findings_add(findings, ORT_FINDING_ERROR, "the model imports no opset");
    for (size_t i = 0; i < model->opsets.count; i++) {
        const ort_opset *o = &model->opsets.data[i];
        const char *name = *o->domain ? o->domain : "ai.onnx";
        check_imported_once(model, i, name, findings);
        if (o->assumed && !names_domain(model, i))
            ort_findings_add(findings, ORT_FINDING_WARNING,
                             "the model imports no opset of domain '%s' but uses it: read as "
                             "version %lld",
                             name, (long long)o->version);
        if (o->version < 1)
            ort_findings_add(findings, ORT_FINDING_ERROR, "opset '%s' has version %lld", name,
                             (long long)o->version);
    }
}

/* ---- structure */

static const ort_graph_value *in_outer_scope(const ort_graph *graph, const char *name)
{
    for (graph = graph->parent; graph; graph = graph->parent) {
        ort_id id = ort_graph_find_value(graph, name);
        if (id != ORT_ID_NONE)
            return graph->values.data[id];
    }
    return NULL;
}

/* Values made in a body must not hide one of an outer scope: runtimes disagree on what they mean.
 * Nor may an initializer come twice, which is harmless when both say the same. */
static void check_scopes(const ort_graph *graph, const char *place, ort_findings *findings)
{
    for (size_t i = 0; i < graph->values.count; i++) {
        const ort_graph_value *value = graph->values.data[i];
        if (value->outer == ORT_ID_NONE && *value->name && in_outer_scope(graph, value->name))
            ort_findings_add(findings, ORT_FINDING_WARNING,
                             "%svalue '%s' hides a value of that name in an outer scope", place,
                             value->name);
        if (value->is_doubled)
            ort_findings_add(findings, ORT_FINDING_WARNING,
                             "%sinitializer '%s' is there twice, with the same value", place,
                             value->name);
    }
}

static void check_io(const ort_graph *graph, ort_findings *findings)
{
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const ort_graph_value *value = graph->values.data[graph->inputs.data[i]];
        if (value->fact.type.kind == ORT_TYPE_UNKNOWN && !graph->parent)
            ort_findings_add(findings, ORT_FINDING_WARNING, "graph input '%s' has no declared type",
                             value->name);
    }
    if (graph->outputs.count == 0 && !graph->parent)
        ort_findings_add(findings, ORT_FINDING_ERROR, "the graph has no outputs");
}

/* Producers and order as the node list says; import guarantees them, edits must keep them. */
static void check_order(const ort_graph *graph, const ort_node *node, const uint8_t *placed,
                        ort_findings *findings)
{
    char label[256];
    for (int i = 0; i < node->input_count; i++) {
        const ort_graph_value *value = ort_graph_value_at(graph, node->inputs[i]);
        if (!value)
            continue;
        bool given = value->is_input || value->fact.value || value->outer != ORT_ID_NONE ||
                     value->initializer_proto;
        ort_id producer = graph->producers.data[node->inputs[i]];
        if (producer == ORT_ID_NONE && !given)
            ort_findings_add(findings, ORT_FINDING_ERROR,
                             "%s: input %d names '%s', which nothing computes",
                             ort_node_label(node, label, sizeof label), i, value->name);
        else if (producer != ORT_ID_NONE && !placed[producer])
            ort_findings_add(findings, ORT_FINDING_ERROR,
                             "%s: input %d ('%s') is computed later: a cycle",
                             ort_node_label(node, label, sizeof label), i, value->name);
    }
    for (int i = 0; i < node->output_count; i++) {
        const ort_graph_value *value = ort_graph_value_at(graph, node->outputs[i]);
        if (value && graph->producers.data[node->outputs[i]] != node->id)
            ort_findings_add(findings, ORT_FINDING_ERROR,
                             "%s: output %d ('%s') is computed twice",
                             ort_node_label(node, label, sizeof label), i, value->name);
    }
}

static void check_replaced(const ort_graph *graph, ort_findings *findings)
{
    const char *name = "";
    size_t count = ort_graph_replaced(graph, &name);
    if (count)
        ort_findings_add(findings, ORT_FINDING_WARNING,
                         "%zu values are defined by two Constant nodes, the last of them '%s': the "
                         "later node counts",
                         count, name);
}

static void check_node_names(const ort_graph *graph, ort_findings *findings)
{
    const ort_node *node;
    ort_hashmap seen = {0};
    size_t repeated = 0;
    const char *name = "";
    ORT_EACH_NODE(graph, node)
    {
        size_t known = seen.count;
        if (!*node->name || !ort_hashmap_put_str(&seen, node->name, 1) || seen.count > known)
            continue;
        repeated++;
        name = node->name;
    }
    ort_hashmap_release(&seen);
    if (repeated)
        ort_findings_add(findings, ORT_FINDING_NOTE,
                         "%zu node names occur more than once, the last of them '%s'", repeated,
                         name);
}

/* Scan and SequenceMap say what their bodies get: one that wants another shape can't run. */
static bool is_scanned(const ort_graph *graph)
{
    const char *type =
        graph->parent ? graph->parent->nodes.data[graph->parent_node]->op_type : "";
    return !strcmp(type, "Scan") || !strcmp(type, "SequenceMap");
}

static void say_declared(const ort_graph *graph, const ort_graph_value *value, const char *place,
                         ort_id producer, ort_severity severity, ort_findings *findings)
{
    char label[256], declared[300], found[300];
    ort_type_format(graph->model->dims, value->declared, declared, sizeof declared);
    ort_type_format(graph->model->dims, &value->fact.type, found, sizeof found);
    if (producer == ORT_ID_NONE)
        ort_findings_add(findings, severity, "%sinput '%s' is declared %s but gets %s", place,
                         value->name, declared, found);
    else
        ort_findings_add(findings, severity, "%s: output '%s' is declared %s but computes to %s",
                         ort_node_label(graph->nodes.data[producer], label, sizeof label),
                         value->name, declared, found);
}

/* What a value is and what the file declares it: another type is an error, another shape a warning,
 * since runtimes go by what is computed. */
static void check_declared(const ort_graph *graph, const char *place, ort_findings *findings)
{
    for (size_t i = 0; i < graph->values.count; i++) {
        const ort_graph_value *value = graph->values.data[i];
        ort_type merged = value->fact.type, shapeless = value->fact.type;
        ort_id producer = graph->producers.data[i];
        if (!value->declared || value->outer != ORT_ID_NONE ||
            ort_type_merge(&merged, value->declared))
            continue;
        shapeless.rank = -1;
        bool grave = !ort_type_merge(&shapeless, value->declared) ||
                     (producer == ORT_ID_NONE && is_scanned(graph));
        say_declared(graph, value, place, producer,
                     grave ? ORT_FINDING_ERROR : ORT_FINDING_WARNING, findings);
    }
}

/* ---- all of a graph */

typedef struct model_check {
    const ort_registry *registry;
    ort_findings *findings;
    ort_arena arena;
    ort_hashmap kinds;    /* of nodes that were found right */
    ort_hashmap divisors; /* see ort_check_values */
} model_check;

/* All that ort_check_node looks at: nodes with the same text get the same findings, but for their
 * names. Its length, or 0 when the node has more than fits. */
static size_t kind_of_node(const ort_graph *graph, const ort_node *node, const ort_op *op,
                           char text[512])
{
    size_t used = sizeof op;
    memcpy(text, &op, sizeof op);
    if (node->input_count + node->output_count > 64 || node->attr_count > 32)
        return 0;
    text[used++] = (char)node->input_count;
    text[used++] = (char)node->output_count;
    for (int i = 0; i < node->input_count + node->output_count; i++) {
        ort_id id = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        const ort_graph_value *value = ort_graph_value_at(graph, id);
        if (value && value->fact.type.kind != ORT_TYPE_TENSOR)
            return 0;
        text[used++] = value ? (char)value->fact.type.dtype : (char)0x7f;
    }
    for (int i = 0; i < node->attr_count; i++) {
        const ort_attr *attr = &node->attrs[i];
        size_t length = strlen(attr->name) + 1;
        if (attr->reference || used + length + 2 > 512)
            return 0;
        memcpy(text + used, attr->name, length);
        used += length;
        text[used++] = (char)attr->type;
        text[used++] = (char)(attr->count != 0);
    }
    return used;
}

/* A model has many nodes and few kinds of them: each is looked at until one is right. */
static void check_node(model_check *c, const ort_graph *graph, const ort_node *node,
                       const ort_op *op)
{
    char text[512];
    size_t length = kind_of_node(graph, node, op, text), before = ort_findings_count(c->findings);
    if (length && ort_hashmap_get(&c->kinds, text, length, NULL))
        return;
    ort_check_node(graph, node, op, c->findings);
    const char *kept = length && ort_findings_count(c->findings) == before
                           ? ort_arena_strndup(&c->arena, text, length)
                           : NULL;
    if (kept)
        (void)ort_hashmap_put(&c->kinds, kept, length, 1);
}

static ort_status check_graph(model_check *c, const ort_graph *graph, const char *place,
                              ort_error *err)
{
    ort_findings *findings = c->findings;
    const ort_node *node;
    uint8_t *placed = ort_arena_alloc(&c->arena, graph->nodes.count + 1);
    if (!placed)
        return ort_error_memory(err, graph->nodes.count);
    ort_status status = ORT_OK;
    check_io(graph, findings);
    check_scopes(graph, place, findings);
    check_replaced(graph, findings);
    check_declared(graph, place, findings);
    if (!graph->parent)
        check_node_names(graph, findings);
    ORT_EACH_NODE(graph, node)
    {
        ORT_TRY(ort_budget_check(err));
        check_order(graph, node, placed, findings);
        placed[node->id] = 1;
        const ort_op *op = node->op ? node->op
                                    : ort_registry_find(c->registry, node->domain, node->op_type,
                                                        node->opset);
        if (op) {
            check_node(c, graph, node, op);
            ort_check_values(graph, node, op, &c->arena, &c->divisors, findings);
        } else {
            ort_check_unknown(graph, node, c->registry, findings);
        }
        for (int b = 0; b < node->body_count && status == ORT_OK; b++) {
            char label[256], inner[320];
            snprintf(inner, sizeof inner, "in a body of %s: ",
                     ort_node_label(node, label, sizeof label));
            status = check_graph(c, node->bodies[b], inner, err);
        }
    }
    return status;
}

ort_status ort_graph_check(ort_model *model, const ort_registry *registry, ort_findings *findings,
                           ort_error *err)
{
    ort_error inner = {0};
    ort_status status = ort_graph_inline_functions(model->graph, &inner);
    if (status == ORT_ERROR_MODEL || status == ORT_ERROR_UNSUPPORTED) {
        ort_findings_add(findings, ORT_FINDING_ERROR, "%s", inner.message);
        return ORT_OK;
    }
    if (status != ORT_OK)
        return ort_error_set(err, status, "%s", inner.message);
    ORT_TRY(ort_graph_infer(model->graph, registry, findings, err));
    model_check c = {.registry = registry, .findings = findings};
    status = check_graph(&c, model->graph, "", err);
    ort_hashmap_release(&c.kinds);
    ort_hashmap_release(&c.divisors);
    ort_arena_release(&c.arena);
    if (status == ORT_OK)
        check_versions(model, findings);
    return status;
}
