/* tensors.c - named values in order, and the public calls that read and write them: which format,
 * which label in messages, whole files. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/options.h"
#include "io/format.h"
#include "io/out_file.h"

ort_status ort_tensors_new(ort_tensors **tensors, ort_error *err)
{
    *tensors = calloc(1, sizeof **tensors);
    return *tensors ? ORT_OK : ort_error_memory(err, sizeof **tensors);
}

void ort_tensors_free(ort_tensors *tensors)
{
    if (!tensors)
        return;
    for (size_t i = 0; i < tensors->list.count; i++)
        ort_value_free(tensors->list.data[i].value);
    ort_vec_release(&tensors->list);
    ort_arena_release(&tensors->names);
    free(tensors);
}

size_t ort_tensors_count(const ort_tensors *tensors)
{
    return tensors ? tensors->list.count : 0;
}

int ort_tensors_sample_rate(const ort_tensors *tensors)
{
    return tensors ? tensors->sample_rate : 0;
}

const char *ort_tensors_name(const ort_tensors *tensors, size_t index)
{
    return index < ort_tensors_count(tensors) ? tensors->list.data[index].name : "";
}

ort_value *ort_tensors_value(const ort_tensors *tensors, size_t index)
{
    return index < ort_tensors_count(tensors) ? tensors->list.data[index].value : NULL;
}

ort_status ort_tensors_add_take(ort_tensors *tensors, const char *name, ort_value *value,
                                ort_error *err)
{
    for (size_t i = 0; name && name[0] && i < tensors->list.count; i++) {
        ort_tensors_entry *entry = &tensors->list.data[i];
        if (strcmp(entry->name, name) != 0)
            continue;
        ort_value_free(entry->value);
        entry->value = value;
        return ORT_OK;
    }
    const char *copy = ort_arena_strdup(&tensors->names, name ? name : "");
    if (copy && ort_vec_push(&tensors->list, (ort_tensors_entry){copy, value}))
        return ORT_OK;
    ort_value_free(value);
    return ort_error_memory(err, sizeof(ort_tensors_entry));
}

ort_status ort_tensors_add(ort_tensors *tensors, const char *name, ort_value *value, ort_error *err)
{
    return ort_tensors_add_take(tensors, name, ort_value_retain(value), err);
}

/* --------------------------------------------------------------------------------- reading -- */

/* What a file that holds no tensors is, in words; NULL when nothing is known. */
static const char *name_stranger(const unsigned char *bytes, size_t count)
{
    static const struct {
        const char *start, *what;
    } strangers[] = {
        {"version https://git-lfs",
         "is a git-lfs pointer, not the file itself; run `git lfs pull`"},
        {"<!DOCTYPE", "is an HTML page, probably an error page of a download"},
        {"<html", "is an HTML page, probably an error page of a download"},
        {"\x1f\x8b", "is compressed with gzip; uncompress it first"},
        {"GIF8", "is a GIF image; convert it to PNG"},
        {"\x80\x02", "is a Python pickle, which is never loaded; save it as .npz or .safetensors"},
        {"%PDF", "is a PDF document"},
        {"ID3", "is an MP3 file; convert it to WAV"},
        {"fLaC", "is a FLAC file; convert it to WAV"},
    };
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        size_t length = strlen(strangers[i].start);
        if (count >= length && strncasecmp((const char *)bytes, strangers[i].start, length) == 0)
            return strangers[i].what;
    }
    return NULL;
}

/* The row of a format that only the file's name can tell, after its content said nothing. */
static ort_status find_by_name(const unsigned char *bytes, size_t count, const char *path,
                               const ort_read_options *options, const ort_format_row **row,
                               ort_error *err)
{
    const char *stranger = name_stranger(bytes, count);
    if (stranger)
        return ort_error_set(err, ORT_ERROR_DATA, "%s", stranger);
    *row = path ? ort_format_get(ort_format_of_path(path)) : NULL;
    if (!*row && options->dtype != ORT_DTYPE_UNDEFINED && options->rank != 0)
        *row = ort_format_get(ORT_FORMAT_RAW);
    /* Tags of TensorProto's first fields: nothing else that comes without a name looks so. */
    bool unnamed = !path || ort_path_extension(path)[0] == '\0';
    if (!*row && unnamed && count > 0 && bytes[0] && strchr("\x08\x0a\x10\x12", bytes[0]))
        *row = ort_format_get(ORT_FORMAT_PB);
    if (!*row)
        return ort_error_set(err, ORT_ERROR_DATA, "neither content nor name tell its format; name "
                             "it (npy, npz, pb, safetensors, json, csv, raw, image, wav)");
    return ORT_OK;
}

