/* target.c - which format a file is written in, and whether that format can be written at all.
 * Tools ask before they do the work whose result goes into the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "io/format.h"

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
    const char *ending = settings->as;
    char words[200];
    if (settings->format == ORT_FORMAT_AUTO)
        settings->format = settings->as ? ort_format_parse(settings->as) : by_name;
    if (settings->format == ORT_FORMAT_AUTO && (!path || is_special(path)))
        settings->format = ORT_FORMAT_NPZ;
    if (!ending && by_name != ORT_FORMAT_AUTO && settings->format == by_name)
        ending = ort_path_extension(path);
    *row = ort_format_get(settings->format);
    if (!*row)
        return ort_error_set(err, ORT_ERROR_USAGE, "the name doesn't tell a format that is written;"
                             " end it with one of %s, or name it (--format)",
                             ort_format_endings(words, sizeof words));
    if (!(*row)->settle)
        return ORT_OK;
    bool known = ending && ort_format_has_word((*row)->endings, ending);
    return (*row)->settle(known ? ending : "", settings, err);
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
    ort_status status = access(folder, W_OK | X_OK) == 0
                            ? ORT_OK
                            : ort_error_set(err, ORT_ERROR_IO, "can't create: folder '%s': %s",
                                            folder, strerror(errno));
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
    bool is_stdout = !strcmp(path, "-");
    options = ORT_OPTIONS_KNOWN(options, &settings, err);
    if (!options)
        return ORT_ERROR_USAGE;
    settings = *options;
    ort_status status = ort_target_format(is_stdout ? NULL : path, &settings, &row, err);
    if (status == ORT_OK && !is_stdout)
        status = can_write(path, err);
    return status == ORT_OK ? ORT_OK : ort_error_wrap(err, status, "%s", path);
}
