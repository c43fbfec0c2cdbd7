/* edit.c - edits of a graph that keep operators resolved and facts current. */
#include "op/edit.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "graph/follow.h"
#include "graph/uses.h"
#include "io/blob.h"

static ort_status import_domain(ort_model *model, const char *domain, ort_error *err)
{
    ort_opset opset = {.version = 1};
    if (ort_model_opset(model, domain))
        return ORT_OK;
    if (strcmp(domain, MS) && strcmp(domain, ORT_INTERNAL))
        return ort_error_set(err, ORT_ERROR_MODEL, "the model doesn't import the domain '%s'",
                             domain);
    opset.domain = ort_arena_strdup(&model->arena, domain);
    if (!opset.domain || !ort_vec_push(&model->opsets, opset))
        return ort_error_memory(err, sizeof opset);
    model->changed = true;
    return ORT_OK;
}

ort_status ort_edit_add_node(ort_graph *graph, const ort_node_spec *spec, ort_node **node,
                             ort_error *err)
{
    ort_node *n;
    if (node)
        *node = NULL;
    ORT_TRY(import_domain(graph->model, spec->domain, err));
    n = ort_graph_add_node(graph, spec->domain, spec->op_type, spec->name, spec->inputs,
                           spec->input_count, spec->outputs, spec->output_count);
    if (!n)
        return ort_error_memory(err, sizeof *n);
    if (spec->attr_count) {
        /* The array is shared with another node: ort_node_set_attr always makes a new one. */
        n->attrs = (ort_attr *)(uintptr_t)spec->attrs;
        n->attr_count = spec->attr_count;
    }
    for (int i = 0; i < spec->set_count; i++)
        ORT_TRY(ort_node_set_attr(graph, n, &spec->set[i], err));
    n->origin = spec->origin;
    if (spec->opset)
        n->opset = spec->opset;
    n->op = ort_registry_find(graph->model->registry, n->domain, n->op_type, n->opset);
    if (!n->op)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "operator %s%s%s of opset %d is unknown",
                             n->domain, n->domain[0] ? "." : "", n->op_type, n->opset);
    ort_node_share_type(n);
    if (node)
        *node = n;
    return ort_node_infer(graph, n, err);
}

ort_node_spec ort_edit_again(const ort_node *node)
{
    return (ort_node_spec){.domain = node->domain, .op_type = node->op_type, .name = node->name,
                           .inputs = node->inputs, .input_count = node->input_count,
                           .outputs = node->outputs, .output_count = node->output_count,
                           .attrs = node->attrs, .attr_count = node->attr_count,
                           .opset = node->opset, .origin = node->origin};
}

ort_status ort_edit_replace(ort_graph *graph, ort_node *node, ort_node *reader,
                            ort_node_spec *spec, ort_error *err)
{
    const ort_node *last = reader ? reader : node;
    if (!spec->domain)
        spec->domain = ONNX;
    if (!spec->name)
        spec->name = node->name;
    if (!spec->outputs) {
        spec->outputs = last->outputs;
        spec->output_count = 1;
    }
    if (!spec->origin)
        spec->origin = reader ? ort_edit_origin(graph, node, reader) : ort_edit_origin_of(node);
    if (!spec->origin)
        return ort_error_memory(err, sizeof *spec);
    while (spec->input_count && spec->inputs[spec->input_count - 1] == ORT_ID_NONE)
        spec->input_count--;
    if (reader)
        ort_graph_remove_node(graph, reader);
    ort_graph_remove_node(graph, node);
    return ort_edit_add_node(graph, spec, NULL, err);
}

ort_status ort_edit_add_result(ort_graph *graph, const char *op_type, const ort_id *inputs,
                               int input_count, const ort_attr *set, int set_count,
                               ort_id *result, ort_error *err)
{
    ort_id made = ort_graph_add_value(graph, "");
    if (made == ORT_ID_NONE)
        return ort_error_memory(err, sizeof made);
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .name = "", .inputs = inputs,
                          .input_count = input_count, .outputs = &made, .output_count = 1,
                          .set = set, .set_count = set_count};
    ORT_TRY(ort_edit_add_node(graph, &spec, NULL, err));
    *result = made;
    return ORT_OK;
}

