/* feed.c - where the inputs of each run come from: options, files, folders, a stream, a seed.
 *
 * Names win over position. A file whose names are no inputs fills the inputs that are still empty,
 * in graph order. Several files for one input are a stream of runs, or one batch with --stack.
 */
#include "common/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/join.h"

int feed_input_index(const ort_session *session, const char *name)
{
    size_t n = ort_session_input_count(session);
    const char **names = tool_alloc((n + 1) * sizeof *names);
    int index = -1;
    for (size_t i = 0; i < n && index < 0; i++) {
        names[i] = ort_session_input_name(session, i);
        index = !strcmp(names[i], name) ? (int)i : -1;
    }
    if (index < 0)
        tool_unknown_name("input", name, names, n);
    free(names);
    return index;
}

static int find_input(const ort_session *session, const char *name)
{
    for (size_t i = 0; i < ort_session_input_count(session); i++)
        if (!strcmp(ort_session_input_name(session, i), name))
            return (int)i;
    return -1;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return strcmp(path, "-") && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void list_purposes(feed *f)
{
    size_t n = 0;
    f->purposes = tool_alloc((f->count + 1) * sizeof *f->purposes);
    f->order = tool_alloc((f->count + 1) * sizeof *f->order);
    for (int defaults = 0; defaults < 2; defaults++) {
        for (size_t i = 0; i < f->count; i++)
            if (ort_session_input_optional(f->session, i) == (defaults == 1)) {
                f->order[n] = i;
                f->purposes[n++] = (ort_purpose){ort_session_input_name(f->session, i),
                                                 ort_session_input_type(f->session, i)};
            }
        f->required = defaults == 0 ? n : f->required;
    }
}

/* Values without names go to the inputs that are still open, in order. */
static ort_purpose *open_purposes(const feed *f)
{
    ort_purpose *list = tool_alloc((f->count + 1) * sizeof *list);
    size_t n = 0;
    for (int given = 0; given < 2; given++)
        for (size_t i = 0; i < f->count; i++) {
            bool has = i >= f->required || f->fixed[f->order[i]] != NULL;
            if (has == (given == 1))
                list[n++] = f->purposes[i];
        }
    return list;
}

/* Columns are those of a table; the library refuses other files. */
static void choose_columns(feed *f, ort_read_options *options)
{
    const feed_options *o = f->options;
    options->keep = o->ids != NULL && o->ids->count > 0 ? o->ids->items : NULL;
    options->drop = o->drops != NULL && o->drops->count > 0 ? o->drops->items : NULL;
    f->tables = true;
}

static int load(feed *f, const char *path, ort_tensors **tensors)
{
    ort_error err = {0};
    if (f->ahead != NULL) { /* this file's; a pipe can't be read again */
        *tensors = f->ahead;
        f->ahead = NULL;
        return 0;
    }
    bool folder = is_folder(path);
    ort_purpose *open = folder ? NULL : open_purposes(f);
    ort_read_options options = {.size = sizeof options,
                                .format = folder ? ORT_FORMAT_AUTO : f->options->format,
                                .purposes = folder ? f->purposes : open,
                                .purpose_count = f->count};
    if (!folder)
        choose_columns(f, &options);
    ort_status status = folder ? ort_tensors_load_set(path, "input", &options, tensors, &err)
                               : ort_tensors_load(path, &options, tensors, &err);
    free(open);
    if (status != ORT_OK)
        return tool_fail(&err);
    if (ort_tensors_count(*tensors) == 0 && !(folder && f->required == 0))
        return tool_error(ORT_ERROR_DATA, "%s: holds no tensor%s", path,
                          folder ? " (input_0.pb, ...)" : "");
    return 0;
}

/* Positional slots: required inputs without a value; optional ones only when names say so. */
static bool wants_value(const feed *f, ort_value *const *slots, size_t index)
{
    return slots[index] == NULL && f->fixed[index] == NULL &&
           !ort_session_input_optional(f->session, index);
}

/* One of the two would be lost. */
static int given_twice(const feed *f, size_t index, const char *label)
{
    const char *name = ort_session_input_name(f->session, index);
    return tool_usage("'%s' is given twice, the second time by %s: give it once "
                      "(ort-tensor FILE --select NAMES keeps the other values of a file)", name,
                      label);
}

/* Spread the values of one file over `slots` (borrowed references). */
static int assign(feed *f, const ort_tensors *tensors, const char *label, ort_value **slots)
{
    size_t count = ort_tensors_count(tensors), matched = 0, open = 0;
    for (size_t k = 0; k < count; k++) {
        int i = find_input(f->session, ort_tensors_name(tensors, k));
        if (i < 0)
            continue;
        if (f->fixed[i] != NULL)
            return given_twice(f, (size_t)i, label);
        slots[i] = ort_tensors_value(tensors, k);
        matched++;
    }
    if (matched > 0)
        return 0;
    for (size_t i = 0; i < f->count; i++)
        open += wants_value(f, slots, i);
    if (count > open)
        return tool_usage(
            "%s: holds %zu arrays, none named after an input, and the model waits for "
            "%zu; name them with -i NAME=FILE",
            label, count, open);
    for (size_t i = 0, k = 0; i < f->count && k < count; i++)
        if (wants_value(f, slots, i))
            slots[i] = ort_tensors_value(tensors, k++);
    return 0;
}

/* The value of an input in every run, which the feed shares. */
static int fix(feed *f, size_t index, ort_value *value)
{
    ort_error err = {0};
    if ((f->held == NULL && ort_tensors_new(&f->held, &err) != ORT_OK) ||
        ort_tensors_add(f->held, ort_session_input_name(f->session, index), value, &err) != ORT_OK)
        return tool_fail(&err);
    f->fixed[index] = value;
    return 0;
}

/* Names of files, and columns that go with the rows. */
static int hold_companions(feed *f, const ort_tensors *tensors)
{
    ort_error err = {0};
    for (size_t i = 0; f->held != NULL && i < ort_tensors_source_count(tensors); i++)
        if (ort_tensors_add_source(f->held, ort_tensors_source(tensors, i), &err) != ORT_OK)
            return tool_fail(&err);
    for (size_t i = 0; f->held != NULL && i < ort_tensors_column_count(tensors); i++)
        if (ort_tensors_add_column(f->held, ort_tensors_column_name(tensors, i),
                                   ort_tensors_column(tensors, i), &err) != ORT_OK)
            return tool_fail(&err);
    return 0;
}

/* Keep what a file gave as fixed inputs. */
static int fix_file(feed *f, const char *path)
{
    ort_tensors *tensors = NULL;
    ort_value **slots = tool_alloc((f->count + 1) * sizeof *slots);
    int status = load(f, path, &tensors);
    if (status == 0)
        status = assign(f, tensors, path, slots);
    for (size_t i = 0; i < f->count && status == 0; i++)
        if (slots[i] != NULL)
            status = fix(f, i, slots[i]);
    if (status == 0)
        status = hold_companions(f, tensors);
    free(slots);
    ort_tensors_free(tensors);
    return status;
}

/* Text that is a value by itself: a number, a list, a string in quotes, an object, true, null. */
static bool is_literal(const char *text)
{
    static const char *const words[] = {"true", "false", "null", "nan", "inf", "-inf"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(text, words[i]))
            return true;
    char *end;
    strtod(text, &end);
    return strchr("[{\"", text[0]) != NULL ? text[0] != '\0' : end != text && *end == '\0';
}

static int read_literal(const feed *f, size_t index, const char *text, ort_tensors **tensors)
{
    ort_error err = {0};
    const char *name = ort_session_input_name(f->session, index);
    bool word = strstr(text, "nan") == text || strstr(text, "inf") != NULL;
    char *label = tool_printf("-i %s=%s", name, text);
    char *json = word && text[0] != '"' && text[0] != '[' && text[0] != '{'
                     ? tool_printf("\"%s\"", text)
                     : tool_strdup(text);
    const ort_purpose purpose = {name, ort_session_input_type(f->session, index)};
    ort_read_options options = {.size = sizeof options, .format = ORT_FORMAT_JSON,
                                .label = label, .purposes = &purpose, .purpose_count = 1};
    FILE *stream = fmemopen(json, strlen(json), "rb");
    int status = stream == NULL ? tool_error(ORT_ERROR_MEMORY, "out of memory") : 0;
    if (status == 0 && ort_tensors_read(stream, &options, tensors, &err) != ORT_OK)
        status = tool_fail(&err);
    if (stream != NULL)
        fclose(stream);
    free(label);
    free(json);
    return status;
}

/* A table by name is that input's value as a whole: its header names nothing. */
static int load_named(feed *f, size_t index, const char *path, ort_tensors **tensors)
{
    ort_error err = {0};
    struct stat st;
    if (strcmp(path, "-") && stat(path, &st) != 0 && is_literal(path))
        return read_literal(f, index, path, tensors);
    if (is_folder(path))
        return load(f, path, tensors);
    ort_format format = f->options->format != ORT_FORMAT_AUTO ? f->options->format
                                                              : ort_format_of_path(path);
    bool table = ort_format_traits(format, NULL) & ORT_FORMAT_ROWS;
    const ort_purpose purpose = {table ? "" : ort_session_input_name(f->session, index),
                                 ort_session_input_type(f->session, index)};
    ort_read_options options = {.size = sizeof options, .format = f->options->format,
                                .purposes = &purpose, .purpose_count = 1};
    if (table)
        choose_columns(f, &options);
    return ort_tensors_load(path, &options, tensors, &err) == ORT_OK ? 0 : tool_fail(&err);
}

static int fix_named(feed *f, const char *name, const char *path)
{
    ort_tensors *tensors = NULL;
    int index = feed_input_index(f->session, name);
    if (index < 0)
        return EXIT_USAGE;
    if (f->fixed[index] != NULL)
        return given_twice(f, (size_t)index, path);
    int status = load_named(f, (size_t)index, path, &tensors);
    if (status != 0)
        return status;
    int at = ort_tensors_count(tensors) == 1 ? 0 : -1;
    for (size_t k = 0; k < ort_tensors_count(tensors); k++)
        if (!strcmp(ort_tensors_name(tensors, k), name))
            at = (int)k;
    if (at < 0)
        status = tool_usage("%s: holds several arrays and none is named '%s'", path, name);
    else
        status = fix(f, (size_t)index, ort_tensors_value(tensors, (size_t)at));
    if (status == 0)
        status = hold_companions(f, tensors);
    ort_tensors_free(tensors);
    return status;
}

/* The same words once more say nothing new. */
static bool is_repeated(const string_list *items, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (!strcmp(items->items[i], items->items[index]))
            return true;
    return false;
}

/* -i NAME=FILE, -i FILE, -i FOLDER. An existing file whose name holds '=' is taken as a file. */
static int fix_option(feed *f, size_t item)
{
    const char *text = f->options->inputs->items[item];
    char *name;
    const char *path;
    struct stat st;
    if (stat(text, &st) == 0 || !split_assignment(text, &name, &path))
        return fix_file(f, text);
    int status = is_repeated(f->options->inputs, item) ? 0 : fix_named(f, name, path);
    free(name);
    return status;
}

static size_t open_inputs(const feed *f)
{
    size_t open = 0;
    for (size_t i = 0; i < f->count; i++)
        open += f->fixed[i] == NULL && !ort_session_input_optional(f->session, i);
    return open;
}

static int first_open(const feed *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->fixed[i] == NULL && !ort_session_input_optional(f->session, i))
            return (int)i;
    return -1;
}

