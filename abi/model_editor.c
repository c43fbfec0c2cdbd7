/* model_editor.c - models that a client builds piece by piece: written as the bytes of a model
 * file, of which a session is made.
 *
 * Each piece belongs to what it is added to: a value or node to its graph, a graph to its model;
 * until then the client releases it. Edits of a model that is loaded already are not provided.
 */
#include "custom.h"
#include "proto.h"

#include <stdlib.h>
#include <string.h>

struct OrtValueInfo {
    char *name;
    OrtTypeInfo *type;
};
struct OrtNode {
    char *name, *type, *domain;
    char **inputs, **outputs;
    size_t input_count, output_count;
    OrtOpAttr **attrs;
    size_t attr_count;
};
struct OrtGraph {
    OrtValueInfo **inputs, **outputs;
    size_t input_count, output_count;
    OrtNode **nodes;
    size_t node_count;
    abi_named *initializers;
    size_t initializer_count;
};
struct OrtModel {
    OrtGraph *graph;
    char **domains;
    int *versions;
    size_t count;
};

/* --------------------------------------------------------------------------------------- types */

static OrtStatus *tensor_type(enum abi_type type, const OrtTensorTypeAndShapeInfo *shape,
                              OrtTypeInfo **out)
{
    ABI_CHECK(shape && out, "tensor_info is NULL");
    OrtTypeInfo whole = {.type = type, .tensor = *shape, .denotation = ""};
    return abi_type_copy(&whole, out);
}

static OrtStatus *create_tensor_type(const OrtTensorTypeAndShapeInfo *shape, OrtTypeInfo **out)
{
    return tensor_type(ABI_TENSOR, shape, out);
}

static OrtStatus *create_sparse_type(const OrtTensorTypeAndShapeInfo *shape, OrtTypeInfo **out)
{
    return tensor_type(ABI_SPARSE, shape, out);
}

static OrtStatus *container_type(enum abi_type type, int key, const OrtTypeInfo *element,
                                 OrtTypeInfo **out)
{
    ABI_CHECK(element && out, "type_info is NULL");
    OrtTypeInfo whole = {
        .type = type, .key = key, .element = (OrtTypeInfo *)element, .denotation = ""};
    return abi_type_copy(&whole, out);
}

static OrtStatus *create_map_type(int key, const OrtTypeInfo *element, OrtTypeInfo **out)
{
    return container_type(ABI_MAP, key, element, out);
}

static OrtStatus *create_sequence_type(const OrtTypeInfo *element, OrtTypeInfo **out)
{
    return container_type(ABI_SEQUENCE, 0, element, out);
}

static OrtStatus *create_optional_type(const OrtTypeInfo *element, OrtTypeInfo **out)
{
    return container_type(ABI_OPTIONAL, 0, element, out);
}

/* -------------------------------------------------------------------------------------- values */

static OrtStatus *create_value_info(const char *name, const OrtTypeInfo *type, OrtValueInfo **out)
{
    ABI_CHECK(name && *name && type && out, "name cannot be null or empty string");
    OrtValueInfo *info = calloc(1, sizeof *info);
    if (!info)
        return abi_no_memory();
    info->name = strdup(name);
    OrtStatus *status = info->name ? abi_type_copy(type, &info->type) : abi_no_memory();
    if (status)
        abi_ReleaseValueInfo(info);
    else
        *out = info;
    return status;
}

void abi_ReleaseValueInfo(OrtValueInfo *info)
{
    if (!info)
        return;
    abi_ReleaseTypeInfo(info->type);
    free(info->name);
    free(info);
}

OrtStatus *abi_GetValueInfoName(const OrtValueInfo *info, const char **out)
{
    ABI_CHECK(info && out, "value_info is NULL");
    *out = info->name;
    return NULL;
}

OrtStatus *abi_GetValueInfoTypeInfo(const OrtValueInfo *info, const OrtTypeInfo **out)
{
    ABI_CHECK(info && out, "value_info is NULL");
    *out = info->type;
    return NULL;
}

/* --------------------------------------------------------------------------------------- nodes */

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

static char **copy_texts(const char *const *texts, size_t count)
{
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = strdup(texts[i] ? texts[i] : "");
        if (!copy[i]) {
            free_texts(copy, count);
            return NULL;
        }
    }
    return copy;
}

void abi_ReleaseNode(OrtNode *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->attr_count; i++)
        abi_attr_free(node->attrs[i]);
    free_texts(node->inputs, node->input_count);
    free_texts(node->outputs, node->output_count);
    free(node->attrs);
    free(node->name);
    free(node->type);
    free(node->domain);
    free(node);
}