ort_status ort_edit_set_attr(ort_graph *graph, ort_node *node, const ort_attr *attr,
                             ort_error *err)
{
    ORT_TRY(ort_node_set_attr(graph, node, attr, err));
    return ort_node_infer(graph, node, err);
}

static ort_status copy_tensor(ort_model *model, const ort_tensor *from, ort_tensor *to,
                              ort_error *err)
{
    ort_arena *arena = &model->arena;
    ort_status status;
    *to = *from;
    to->stride = NULL;
    to->data = ort_model_room(model, ort_tensor_bytes(from), err, &status);
    if (!to->data)
        return status;
    ort_tensor_copy_data(to, from);
    if (from->dtype != ORT_DTYPE_STRING)
        return ORT_OK;
    ort_string *strings = to->data;
    for (int64_t i = 0; i < ort_tensor_count(to); i++) {
        strings[i].ptr = ort_arena_strndup(arena, strings[i].ptr ? strings[i].ptr : "",
                                           strings[i].length);
        if (!strings[i].ptr)
            return ort_error_memory(err, strings[i].length);
    }
    return ORT_OK;
}

ort_status ort_edit_add_constant(ort_graph *graph, const char *name, const ort_tensor *tensor,
                                 ort_id *id, ort_error *err)
{
    ort_tensor copy;
    ORT_TRY(copy_tensor(graph->model, tensor, &copy, err));
    *id = ort_graph_add_constant(graph, name, &copy);
    return *id == ORT_ID_NONE ? ort_error_memory(err, sizeof copy) : ORT_OK;
}

/* Below it a copy costs less than a block of its own. */
#define KEPT_BYTES 4096

ort_status ort_edit_keep(ort_graph *graph, ort_value *value, const ort_tensor **kept,
                         ort_error *err)
{
    ort_model *model = graph->model;
    size_t bytes = ort_tensor_bytes(&value->tensor);
    ort_tensor *made = ort_arena_alloc(&model->arena, sizeof *made);
    ort_blob *blob;
    *kept = made;
    if (!made || !ort_vec_reserve(&model->blobs, model->blobs.count + 1))
        return ort_error_memory(err, sizeof *made);
    if (bytes < KEPT_BYTES || !value->storage || value->release || value->references != 1 ||
        value->tensor.stride || value->tensor.dtype == ORT_DTYPE_STRING || model->spool) {
        ORT_TRY(copy_tensor(model, &value->tensor, made, err));
        ort_model_forget(model, made->data, bytes);
        return ORT_OK;
    }
    void *storage = value->storage;
    ort_value_uncharge(value); /* the blob counts among all that is held */
    value->storage = NULL; /* ort_blob_new takes it in any case */
    ORT_TRY(ort_blob_new(ORT_BLOB_HEAP, storage, bytes, &blob, err));
    ort_account *whole = ort_account_whole_of_work();
    if (!ort_account_charge(whole, bytes)) {
        ort_status status = ort_account_refuse(whole, bytes, "a constant", err);
        ort_account_release(whole);
        ort_blob_release(blob);
        return status;
    }
    blob->account = whole;
    (void)ort_vec_push(&model->blobs, blob);
    *made = value->tensor;
    return ORT_OK;
}

ort_status ort_edit_new_constant(ort_graph *graph, const char *name, ort_dtype dtype,
                                 const ort_shape *shape, ort_tensor *tensor, ort_id *id,
                                 ort_error *err)
{
    ort_status status;
    *tensor = (ort_tensor){.dtype = dtype, .shape = *shape};
    size_t bytes = ort_tensor_bytes(tensor);
    tensor->data = ort_model_room(graph->model, bytes, err, &status);
    if (tensor->data && bytes > 0 && ort_dtype_get(dtype)->bits < 8)
        ((uint8_t *)tensor->data)[bytes - 1] = 0; /* which numbers may not fill */
    *id = tensor->data ? ort_graph_add_constant(graph, name, tensor) : ORT_ID_NONE;
    return *id == ORT_ID_NONE && status == ORT_OK ? ort_error_memory(err, bytes) : status;
}

