/* records.c - how files become records: one per file, or as many as it holds; the operations run
 * over each; then it is printed, judged and written, or kept for a batch.
 *
 * What can't be read or changed ends the run, unless --keep-going counts it and goes on. What can't
 * be written always does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/join.h"
#include "common/progress.h"
#include "tensor_tool.h"

static bool selected(const tool *t, const char *name)
{
    for (size_t i = 0; i < t->select.count; i++)
        if (!strcmp(t->select.items[i], name))
            return true;
    return t->select.count == 0;
}

/* Judge and write one finished record; readers of a pipe get it now. */
static int finish_record(tool *t, const ort_tensors *record)
{
    int status = 0;
    progress_hide(); /* before what is printed */
    for (size_t i = 0; i < ort_tensors_count(record) && status == 0; i++) {
        if (t->top > 0)
            status = judge_top(t, record, i);
    }
    if (status == 0 && t->accuracy != NULL)
        status = judge_accuracy(t, record);
    if (status == 0 && t->compare != NULL)
        status = judge_compare(t, record);
    if (status == 0)
        status = output_record(t, record);
    t->records++;
    if (fflush(stdout) != 0 && status == 0)
        status = tool_error(ORT_ERROR_IO, "standard output: %s", strerror(errno));
    t->broken = status != 0;
    return status;
}

/* Takes the record. */
static int deliver(tool *t, ort_tensors *record)
{
    if (!t->stack) {
        int status = finish_record(t, record);
        ort_tensors_free(record);
        return status;
    }
    t->gathered = realloc(t->gathered, (t->gathered_count + 1) * sizeof *t->gathered);
    if (t->gathered == NULL)
        tool_alloc(SIZE_MAX / 2);
    t->gathered[t->gathered_count++] = record;
    return 0;
}

static int add_value(tool *t, ort_tensors *record, const char *name, ort_value *value)
{
    ort_error err = {0};
    return ort_tensors_add(record, t->name != NULL ? t->name : name, value, &err) == ORT_OK
               ? 0
               : tool_fail(&err);
}

/* Names of files pass through; those of several files start here. */
static int add_sources(const tool *t, const ort_tensors *from, ort_tensors *record)
{
    ort_error err = {0};
    size_t count = ort_tensors_source_count(from);
    for (size_t i = 0; i < count; i++)
        if (ort_tensors_add_source(record, ort_tensors_source(from, i), &err) != ORT_OK)
            return tool_fail(&err);
    if (count == 0 && t->many && strcmp(t->place, "standard input") &&
        ort_tensors_add_source(record, t->place, &err) != ORT_OK)
        return tool_fail(&err);
    return 0;
}

/* As columns of tables do; operations leave them alone. */
static int add_columns(const ort_tensors *from, ort_tensors *record)
{
    ort_error err = {0};
    for (size_t i = 0; i < ort_tensors_column_count(from); i++)
        if (ort_tensors_add_column(record, ort_tensors_column_name(from, i),
                                   ort_tensors_column(from, i), &err) != ORT_OK)
            return tool_fail(&err);
    return 0;
}

static int new_record(const tool *t, const ort_tensors *from, ort_tensors **record)
{
    ort_error err = {0};
    if (ort_tensors_new(record, &err) != ORT_OK)
        return tool_fail(&err);
    int status = add_sources(t, from, *record);
    if (status == 0)
        status = add_columns(from, *record);
    if (status != 0)
        ort_tensors_free(*record);
    return status;
}

static int emit_window(tool *t, const ort_tensors *from, ort_value *window)
{
    ort_tensors *record = NULL;
    int status = new_record(t, from, &record);
    if (status != 0)
        return status;
    status = add_value(t, record, "input", window);
    if (status == 0)
        return deliver(t, record);
    ort_tensors_free(record);
    return status;
}

