/* session.c - sessions: a model from a file or from memory, changed as the options ask, made ready.
 *
 * Where no option changes the model, the library maps the file itself and takes a pack that lies
 * beside it. A model from memory is copied: clients free theirs when the session is there.
 */
#include "custom.h"
#include "proto.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a model comes from: a file, or memory. */
typedef struct source {
    const char *path; /* or NULL */
    const void *bytes;
    size_t count;
    const char *folder; /* with bytes: of the model's external data; NULL: none is known */
} source;

/* ------------------------------------------------------------------------ changes of the model */

/* Axes of inputs that denote `dim` get its size: those with a symbol everywhere, others alone. */
static ort_status fix_denoted(ort_model *model, const abi_dim *dim, ort_error *err)
{
    ort_types *inputs;
    ort_status status = ort_model_types(model, ORT_TYPES_INPUTS, &inputs, err);
    if (status != ORT_OK)
        return status;
    for (size_t i = 0; status == ORT_OK && i < ort_types_count(inputs); i++) {
        const ort_type_info *type = ort_types_info(inputs, i);
        int64_t dims[ABI_MAX_RANK];
        bool changed = false;
        if (type->kind != ORT_TYPE_TENSOR || type->rank > ABI_MAX_RANK)
            continue;
        for (int axis = 0; axis < type->rank; axis++) {
            const char *word = type->denotations ? type->denotations[axis] : NULL;
            bool is = word && !strcmp(word, dim->name) && type->dims[axis] < 0;
            dims[axis] = is ? dim->size : type->dims[axis];
            changed |= is;
            if (is && type->symbols[axis])
                status = ort_model_set_dim(model, type->symbols[axis], dim->size, err);
        }
        if (changed && status == ORT_OK)
            status = ort_model_set_shape(model, ort_types_name(inputs, i), type->rank, dims, err);
    }
    ort_types_free(inputs);
    return status;
}

/* A symbol that the model doesn't have is no error, there as here. */
static bool has_symbol(ort_model *model, const char *name)
{
    ort_types *types;
    bool found = false;
    if (ort_model_types(model, ORT_TYPES_ALL, &types, NULL) != ORT_OK)
        return false;
    for (size_t i = 0; i < ort_types_count(types); i++) {
        const ort_type_info *type = ort_types_info(types, i);
        for (int axis = 0; type->symbols && axis < type->rank; axis++)
            found |= type->symbols[axis] && !strcmp(type->symbols[axis], name);
    }
    ort_types_free(types);
    return found;
}

/* Those that external data is given for must be there, and fit. */
static ort_status replace_external(ort_model *model, const ort_types *known, const abi_named *named,
                                   ort_error *err)
{
    if (!ort_types_find(known, named->name)) {
        snprintf(err->message, sizeof err->message,
                 "Failed to find existing initializer with name %s.", named->name);
        return err->status = ORT_ERROR_RUN;
    }
    if (ort_model_set_initializer(model, named->name, named->value, err) != ORT_OK)
        err->status = ORT_ERROR_RUN;
    return err->status;
}

/* Other names that the model doesn't have are ignored, there as here. */
static ort_status replace_initializers(ort_model *model, const OrtSessionOptions *options,
                                       ort_error *err)
{
    ort_types *known;
    if (!options->initializer_count)
        return ORT_OK;
    ort_status status = ort_model_types(model, ORT_TYPES_INITIALIZERS, &known, err);
    if (status != ORT_OK)
        return status;
    for (size_t i = 0; status == ORT_OK && i < options->initializer_count; i++) {
        const abi_named *named = &options->initializers[i];
        if (named->external)
            status = replace_external(model, known, named, err);
        else if (ort_types_find(known, named->name))
            status = ort_model_set_initializer(model, named->name, named->value, err);
    }
    ort_types_free(known);
    return status;
}

static ort_status change_model(ort_model *model, const OrtSessionOptions *options, ort_error *err)
{
    for (size_t i = 0; i < options->dim_count; i++) {
        const abi_dim *dim = &options->dims[i];
        ort_status status = ORT_OK;
        if (dim->denotes)
            status = fix_denoted(model, dim, err);
        else if (has_symbol(model, dim->name))
            status = ort_model_set_dim(model, dim->name, dim->size, err);
        if (status != ORT_OK)
            return status;
    }
    return replace_initializers(model, options, err);
}

