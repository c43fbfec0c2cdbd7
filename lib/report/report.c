/* report.c - what there is to know about a model, as JSON (report.h): summary, inputs and outputs,
 * nodes, shapes, metadata, functions, operators. */
#pragma GCC optimize("Os") /* once a session or less */
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/findings.h"
#include "base/vec.h"
#include "graph/properties.h"
#include "op/types.h"
#include "provider/provider.h"

/* Constant nodes whose output a later one gives again: reports leave them out, and say so. */
static void put_replaced(ort_json *json, const ort_model *model)
{
    const char *name;
    ort_report_int(json, "replaced_constants", (int64_t)ort_graph_replaced(model->graph, &name));
}

/* ---- summary and io */

static void put_opsets(ort_json *json, const ort_opset *opsets, size_t count)
{
    ort_json_key(json, "opsets");
    ort_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        ort_json_begin_object(json);
        ort_report_text(json, "domain", ort_report_domain(opsets[i].domain));
        ort_report_int(json, "version", opsets[i].version);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

static void put_ports(ort_json *json, const char *key, const ort_graph *graph, const ort_id *ids,
                      size_t count)
{
    ort_json_key(json, key);
    ort_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        const ort_graph_value *value = graph->values.data[ids[i]];
        ort_json_begin_object(json);
        ort_report_text(json, "name", value->name);
        ort_report_type(json, graph->model->dims, &value->fact.type);
        if (value->is_input) {
            ort_json_key(json, "optional");
            ort_json_bool(json, value->fact.value != NULL);
        }
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

static void put_io(ort_json *json, const ort_model *model)
{
    const ort_graph *graph = model->graph;
    put_ports(json, "inputs", graph, graph->inputs.data, graph->inputs.count);
    put_ports(json, "outputs", graph, graph->outputs.data, graph->outputs.count);
}

typedef struct op_use {
    const ort_node *node; /* the first */
    size_t count;
    bool runs, fits;      /* all of them */
    char paths[3][160];   /* labels of the first ones that don't run */
    int shown;
} op_use;

typedef struct op_uses {
    ORT_VEC(op_use) list;
    ort_hashmap index;
    ort_arena arena;
    size_t nodes, constants;
} op_uses;

static void count_use(void *arg, const ort_graph *graph, const ort_node *node, const char *path)
{
    op_uses *uses = arg;
    uint64_t at;
    if (ort_node_is_constant(node))
        uses->constants++;
    else
        uses->nodes++;
    const char *key = ort_arena_printf(&uses->arena, "%s:%s:%d", node->domain, node->op_type,
                                       node->opset);
    if (!key)
        return;
    if (!ort_hashmap_get_str(&uses->index, key, &at)) {
        at = uses->list.count;
        if (!ort_vec_push(&uses->list, (op_use){.node = node, .runs = true, .fits = true}) ||
            !ort_hashmap_put_str(&uses->index, key, at))
            return;
    }
    op_use *use = &uses->list.data[at];
    bool runs = node->op && ort_op_runs(node->op);
    use->count++;
    use->runs = use->runs && runs;
    use->fits = use->fits && node->op;
    if (!runs && use->shown < 3)
        ort_node_label(node, use->paths[use->shown++], sizeof use->paths[0]);
}

static void release_uses(op_uses *uses)
{
    ort_vec_release(&uses->list);
    ort_hashmap_release(&uses->index);
    ort_arena_release(&uses->arena);
}

typedef struct weight_sum {
    double parameters, bytes;
    size_t count;
} weight_sum;

static void sum_tensor(weight_sum *sum, const ort_tensor *t)
{
    sum->count++;
    sum->parameters += (double)ort_tensor_count(t);
    sum->bytes += t->dtype == ORT_DTYPE_STRING ? 0 : (double)ort_tensor_bytes(t);
}

/* Initializers and the tensors of Constant nodes, bodies included. */
static void sum_weights(const ort_graph *graph, weight_sum *sum)
{
    const ort_node *node;
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_tensor *t = graph->values.data[graph->initializers.data[i]]->fact.value;
        if (t)
            sum_tensor(sum, t);
    }
    ORT_EACH_NODE(graph, node)
    {
        const ort_tensor *t = ort_node_constant(node);
        if (t)
            sum_tensor(sum, t);
        for (int b = 0; b < node->body_count; b++)
            sum_weights(node->bodies[b], sum);
    }
}

static void put_summary(ort_json *json, const ort_model *model)
{
    op_uses uses = {.nodes = 0};
    weight_sum weights = {0};
    size_t function_nodes = 0;
    ort_report_each_node(model->graph, "", count_use, &uses);
    sum_weights(model->graph, &weights);
    for (size_t i = 0; i < model->functions.count; i++)
        function_nodes += ort_function_node_count(&model->functions.data[i]);
    ort_report_int(json, "ir_version", model->ir_version);
    put_opsets(json, model->opsets.data, model->opsets.count);
    ort_report_text(json, "producer", model->producer_name);
    ort_report_text(json, "producer_version", model->producer_version);
    ort_report_text(json, "domain", model->domain);
    ort_report_int(json, "model_version", model->model_version);
    ort_report_text(json, "graph", model->graph->name);
    ort_report_int(json, "file_bytes", (int64_t)model->file_bytes);
    ort_report_int(json, "external_bytes", (int64_t)model->external_bytes);
    ort_report_int(json, "nodes", (int64_t)(uses.nodes + function_nodes));
    ort_report_int(json, "constants", (int64_t)uses.constants);
    put_replaced(json, model);
    ort_report_int(json, "functions", (int64_t)model->functions.count);
    ort_report_int(json, "tensors", (int64_t)weights.count);
    ort_report_int(json, "parameters", (int64_t)weights.parameters);
    ort_report_int(json, "weight_bytes", (int64_t)weights.bytes);
    ort_report_int(json, "metadata_entries", (int64_t)model->metadata_count);
    put_io(json, model);
    ort_json_key(json, "operators");
    ort_json_begin_array(json);
    for (size_t i = 0; i < uses.list.count; i++) {
        const op_use *use = &uses.list.data[i];
        ort_json_begin_object(json);
        ort_report_text(json, "domain", ort_report_domain(use->node->domain));
        ort_report_text(json, "op_type", use->node->op_type);
        ort_report_int(json, "count", (int64_t)use->count);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
    release_uses(&uses);
}

/* ---- nodes */

static void put_tensor(ort_json *json, const ort_tensor *t)
{
    char text[512];
    ort_type type = ort_type_of_tensor(t);
    int64_t count = ort_tensor_count(t);
    ort_json_begin_object(json);
    ort_report_text(json, "tensor", ort_type_format(NULL, &type, text, sizeof text));
    bool numbers = t->dtype != ORT_DTYPE_STRING && t->dtype != ORT_DTYPE_COMPLEX64 &&
                   t->dtype != ORT_DTYPE_COMPLEX128;
    if (numbers && count <= 8 && (t->data || !count)) {
        ort_json_key(json, "values");
        ort_json_begin_array(json);
        for (int64_t i = 0; i < count; i++)
            if (ort_dtype_get(t->dtype)->class_ == ORT_CLASS_FLOAT)
                ort_json_double(json, ort_tensor_get_f64(t, i));
            else
                ort_json_int(json, ort_tensor_get_i64(t, i));
        ort_json_end_array(json);
    }
    ort_json_end_object(json);
}

static void put_list(ort_json *json, const ort_attr *a)
{
    ort_json_begin_array(json);
    for (size_t i = 0; i < a->count && i < 64; i++)
        if (a->type == ORT_ATTR_INTS)
            ort_json_int(json, a->ints[i]);
        else if (a->type == ORT_ATTR_FLOATS)
            ort_json_double(json, (double)a->floats[i]);
        else
            ort_json_string_n(json, a->strings[i].ptr, a->strings[i].length);
    ort_json_end_array(json);
}

static void put_attr(ort_json *json, const ort_dim_table *dims, const ort_attr *a)
{
    char text[512];
    ort_json_key(json, a->name);
    if (a->reference) {
        snprintf(text, sizeof text, "@%s", a->reference);
        ort_json_string(json, text);
        return;
    }
    switch (a->type) {
    case ORT_ATTR_INT: ort_json_int(json, a->i); break;
    case ORT_ATTR_FLOAT: ort_json_double(json, (double)a->f); break;
    case ORT_ATTR_STRING: ort_json_string_n(json, a->s.ptr, a->s.length); break;
    case ORT_ATTR_INTS:
    case ORT_ATTR_FLOATS:
    case ORT_ATTR_STRINGS:
        if (a->count <= 64) {
            put_list(json, a);
            break;
        }
        snprintf(text, sizeof text, "(%zu values)", a->count);
        ort_json_string(json, text);
        break;
    case ORT_ATTR_TENSOR:
    case ORT_ATTR_SPARSE_TENSOR: put_tensor(json, a->t); break;
    case ORT_ATTR_GRAPH:
        snprintf(text, sizeof text, "(graph of %zu nodes)", a->g->order.count);
        ort_json_string(json, text);
        break;
    case ORT_ATTR_TYPE_PROTO:
        ort_json_string(json, ort_type_format(dims, a->type_proto, text, sizeof text));
        break;
    default:
        snprintf(text, sizeof text, "(list of %zu)", a->count);
        ort_json_string(json, text);
        break;
    }
}

static void put_types(ort_json *json, const char *key, const ort_graph *graph, const ort_id *ids,
                      int count)
{
    char text[1024];
    ort_json_key(json, key);
    ort_json_begin_array(json);
    for (int i = 0; i < count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, ids[i]);
        ort_json_string(json, v ? ort_type_format(graph->model->dims, &v->fact.type, text,
                                                  sizeof text)
                                : "");
    }
    ort_json_end_array(json);
}

static void put_node(void *arg, const ort_graph *graph, const ort_node *node, const char *path)
{
    ort_json *json = arg;
    ort_json_begin_object(json);
    ort_report_int(json, "id", node->id);
    ort_report_text(json, "name", node->name);
    ort_report_text(json, "op_type", node->op_type);
    ort_report_text(json, "domain", ort_report_domain(node->domain));
    ort_report_int(json, "opset", node->opset);
    if (*path)
        ort_report_text(json, "graph", path);
    ort_report_values(json, "inputs", graph, node->inputs, node->input_count);
    put_types(json, "input_types", graph, node->inputs, node->input_count);
    ort_report_values(json, "outputs", graph, node->outputs, node->output_count);
    put_types(json, "output_types", graph, node->outputs, node->output_count);
    ort_json_key(json, "attributes");
    ort_json_begin_object(json);
    for (int i = 0; i < node->attr_count; i++)
        put_attr(json, graph->model->dims, &node->attrs[i]);
    ort_json_end_object(json);
    ort_json_end_object(json);
}

static void put_nodes(ort_json *json, const ort_model *model)
{
    ort_json_key(json, "nodes");
    ort_json_begin_array(json);
    ort_report_each_node(model->graph, "", put_node, json);
    ort_json_end_array(json);
}

/* ---- shapes */

static void put_value(ort_json *json, const ort_graph *graph, ort_id id, const char *role,
                      const char *path)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    if (!value)
        return;
    ort_json_begin_object(json);
    ort_report_text(json, "name", value->name);
    ort_report_text(json, "role", role);
    if (*path)
        ort_report_text(json, "graph", path);
    ort_report_type(json, graph->model->dims, &value->fact.type);
    ort_json_key(json, "constant");
    ort_json_bool(json, value->fact.value != NULL && !value->is_input);
    ort_json_end_object(json);
}

