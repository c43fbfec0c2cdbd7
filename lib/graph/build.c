/* build.c - from ONNX messages to graphs (build.h). Linear in the size of the message: every name
 * is hashed once per mention. Strings and lists stay in the message, which lives in the model's
 * arena. */
#include "graph/build.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Graphs are built by recursion over bodies; the wire walker has bounded their depth. */

ort_status ort_builder_init(ort_builder *builder, ort_model *model, ort_error *err)
{
    *builder = (ort_builder){.model = model};
    builder->codec.reach = model->reach;
    builder->codec.payloads = model->payloads;
    builder->codec.payload_count = model->payload_count;
    builder->codec.arena = &model->arena;
    builder->codec.skeleton = model->skeleton;
    builder->codec.as_stored = model->as_stored;
    return ort_findings_new(&builder->findings, err);
}

void ort_builder_release(ort_builder *builder)
{
    ort_codec_release(&builder->codec);
    ort_findings_free(builder->findings);
    builder->findings = NULL;
}

ort_status ort_builder_finish(ort_builder *builder, ort_error *err)
{
    ort_model *model = builder->model;
    for (size_t i = 0; i < builder->codec.blobs.count; i++)
        if (!ort_vec_push(&model->blobs, ort_blob_retain(builder->codec.blobs.data[i]))) {
            ort_blob_release(builder->codec.blobs.data[i]);
            return ort_error_memory(err, sizeof(ort_blob *));
        }
    model->external_bytes += builder->codec.external_bytes;
    return ort_findings_to_error(builder->findings, ORT_ERROR_MODEL, err);
}

const char *ort_build_domain(const char *domain)
{
    return !domain || !strcmp(domain, "ai.onnx") ? "" : domain;
}

/* ---- names */

ort_id ort_scope_add(ort_builder *builder, ort_scope *scope, const char *name)
{
    assert(scope->prefix || scope->names == &scope->graph->names);
    assert(!ort_hashmap_get_str(scope->names, name, NULL)); /* else it is defined twice */
    if (scope->prefix) {
        const char *full = ort_arena_printf(&builder->model->arena, "%s%s", scope->prefix, name);
        ort_id made = full ? ort_graph_add_value(scope->graph, full) : ORT_ID_NONE;
        if (made != ORT_ID_NONE && !ort_hashmap_put_str(scope->names, name, made))
            return ORT_ID_NONE;
        return made;
    }
    ort_graph *graph = scope->graph;
    ort_id id = ort_graph_new_value(graph, name);
    if (id == ORT_ID_NONE || !ort_hashmap_put_str(scope->names, name, id) ||
        !ort_graph_note_name(graph, name))
        return ORT_ID_NONE;
    return id;
}

/* A value of this graph that stands for `outer` of its parent. */
static ort_id capture(ort_scope *scope, const char *name, ort_id outer)
{
    ort_graph *graph = scope->graph, *parent = scope->parent->graph;
    assert(graph->parent == parent && ort_graph_has_value(parent, outer));
    const ort_graph_value *source = parent->values.data[outer];
    /* Named as in the outer scope, so that saving finds it there. */
    ort_id id = ort_graph_new_value(graph, source->name);
    if (id == ORT_ID_NONE || !ort_hashmap_put_str(scope->names, name, id))
        return ORT_ID_NONE;
    graph->values.data[id]->outer = outer;
    graph->values.data[id]->fact.type = source->fact.type;
    return id;
}

/* Value id of `name` in the scope, captured from outer scopes when needed; ORT_ID_NONE. */
static ort_id scope_resolve(ort_scope *scope, const char *name)
{
    uint64_t found;
    if (ort_hashmap_get_str(scope->names, name, &found))
        return (ort_id)found;
    if (!scope->parent)
        return ORT_ID_NONE;
    ort_id outer = scope_resolve(scope->parent, name);
    ort_id inner = outer == ORT_ID_NONE ? ORT_ID_NONE : capture(scope, name, outer);
    scope->no_memory = scope->no_memory || scope->parent->no_memory ||
                       (outer != ORT_ID_NONE && inner == ORT_ID_NONE);
    return inner;
}

