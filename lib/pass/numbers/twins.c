/* twins.c - rebuilding nodes in another element type (twins.h). */
#include "pass/numbers/twins.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"

void ort_twins_release(ort_twins *t)
{
    ort_vec_release(&t->twin);
}

bool ort_twins_is_from(const ort_twins *t, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(t->graph, id);
    return value && value->fact.type.kind == ORT_TYPE_TENSOR && value->fact.type.dtype == t->from;
}

bool ort_twins_has(const ort_twins *t, ort_id id)
{
    return id < t->twin.count && t->twin.data[id] != ORT_ID_NONE;
}

/* ---- which nodes */

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

static bool outputs_follow(const ort_twins *t, const ort_node *node, const ort_schema *schema)
{
    for (int o = 0; o < node->output_count; o++) {
        const ort_param *p = ort_schema_param(schema->outputs, schema->output_count, o);
        bool bound = !ort_twins_is_from(t, node->outputs[o]);
        for (int i = 0; i < node->input_count && p && !bound; i++) {
            const ort_param *in = ort_schema_param(schema->inputs, schema->input_count, i);
            bound = in && ort_twins_is_from(t, node->inputs[i]) && !strcmp(in->type, p->type);
        }
        if (!bound)
            return false;
    }
    return true;
}

bool ort_twins_follow(const ort_twins *t, const ort_node *node, ort_schema *schema)
{
    return node->op && !node->body_count && !ort_edit_is_any(node, "Cast|CastLike|BitCast") &&
           !ort_node_has(node, "dtype") && !ort_node_has(node, "output_dtype") &&
           !holds_others(t->graph, node->inputs, node->input_count) &&
           !holds_others(t->graph, node->outputs, node->output_count) &&
           !ort_schema_parse(node->op, schema, NULL) && outputs_follow(t, node, schema);
}

/* ---- conversion */

static ort_status remember(ort_twins *t, ort_id value, ort_id twin, ort_error *err)
{
    while (t->twin.count <= value)
        if (!ort_vec_push(&t->twin, ORT_ID_NONE))
            return ort_error_memory(err, sizeof twin);
    t->twin.data[value] = twin;
    return ORT_OK;
}

static ort_status add_cast(const ort_twins *t, ort_id from, ort_id to, ort_dtype dtype,
                           const char *origin, ort_error *err)
{
    ort_attr type = ort_attr_int("to", dtype);
    ort_node_spec spec = {.domain = ONNX, .op_type = "Cast", .inputs = &from, .input_count = 1,
                          .outputs = &to, .output_count = 1, .set = &type, .set_count = 1,
                          .opset = t->cast_opset, .origin = origin};
    return ort_edit_add_node(t->graph, &spec, NULL, err);
}

/* Through float, which holds every element of the narrower types. */
static ort_status add_constant(const ort_twins *t, const ort_graph_value *value, ort_id *id,
                               ort_error *err)
{
    const ort_tensor *old = value->fact.value;
    int64_t count = ort_tensor_count(old);
    float *real = malloc((size_t)count * sizeof *real + 1); /* weights in a file lie as they lie */
    ort_tensor made = {.dtype = t->to, .shape = old->shape, .data = real};
    void *narrow = t->to == ORT_DTYPE_FLOAT ? NULL : malloc((size_t)count * 2 + 1);
    ort_status status = ORT_OK;
    if (!real || (t->to != ORT_DTYPE_FLOAT && !narrow))
        status = ort_error_memory(err, (size_t)count * sizeof *real);
    if (status == ORT_OK) {
        ort_tensor_to_f32(old, 0, count, real);
        if (narrow) {
            made.data = narrow;
            ort_tensor_from_f32(real, &made, 0, count);
        }
        status = ort_edit_add_constant(t->graph, value->name, &made, id, err);
    }
    free(real);
    free(narrow);
    return status;
}

/* Large weights that widen are left to folding, whose Cast has kernels and keeps what it computed
 * where it lies. */
#define CONVERTED_HERE 4096 /* elements */

static bool converts_here(const ort_twins *t, const ort_graph_value *value)
{
    return value->fact.value && value->fact.value->data && !value->is_input &&
           (t->to != ORT_DTYPE_FLOAT || ort_tensor_count(value->fact.value) <= CONVERTED_HERE);
}

static ort_status twin_of(ort_twins *t, const ort_node *reader, ort_id id, ort_id *twin,
                          ort_error *err)
{
    const ort_graph_value *value = t->graph->values.data[id];
    if (ort_twins_has(t, id)) {
        *twin = t->twin.data[id];
        return ORT_OK;
    }
    if (converts_here(t, value)) {
        ORT_TRY(add_constant(t, value, twin, err));
    } else {
        *twin = ort_graph_add_value(t->graph, "");
        if (*twin == ORT_ID_NONE)
            return ort_error_memory(err, sizeof *value);
        ORT_TRY(add_cast(t, id, *twin, t->to, ort_edit_origin_of(reader), err));
    }
    return remember(t, id, *twin, err);
}

/* in: the node's inputs, or twins of them; out: new values in the places of its outputs. */
static ort_status fill(ort_twins *t, const ort_node *node, ort_id *in, ort_id *out,
                       ort_error *err)
{
    ort_type to = ort_type_tensor(t->to, -1, NULL);
    ort_schema schema;
    ORT_TRY(ort_schema_parse(node->op, &schema, err));
    for (int i = 0; i < node->input_count; i++) {
        const ort_param *p = ort_schema_param(schema.inputs, schema.input_count, i);
        in[i] = node->inputs[i];
        if (ort_twins_is_from(t, in[i]) && p && !p->mixed &&
            ort_schema_allows(node->op, p->type, &to))
            ORT_TRY(twin_of(t, node, node->inputs[i], &in[i], err));
    }
    for (int o = 0; o < node->output_count; o++) {
        out[o] = node->outputs[o];
        if (ort_twins_is_from(t, out[o]) &&
            (out[o] = ort_graph_add_value(t->graph, "")) == ORT_ID_NONE)
            return ort_error_memory(err, sizeof(ort_graph_value));
    }
    return ORT_OK;
}

ort_status ort_twins_rebuild(ort_twins *t, ort_node *node, ort_error *err)
{
    size_t total = (size_t)(node->input_count + node->output_count);
    ort_id *ids = ort_arena_array(&t->graph->model->arena, total, sizeof *ids);
    ort_id *out = ids ? ids + node->input_count : NULL;
    if (!ids)
        return ort_error_memory(err, total * sizeof *ids);
    ORT_TRY(fill(t, node, ids, out, err));
    ort_node_spec spec = ort_edit_again(node);
    spec.inputs = ids;
    spec.outputs = out;
    ort_graph_remove_node(t->graph, node);
    ORT_TRY(ort_edit_add_node(t->graph, &spec, NULL, err));
    for (int o = 0; o < node->output_count; o++)
        if (out[o] != node->outputs[o]) {
            ORT_TRY(remember(t, node->outputs[o], out[o], err));
            ORT_TRY(add_cast(t, out[o], node->outputs[o], t->from, ort_edit_origin_of(node),
                             err));
        }
    return ORT_OK;
}
