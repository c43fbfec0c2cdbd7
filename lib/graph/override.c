/* override.c - gives sizes to symbolic dimensions, and shapes to inputs (override.h). */
#include "graph/override.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/strbuf.h"

/* ---- symbolic dimensions */

static bool substitute_type(ort_model *model, ort_type *type, const char *name, int64_t size)
{
    bool changed = false;
    assert(size >= 0); /* what dims are compared by: a name is never negative */
    if (type->kind != ORT_TYPE_TENSOR && type->kind != ORT_TYPE_SPARSE)
        return false;
    for (int i = 0; i < type->rank; i++) {
        ort_dim d = ort_dim_substitute(model->dims, type->dim[i], name, size);
        changed = changed || d.expr != type->dim[i].expr;
        type->dim[i] = d;
    }
    return changed;
}

static size_t substitute_graph(ort_graph *graph, const char *name, int64_t size)
{
    size_t changed = 0;
    for (size_t i = 0; i < graph->values.count; i++) {
        ort_graph_value *value = graph->values.data[i];
        ort_type declared;
        bool hit = substitute_type(graph->model, &value->fact.type, name, size);
        if (value->declared) {
            declared = *value->declared;
            ort_type *copy = ort_arena_alloc(&graph->model->arena, sizeof *copy);
            if (substitute_type(graph->model, &declared, name, size) && copy) {
                *copy = declared;
                value->declared = copy;
            }
        }
        value->fact.symbolic = NULL; /* inference makes it again */
        value->fact.symbolic_count = 0;
        if (hit) {
            ort_graph_touch_value(graph, (ort_id)i);
            changed++;
        }
    }
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (int b = 0; b < graph->nodes.data[i]->body_count && !graph->nodes.data[i]->removed; b++)
            changed += substitute_graph(graph->nodes.data[i]->bodies[b], name, size);
    return changed;
}

/* "batch, seq" of the graph's inputs. */
static void list_symbols(const ort_graph *graph, ort_strbuf *out)
{
    char text[256];
    ort_hashmap seen = {0};
    ort_arena arena = {0};
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const ort_type *type = &graph->values.data[graph->inputs.data[i]]->fact.type;
        for (int d = 0; type->kind == ORT_TYPE_TENSOR && d < type->rank; d++) {
            if (ort_dim_known(type->dim[d]) || type->dim[d].expr == ORT_DIM_UNKNOWN)
                continue;
            ort_dim_format(graph->model->dims, type->dim[d], text, sizeof text);
            const char *name = ort_arena_strdup(&arena, text);
            if (!name || ort_hashmap_get_str(&seen, name, NULL))
                continue;
            (void)ort_hashmap_put_str(&seen, name, 1);
            ort_strbuf_addf(out, "%s%s", out->length ? ", " : "", name);
        }
    }
    ort_hashmap_release(&seen);
    ort_arena_release(&arena);
}

ort_status ort_graph_set_dim(ort_model *model, const char *name, int64_t size, ort_error *err)
{
    if (size < 0)
        return ort_error_set(err, ORT_ERROR_USAGE, "dimension '%s' can't be %lld", name,
                             (long long)size);
    (void)ort_dim_table_take_failure(model->dims);
    bool found = substitute_graph(model->graph, name, size) > 0;
    if (ort_dim_table_take_failure(model->dims))
        return ort_error_memory(err, sizeof(ort_dim));
    if (found)
        return ORT_OK;
    ort_strbuf known = {0};
    list_symbols(model->graph, &known);
    ort_status status = ort_error_set(err, ORT_ERROR_USAGE,
                                      "the model has no symbolic dimension '%s' (it has: %s)", name,
                                      known.length ? ort_strbuf_text(&known) : "none");
    ort_strbuf_release(&known);
    return status;
}

/* ---- input shapes */

