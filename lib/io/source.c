/* source.c - the bytes of a model and where they came from (source.h). */
#include "io/source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "io/file_map.h"
#include "io/sniff.h"

static ort_status take_files(ort_source *source, const ort_load_options *options, ort_error *err)
{
    const ort_external_file *files = options->external_files;
    bool ok = files || !options->external_file_count;
    for (size_t i = 0; ok && i < options->external_file_count; i++)
        ok = files[i].name && (files[i].data || !files[i].bytes);
    if (!ok)
        return ort_error_set(err, ORT_ERROR_USAGE, "%s: a file of external data was given without "
                             "a name or bytes", source->label);
    source->reach.files = files;
    source->reach.file_count = options->external_file_count;
    return ORT_OK;
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
    source->in_pieces = options->in_pieces;
    if (source->in_pieces)
        ort_blob_in_pieces(source->blob);
    const char *says = ort_sniff_model(source->bytes, source->count);
    if (says)
        return ort_error_set(err, ORT_ERROR_MODEL, "%s %s", source->label, says);
    if (options->external_dir) {
        ort_reach_release(&source->reach); /* in place of the model's own */
        ORT_TRY(ort_reach_add(&source->reach, options->external_dir, err));
    }
    ORT_TRY(take_files(source, options, err));
    return options->external_root ? ort_reach_add(&source->reach, options->external_root, err)
                                  : ORT_OK;
}

static ort_status map_model(ort_source *source, const char *path, size_t max_bytes, ort_error *err)
{
    if (!strcmp(path, "-"))
        return ort_file_map(path, max_bytes, &source->blob, err);
    int fd = ort_reach_open_model(&source->reach, path);
    if (fd < 0)
        return ort_error_set(err, ORT_ERROR_MODEL, "%s: can't be opened: %s", path,
                             strerror(errno));
    ort_status status = ort_file_map_fd(fd, path, max_bytes, &source->blob, err);
    close(fd);
    return status;
}

ort_status ort_source_open(const char *path, const ort_load_options *options, ort_source *source,
                           ort_error *err)
{
    *source = (ort_source){0};
    ort_load_options own = ORT_LOAD_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ort_status status = map_model(source, path, options->max_bytes, err);
    if (status == ORT_ERROR_IO) { /* to whoever wants to run it, an unreadable model */
        if (err)
            err->status = ORT_ERROR_MODEL;
        status = ORT_ERROR_MODEL;
    }
    if (status == ORT_OK)
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
    ort_reach_release(&source->reach);
    *source = (ort_source){0};
}