/* "graph 'main_graph'" or "body of node 'x' (If)". */
static const char *place_of(const ort_scope *scope, char *text, size_t size)
{
    char label[256];
    if (scope->parent && scope->graph->parent_node < scope->parent->graph->nodes.count) {
        const ort_node *node = scope->parent->graph->nodes.data[scope->graph->parent_node];
        snprintf(text, size, "in a body of %s: ", ort_node_label(node, label, sizeof label));
    } else {
        text[0] = '\0';
    }
    return text;
}

static void duplicate(ort_builder *b, const ort_scope *scope, const char *name, const char *what)
{
    char place[320];
    ort_findings_add(b->findings, ORT_FINDING_ERROR, "%svalue '%s' is defined twice: %s",
                     place_of(scope, place, sizeof place), name, what);
}

/* ---- declarations of a graph */

static ort_status add_inputs(ort_builder *b, const Onnx__GraphProto *proto, ort_scope *scope,
                             ort_error *err)
{
    ort_graph *graph = scope->graph;
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = ort_build_text(proto->input[i]->name);
        if (ort_hashmap_get_str(scope->names, name, NULL)) {
            duplicate(b, scope, name, "two graph inputs have this name");
            continue;
        }
        ort_id id = ort_scope_add(b, scope, name);
        if (id == ORT_ID_NONE || !ort_vec_push(&graph->inputs, id))
            return ort_error_memory(err, sizeof(ort_graph_value));
        ort_graph_value *value = graph->values.data[id];
        value->is_input = true;
        value->info_proto = proto->input[i];
        if (!*name)
            ort_findings_add(b->findings, ORT_FINDING_ERROR, "graph input %zu has no name", i);
        if (proto->input[i]->type)
            ORT_TRY(ort_build_type(b->model, proto->input[i]->type, &value->fact.type, err));
    }
    return ORT_OK;
}

static bool same_value(const ort_tensor *a, const ort_tensor *b)
{
    return a->data && b->data && a->dtype == b->dtype && a->dtype != ORT_DTYPE_STRING &&
           ort_shape_equal(&a->shape, &b->shape) &&
           !memcmp(a->data, b->data, ort_tensor_bytes(a));
}

/* onnxruntime's optimizer writes constants twice now and then: the same name and the same bits say
 * the same, and check tells. Other values of one name are an error. */
static ort_status place_again(ort_builder *b, ort_scope *scope, ort_graph_value *value,
                              const Onnx__TensorProto *dense, ort_error *err)
{
    const ort_tensor *first = value->fact.value;
    ort_tensor again = {0};
    if (dense && first && !value->is_sparse)
        ORT_TRY(ort_codec_tensor(&b->codec, dense, &again, err));
    value->is_doubled = first && same_value(first, &again);
    if (!value->is_doubled)
        duplicate(b, scope, value->name, "two initializers have this name");
    return ORT_OK;
}

/* An initializer named like an input is that input's default. Before IR 4 every initializer had to
 * be listed as an input as well: there it is a constant, and no input. */
static ort_status place_initializer(ort_builder *b, ort_scope *scope, const char *name,
                                    const Onnx__TensorProto *dense, ort_id *id, ort_error *err)
{
    ort_graph *graph = scope->graph;
    uint64_t found;
    if (ort_hashmap_get_str(scope->names, name, &found)) {
        ort_graph_value *value = graph->values.data[found];
        *id = (ort_id)found;
        if (value->fact.value || value->is_sparse || value->initializer_proto) {
            *id = ORT_ID_NONE;
            return place_again(b, scope, value, dense, err);
        }
        if (b->model->ir_version < 4)
            value->is_input = false;
    } else {
        *id = ort_scope_add(b, scope, name);
        if (*id == ORT_ID_NONE)
            return ort_error_memory(err, sizeof(ort_graph_value));
    }
    return ort_vec_push(&graph->initializers, *id) ? ORT_OK : ort_error_memory(err, sizeof *id);
}

