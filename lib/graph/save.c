/* save.c - models into files: the data file first, the model last, each whole or not at all. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "graph/export.h"
#include "io/blob.h"
#include "io/out_file.h"
#include "io/reach.h"

enum { DEFAULT_THRESHOLD_BYTES = 1024, PIECE_BYTES = 16 << 20, FORGET_BYTES = 64 << 10 };

typedef struct sink {
    FILE *stream;
    const ort_model *model; /* whose weights are written */
    const char *label;      /* the file's name, for messages */
} sink;

/* In pieces, each forgotten once it is written: a model larger than memory goes through. */
static ort_status to_stream(void *arg, const void *bytes, size_t count, ort_error *err)
{
    const sink *to = arg;
    for (size_t at = 0; at < count;) {
        const char *piece = (const char *)bytes + at;
        size_t size = count - at < PIECE_BYTES ? count - at : PIECE_BYTES;
        if (fwrite(piece, 1, size, to->stream) != size)
            return ort_out_file_check(to->stream, to->label, err) == ORT_OK
                       ? ort_error_set(err, ORT_ERROR_IO, "%s: can't write %zu bytes", to->label,
                                       count)
                       : ORT_ERROR_IO;
        if (size >= FORGET_BYTES)
            ort_model_forget(to->model, piece, size);
        at += size;
    }
    return ORT_OK;
}

static ort_status count_bytes(void *arg, const void *bytes, size_t count, ort_error *err)
{
    *(size_t *)arg += count;
    return ORT_OK;
}

ort_status ort_model_written_bytes(const ort_model *model, size_t *bytes, ort_error *err)
{
    if (!model || !bytes)
        return ort_error_null(err, __func__);
    *bytes = ort_export_weight_bytes(model);
    if (*bytes > ORT_EXPORT_LIMIT_BYTES)
        return ORT_OK;
    *bytes = 0;
    return ort_model_export(model, NULL, count_bytes, bytes, err);
}

static ort_status refuse_stream(size_t bytes, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_IO,
                         "a model with %zu bytes of weights doesn't fit one ONNX file and can't go "
                         "to a stream: write it to a file with -o FILE",
                         bytes);
}

ort_status ort_model_write(const ort_model *model, FILE *stream, ort_error *err)
{
    if (!model || !stream)
        return ort_error_null(err, __func__);
    size_t bytes = ort_export_weight_bytes(model);
    if (bytes > ORT_EXPORT_LIMIT_BYTES)
        return refuse_stream(bytes, err);
    sink to = {stream, model, "output"};
    ORT_TRY(ort_model_export(model, NULL, to_stream, &to, err));
    return ort_out_file_check(stream, "output", err);
}

typedef struct saving {
    const ort_model *model;
    const char *path;
    ort_save_options options;
    ort_status (*before)(void *arg, const ort_saved_files *files, ort_error *err); /* or NULL */
    void *arg;
} saving;

static ort_status call_before(const saving *s, const ort_out_file *file, const ort_out_file *data,
                              const char *data_name, ort_error *err)
{
    ort_saved_files files = {file->temporary, data ? data->temporary : NULL, data_name};
    assert(!data == !data_name);
    if (!s->before)
        return ORT_OK;
    if (!files.model || (data && !files.data))
        return ort_error_set(err, ORT_ERROR_IO, "%s: isn't a regular file", s->path);
    ORT_TRY(ort_out_file_check(file->stream, s->path, err));
    if (data)
        ORT_TRY(ort_out_file_check(data->stream, data_name, err));
    return s->before(s->arg, &files, err);
}

/* Both files are written before either is renamed; the data's rename comes first. */
static ort_status save_pair(const saving *s, const char *data_path, const char *location,
                            ort_error *err)
{
    ort_out_file *file = NULL, *data = NULL;
    size_t threshold = s->options.external_threshold_bytes;
    ORT_TRY(ort_out_file_open(s->path, &file, err));
    ort_status status = ort_out_file_open(data_path, &data, err);
    if (status != ORT_OK) {
        ort_out_file_abort(file);
        return status;
    }
    sink to = {file->stream, s->model, s->path}, to_data = {data->stream, s->model, data_path};
    ort_save_plan plan = {.location = location,
                          .threshold_bytes = threshold ? threshold : DEFAULT_THRESHOLD_BYTES,
                          .data = to_stream,
                          .data_arg = &to_data};
    status = ort_model_export(s->model, &plan, to_stream, &to, err);
    if (status == ORT_OK)
        status = call_before(s, file, data, location, err);
    if (status == ORT_OK)
        status = ort_out_file_commit(data, true, err);
    else
        ort_out_file_abort(data);
    if (status == ORT_OK)
        return ort_out_file_commit(file, true, err);
    ort_out_file_abort(file);
    return status;
}

/* Is the file one of the model's blobs, from number `first` on? */
static bool holds(const ort_model *model, size_t first, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    for (size_t i = first; i < model->blobs.count; i++)
        if (model->blobs.data[i]->inode == (uint64_t)info.st_ino &&
            model->blobs.data[i]->device == (uint64_t)info.st_dev)
            return true;
    return false;
}

