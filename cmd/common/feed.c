/* feed.c - where the inputs of each run come from: options, files, folders, a stream, a seed.
 *
 * Names win over position. A file whose names are no inputs fills the inputs that are still empty,
 * in graph order. Several files for one input are a stream of runs, or one batch with --stack.
 */
#include "common/feed_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/folder.h"
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

/* As it is, or as the command line changes what files hold. */
static int fix_value(feed *f, size_t index, const ort_tensors *from, const char *path, bool literal,
                     ort_value *value)
{
    ort_value *changed = NULL;
    int status = literal ? 0 : feed_change(f, from, path, value, &changed);
    if (status == 0)
        status = feed_fix(f, index, changed != NULL ? changed : value);
    ort_value_free(changed);
    return status;
}

/* Keep what a file gave as fixed inputs. */
static int fix_file(feed *f, const char *path)
{
    ort_tensors *tensors = NULL;
    ort_value **slots = tool_alloc((f->count + 1) * sizeof *slots);
    int status = feed_load(f, path, &tensors);
    if (status == 0)
        status = feed_assign(f, tensors, path, slots);
    for (size_t i = 0; i < f->count && status == 0; i++)
        if (slots[i] != NULL)
            status = fix_value(f, i, tensors, path, false, slots[i]);
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

static int load_named(feed *f, size_t index, const char *path, bool *literal,
                      ort_tensors **tensors)
{
    struct stat st;
    *literal = strcmp(path, "-") && stat(path, &st) != 0 && is_literal(path);
    return *literal ? read_literal(f, index, path, tensors)
                    : feed_load_named(f, index, path, tensors);
}

/* A folder of files: one a run. */
static int add_column(feed *f, size_t index, const char *path)
{
    feed_column *columns = tool_alloc((f->column_count + 1) * sizeof *columns);
    for (size_t i = 0; i < f->column_count; i++)
        columns[i] = f->columns[i];
    free(f->columns);
    f->columns = columns;
    columns[f->column_count] = (feed_column){.input = index};
    return folder_list(path, f->count, f->options->format, &columns[f->column_count++].files);
}

static int fix_named(feed *f, const char *name, const char *path)
{
    ort_tensors *tensors = NULL;
    ort_value *value = NULL;
    bool literal = false;
    int index = feed_input_index(f->session, name);
    if (index < 0)
        return EXIT_USAGE;
    if (f->fixed[index] != NULL)
        return feed_given_twice(f, (size_t)index, path);
    if (folder_is(path) && !folder_is_set(path, f->count))
        return add_column(f, (size_t)index, path);
    int status = load_named(f, (size_t)index, path, &literal, &tensors);
    if (status != 0)
        return status;
    status = feed_pick(f, tensors, (size_t)index, path, &value);
    if (status == 0)
        status = fix_value(f, (size_t)index, tensors, path, literal, value);
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
    bool file = stat(text, &st) == 0 || !split_assignment(text, &name, &path);
    if (file && folder_is(text) && !folder_is_set(text, f->count)) {
        string_list_add(&f->sources, text);
        return 0;
    }
    if (file)
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
        status = feed_load(f, files->items[k], &tensors[k]);
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
        status = feed_fix(f, (size_t)target, batch);
    if (status == 0)
        status = join_columns(tensors, files->count, f->held);
    ort_value_free(batch);
    for (size_t k = 0; k < files->count; k++)
        ort_tensors_free(tensors[k]);
    free(tensors);
    free(values);
    return status;
}

/* Does the first of several files hold all that a run needs? Then each is a run. */
static int are_records(feed *f, const string_list *files, bool *records)
{
    ort_tensors *tensors = NULL;
    *records = open_inputs(f) <= 1;
    if (*records || !strcmp(files->items[0], "-"))
        return 0;
    ort_value **slots = tool_alloc((f->count + 1) * sizeof *slots);
    int status = feed_load(f, files->items[0], &tensors);
    if (status == 0)
        status = feed_assign(f, tensors, files->items[0], slots);
    *records = status == 0;
    for (size_t i = 0; i < f->count; i++)
        *records = *records && !feed_wants_value(f, slots, i);
    free(slots);
    f->ahead = tensors;
    return status;
}

static int open_files(feed *f, const string_list *files, bool folders)
{
    bool records = folders || f->options->samples;
    int status = files->count > 1 && !records ? are_records(f, files, &records) : 0;
    for (size_t i = 0; i < files->count && status == 0; i++) {
        if (records)
            string_list_add(&f->files, files->items[i]);
        else
            status = fix_file(f, files->items[i]);
    }
    f->once = f->files.count == 0;
    return status;
}

/* The files of folders in their place. */
static int expand(const feed *f, const string_list *paths, string_list *files, bool *folders)
{
    int status = 0;
    for (size_t i = 0; i < paths->count && status == 0; i++) {
        const char *path = paths->items[i];
        if (!folder_is(path) || (!f->options->samples && folder_is_set(path, f->count))) {
            string_list_add(files, path);
            continue;
        }
        *folders = true;
        status = folder_list(path, f->count, f->options->format, files);
    }
    return status;
}

/* Where only folders of one input each say what the runs are, the first of them counts. */
static void lead_by_column(feed *f)
{
    if (!f->once || f->column_count == 0)
        return;
    f->once = false;
    f->target = (int)f->columns[0].input;
    f->files = f->columns[0].files;
    f->column_count--;
    memmove(f->columns, f->columns + 1, f->column_count * sizeof *f->columns);
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

static int open_expanded(feed *f, const string_list *files, bool folders)
{
    const feed_options *o = f->options;
    if (o->stream && !o->samples) {
        for (size_t i = 0; i < files->count; i++)
            string_list_add(&f->streams, files->items[i]);
        f->next_stream = 1;
        return feed_open_stream(f, files->count > 0 ? f->streams.items[0] : "-");
    }
    if (o->stack && files->count > 0) {
        f->once = true;
        return stack_files(f, f->session, files);
    }
    int status = open_files(f, files, folders);
    if (status == 0)
        lead_by_column(f);
    return status;
}

static int open_source(feed *f, const string_list *files)
{
    string_list all = {0};
    bool folders = false;
    int status = expand(f, &f->sources, &all, &folders);
    if (status == 0)
        status = expand(f, files, &all, &folders);
    if (status == 0)
        status = open_expanded(f, &all, folders);
    string_list_release(&all);
    return status;
}

int feed_open(feed *f, const feed_options *o, const ort_session *session, const string_list *files)
{
    int64_t seed = 0;
    int status = 0;
    memset(f, 0, sizeof *f);
    f->options = o;
    f->session = session;
    f->count = ort_session_input_count(session);
    f->target = -1;
    f->fixed = tool_alloc((f->count + 1) * sizeof *f->fixed);
    f->changed = tool_alloc((f->count + 1) * sizeof *f->changed);
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
    if (status == 0 && f->once && o->parts > 0)
        status = tool_usage("--shard takes some of many runs: of a folder, of several files, of a "
                            "--stream; here is one");
    return status == 0 ? check_columns(f) : status;
}
