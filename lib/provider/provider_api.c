/* provider_api.c - what providers may ask (ort_provider.h): of operators, nodes, values, parts. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/part.h"
#include "provider/provider.h"

/* ---- operators and nodes */

static const char *op_domain(const ort_op *op)
{
    return op->domain;
}

static const char *op_name(const ort_op *op)
{
    return op->name;
}

static int op_since(const ort_op *op)
{
    return op->since;
}

static const char *node_name(const ort_node *node)
{
    return node->name;
}

static const char *node_domain(const ort_node *node)
{
    return node->domain;
}

static const char *node_type(const ort_node *node)
{
    return node->op_type;
}

static int node_opset(const ort_node *node)
{
    return node->opset;
}

static int model_opset(const ort_graph *graph, const char *domain)
{
    int64_t version = ort_model_opset(graph->model, domain);
    return version > 0 ? (int)version : 0;
}

static int input_count(const ort_node *node)
{
    return node->input_count;
}

static int output_count(const ort_node *node)
{
    return node->output_count;
}

static ort_id input(const ort_node *node, int slot)
{
    return slot >= 0 && slot < node->input_count ? node->inputs[slot] : ORT_ID_NONE;
}

static ort_id output(const ort_node *node, int slot)
{
    return slot >= 0 && slot < node->output_count ? node->outputs[slot] : ORT_ID_NONE;
}

/* ---- values */

static size_t value_count(const ort_graph *graph)
{
    return graph->values.count;
}

static void describe(const ort_graph *graph, ort_id id, const ort_fact *fact,
                     ort_device_value *value)
{
    const ort_type *type = &fact->type;
    memset(value, 0, sizeof *value);
    value->rank = -1;
    value->count = -1;
    value->name = graph->values.data[id]->name;
    if (type->kind != ORT_TYPE_TENSOR)
        return;
    value->dtype = type->dtype;
    value->rank = type->rank;
    value->count = type->rank >= 0 ? 1 : -1;
    for (int d = 0; d < type->rank; d++) {
        value->dims[d] = ort_dim_known(type->dim[d]) ? type->dim[d].size : -1;
        value->count = value->dims[d] < 0 || value->count < 0 ? -1 : value->count * value->dims[d];
    }
}

static void absent(ort_device_value *value)
{
    *value = (ort_device_value){.rank = -1, .count = -1, .name = ""};
}

static void value_of(const ort_graph *graph, ort_id id, ort_device_value *value)
{
    if (!ort_graph_has_value(graph, id)) {
        absent(value);
        return;
    }
    const ort_graph_value *v = graph->values.data[id];
    describe(graph, id, &v->fact, value);
    value->constant = v->fact.value && !v->is_input;
}

static bool copy_elements(const ort_tensor *t, ort_dtype dtype, void *to, size_t bytes)
{
    ort_tensor own = {.dtype = dtype, .shape = t->shape, .data = to};
    if (dtype == ORT_DTYPE_STRING || !t->data || ort_tensor_bytes(&own) != bytes)
        return false;
    if (t->dtype == dtype)
        memcpy(to, t->data, bytes);
    else
        ort_tensor_convert(&own, t, NULL);
    return true;
}

static bool read_value(const ort_graph *graph, ort_id id, void *to, size_t bytes)
{
    if (!ort_graph_has_value(graph, id) || graph->values.data[id]->is_input)
        return false;
    const ort_fact *fact = &graph->values.data[id]->fact;
    return fact->value && copy_elements(fact->value, fact->type.dtype, to, bytes);
}

static const ort_tensor *constant_of(const ort_device_request *r, ort_id id)
{
    if (!ort_graph_has_value(r->graph, id))
        return NULL;
    return r->constants && r->constants[id] ? r->constants[id] : r->facts[id].value;
}

static void settled(const ort_device_request *r, ort_id id, ort_device_value *value)
{
    if (!ort_graph_has_value(r->graph, id)) {
        absent(value);
        return;
    }
    describe(r->graph, id, &r->facts[id], value);
    value->constant = constant_of(r, id) != NULL;
}

static bool constant(const ort_device_request *r, ort_id id, void *to, size_t bytes)
{
    const ort_tensor *t = constant_of(r, id);
    return t && copy_elements(t, r->facts[id].type.dtype, to, bytes);
}

/* ---- a part as a model */

typedef struct bounds { /* of one part */
    char *state; /* by value id */
    ort_id *inputs, *outputs;
    size_t input_count, output_count;
} bounds;

enum { MADE_HERE = 1, TAKEN = 2, GIVEN = 4 };

static void take(const ort_device_request *r, bounds *b, ort_id id)
{
    if (id == ORT_ID_NONE || b->state[id] || constant_of(r, id))
        return;
    b->state[id] = TAKEN;
    b->inputs[b->input_count++] = id;
}

