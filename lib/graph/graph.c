/* graph.c - making and editing graphs. Every edit keeps producers and use counts right and marks
 * what must be written anew on saving. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "graph/uses.h"
#include "io/blob.h"
#include "io/spool.h"

/* Longer lists would leave much of a slab's chunk behind. */
#define LONGEST_IDS 64

/* ---- models */

ort_model *ort_model_new(void)
{
    ort_model *model = calloc(1, sizeof *model);
    if (!model)
        return NULL;
    model->references = 1;
    model->arena.huge_pages = true; /* weights that passes compute lie there */
    model->account = ort_account_of_work();
    model->dims = ort_dim_table_new();
    model->producer_name = model->producer_version = model->domain = model->doc = "";
    model->path = "<memory>";
    if (!model->dims) {
        ort_account_release(model->account);
        free(model);
        return NULL;
    }
    return model;
}

static void release_graph(ort_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        ort_node *node = graph->nodes.data[i];
        for (int b = 0; b < node->body_count; b++)
            if (node->bodies[b])
                release_graph(node->bodies[b]);
    }
    ort_vec_release(&graph->nodes);
    ort_vec_release(&graph->values);
    ort_vec_release(&graph->producers);
    ort_vec_release(&graph->inputs);
    ort_vec_release(&graph->outputs);
    ort_vec_release(&graph->initializers);
    ort_vec_release(&graph->order);
    ort_hashmap_release(&graph->names);
    ort_uses_release(graph);
}

void ort_model_free(ort_model *model)
{
    while (model) {
        ort_model *base = model->base;
        int left = __atomic_sub_fetch(&model->references, 1, __ATOMIC_ACQ_REL);
        assert(left >= 0);
        if (left)
            return;
        if (model->graph)
            release_graph(model->graph);
        for (size_t i = 0; i < model->blobs.count; i++)
            ort_blob_release(model->blobs.data[i]);
        ort_vec_release(&model->blobs);
        ort_spool_free(model->spool);
        ort_vec_release(&model->opsets);
        ort_vec_release(&model->functions);
        ort_hashmap_release(&model->body_names);
        ort_dim_table_free(model->dims);
        ort_arena_release(&model->arena);
        ort_account_release(model->account);
        free(model);
        model = base;
    }
}

int64_t ort_model_opset(const ort_model *model, const char *domain)
{
    if (!model || !domain)
        return 0;
    if (!strcmp(domain, "ai.onnx"))
        domain = "";
    for (size_t i = model->opsets.count; i-- > 0;) /* of two the last counts, everywhere */
        if (!strcmp(model->opsets.data[i].domain, domain))
            return model->opsets.data[i].version;
    return 0;
}

ort_graph *ort_graph_new(ort_model *model, ort_graph *parent, ort_id parent_node)
{
    ort_graph *graph = ort_arena_alloc(&model->arena, sizeof *graph);
    assert(parent ? parent_node < parent->nodes.count : parent_node == ORT_ID_NONE);
    if (!graph)
        return NULL;
    graph->model = model;
    graph->parent = parent;
    for (ort_graph *g = parent; g && !g->has_bodies; g = g->parent)
        g->has_bodies = true;
    graph->parent_node = parent_node;
    graph->name = graph->doc = "";
    return graph;
}

void ort_graph_touch(ort_graph *graph, ort_node *node)
{
    assert(!node || ort_graph_has_node(graph, node));
    if (node)
        node->changed = true;
    for (; graph && !graph->changed; graph = graph->parent) {
        graph->changed = true;
        if (graph->parent && graph->parent_node < graph->parent->nodes.count)
            graph->parent->nodes.data[graph->parent_node]->changed = true;
    }
}

size_t ort_graph_replaced(const ort_graph *graph, const char **name)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->nodes.count && !graph->changed; i++) {
        const ort_node *node = graph->nodes.data[i];
        if (!node->removed || node->output_count != 1 || node->outputs[0] == ORT_ID_NONE)
            continue;
        *name = graph->values.data[node->outputs[0]]->name;
        count++;
    }
    return count;
}