static ort_status add_initializers(ort_builder *b, const Onnx__GraphProto *proto, ort_scope *scope,
                                   ort_error *err)
{
    ort_graph *graph = scope->graph;
    size_t total = proto->n_initializer + proto->n_sparse_initializer;
    ort_tensor *tensors = ort_arena_array(&b->model->arena, total, sizeof *tensors);
    if (!tensors)
        return ort_error_memory(err, total * sizeof *tensors);
    b->codec.weights = true;
    for (size_t i = 0; i < total; i++) {
        bool sparse = i >= proto->n_initializer;
        const Onnx__SparseTensorProto *s =
            sparse ? proto->sparse_initializer[i - proto->n_initializer] : NULL;
        const Onnx__TensorProto *dense = sparse ? s->values : proto->initializer[i];
        const char *name = dense ? ort_build_text(dense->name) : "";
        ort_id id;
        ORT_TRY(place_initializer(b, scope, name, sparse ? NULL : dense, &id, err));
        if (id == ORT_ID_NONE)
            continue;
        ort_graph_value *value = graph->values.data[id];
        value->is_sparse = sparse;
        value->initializer_proto = sparse ? (const void *)s : (const void *)dense;
        ORT_TRY(sparse ? ort_codec_sparse(&b->codec, s, &tensors[i], err)
                       : ort_codec_tensor(&b->codec, dense, &tensors[i], err));
        value->fact.value = &tensors[i];
        ort_type type = ort_type_of_tensor(&tensors[i]);
        if (!value->is_input)
            value->fact.type = type;
        else if (!ort_type_merge(&value->fact.type, &type))
            ort_findings_add(b->findings, ORT_FINDING_ERROR,
                             "initializer '%s' doesn't fit the graph input of its name", name);
    }
    b->codec.weights = false;
    return ORT_OK;
}

/* Inputs that turned out to be constants (IR 3) leave the list. */
static void drop_constant_inputs(ort_graph *graph)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->inputs.count; i++)
        if (graph->values.data[graph->inputs.data[i]]->is_input)
            graph->inputs.data[kept++] = graph->inputs.data[i];
    graph->inputs.count = kept;
}

/* Exporters write two Constant nodes of one name now and then. The later one counts, as it does in
 * the runtimes that such models were tested with; check tells. */
static bool replaces_constant(const ort_graph *graph, ort_id value, const ort_node *again)
{
    assert(ort_graph_has_value(graph, value));
    ort_id producer = graph->producers.data[value];
    ort_node *first = producer == ORT_ID_NONE ? NULL : graph->nodes.data[producer];
    if (!first || first == again || strcmp(first->op_type, "Constant") ||
        strcmp(again->op_type, "Constant"))
        return false;
    first->removed = true;
    return true;
}

ort_node *ort_build_new_node(ort_builder *b, const Onnx__NodeProto *proto, ort_graph *graph)
{
    ort_node *node = ort_model_new_node(b->model);
    if (!node || proto->n_output > 1u << 24 || proto->n_input > 1u << 24)
        return NULL;
    node->id = (ort_id)graph->nodes.count;
    node->name = ort_build_text(proto->name);
    node->op_type = ort_build_text(proto->op_type);
    node->output_count = (int)proto->n_output;
    node->outputs = ort_model_new_ids(b->model, proto->n_output);
    bool ok = node->outputs && ort_vec_push(&graph->nodes, node) &&
              ort_vec_push(&graph->order, node->id);
    return ok ? node : NULL;
}