static void forget_computed(ort_graph *graph)
{
    for (size_t i = 0; i < graph->values.count; i++) {
        ort_graph_value *value = graph->values.data[i];
        if ((value->is_input && !graph->parent) || (value->fact.value && !value->is_input))
            continue;
        if (value->fact.type.kind == ORT_TYPE_TENSOR)
            value->fact.type.rank = -1;
        value->declared = NULL;
        value->fact.symbolic = NULL;
        value->fact.symbolic_count = 0;
        value->info_proto = NULL;
    }
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (int b = 0; b < graph->nodes.data[i]->body_count; b++)
            forget_computed(graph->nodes.data[i]->bodies[b]);
}

static ort_status no_input(const ort_graph *graph, const char *name, ort_error *err)
{
    ort_strbuf known = {0};
    ort_nearest near;
    char meant[300];
    ort_nearest_begin(&near, name);
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const char *input = graph->values.data[graph->inputs.data[i]]->name;
        ort_nearest_try(&near, input);
        ort_strbuf_addf(&known, "%s%s", i ? ", " : "", input);
    }
    ort_status status = ort_error_set(err, ORT_ERROR_USAGE,
                                      "the model has no input '%s'%s; it has: %s", name,
                                      ort_nearest_text(&near, meant, sizeof meant),
                                      known.length ? ort_strbuf_text(&known) : "none");
    ort_strbuf_release(&known);
    return status;
}

ort_status ort_graph_set_shape(ort_model *model, const char *input, int rank, const int64_t *dims,
                               ort_error *err)
{
    ort_graph *graph = model->graph;
    ort_id id = ort_graph_find_value(graph, input);
    if (id == ORT_ID_NONE || !graph->values.data[id]->is_input)
        return no_input(graph, input, err);
    ort_type *type = &graph->values.data[id]->fact.type;
    char text[256];
    if (type->kind != ORT_TYPE_TENSOR || rank < 0 || rank > ORT_MAX_RANK ||
        (type->rank >= 0 && type->rank != rank))
        return ort_error_set(err, ORT_ERROR_USAGE, "input '%s' is %s, it can't have rank %d", input,
                             ort_type_format(model->dims, type, text, sizeof text), rank);
    for (int i = 0; i < rank; i++)
        if (dims[i] < -1)
            return ort_error_set(err, ORT_ERROR_USAGE, "input '%s': dimension %d can't be %lld",
                                 input, i, (long long)dims[i]);
    for (int i = 0; i < rank; i++) {
        if (dims[i] >= 0 && type->rank >= 0 && ort_dim_known(type->dim[i]) &&
            type->dim[i].size != dims[i])
            model->refixed = true;
        if (dims[i] >= 0)
            type->dim[i] = ort_dim_of(dims[i]);
        else if (type->rank < 0)
            type->dim[i] = ort_dim_unknown();
    }
    type->rank = rank;
    graph->values.data[id]->declared = NULL;
    forget_computed(graph);
    ort_graph_touch_value(graph, id);
    return ORT_OK;
}

ort_status ort_graph_open_dim(ort_model *model, const char *input, int axis, const char *symbol,
                              ort_error *err)
{
    ort_graph *graph = model->graph;
    ort_id id = ort_graph_find_value(graph, input);
    if (id == ORT_ID_NONE || !graph->values.data[id]->is_input)
        return no_input(graph, input, err);
    ort_type *type = &graph->values.data[id]->fact.type;
    char text[256];
    if (type->kind != ORT_TYPE_TENSOR || axis < 0 || axis >= type->rank)
        return ort_error_set(err, ORT_ERROR_USAGE, "input '%s' is %s, it has no axis %d", input,
                             ort_type_format(model->dims, type, text, sizeof text), axis);
    type->dim[axis] = ort_dim_symbol(model->dims, symbol);
    if (ort_dim_table_take_failure(model->dims))
        return ort_error_memory(err, sizeof(ort_dim));
    graph->values.data[id]->declared = NULL;
    forget_computed(graph);
    ort_graph_touch_value(graph, id);
    return ORT_OK;
}

/* ---- constants */