/* The optimized model as a file; the session is made of the model as it was. */
static ort_status save_optimized(ort_env *env, const OrtSession *session,
                                 const OrtSessionOptions *options, ort_error *err)
{
    ort_optimize_options passes;
    ort_optimize_options_init(&passes);
    passes.level = options->level > 2 ? 2 : options->level;
    passes.contrib = passes.level < 0 || passes.level == 2;
    ort_model *copy;
    ort_status status = ort_model_copy(session->model, &copy, err);
    if (status != ORT_OK)
        return status;
    status = ort_model_optimize(env, copy, &passes, err);
    if (status == ORT_OK && session->entered)
        status = ort_model_set_property(copy, ABI_ACCURACY_ENTRY, NULL, err);
    if (status == ORT_OK)
        status = ort_model_save(copy, options->optimized_path, NULL, err);
    ort_model_free(copy);
    return status;
}

/* ------------------------------------------------------------------------------------ loading */

static const char *config(const OrtSessionOptions *options, const char *key)
{
    return abi_pairs_get(&options->config, key);
}

static void load_options(const OrtSessionOptions *options, ort_load_options *load)
{
    const char *folder = config(options, "session.model_external_initializers_file_folder_path");
    ort_load_options_init(load);
    load->external_dir = folder;
    load->external_root = folder;
    load->external_files = options->files;
    load->external_file_count = options->file_count;
}

/* Of products with dequantized weights, as MatMulNBits has it: 0 to 4; -1: none is asked for that
 * there is. */
static long accuracy_level(const OrtSessionOptions *options)
{
    const char *text = config(options, ABI_ACCURACY_ENTRY);
    char *end;
    if (!text)
        return 0;
    long level = strtol(text, &end, 10);
    return end == text || *end || level < 0 || level > 4 ? -1 : level;
}

/* The pass that makes MatMulNBits of such products reads it of the model. */
static ort_status enter_accuracy(OrtSession *session, ort_error *err)
{
    if (ort_model_property(session->model, ABI_ACCURACY_ENTRY))
        return ORT_OK;
    session->entered = true;
    return ort_model_set_property(session->model, ABI_ACCURACY_ENTRY, "4", err);
}

static ort_status load_model(ort_env *env, const source *from, const OrtSessionOptions *options,
                             OrtSession *session, ort_error *err)
{
    ort_load_options load;
    load_options(options, &load);
    if (from->path)
        return ort_model_load(env, from->path, &load, &session->model, err);
    session->bytes = malloc(from->count ? from->count : 1);
    if (!session->bytes) {
        snprintf(err->message, sizeof err->message, "no memory for a model of %zu bytes",
                 from->count);
        return err->status = ORT_ERROR_MEMORY;
    }
    memcpy(session->bytes, from->bytes, from->count);
    session->byte_count = from->count;
    load.label = "the model";
    if (!load.external_dir)
        load.external_dir = from->folder;
    return ort_model_load_memory(env, session->bytes, from->count, &load, &session->model, err);
}

static ort_status make(ort_env *env, const source *from, const OrtSessionOptions *options,
                       OrtSession *session, ort_error *err)
{
    ort_session_options made;
    ort_session_options_init(&made);
    made.level = options->level;
    made.threads = options->own_threads ? options->intra_threads : 0;
    if (session->makers) {
        made.threads = made.threads ? made.threads : ort_env_threads(env);
        made.own_threads = &session->makers->threads;
    }
    made.external_root = config(options, "session.model_external_initializers_file_folder_path");
    bool rounds = accuracy_level(options) == 4;
    bool changes = options->dim_count || options->initializer_count || options->file_count ||
                   options->optimized_path || rounds;
    if (from->path && !changes)
        return ort_session_load(env, from->path, &made, &session->session, err);
    ort_status status = load_model(env, from, options, session, err);
    if (status == ORT_OK && changes)
        status = change_model(session->model, options, err);
    if (status == ORT_OK && rounds)
        status = enter_accuracy(session, err);
    if (status == ORT_OK && options->optimized_path)
        status = save_optimized(env, session, options, err);
    if (status == ORT_OK)
        status = ort_session_new(env, session->model, &made, &session->session, err);
    return status;
}

/* Is it a model at all, as far as its outermost message tells? Clients tell a damaged file from one
 * that can't run. `graph`: it holds one. */
static bool is_message(const unsigned char *bytes, size_t count, bool *graph)
{
    abi_field field;
    *graph = false;
    for (size_t at = 0; at < count; at = field.end) {
        if (!abi_field_read(bytes, count, at, &field))
            return false;
        *graph |= field.number == 7 && field.wire == 2;
    }
    return true;
}

