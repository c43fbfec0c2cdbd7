/* run_options.c - options of runs: a token that stops them, and what is kept and given back. */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

OrtStatus *abi_CreateRunOptions(OrtRunOptions **out)
{
    ort_error err = ORT_ERROR_INIT;
    OrtRunOptions *options = calloc(1, sizeof *options);
    if (options)
        options->tag = strdup("");
    if (!options || !options->tag || ort_cancel_new(&options->cancel, &err) != ORT_OK) {
        abi_ReleaseRunOptions(options);
        return abi_no_memory();
    }
    options->log_severity = -1;
    *out = options;
    return NULL;
}

void abi_ReleaseRunOptions(OrtRunOptions *options)
{
    if (!options)
        return;
    ort_cancel_free(options->cancel);
    abi_pairs_clear(&options->config);
    for (size_t i = 0; i < options->adapted_count; i++) {
        free(options->adapted[i].name);
        ort_value_free(options->adapted[i].value);
    }
    free(options->adapted);
    free(options->tag);
    free(options->profile_prefix);
    free(options);
}

OrtStatus *abi_RunOptionsSetTerminate(OrtRunOptions *options)
{
    ort_cancel_set(options->cancel);
    return NULL;
}

OrtStatus *abi_RunOptionsUnsetTerminate(OrtRunOptions *options)
{
    ort_cancel_clear(options->cancel);
    return NULL;
}

OrtStatus *abi_RunOptionsSetRunLogVerbosityLevel(OrtRunOptions *options, int level)
{
    options->log_verbosity = level;
    return NULL;
}

OrtStatus *abi_RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions *options, int *out)
{
    *out = options->log_verbosity;
    return NULL;
}

OrtStatus *abi_RunOptionsSetRunLogSeverityLevel(OrtRunOptions *options, int severity)
{
    options->log_severity = severity;
    return NULL;
}

OrtStatus *abi_RunOptionsGetRunLogSeverityLevel(const OrtRunOptions *options, int *out)
{
    *out = options->log_severity;
    return NULL;
}

OrtStatus *abi_RunOptionsSetRunTag(OrtRunOptions *options, const char *tag)
{
    return abi_keep_text(&options->tag, tag ? tag : "");
}

OrtStatus *abi_RunOptionsGetRunTag(const OrtRunOptions *options, const char **out)
{
    *out = options->tag;
    return NULL;
}

OrtStatus *abi_AddRunConfigEntry(OrtRunOptions *options, const char *key, const char *value)
{
    ABI_CHECK(options, "options is NULL");
    return abi_pairs_enter(&options->config, key, value);
}

const char *abi_GetRunConfigEntry(const OrtRunOptions *options, const char *key)
{
    return options && key ? abi_pairs_get(&options->config, key) : NULL;
}

OrtStatus *abi_RunOptionsEnableProfiling(OrtRunOptions *options, const char *prefix)
{
    return abi_keep_text(&options->profile_prefix, prefix ? prefix : "");
}

OrtStatus *abi_RunOptionsDisableProfiling(OrtRunOptions *options)
{
    return abi_keep_text(&options->profile_prefix, NULL);
}
