/* options.c - session options: what a session is to be made with, kept until it is made.
 *
 * What only steers how onnxruntime works inside (memory patterns, arenas, order of nodes) is kept
 * and given back, and has no effect. Values that are handed over are referenced, names are copied.
 */
#include "custom.h"

#include <stdlib.h>
#include <string.h>

OrtStatus *abi_CreateSessionOptions(OrtSessionOptions **out)
{
    OrtSessionOptions *options = calloc(1, sizeof *options);
    if (!options)
        return abi_no_memory();
    options->level = -1;
    options->log_severity = -1;
    options->mem_pattern = options->cpu_arena = options->own_threads = true;
    *out = options;
    return NULL;
}

void abi_ReleaseSessionOptions(OrtSessionOptions *options)
{
    if (!options)
        return;
    for (size_t i = 0; i < options->dim_count; i++)
        free(options->dims[i].name);
    for (size_t i = 0; i < options->initializer_count; i++) {
        free(options->initializers[i].name);
        ort_value_free(options->initializers[i].value);
    }
    for (size_t i = 0; i < options->file_count; i++)
        free((char *)options->files[i].name);
    for (size_t i = 0; i < options->library_count; i++)
        abi_library_release(options->libraries[i]);
    abi_pairs_clear(&options->config);
    free(options->domains);
    free(options->libraries);
    free(options->dims);
    free(options->initializers);
    free(options->files);
    free(options->log_id);
    free(options->optimized_path);
    free(options->profile_prefix);
    free(options);
}

static OrtStatus *add_dim(OrtSessionOptions *options, const char *name, bool denotes, int64_t size)
{
    ABI_CHECK(options && name, "options or name is NULL");
    abi_dim *dims = abi_grow(options->dims, options->dim_count, sizeof *dims);
    if (!dims)
        return abi_no_memory();
    options->dims = dims;
    dims[options->dim_count] = (abi_dim){strdup(name), denotes, size};
    if (!dims[options->dim_count].name)
        return abi_no_memory();
    options->dim_count++;
    return NULL;
}

static OrtStatus *keep_initializer(OrtSessionOptions *options, const char *name, ort_value *value,
                                   bool external)
{
    abi_named *list = abi_grow(options->initializers, options->initializer_count, sizeof *list);
    if (!list)
        return abi_no_memory();
    options->initializers = list;
    char *copy = strdup(name);
    if (!copy)
        return abi_no_memory();
    list[options->initializer_count++] = (abi_named){copy, ort_value_retain(value), external};
    return NULL;
}

static OrtStatus *add_file(OrtSessionOptions *options, const char *name, const void *data,
                           size_t bytes)
{
    ort_external_file *files = abi_grow(options->files, options->file_count, sizeof *files);
    if (!files)
        return abi_no_memory();
    options->files = files;
    char *copy = strdup(name);
    if (!copy)
        return abi_no_memory();
    files[options->file_count++] = (ort_external_file){copy, data, bytes};
    return NULL;
}

static OrtStatus *copy_lists(const OrtSessionOptions *from, OrtSessionOptions *to)
{
    ABI_TRY(abi_keep_text(&to->log_id, from->log_id));
    ABI_TRY(abi_keep_text(&to->optimized_path, from->optimized_path));
    ABI_TRY(abi_keep_text(&to->profile_prefix, from->profile_prefix));
    for (size_t i = 0; i < from->dim_count; i++)
        ABI_TRY(add_dim(to, from->dims[i].name, from->dims[i].denotes, from->dims[i].size));
    for (size_t i = 0; i < from->initializer_count; i++)
        ABI_TRY(keep_initializer(to, from->initializers[i].name, from->initializers[i].value,
                                 from->initializers[i].external));
    for (size_t i = 0; i < from->file_count; i++)
        ABI_TRY(add_file(to, from->files[i].name, from->files[i].data, from->files[i].bytes));
    for (size_t i = 0; i < from->domain_count; i++)
        ABI_TRY(abi_AddCustomOpDomain(to, (OrtCustomOpDomain *)from->domains[i]));
    for (size_t i = 0; i < from->library_count; i++)
        ABI_TRY(abi_options_keep(to, from->libraries[i]));
    return abi_pairs_copy(&to->config, &from->config) ? NULL : abi_no_memory();
}

OrtStatus *abi_CloneSessionOptions(const OrtSessionOptions *options, OrtSessionOptions **out)
{
    ABI_CHECK(options && out, "options is NULL");
    OrtSessionOptions *copy = NULL;
    ABI_TRY(abi_CreateSessionOptions(&copy));
    *copy = *options;
    copy->log_id = copy->optimized_path = copy->profile_prefix = NULL;
    copy->config = (OrtKeyValuePairs){0};
    copy->dims = NULL;
    copy->initializers = NULL;
    copy->files = NULL;
    copy->domains = NULL;
    copy->libraries = NULL;
    copy->dim_count = copy->initializer_count = copy->file_count = 0;
    copy->domain_count = copy->library_count = 0;
    OrtStatus *status = copy_lists(options, copy);
    if (status)
        abi_ReleaseSessionOptions(copy);
    else
        *out = copy;
    return status;
}