/* One batch of several files, along the first axis where they have as many as the model wants. */
static int stack_files(feed *f, const ort_session *session, const string_list *files)
{
    char why[600] = "";
    int64_t dims[16];
    int status = 0, target = first_open(f);
    if (target < 0)
        return tool_usage("--stack: every input already has a value");
    ort_tensors **tensors = tool_alloc(files->count * sizeof *tensors);
    ort_value **values = tool_alloc(files->count * sizeof *values), *batch = NULL;
    for (size_t k = 0; k < files->count && status == 0; k++) {
        status = load(f, files->items[k], &tensors[k]);
        values[k] = status == 0 ? ort_tensors_value(tensors[k], 0) : NULL;
        if (status == 0 && ort_tensors_count(tensors[k]) > 1)
            status = tool_error(ORT_ERROR_DATA, "--stack: %s: holds %zu values, one can be stacked",
                                files->items[k], ort_tensors_count(tensors[k]));
    }
    int rank = ort_session_input_dims(session, (size_t)target, dims, 16);
    int64_t axis = status == 0 && rank > 0 && rank == ort_value_rank(values[0]) ? 0 : JOIN_NEW;
    if (status == 0 && !join_fits(values, files->count, axis, why, sizeof why))
        status = tool_error(ORT_ERROR_DATA, "--stack: the files can't be one batch: %s", why);
    if (status == 0)
        status = join_values(values, files->count, axis, &batch);
    if (status == 0)
        status = fix(f, (size_t)target, batch);
    if (status == 0)
        status = join_columns(tensors, files->count, f->held);
    ort_value_free(batch);
    for (size_t k = 0; k < files->count; k++)
        ort_tensors_free(tensors[k]);
    free(tensors);
    free(values);
    return status;
}

