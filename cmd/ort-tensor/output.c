/* output.c - writes records: files that appear whole, a stream on stdout, images, raw bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/formats.h"
#include "tensor_tool.h"

static ort_write_options options_for(const tool *t, const char *path)
{
    ort_write_options options = {.size = sizeof options,
                                 .quality = (int)t->quality,
                                 .sample_rate = t->operations.rate,
                                 .plain = t->plain,
                                 .sources = t->names,
                                 .goes_on = t->records > 0 &&
                                            (!strcmp(path, "-") ||
                                             whole_file_is_special(path))};
    formats_choose(t->format, &options);
    if (t->format == NULL && strcmp(path, "-"))
        options.format = ort_format_of_path(path);
    if (options.format == ORT_FORMAT_AUTO)
        options.format = ORT_FORMAT_NPZ;
    return options;
}

/* --bytes writes plain bytes unless a format is named. */
static bool is_text(const tool *t, const char *path)
{
    return t->bytes && t->format == NULL &&
           (!strcmp(path, "-") || ort_format_of_path(path) == ORT_FORMAT_AUTO);
}

int output_check(const tool *t)
{
    ort_error err = {0};
    for (size_t i = 0; i < t->saves.count; i++) {
        const char *path = t->saves.items[i];
        ort_write_options options = {.size = sizeof options, .format = ORT_FORMAT_RAW};
        if (!is_text(t, path))
            options = options_for(t, t->format != NULL ? "-" : path);
        if (t->format == NULL && !is_text(t, path))
            options.format = ORT_FORMAT_AUTO;
        ort_status status = ort_tensors_check_path(path, &options, &err);
        if (status != ORT_OK)
            return tool_fail(&err);
    }
    return 0;
}

/* An image file takes pixels: turn float planes into uint8 first. */
static int as_images(const ort_tensors *record, ort_tensors **images)
{
    ort_error err = {0};
    int status = 0;
    if (ort_tensors_new(images, &err) != ORT_OK)
        return tool_fail(&err);
    for (size_t i = 0; i < ort_tensors_count(record) && status == 0; i++) {
        ort_value *pixels = NULL;
        status = to_image(ort_tensors_value(record, i), &pixels);
        if (status == 0 &&
            ort_tensors_add(*images, ort_tensors_name(record, i), pixels, &err) != ORT_OK)
            status = tool_fail(&err);
        ort_value_free(pixels);
    }
    return status;
}

/* --bytes: every element as one byte, nothing else (text that a model wrote). */
static int write_bytes(const ort_tensors *record, const char *label, FILE *out)
{
    for (size_t i = 0; i < ort_tensors_count(record); i++) {
        const ort_value *v = ort_tensors_value(record, i);
        if (ort_value_get_kind(v) != ORT_VALUE_TENSOR || ort_value_dtype(v) == ORT_DTYPE_STRING)
            return bad_value(&(operation){.option = "--bytes"}, v, "numbers from 0 to 255");
        for (int64_t k = 0; k < ort_value_count(v); k++) {
            double d = ort_value_get_double(v, k);
            if (d < 0 || d > 255 || d != (double)(int)d)
                return bad_value(&(operation){.option = "--bytes"}, v, "numbers from 0 to 255");
            if (fputc((int)d, out) == EOF)
                return tool_error(ORT_ERROR_IO, "%s: can't write: %s", label, strerror(errno));
        }
    }
    return fflush(out) == 0 ? 0 : tool_error(ORT_ERROR_IO, "%s: can't write: %s", label,
                                             strerror(errno));
}

/* To the end of *file, which is opened first where it is NULL. */
static int save(const char *path, ort_out_file **file, const ort_tensors *record,
                const ort_write_options *options)
{
    ort_tensors *images = NULL;
    int status = options->format == ORT_FORMAT_IMAGE ? as_images(record, &images) : 0;
    if (status == 0)
        status = whole_file_append(file, path, images != NULL ? images : record, options);
    ort_tensors_free(images);
    return status;
}

static int save_bytes(const char *path, ort_out_file **file, const ort_tensors *record)
{
    int status = *file == NULL ? whole_file_open(file, path) : 0;
    return status == 0 ? write_bytes(record, path, ort_out_file_stream(*file)) : status;
}

/* A finished file waits for the last record: one that fails leaves none of them, unless
 * --keep-going says that it takes no other with it. */
static int put(tool *t, ort_out_file *file, int status)
{
    if (status != 0 || t->keep_going)
        return file != NULL ? whole_file_close(file, status) : status;
    return whole_files_add(&t->waiting, file);
}

/* To the file of that name; a device or a pipe takes all records. */
static int save_to(tool *t, size_t index, const ort_tensors *record)
{
    const char *path = t->saves.items[index];
    if (t->direct == NULL)
        t->direct = tool_alloc(t->saves.count * sizeof(ort_out_file *));
    bool special = t->direct[index] != NULL || whole_file_is_special(path);
    ort_out_file *own = NULL, **file = special ? &t->direct[index] : &own;
    char *name = special ? tool_strdup(path) : whole_file_numbered(path, t->records);
    const ort_write_options options = options_for(t, path);
    int status = is_text(t, path) ? save_bytes(name, file, record)
                                  : save(name, file, record, &options);
    free(name);
    return special ? status : put(t, own, status);
}

static int to_stdout(tool *t, const ort_tensors *record)
{
    ort_error err = {0};
    ort_tensors *images = NULL;
    if (is_text(t, "-"))
        return write_bytes(record, "standard output", stdout);
    if (!tool_may_write_binary(stdout, t->settings.force))
        return EXIT_USAGE;
    ort_write_options options = options_for(t, "-");
    int status = options.format == ORT_FORMAT_IMAGE ? as_images(record, &images) : 0;
    if (status == 0 && ort_tensors_write(images != NULL ? images : record, stdout, &options,
                                         &err) != ORT_OK)
        status = tool_fail(&err);
    ort_tensors_free(images);
    return status;
}

int output_record(tool *t, const ort_tensors *record)
{
    int status = 0;
    for (size_t i = 0; i < t->saves.count && status == 0; i++) {
        bool piped = !strcmp(t->saves.items[i], "-");
        status = piped ? to_stdout(t, record) : save_to(t, i, record);
    }
    bool judged = t->top > 0 || t->compare != NULL || t->accuracy != NULL;
    bool idle = !judged && t->saves.count == 0; /* nothing else says what to do */
    if (status == 0 && (t->print || (t->settings.json && !judged) ||
                        (idle && isatty(STDOUT_FILENO) && !t->settings.force && !t->bytes)))
        return print_record(t, record);
    return status == 0 && idle ? to_stdout(t, record) : status;
}

int output_close(tool *t, int status)
{
    for (size_t i = 0; t->direct != NULL && i < t->saves.count; i++)
        if (t->direct[i] != NULL)
            status = whole_file_close(t->direct[i], status);
    free(t->direct);
    t->direct = NULL;
    return whole_files_close(&t->waiting, status);
}