void ort_graph_touch_value(ort_graph *graph, ort_id value)
{
    assert(ort_graph_has_value(graph, value));
    graph->values.data[value]->info_proto = NULL;
    ort_graph_touch(graph, NULL);
}

/* ---- values */

ort_id ort_graph_find_value(const ort_graph *graph, const char *name)
{
    uint64_t id;
    if (!*name || !ort_hashmap_get_str(&graph->names, name, &id))
        return ORT_ID_NONE;
    assert(ort_graph_has_value(graph, (ort_id)id));
    return (ort_id)id;
}

/* ---- names */

/* The names that bodies define, of the graphs in this one. */
static bool list_body_names(ort_hashmap *names, const ort_graph *graph)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
        for (int b = 0; b < node->body_count; b++) {
            const ort_graph *body = node->bodies[b];
            for (size_t v = 0; v < body->values.count; v++)
                if (body->values.data[v]->outer == ORT_ID_NONE &&
                    !ort_hashmap_put_str(names, body->values.data[v]->name, v))
                    return false;
            if (!list_body_names(names, body))
                return false;
        }
    return true;
}

/* They are listed for the first new name. While the model is being built there is none. */
static bool know_body_names(ort_model *model)
{
    if (!model->graph || !model->graph->has_bodies || model->body_names_known)
        return true;
    model->body_names_known = list_body_names(&model->body_names, model->graph);
    return model->body_names_known;
}

bool ort_graph_note_name(const ort_graph *graph, const char *name)
{
    ort_model *model = graph->model;
    return !graph->parent || !model->body_names_known ||
           ort_hashmap_put_str(&model->body_names, name, 0);
}

typedef struct numbered { /* stem_0, stem_1... */
    const char *stem;
    ort_taken *taken;
    const void *arg;
    ort_strbuf text;
} numbered;

static bool is_taken(numbered *n, size_t number)
{
    char digits[24], *at = digits + sizeof digits;
    *--at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10));
    *--at = '_';
    ort_strbuf_clear(&n->text);
    ort_strbuf_add(&n->text, n->stem);
    ort_strbuf_add(&n->text, at);
    return !n->text.failed && n->taken(n->arg, n->text.data);
}

const char *ort_free_name(ort_arena *arena, const char *stem, size_t first, ort_taken *taken,
                          const void *arg)
{
    numbered n = {stem, taken, arg, {0}};
    size_t low = first, high = first;
    for (size_t step = 1; is_taken(&n, high); step *= 2) {
        low = high;
        high += step;
    }
    while (high - low > 1) { /* low is taken, high is free */
        size_t middle = low + (high - low) / 2;
        if (is_taken(&n, middle))
            low = middle;
        else
            high = middle;
    }
    bool failed = n.text.failed;
    ort_strbuf_release(&n.text);
    return failed ? NULL : ort_arena_printf(arena, "%s_%zu", stem, high);
}

/* No graph around this one may have it, nor one inside; for one inside all bodies are taken. */
static bool is_used(const void *arg, const char *name)
{
    const ort_graph *graph = arg;
    for (const ort_graph *g = graph; g; g = g->parent)
        if (ort_graph_find_value(g, name) != ORT_ID_NONE)
            return true;
    return graph->has_bodies && ort_hashmap_get_str(&graph->model->body_names, name, NULL);
}

/* `name`, or one of name_1, name_2... that is free; in the arena. */
static const char *free_name(ort_graph *graph, const char *name)
{
    ort_arena *arena = &graph->model->arena;
    if (!know_body_names(graph->model))
        return NULL;
    if (*name && !is_used(graph, name))
        return ort_arena_strdup(arena, name);
    return *name ? ort_free_name(arena, name, 1, is_used, graph)
                 : ort_free_name(arena, "v", graph->values.count, is_used, graph);
}

ort_id ort_graph_add_value(ort_graph *graph, const char *name)
{
    const char *unique = free_name(graph, name ? name : "");
    return unique ? ort_graph_add_named(graph, unique) : ORT_ID_NONE;
}