static bool has_value(const ort_tensors *record, const char *name)
{
    for (size_t i = 0; i < ort_tensors_count(record); i++)
        if (!strcmp(ort_tensors_name(record, i), name))
            return true;
    return false;
}

/* All that --select names is there, and --name has one value to name. */
static int check_names(const tool *t, const ort_tensors *record)
{
    size_t count = ort_tensors_count(record), kept = 0;
    for (size_t k = 0; k < t->select.count; k++) {
        const char *name = t->select.items[k];
        if (has_value(record, name))
            continue;
        return tool_usage("--select: %s has no value '%s'; it has '%s'%s", t->place, name,
                          count > 0 ? ort_tensors_name(record, 0) : "",
                          count > 1 ? " and others" : "");
    }
    for (size_t i = 0; i < count; i++)
        kept += selected(t, ort_tensors_name(record, i));
    if (kept > 1 && t->name != NULL && t->chunk == 0)
        return tool_usage("--name names one value, %s holds %zu: --select takes one of them",
                          t->place, kept);
    return 0;
}

/* Apply the operations to every selected value; with --chunk each sound becomes many records. */
static int transform(tool *t, const ort_tensors *in, ort_tensors *out)
{
    int status = check_names(t, in);
    for (size_t i = 0; i < ort_tensors_count(in) && status == 0; i++) {
        const char *name = ort_tensors_name(in, i);
        ort_value *value = ort_tensors_value(in, i), *changed = NULL;
        if (!selected(t, name))
            continue;
        status = operations_apply(&t->operations, value, &changed);
        ort_value *result = changed != NULL ? changed : value;
        if (status == 0 && t->chunk > 0)
            status = each_window(t, in, result, emit_window);
        else if (status == 0)
            status = add_value(t, out, name, result);
        ort_value_free(changed);
    }
    return status;
}

int record_handle(tool *t, const ort_tensors *in)
{
    ort_tensors *record = NULL;
    int status = new_record(t, in, &record);
    if (status != 0)
        return status;
    status = transform(t, in, record);
    if (status == 0 && t->chunk == 0)
        return deliver(t, record);
    ort_tensors_free(record);
    return status;
}

/* ---- input */

static void set_format(const tool *t, const char *path, ort_read_options *options)
{
    if (t->input_format != NULL)
        options->format = ort_format_parse(t->input_format);
    ort_format by_name = ort_format_of_path(path);
    if (t->bytes && options->format == ORT_FORMAT_AUTO &&
        (by_name == ORT_FORMAT_AUTO || by_name == ORT_FORMAT_RAW)) {
        options->format = ORT_FORMAT_RAW;
        options->dtype = ORT_DTYPE_UINT8;
    }
    bool raw = options->format == ORT_FORMAT_RAW ||
               (options->format == ORT_FORMAT_AUTO && by_name == ORT_FORMAT_RAW);
    if (t->shape == NULL && raw)
        options->rank = -1; /* flat */
}

int record_options(const tool *t, const char *path, int64_t dims[16], ort_read_options *options)
{
    *options = (ort_read_options){.size = sizeof *options,
                                  .resume = t->keep_going,
                                  .keep = t->ids.count > 0 ? t->ids.items : NULL,
                                  .drop = t->drops.count > 0 ? t->drops.items : NULL,
                                  .label = !strcmp(path, "-") ? "standard input" : path};
    if (t->dtype != NULL && (options->dtype = ort_dtype_parse(t->dtype)) == ORT_DTYPE_UNDEFINED)
        return tool_usage("--dtype: '%s' is no element type", t->dtype);
    if (t->shape != NULL) {
        options->rank = option_parse_dims("--dims", t->shape, dims, 16);
        options->dims = dims;
        if (options->rank < 0)
            return EXIT_USAGE;
        if (t->input_format == NULL && t->dtype != NULL)
            options->format = ORT_FORMAT_RAW;
    }
    set_format(t, path, options);
    return 0;
}