/* The attributes are the node's from here on. */
static OrtStatus *create_node(const char *type, const char *domain, const char *name,
                              const char *const *inputs, size_t input_count,
                              const char *const *outputs, size_t output_count, OrtOpAttr **attrs,
                              size_t attr_count, OrtNode **out)
{
    ABI_CHECK(type && domain && name && out, "operator_name, domain_name or node_name is NULL");
    ABI_CHECK((inputs || !input_count) && (outputs || !output_count), "a list of names is NULL");
    OrtNode *node = calloc(1, sizeof *node);
    if (!node)
        return abi_no_memory();
    *node = (OrtNode){.name = strdup(name),
                      .type = strdup(type),
                      .domain = strdup(domain),
                      .inputs = copy_texts(inputs, input_count),
                      .outputs = copy_texts(outputs, output_count),
                      .input_count = input_count,
                      .output_count = output_count,
                      .attrs = calloc(attr_count + 1, sizeof(OrtOpAttr *))};
    if (!node->name || !node->type || !node->domain || !node->inputs || !node->outputs ||
        !node->attrs) {
        abi_ReleaseNode(node);
        return abi_no_memory();
    }
    for (; attrs && node->attr_count < attr_count; node->attr_count++)
        node->attrs[node->attr_count] = attrs[node->attr_count];
    *out = node;
    return NULL;
}

/* ------------------------------------------------------------------------------ graphs, models */

static OrtStatus *create_graph(OrtGraph **out)
{
    ABI_CHECK(out, "graph is NULL");
    *out = calloc(1, sizeof **out);
    return *out ? NULL : abi_no_memory();
}

static void free_infos(OrtValueInfo **infos, size_t count)
{
    for (size_t i = 0; i < count; i++)
        abi_ReleaseValueInfo(infos[i]);
    free(infos);
}

void abi_ReleaseGraph(OrtGraph *graph)
{
    if (!graph)
        return;
    free_infos(graph->inputs, graph->input_count);
    free_infos(graph->outputs, graph->output_count);
    for (size_t i = 0; i < graph->node_count; i++)
        abi_ReleaseNode(graph->nodes[i]);
    for (size_t i = 0; i < graph->initializer_count; i++) {
        free(graph->initializers[i].name);
        ort_value_free(graph->initializers[i].value);
    }
    free(graph->nodes);
    free(graph->initializers);
    free(graph);
}

/* They replace those that the graph had. */
static OrtStatus *set_values(OrtValueInfo ***to, size_t *to_count, OrtValueInfo **infos,
                             size_t count)
{
    ABI_CHECK(infos || !count, "value infos are NULL");
    OrtValueInfo **copy = calloc(count + 1, sizeof(OrtValueInfo *));
    if (!copy)
        return abi_no_memory();
    for (size_t i = 0; i < count; i++) {
        if (!infos[i]) {
            free(copy);
            return abi_fail(ABI_INVALID_ARGUMENT, "value infos cannot contain null entries");
        }
        copy[i] = infos[i];
    }
    free_infos(*to, *to_count);
    *to = copy;
    *to_count = count;
    return NULL;
}

static OrtStatus *set_inputs(OrtGraph *graph, OrtValueInfo **inputs, size_t count)
{
    ABI_CHECK(graph, "graph is NULL");
    return set_values(&graph->inputs, &graph->input_count, inputs, count);
}

static OrtStatus *set_outputs(OrtGraph *graph, OrtValueInfo **outputs, size_t count)
{
    ABI_CHECK(graph, "graph is NULL");
    return set_values(&graph->outputs, &graph->output_count, outputs, count);
}

/* The value is the graph's from here on; its bytes are copied when a session is made. */
static OrtStatus *add_initializer(OrtGraph *graph, const char *name, OrtValue *tensor, bool outside)
{
    ABI_CHECK(graph && name && *name, "graph or name is NULL");
    ABI_TRY(abi_check_tensor(tensor));
    abi_named *grown = abi_grow(graph->initializers, graph->initializer_count, sizeof *grown);
    if (!grown)
        return abi_no_memory();
    graph->initializers = grown;
    char *copy = strdup(name);
    if (!copy)
        return abi_no_memory();
    grown[graph->initializer_count++] = (abi_named){copy, ort_value_retain(tensor->value)};
    abi_ReleaseValue(tensor);
    return NULL;
}

static OrtStatus *add_node(OrtGraph *graph, OrtNode *node)
{
    ABI_CHECK(graph && node, "graph or node is NULL");
    OrtNode **nodes = abi_grow(graph->nodes, graph->node_count, sizeof(OrtNode *));
    if (!nodes)
        return abi_no_memory();
    graph->nodes = nodes;
    nodes[graph->node_count++] = node;
    return NULL;
}