static ort_status add_node(ort_builder *b, const Onnx__NodeProto *proto, ort_scope *scope,
                           ort_error *err)
{
    ort_graph *graph = scope->graph;
    ort_node *node = ort_build_new_node(b, proto, graph);
    if (!node)
        return ort_error_memory(err, sizeof *node + proto->n_output * sizeof *node->outputs);
    node->proto = proto;
    node->changed = scope->prefix != NULL;
    for (size_t i = 0; i < proto->n_output; i++) {
        const char *name = proto->output[i];
        node->outputs[i] = ORT_ID_NONE;
        if (!*name)
            continue;
        uint64_t found;
        if (ort_hashmap_get_str(scope->names, name, &found)) {
            if (replaces_constant(graph, (ort_id)found, node)) {
                graph->producers.data[found] = node->id;
                node->outputs[i] = (ort_id)found;
                continue;
            }
            char label[256], text[320];
            snprintf(text, sizeof text, "again by %s", ort_node_label(node, label, sizeof label));
            duplicate(b, scope, name, text);
            continue;
        }
        ort_id id = ort_scope_add(b, scope, name);
        if (id == ORT_ID_NONE)
            return ort_error_memory(err, sizeof(ort_graph_value));
        graph->producers.data[id] = node->id;
        graph->values.data[id]->producer_slot = (int)i;
        node->outputs[i] = id;
    }
    return ORT_OK;
}

static ort_status add_infos(ort_builder *b, const Onnx__GraphProto *proto, ort_scope *scope,
                            ort_error *err)
{
    for (size_t i = 0; i < proto->n_value_info; i++) {
        uint64_t id;
        const Onnx__ValueInfoProto *info = proto->value_info[i];
        if (!ort_hashmap_get_str(scope->names, ort_build_text(info->name), &id))
            continue;
        ort_graph_value *value = scope->graph->values.data[id];
        if (value->info_proto)
            continue;
        value->info_proto = info;
        if (info->type && !value->fact.value)
            ORT_TRY(ort_build_type(b->model, info->type, &value->fact.type, err));
    }
    return ORT_OK;
}

/* The declared type of an output; of one that is listed twice the last counts, as long as they name
 * one element type. */
static ort_status declare_output(ort_builder *b, const ort_scope *scope, ort_graph_value *value,
                                 const Onnx__ValueInfoProto *info, bool again, ort_error *err)
{
    ort_type before = value->fact.type;
    value->info_proto = info;
    if (!info->type || value->fact.value)
        return ORT_OK;
    ORT_TRY(ort_build_type(b->model, info->type, &value->fact.type, err));
    before.rank = -1;
    if (again && !ort_type_merge(&before, &value->fact.type))
        duplicate(b, scope, value->name, "two graph outputs of different types have this name");
    return ORT_OK;
}

static ort_status add_outputs(ort_builder *b, const Onnx__GraphProto *proto, ort_scope *scope,
                              ort_error *err)
{
    ort_graph *graph = scope->graph;
    char place[320];
    for (size_t i = 0; i < proto->n_output; i++) {
        const Onnx__ValueInfoProto *info = proto->output[i];
        const char *name = ort_build_text(info->name);
        ort_id id = *name ? scope_resolve(scope, name) : ORT_ID_NONE;
        if (id == ORT_ID_NONE && scope->no_memory)
            return ort_error_memory(err, sizeof(ort_graph_value));
        if (id == ORT_ID_NONE) {
            ort_findings_add(b->findings, ORT_FINDING_ERROR,
                             "%sgraph output '%s' is never computed",
                             place_of(scope, place, sizeof place), name);
            continue;
        }
        ort_graph_value *value = graph->values.data[id];
        bool again = value->is_output;
        value->is_output = true;
        value->use_count++;
        if (!ort_vec_push(&graph->outputs, id))
            return ort_error_memory(err, sizeof id);
        if (value->is_input || value->outer != ORT_ID_NONE)
            continue; /* its own declaration stands */
        ORT_TRY(declare_output(b, scope, value, info, again, err));
    }
    return ORT_OK;
}

/* ---- nodes */

static int compare_ids(const void *a, const void *b)
{
    ort_id x = *(const ort_id *)a, y = *(const ort_id *)b;
    return x < y ? -1 : x > y;
}