/* With --bytes, a pipe brings what another tool wrote, known by its first bytes, or text. */
static bool comes_as_records(FILE *stream)
{
    char start[4];
    size_t count = fread(start, 1, sizeof start, stream);
    bool known = count == 4 && (!memcmp(start, "\x93NUM", 4) || !memcmp(start, "PK\3\4", 4));
    while (count > 0)
        ungetc((unsigned char)start[--count], stream);
    return known;
}

/* 0, or the status of a failure that is to end everything. */
static int note_failure(tool *t, int status, const char *place)
{
    if (status == 0 || !t->keep_going || t->broken || status == EXIT_USAGE)
        return status;
    string_list_add(&t->failures, place);
    return 0;
}

static int is_empty(const tool *t)
{
    return tool_error(ORT_ERROR_DATA, "%s: is empty", t->place);
}

static int read_stream(tool *t, FILE *stream, ort_read_options *options)
{
    size_t count = 0;
    for (int status = 0;;) {
        ort_error err = {0};
        ort_tensors *record = NULL;
        char *place = tool_printf("%s, record %zu", t->place, ++count);
        if (count > 1)
            options->label = place;
        if (ort_tensors_read(stream, options, &record, &err) != ORT_OK) {
            status = note_failure(t, tool_fail(&err), place);
            if (status == 0 && record == NULL) { /* where the next one starts is unknown */
                free(place);
                return 0;
            }
        } else if (record != NULL) {
            t->operations.rate = ort_tensors_sample_rate(record);
            status = note_failure(t, record_handle(t, record), place);
        }
        bool end = record == NULL;
        ort_tensors_free(record);
        free(place);
        if (status != 0 || end)
            return status == 0 && count == 1 ? note_failure(t, is_empty(t), t->place) : status;
    }
}

static int read_file(tool *t, const char *path, ort_read_options *options)
{
    ort_error err = {0};
    ort_tensors *in = NULL;
    int status = 0;
    if (ort_tensors_load(path, options, &in, &err) != ORT_OK) {
        status = tool_fail(&err);
    } else {
        t->operations.rate = ort_tensors_sample_rate(in);
        status = record_handle(t, in);
    }
    ort_tensors_free(in);
    return note_failure(t, status, t->place);
}

/* A pipe is read to its end record by record, a file holds one, unless --stream says more. */
static int read_path(tool *t, const char *path)
{
    ort_read_options options;
    int64_t dims[16];
    bool is_stdin = !strcmp(path, "-");
    int status = record_options(t, path, dims, &options);
    if (status != 0)
        return status;
    t->place = options.label;
    bool raw = options.format == ORT_FORMAT_RAW && !t->stream;
    if (is_stdin && t->bytes && t->input_format == NULL && comes_as_records(stdin)) {
        options.format = ORT_FORMAT_AUTO;
        options.dtype = ORT_DTYPE_UNDEFINED;
        options.rank = 0;
        raw = false;
    }
    if (raw || (!is_stdin && !t->stream))
        return read_file(t, path, &options);
    if (is_stdin)
        return read_stream(t, stdin, &options);
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return note_failure(t, tool_error(ORT_ERROR_IO, "%s: can't open: %s", path,
                                          strerror(errno)), path);
    status = read_stream(t, stream, &options);
    fclose(stream);
    return status;
}

/* ---- batches */

/* By name where the record has the first one's names at all, else by position. */
static int find_column(const tool *t, size_t record, size_t index, ort_value **value)
{
    const ort_tensors *first = t->gathered[0], *from = t->gathered[record];
    const char *name = ort_tensors_name(first, index);
    size_t count = ort_tensors_count(from);
    bool shared = false;
    if (count != ort_tensors_count(first))
        return tool_error(ORT_ERROR_DATA, "--stack: record %zu has %zu values, the first %zu",
                          record + 1, count, ort_tensors_count(first));
    *value = ort_tensors_value(from, index);
    for (size_t i = 0; i < count; i++) {
        shared = shared || has_value(first, ort_tensors_name(from, i));
        if (strcmp(ort_tensors_name(from, i), name))
            continue;
        *value = ort_tensors_value(from, i);
        return 0;
    }
    return shared ? tool_error(ORT_ERROR_DATA, "--stack: record %zu has no value '%s', which the "
                               "first one has", record + 1, name)
                  : 0;
}