static ort_status read_whole(ort_input *in, const ort_format_row *row, const char *path,
                             const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    unsigned char *bytes = NULL;
    size_t count = 0;
    ORT_TRY(ort_input_all(in, &bytes, &count, err));
    ort_status status = ORT_OK;
    if (!row)
        row = ort_format_detect(bytes, count);
    if (!row)
        status = find_by_name(bytes, count, path, options, &row, err);
    if (status == ORT_OK && !row->read)
        status = ort_error_set(err, ORT_ERROR_DATA, "is no %s file", row->name);
    if (status == ORT_OK)
        status = row->read(bytes, count, options, tensors, err);
    free(bytes);
    return status;
}

/* What is wrong with a file of tensors is never the model's fault, nor that of a run. */
static ort_status blame_data(ort_status status)
{
    return status == ORT_ERROR_MODEL || status == ORT_ERROR_UNSUPPORTED || status == ORT_ERROR_RUN
               ? ORT_ERROR_DATA
               : status;
}

/* One record, or everything, into new tensors. *tensors stays NULL at a clean end. */
static ort_status read_tensors(FILE *stream, const char *path, const ort_read_options *options,
                               ort_tensors **tensors, ort_error *err)
{
    ort_input in;
    ort_input_init_stream(&in, stream);
    size_t seen = ort_input_peek(&in, 8);
    const ort_format_row *row = ort_format_get(options->format);
    if (seen == 0 && !ferror(stream) && (!row || row->read_record))
        return ORT_OK;
    if (ferror(stream))
        return ort_error_set(err, ORT_ERROR_IO, "can't read: %s", strerror(errno));
    if (options->format == ORT_FORMAT_AUTO)
        row = ort_format_detect(in.peeked, seen);
    ort_tensors *made = NULL;
    ORT_TRY(ort_tensors_new(&made, err));
    ort_status status = row && row->read_record
                            ? row->read_record(&in, options, made, err)
                            : read_whole(&in, options->format == ORT_FORMAT_AUTO ? NULL : row, path,
                                         options, made, err);
    if (ferror(stream))
        status = ort_error_set(err, ORT_ERROR_IO, "can't read: %s", strerror(errno));
    if (status != ORT_OK) {
        ort_tensors_free(made);
        return status;
    }
    *tensors = made;
    return ORT_OK;
}

ort_status ort_tensors_read(FILE *stream, const ort_read_options *options, ort_tensors **tensors,
                            ort_error *err)
{
    ort_read_options own = ORT_READ_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    *tensors = NULL;
    ort_status status = read_tensors(stream, options->label, options, tensors, err);
    return status == ORT_OK ? ORT_OK
                            : ort_error_recast(err, blame_data(status), "%s",
                                               options->label ? options->label : "stream");
}

/* A file holds one record; more are a stream, which is read by another call. */
static ort_status check_end(FILE *stream, ort_error *err)
{
    int next = getc(stream);
    if (next == EOF)
        return ORT_OK;
    ungetc(next, stream);
    return ort_error_set(err, ORT_ERROR_DATA, "more data follows the first record; a stream of "
                         "records is read with --stream");
}

ort_status ort_tensors_load(const char *path, const ort_read_options *options,
                            ort_tensors **tensors,ort_error *err)
{
    ort_read_options own = ORT_READ_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    *tensors = NULL;
    bool is_stdin = strcmp(path, "-") == 0;
    const char *label = options->label ? options->label : is_stdin ? "stdin" : path;
    FILE *stream = is_stdin ? stdin : fopen(path, "rbe");
    if (!stream)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't open: %s", label, strerror(errno));
    ort_tensors *made = NULL;
    ort_status status = read_tensors(stream, is_stdin ? NULL : path, options, &made, err);
    if (status == ORT_OK && !made)
        status = ort_error_set(err, ORT_ERROR_DATA, "is empty");
    if (status == ORT_OK)
        status = check_end(stream, err);
    if (!is_stdin)
        fclose(stream);
    if (status == ORT_OK) {
        *tensors = made;
        return ORT_OK;
    }
    ort_tensors_free(made);
    return ort_error_recast(err, blame_data(status), "%s", label);
}

/* ------------------------------------------------------------------------ test data folders -- */

typedef struct numbered {
    long number;
    char *name;
} numbered;

static int by_number(const void *a, const void *b)
{
    long x = ((const numbered *)a)->number, y = ((const numbered *)b)->number;
    return (x > y) - (x < y);
}

/* "input_12.pb" and "input12.pb" with prefix "input": 12; -1 for other names. */
static long number_of(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0)
        return -1;
    name += length;
    if (*name == '_')
        name++;
    size_t digits = strspn(name, "0123456789");
    const char *extension = ort_path_extension(name);
    if (digits == 0 || digits > 8 || name[digits] != '.' || extension != name + digits + 1 ||
        ort_format_of_path(name) == ORT_FORMAT_AUTO)
        return -1;
    return strtol(name, NULL, 10);
}