/* ------------------------------------------------------------------------------------ settings */

OrtStatus *abi_SetSessionGraphOptimizationLevel(OrtSessionOptions *options, int level)
{
    ABI_CHECK((level >= 0 && level <= 3) || level == 99, "graph_optimization_level is not valid");
    options->level = level == 99 ? -1 : level;
    return NULL;
}

OrtStatus *abi_SetIntraOpNumThreads(OrtSessionOptions *options, int threads)
{
    options->intra_threads = threads > 0 ? threads : 0;
    return NULL;
}

/* Nodes run one after the other, or side by side where the library finds that it is faster. */
OrtStatus *abi_SetInterOpNumThreads(OrtSessionOptions *options, int threads) { return NULL; }

OrtStatus *abi_DisablePerSessionThreads(OrtSessionOptions *options)
{
    options->own_threads = false;
    return NULL;
}

OrtStatus *abi_SetSessionExecutionMode(OrtSessionOptions *options, int mode)
{
    ABI_CHECK(mode == 0 || mode == 1, "execution_mode is not valid");
    options->execution_mode = mode;
    return NULL;
}

OrtStatus *abi_GetSessionExecutionMode(const OrtSessionOptions *options, int *out)
{
    ABI_CHECK(options && out, "options is NULL");
    *out = options->execution_mode;
    return NULL;
}

OrtStatus *abi_SetOptimizedModelFilePath(OrtSessionOptions *options, const char *path)
{
    return abi_keep_text(&options->optimized_path, path);
}

OrtStatus *abi_EnableProfiling(OrtSessionOptions *options, const char *prefix)
{
    return abi_keep_text(&options->profile_prefix, prefix ? prefix : "");
}

OrtStatus *abi_DisableProfiling(OrtSessionOptions *options)
{
    return abi_keep_text(&options->profile_prefix, NULL);
}

OrtStatus *abi_EnableMemPattern(OrtSessionOptions *options)
{
    options->mem_pattern = true;
    return NULL;
}

OrtStatus *abi_DisableMemPattern(OrtSessionOptions *options)
{
    options->mem_pattern = false;
    return NULL;
}

OrtStatus *abi_GetMemPatternEnabled(const OrtSessionOptions *options, int *out)
{
    ABI_CHECK(options && out, "options is NULL");
    *out = options->mem_pattern;
    return NULL;
}

OrtStatus *abi_EnableCpuMemArena(OrtSessionOptions *options)
{
    options->cpu_arena = true;
    return NULL;
}

OrtStatus *abi_DisableCpuMemArena(OrtSessionOptions *options)
{
    options->cpu_arena = false;
    return NULL;
}

OrtStatus *abi_SetDeterministicCompute(OrtSessionOptions *options, bool value)
{
    options->deterministic = value;
    return NULL;
}

OrtStatus *abi_SetSessionLogId(OrtSessionOptions *options, const char *log_id)
{
    return abi_keep_text(&options->log_id, log_id);
}

OrtStatus *abi_SetSessionLogVerbosityLevel(OrtSessionOptions *options, int level)
{
    options->log_verbosity = level;
    return NULL;
}

OrtStatus *abi_SetSessionLogSeverityLevel(OrtSessionOptions *options, int severity)
{
    options->log_severity = severity;
    return NULL;
}

OrtStatus *abi_SetUserLoggingFunction(OrtSessionOptions *options, OrtLoggingFunction log,
                                      void *param)
{
    options->log = log;
    options->log_param = param;
    return NULL;
}

OrtStatus *abi_SessionOptionsSetLoadCancellationFlag(OrtSessionOptions *options, bool cancel)
{
    options->cancel_loading = cancel;
    return NULL;
}

OrtStatus *abi_AddFreeDimensionOverride(OrtSessionOptions *options, const char *denotation,
                                        int64_t size)
{
    return add_dim(options, denotation, true, size);
}

OrtStatus *abi_AddFreeDimensionOverrideByName(OrtSessionOptions *options, const char *name,
                                              int64_t size)
{
    return add_dim(options, name, false, size);
}

/* There is one device to choose from. */
OrtStatus *abi_SessionOptionsSetEpSelectionPolicy(OrtSessionOptions *options, int policy)
{
    return NULL;
}

