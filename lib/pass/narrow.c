/* narrow.c - float weights and the regions that compute with them become float16 or bfloat16
 * (narrow.h), the other way round of half_compute.c, for a file.
 *
 *   x:f32 -> Op -> y:f32     becomes     x -> Cast -> Op -> y':f16 -> Cast -> y
 *
 * and the next node reads y': Casts stay at the borders of regions only. A node is part of one when
 * its schema allows the type wherever it has float under a type variable, it holds no bodies, is
 * not kept, none of its constants leaves the range, and it reads a constant or what is narrow.
 * Inputs and outputs of the graph keep their type. Weights are rounded to nearest even, once.
 */
#include "pass/narrow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"

#define FLOAT16_MAX 65504.0

typedef struct narrowing {
    ort_graph *graph;
    const ort_narrow_options *options;
    ORT_VEC(ort_id) twin; /* by value id: the 16-bit form of a float value, or ORT_ID_NONE */
} narrowing;

static bool is_float(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    return value && value->fact.type.kind == ORT_TYPE_TENSOR &&
           value->fact.type.dtype == ORT_DTYPE_FLOAT;
}

/* ---- which nodes */

static bool listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (*name && !strcmp(*names, name))
            return true;
    return false;
}

static bool kept(const narrowing *n, const ort_node *node)
{
    const char *const *keep = n->options->keep;
    bool found = listed(keep, node->op_type) || listed(keep, node->name);
    for (int i = 0; i < node->input_count && !found; i++)
        found = is_float(n->graph, node->inputs[i]) &&
                listed(keep, ort_graph_value_at(n->graph, node->inputs[i])->name);
    for (int o = 0; o < node->output_count && !found; o++)
        found = is_float(n->graph, node->outputs[o]) &&
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

/* Float16 ends at 65504, bfloat16 where float ends. */
static bool in_range(const narrowing *n, const ort_node *node)
{
    char why[400];
    for (int i = 0; i < node->input_count && n->options->dtype == ORT_DTYPE_FLOAT16; i++) {
        const ort_graph_value *v = ort_graph_value_at(n->graph, node->inputs[i]);
        if (!v || !v->fact.value || v->fact.value->dtype != ORT_DTYPE_FLOAT)
            continue;
        double most = largest(v->fact.value);
        if (most <= FLOAT16_MAX)
            continue;
        snprintf(why, sizeof why, "constant '%.200s' holds %g, beyond 65504", v->name, most);
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
        const ort_graph_value *v = ort_graph_value_at(n->graph, node->inputs[i]);
        if (v && v->fact.type.kind != ORT_TYPE_TENSOR)
            return false;
        if (!is_float(n->graph, node->inputs[i]) || !varies(node->op, p))
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
        if (is_float(n->graph, id) &&
            (ort_graph_value_at(n->graph, id)->fact.value ||
             (id < n->twin.count && n->twin.data[id] != ORT_ID_NONE)))
            return true;
    }
    return false;
}

/* Each float output must follow a variable of an input, or its type would not change with it. */
static bool outputs_suit(const narrowing *n, const ort_node *node, const ort_schema *schema)
{
    for (int o = 0; o < node->output_count; o++) {
        const ort_param *p = ort_schema_param(schema->outputs, schema->output_count, o);
        const ort_graph_value *v = ort_graph_value_at(n->graph, node->outputs[o]);
        bool bound = !is_float(n->graph, node->outputs[o]);
        if (v && v->fact.type.kind != ORT_TYPE_TENSOR)
            return false;
        for (int i = 0; i < node->input_count && p && !bound; i++)
            bound = is_float(n->graph, node->inputs[i]) &&
                    !strcmp(ort_schema_param(schema->inputs, schema->input_count, i)->type,
                            p->type);
        if (!bound)
            return false;
    }
    return true;
}

static bool suits(const narrowing *n, const ort_node *node)
{
    ort_schema schema;
    if (!node->op || node->body_count || node->domain[0] || ort_edit_is(node, ONNX, "Cast") ||
        ort_edit_is(node, ONNX, "CastLike") || ort_edit_is(node, ONNX, "BitCast") ||
        ort_node_has(node, "dtype") || ort_node_has(node, "output_dtype") ||
        ort_schema_parse(node->op, &schema, NULL))
        return false;
    if (!inputs_suit(n, node, &schema) || !outputs_suit(n, node, &schema) ||
        !begins_or_continues(n, node))
        return false;
    if (kept(n, node)) {
        tell(n, node, "kept in float");
        return false;
    }
    return in_range(n, node);
}

/* ---- conversion */

static ort_status remember(narrowing *n, ort_id value, ort_id twin, ort_error *err)
{
    while (n->twin.count <= value)
        if (!ort_vec_push(&n->twin, ORT_ID_NONE))
            return ort_error_memory(err, sizeof twin);
    n->twin.data[value] = twin;
    return ORT_OK;
}

static ort_status add_cast(ort_graph *graph, ort_id from, ort_id to, ort_dtype dtype,
                           const char *origin, ort_error *err)
{
    ort_attr type = {.name = "to", .type = ORT_ATTR_INT, .i = (int64_t)dtype};
    ort_node_spec spec = {.domain = ONNX,
                          .op_type = "Cast",
                          .inputs = &from,
                          .input_count = 1,
                          .outputs = &to,
                          .output_count = 1,
                          .set = &type,
                          .set_count = 1,
                          .origin = origin};
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status add_constant(const narrowing *n, const ort_graph_value *value, ort_id *id,
                               ort_error *err)
{
    const ort_tensor *wide = value->fact.value;
    int64_t count = ort_tensor_count(wide);
    float *real = malloc((size_t)count * sizeof *real + 1); /* weights in a file lie as they lie */
    ort_tensor narrow = {.dtype = n->options->dtype, .shape = wide->shape};
    narrow.data = malloc((size_t)count * 2 + 1);
    ort_status status = real && narrow.data ? ORT_OK : ort_error_memory(err, (size_t)count * 6);
    if (!status) {
        ort_tensor_to_f32(wide, 0, count, real);
        ort_tensor_from_f32(real, &narrow, 0, count);
        status = ort_edit_add_constant(n->graph, value->name, &narrow, id, err);
    }
    free(real);
    free(narrow.data);
    return status;
}

static ort_status twin_of(narrowing *n, const ort_node *reader, ort_id id, ort_id *twin,
                          ort_error *err)
{
    const ort_graph_value *value = n->graph->values.data[id];
    *twin = id < n->twin.count ? n->twin.data[id] : ORT_ID_NONE;
    if (*twin != ORT_ID_NONE)
        return ORT_OK;
    if (value->fact.value && value->fact.value->data && !value->is_input) {
        ORT_TRY(add_constant(n, value, twin, err));
    } else {
        *twin = ort_graph_add_value(n->graph, "");
        if (*twin == ORT_ID_NONE)
            return ort_error_memory(err, sizeof *value);
        ORT_TRY(add_cast(n->graph, id, *twin, n->options->dtype, ort_edit_origin_of(reader), err));
    }
    return remember(n, id, *twin, err);
}

static ort_status convert(narrowing *n, ort_node *node, ort_error *err)
{
    ort_graph *graph = n->graph;
    size_t total = (size_t)(node->input_count + node->output_count);
    ort_id *ids = ort_arena_array(&graph->model->arena, total, sizeof *ids);
    ort_id *out = ids ? ids + node->input_count : NULL;
    ort_schema schema;
    if (!ids)
        return ort_error_memory(err, total * sizeof *ids);
    ORT_TRY(ort_schema_parse(node->op, &schema, err));
    for (int i = 0; i < node->input_count; i++) {
        ids[i] = node->inputs[i];
        if (is_float(graph, ids[i]) &&
            varies(node->op, ort_schema_param(schema.inputs, schema.input_count, i)))
            ORT_TRY(twin_of(n, node, node->inputs[i], &ids[i], err));
    }
    for (int o = 0; o < node->output_count; o++) {
        out[o] = node->outputs[o];
        if (is_float(graph, out[o]) && (out[o] = ort_graph_add_value(graph, "")) == ORT_ID_NONE)
            return ort_error_memory(err, sizeof(ort_graph_value));
    }
    ort_node_spec spec = {.domain = node->domain,
                          .op_type = node->op_type,
                          .name = node->name,
                          .inputs = ids,
                          .outputs = out,
                          .input_count = node->input_count,
                          .output_count = node->output_count,
                          .attrs = node->attrs,
                          .attr_count = node->attr_count,
                          .opset = node->opset,
                          .origin = node->origin};
    ort_graph_remove_node(graph, node);
    ORT_TRY(ort_edit_add_node(graph, &spec, NULL, err));
    for (int o = 0; o < node->output_count; o++)
        if (out[o] != node->outputs[o]) {
            ORT_TRY(remember(n, node->outputs[o], out[o], err));
            ORT_TRY(add_cast(graph, out[o], node->outputs[o], ORT_DTYPE_FLOAT,
                             ort_edit_origin_of(node), err));
        }
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
    size_t kept_count = 0;
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (!graph->nodes.data[i]->removed && unread(graph, graph->nodes.data[i]))
            ort_graph_remove_node(graph, graph->nodes.data[i]);
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_graph_value *v = graph->values.data[graph->initializers.data[i]];
        if (v->use_count > 0 || v->is_output || v->is_input)
            graph->initializers.data[kept_count++] = graph->initializers.data[i];
    }
    graph->initializers.count = kept_count;
}

static ort_status narrow_nodes(narrowing *n, ort_error *err)
{
    ort_graph *graph = n->graph;
    size_t count = graph->order.count;
    for (size_t i = 0; i < count; i++) { /* nodes that are added join the end */
        ort_node *node = graph->nodes.data[graph->order.data[i]];
        if (!node->removed && suits(n, node))
            ORT_TRY(convert(n, node, err));
    }
    ORT_TRY(ort_edit_finish(graph, err));
    sweep(graph);
    return ort_edit_finish(graph, err);
}

ort_status ort_graph_narrow(ort_model *model, const ort_registry *registry,
                            const ort_narrow_options *options, ort_error *err)
{
    narrowing n = {.graph = model->graph, .options = options};
    int64_t opset = ort_model_opset(model, ONNX);
    if (options->dtype != ORT_DTYPE_FLOAT16 && options->dtype != ORT_DTYPE_BFLOAT16)
        return ort_error_set(err, ORT_ERROR_USAGE, "a model is narrowed to float16 or bfloat16");
    if (options->dtype == ORT_DTYPE_BFLOAT16 && opset < 13)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "bfloat16 needs opset 13, the model has %lld", (long long)opset);
    ORT_TRY(ort_graph_infer(model->graph, registry, NULL, err));
    ort_status status = narrow_nodes(&n, err);
    ort_vec_release(&n.twin);
    return status;
}