/* Value `index` of all records, along a first axis of size 1 or a new one. */
static int join_column(tool *t, size_t index, ort_tensors *batch)
{
    size_t count = t->gathered_count;
    ort_value **values = tool_alloc(count * sizeof *values), *joined = NULL;
    char why[600] = "";
    int status = 0;
    for (size_t r = 0; r < count && status == 0; r++)
        status = find_column(t, r, index, &values[r]);
    bool along = status == 0 && ort_value_rank(values[0]) > 0 && ort_value_dims(values[0])[0] == 1;
    int64_t axis = along ? 0 : JOIN_NEW;
    if (status == 0 && !join_fits(values, count, axis, why, sizeof why))
        status = tool_error(ORT_ERROR_DATA, "--stack: %s; a batch needs one type and shape", why);
    if (status == 0)
        status = join_values(values, count, axis, &joined);
    if (status == 0)
        status = add_value(t, batch, ort_tensors_name(t->gathered[0], index), joined);
    ort_value_free(joined);
    free(values);
    return status;
}

/* Operations ran on each record, so that pictures of many sizes can become one batch. */
static int finish_batch(tool *t)
{
    ort_error err = {0};
    ort_tensors *batch = NULL;
    if (t->gathered_count == 0)
        return 0;
    if (ort_tensors_new(&batch, &err) != ORT_OK)
        return tool_fail(&err);
    int status = 0;
    for (size_t i = 0; i < ort_tensors_count(t->gathered[0]) && status == 0; i++)
        status = join_column(t, i, batch);
    for (size_t r = 0; r < t->gathered_count && status == 0; r++)
        status = add_sources(t, t->gathered[r], batch);
    if (status == 0)
        status = join_columns(t->gathered, t->gathered_count, batch);
    if (status == 0)
        status = finish_record(t, batch);
    ort_tensors_free(batch);
    return status;
}

int records_run(tool *t, const string_list *files)
{
    static const char *const only_stdin[] = {"-"};
    const char *const *paths = files->count > 0 ? files->items : only_stdin;
    size_t count = files->count > 0 ? files->count : 1;
    int status = 0, seen = 0;
    for (size_t i = 0; i < count; i++)
        seen += !strcmp(paths[i], "-");
    if (seen > 1)
        return tool_usage("standard input can be read once, '-' is given %d times", seen);
    if (seen == 1 && isatty(STDIN_FILENO))
        return tool_usage("no FILE given and standard input is a terminal");
    t->many = count > 1;
    progress p;
    progress_begin(&p, "files", t->settings.no_progress || t->settings.quiet);
    for (size_t i = 0; i < count && status == 0; i++) {
        if (t->many)
            progress_step(&p, i, count);
        status = read_path(t, paths[i]);
    }
    progress_end(&p);
    t->many = false; /* a batch has the names of its records */
    return status == 0 && t->stack ? finish_batch(t) : status;
}

int records_close(tool *t)
{
    for (size_t r = 0; r < t->gathered_count; r++)
        ort_tensors_free(t->gathered[r]);
    free(t->gathered);
    size_t count = t->failures.count;
    if (count == 0)
        return 0;
    char *list = tool_strdup(t->failures.items[0]);
    for (size_t i = 1; i < count; i++) {
        char *longer = tool_printf("%s; %s", list, t->failures.items[i]);
        free(list);
        list = longer;
    }
    int status = tool_error(ORT_ERROR_DATA, "%zu left out, %zu done: %s", count, t->records, list);
    free(list);
    string_list_release(&t->failures);
    return status;
}