const ort_tensor *ort_graph_find_constant(const ort_graph *graph, const char *name)
{
    ort_id id = ort_graph_find_value(graph, name), from = ort_graph_producer(graph, id);
    const ort_tensor *found = id == ORT_ID_NONE ? NULL : graph->values.data[id]->fact.value;
    if (!found && from != ORT_ID_NONE)
        found = ort_node_constant(graph->nodes.data[from]);
    for (size_t i = 0; i < graph->nodes.count && !found; i++)
        for (int b = 0; b < graph->nodes.data[i]->body_count && !found; b++)
            found = ort_graph_find_constant(graph->nodes.data[i]->bodies[b], name);
    return found;
}

/* ---- initializers */

ort_status ort_graph_set_initializer(ort_model *model, const char *name, const ort_tensor *data,
                                     ort_error *err)
{
    ort_graph *graph = model->graph;
    ort_id id = ort_graph_find_value(graph, name);
    char is[200], wants[200];
    if (id == ORT_ID_NONE || !ort_graph_is_weight(graph, id) ||
        !graph->values.data[id]->fact.value)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "the model has no initializer '%s' (--initializers lists them)", name);
    const ort_tensor *old = graph->values.data[id]->fact.value;
    if (old->dtype != data->dtype || !ort_shape_equal(&old->shape, &data->shape))
        return ort_error_set(err, ORT_ERROR_DATA, "initializer '%s' is %s %s, not %s %s", name,
                             ort_dtype_name(old->dtype),
                             ort_shape_format(&old->shape, wants, sizeof wants),
                             ort_dtype_name(data->dtype),
                             ort_shape_format(&data->shape, is, sizeof is));
    ort_tensor *copy = ort_arena_array(&model->arena, 1, sizeof *copy);
    if (!copy)
        return ort_error_memory(err, sizeof *copy);
    *copy = (ort_tensor){.dtype = data->dtype, .shape = data->shape};
    copy->data = ort_arena_alloc_aligned(&model->arena, ort_tensor_bytes(copy), 64, 0);
    if (!copy->data)
        return ort_error_memory(err, ort_tensor_bytes(copy));
    ort_tensor_copy_data(copy, data);
    for (int64_t i = 0; copy->dtype == ORT_DTYPE_STRING && i < ort_tensor_count(copy); i++)
        if (!ort_string_own(&model->arena, (ort_string *)copy->data + i))
            return ort_error_memory(err, sizeof(ort_string));
    graph->values.data[id]->fact.value = copy;
    graph->values.data[id]->initializer_proto = NULL;
    graph->values.data[id]->is_sparse = false;
    ort_graph_touch(graph, NULL);
    return ORT_OK;
}

/* ---- metadata */

const char *ort_graph_metadata(const ort_model *model, const char *key)
{
    for (size_t i = 0; i < model->metadata_count; i++)
        if (!strcmp(model->metadata[i].key, key))
            return model->metadata[i].value;
    return NULL;
}

/* The list is shared with clones: a changed one is a new one. */
ort_status ort_graph_set_metadata(ort_model *model, const char *key, const char *value,
                                  ort_error *err)
{
    const char *old = ort_graph_metadata(model, key);
    size_t kept = 0, count = model->metadata_count;
    if (old ? value && !strcmp(old, value) : !value)
        return ORT_OK;
    void *list = ort_arena_array(&model->arena, count + 1, sizeof *model->metadata);
    char *own_key = ort_arena_strdup(&model->arena, key);
    char *own_value = ort_arena_strdup(&model->arena, value ? value : "");
    if (!list || !own_key || !own_value)
        return ort_error_memory(err, (count + 1) * sizeof *model->metadata);
    const ort_model before = {.metadata = model->metadata};
    model->metadata = list;
    for (size_t i = 0; i < count; i++)
        if (strcmp(before.metadata[i].key, key))
            model->metadata[kept++] = before.metadata[i];
    if (value) {
        model->metadata[kept].key = own_key;
        model->metadata[kept++].value = own_value;
    }
    model->metadata_count = kept;
    model->changed = true;
    return ORT_OK;
}