static void give(bounds *b, ort_id id)
{
    if (id == ORT_ID_NONE || !(b->state[id] & MADE_HERE) || (b->state[id] & GIVEN))
        return;
    b->state[id] |= GIVEN;
    b->outputs[b->output_count++] = id;
}

/* A value leaves by a copy, or stays for a later part. */
static void find_bounds(const ort_device_request *r, const ort_device_part *p, bounds *b)
{
    for (int i = p->first; i < p->first + p->count; i++) {
        const ort_node *node = r->steps[i].node;
        for (int k = 0; k < node->input_count; k++)
            take(r, b, node->inputs[k]);
        for (int k = 0; k < node->output_count; k++)
            if (node->outputs[k] != ORT_ID_NONE)
                b->state[node->outputs[k]] = MADE_HERE;
    }
    for (int i = 0; i < p->out_count; i++)
        give(b, p->out[i].id);
    for (int i = p->first + p->count; i < r->step_count; i++)
        for (int k = 0; k < r->steps[i].node->input_count; k++)
            give(b, r->steps[i].node->inputs[k]);
}

typedef struct owned { /* of an ort_part_model */
    ort_id *inputs, *outputs;
    void *bytes;
} owned;

static void part_model_free(ort_part_model *model)
{
    owned *o = model->owned;
    if (!o)
        return;
    free(o->inputs);
    free(o->outputs);
    free(o->bytes);
    free(o);
    memset(model, 0, sizeof *model);
}

static ort_status write_part(const ort_device_request *r, const ort_device_part *p,
                             const bounds *b, owned *o, size_t *count, ort_error *err)
{
    const ort_node **nodes = malloc(((size_t)p->count + 1) * sizeof *nodes);
    if (!nodes)
        return ort_error_memory(err, (size_t)p->count * sizeof *nodes);
    for (int i = 0; i < p->count; i++)
        nodes[i] = r->steps[p->first + i].node;
    const ort_graph_part part = {.graph = r->graph, .nodes = nodes,
                                 .node_count = (size_t)p->count, .facts = r->facts,
                                 .constants = r->constants, .inputs = b->inputs,
                                 .outputs = b->outputs, .input_count = b->input_count,
                                 .output_count = b->output_count};
    ort_status status = ort_graph_part_export(&part, &o->bytes, count, err);
    free(nodes);
    return status;
}

static ort_status part_model(const ort_device_request *r, int part, ort_part_model *model,
                             ort_error *err)
{
    size_t values = r->graph->values.count + 1, count = 0;
    bounds b = {.state = calloc(values, 1)};
    owned *o = calloc(1, sizeof *o);
    ort_status status = ORT_ERROR_MEMORY;
    memset(model, 0, sizeof *model);
    if (o) {
        b.inputs = o->inputs = malloc(values * sizeof *o->inputs);
        b.outputs = o->outputs = malloc(values * sizeof *o->outputs);
    }
    if (o && b.state && o->inputs && o->outputs) {
        find_bounds(r, &r->parts[part], &b);
        status = write_part(r, &r->parts[part], &b, o, &count, err);
    } else {
        ort_error_memory(err, values * sizeof *o->inputs);
    }
    free(b.state);
    *model = (ort_part_model){o ? o->bytes : NULL, count, b.inputs, b.outputs,
                              (int)b.input_count, (int)b.output_count, o};
    if (status != ORT_OK)
        part_model_free(model);
    return status;
}

/* ---- messages */

static void say(const ort_log *log, ort_log_level level, const char *text)
{
    ort_log_write(log, level, "%s", text);
}

static ort_status fail(ort_error *err, ort_status status, const char *format, ...)
{
    va_list list;
    if (!err)
        return status;
    err->status = status;
    err->count = 1;
    va_start(list, format);
    vsnprintf(err->message, sizeof err->message, format, list);
    va_end(list);
    return status;
}

const ort_provider_api ort_provider_functions = {
    .abi = ORT_PROVIDER_ABI,
    .size = sizeof(ort_provider_api),
    .version = ort_version,
    .op_domain = op_domain,
    .op_name = op_name,
    .op_since = op_since,
    .node_name = node_name,
    .node_domain = node_domain,
    .node_type = node_type,
    .node_opset = node_opset,
    .model_opset = model_opset,
    .input_count = input_count,
    .output_count = output_count,
    .input = input,
    .output = output,
    .attr_given = ort_node_has,
    .attr_int = ort_node_int,
    .attr_float = ort_node_float,
    .attr_string = ort_node_string,
    .attr_ints = ort_node_ints,
    .attr_floats = ort_node_floats,
    .value_count = value_count,
    .value = value_of,
    .read = read_value,
    .settled = settled,
    .constant = constant,
    .part_model = part_model,
    .part_model_free = part_model_free,
    .say = say,
    .fail = fail,
};
