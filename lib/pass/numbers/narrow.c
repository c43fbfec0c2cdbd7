/* narrow.c - float weights and the regions that compute with them become float16 or bfloat16
 * (narrow.h), the other way round of half_compute.c, for a file.
 *
 * Casts stay at the borders of regions only (twins.h). A node is part of one when its schema
 * allows the type wherever it has float under a type variable, it holds no bodies, is not kept,
 * none of its constants leaves the range, and it reads a constant or what is narrow.
 * Inputs and outputs of the graph keep their type. Weights are rounded to nearest even, once.
 */
#include "pass/numbers/narrow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/follow.h"
#include "graph/strip.h"
#include "op/edit.h"
#include "pass/numbers/twins.h"

#define FLOAT16_MAX 65504.0
#define BFLOAT16_MAX 0x1.fep127 /* the lowest float, a common mask, would be infinite */

typedef struct narrowing {
    ort_graph *graph;
    const ort_narrow_options *options;
    ort_narrow_wanted *wanted; /* or NULL: all that suit */
    void *arg;
    ort_twins twins; /* the 16-bit forms of float values */
} narrowing;

static bool is_float(const narrowing *n, ort_id id)
{
    return ort_twins_is_from(&n->twins, id);
}

/* ---- which nodes */

static bool listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (*name && !strcmp(*names, name))
            return true;
    return false;
}

/* Is one of these a node that this one was made from ("a+b"), or the operator of one? */
static bool lists_origin(const char *const *names, const char *origin)
{
    for (; names && *names; names++)
        if (ort_origin_lists(origin, *names))
            return true;
    return false;
}

static bool kept(const narrowing *n, const ort_node *node)
{
    const char *const *keep = n->options->keep;
    bool found = listed(keep, node->op_type) || listed(keep, node->name) ||
                 lists_origin(keep, node->origin);
    for (int i = 0; i < node->input_count && !found; i++)
        found = is_float(n, node->inputs[i]) &&
                listed(keep, ort_graph_value_at(n->graph, node->inputs[i])->name);
    for (int o = 0; o < node->output_count && !found; o++)
        found = is_float(n, node->outputs[o]) &&
                listed(keep, ort_graph_value_at(n->graph, node->outputs[o])->name);
    return found;
}

static double largest(const ort_tensor *t)
{
    double most = 0;
    for (int64_t i = 0; t->data && i < ort_tensor_count(t); i++) {
        double x = fabs(ort_tensor_get_f64(t, i));
        if (isfinite(x) && x > most)
            most = x;
    }
    return most;
}

static void tell(const narrowing *n, const ort_node *node, const char *why)
{
    char label[256];
    if (n->options->on_kept)
        n->options->on_kept(n->options->arg, ort_node_label(node, label, sizeof label), why);
}

static bool in_range(const narrowing *n, const ort_node *node)
{
    double limit = n->options->dtype == ORT_DTYPE_FLOAT16 ? FLOAT16_MAX : BFLOAT16_MAX;
    char why[400];
    for (int i = 0; i < node->input_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(n->graph, node->inputs[i]);
        if (!v || !v->fact.value || v->fact.value->dtype != ORT_DTYPE_FLOAT)
            continue;
        double most = largest(v->fact.value);
        if (most <= limit)
            continue;
        snprintf(why, sizeof why, "constant '%.200s' holds %g, beyond %g", v->name, most, limit);
        tell(n, node, why);
        return false;
    }
    return true;
}

/* Does the slot's type vary, so that it goes along with the node? */
static bool varies(const ort_op *op, const ort_param *p)
{
    return p && ort_schema_is_variable(op, p->type) && !p->mixed;
}

static bool inputs_suit(const narrowing *n, const ort_node *node, const ort_schema *schema)
{
    ort_type type = ort_type_tensor(n->options->dtype, -1, NULL);
    bool any = false;
    for (int i = 0; i < node->input_count; i++) {
        const ort_param *p = ort_schema_param(schema->inputs, schema->input_count, i);
        if (!is_float(n, node->inputs[i]) || !varies(node->op, p))
            continue;
        if (!ort_schema_allows(node->op, p->type, &type))
            return false;
        any = true;
    }
    return any;
}

/* Casts cost more than an operator without weights gains: one that reads no constant and nothing
 * narrow so far begins no region. */
static bool begins_or_continues(const narrowing *n, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i];
        if (is_float(n, id) &&
            (ort_graph_value_at(n->graph, id)->fact.value || ort_twins_has(&n->twins, id)))
            return true;
    }
    return false;
}

