/* clone.c - a copy of a model's graphs that passes may rewrite. Nodes, values and their lists are
 * copied; names, attributes, messages and weights are shared with the original, which the copy
 * keeps alive. Edits never write into what is shared (op: attributes are replaced as a whole
 * array). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"

static ort_status no_memory(ort_error *err)
{
    return ort_error_memory(err, sizeof(ort_node));
}

static ort_status clone_graph(const ort_graph *from, ort_model *model, ort_graph *parent,
                              ort_graph **out, ort_error *err);

/* Are the attribute's graphs this body and those behind it? One that refers to a graph of a
 * function's call has none among the node's bodies. */
static bool holds_body(const ort_attr *attr, const ort_graph *body)
{
    if (attr->type == ORT_ATTR_GRAPHS)
        return attr->count && attr->graphs[0] == body;
    return attr->type == ORT_ATTR_GRAPH && attr->g == body;
}

/* Attributes that hold graphs point at the copies, which are in the order of the attributes. */
static ort_status clone_bodies(const ort_node *from, ort_graph *graph, ort_node *node,
                               ort_error *err)
{
    ort_arena *arena = &graph->model->arena;
    node->bodies = ort_arena_array(arena, (size_t)from->body_count, sizeof *node->bodies);
    ort_attr *attrs = ort_arena_array(arena, (size_t)from->attr_count, sizeof *attrs);
    node->body_count = 0;
    if (!node->bodies || !attrs)
        return no_memory(err);
    memcpy(attrs, from->attrs, (size_t)from->attr_count * sizeof *attrs);
    node->attrs = attrs;
    for (int i = 0; i < from->body_count; i++) {
        node->body_count++;
        ORT_TRY(clone_graph(from->bodies[i], graph->model, graph, &node->bodies[i], err));
    }
    int next = 0;
    for (int i = 0; i < from->attr_count && next < from->body_count; i++) {
        if (!holds_body(&attrs[i], from->bodies[next]))
            continue;
        attrs[i].graphs = &node->bodies[next];
        attrs[i].g = attrs[i].type == ORT_ATTR_GRAPH ? node->bodies[next] : NULL;
        next += attrs[i].type == ORT_ATTR_GRAPH ? 1 : (int)attrs[i].count;
    }
    assert(next == node->body_count);
    return ORT_OK;
}

static ort_status clone_node(const ort_node *from, ort_graph *graph, ort_error *err)
{
    ort_model *model = graph->model;
    ort_node *node = ort_model_new_node(model);
    if (!node)
        return no_memory(err);
    *node = *from;
    assert(from->id == graph->nodes.count); /* a node's number is its place */
    node->bodies = NULL;
    node->body_count = 0;
    node->inputs = ort_model_copy_ids(model, from->inputs, from->input_count);
    node->outputs = ort_model_copy_ids(model, from->outputs, from->output_count);
    node->implicit = ort_model_copy_ids(model, from->implicit, from->implicit_count);
    if (!node->inputs || !node->outputs || !node->implicit || !ort_vec_push(&graph->nodes, node))
        return no_memory(err);
    return from->body_count ? clone_bodies(from, graph, node, err) : ORT_OK;
}

static ort_status clone_values(const ort_graph *from, ort_graph *graph, ort_error *err)
{
    size_t count = from->values.count;
    ort_graph_value *values = ort_arena_array(&graph->model->arena, count, sizeof *values);
    if (!values || !ort_vec_reserve(&graph->values, count + 1))
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        values[i] = *from->values.data[i];
        graph->values.data[i] = &values[i];
    }
    graph->values.count = count;
    for (size_t i = 0; i < from->names.count; i++) {
        const ort_hashmap_entry *e = &from->names.entries[i];
        if (!ort_hashmap_put(&graph->names, e->key, e->key_length, e->value))
            return no_memory(err);
    }
    return ORT_OK;
}

#define CLONE_IDS(list)                                                                            \
    do {                                                                                           \
        if (!ort_vec_reserve(&graph->list, from->list.count + 1))                                  \
            return no_memory(err);                                                                 \
        if (from->list.count)                                                                      \
            memcpy(graph->list.data, from->list.data, from->list.count * sizeof(ort_id));          \
        graph->list.count = from->list.count;                                                      \
    } while (0)

static ort_status clone_graph(const ort_graph *from, ort_model *model, ort_graph *parent,
                              ort_graph **out, ort_error *err)
{
    ort_graph *graph = *out = ort_graph_new(model, parent, from->parent_node);
    if (!graph)
        return no_memory(err);
    graph->name = from->name;
    graph->doc = from->doc;
    graph->proto = from->proto;
    graph->changed = from->changed;
    ORT_TRY(clone_values(from, graph, err));
    CLONE_IDS(producers);
    CLONE_IDS(inputs);
    CLONE_IDS(outputs);
    CLONE_IDS(initializers);
    CLONE_IDS(order);
    if (!ort_vec_reserve(&graph->nodes, from->nodes.count + 1))
        return no_memory(err);
    for (size_t i = 0; i < from->nodes.count; i++)
        ORT_TRY(clone_node(from->nodes.data[i], graph, err));
    return ORT_OK;
}

static ort_status clone_header(const ort_model *from, ort_model *model, ort_error *err)
{
    model->ir_version = from->ir_version;
    model->model_version = from->model_version;
    model->producer_name = from->producer_name;
    model->producer_version = from->producer_version;
    model->domain = from->domain;
    model->doc = from->doc;
    model->metadata = from->metadata;
    model->metadata_count = from->metadata_count;
    model->path = from->path;
    model->reach = from->reach;
    model->proto = from->proto;
    model->payloads = from->payloads;
    model->payload_count = from->payload_count;
    model->registry = from->registry;
    model->limits = from->limits;
    model->file_bytes = from->file_bytes;
    model->external_bytes = from->external_bytes;
    model->skeleton = from->skeleton;
    model->as_stored = from->as_stored;
    model->refixed = from->refixed;
    model->changed = from->changed;
    model->followed = from->followed;
    for (size_t i = 0; i < from->opsets.count; i++)
        if (!ort_vec_push(&model->opsets, from->opsets.data[i]))
            return no_memory(err);
    for (size_t i = 0; i < from->functions.count; i++)
        if (!ort_vec_push(&model->functions, from->functions.data[i]))
            return no_memory(err);
    return ORT_OK;
}

ort_status ort_model_clone(const ort_model *from, ort_model **out, ort_error *err)
{
    ort_model *model = ort_model_new();
    *out = NULL;
    if (!model)
        return no_memory(err);
    assert(__atomic_load_n(&from->references, __ATOMIC_RELAXED) > 0);
    model->base = (ort_model *)(uintptr_t)from;
    __atomic_add_fetch(&model->base->references, 1, __ATOMIC_RELAXED);
    ort_dim_table_free(model->dims);
    /* Expression ids in facts mean the same in the copy. */
    model->dims = ort_dim_table_clone(from->dims);
    ort_status status = model->dims ? clone_header(from, model, err) : no_memory(err);
    if (status == ORT_OK)
        status = clone_graph(from->graph, model, NULL, &model->graph, err);
    if (status != ORT_OK) {
        ort_model_free(model);
        return status;
    }
    *out = model;
    return ORT_OK;
}