ort_status ort_edit_make_constant(ort_graph *graph, ort_id value, const ort_tensor *tensor,
                                  ort_error *err)
{
    ort_graph_value *v = graph->values.data[value];
    ort_node *node = ort_edit_producer(graph, value);
    const ort_tensor *copy = tensor;
    bool last = true;
    if (!ort_vec_reserve(&graph->initializers, graph->initializers.count + 1))
        return ort_error_memory(err, sizeof value);
    if (tensor != v->fact.value) { /* what inference knows lives as long as the model */
        ort_tensor *made = ort_arena_alloc(&graph->model->arena, sizeof *made);
        if (!made)
            return ort_error_memory(err, sizeof *made);
        ORT_TRY(copy_tensor(graph->model, tensor, made, err));
        copy = made;
    }
    v->fact.value = copy;
    v->fact.type = ort_type_of_tensor(copy);
    graph->producers.data[value] = ORT_ID_NONE;
    if (v->is_output && !v->declared) /* onnx's inference wants the type of a body's result that no
                                         node computes */
        ort_graph_touch_value(graph, value);
    (void)ort_vec_push(&graph->initializers, value);
    if (!node)
        return ORT_OK;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == value)
            node->outputs[i] = ORT_ID_NONE;
        last = last && node->outputs[i] == ORT_ID_NONE;
    }
    ort_graph_touch(graph, node);
    if (last)
        ort_graph_remove_node(graph, node);
    return ORT_OK;
}

/* The node gives a graph output: whoever computes its input gives it under the output's name. */
static bool rename_to_output(ort_graph *graph, ort_node *node, ort_id in, ort_id out)
{
    ort_graph_value *source = graph->values.data[in];
    ort_node *producer = ort_edit_producer(graph, in);
    if (!producer || source->is_output || source->is_input)
        return false;
    int slot = source->producer_slot;
    ort_graph_remove_node(graph, node);
    producer->outputs[slot] = out;
    graph->producers.data[out] = producer->id;
    graph->values.data[out]->producer_slot = slot;
    graph->producers.data[in] = ORT_ID_NONE;
    ort_graph_replace_uses(graph, in, out);
    ort_graph_touch(graph, producer);
    return true;
}

bool ort_edit_bypass(ort_graph *graph, ort_node *node, int slot)
{
    ort_id in = node->inputs[slot], out = node->outputs[0];
    if (in == ORT_ID_NONE || out == ORT_ID_NONE)
        return false;
    if (graph->values.data[out]->is_output)
        return rename_to_output(graph, node, in, out);
    ort_graph_replace_uses(graph, out, in);
    ort_graph_remove_node(graph, node);
    return true;
}

const char *ort_edit_origin_of(const ort_node *node)
{
    return ort_node_origin(node);
}

const char *ort_edit_origin(ort_graph *graph, const ort_node *a, const ort_node *b)
{
    const char *first = ort_edit_origin_of(a), *second = ort_edit_origin_of(b);
    if (strlen(first) + strlen(second) < ORT_EDIT_ORIGIN_BYTES)
        return ort_arena_join(&graph->model->arena, first, "+", second);
    const char *longer = strlen(first) < strlen(second) ? second : first;
    size_t length = strlen(longer), more = strlen(ORT_EDIT_ORIGIN_MORE);
    if (length > more && !strcmp(longer + length - more, ORT_EDIT_ORIGIN_MORE))
        return ort_follow_join(graph->model, longer, longer == first ? second : first);
    longer = ort_arena_join(&graph->model->arena, longer, ORT_EDIT_ORIGIN_MORE, "");
    return ort_follow_join(graph->model, ort_follow_join(graph->model, longer, first), second);
}

ort_status ort_edit_finish(ort_graph *graph, ort_error *err)
{
    return ort_graph_sort(graph, err);
}

/* ---- looking around */

ort_node *ort_edit_producer(const ort_graph *graph, ort_id value)
{
    ort_id producer = ort_graph_producer(graph, value);
    ort_node *node = producer == ORT_ID_NONE ? NULL : graph->nodes.data[producer];
    return node && !node->removed ? node : NULL;
}