static bool is_model(const source *from, bool *graph)
{
    struct stat info;
    *graph = false;
    if (!from->path)
        return is_message(from->bytes, from->count, graph);
    int file = open(from->path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) || !info.st_size) {
        if (file >= 0)
            close(file);
        return file >= 0;
    }
    size_t size = (size_t)info.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED)
        return true;
    bool is = is_message(bytes, size, graph);
    munmap(bytes, size);
    return is;
}

static OrtStatus *explain_load(const OrtSession *session, const source *from, const ort_error *err)
{
    bool graph, at_fault = err->status == ORT_ERROR_MODEL || err->status == ORT_ERROR_UNSUPPORTED;
    char place[4200] = "";
    int code = session->custom ? __atomic_load_n(&session->custom->code, __ATOMIC_ACQUIRE) : 0;
    if (!at_fault)
        return abi_from_error(err);
    if (code) /* a client's operator refused, whose words these are */
        return abi_fail(ABI_RUNTIME_EXCEPTION, "Exception during initialization: %s", err->message);
    bool is = is_model(from, &graph);
    if (from->path)
        snprintf(place, sizeof place, "Load model from %s failed:", from->path);
    if (!is)
        return abi_fail(ABI_INVALID_PROTOBUF, "%s%s %s", place,
                        from->path ? "Protobuf parsing failed."
                                   : "Failed to load model because protobuf parsing failed.",
                        err->message);
    if (!graph)
        return abi_fail(ABI_INVALID_ARGUMENT, "%sNo graph was found in the protobuf.", place);
    OrtStatus *status = abi_explain_operator(place, err);
    return status ? status
                  : abi_fail(ABI_INVALID_GRAPH, "%sThis is an invalid model. %s", place,
                             err->message);
}

/* ----------------------------------------------------------------------------------- sessions */

static OrtStatus *list_inputs(OrtSession *session)
{
    size_t count = ort_session_input_count(session->session);
    session->inputs = calloc(count + 1, sizeof *session->inputs);
    session->defaults = calloc(count + 1, sizeof *session->defaults);
    if (!session->inputs || !session->defaults)
        return abi_no_memory();
    for (size_t i = 0; i < count; i++)
        if (ort_session_input_optional(session->session, i))
            session->defaults[session->default_count++] = i;
        else
            session->inputs[session->input_count++] = i;
    session->output_count = ort_session_output_count(session->session);
    return NULL;
}

/* The library's session, what is known of it, and its profile. */
static OrtStatus *open_session(OrtSession *session, const source *from,
                               const OrtSessionOptions *options)
{
    ort_error err = ORT_ERROR_INIT;
    ort_env *made_in = session->custom ? session->custom->env : session->env->env;
    abi_log_for(options);
    abi_log(session->env, ABI_INFO, "making a session of %s", from->path ? from->path : "memory");
    ort_status made = make(made_in, from, options, session, &err);
    if (made == ORT_OK)
        abi_log(session->env, ABI_INFO, "the session is made");
    abi_log_for(NULL);
    if (made != ORT_OK)
        return explain_load(session, from, &err);
    ABI_TRY(list_inputs(session));
    if (!options->profile_prefix)
        return NULL;
    session->profiler = abi_profiler_new(session->session, options->profile_prefix);
    return session->profiler ? NULL : abi_no_memory();
}

static OrtStatus *create(OrtEnv *env, const source *from, const OrtSessionOptions *options,
                         OrtSession **out)
{
    if (options->cancel_loading)
        return abi_fail(ABI_MODEL_LOAD_CANCELED, "Session initialization canceled due to user "
                                                 "request.");
    if (accuracy_level(options) < 0)
        return abi_fail(ABI_FAIL,
                        "Exception during initialization: " ABI_ACCURACY_ENTRY " is 0 to 4, "
                        "not '%s'",
                        config(options, ABI_ACCURACY_ENTRY));
    OrtSession *session = calloc(1, sizeof *session);
    if (!session)
        return abi_no_memory();
    abi_env_retain(env);
    session->env = env;
    pthread_mutex_init(&session->lock, NULL);
    OrtStatus *status = abi_custom_new(env, options, &session->custom);
    if (!status && options->own_threads)
        status = abi_makers_new(&options->makers, &session->makers);
    if (!status)
        status = open_session(session, from, options);
    if (status)
        abi_ReleaseSession(session);
    else
        *out = session;
    return status;
}

static OrtStatus *create_with(const OrtEnv *env, const source *from,
                              const OrtSessionOptions *options, OrtSession **out)
{
    ABI_CHECK(env && out, "env is NULL");
    *out = NULL;
    if (options)
        return create((OrtEnv *)env, from, options, out);
    OrtSessionOptions *defaults;
    ABI_TRY(abi_CreateSessionOptions(&defaults));
    OrtStatus *status = create((OrtEnv *)env, from, defaults, out);
    abi_ReleaseSessionOptions(defaults);
    return status;
}

