/* save.c - models into files: the data file first, the model last, each whole or not at all. */
#include <string.h>

#include "base/error.h"
#include "graph/export.h"
#include "io/out_file.h"

enum { DEFAULT_THRESHOLD_BYTES = 1024 };

static ort_status to_stream(void *arg, const void *bytes, size_t count, ort_error *err)
{
    if (fwrite(bytes, 1, count, arg) == count)
        return ORT_OK;
    return ort_out_file_check(arg, "output", err) == ORT_OK
               ? ort_error_set(err, ORT_ERROR_IO, "output: can't write %zu bytes", count)
               : ORT_ERROR_IO;
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
    size_t bytes = ort_export_weight_bytes(model);
    if (bytes > ORT_EXPORT_LIMIT_BYTES)
        return refuse_stream(bytes, err);
    ORT_TRY(ort_model_export(model, NULL, to_stream, stream, err));
    return ort_out_file_check(stream, "output", err);
}

/* Both files are written before either is renamed; the data's rename comes first. */
static ort_status save_pair(const ort_model *model, const char *path, const char *data_path,
                            const char *location, size_t threshold, ort_error *err)
{
    ort_out_file file, data;
    ORT_TRY(ort_out_file_open(&file, path, err));
    ort_status status = ort_out_file_open(&data, data_path, err);
    if (status != ORT_OK) {
        ort_out_file_abort(&file);
        return status;
    }
    ort_save_plan plan = {location, threshold, to_stream, data.stream};
    status = ort_model_export(model, &plan, to_stream, file.stream, err);
    if (status == ORT_OK)
        status = ort_out_file_commit(&data, true, err);
    else
        ort_out_file_abort(&data);
    if (status == ORT_OK)
        return ort_out_file_commit(&file, true, err);
    ort_out_file_abort(&file);
    return status;
}

static ort_status save_external(const ort_model *model, const char *path, const char *name,
                                size_t threshold, ort_error *err)
{
    ort_arena arena = {0};
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    const char *location = name ? name : ort_arena_printf(&arena, "%s.data", path + folder);
    const char *data_path = ort_arena_printf(&arena, "%.*s%s", (int)folder, path,
                                             location ? location : "");
    ort_status status =
        !location || !data_path ? ort_error_memory(err, strlen(path))
        : strchr(location, '/') ? ort_error_set(err, ORT_ERROR_USAGE,
                                                "external data '%s' must be a file name beside the "
                                                "model, without folders",
                                                location)
                                : save_pair(model, path, data_path, location,
                                            threshold ? threshold : DEFAULT_THRESHOLD_BYTES, err);
    ort_arena_release(&arena);
    return status;
}

ort_status ort_model_save(const ort_model *model, const char *path, const ort_save_options *options,
                          ort_error *err)
{
    ort_save_options o = options ? *options : (ort_save_options){0};
    size_t bytes = ort_export_weight_bytes(model);
    bool too_large = bytes > ORT_EXPORT_LIMIT_BYTES && !o.inline_all;
    bool stream = !strcmp(path, "-");
    if (stream && (too_large || o.external_data))
        return refuse_stream(bytes, err);
    if (o.external_data || too_large)
        return save_external(model, path, o.external_data, o.external_threshold_bytes, err);
    ort_out_file file;
    ORT_TRY(ort_out_file_open(&file, path, err));
    ort_status status = ort_model_export(model, NULL, to_stream, file.stream, err);
    if (status == ORT_OK)
        return ort_out_file_commit(&file, true, err);
    ort_out_file_abort(&file);
    return status;
}