static int open_stream(feed *f, const char *path)
{
    f->label = !strcmp(path, "-") ? "standard input" : path;
    f->stream = !strcmp(path, "-") ? stdin : fopen(path, "rb");
    if (f->stream == NULL) {
        return tool_error(ORT_ERROR_IO, "%s: can't be opened: %s", path, strerror(errno));
    }
    return 0;
}

/* Does the first of several files hold all that a run needs? Then each is a run. */
static int are_records(feed *f, const string_list *files, bool *records)
{
    ort_tensors *tensors = NULL;
    *records = open_inputs(f) <= 1;
    if (*records || !strcmp(files->items[0], "-"))
        return 0;
    ort_value **slots = tool_alloc((f->count + 1) * sizeof *slots);
    int status = load(f, files->items[0], &tensors);
    if (status == 0)
        status = assign(f, tensors, files->items[0], slots);
    *records = status == 0;
    for (size_t i = 0; i < f->count; i++)
        *records = *records && !wants_value(f, slots, i);
    free(slots);
    f->ahead = tensors;
    return status;
}

static int open_files(feed *f, const string_list *files)
{
    bool records = false;
    int status = files->count > 1 ? are_records(f, files, &records) : 0;
    if (records)
        f->files = *files;
    for (size_t i = 0; i < files->count && status == 0 && !records; i++)
        status = fix_file(f, files->items[i]);
    f->once = !records;
    return status;
}