static bool suits(const narrowing *n, const ort_node *node)
{
    ort_schema schema;
    if (n->wanted && !n->wanted(n->arg, node))
        return false;
    if (node->domain[0] || !ort_twins_follow(&n->twins, node, &schema) ||
        !inputs_suit(n, node, &schema) || !begins_or_continues(n, node))
        return false;
    if (kept(n, node)) {
        tell(n, node, "kept in float");
        return false;
    }
    return in_range(n, node);
}

/* ---- names that mean nothing */

static bool graph_has(const ort_graph *graph, const char *const *name)
{
    const char *const one[] = {*name, NULL};
    const ort_node *node;
    for (size_t i = 0; i < graph->values.count; i++)
        if (listed(one, graph->values.data[i]->name))
            return true;
    ORT_EACH_NODE(graph, node)
    {
        if (listed(one, node->op_type) || listed(one, node->name) ||
            lists_origin(one, node->origin))
            return true;
        for (int b = 0; b < node->body_count; b++)
            if (graph_has(node->bodies[b], name))
                return true;
    }
    return false;
}

static bool is_operator(const ort_registry *registry, const char *name)
{
    for (size_t i = 0; i < ort_registry_count(registry); i++)
        if (!strcmp(ort_registry_at(registry, i)->name, name))
            return true;
    return false;
}

/* A list for many models may name operators that this one lacks. */
static ort_status check_keep(const ort_graph *graph, const ort_registry *registry,
                             const char *const *keep, ort_error *err)
{
    for (; keep && *keep; keep++)
        if (!graph_has(graph, keep) && !is_operator(registry, *keep))
            return ort_error_set(err, ORT_ERROR_USAGE,
                                 "nothing to keep in float is called '%.200s': it is no operator, "
                                 "and no node or value that the passes left",
                                 *keep);
    return ORT_OK;
}

/* ---- the whole */

static bool unread(const ort_graph *graph, const ort_node *node)
{
    const ort_graph_value *v = ort_graph_value_at(graph, node->outputs[0]);
    return ort_edit_is(node, ONNX, "Cast") && v && !v->is_output && v->use_count == 0;
}

/* Casts whose value nobody reads, and the float form of weights. */
static void sweep(ort_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (!graph->nodes.data[i]->removed && unread(graph, graph->nodes.data[i]))
            ort_graph_remove_node(graph, graph->nodes.data[i]);
    (void)ort_graph_drop_initializers(graph);
}

static ort_status narrow_nodes(narrowing *n, ort_error *err)
{
    ort_graph *graph = n->graph;
    size_t count = graph->order.count;
    for (size_t i = 0; i < count; i++) { /* nodes that are added join the end */
        ort_node *node = graph->nodes.data[graph->order.data[i]];
        if (!node->removed && suits(n, node))
            ORT_TRY(ort_twins_rebuild(&n->twins, node, err));
    }
    ORT_TRY(ort_edit_finish(graph, err));
    sweep(graph);
    return ort_edit_finish(graph, err);
}

ort_status ort_graph_narrow_nodes(ort_graph *graph, const ort_narrow_options *options,
                                  ort_narrow_wanted *wanted, void *arg, ort_error *err)
{
    narrowing n = {.graph = graph,
                   .options = options,
                   .wanted = wanted,
                   .arg = arg,
                   .twins = {.graph = graph, .from = ORT_DTYPE_FLOAT, .to = options->dtype}};
    ort_status status = narrow_nodes(&n, err);
    ort_twins_release(&n.twins);
    return status;
}

ort_status ort_graph_narrow(ort_model *model, const ort_registry *registry,
                            const ort_narrow_options *options, ort_error *err)
{
    int64_t opset = ort_model_opset(model, ONNX);
    if (options->dtype != ORT_DTYPE_FLOAT16 && options->dtype != ORT_DTYPE_BFLOAT16)
        return ort_error_set(err, ORT_ERROR_USAGE, "a model is narrowed to float16 or bfloat16");
    if (options->dtype == ORT_DTYPE_BFLOAT16 && opset < 13)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "bfloat16 needs opset 13, the model has %lld", (long long)opset);
    ORT_TRY(check_keep(model->graph, registry, options->keep, err));
    ORT_TRY(ort_graph_infer(model->graph, registry, NULL, err));
    return ort_graph_narrow_nodes(model->graph, options, NULL, NULL, err);
}
