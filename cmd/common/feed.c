/* feed.c - where the inputs of each run come from: options, files, folders, a stream, a seed.
 *
 * Names win over position. A file whose names are no inputs fills the inputs that are still empty,
 * in graph order. Several files for one input are a stream of runs, or one batch with --stack.
 */
#include "common/feed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int feed_input_index(const ort_session *session, const char *name)
{
    char list[1500] = "";
    size_t n = ort_session_input_count(session);
    for (size_t i = 0; i < n; i++)
        if (strcmp(ort_session_input_name(session, i), name) == 0)
            return (int)i;
    for (size_t i = 0; i < n && strlen(list) < sizeof list - 200; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s'%s'", i > 0 ? ", " : "",
                 ort_session_input_name(session, i));
    tool_usage("the model has no input '%s'; its inputs are %s", name, n > 0 ? list : "none");
    return -1;
}

static int find_input(const ort_session *session, const char *name)
{
    for (size_t i = 0; i < ort_session_input_count(session); i++)
        if (strcmp(ort_session_input_name(session, i), name) == 0)
            return (int)i;
    return -1;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int load(const char *path, ort_tensors **tensors)
{
    ort_error err = {0};
    ort_read_options options = ORT_READ_OPTIONS_INIT;
    ort_status status = is_folder(path)
                            ? ort_tensors_load_folder(path, "input", tensors, &err)
                            : ort_tensors_load(path, &options, tensors, &err);
    if (status != ORT_OK)
        return tool_fail(&err);
    if (*tensors == NULL || ort_tensors_count(*tensors) == 0) {
        return tool_error(ORT_ERROR_DATA, "%s: holds no tensor", path);
    }
    return 0;
}

/* Positional slots: required inputs without a value; optional ones only when names say so. */
static bool wants_value(const feed *f, ort_value *const *slots, size_t index)
{
    return slots[index] == NULL && f->fixed[index] == NULL &&
           !ort_session_input_optional(f->session, index);
}

/* Spread the values of one file over `slots` (borrowed references). */
static int assign(feed *f, const ort_tensors *tensors, const char *label, ort_value **slots)
{
    size_t count = ort_tensors_count(tensors), matched = 0, open = 0;
    for (size_t k = 0; k < count; k++) {
        int i = find_input(f->session, ort_tensors_name(tensors, k));
        if (i >= 0) {
            slots[i] = ort_tensors_value(tensors, k);
            matched++;
        }
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

/* Keep what a file gave as fixed inputs. */
static int fix_file(feed *f, const char *path)
{
    ort_tensors *tensors = NULL;
    ort_value **slots = tool_alloc((f->count + 1) * sizeof *slots);
    int status = load(path, &tensors);
    if (status == 0)
        status = assign(f, tensors, path, slots);
    for (size_t i = 0; i < f->count && status == 0; i++)
        if (slots[i] != NULL)
            status = fix(f, i, slots[i]);
    free(slots);
    ort_tensors_free(tensors);
    return status;
}

static int fix_named(feed *f, const char *name, const char *path)
{
    ort_tensors *tensors = NULL;
    int index = feed_input_index(f->session, name);
    if (index < 0)
        return EXIT_USAGE;
    int status = load(path, &tensors);
    if (status != 0)
        return status;
    ort_value *value = NULL;
    for (size_t k = 0; k < ort_tensors_count(tensors); k++)
        if (strcmp(ort_tensors_name(tensors, k), name) == 0)
            value = ort_tensors_value(tensors, k);
    if (value == NULL && ort_tensors_count(tensors) == 1)
        value = ort_tensors_value(tensors, 0);
    if (value == NULL)
        status = tool_usage("%s: holds several arrays and none is named '%s'", path, name);
    else
        status = fix(f, (size_t)index, value);
    ort_tensors_free(tensors);
    return status;
}

/* -i NAME=FILE, -i FILE, -i FOLDER. An existing file whose name holds '=' is taken as a file. */
static int fix_option(feed *f, const char *text)
{
    char *name;
    const char *path;
    struct stat st;
    if (stat(text, &st) == 0 || !split_assignment(text, &name, &path))
        return fix_file(f, text);
    int status = fix_named(f, name, path);
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

/* One batch of several files along a new or the first axis. */
static int stack_files(feed *f, const ort_session *session, const string_list *files)
{
    ort_error err = {0};
    ort_tensors *first = NULL;
    ort_value *batch = NULL;
    int status = 0, target = -1;
    for (size_t i = 0; i < f->count && target < 0; i++)
        if (f->fixed[i] == NULL && !ort_session_input_optional(session, i))
            target = (int)i;
    if (target < 0)
        return tool_usage("--stack: every input already has a value");
    size_t bytes = 0;
    for (size_t k = 0; k < files->count && status == 0; k++) {
        ort_tensors *tensors = NULL;
        if ((status = load(files->items[k], &tensors)) != 0)
            break;
        ort_value *v = ort_tensors_value(tensors, 0);
        if (k == 0) {
            int64_t dims[16], want[16];
            int rank = ort_value_rank(v);
            int wanted = ort_session_input_dims(session, (size_t)target, want, 16);
            bool joined = wanted == rank && rank > 0;
            first = tensors;
            if (rank >= 15) {
                status = tool_usage("--stack: rank %d is too large", rank);
                break;
            }
            dims[0] = (int64_t)files->count * (joined ? ort_value_dims(v)[0] : 1);
            memcpy(dims + 1, ort_value_dims(v) + (joined ? 1 : 0),
                   (size_t)(rank - (joined ? 1 : 0)) * sizeof *dims);
            if (ort_value_new_tensor(ort_value_dtype(v), rank + (joined ? 0 : 1), dims, &batch,
                                     &err) != ORT_OK) {
                status = tool_fail(&err);
                break;
            }
            bytes = ort_value_bytes(v);
        } else if (ort_value_bytes(v) != bytes ||
                   ort_value_dtype(v) != ort_value_dtype(batch)) {
            status = tool_error(ORT_ERROR_DATA,
                                "%s: differs in type or size from %s, they can't be one batch",
                                files->items[k], files->items[0]);
        }
        if (status == 0)
            memcpy((char *)ort_value_data(batch) + k * bytes, ort_value_data(v), bytes);
        if (tensors != first)
            ort_tensors_free(tensors);
    }
    ort_tensors_free(first);
    if (status == 0 && batch != NULL)
        status = fix(f, (size_t)target, batch);
    ort_value_free(batch);
    return status;
}

static int open_stream(feed *f, const char *path)
{
    f->label = strcmp(path, "-") == 0 ? "standard input" : path;
    f->stream = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (f->stream == NULL) {
        return tool_error(ORT_ERROR_IO, "%s: can't be opened", path);
    }
    return 0;
}

int feed_open(feed *f, const feed_options *o, const ort_session *session, const string_list *files)
{
    int64_t seed = 0;
    int status = 0;
    memset(f, 0, sizeof *f);
    f->session = session;
    f->count = ort_session_input_count(session);
    f->fixed = tool_alloc((f->count + 1) * sizeof *f->fixed);
    if (o->random != NULL) {
        if (option_parse_int("--random", o->random, 0, INT64_MAX, &seed) != 0)
            return EXIT_USAGE;
        f->random = true;
        f->seed = (uint64_t)seed;
    }
    for (size_t i = 0; i < o->inputs->count && status == 0; i++)
        status = fix_option(f, o->inputs->items[i]);
    if (status != 0)
        return status;

    if (o->stream) {
        if (files->count > 1)
            return tool_usage("--stream reads one stream, %zu files are given", files->count);
        return open_stream(f, files->count == 1 ? files->items[0] : "-");
    }
    if (o->stack && files->count > 0) {
        f->once = true;
        return stack_files(f, session, files);
    }
    if (files->count > 1 && open_inputs(f) <= 1) {
        f->files = *files;
        return 0;
    }
    for (size_t i = 0; i < files->count && status == 0; i++)
        status = fix_file(f, files->items[i]);
    f->once = true;
    return status;
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

int feed_next(feed *f, ort_value **inputs, bool *end)
{
    ort_error err = {0};
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
        ort_read_options options = {.size = sizeof options, .label = f->label};
        if (ort_tensors_read(f->stream, &options, &f->record, &err) != ORT_OK)
            return tool_fail(&err);
        *end = f->done = f->record == NULL;
        if (!f->done)
            status = assign(f, f->record, f->label, inputs);
        return status == 0 && !f->done ? fill(f, inputs) : status;
    }
    if (f->files.count > 0) {
        const char *path = f->files.items[f->next_file++];
        f->done = f->next_file == f->files.count;
        if ((status = load(path, &f->record)) != 0)
            return status;
        status = assign(f, f->record, path, inputs);
        return status == 0 ? fill(f, inputs) : status;
    }
    f->done = f->once;
    return fill(f, inputs);
}

void feed_close(feed *f)
{
    ort_tensors_free(f->record);
    ort_tensors_free(f->held);
    free(f->fixed);
    if (f->stream != NULL && f->stream != stdin)
        fclose(f->stream);
}
