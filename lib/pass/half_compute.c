/* half_compute.c - what a model computes in float16 is computed in float, from weights converted
 * once; only graph inputs and outputs, and what passes between nodes that stay, keep their type.
 *
 * There are no float16 kernels: an operator would convert its inputs at each run, and round its
 * result. The rounding is also what models that a tool has converted don't survive: squares and
 * sums of theirs leave the range of float16, and onnxruntime, which computes them in float as well,
 * is what they were tried on. Every node with a float16 tensor changes when its schema allows float
 * in the same places:
 *
 *   x:f16 -> Op -> y:f16     becomes     x -> Cast -> Op -> y':f32 -> Cast -> y
 *
 * where the next node reads y' and not y. A graph without float16 weights stays as it is, and so
 * do casts of the model itself. A saved file keeps its types, so this is not for it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/pass.h"

typedef struct halves {
    ort_pass_context *c;
    ORT_VEC(ort_id) twin; /* by value id: the float form of a float16 value, or ORT_ID_NONE */
} halves;

static bool is_half(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    return value && value->fact.type.kind == ORT_TYPE_TENSOR &&
           value->fact.type.dtype == ORT_DTYPE_FLOAT16;
}

/* Sequences and optionals keep the element type that their readers were promised. */
static bool holds_others(const ort_graph *graph, const ort_id *ids, int count)
{
    for (int i = 0; i < count; i++) {
        const ort_graph_value *value = ort_graph_value_at(graph, ids[i]);
        if (value && value->fact.type.kind != ORT_TYPE_TENSOR)
            return true;
    }
    return false;
}

static const ort_param *param_at(const ort_param *params, int count, int slot)
{
    if (count == 0)
        return NULL;
    return &params[slot < count ? slot : count - 1];
}

/* Whether float may stand wherever the node has float16: each such output must have the type
 * variable of an input, or its type would come from an attribute. */
static bool suits(const ort_graph *graph, const ort_node *node)
{
    ort_schema schema;
    ort_type real = ort_type_tensor(ORT_DTYPE_FLOAT, -1, NULL);
    bool any = false;
    if (!node->op || node->body_count || ort_edit_is(node, ONNX, "Cast") ||
        ort_edit_is(node, ONNX, "CastLike") || ort_edit_is(node, ONNX, "BitCast") ||
        ort_node_has(node, "dtype") || ort_node_has(node, "output_dtype"))
        return false;
    for (int i = 0; i < node->input_count; i++)
        any = any || is_half(graph, node->inputs[i]);
    if (!any || holds_others(graph, node->inputs, node->input_count) ||
        holds_others(graph, node->outputs, node->output_count) ||
        ort_schema_parse(node->op, &schema, NULL))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const ort_param *p = param_at(schema.inputs, schema.input_count, i);
        if (is_half(graph, node->inputs[i]) &&
            (!p || p->mixed || !ort_schema_allows(node->op, p->type, &real)))
            return false;
    }
    for (int o = 0; o < node->output_count; o++) {
        const ort_param *p = param_at(schema.outputs, schema.output_count, o);
        bool bound = !is_half(graph, node->outputs[o]);
        for (int i = 0; i < node->input_count && p && !bound; i++)
            bound = is_half(graph, node->inputs[i]) &&
                    !strcmp(param_at(schema.inputs, schema.input_count, i)->type, p->type);
        if (!bound)
            return false;
    }
    return true;
}

static ort_status remember(halves *h, ort_id value, ort_id twin, ort_error *err)
{
    while (h->twin.count <= value)
        if (!ort_vec_push(&h->twin, ORT_ID_NONE))
            return ort_error_memory(err, sizeof twin);
    h->twin.data[value] = twin;
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
                          .opset = ORT_NEWEST_OPSET,
                          .origin = origin};
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status add_constant(ort_graph *graph, const ort_graph_value *value, ort_id *id,
                               ort_error *err)
{
    const ort_tensor *half = value->fact.value;
    int64_t count = ort_tensor_count(half);
    ort_tensor real = {.dtype = ORT_DTYPE_FLOAT, .shape = half->shape};
    float *data = malloc((size_t)count * sizeof *data + 1);
    if (!data)
        return ort_error_memory(err, (size_t)count * sizeof *data);
    ort_tensor_to_f32(half, 0, count, data);
    real.data = data;
    ort_status status = ort_edit_add_constant(graph, value->name, &real, id, err);
    free(data);
    return status;
}

