/* whole_file.c - output files that appear whole or not at all (whole_file.h). */
#include "common/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/tool.h"

int whole_file_open(ort_out_file **f, const char *path)
{
    ort_error err = {0};
    if (ort_out_file_open(path != NULL ? path : "-", f, &err) != ORT_OK)
        return tool_fail(&err);
    return 0;
}

int whole_file_close(ort_out_file *f, int status)
{
    ort_error err = {0};
    if (status != 0 || ort_out_file_stream(f) == stdout)
        ort_out_file_abort(f);
    else if (ort_out_file_commit(f, false, &err) != ORT_OK)
        status = tool_fail(&err);
    return status;
}

int whole_file_text(const char *path, const char *text)
{
    ort_out_file *file = NULL;
    int status = whole_file_open(&file, path);
    if (status != 0)
        return status;
    if (fputs(text, ort_out_file_stream(file)) == EOF)
        status = tool_error(ORT_ERROR_IO, "%s: can't write: %s",
                            path && strcmp(path, "-") ? path : "standard output", strerror(errno));
    return whole_file_close(file, status);
}

char *whole_file_numbered(const char *path, size_t number)
{
    if (whole_file_is_special(path)) /* takes them all */
        return tool_strdup(path);
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    if (dot == NULL || (slash != NULL && dot < slash))
        dot = path + strlen(path);
    return number == 0 ? tool_strdup(path)
                       : tool_printf("%.*s_%zu%s", (int)(dot - path), path, number, dot);
}

bool whole_file_is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* What ort_tensors_save takes from the name of a file. */
static ort_write_options by_name(const char *path, const ort_write_options *given)
{
    ort_write_options options = *given;
    ort_format named = ort_format_of_path(path);
    if (options.format == ORT_FORMAT_AUTO)
        options.format = named != ORT_FORMAT_AUTO ? named : ORT_FORMAT_NPZ;
    if (options.as == NULL && named == options.format)
        options.as = strrchr(path, '.') + 1;
    return options;
}

int whole_file_append(ort_out_file **f, const char *path, const ort_tensors *record,
                      const ort_write_options *options)
{
    ort_error err = {0};
    const ort_write_options known = by_name(path, options);
    int status = *f == NULL ? whole_file_open(f, path) : 0;
    if (status == 0 &&
        ort_tensors_write(record, ort_out_file_stream(*f), &known, &err) != ORT_OK)
        status = tool_fail_in(path, &err);
    return status;
}

int whole_files_add(whole_files *files, ort_out_file *f)
{
    ort_error err = {0};
    files->items = realloc(files->items, (files->count + 1) * sizeof(ort_out_file *));
    if (files->items == NULL)
        tool_alloc(SIZE_MAX / 2);
    files->items[files->count++] = f;
    return ort_out_file_wait(f, false, &err) == ORT_OK ? 0 : tool_fail(&err);
}

int whole_files_close(whole_files *files, int status)
{
    for (size_t i = 0; i < files->count; i++)
        status = whole_file_close(files->items[i], status);
    free(files->items);
    *files = (whole_files){0};
    return status;
}
