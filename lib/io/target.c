/* target.c - which format a file is written in, and whether it can be written at all, asked before
 * the work whose result it is to hold (target.h). */
#include "io/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "io/image.h"

/* Devices and pipes have names that say nothing: they get what a pipe gets. */
static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

ort_status ort_target_format(const char *path, ort_write_options *settings,
                             const ort_format_row **row, ort_error *err)
{
    ort_format by_name = path ? ort_format_of_path(path) : ORT_FORMAT_AUTO;
    if (settings->format == ORT_FORMAT_AUTO)
        settings->format = by_name;
    if (settings->format == ORT_FORMAT_AUTO && (!path || is_special(path)))
        settings->format = ORT_FORMAT_NPZ;
    if (settings->format == ORT_FORMAT_IMAGE && !settings->image && by_name == ORT_FORMAT_IMAGE)
        settings->image = ort_path_extension(path);
    if (settings->separator == 0 && path && strcasecmp(ort_path_extension(path), "tsv") == 0)
        settings->separator = '\t';
    *row = ort_format_get(settings->format);
    if (!*row)
        return ort_error_set(err, ORT_ERROR_USAGE, "the name doesn't tell a format that is written;"
                             " end it with .npy, .npz, .pb, .safetensors, .json, .csv, .raw, .wav, "
                             ".png, .jpg, .bmp, .ppm or .webp, or name it (--format)");
    if (settings->format == ORT_FORMAT_IMAGE && settings->image &&
        !ort_image_is_written(settings->image))
        return ort_error_set(err, ORT_ERROR_USAGE, "%s images are read, not written; png, jpeg, "
                             "webp, bmp and ppm are", settings->image);
    return ORT_OK;
}

static ort_status can_write(const char *path, ort_error *err)
{
    struct stat info;
    if (stat(path, &info) == 0) {
        int problem = S_ISDIR(info.st_mode) ? EISDIR : access(path, W_OK) == 0 ? 0 : errno;
        return problem ? ort_error_set(err, ORT_ERROR_IO, "can't write: %s", strerror(problem))
                       : ORT_OK;
    }
    const char *slash = strrchr(path, '/');
    char *folder = slash == path ? strdup("/")
                   : slash       ? strndup(path, (size_t)(slash - path))
                                 : strdup(".");
    if (!folder)
        return ort_error_memory(err, strlen(path));
    bool there = access(folder, W_OK | X_OK) == 0;
    int problem = errno;
    ort_status status = ORT_OK;
    if (!there)
        status = ort_error_set(err, ORT_ERROR_IO, "can't create: folder '%s': %s", folder,
                               strerror(problem));
    free(folder);
    return status;
}

ort_status ort_tensors_check_path(const char *path, const ort_write_options *options,
                                  ort_error *err)
{
    if (!path)
        return ort_error_null(err, __func__);
    ort_write_options settings = ORT_WRITE_OPTIONS_INIT;
    const ort_format_row *row;
    bool is_stdout = strcmp(path, "-") == 0;
    options = ORT_OPTIONS_KNOWN(options, &settings, err);
    if (!options)
        return ORT_ERROR_USAGE;
    settings = *options;
    ort_status status = ort_target_format(is_stdout ? NULL : path, &settings, &row, err);
    if (status == ORT_OK && !is_stdout)
        status = can_write(path, err);
    return status == ORT_OK ? ORT_OK : ort_error_wrap(err, status, "%s", path);
}