/* --id and --drop without a table would do nothing. */
static int check_columns(const feed *f)
{
    const feed_options *o = f->options;
    bool chosen = (o->ids != NULL && o->ids->count > 0) || (o->drops != NULL && o->drops->count);
    if (!chosen || f->tables || f->stream != NULL || f->files.count > 0)
        return 0;
    return tool_usage("--id and --drop choose columns of a table (csv), and no table is read");
}

static int open_source(feed *f, const string_list *files)
{
    const feed_options *o = f->options;
    if (o->stream) {
        f->streams = *files;
        f->next_stream = 1;
        return open_stream(f, files->count > 0 ? files->items[0] : "-");
    }
    if (o->stack && files->count > 0) {
        f->once = true;
        return stack_files(f, f->session, files);
    }
    return open_files(f, files);
}

int feed_open(feed *f, const feed_options *o, const ort_session *session, const string_list *files)
{
    int64_t seed = 0;
    int status = 0;
    memset(f, 0, sizeof *f);
    f->options = o;
    f->session = session;
    f->count = ort_session_input_count(session);
    f->fixed = tool_alloc((f->count + 1) * sizeof *f->fixed);
    list_purposes(f);
    if (o->random != NULL) {
        if (option_parse_int("--random", o->random, 0, INT64_MAX, &seed) != 0)
            return EXIT_USAGE;
        f->random = true;
        f->seed = (uint64_t)seed;
    }
    for (size_t i = 0; i < o->inputs->count && status == 0; i++)
        status = fix_option(f, i);
    if (status == 0)
        status = open_source(f, files);
    return status == 0 ? check_columns(f) : status;
}