ort_node *ort_edit_only_reader(const ort_graph *graph, ort_id value)
{
    const ort_graph_value *v = graph->values.data[value];
    ort_node *reader;
    if (v->use_count != 1 || v->is_output)
        return NULL;
    ort_readers readers = ort_readers_of(graph, value);
    reader = ort_readers_next(&readers);
    for (int i = 0; reader && i < reader->input_count; i++)
        if (reader->inputs[i] == value)
            return reader;
    return NULL; /* captured */
}

const ort_tensor *ort_edit_constant(const ort_graph *graph, const ort_node *node, int slot)
{
    return ort_fact_value(graph, ort_edit_input(node, slot));
}

/* Looks for the first letter: few lists have it, and fewer still at the beginning of a name. */
bool ort_edit_names(const char *names, size_t length, const ort_op *op)
{
    const char *end = names + length, *at = names;
    for (; (at = memchr(at, op->name[0], (size_t)(end - at))) != NULL; at++) {
        size_t count = strlen(op->name);
        bool ms = at - names >= 3 && !memcmp(at - 3, "ms.", 3);
        const char *first = ms ? at - 3 : at;
        if ((first == names || first[-1] == '|') && count <= (size_t)(end - at) &&
            !memcmp(at, op->name, count) && (at + count == end || at[count] == '|') &&
            !strcmp(op->domain, ms ? MS : ONNX))
            return true;
    }
    return false;
}

const ort_attr *ort_edit_attr(const ort_node *node, const char *name, ort_attr *own)
{
    const char *text = NULL;
    const ort_attr *attr = ort_node_attr(node, name);
    if (attr || !node->op)
        return attr;
    *own = (ort_attr){.name = name, .type = ort_schema_attr(node->op, name, &text)};
    if (!text)
        return NULL;
    if (own->type == ORT_ATTR_FLOAT)
        own->f = (float)ort_parse_double(text, NULL);
    else if (own->type == ORT_ATTR_INT)
        own->i = strtoll(text, NULL, 10);
    else if (own->type == ORT_ATTR_STRING)
        own->s = (ort_string){(char *)(uintptr_t)text, strcspn(text, " ")};
    else
        return NULL;
    return own;
}

bool ort_fact_ints_are(const ort_node *node, const char *name, int64_t number)
{
    size_t count = 0;
    const int64_t *list = ort_node_ints(node, name, &count);
    for (size_t i = 0; list && i < count; i++)
        if (list[i] != number)
            return false;
    return true;
}

/* ---- what is known of values */

bool ort_fact_ranked(const ort_graph *graph, ort_id id, int rank)
{
    const ort_type *type = ort_fact_type(graph, id);
    return type->kind == ORT_TYPE_TENSOR && type->rank == rank;
}

bool ort_facts_same_shape(const ort_type *a, const ort_type *b)
{
    if (a->kind != ORT_TYPE_TENSOR || b->kind != ORT_TYPE_TENSOR || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (!ort_dim_equal(a->dim[d], b->dim[d]))
            return false;
    return a->rank >= 0;
}

bool ort_facts_same_type(const ort_type *a, const ort_type *b)
{
    return a->dtype == b->dtype && a->dtype != ORT_DTYPE_UNDEFINED && ort_facts_same_shape(a, b);
}

const ort_tensor *ort_fact_value(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = ort_graph_value_at(graph, id);
    return value && !value->is_input ? value->fact.value : NULL;
}

const ort_tensor *ort_fact_constant(const ort_graph *graph, ort_id id)
{
    const ort_tensor *value = ort_fact_value(graph, id);
    return value && value->data ? value : NULL;
}

size_t ort_edit_message_bytes(const ort_graph *graph, const ort_node *node)
{
    size_t bytes = 6 + strlen(node->op_type) + strlen(node->name);
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE)
            bytes += 2 + strlen(graph->values.data[node->inputs[i]]->name);
    for (int i = 0; i < node->attr_count; i++) {
        const ort_attr *attr = &node->attrs[i];
        bytes += 8 + strlen(attr->name);
        bytes += attr->type == ORT_ATTR_TENSOR && attr->t ? ort_tensor_bytes(attr->t) : 0;
    }
    return bytes;
}
