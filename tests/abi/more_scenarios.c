/* more_scenarios.c - LoRA adapters, models built piece by piece, devices and copies. */
#include "differ.h"

#include <stdlib.h>
#include <string.h>

static const float numbers[6] = {1, -2, 3, 4, 5.5f, -6};

/* ------------------------------------------------------------------------------------ adapters */

static void run_with(side *s, OrtSession *session, const OrtRunOptions *options)
{
    const char *in[] = {"x"}, *out[] = {"y"};
    int64_t dims[] = {2, 3};
    OrtValue *x = floats(s, numbers, 2, dims), *y = NULL;
    const OrtValue *feeds[] = {x};
    if (GOOD(s, Run, session, options, in, feeds, 1, out, 1, &y))
        say_value(s, y);
    s->api->ReleaseValue(y);
    s->api->ReleaseValue(x);
}

static char *whole_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(100000);
    *size = file ? fread(bytes, 1, 100000, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static OrtLoraAdapter *open_adapter(side *s, const row *r)
{
    OrtLoraAdapter *adapter = NULL;
    char path[4096];
    size_t size;
    snprintf(path, sizeof path, "%s.onnx_adapter", model_path(r->a));
    if (!r->k) {
        GOOD(s, CreateLoraAdapter, path, NULL, &adapter);
        return adapter;
    }
    char *bytes = whole_file(path, &size);
    GOOD(s, CreateLoraAdapterFromArray, bytes, size, NULL, &adapter);
    free(bytes);
    return adapter;
}

/* With the adapter, without, with it again; the adapter may go before the run. */
static void lora(side *s, const row *r)
{
    OrtRunOptions *options = NULL;
    OrtLoraAdapter *adapter = open_adapter(s, r);
    OrtSession *session = open_model(s, "lora", NULL);
    if (adapter && session && GOOD(s, CreateRunOptions, &options)) {
        for (long i = 0; i < (r->i ? r->i : 1); i++)
            GOOD(s, RunOptionsAddActiveLoraAdapter, options, adapter);
        run_with(s, session, options);
        run_with(s, session, NULL);
        run_with(s, session, options);
    }
    s->api->ReleaseRunOptions(options);
    s->api->ReleaseLoraAdapter(adapter);
    s->api->ReleaseSession(session);
}

/* ----------------------------------------------------------------------------- models in pieces */

/* OrtModelEditorApi as its clients know it. */
typedef struct editor {
    OrtStatus *(*CreateTensorTypeInfo)(const OrtTensorTypeAndShapeInfo *, OrtTypeInfo **);
    OrtStatus *(*CreateSparseTensorTypeInfo)(const OrtTensorTypeAndShapeInfo *, OrtTypeInfo **);
    OrtStatus *(*CreateMapTypeInfo)(int, const OrtTypeInfo *, OrtTypeInfo **);
    OrtStatus *(*CreateSequenceTypeInfo)(const OrtTypeInfo *, OrtTypeInfo **);
    OrtStatus *(*CreateOptionalTypeInfo)(const OrtTypeInfo *, OrtTypeInfo **);
    OrtStatus *(*CreateValueInfo)(const char *, const OrtTypeInfo *, OrtValueInfo **);
    OrtStatus *(*CreateNode)(const char *, const char *, const char *, const char *const *, size_t,
                             const char *const *, size_t, OrtOpAttr **, size_t, OrtNode **);
    OrtStatus *(*CreateGraph)(OrtGraph **);
    OrtStatus *(*SetGraphInputs)(OrtGraph *, OrtValueInfo **, size_t);
    OrtStatus *(*SetGraphOutputs)(OrtGraph *, OrtValueInfo **, size_t);
    OrtStatus *(*AddInitializerToGraph)(OrtGraph *, const char *, OrtValue *, bool);
    OrtStatus *(*AddNodeToGraph)(OrtGraph *, OrtNode *);
    OrtStatus *(*CreateModel)(const char *const *, const int *, size_t, OrtModel **);
    OrtStatus *(*AddGraphToModel)(OrtModel *, OrtGraph *);
    OrtStatus *(*CreateSessionFromModel)(const OrtEnv *, const OrtModel *,
                                         const OrtSessionOptions *, OrtSession **);
    OrtStatus *(*CreateModelEditorSession)(const OrtEnv *, const char *, const OrtSessionOptions *,
                                           OrtSession **);
    OrtStatus *(*CreateModelEditorSessionFromArray)(const OrtEnv *, const void *, size_t,
                                                    const OrtSessionOptions *, OrtSession **);
    OrtStatus *(*SessionGetOpsetForDomain)(const OrtSession *, const char *, int *);
    OrtStatus *(*ApplyModelToModelEditorSession)(OrtSession *, OrtModel *);
    OrtStatus *(*FinalizeModelEditorSession)(OrtSession *, const OrtSessionOptions *,
                                             OrtPrepackedWeightsContainer *);
} editor;
#define EDIT(s, e, function, ...) good(s, #function, (e)->function(__VA_ARGS__))

static OrtTypeInfo *matrix_type(side *s, const editor *e)
{
    OrtTensorTypeAndShapeInfo *shape = NULL;
    OrtTypeInfo *type = NULL;
    const int64_t dims[] = {-1, 3};
    const char *names[] = {"n", ""};
    GOOD(s, CreateTensorTypeAndShapeInfo, &shape);
    GOOD(s, SetTensorElementType, shape, 1);
    GOOD(s, SetDimensions, shape, dims, 2);
    GOOD(s, SetSymbolicDimensions, shape, names, 2);
    EDIT(s, e, CreateTensorTypeInfo, shape, &type);
    s->api->ReleaseTensorTypeAndShapeInfo(shape);
    return type;
}

static OrtValueInfo *info(side *s, const editor *e, const char *name)
{
    OrtTypeInfo *type = matrix_type(s, e);
    const OrtTypeInfo *kept = NULL;
    OrtValueInfo *made = NULL;
    const char *told = NULL;
    EDIT(s, e, CreateValueInfo, name, type, &made);
    s->api->ReleaseTypeInfo(type);
    if (!made)
        return NULL;
    GOOD(s, GetValueInfoName, made, &told);
    GOOD(s, GetValueInfoTypeInfo, made, &kept);
    say(s, "'%s'", told);
    say_type(s, kept);
    return made;
}

/* y = LeakyRelu(x + w) of an operator that the row names */
static OrtGraph *make_graph(side *s, const editor *e, const char *operator)
{
    OrtGraph *graph = NULL;
    OrtNode *nodes[2] = {NULL, NULL};
    OrtOpAttr *alpha = NULL;
    OrtValue *w = NULL;
    static const float by = 0.5f, weights[] = {10, -20, 30};
    const int64_t dims[] = {3};
    const char *in[] = {"x", "w"}, *middle[] = {"m"}, *out[] = {"y"};
    EDIT(s, e, CreateGraph, &graph);
    OrtValueInfo *x = info(s, e, "x"), *y = info(s, e, "y");
    EDIT(s, e, SetGraphInputs, graph, &x, 1);
    EDIT(s, e, SetGraphOutputs, graph, &y, 1);
    void *data = NULL;
    GOOD(s, CreateTensorAsOrtValue, s->allocator, dims, 1, 1, &w);
    GOOD(s, GetTensorMutableData, w, &data);
    memcpy(data, weights, sizeof weights);
    EDIT(s, e, AddInitializerToGraph, graph, "w", w, false);
    GOOD(s, CreateOpAttr, "alpha", &by, 1, 3, &alpha);
    EDIT(s, e, CreateNode, "Add", "", "first", in, 2, middle, 1, NULL, 0, &nodes[0]);
    EDIT(s, e, CreateNode, operator, "", "second", middle, 1, out, 1, &alpha, 1, &nodes[1]);
    EDIT(s, e, AddNodeToGraph, graph, nodes[0]);
    EDIT(s, e, AddNodeToGraph, graph, nodes[1]);
    return graph;
}

static void in_pieces(side *s, const row *r)
{
    const editor *e = (const editor *)s->api->GetModelEditorApi();
    const char *domains[] = {""};
    const int versions[] = {17};
    OrtModel *model = NULL;
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    say(s, "an editor: %d", e != NULL);
    if (!e)
        return;
    EDIT(s, e, CreateModel, domains, versions, 1, &model);
    OrtGraph *graph = make_graph(s, e, r->a);
    EDIT(s, e, AddGraphToModel, model, graph);
    GOOD(s, CreateSessionOptions, &options);
    s->api->SetSessionLogSeverityLevel(options, 4);
    if (EDIT(s, e, CreateSessionFromModel, s->env, model, options, &session)) {
        int opset = 0;
        EDIT(s, e, SessionGetOpsetForDomain, session, "", &opset);
        say(s, "opset %d", opset);
        EDIT(s, e, SessionGetOpsetForDomain, session, "none.such", &opset);
        run_with(s, session, NULL);
    }
    s->api->ReleaseModel(model);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(options);
}

/* z = operator(y + v) behind the model's y, whose place it takes where `output` says so */
static OrtModel *make_pieces(side *s, const editor *e, const char *operator, bool output)
{
    const char *domains[] = {"", "com.example"}, *in[] = {"y", "v"}, *middle[] = {"m"},
               *out[] = {"z"};
    const int versions[] = {17, 1};
    static const float weights[] = {-60, 0, 1};
    const int64_t dims[] = {3};
    OrtModel *model = NULL;
    OrtGraph *graph = NULL;
    OrtNode *nodes[2] = {NULL, NULL};
    OrtValue *v = NULL;
    void *data = NULL;
    EDIT(s, e, CreateModel, domains, versions, 2, &model);
    EDIT(s, e, CreateGraph, &graph);
    if (output) {
        OrtValueInfo *z = info(s, e, "z");
        EDIT(s, e, SetGraphOutputs, graph, &z, 1);
    }
    GOOD(s, CreateTensorAsOrtValue, s->allocator, dims, 1, 1, &v);
    GOOD(s, GetTensorMutableData, v, &data);
    memcpy(data, weights, sizeof weights);
    EDIT(s, e, AddInitializerToGraph, graph, "v", v, false);
    EDIT(s, e, CreateNode, "Add", "", "third", in, 2, middle, 1, NULL, 0, &nodes[0]);
    EDIT(s, e, CreateNode, operator, "", "fourth", middle, 1, out, 1, NULL, 0, &nodes[1]);
    EDIT(s, e, AddNodeToGraph, graph, nodes[0]);
    EDIT(s, e, AddNodeToGraph, graph, nodes[1]);
    EDIT(s, e, AddGraphToModel, model, graph);
    return model;
}

static OrtSession *open_editor(side *s, const editor *e, const row *r,
                               const OrtSessionOptions *options)
{
    OrtSession *session = NULL;
    size_t size = 0;
    if (!r->k) {
        EDIT(s, e, CreateModelEditorSession, s->env, model_path(r->a), options, &session);
        return session;
    }
    char *bytes = whole_file(model_path(r->a), &size);
    EDIT(s, e, CreateModelEditorSessionFromArray, s->env, bytes, size, options, &session);
    free(bytes);
    return session;
}

static void run_for(side *s, OrtSession *session, const char *name)
{
    const char *in[] = {"x"}, *out[] = {name};
    int64_t dims[] = {2, 3};
    OrtValue *x = floats(s, numbers, 2, dims), *y = NULL;
    const OrtValue *feeds[] = {x};
    if (GOOD(s, Run, session, NULL, in, feeds, 1, out, 1, &y))
        say_value(s, y);
    s->api->ReleaseValue(y);
    s->api->ReleaseValue(x);
}

/* b: the operator added; k: from memory; i: 1 runs before it is ready, 2 applies nothing, 3 twice
 * ready */
static void edited(side *s, const row *r)
{
    const editor *e = (const editor *)s->api->GetModelEditorApi();
    OrtSessionOptions *options = NULL;
    int opset = 0;
    GOOD(s, CreateSessionOptions, &options);
    s->api->SetSessionLogSeverityLevel(options, 4);
    OrtSession *session = open_editor(s, e, r, options);
    if (session) {
        say_session(s, session);
        EDIT(s, e, SessionGetOpsetForDomain, session, "", &opset);
        say(s, "opset %d", opset);
        OrtModel *pieces = r->i == 2 ? NULL : make_pieces(s, e, r->b, true);
        bool ready = !pieces || EDIT(s, e, ApplyModelToModelEditorSession, session, pieces);
        s->api->ReleaseModel(pieces);
        if (r->i == 1)
            run_for(s, session, "z");
        ready = ready && EDIT(s, e, FinalizeModelEditorSession, session, options, NULL);
        if (r->i == 3)
            EDIT(s, e, FinalizeModelEditorSession, session, options, NULL);
        if (ready) {
            say_session(s, session);
            run_for(s, session, pieces ? "z" : "y");
        }
    }
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(options);
}

/* What isn't a session of an edited model can't be edited. */
static void not_edited(side *s, const row *r)
{
    const editor *e = (const editor *)s->api->GetModelEditorApi();
    OrtSession *session = open_model(s, "add", NULL);
    OrtModel *pieces = make_pieces(s, e, "Relu", true);
    EDIT(s, e, ApplyModelToModelEditorSession, session, pieces);
    s->api->ReleaseModel(pieces);
    s->api->ReleaseSession(session);
}

static void types_in_pieces(side *s, const row *r)
{
    const editor *e = (const editor *)s->api->GetModelEditorApi();
    if (!e)
        return;
    OrtTypeInfo *tensor = matrix_type(s, e), *sequence = NULL, *optional = NULL, *map = NULL;
    EDIT(s, e, CreateSequenceTypeInfo, tensor, &sequence);
    EDIT(s, e, CreateOptionalTypeInfo, sequence, &optional);
    EDIT(s, e, CreateMapTypeInfo, 8, tensor, &map);
    s->api->ReleaseTypeInfo(tensor);
    s->api->ReleaseTypeInfo(sequence);
    say_type(s, optional);
    say_type(s, map);
    s->api->ReleaseTypeInfo(optional);
    s->api->ReleaseTypeInfo(map);
    OrtValueInfo *nameless = NULL;
    OrtNode *node = NULL;
    EDIT(s, e, CreateValueInfo, "", NULL, &nameless);
    EDIT(s, e, CreateNode, "", "", "", NULL, 0, NULL, 0, NULL, 0, &node);
    s->api->ReleaseNode(node);
    s->api->ReleaseValueInfo(NULL);
    s->api->ReleaseNode(NULL);
    s->api->ReleaseGraph(NULL);
    s->api->ReleaseModel(NULL);
}

/* ------------------------------------------------------------------------------------- devices */

static void devices(side *s, const row *r)
{
    const OrtEpDevice *const *list = NULL;
    OrtSessionOptions *options = NULL;
    size_t count = 0;
    GOOD(s, GetEpDevices, s->env, &list, &count);
    say(s, "a device: %d", count > 0);
    say(s, "'%s' '%s'", s->api->EpDevice_EpName(list[0]), s->api->EpDevice_EpVendor(list[0]));
    say(s, "type %d", s->api->HardwareDevice_Type(s->api->EpDevice_Device(list[0])));
    GOOD(s, CreateSessionOptions, &options);
    s->api->SetSessionLogSeverityLevel(options, 4);
    GOOD(s, SessionOptionsAppendExecutionProvider_V2, options, s->env, NULL, 0, NULL, NULL, 0);
    if (GOOD(s, SessionOptionsAppendExecutionProvider_V2, options, s->env, list, 1, NULL, NULL,
             0)) {
        OrtSession *session = open_model(s, "add", options);
        if (session)
            run_with(s, session, NULL);
        s->api->ReleaseSession(session);
    }
    s->api->ReleaseSessionOptions(options);
}

static void copies(side *s, const row *r)
{
    int64_t dims[] = {2, 3}, turned[] = {r->i, r->k};
    OrtValue *x = floats(s, numbers, 2, dims), *y = NULL;
    GOOD(s, CreateTensorAsOrtValue, s->allocator, turned, 2, 1, &y);
    const OrtValue *from[] = {x};
    OrtValue *to[] = {y};
    if (GOOD(s, CopyTensors, s->env, from, to, NULL, 1))
        say_value(s, y);
    GOOD(s, CopyTensors, s->env, from, to, NULL, 0);
    s->api->ReleaseValue(x);
    s->api->ReleaseValue(y);
}

const row more_rows[] = {
    {"lora: a file", lora, "lora"},
    {"lora: in memory", lora, "lora", .k = 1},
    {"lora: no file", lora, "none such"},
    {"lora: damaged", lora, "damaged", .k = 1},
    {"lora: no adapter", lora, "other", .k = 1},
    {"lora: another input", lora, "stranger"},
    {"editor: a model", in_pieces, "LeakyRelu"},
    {"editor: an unknown operator", in_pieces, "NoSuchOperator"},
    {"editor: types", types_in_pieces},
    {"editor: a loaded model", edited, "add", .b = "Relu"},
    {"editor: a loaded model, from memory", edited, "metadata", .b = "Neg", .k = 1},
    {"editor: weights beside the model", edited, "external", .b = "Relu"},
    {"editor: run too early", edited, "add", .b = "Relu", .i = 1},
    {"editor: nothing added", edited, "add", .b = "Relu", .i = 2},
    {"editor: ready twice", edited, "add", .b = "Relu", .i = 3},
    {"editor: an unknown operator added", edited, "add", .b = "NoSuchOperator"},
    {"editor: no such file", edited, "none such", .b = "Relu"},
    {"editor: no model", edited, "garbage", .b = "Relu"},
    {"editor: a session that runs", not_edited},
    {"devices: the processor", devices},
    {"copies: a tensor", copies, .i = 2, .k = 3,
     .known = "there nothing copies between two places of the processor's memory"},
    {"copies: another shape", copies, .i = 3, .k = 3,
     .known = "there no shapes are compared before a device is looked for"},
};
const size_t more_row_count = sizeof more_rows / sizeof *more_rows;