static void put_outputs_of(void *arg, const ort_graph *graph, const ort_node *node,
                           const char *path)
{
    for (int i = 0; i < node->output_count; i++)
        put_value(arg, graph, node->outputs[i], node->op_type, path);
}

static void put_shapes(ort_json *json, const ort_model *model)
{
    const ort_graph *graph = model->graph;
    ort_json_key(json, "values");
    ort_json_begin_array(json);
    for (size_t i = 0; i < graph->inputs.count; i++)
        put_value(json, graph, graph->inputs.data[i], "input", "");
    ort_report_each_node(graph, "", put_outputs_of, json);
    ort_json_end_array(json);
}

/* ---- metadata and functions */

static void put_property(void *arg, const char *owner, const char *key, const char *value)
{
    ort_json *json = arg;
    ort_json_begin_object(json);
    ort_report_text(json, "of", owner);
    ort_report_text(json, "key", key);
    ort_report_text(json, "value", value);
    ort_json_end_object(json);
}

static void put_metadata(ort_json *json, const ort_model *model)
{
    ort_report_text(json, "producer", model->producer_name);
    ort_report_text(json, "producer_version", model->producer_version);
    ort_report_text(json, "domain", model->domain);
    ort_report_int(json, "model_version", model->model_version);
    ort_report_text(json, "doc", model->doc);
    ort_report_text(json, "graph_doc", model->graph->doc);
    ort_json_key(json, "metadata");
    ort_json_begin_array(json);
    for (size_t i = 0; i < model->metadata_count; i++) {
        ort_json_begin_object(json);
        ort_report_text(json, "key", model->metadata[i].key);
        ort_report_text(json, "value", model->metadata[i].value);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
    ort_json_key(json, "properties");
    ort_json_begin_array(json);
    ort_properties_each(model, put_property, json);
    ort_json_end_array(json);
}

static void put_strings(ort_json *json, const char *key, const char **names, int count)
{
    ort_json_key(json, key);
    ort_json_begin_array(json);
    for (int i = 0; i < count; i++)
        ort_json_string(json, names[i]);
    ort_json_end_array(json);
}

static void put_functions(ort_json *json, const ort_model *model)
{
    ort_json_key(json, "functions");
    ort_json_begin_array(json);
    for (size_t i = 0; i < model->functions.count; i++) {
        const ort_function *f = &model->functions.data[i];
        ort_json_begin_object(json);
        ort_report_text(json, "domain", ort_report_domain(f->domain));
        ort_report_text(json, "name", f->name);
        ort_report_text(json, "overload", f->overload);
        put_strings(json, "inputs", f->inputs, f->input_count);
        put_strings(json, "outputs", f->outputs, f->output_count);
        put_strings(json, "attributes", f->attrs, f->attr_count);
        ort_json_key(json, "defaults");
        ort_json_begin_object(json);
        for (int k = 0; k < f->default_count; k++)
            put_attr(json, model->dims, &f->defaults[k]);
        ort_json_end_object(json);
        put_opsets(json, f->opsets, (size_t)f->opset_count);
        ort_report_int(json, "nodes", (int64_t)ort_function_node_count(f));
        ort_report_text(json, "doc", f->doc);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

/* ---- operators */

static void put_ops(ort_json *json, const ort_model *model)
{
    op_uses uses = {.nodes = 0};
    size_t gaps = 0;
    ort_report_each_node(model->graph, "", count_use, &uses);
    put_opsets(json, model->opsets.data, model->opsets.count);
    ort_json_key(json, "operators");
    ort_json_begin_array(json);
    for (size_t i = 0; i < uses.list.count; i++) {
        const op_use *use = &uses.list.data[i];
        ort_json_begin_object(json);
        ort_report_text(json, "domain", ort_report_domain(use->node->domain));
        ort_report_text(json, "op_type", use->node->op_type);
        ort_report_int(json, "opset", use->node->opset);
        const ort_op *op = ort_registry_find(model->registry, use->node->domain,
                                             use->node->op_type, use->node->opset);
        ort_report_int(json, "since", op ? op->since : 0);
        ort_report_int(json, "count", (int64_t)use->count);
        ort_json_key(json, "known");
        ort_json_bool(json, op != NULL);
        ort_json_key(json, "fits"); /* inputs and outputs are those of the operator */
        ort_json_bool(json, use->fits);
        ort_json_key(json, ort_provider_at(0)->name);
        ort_json_bool(json, use->runs);
        if (op && ort_op_library(op))
            ort_report_text(json, "library", ort_op_library(op)->name);
        ort_json_key(json, "foreign"); /* nobody here has an operator of this domain */
        ort_json_bool(json, !op && !ort_registry_has_domain(model->registry, use->node->domain));
        ort_json_key(json, "missing_in");
        ort_json_begin_array(json);
        for (int k = 0; k < use->shown; k++)
            ort_json_string(json, use->paths[k]);
        ort_json_end_array(json);
        ort_json_end_object(json);
        gaps += !use->runs;
    }
    ort_json_end_array(json);
    ort_report_int(json, "gaps", (int64_t)gaps);
    release_uses(&uses);
}

/* ---- one report */

static const char *report_name(ort_report report)
{
    static const char *const names[] = {
        [ORT_REPORT_SUMMARY] = "summary",   [ORT_REPORT_IO] = "io",
        [ORT_REPORT_NODES] = "nodes",       [ORT_REPORT_SHAPES] = "shapes",
        [ORT_REPORT_INITIALIZERS] = "initializers", [ORT_REPORT_METADATA] = "metadata",
        [ORT_REPORT_FUNCTIONS] = "functions", [ORT_REPORT_OPS] = "ops",
        [ORT_REPORT_COST] = "costs",        [ORT_REPORT_MEMORY] = "memory",
        [ORT_REPORT_OPERATOR_COST] = "operator_costs", [ORT_REPORT_STORED] = "stored",
    };
    return names[report];
}

static ort_status prepare(const ort_model *model, ort_report report, ort_model **copy,
                          ort_error *err)
{
    bool as_stored = report == ORT_REPORT_SUMMARY || report == ORT_REPORT_METADATA ||
                     report == ORT_REPORT_FUNCTIONS || report == ORT_REPORT_INITIALIZERS ||
                     report == ORT_REPORT_STORED;
    ORT_TRY(ort_model_clone(model, copy, err));
    if (as_stored)
        return ORT_OK;
    if (report == ORT_REPORT_COST || report == ORT_REPORT_OPERATOR_COST)
        ort_report_assume(*copy);
    return ort_model_infer_types(*copy, err);
}

ort_status ort_report_write(const ort_model *model, ort_report report, ort_strbuf *out,
                            ort_error *err)
{
    ort_model *copy = NULL;
    ort_json json;
    ort_status status = prepare(model, report, &copy, err);
    if (status != ORT_OK) {
        ort_model_free(copy);
        return status;
    }
    ort_report_begin(&json, out, report_name(report), model);
    switch (report) {
    case ORT_REPORT_SUMMARY: put_summary(&json, copy); break;
    case ORT_REPORT_IO: put_io(&json, copy); break;
    case ORT_REPORT_NODES:
        put_replaced(&json, model);
        put_nodes(&json, copy);
        break;
    case ORT_REPORT_SHAPES: put_shapes(&json, copy); break;
    case ORT_REPORT_INITIALIZERS: ort_report_initializers(&json, copy, true); break;
    case ORT_REPORT_STORED: ort_report_initializers(&json, copy, false); break;
    case ORT_REPORT_METADATA: put_metadata(&json, copy); break;
    case ORT_REPORT_FUNCTIONS: put_functions(&json, copy); break;
    case ORT_REPORT_OPS: put_ops(&json, copy); break;
    case ORT_REPORT_COST: ort_report_cost(&json, model, copy, false); break;
    case ORT_REPORT_OPERATOR_COST: ort_report_cost(&json, model, copy, true); break;
    case ORT_REPORT_MEMORY:
        status = ort_error_set(err, ORT_ERROR_USAGE, "the memory report needs a plan");
        break;
    }
    ort_json_end_object(&json);
    ort_strbuf_add_char(out, '\n');
    ort_model_free(copy);
    if (status == ORT_OK && out->failed)
        status = ort_error_memory(err, out->length);
    return status;
}