static int add_random(feed *f, ort_value **inputs)
{
    ort_error err = {0};
    ort_value **made = tool_alloc((f->count + 1) * sizeof *made);
    if (ort_session_random_inputs(f->session, f->seed, made, f->count, &err) != ORT_OK) {
        free(made);
        return tool_fail(&err);
    }
    int status = 0;
    for (size_t i = 0; i < f->count; i++) {
        if (inputs[i] == NULL && f->fixed[i] == NULL && made[i] != NULL && status == 0) {
            inputs[i] = made[i];
            status = fix(f, i, made[i]);
        }
        ort_value_free(made[i]);
    }
    free(made);
    return status;
}

/* The same values in every run: they are made up once. */
static int fill(feed *f, ort_value **inputs)
{
    bool missing = false;
    for (size_t i = 0; i < f->count; i++)
        missing = missing || (inputs[i] == NULL && !ort_session_input_optional(f->session, i));
    return f->random && missing ? add_random(f, inputs) : 0;
}

/* The next record of the open stream, or of the files behind it; none at the end. */
static int next_record(feed *f)
{
    ort_error err = {0};
    for (int status = 0; status == 0;) {
        ort_purpose *open = open_purposes(f);
        ort_read_options options = {.size = sizeof options, .format = f->options->format,
                                    .label = f->label, .purposes = open,
                                    .purpose_count = f->count};
        choose_columns(f, &options);
        ort_status read = ort_tensors_read(f->stream, &options, &f->record, &err);
        free(open);
        if (read != ORT_OK)
            return tool_fail(&err);
        if (f->record != NULL || f->next_stream >= f->streams.count)
            return 0;
        if (f->stream != stdin)
            fclose(f->stream);
        status = open_stream(f, f->streams.items[f->next_stream++]);
        if (status != 0)
            return status;
    }
    return 0;
}

const ort_tensors *feed_record(const feed *f)
{
    return f->record != NULL ? f->record : f->held;
}

int feed_next(feed *f, ort_value **inputs, bool *end)
{
    int status = 0;
    *end = f->done;
    if (f->done)
        return 0;
    for (size_t i = 0; i < f->count; i++)
        inputs[i] = f->fixed[i];
    if (f->stream != NULL || f->files.count > 0) {
        ort_tensors_free(f->record);
        f->record = NULL;
    }
    if (f->stream != NULL) {
        status = next_record(f);
        *end = f->done = f->record == NULL;
        if (status == 0 && !f->done)
            status = assign(f, f->record, f->label, inputs);
        return status == 0 && !f->done ? fill(f, inputs) : status;
    }
    if (f->files.count > 0) {
        const char *path = f->files.items[f->next_file++];
        f->done = f->next_file == f->files.count;
        if ((status = load(f, path, &f->record)) != 0)
            return status;
        status = assign(f, f->record, path, inputs);
        return status == 0 ? fill(f, inputs) : status;
    }
    f->done = f->once;
    return fill(f, inputs);
}

void feed_close(feed *f)
{
    ort_tensors_free(f->ahead);
    ort_tensors_free(f->record);
    ort_tensors_free(f->held);
    free(f->fixed);
    free(f->purposes);
    free(f->order);
    if (f->stream != NULL && f->stream != stdin)
        fclose(f->stream);
}
