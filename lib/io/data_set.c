/* data_set.c - folders test_data_set_N: input_0.pb or input0.pb, input_1.pb, ..., output_0.pb, ...
 *
 * A value goes to the input or output of its name; one without a name, or with a name that the
 * model doesn't have, to that of its file's number, as ONNX's own runner of such sets has it. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "io/format.h"
#include "io/purpose.h"
#include "io/tensor_json.h"

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
    if (strncmp(name, prefix, length))
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

typedef struct data_set {
    const char *folder, *prefix;
    const ort_read_options *options;
    ort_tensors *all;
    bool *named; /* [purposes] a value of that name is there */
} data_set;

/* A JSON file of a test data folder is one value: an object of numbers is a map there. */
static ort_status read_json_value(const char *path, const ort_read_options *options,
                                  ort_tensors **one, ort_error *err)
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
    if (status == ORT_OK && ferror(stream))
        status = ort_error_set(err, ORT_ERROR_IO, "can't read: %s", strerror(errno));
    fclose(stream);
    const ort_purpose *purpose = ort_purpose_find(options, "", 0);
    if (status == ORT_OK)
        status = ort_tensor_json_parse((const char *)bytes, count,
                                       ort_purpose_dtype(options, purpose), &value, err);
    free(bytes);
    if (status != ORT_OK)
        return ort_error_wrap(err, status, "%s", path);
    ort_purpose_fit_single(purpose, value);
    status = ort_tensors_new(one, err);
    if (status == ORT_OK)
        return ort_tensors_add_take(*one, "", value, err);
    ort_value_free(value);
    return status;
}

/* The values of a file, as the purpose of its number would have them. */
static ort_status read_numbered(const data_set *set, const char *path, size_t number,
                                ort_tensors **one, ort_error *err)
{
    ort_read_options options = ORT_READ_OPTIONS_INIT;
    if (number < set->options->purpose_count) {
        options.purposes = &set->options->purposes[number];
        options.purpose_count = 1;
    }
    return ort_format_of_path(path) == ORT_FORMAT_JSON
               ? read_json_value(path, &options, one, err)
               : ort_tensors_load(path, &options, one, err);
}

static ort_status add_numbered(data_set *set, const char *path, size_t number,
                               const ort_tensors *one, ort_error *err)
{
    const ort_read_options *options = set->options;
    for (size_t i = 0; i < ort_tensors_count(one); i++) {
        const char *name = ort_tensors_name(one, i);
        const ort_purpose *purpose = ort_purpose_find(options, name, SIZE_MAX);
        if (!purpose && options->purpose_count && ort_tensors_count(one) == 1) {
            if (number >= options->purpose_count)
                return ort_error_set(err, ORT_ERROR_DATA, "%s: number %zu of %zu %ss of the model",
                                     path, number, options->purpose_count, set->prefix);
            purpose = &options->purposes[number];
        }
        assert(!purpose || purpose < options->purposes + options->purpose_count);
        if (purpose && set->named[purpose - options->purposes])
            return ort_error_set(err, ORT_ERROR_DATA, "%s: a second value for '%s'", path,
                                 purpose->name);
        if (purpose)
            set->named[purpose - options->purposes] = true;
        ORT_TRY(ort_tensors_add(set->all, purpose ? purpose->name : name, ort_tensors_value(one, i),
                                err));
    }
    return ORT_OK;
}

static ort_status load_numbered(data_set *set, const numbered *file, ort_error *err)
{
    ort_strbuf path = {0};
    ort_strbuf_addf(&path, "%s/%s", set->folder, file->name);
    ort_tensors *one = NULL;
    ort_status status = path.failed ? ort_error_memory(err, strlen(set->folder)) : ORT_OK;
    if (status == ORT_OK)
        status = read_numbered(set, ort_strbuf_text(&path), (size_t)file->number, &one, err);
    if (status == ORT_OK)
        status = add_numbered(set, ort_strbuf_text(&path), (size_t)file->number, one, err);
    ort_tensors_free(one);
    ort_strbuf_release(&path);
    return status;
}

typedef ORT_VEC(numbered) numbered_list;

static ort_status list_files(const data_set *set, numbered_list *files, ort_error *err)
{
    DIR *folder = opendir(set->folder);
    if (!folder)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't open: %s", set->folder,
                             strerror(errno));
    ort_status status = ORT_OK;
    for (struct dirent *entry; status == ORT_OK;) {
        errno = 0;
        entry = readdir(folder);
        if (!entry && errno)
            status = ort_error_set(err, ORT_ERROR_IO, "%s: can't read: %s", set->folder,
                                   strerror(errno));
        if (!entry)
            break;
        long number = number_of(entry->d_name, set->prefix);
        if (number < 0)
            continue;
        char *name = strdup(entry->d_name);
        if (!name || !ort_vec_push(files, (numbered){number, name})) {
            free(name);
            status = ort_error_memory(err, 256);
        }
    }
    closedir(folder);
    if (files->count)
        qsort(files->data, files->count, sizeof *files->data, by_number);
    return status;
}

ort_status ort_tensors_load_set(const char *path, const char *prefix,
                                const ort_read_options *options, ort_tensors **tensors,
                                ort_error *err)
{
    if (!path || !prefix || !tensors)
        return ort_error_null(err, __func__);
    ort_read_options own = ORT_READ_OPTIONS_INIT;
    options = ort_read_options_known(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    data_set set = {.folder = path, .prefix = prefix, .options = options};
    numbered_list files = {0};
    *tensors = NULL;
    ort_status status = ort_tensors_new(&set.all, err);
    set.named = calloc(set.options->purpose_count + 1, sizeof *set.named);
    if (status == ORT_OK && !set.named)
        status = ort_error_memory(err, set.options->purpose_count);
    if (status == ORT_OK)
        status = list_files(&set, &files, err);
    for (size_t i = 0; i < files.count; i++) {
        if (status == ORT_OK)
            status = load_numbered(&set, &files.data[i], err);
        free(files.data[i].name);
    }
    ort_vec_release(&files);
    free(set.named);
    if (status != ORT_OK) {
        ort_tensors_free(set.all);
        return status;
    }
    *tensors = set.all;
    return ORT_OK;
}

ort_status ort_tensors_load_folder(const char *path, const char *prefix, ort_tensors **tensors,
                                   ort_error *err)
{
    if (!path || !prefix || !tensors)
        return ort_error_null(err, __func__);
    return ort_tensors_load_set(path, prefix, NULL, tensors, err);
}