ort_id ort_graph_add_named(ort_graph *graph, const char *unique)
{
    assert(ort_graph_find_value(graph, unique) == ORT_ID_NONE);
    if (!ort_graph_note_name(graph, unique))
        return ORT_ID_NONE;
    ort_id id = ort_graph_new_value(graph, unique);
    if (id != ORT_ID_NONE && !ort_hashmap_put_str(&graph->names, unique, id)) {
        graph->values.count--;
        graph->producers.count--;
        return ORT_ID_NONE;
    }
    return id;
}

ort_id ort_graph_add_constant(ort_graph *graph, const char *name, const ort_tensor *tensor)
{
    ort_id id = ort_graph_add_value(graph, name);
    return id != ORT_ID_NONE && ort_graph_give_constant(graph, id, tensor) ? id : ORT_ID_NONE;
}

bool ort_graph_give_constant(ort_graph *graph, ort_id value, const ort_tensor *tensor)
{
    ort_tensor *copy = ort_arena_alloc(&graph->model->arena, sizeof *copy);
    assert(ort_graph_has_value(graph, value) && ort_graph_producer(graph, value) == ORT_ID_NONE);
    assert(!graph->values.data[value]->fact.value); /* it would be listed twice */
    assert(!tensor->stride);
    if (!copy || !ort_vec_push(&graph->initializers, value))
        return false;
    *copy = *tensor;
    graph->values.data[value]->fact.value = copy;
    graph->values.data[value]->fact.type = ort_type_of_tensor(copy);
    ort_graph_touch(graph, NULL);
    return true;
}

/* ---- nodes */

ort_node *ort_model_new_node(ort_model *model)
{
    return ort_slab_alloc(&model->arena, &model->node_slab, sizeof(ort_node));
}

ort_id ort_graph_new_value(ort_graph *graph, const char *name)
{
    ort_model *model = graph->model;
    ort_graph_value *value = ort_slab_alloc(&model->arena, &model->value_slab, sizeof *value);
    size_t id = graph->values.count;
    assert(graph->producers.count == id);
    if (!value || id >= ORT_ID_NONE || !ort_vec_reserve(&graph->producers, id + 1) ||
        !ort_vec_push(&graph->values, value))
        return ORT_ID_NONE;
    (void)ort_vec_push(&graph->producers, ORT_ID_NONE);
    value->name = name;
    value->outer = ORT_ID_NONE;
    value->fact.type.rank = -1;
    return (ort_id)id;
}

ort_id *ort_model_new_ids(ort_model *model, size_t count)
{
    size_t bytes;
    if (count > LONGEST_IDS)
        return ort_arena_array(&model->arena, count, sizeof(ort_id));
    if (!ort_mul_size(count, sizeof(ort_id), &bytes))
        return NULL;
    return ort_slab_alloc(&model->arena, &model->id_slab, bytes);
}

ort_id *ort_model_copy_ids(ort_model *model, const ort_id *ids, int count)
{
    assert(count >= 0);
    ort_id *copy = ort_model_new_ids(model, (size_t)count);
    if (copy && count)
        memcpy(copy, ids, (size_t)count * sizeof *copy);
    return copy;
}

static __attribute__((unused)) bool is_computed_by_none(const ort_graph *graph, ort_id value)
{
    ort_id producer = ort_graph_producer(graph, value);
    return producer == ORT_ID_NONE || graph->nodes.data[producer]->removed;
}