/* Does the model read its weights, or itself, from this file? */
static bool reads_from(const ort_model *model, const char *path)
{
    while (model && !holds(model, 0, path))
        model = model->base; /* a clone shares what its base holds */
    return model != NULL;
}

/* A file that holds weights of the model that was read, which stays and needs it. */
static bool holds_weights_of(const ort_model *model, const char *path)
{
    while (model->base)
        model = model->base;
    return holds(model, 1, path); /* the first is the model itself */
}

static ort_status check_target(const saving *s, ort_error *err)
{
    char pack[4096];
    bool packs = s->before && snprintf(pack, sizeof pack, "%s.pack", s->path) < (int)sizeof pack;
    for (int i = 0; i < (packs ? 2 : 1); i++) {
        const char *path = i ? pack : s->path;
        if (holds_weights_of(s->model, path))
            return ort_error_set(err, ORT_ERROR_USAGE, "%s: holds weights of the model that is "
                                 "read, which would be lost: give another name", path);
    }
    return ORT_OK;
}

/* Would a load of the model find what is written through this link? */
static ort_status check_link(const saving *s, const char *location, const char *data_path,
                             ort_error *err)
{
    struct stat link;
    ort_reach reach = {0};
    char folder[PATH_MAX];
    const char *slash = strrchr(s->path, '/');
    int fd = -1;
    if (lstat(data_path, &link) != 0 || !S_ISLNK(link.st_mode))
        return ORT_OK;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - s->path) + 1 : 1,
             slash ? s->path : ".");
    int model = ort_reach_open_model(&reach, s->path);
    ort_status status = model >= 0 ? ORT_OK : ort_reach_add(&reach, folder, err);
    if (status == ORT_OK && ort_reach_open(&reach, location, &fd, NULL) != ORT_OK)
        status = ort_error_set(err, ORT_ERROR_USAGE,
                               "external data '%s' is a link that leads outside of the model's "
                               "folder, or nowhere: what is written there could not be loaded; "
                               "take the link away, or give another name",
                               location);
    if (fd >= 0)
        close(fd);
    if (model >= 0)
        close(model);
    ort_reach_release(&reach);
    return status;
}

/* The data file must not be the model, its pack, or what another model, the one that was read,
 * still needs. */
static ort_status check_location(const saving *s, const char *location, const char *data_path,
                                 ort_error *err)
{
    const char *slash = strrchr(s->path, '/'), *base = slash ? slash + 1 : s->path;
    size_t length = strlen(base);
    if (strchr(location, '/'))
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "external data '%s' must be a file name beside the model, without "
                             "folders",
                             location);
    if (!strncmp(location, base, length) &&
        (!location[length] || (s->before && !strcmp(location + length, ".pack"))))
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "external data '%s' has the name of the %s beside it: give another",
                             location, location[length] ? "pack" : "model");
    if (reads_from(s->model, data_path) && !reads_from(s->model, s->path))
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "external data '%s' would replace a file of the model that is read: "
                             "give another name",
                             location);
    return check_link(s, location, data_path, err);
}

static ort_status save_external(const saving *s, ort_error *err)
{
    ort_arena arena = {0};
    const char *path = s->path, *name = s->options.external_data, *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    const char *location = name ? name : ort_arena_printf(&arena, "%s.data", path + folder);
    const char *data_path = ort_arena_printf(&arena, "%.*s%s", (int)folder, path,
                                             location ? location : "");
    ort_status status = location && data_path ? check_location(s, location, data_path, err)
                                              : ort_error_memory(err, strlen(path));
    if (status == ORT_OK)
        status = save_pair(s, data_path, location, err);
    ort_arena_release(&arena);
    return status;
}

static ort_status save(const saving *s, ort_error *err)
{
    size_t bytes = ort_export_weight_bytes(s->model);
    bool too_large = bytes > ORT_EXPORT_LIMIT_BYTES && !s->options.inline_all;
    bool stream = !strcmp(s->path, "-");
    if (stream && (too_large || s->options.external_data))
        return refuse_stream(bytes, err);
    if (!stream)
        ORT_TRY(check_target(s, err));
    if (s->options.external_data || too_large)
        return save_external(s, err);
    ort_out_file *file = NULL;
    ORT_TRY(ort_out_file_open(s->path, &file, err));
    sink to = {file->stream, s->model, stream ? "standard output" : s->path};
    ort_status status = ort_model_export(s->model, NULL, to_stream, &to, err);
    if (status == ORT_OK)
        status = call_before(s, file, NULL, NULL, err);
    if (status == ORT_OK)
        return ort_out_file_commit(file, true, err);
    ort_out_file_abort(file);
    return status;
}

ort_status ort_model_save(const ort_model *model, const char *path, const ort_save_options *options,
                          ort_error *err)
{
    if (!model || !path)
        return ort_error_null(err, __func__);
    return ort_model_save_after(model, path, options, NULL, NULL, err);
}

ort_status ort_model_save_after(const ort_model *model, const char *path,
                                const ort_save_options *options,
                                ort_status (*before)(void *arg, const ort_saved_files *files,
                                                     ort_error *err),
                                void *arg, ort_error *err)
{
    ort_save_options own = ORT_SAVE_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    saving s = {.model = model, .path = path, .options = *options, .before = before, .arg = arg};
    return save(&s, err);
}
