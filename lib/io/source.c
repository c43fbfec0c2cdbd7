/* source.c - the bytes of a model and where they came from (source.h). */
#include "io/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "io/file_map.h"
#include "io/sniff.h"

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static ort_status fill(ort_source *source, const char *path, const ort_load_options *options,
                       ort_error *err)
{
    source->bytes = source->blob->bytes;
    source->count = source->blob->count;
    source->label = options->label ? options->label
                    : path && strcmp(path, "-") ? path
                    : path ? "standard input" : "<memory>";
    source->skeleton = options->skeleton;
    source->as_stored = options->as_stored;
    const char *says = ort_sniff_model(source->bytes, source->count);
    if (says)
        return ort_error_set(err, ORT_ERROR_MODEL, "%s %s", source->label, says);
    const char *folder = options->external_dir;
    bool has_folder = folder || (path && strcmp(path, "-"));
    if (has_folder) {
        source->directory = folder ? strdup(folder) : folder_of(path);
        if (!source->directory)
            return ort_error_memory(err, 1);
    }
    return ORT_OK;
}

ort_status ort_source_open(const char *path, const ort_load_options *options, ort_source *source,
                           ort_error *err)
{
    *source = (ort_source){0};
    ort_load_options own = ORT_LOAD_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ort_status status = ort_file_map(path, options->max_bytes, &source->blob, err);
    if (status == ORT_ERROR_IO) { /* to whoever wants to run it, an unreadable model */
        if (err)
            err->status = ORT_ERROR_MODEL;
        status = ORT_ERROR_MODEL;
    }
    ORT_TRY(status);
    status = fill(source, path, options, err);
    if (status != ORT_OK)
        ort_source_release(source);
    return status;
}

ort_status ort_source_memory(const void *bytes, size_t count, const ort_load_options *options,
                             ort_source *source, ort_error *err)
{
    *source = (ort_source){0};
    ort_load_options own = ORT_LOAD_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    if (options->max_bytes && count > options->max_bytes)
        return ort_error_set(err, ORT_ERROR_MODEL, "the model has %zu bytes, the limit is %zu",
                             count, options->max_bytes);
    ORT_TRY(ort_blob_new(ORT_BLOB_BORROWED, bytes, count, &source->blob, err));
    ort_status status = fill(source, NULL, options, err);
    if (status != ORT_OK)
        ort_source_release(source);
    return status;
}

void ort_source_release(ort_source *source)
{
    ort_blob_release(source->blob);
    free(source->directory);
    *source = (ort_source){0};
}