void abi_ReleaseModel(OrtModel *model)
{
    if (!model)
        return;
    abi_ReleaseGraph(model->graph);
    free_texts(model->domains, model->count);
    free(model->versions);
    free(model);
}

static OrtStatus *create_model(const char *const *domains, const int *versions, size_t count,
                               OrtModel **out)
{
    ABI_CHECK(out && ((domains && versions) || !count), "domain_names or opset_versions is NULL");
    OrtModel *model = calloc(1, sizeof *model);
    if (!model)
        return abi_no_memory();
    model->count = count;
    model->domains = copy_texts(domains, count);
    model->versions = calloc(count + 1, sizeof *model->versions);
    if (!model->domains || !model->versions) {
        abi_ReleaseModel(model);
        return abi_no_memory();
    }
    for (size_t i = 0; i < count; i++)
        model->versions[i] = versions[i];
    *out = model;
    return NULL;
}

static OrtStatus *add_graph(OrtModel *model, OrtGraph *graph)
{
    ABI_CHECK(model && graph, "model or graph is NULL");
    if (model->graph != graph)
        abi_ReleaseGraph(model->graph);
    model->graph = graph;
    return NULL;
}

/* -------------------------------------------------------------------------------- as a message */

static void put_shape(abi_proto *p, const OrtTensorTypeAndShapeInfo *shape)
{
    abi_proto_number(p, 1, (uint64_t)abi_dtype_in(shape->dtype));
    if (!shape->has_shape)
        return;
    abi_proto_begin(p, 2);
    for (size_t i = 0; i < shape->rank; i++) {
        abi_proto_begin(p, 1);
        if (shape->dims[i] >= 0)
            abi_proto_number(p, 1, (uint64_t)shape->dims[i]);
        else if (shape->symbols[i][0])
            abi_proto_text(p, 2, shape->symbols[i]);
        abi_proto_end(p);
    }
    abi_proto_end(p);
}

static void put_type(abi_proto *p, const OrtTypeInfo *type)
{
    static const unsigned fields[] = {[ABI_TENSOR] = 1, [ABI_SEQUENCE] = 4, [ABI_MAP] = 5,
                                      [ABI_SPARSE] = 8, [ABI_OPTIONAL] = 9};
    abi_proto_begin(p, fields[type->type]);
    if (type->type == ABI_TENSOR || type->type == ABI_SPARSE) {
        put_shape(p, &type->tensor);
    } else {
        bool map = type->type == ABI_MAP;
        if (map)
            abi_proto_number(p, 1, (uint64_t)abi_dtype_in(type->key));
        abi_proto_begin(p, map ? 2 : 1);
        put_type(p, type->element);
        abi_proto_end(p);
    }
    abi_proto_end(p);
}

static void put_info(abi_proto *p, unsigned field, const OrtValueInfo *info)
{
    abi_proto_begin(p, field);
    abi_proto_text(p, 1, info->name);
    abi_proto_begin(p, 2);
    put_type(p, info->type);
    abi_proto_end(p);
    abi_proto_end(p);
}

static void put_tensor(abi_proto *p, unsigned field, const char *name, const ort_value *value)
{
    abi_proto_begin(p, field);
    for (int i = 0; i < ort_value_rank(value); i++)
        abi_proto_number(p, 1, (uint64_t)ort_value_dims(value)[i]);
    abi_proto_number(p, 2, (uint64_t)ort_value_dtype(value));
    if (ort_value_dtype(value) == ORT_DTYPE_STRING) {
        for (int64_t i = 0; i < ort_value_count(value); i++) {
            size_t length;
            const char *text = ort_value_string(value, i, &length);
            abi_proto_bytes(p, 6, text, length);
        }
    }
    abi_proto_text(p, 8, name);
    if (ort_value_dtype(value) != ORT_DTYPE_STRING)
        abi_proto_bytes(p, 9, ort_value_data((ort_value *)value), ort_value_bytes(value));
    abi_proto_end(p);
}

static void put_attribute(abi_proto *p, const ort_attribute_spec *a)
{
    static const char kinds[] = "\0fist_FIST"; /* by AttributeProto's numbers */
    abi_proto_begin(p, 5);
    abi_proto_text(p, 1, a->name);
    if (a->kind == 'f')
        abi_proto_float(p, 2, a->f);
    if (a->kind == 'i')
        abi_proto_number(p, 3, (uint64_t)a->i);
    if (a->kind == 's')
        abi_proto_bytes(p, 4, a->s, a->lengths[0]);
    if (a->kind == 't')
        put_tensor(p, 5, "", a->t);
    for (size_t i = 0; i < a->count; i++) {
        if (a->kind == 'F')
            abi_proto_float(p, 7, a->floats[i]);
        if (a->kind == 'I')
            abi_proto_number(p, 8, (uint64_t)a->ints[i]);
        if (a->kind == 'S')
            abi_proto_bytes(p, 9, a->strings[i], a->lengths[i]);
    }
    abi_proto_number(p, 20, (uint64_t)(strchr(kinds + 1, a->kind) - kinds));
    abi_proto_end(p);
}