/* What the bodies capture, each once, and used once per body graph that captures it. */
static ort_status set_implicit(ort_builder *b, ort_graph *graph, ort_node *node, ort_error *err)
{
    size_t total = 0, count = 0;
    for (int i = 0; i < node->body_count; i++)
        total += node->bodies[i]->values.count;
    if (total == 0)
        return ORT_OK;
    ORT_VEC(ort_id) ids = {0};
    for (int i = 0; i < node->body_count; i++)
        for (size_t v = 0; v < node->bodies[i]->values.count; v++) {
            ort_id outer = node->bodies[i]->values.data[v]->outer;
            if (outer != ORT_ID_NONE && !ort_vec_push(&ids, outer)) {
                ort_vec_release(&ids);
                return ort_error_memory(err, total * sizeof outer);
            }
        }
    if (ids.count)
        qsort(ids.data, ids.count, sizeof *ids.data, compare_ids);
    node->implicit = ort_arena_array(&b->model->arena, ids.count, sizeof *node->implicit);
    for (size_t i = 0; node->implicit && i < ids.count; i++)
        if (i == 0 || ids.data[i] != ids.data[i - 1]) {
            assert(ort_graph_has_value(graph, ids.data[i]));
            node->implicit[count++] = ids.data[i];
            graph->values.data[ids.data[i]]->use_count++;
        }
    node->implicit_count = (int)count;
    ort_vec_release(&ids);
    return node->implicit ? ORT_OK : ort_error_memory(err, count * sizeof *node->implicit);
}

static int scope_opset(const ort_scope *scope, const char *domain)
{
    for (size_t i = scope->opset_count; i-- > 0;) /* as ort_model_opset */
        if (!strcmp(scope->opsets[i].domain, domain))
            return scope->opsets[i].version > INT32_MAX ? INT32_MAX : (int)scope->opsets[i].version;
    return 0;
}

/* ---- attributes, with bodies and references */

/* What `name` refers to: the call's attribute, else the function's default, else nothing. */
static const ort_attr *referred(const ort_scope *scope, const char *name)
{
    assert(!scope->call == !scope->function);
    const ort_attr *attr = scope->call ? ort_node_attr(scope->call, name) : NULL;
    for (int i = 0; !attr && scope->function && i < scope->function->default_count; i++)
        if (!strcmp(scope->function->defaults[i].name, name))
            attr = &scope->function->defaults[i];
    return attr;
}

/* Bodies are counted first: their array is in attribute order. */
static size_t count_bodies(const ort_builder *b, Onnx__AttributeProto *const *protos,
                           size_t count)
{
    size_t bodies = 0;
    for (size_t i = 0; i < count; i++)
        bodies += ort_build_attr_type(b, protos[i]) == ORT_ATTR_GRAPH ? 1 : protos[i]->n_graphs;
    return bodies;
}

static ort_status build_bodies(ort_builder *b, const Onnx__AttributeProto *p, ort_scope *scope,
                               ort_node *node, ort_attr *attr, ort_error *err)
{
    bool one = attr->type == ORT_ATTR_GRAPH;
    if (one && !p->g)
        return ort_error_set(err, ORT_ERROR_MODEL, "attribute '%s' has no graph", attr->name);
    attr->count = one ? 1 : p->n_graphs;
    attr->graphs = &node->bodies[node->body_count];
    for (size_t i = 0; i < attr->count; i++) {
        ort_graph **body = &node->bodies[node->body_count++];
        ORT_TRY(ort_build_graph(b, one ? p->g : p->graphs[i], scope, node->id, body, err));
    }
    attr->g = one ? attr->graphs[0] : NULL;
    return ORT_OK;
}

