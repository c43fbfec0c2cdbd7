/* model_editor.c - models that a client builds piece by piece, and such pieces added to a model
 * that is there.
 *
 * Each piece belongs to what it is added to: a value or node to its graph, a graph to its model;
 * until then the client releases it. A model becomes the bytes of a file (model_bytes.c), of which
 * a session is made; edits of one make other bytes of it (model_merge.c).
 */
#include "model_editor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

static OrtStatus *create_session(const OrtEnv *env, const OrtModel *model,
                                 const OrtSessionOptions *options, OrtSession **out)
{
    ABI_CHECK(env && model && out, "env or model is NULL");
    ABI_CHECK(model->graph, "the model has no graph");
    abi_proto p = {.bytes = NULL};
    abi_put_model(&p, model);
    OrtStatus *status = p.failed ? abi_no_memory()
                                 : abi_CreateSessionFromArray(env, p.bytes, p.count, options, out);
    free(p.bytes);
    return status;
}

/* ---------------------------------------------------------------------- edits of a loaded model */

static OrtStatus *edit_array(const OrtEnv *env, const void *bytes, size_t count,
                             const OrtSessionOptions *options, OrtSession **out)
{
    ABI_CHECK(env && out && (bytes || !count), "env or model_data is NULL");
    return abi_session_edit(env, bytes, count, NULL, options, out);
}

/* External data lies beside the file. */
static OrtStatus *edit_mapped(const OrtEnv *env, const char *path, const void *bytes, size_t count,
                              const OrtSessionOptions *options, OrtSession **out)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!folder)
        return abi_no_memory();
    OrtStatus *status = abi_session_edit(env, bytes, count, folder, options, out);
    free(folder);
    return status;
}

static OrtStatus *edit_file(const OrtEnv *env, const char *path, const OrtSessionOptions *options,
                            OrtSession **out)
{
    ABI_CHECK(env && path && out, "env or model_path is NULL");
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info)) {
        if (file >= 0)
            close(file);
        return abi_fail(ABI_NO_SUCH_FILE,
                        "Load model from %s failed:Load model %s failed. File doesn't exist", path,
                        path);
    }
    size_t size = (size_t)info.st_size;
    void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
    close(file);
    if (bytes == MAP_FAILED)
        return abi_fail(ABI_FAIL, "Load model from %s failed: it can't be mapped", path);
    OrtStatus *status = edit_mapped(env, path, bytes, size, options, out);
    if (bytes)
        munmap(bytes, size);
    return status;
}

/* The pieces stay the client's. */
static OrtStatus *apply_model(OrtSession *session, OrtModel *model)
{
    ABI_CHECK(session && model, "session or model is NULL");
    if (!session->edited)
        return abi_fail(ABI_MODEL_LOADED, "the session is made already: only one of "
                                          "CreateModelEditorSession takes more, until it is "
                                          "finalized");
    ABI_CHECK(model->graph, "the model has no graph");
    abi_proto p = {.bytes = NULL};
    abi_merge_model(&p, session->bytes, session->byte_count, model);
    OrtStatus *status =
        p.failed ? abi_no_memory() : abi_session_change(session, p.bytes, p.count, false);
    free(p.bytes);
    return status;
}

/* The options that the session was created with are those that count, there as here: these may be
 * NULL. */
static OrtStatus *finalize_session(OrtSession *session, const OrtSessionOptions *options,
                                   OrtPrepackedWeightsContainer *container)
{
    ABI_CHECK(session, "session is NULL");
    if (!session->edited)
        return NULL;
    return abi_session_change(session, session->bytes, session->byte_count, true);
}

/* --------------------------------------------------------------------------------------- table */

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
        (abi_function *)edit_file,
        (abi_function *)edit_array,
        (abi_function *)get_opset,
        (abi_function *)apply_model,
        (abi_function *)finalize_session,
    }};
    return &table;
}
