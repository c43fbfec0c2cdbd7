/* dump.c - writes intermediate values whose names match a pattern: one .npy each, or one .pb where
 * that can't hold it (sequences, maps, element types that numpy lacks), and index.json.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "run.h"

int dump_open(dump *d, const run_options *o, size_t run, bool many)
{
    memset(d, 0, sizeof *d);
    d->options = o;
    if (o->dumps.count == 0)
        return 0;
    d->matched = tool_alloc(o->dumps.count * sizeof *d->matched);
    const char *root = o->dump_dir != NULL ? o->dump_dir : "dump";
    if (mkdir(root, 0777) != 0 && errno != EEXIST) {
        return tool_error(ORT_ERROR_IO, "%s: can't be made: %s", root, strerror(errno));
    }
    d->folder = many ? tool_printf("%s/run_%zu", root, run) : tool_strdup(root);
    if (many && mkdir(d->folder, 0777) != 0 && errno != EEXIST) {
        return tool_error(ORT_ERROR_IO, "%s: can't be made: %s", d->folder, strerror(errno));
    }
    char *path = tool_printf("%s/index.json", d->folder);
    int status = whole_file_open(&d->file, path);
    d->index = ort_out_file_stream(d->file);
    if (status == 0)
        fprintf(d->index, "{\n  \"schema\": \"ort-dump/1\",\n  \"values\": [");
    free(path);
    return status;
}

static bool matches(dump *d, const char *name)
{
    const string_list *patterns = &d->options->dumps;
    bool any = false;
    for (size_t i = 0; i < patterns->count; i++)
        if (fnmatch(patterns->items[i], name, 0) == 0)
            any = d->matched[i] = true;
    return any;
}

/* File names keep letters, digits, '.', '-' and '_'; the rest becomes '_', a number keeps them
 * apart. */
static char *file_name(const dump *d, const char *name, const char *extension)
{
    char *stem = tool_printf("%04zu_%s", d->count, name);
    for (char *p = stem; *p != '\0'; p++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *p) == NULL)
            *p = '_';
    char *file = tool_printf("%.196s.%s", stem, extension);
    free(stem);
    return file;
}

static void index_entry(dump *d, const char *name, const char *file, const ort_value *value)
{
    static const char *const kinds[] = {
        [ORT_VALUE_NONE] = "none", [ORT_VALUE_SEQUENCE] = "sequence", [ORT_VALUE_MAP] = "map"};
    ort_value_kind kind = ort_value_get_kind(value);
    fprintf(d->index, "%s\n    {\"name\": ", d->count > 0 ? "," : "");
    tool_json_string(d->index, name);
    fprintf(d->index, ", \"file\": \"%s\", ", file);
    if (kind != ORT_VALUE_TENSOR) {
        fprintf(d->index, "\"kind\": \"%s\", \"count\": %" PRId64 "}", kinds[kind],
                ort_value_count(value));
        return;
    }
    fprintf(d->index, "\"dtype\": \"%s\", \"shape\": [", ort_dtype_name(ort_value_dtype(value)));
    for (int i = 0; i < ort_value_rank(value); i++)
        fprintf(d->index, "%s%" PRId64, i > 0 ? ", " : "", ort_value_dims(value)[i]);
    fprintf(d->index, "]}");
}

/* *file: a new string when it is written. */
static ort_status save(const dump *d, const char *name, const ort_tensors *list, ort_format format,
                       char **file, ort_error *err)
{
    ort_write_options options = {.size = sizeof options, .format = format};
    *file = file_name(d, name, format == ORT_FORMAT_PB ? "pb" : "npy");
    char *path = tool_printf("%s/%s", d->folder, *file);
    ort_status status = ort_tensors_save(list, path, &options, err);
    free(path);
    if (status != ORT_OK) {
        free(*file);
        *file = NULL;
    }
    return status;
}

void dump_value(void *arg, const char *name, const ort_value *value)
{
    dump *d = arg;
    ort_error err = {0};
    ort_tensors *list = NULL;
    char *file = NULL;
    if (d->index == NULL || d->status != 0 || !matches(d, name))
        return;
    ort_status status = ort_tensors_new(&list, &err);
    if (status == ORT_OK)
        status = ort_tensors_add(list, name, (ort_value *)value, &err);
    if (status == ORT_OK)
        status = save(d, name, list, ORT_FORMAT_NPY, &file, &err);
    if (status == ORT_ERROR_DATA) /* not that format's */
        status = save(d, name, list, ORT_FORMAT_PB, &file, &err);
    if (status != ORT_OK)
        d->status = tool_fail(&err);
    else
        index_entry(d, name, file, value);
    d->count++;
    ort_tensors_free(list);
    free(file);
}

int dump_close(dump *d)
{
    int status = d->status;
    if (d->index != NULL) {
        fprintf(d->index, "\n  ]\n}\n");
        status = whole_file_close(d->file, status);
        for (size_t i = 0; i < d->options->dumps.count && status == 0; i++)
            if (!d->matched[i])
                tool_warn("--dump: no value has a name that matches '%s'",
                          d->options->dumps.items[i]);
    }
    free(d->matched);
    free(d->folder);
    return status;
}