ort_node *ort_graph_add_node(ort_graph *graph, const char *domain, const char *op_type,
                             const char *name, const ort_id *inputs, int input_count,
                             const ort_id *outputs, int output_count)
{
    ort_arena *arena = &graph->model->arena;
    ort_node *node = ort_model_new_node(graph->model);
    if (!node)
        return NULL;
    node->id = (ort_id)graph->nodes.count;
    node->domain = ort_arena_strdup(arena, domain);
    node->op_type = ort_arena_strdup(arena, op_type);
    node->name = ort_arena_strdup(arena, name ? name : "");
    node->overload = node->doc = "";
    node->inputs = ort_model_copy_ids(graph->model, inputs, input_count);
    node->outputs = ort_model_copy_ids(graph->model, outputs, output_count);
    node->input_count = input_count;
    node->output_count = output_count;
    node->opset = (int)ort_model_opset(graph->model, domain);
    if (!node->domain || !node->op_type || !node->name || !node->inputs || !node->outputs ||
        !ort_vec_reserve(&graph->order, graph->order.count + 1) ||
        !ort_vec_push(&graph->nodes, node))
        return NULL;
    (void)ort_vec_push(&graph->order, node->id);
    for (int i = 0; i < input_count; i++)
        if (inputs[i] != ORT_ID_NONE) {
            assert(ort_graph_has_value(graph, inputs[i]));
            graph->values.data[inputs[i]]->use_count++;
            ort_uses_add(graph, inputs[i], node->id, i);
        }
    for (int i = 0; i < output_count; i++)
        if (outputs[i] != ORT_ID_NONE) {
            assert(is_computed_by_none(graph, outputs[i]));
            graph->producers.data[outputs[i]] = node->id;
            graph->values.data[outputs[i]]->producer_slot = i;
        }
    ort_graph_touch(graph, node);
    return node;
}

static void *copy_array(ort_arena *arena, const void *list, size_t count, size_t size)
{
    void *copy = ort_arena_array(arena, count, size);
    return copy && count ? memcpy(copy, list, count * size) : copy;
}

bool ort_string_own(ort_arena *arena, ort_string *s)
{
    s->ptr = ort_arena_strndup(arena, s->ptr ? s->ptr : "", s->length);
    return s->ptr != NULL;
}

static bool copy_attr_lists(ort_arena *arena, ort_attr *to)
{
    ort_string *strings;
    switch (to->type) {
    case ORT_ATTR_STRING: return ort_string_own(arena, &to->s);
    case ORT_ATTR_INTS:
        return (to->ints = copy_array(arena, to->ints, to->count, sizeof *to->ints)) != NULL;
    case ORT_ATTR_FLOATS:
        return (to->floats = copy_array(arena, to->floats, to->count, sizeof *to->floats)) != NULL;
    case ORT_ATTR_TENSOR:
        return !to->t || (to->t = copy_array(arena, to->t, 1, sizeof *to->t)) != NULL;
    case ORT_ATTR_STRINGS:
        to->strings = strings = copy_array(arena, to->strings, to->count, sizeof *strings);
        for (size_t i = 0; strings && i < to->count; i++)
            if (!ort_string_own(arena, &strings[i]))
                return false;
        return strings != NULL;
    default: return true;
    }
}

ort_status ort_node_set_attr(ort_graph *graph, ort_node *node, const ort_attr *attr, ort_error *err)
{
    ort_arena *arena = &graph->model->arena;
    ort_attr copy = *attr;
    copy.name = ort_arena_strdup(arena, attr->name);
    copy.proto = NULL;
    assert(ort_graph_has_node(graph, node) && !node->removed);
    int slot = 0;
    while (slot < node->attr_count && strcmp(node->attrs[slot].name, attr->name))
        slot++;
    /* Always a new array: clones share the old one. */
    int count = slot == node->attr_count ? slot + 1 : node->attr_count;
    ort_attr *attrs = ort_arena_array(arena, (size_t)count, sizeof *attrs);
    if (!copy.name || !attrs || !copy_attr_lists(arena, &copy))
        return ort_error_memory(err, sizeof *attrs);
    if (node->attr_count)
        memcpy(attrs, node->attrs, (size_t)node->attr_count * sizeof *attrs);
    attrs[slot] = copy;
    node->attrs = attrs;
    node->attr_count = count;
    ort_graph_touch(graph, node);
    return ORT_OK;
}

static void drop_use(ort_graph *graph, ort_id value)
{
    assert(ort_graph_has_value(graph, value) && graph->values.data[value]->use_count > 0);
    graph->values.data[value]->use_count--;
}