OrtStatus *abi_SessionOptionsAppendExecutionProvider(OrtSessionOptions *options, const char *name,
                                                     const char *const *keys,
                                                     const char *const *values, size_t count)
{
    static const char others[] =
        "'DML'/'DmlExecutionProvider', 'QNN'/'QNNExecutionProvider', "
        "'OpenVINO'/'OpenVINOExecutionProvider', 'SNPE'/'SNPEExecutionProvider', "
        "'XNNPACK'/'XnnpackExecutionProvider', 'WEBNN'/'WebNNExecutionProvider', "
        "'WebGPU'/'WebGpuExecutionProvider', 'AZURE'/'AzureExecutionProvider', "
        "'JS'/'JsExecutionProvider', 'VitisAI'/'VitisAIExecutionProvider', "
        "'CoreML'/'CoreMLExecutionProvider', 'NvTensorRtRtx'/'NvTensorRTRTXExecutionProvider', "
        "'MIGraphX'/'MIGraphXExecutionProvider'";
    ABI_CHECK(options && name, "provider_name is NULL");
    if (!strcmp(name, "CPU") || !strcmp(name, "CPUExecutionProvider"))
        return NULL;
    const char *at = strstr(others, name);
    size_t length = strlen(name);
    bool known = at && at > others && at[-1] == '\'' && at[length] == '\'';
    return known ? abi_fail(ABI_INVALID_ARGUMENT,
                            "%s execution provider is not supported in this build. ", name)
                 : abi_fail(ABI_INVALID_ARGUMENT,
                            "Unknown provider name '%s'. Currently supported values are %s, and "
                            "'CPU'/'CPUExecutionProvider'.",
                            name, others);
}

/* ------------------------------------------------------------------------------ initializers */

static OrtStatus *add_initializer(OrtSessionOptions *options, const char *name,
                                  const OrtValue *value, bool external)
{
    ABI_CHECK(options, "options is NULL");
    ABI_CHECK(name && *name, "Initializer name was empty");
    ABI_TRY(abi_check_tensor(value));
    for (size_t i = 0; i < options->initializer_count; i++)
        ABI_CHECK(strcmp(options->initializers[i].name, name),
                  "An OrtValue for this name has already been added: %s", name);
    return keep_initializer(options, name, value->value, external);
}

OrtStatus *abi_AddInitializer(OrtSessionOptions *options, const char *name, const OrtValue *value)
{
    return add_initializer(options, name, value, false);
}

OrtStatus *abi_AddExternalInitializers(OrtSessionOptions *options, const char *const *names,
                                       const OrtValue *const *values, size_t count)
{
    ABI_CHECK((names && values) || !count, "initializer_names is NULL");
    for (size_t i = 0; i < count; i++)
        ABI_TRY(add_initializer(options, names[i], values[i], true));
    return NULL;
}

OrtStatus *abi_AddExternalInitializersFromFilesInMemory(OrtSessionOptions *options,
                                                        const char *const *names, char *const *data,
                                                        const size_t *bytes, size_t count)
{
    ABI_CHECK((names && data && bytes) || !count, "external_initializer_file_names is NULL");
    for (size_t i = 0; i < count; i++) {
        ABI_CHECK(names[i] && *names[i], "External initializer file name was empty");
        for (size_t k = 0; k < options->file_count; k++)
            ABI_CHECK(strcmp(options->files[k].name, names[i]),
                      "An entry for this name has already been added: %s", names[i]);
        ABI_TRY(add_file(options, names[i], data[i], bytes[i]));
    }
    return NULL;
}

/* ----------------------------------------------------------------------------- config entries */

OrtStatus *abi_AddSessionConfigEntry(OrtSessionOptions *options, const char *key, const char *value)
{
    ABI_CHECK(options, "options is NULL");
    return abi_pairs_enter(&options->config, key, value);
}

OrtStatus *abi_HasSessionConfigEntry(const OrtSessionOptions *options, const char *key, int *out)
{
    ABI_CHECK(options && key && out, "config_key is NULL");
    *out = abi_pairs_get(&options->config, key) != NULL;
    return NULL;
}

OrtStatus *abi_GetSessionConfigEntry(const OrtSessionOptions *options, const char *key, char *out,
                                     size_t *size)
{
    ABI_CHECK(options && key && size, "config_key is NULL");
    const char *value = abi_pairs_get(&options->config, key);
    if (!value)
        return abi_fail(ABI_INVALID_ARGUMENT, "Session config entry '%s' was not found.", key);
    size_t need = strlen(value) + 1, room = *size;
    *size = need;
    if (!out)
        return NULL;
    ABI_CHECK(room >= need, "Output buffer is not large enough for session config entry");
    memcpy(out, value, need);
    return NULL;
}

OrtStatus *abi_GetSessionOptionsConfigEntries(const OrtSessionOptions *options,
                                              OrtKeyValuePairs **out)
{
    ABI_CHECK(options && out, "options is NULL");
    abi_CreateKeyValuePairs(out);
    if (*out && abi_pairs_copy(*out, &options->config))
        return NULL;
    abi_ReleaseKeyValuePairs(*out);
    return abi_no_memory();
}