static void put_node(abi_proto *p, const OrtNode *node)
{
    abi_proto_begin(p, 1);
    for (size_t i = 0; i < node->input_count; i++)
        abi_proto_text(p, 1, node->inputs[i]);
    for (size_t i = 0; i < node->output_count; i++)
        abi_proto_text(p, 2, node->outputs[i]);
    abi_proto_text(p, 3, node->name);
    abi_proto_text(p, 4, node->type);
    for (size_t i = 0; i < node->attr_count; i++)
        put_attribute(p, &node->attrs[i]->spec);
    abi_proto_text(p, 7, node->domain);
    abi_proto_end(p);
}

static void put_model(abi_proto *p, const OrtModel *model)
{
    enum { IR_VERSION = 10 };
    const OrtGraph *graph = model->graph;
    abi_proto_number(p, 1, IR_VERSION);
    abi_proto_begin(p, 7);
    for (size_t i = 0; i < graph->node_count; i++)
        put_node(p, graph->nodes[i]);
    abi_proto_text(p, 2, "OrtGraph");
    for (size_t i = 0; i < graph->initializer_count; i++)
        put_tensor(p, 5, graph->initializers[i].name, graph->initializers[i].value);
    for (size_t i = 0; i < graph->input_count; i++)
        put_info(p, 11, graph->inputs[i]);
    for (size_t i = 0; i < graph->output_count; i++)
        put_info(p, 12, graph->outputs[i]);
    abi_proto_end(p);
    for (size_t i = 0; i < model->count; i++) {
        abi_proto_begin(p, 8);
        abi_proto_text(p, 1, model->domains[i]);
        abi_proto_number(p, 2, (uint64_t)model->versions[i]);
        abi_proto_end(p);
    }
}

static OrtStatus *create_session(const OrtEnv *env, const OrtModel *model,
                                 const OrtSessionOptions *options, OrtSession **out)
{
    ABI_CHECK(env && model && out, "env or model is NULL");
    ABI_CHECK(model->graph, "the model has no graph");
    abi_proto p = {.bytes = NULL};
    put_model(&p, model);
    OrtStatus *status = p.failed ? abi_no_memory()
                                 : abi_CreateSessionFromArray(env, p.bytes, p.count, options, out);
    free(p.bytes);
    return status;
}

/* --------------------------------------------------------------------------------------- table */

static OrtStatus *no_edit(void)
{
    return abi_missing("Editing a loaded model (ModelEditorSession)");
}

/* Of sessions that keep their model: those made from memory, from pieces, or with changes. */
static OrtStatus *get_opset(const OrtSession *session, const char *domain, int *out)
{
    ABI_CHECK(session && domain && out, "session or domain is NULL");
    if (!session->model)
        return abi_missing("SessionGetOpsetForDomain of a session from a file");
    int64_t opset = ort_model_opset(session->model, domain);
    if (opset <= 0)
        return abi_fail(ABI_FAIL, "Domain not used by model.");
    *out = (int)opset;
    return NULL;
}

struct OrtModelEditorApi {
    abi_function *functions[20];
};

const OrtModelEditorApi *abi_GetModelEditorApi(void)
{
    static const OrtModelEditorApi table = {{
        (abi_function *)create_tensor_type,
        (abi_function *)create_sparse_type,
        (abi_function *)create_map_type,
        (abi_function *)create_sequence_type,
        (abi_function *)create_optional_type,
        (abi_function *)create_value_info,
        (abi_function *)create_node,
        (abi_function *)create_graph,
        (abi_function *)set_inputs,
        (abi_function *)set_outputs,
        (abi_function *)add_initializer,
        (abi_function *)add_node,
        (abi_function *)create_model,
        (abi_function *)add_graph,
        (abi_function *)create_session,
        (abi_function *)no_edit, /* CreateModelEditorSession */
        (abi_function *)no_edit, /* CreateModelEditorSessionFromArray */
        (abi_function *)get_opset,
        (abi_function *)no_edit, /* ApplyModelToModelEditorSession */
        (abi_function *)no_edit, /* FinalizeModelEditorSession */
    }};
    return &table;
}