OrtStatus *abi_CreateSession(const OrtEnv *env, const char *path, const OrtSessionOptions *options,
                             OrtSession **out)
{
    ABI_CHECK(path, "model_path is NULL");
    if (access(path, F_OK))
        return abi_fail(ABI_NO_SUCH_FILE,
                        "Load model from %s failed:Load model %s failed. File doesn't exist", path,
                        path);
    return create_with(env, &(source){.path = path}, options, out);
}

OrtStatus *abi_CreateSessionFromArray(const OrtEnv *env, const void *bytes, size_t count,
                                      const OrtSessionOptions *options, OrtSession **out)
{
    ABI_CHECK(bytes || !count, "model_data is NULL");
    return create_with(env, &(source){.bytes = bytes, .count = count}, options, out);
}

void abi_ReleaseSession(OrtSession *session)
{
    if (!session)
        return;
    abi_wait_for_jobs(session);
    pthread_mutex_destroy(&session->lock);
    abi_ReleaseStatus(abi_profiler_free(session->profiler));
    ort_session_free(session->session);
    ort_model_free(session->model);
    abi_custom_free(session->custom);
    abi_ReleaseSessionOptions(session->edited);
    free(session->folder);
    free(session->makers);
    free(session->bytes);
    free(session->inputs);
    free(session->defaults);
    abi_ReleaseEnv(session->env);
    free(session);
}

/* -------------------------------------------------------------------------- models being edited */

/* While it is edited, a session tells of its model and makes nothing faster. */
static OrtSessionOptions plain_options(const OrtSessionOptions *options)
{
    OrtSessionOptions plain = *options;
    plain.level = 0;
    plain.intra_threads = 1;
    plain.makers = (abi_makers){.create = NULL};
    plain.optimized_path = plain.profile_prefix = NULL;
    return plain;
}

OrtStatus *abi_session_edit(const OrtEnv *env, const void *bytes, size_t count, const char *folder,
                            const OrtSessionOptions *options, OrtSession **out)
{
    OrtSessionOptions *own = NULL;
    ABI_TRY(options ? abi_CloneSessionOptions(options, &own) : abi_CreateSessionOptions(&own));
    char *place = strdup(folder ? folder : "");
    OrtSessionOptions plain = plain_options(own);
    source from = {.bytes = bytes, .count = count, .folder = folder};
    OrtStatus *status = place ? create_with(env, &from, &plain, out) : abi_no_memory();
    if (status) {
        abi_ReleaseSessionOptions(own);
        free(place);
        return status;
    }
    (*out)->edited = own;
    (*out)->folder = place;
    return NULL;
}

/* The model that stood before stays where the new one is refused. Nothing runs in either session,
 * so that their locks are at rest and may change places. */
OrtStatus *abi_session_change(OrtSession *session, const void *bytes, size_t count, bool ready)
{
    OrtSessionOptions plain = plain_options(session->edited);
    source from = {.bytes = bytes, .count = count,
                   .folder = *session->folder ? session->folder : NULL};
    OrtSession *other = NULL, old = *session;
    ABI_TRY(create_with(old.env, &from, ready ? old.edited : &plain, &other));
    *session = *other;
    *other = old;
    if (!ready) {
        session->edited = old.edited;
        session->folder = old.folder;
        other->edited = NULL;
        other->folder = NULL;
    }
    abi_ReleaseSession(other);
    return NULL;
}

/* Packed weights are shared within a session; a container has nothing to hold. */
struct OrtPrepackedWeightsContainer {
    int unused;
};

OrtStatus *abi_CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NULL : abi_no_memory();
}

void abi_ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer *container)
{
    free(container);
}

OrtStatus *abi_CreateSessionWithPrepackedWeightsContainer(const OrtEnv *env, const char *path,
                                                          const OrtSessionOptions *options,
                                                          OrtPrepackedWeightsContainer *container,
                                                          OrtSession **out)
{
    ABI_CHECK(container, "prepacked_weights_container is NULL");
    return abi_CreateSession(env, path, options, out);
}

OrtStatus *abi_CreateSessionFromArrayWithPrepackedWeightsContainer(
    const OrtEnv *env, const void *bytes, size_t count, const OrtSessionOptions *options,
    OrtPrepackedWeightsContainer *container, OrtSession **out)
{
    ABI_CHECK(container, "prepacked_weights_container is NULL");
    return abi_CreateSessionFromArray(env, bytes, count, options, out);
}