static ort_status build_attrs(ort_builder *b, Onnx__AttributeProto *const *protos, size_t count,
                              ort_scope *scope, ort_node *node, ort_error *err)
{
    size_t bodies = count_bodies(b, protos, count);
    node->attrs = ort_arena_array(&b->model->arena, count, sizeof *node->attrs);
    node->bodies = ort_arena_array(&b->model->arena, bodies, sizeof *node->bodies);
    if (!node->attrs || !node->bodies || count > INT32_MAX)
        return ort_error_memory(err, count * sizeof *node->attrs);
    for (size_t i = 0; i < count; i++) {
        ort_attr *attr = &node->attrs[node->attr_count];
        ORT_TRY(ort_build_attr(b, protos[i], attr, err));
        node->attr_count++;
        if (attr->reference && scope->function) {
            const ort_attr *source = referred(scope, attr->reference);
            const char *name = attr->name;
            if (!source) {
                node->attr_count--; /* an optional attribute that the call left out */
                continue;
            }
            *attr = *source;
            attr->name = name;
            attr->proto = NULL;
        } else if (attr->type == ORT_ATTR_GRAPH || attr->type == ORT_ATTR_GRAPHS) {
            ORT_TRY(build_bodies(b, protos[i], scope, node, attr, err));
            assert((size_t)node->body_count <= bodies);
        }
    }
    return ORT_OK;
}

/* ---- values named by attributes */

static ort_status rename_value(ort_builder *b, ort_scope *scope, const ort_string *name,
                               ort_error *err)
{
    ort_id id = scope_resolve(scope, name->ptr);
    ort_string *own = (ort_string *)(uintptr_t)name; /* of this node alone: just built */
    if (id == ORT_ID_NONE)
        return scope->no_memory ? ort_error_memory(err, sizeof(ort_graph_value)) : ORT_OK;
    own->ptr = scope->graph->values.data[id]->name;
    own->length = strlen(own->ptr);
    return ORT_OK;
}

/* Gradient names values in strings. Inside of an expanded function those aren't the graph's. */
static ort_status rename_values(ort_builder *b, ort_scope *scope, ort_node *node, ort_error *err)
{
    if (!scope->function || strcmp(node->op_type, "Gradient") ||
        strcmp(node->domain, "ai.onnx.preview.training"))
        return ORT_OK;
    for (int i = 0; i < node->attr_count; i++) {
        ort_attr *attr = &node->attrs[i];
        if (attr->type == ORT_ATTR_STRING)
            ORT_TRY(rename_value(b, scope, &attr->s, err));
        for (size_t k = 0; attr->type == ORT_ATTR_STRINGS && k < attr->count; k++)
            ORT_TRY(rename_value(b, scope, &attr->strings[k], err));
        attr->proto = NULL;
    }
    return ORT_OK;
}

ort_status ort_build_node(ort_builder *b, const Onnx__NodeProto *proto, ort_scope *scope,
                          ort_node *node, ort_error *err)
{
    ort_graph *graph = scope->graph;
    char label[256], place[320];
    node->domain = ort_build_domain(proto->domain);
    assert(ort_graph_has_node(graph, node) && !node->inputs); /* built once */
    node->overload = ort_build_text(proto->overload);
    node->doc = ort_build_text(proto->doc_string);
    node->opset = scope_opset(scope, node->domain);
    node->input_count = (int)proto->n_input;
    node->inputs = ort_model_new_ids(b->model, proto->n_input);
    if (!node->inputs)
        return ort_error_memory(err, proto->n_input * sizeof *node->inputs);
    for (size_t i = 0; i < proto->n_input; i++) {
        node->inputs[i] =
            *proto->input[i] ? scope_resolve(scope, proto->input[i]) : ORT_ID_NONE;
        if (node->inputs[i] != ORT_ID_NONE)
            graph->values.data[node->inputs[i]]->use_count++;
        else if (scope->no_memory)
            return ort_error_memory(err, sizeof(ort_graph_value));
        else if (*proto->input[i])
            ort_findings_add(b->findings, ORT_FINDING_ERROR,
                             "%s%s: input %zu names '%s', which nothing computes",
                             place_of(scope, place, sizeof place),
                             ort_node_label(node, label, sizeof label), i, proto->input[i]);
    }
    ort_status status = build_attrs(b, proto->attribute, proto->n_attribute, scope, node, err);
    if (status != ORT_OK)
        return ort_error_wrap(err, status, "%s", ort_node_label(node, label, sizeof label));
    ORT_TRY(rename_values(b, scope, node, err));
    return node->body_count ? set_implicit(b, graph, node, err) : ORT_OK;
}