void ort_node_set_input(ort_graph *graph, ort_node *node, int slot, ort_id value)
{
    assert(ort_graph_has_node(graph, node) && !node->removed);
    assert(slot >= 0 && slot < node->input_count);
    assert(value == ORT_ID_NONE || ort_graph_has_value(graph, value));
    ort_id old = node->inputs[slot];
    if (old != ORT_ID_NONE)
        drop_use(graph, old);
    if (value != ORT_ID_NONE)
        graph->values.data[value]->use_count++;
    node->inputs[slot] = value;
    ort_uses_add(graph, value, node->id, slot);
    ort_graph_touch(graph, node);
}

void ort_graph_name_captures(ort_graph *body, ort_id outer, const char *name)
{
    assert(body->parent && ort_graph_has_value(body->parent, outer));
    ort_id local = ort_graph_find_value(body, name);
    if (local != ORT_ID_NONE && body->values.data[local]->outer == ORT_ID_NONE) {
        const char *other = free_name(body, name);
        if (other && ort_hashmap_put_str(&body->names, other, local))
            body->values.data[local]->name = other;
    }
    for (size_t v = 0; v < body->values.count; v++) {
        ort_graph_value *value = body->values.data[v];
        if (value->outer != outer)
            continue;
        value->name = name;
        (void)ort_hashmap_put_str(&body->names, name, v); /* without it the name isn't found */
        for (size_t n = 0; n < body->nodes.count; n++) {
            const ort_node *node = body->nodes.data[n];
            for (int b = 0; b < node->body_count && !node->removed; b++)
                ort_graph_name_captures(node->bodies[b], (ort_id)v, name);
        }
    }
    ort_graph_touch(body, NULL);
    body->changed = true;
}

/* The captures of `from` in the bodies of `node` become captures of `to`. */
static void replace_captures(ort_graph *graph, ort_node *node, ort_id from, ort_id to)
{
    size_t count = (size_t)node->implicit_count;
    bool has_to = ort_ids_have(node->implicit, count, to);
    if (!ort_ids_have(node->implicit, count, from))
        return;
    int kept = 0;
    for (int i = 0; i < node->implicit_count; i++) {
        ort_id id = node->implicit[i] == from ? to : node->implicit[i];
        if (id == to && node->implicit[i] == from && has_to) {
            drop_use(graph, from);
            continue; /* already captured: one entry is enough */
        }
        if (node->implicit[i] == from) {
            drop_use(graph, from);
            graph->values.data[to]->use_count++;
            ort_uses_add(graph, to, node->id, ORT_READS_ANYWHERE);
        }
        node->implicit[kept++] = id;
    }
    assert(kept > 0 && kept <= node->implicit_count);
    node->implicit_count = kept;
    for (int b = 0; b < node->body_count; b++) {
        ort_graph *body = node->bodies[b];
        for (size_t v = 0; v < body->values.count; v++)
            if (body->values.data[v]->outer == from)
                body->values.data[v]->outer = to;
        ort_graph_name_captures(body, to, graph->values.data[to]->name);
    }
    ort_graph_touch(graph, node);
}

void ort_graph_replace_uses(ort_graph *graph, ort_id from, ort_id to)
{
    assert(from != to && ort_graph_has_value(graph, to));
    ort_readers readers = ort_readers_of(graph, from);
    ort_node *node;
    while ((node = ort_readers_next(&readers))) {
        if (readers.slot != ORT_READS_ANYWHERE) {
            ort_node_set_input(graph, node, readers.slot, to);
            continue;
        }
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] == from)
                ort_node_set_input(graph, node, i, to);
        if (node->implicit_count)
            replace_captures(graph, node, from, to);
    }
}

void ort_graph_remove_node(ort_graph *graph, ort_node *node)
{
    assert(ort_graph_has_node(graph, node));
    if (node->removed)
        return;
    node->removed = true;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE)
            drop_use(graph, node->inputs[i]);
    for (int i = 0; i < node->implicit_count; i++)
        drop_use(graph, node->implicit[i]);
    for (int i = 0; i < node->output_count; i++) {
        ort_id id = node->outputs[i];
        if (id != ORT_ID_NONE && graph->producers.data[id] == node->id)
            graph->producers.data[id] = ORT_ID_NONE;
    }
    ort_graph_touch(graph, node);
}