/* The float form of an input, made at the first use. */
static ort_status twin_of(halves *h, const ort_node *reader, ort_id id, ort_id *twin,
                          ort_error *err)
{
    ort_graph *graph = h->c->graph;
    const ort_graph_value *value = graph->values.data[id];
    *twin = id < h->twin.count ? h->twin.data[id] : ORT_ID_NONE;
    if (*twin != ORT_ID_NONE)
        return ORT_OK;
    if (value->fact.value && value->fact.value->data && !value->is_input) {
        ORT_TRY(add_constant(graph, value, twin, err));
    } else {
        *twin = ort_graph_add_value(graph, "");
        if (*twin == ORT_ID_NONE)
            return ort_error_memory(err, sizeof *value);
        ORT_TRY(add_cast(graph, id, *twin, ORT_DTYPE_FLOAT, ort_edit_origin_of(reader), err));
    }
    return remember(h, id, *twin, err);
}

static ort_status convert(halves *h, ort_node *node, ort_error *err)
{
    ort_graph *graph = h->c->graph;
    size_t total = (size_t)(node->input_count + node->output_count);
    ort_id *ids = ort_arena_array(&graph->model->arena, total, sizeof *ids);
    ort_id *out = ids ? ids + node->input_count : NULL;
    if (!ids)
        return ort_error_memory(err, total * sizeof *ids);
    for (int i = 0; i < node->input_count; i++) {
        ids[i] = node->inputs[i];
        if (is_half(graph, node->inputs[i]))
            ORT_TRY(twin_of(h, node, node->inputs[i], &ids[i], err));
    }
    for (int o = 0; o < node->output_count; o++) {
        out[o] = node->outputs[o];
        if (is_half(graph, node->outputs[o]) &&
            (out[o] = ort_graph_add_value(graph, "")) == ORT_ID_NONE)
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
            ORT_TRY(remember(h, node->outputs[o], out[o], err));
            ORT_TRY(add_cast(graph, out[o], node->outputs[o], ORT_DTYPE_FLOAT16,
                             ort_edit_origin_of(node), err));
        }
    return ORT_OK;
}

/* A lone operator converts and rounds all the same. */
static bool has_two(const ort_graph *graph)
{
    const ort_node *node;
    int count = 0;
    ORT_EACH_NODE(graph, node)
        if (suits(graph, node) && ++count == 2)
            return true;
    return false;
}

#define WEIGHTS_MIN 256 /* elements; masks and scales that were folded are mostly smaller */

/* Float16 weights, here or around: without them no tool has converted the model, and each operator
 * rounds as it is written. */
static bool has_weights(const ort_graph *graph)
{
    for (; graph; graph = graph->parent)
        for (ort_id id = 0; id < graph->values.count; id++) {
            const ort_graph_value *value = ort_graph_value_at(graph, id);
            if (is_half(graph, id) && value->producer == ORT_ID_NONE && value->fact.value &&
                ort_tensor_count(value->fact.value) >= WEIGHTS_MIN)
                return true;
        }
    return false;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    halves h = {.c = c};
    ort_status status = ORT_OK;
    ort_node *node;
    if (c->portable || !ort_model_opset(c->graph->model, ONNX) || !has_two(c->graph) ||
        !has_weights(c->graph))
        return ORT_OK;
    ORT_EACH_NODE(c->graph, node)
    {
        if (status || !suits(c->graph, node))
            continue;
        status = convert(&h, node, err);
        ++*changes;
    }
    ort_vec_release(&h.twin);
    return status;
}

const ort_pass ort_pass_half_compute = {
    .name = "half_compute",
    .level = 2,
    .doc = "what is computed in float16 is computed in float",
    .apply = apply,
};