/* ---- graphs */

static bool reserve(ort_graph *graph, const Onnx__GraphProto *p)
{
    size_t values = p->n_node + p->n_input + p->n_initializer; /* most nodes have one output */
    return ort_vec_reserve(&graph->nodes, p->n_node) && ort_vec_reserve(&graph->order, p->n_node) &&
           ort_vec_reserve(&graph->values, values) && ort_vec_reserve(&graph->producers, values) &&
           ort_hashmap_reserve(&graph->names, values);
}

static ort_status fill_graph(ort_builder *b, const Onnx__GraphProto *proto, ort_scope *scope,
                             ort_error *err)
{
    ort_graph *graph = scope->graph;
    ORT_TRY(add_inputs(b, proto, scope, err));
    ORT_TRY(add_initializers(b, proto, scope, err));
    drop_constant_inputs(graph);
    for (size_t i = 0; i < proto->n_node; i++)
        ORT_TRY(add_node(b, proto->node[i], scope, err));
    assert(graph->nodes.count == proto->n_node && graph->producers.count == graph->values.count);
    ORT_TRY(add_infos(b, proto, scope, err));
    for (size_t i = 0; i < proto->n_node; i++)
        if (!graph->nodes.data[i]->removed)
            ORT_TRY(ort_build_node(b, proto->node[i], scope, graph->nodes.data[i], err));
    ORT_TRY(add_outputs(b, proto, scope, err));
    if (ort_findings_errors(b->findings))
        return ORT_OK; /* a graph with holes has no order worth talking about */
    char place[320];
    ort_error inner = {0};
    ort_status status = ort_graph_sort(graph, &inner);
    if (status == ORT_ERROR_MODEL) {
        ort_findings_add(b->findings, ORT_FINDING_ERROR, "%s%s",
                         place_of(scope, place, sizeof place), inner.message);
        return ORT_OK;
    }
    if (status != ORT_OK)
        return ort_error_memory(err, proto->n_node);
    for (size_t i = 1; i < graph->order.count; i++)
        if (graph->order.data[i] < graph->order.data[i - 1]) { /* saved in order, as ONNX asks */
            ort_graph_touch(graph, NULL);
            break;
        }
    return ORT_OK;
}

ort_status ort_build_graph(ort_builder *b, const Onnx__GraphProto *proto, ort_scope *outer,
                           ort_id parent_node, ort_graph **out, ort_error *err)
{
    ort_graph *graph = ort_graph_new(b->model, outer ? outer->graph : NULL, parent_node);
    *out = graph; /* before anything can fail: freeing the model releases what it holds */
    if (!graph || !reserve(graph, proto))
        return ort_error_memory(err, proto->n_node * sizeof(ort_node *));
    graph->name = ort_build_text(proto->name);
    graph->doc = ort_build_text(proto->doc_string);
    graph->proto = proto;
    ort_hashmap apart = {0};
    ort_scope scope = {.opsets = b->model->opsets.data, .opset_count = b->model->opsets.count};
    if (outer)
        scope = *outer;
    scope.graph = graph;
    scope.parent = outer;
    scope.names = &graph->names;
    scope.no_memory = false;
    /* Inside of an expanded function the names in the message aren't those of the graph. */
    if (scope.prefix) {
        scope.names = &apart;
        graph->changed = true;
    }
    ort_status status = fill_graph(b, proto, &scope, err);
    ort_hashmap_release(&apart);
    return status;
}