/* A JSON file of a test data folder is one value: an object of numbers is a map there. */
static ort_status load_json_value(const char *path, ort_tensors *all, ort_error *err)
{
    unsigned char *bytes = NULL;
    size_t count = 0;
    ort_value *value = NULL;
    ort_input in;
    FILE *stream = fopen(path, "rbe");
    if (!stream)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't open: %s", path, strerror(errno));
    ort_input_init_stream(&in, stream);
    ort_status status = ort_input_all(&in, &bytes, &count, err);
    fclose(stream);
    if (status == ORT_OK)
        status = ort_tensor_json_parse((const char *)bytes, count, ORT_DTYPE_UNDEFINED, &value,
                                       err);
    free(bytes);
    if (status != ORT_OK)
        return ort_error_recast(err, blame_data(status), "%s", path);
    return ort_tensors_add_take(all, "", value, err);
}

static ort_status load_numbered(const char *folder, const char *name, ort_tensors *all,
                                ort_error *err)
{
    ort_strbuf path = {0};
    ort_strbuf_addf(&path, "%s/%s", folder, name);
    ort_tensors *one = NULL;
    ort_status status = ORT_OK;
    if (path.failed)
        status = ort_error_memory(err, strlen(folder));
    else if (ort_format_of_path(name) == ORT_FORMAT_JSON)
        status = load_json_value(ort_strbuf_text(&path), all, err);
    else
        status = ort_tensors_load(ort_strbuf_text(&path), NULL, &one, err);
    for (size_t i = 0; i < ort_tensors_count(one) && status == ORT_OK; i++)
        status = ort_tensors_add(all, ort_tensors_name(one, i), ort_tensors_value(one, i), err);
    ort_tensors_free(one);
    ort_strbuf_release(&path);
    return status;
}

ort_status ort_tensors_load_folder(const char *path, const char *prefix, ort_tensors **tensors,
                                   ort_error *err)
{
    *tensors = NULL;
    DIR *folder = opendir(path);
    if (!folder)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't open: %s", path, strerror(errno));
    ORT_VEC(numbered) files = {0};
    ort_tensors *all = NULL;
    ort_status status = ort_tensors_new(&all, err);
    for (struct dirent *entry; status == ORT_OK && (entry = readdir(folder)) != NULL;) {
        long number = number_of(entry->d_name, prefix);
        if (number < 0)
            continue;
        char *name = strdup(entry->d_name);
        if (!name || !ort_vec_push(&files, (numbered){number, name})) {
            free(name);
            status = ort_error_memory(err, 256);
        }
    }
    closedir(folder);
    if (files.count)
        qsort(files.data, files.count, sizeof *files.data, by_number);
    for (size_t i = 0; i < files.count; i++) {
        if (status == ORT_OK)
            status = load_numbered(path, files.data[i].name, all, err);
        free(files.data[i].name);
    }
    ort_vec_release(&files);
    if (status != ORT_OK) {
        ort_tensors_free(all);
        return status;
    }
    *tensors = all;
    return ORT_OK;
}

/* --------------------------------------------------------------------------------- writing -- */

static ort_status write_tensors(const ort_tensors *tensors, FILE *stream, const char *path,
                                const ort_write_options *options, ort_error *err)
{
    ort_write_options settings = *options;
    if (settings.format == ORT_FORMAT_AUTO && path)
        settings.format = ort_format_of_path(path);
    if (settings.format == ORT_FORMAT_IMAGE && !settings.image && path &&
        ort_format_of_path(path) == ORT_FORMAT_IMAGE)
        settings.image = ort_path_extension(path);
    const ort_format_row *row = ort_format_get(settings.format);
    if (settings.format == ORT_FORMAT_AUTO && !path)
        row = ort_format_get(ORT_FORMAT_NPZ);
    if (!row)
        return ort_error_set(err, ORT_ERROR_USAGE, "the name doesn't tell the format; end it with "
                             ".npy, .npz, .pb, .safetensors, .json, .csv, .raw, .wav, .png, .jpg, "
                             ".bmp, .ppm or .webp");
    return row->write(tensors, stream, &settings, err);
}

ort_status ort_tensors_write(const ort_tensors *tensors, FILE *stream,
                             const ort_write_options *options, ort_error *err)
{
    ort_write_options own = ORT_WRITE_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ort_status status = write_tensors(tensors, stream, NULL, options, err);
    return status == ORT_OK ? ort_out_file_check(stream, "stream", err) : status;
}

ort_status ort_tensors_save(const ort_tensors *tensors, const char *path,
                            const ort_write_options *options, ort_error *err)
{
    ort_write_options own = ORT_WRITE_OPTIONS_INIT;
    bool is_stdout = strcmp(path, "-") == 0;
    ort_out_file *file = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ORT_TRY(ort_out_file_open(path, &file, err));
    ort_status status = write_tensors(tensors, file->stream, is_stdout ? NULL : path, options, err);
    if (status == ORT_OK)
        return ort_out_file_commit(file, false, err);
    ort_out_file_abort(file);
    return ort_error_wrap(err, status, "%s", is_stdout ? "stdout" : path);
}
