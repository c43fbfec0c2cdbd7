/* sink.c - where outputs go: files that appear whole, a stream of records, or text on a terminal.
 * What several runs write to a file is gathered (gather.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/formats.h"
#include "common/screen.h"
#include "run.h"

static int unknown_output(const ort_session *session, const char *name)
{
    size_t n = ort_session_output_count(session);
    const char **names = tool_alloc((n + 1) * sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = ort_session_output_name(session, i);
    int status = tool_unknown_name("output", name, names, n);
    free(names);
    return status;
}

static int choose(sink *s)
{
    const string_list *names = &s->options->outputs;
    size_t n = names->count > 0 ? names->count : ort_session_output_count(s->session);
    s->wanted = tool_alloc((n + 1) * sizeof *s->wanted);
    for (size_t i = 0; i < n; i++) {
        expression_parse(names->count > 0 ? names->items[i]
                                          : ort_session_output_name(s->session, i),
                         &s->wanted[i]);
        s->wanted_count++;
        if (find_output(s->session, s->wanted[i].name) < 0)
            return unknown_output(s->session, s->wanted[i].name);
    }
    return 0;
}

/* "NAME=FILE" when NAME is an output, else the whole text is a file. */
static const char *target_path(const sink *s, const char *text, const char **output)
{
    char *name;
    const char *path;
    *output = NULL;
    if (!split_assignment(text, &name, &path))
        return text;
    for (size_t i = 0; i < s->wanted_count; i++)
        if (!strcmp(s->wanted[i].text, name))
            *output = s->wanted[i].text;
    if (*output == NULL && find_output(s->session, name) >= 0)
        *output = ort_session_output_name(s->session, (size_t)find_output(s->session, name));
    free(name);
    return *output != NULL ? path : text;
}

static ort_write_options write_options(const sink *s)
{
    ort_write_options options = ORT_WRITE_OPTIONS_INIT;
    formats_choose(s->options->format, &options);
    options.plain = s->options->plain;
    options.sources = s->options->names;
    options.goes_on = s->written > 0;
    return options;
}

/* A bad name of a file is found before the runs, not after. */
static int check_target(sink *s, const char *text)
{
    ort_error err = {0};
    const char *output;
    const char *path = target_path(s, text, &output);
    ort_write_options options = write_options(s);
    char *name;
    const char *rest;
    if (output == NULL && access(path, F_OK) != 0 && split_assignment(path, &name, &rest)) {
        int status = unknown_output(s->session, name);
        free(name);
        return status;
    }
    if (ort_tensors_check_path(path, &options, &err) != ORT_OK)
        return tool_fail(&err);
    ort_format format = options.format != ORT_FORMAT_AUTO ? options.format
                                                          : ort_format_of_path(path);
    if (s->many && ort_format_traits(format, path) & ORT_FORMAT_SINGLE)
        return tool_usage("%s: one %s can't hold the records of several runs; write .npz, or a "
                          "stream (-o -) that ort-tensor makes files of", path,
                          ort_format_name(format));
    s->to_stdout = s->to_stdout || !strcmp(path, "-");
    return 0;
}

/* The second of two would replace the first; a device or a pipe takes both. */
static int check_twice(const sink *s, size_t index)
{
    const string_list *saves = &s->options->saves;
    const char *output, *path = target_path(s, saves->items[index], &output);
    if (strcmp(saves->items[index], "-") &&
        (!strcmp(path, "-") || whole_file_is_special(path)))
        return 0;
    if (s->options->report != NULL && !strcmp(path, s->options->report))
        return tool_usage("'%s' is named by -o and by --report, and can't be both", path);
    for (size_t i = 0; i < index; i++)
        if (!strcmp(path, target_path(s, saves->items[i], &output)))
            return tool_usage("-o: '%s' is named twice, and one file can't be both; -o NAME=FILE "
                              "names one for each output, -o FILE.npz holds all", path);
    return 0;
}

/* --id is for an output that can hold a column beside values. */
static int check_ids(const sink *s)
{
    const string_list *saves = &s->options->saves;
    ort_write_options options = write_options(s);
    bool carried = s->print || (saves->count == 0 && s->to_stdout);
    for (size_t i = 0; i < saves->count + (saves->count == 0); i++) {
        const char *output, *path = saves->count ? target_path(s, saves->items[i], &output) : "-";
        ort_format format = options.format != ORT_FORMAT_AUTO ? options.format
                            : !strcmp(path, "-")          ? ORT_FORMAT_NPZ
                                                          : ort_format_of_path(path);
        bool holds = ort_format_traits(format, NULL) & ORT_FORMAT_COLUMNS;
        carried = saves->count > 0 ? carried || holds : carried && holds;
    }
    char holders[200];
    if (s->options->ids.count == 0 || carried)
        return 0;
    return tool_usage("--id passes columns through to an output, and none is written that can hold "
                      "them: %s can", ort_format_list(ORT_FORMAT_COLUMNS, holders, sizeof holders));
}

int sink_open(sink *s, const run_options *o, const ort_session *session, bool many, bool report)
{
    memset(s, 0, sizeof *s);
    s->options = o;
    s->session = session;
    s->many = many;
    int status = choose(s);
    if (status != 0)
        return status;
    if (o->concat != NULL &&
        option_parse_int("--concat", o->concat, -16, 16, &s->concat_axis) != 0)
        return EXIT_USAGE;
    s->gathered = tool_alloc((o->saves.count + 1) * sizeof *s->gathered);
    s->direct = tool_alloc((o->saves.count + 1) * sizeof(ort_out_file *));
    for (size_t i = 0; i < o->saves.count; i++)
        if ((status = check_target(s, o->saves.items[i])) != 0 ||
            (status = check_twice(s, i)) != 0)
            return status;
    if (o->saves.count == 0 && !report) {
        s->print = isatty(STDOUT_FILENO) && !o->settings.force;
        s->to_stdout = !s->print;
    }
    if (s->to_stdout && !tool_may_write_binary(stdout, o->settings.force))
        return EXIT_USAGE;
    return check_ids(s);
}

bool sink_wants(const sink *s, size_t output)
{
    const char *name = ort_session_output_name(s->session, output), *other;
    bool written = s->print || s->to_stdout || s->options->saves.count > 0;
    for (size_t i = 0; written && i < s->wanted_count; i++)
        if (!strcmp(s->wanted[i].name, name))
            return true;
    for (size_t i = 0; i < s->options->saves.count; i++) {
        target_path(s, s->options->saves.items[i], &other);
        if (other != NULL && !strcmp(other, name))
            return true;
    }
    return false;
}

/* A column of the same name as an output would hide it. */
static int add_column(const sink *s, ort_tensors *list, size_t index)
{
    ort_error err = {0};
    const char *name = ort_tensors_column_name(s->from, index);
    for (size_t i = 0; i < ort_tensors_count(list); i++)
        if (!strcmp(ort_tensors_name(list, i), name))
            return tool_usage("--id: column '%s' has the name of an output; give it another one in "
                              "the table, or --drop it", name);
    return ort_tensors_add_column(list, name, ort_tensors_column(s->from, index), &err) == ORT_OK
               ? 0
               : tool_fail(&err);
}

/* Names of files, and columns, go from what a run was made of to what it made. */
static int add_companions(const sink *s, ort_tensors *list)
{
    ort_error err = {0};
    size_t count = ort_tensors_source_count(s->from);
    for (size_t i = 0; i < count; i++)
        if (ort_tensors_add_source(list, ort_tensors_source(s->from, i), &err) != ORT_OK)
            return tool_fail(&err);
    if (count == 0 && s->path != NULL && ort_tensors_add_source(list, s->path, &err) != ORT_OK)
        return tool_fail(&err);
    int status = 0;
    for (size_t i = 0; i < ort_tensors_column_count(s->from) && status == 0; i++)
        status = add_column(s, list, i);
    return status;
}

static int collect(const sink *s, ort_value *const *outputs, const char *only, ort_tensors **list)
{
    ort_error err = {0};
    int status = 0;
    if (ort_tensors_new(list, &err) != ORT_OK)
        return tool_fail(&err);
    bool found = false;
    for (size_t i = 0; i < s->wanted_count && status == 0; i++) {
        ort_value *value = NULL;
        if (only != NULL && strcmp(only, s->wanted[i].text))
            continue;
        found = true;
        status = expression_value(&s->wanted[i], s->session, outputs, &value);
        if (status == 0 && ort_tensors_add(*list, s->wanted[i].text, ort_value_item(value, 0),
                                           &err) != ORT_OK)
            status = tool_fail(&err);
        ort_value_free(value);
    }
    if (status == 0 && !found && only != NULL &&
        ort_tensors_add(*list, only, outputs[find_output(s->session, only)], &err) != ORT_OK)
        status = tool_fail(&err);
    if (status == 0)
        status = add_companions(s, *list);
    if (status != 0) {
        ort_tensors_free(*list);
        *list = NULL;
    }
    return status;
}

static int write_stdout(const sink *s, const ort_tensors *list)
{
    ort_error err = {0};
    ort_write_options options = write_options(s);
    if (options.format == ORT_FORMAT_AUTO)
        options.format = ORT_FORMAT_NPZ;
    if (ort_tensors_write(list, stdout, &options, &err) != ORT_OK)
        return tool_fail(&err);
    if (fflush(stdout) != 0) {
        return tool_error(ORT_ERROR_IO, "standard output: %s", strerror(errno));
    }
    return 0;
}

static int save(const sink *s, const char *path, const ort_tensors *list)
{
    ort_error err = {0};
    ort_write_options options = write_options(s);
    options.goes_on = false;
    return ort_tensors_save(list, path, &options, &err) == ORT_OK ? 0 : tool_fail(&err);
}

static int write_target(sink *s, size_t index, ort_value *const *outputs)
{
    const char *only;
    const char *path = target_path(s, s->options->saves.items[index], &only);
    const ort_write_options options = write_options(s);
    ort_tensors *list = NULL;
    int status = collect(s, outputs, only, &list);
    if (status != 0)
        return status;
    if (!strcmp(path, "-"))
        status = write_stdout(s, list);
    else if (s->many && (s->direct[index] != NULL || whole_file_is_special(path)))
        status = whole_file_append(&s->direct[index], path, list, &options);
    else if (s->many)
        status = gather_add(&s->gathered[index], list);
    else
        status = save(s, path, list);
    ort_tensors_free(list);
    return status;
}

/* Lines of JSON: a record each. */
static int write_lines(const sink *s, const char *path, const gathering *g)
{
    ort_error err = {0};
    ort_out_file *file = NULL;
    ort_write_options options = write_options(s);
    if (options.format == ORT_FORMAT_AUTO)
        options.format = ort_format_of_path(path);
    int status = whole_file_open(&file, path);
    if (status != 0)
        return status;
    for (size_t r = 0; r < g->count && status == 0; r++)
        if (ort_tensors_write(g->records[r], ort_out_file_stream(file), &options, &err) != ORT_OK)
            status = tool_fail(&err);
    return whole_file_close(file, status);
}

static int write_gathered(const sink *s, size_t index)
{
    const char *only;
    const char *path = target_path(s, s->options->saves.items[index], &only);
    ort_write_options options = write_options(s);
    const gather_how how = {
        .path = path,
        .format = options.format != ORT_FORMAT_AUTO ? options.format : ort_format_of_path(path),
        .concat = s->options->concat != NULL,
        .axis = s->concat_axis,
        .part = s->options->part,
        .parts = s->options->parts,
        .steps = s->options->steps > 0 ? s->options->steps : 1,
    };
    ort_tensors *all = NULL;
    if (ort_format_traits(how.format, path) & ORT_FORMAT_LINES && !how.concat)
        return write_lines(s, path, &s->gathered[index]);
    int status = gather_finish(&s->gathered[index], &how, &all);
    if (status == 0)
        status = save(s, path, all);
    ort_tensors_free(all);
    return status;
}

static int print_outputs(const sink *s, ort_value *const *outputs)
{
    int status = 0;
    for (size_t i = 0; i < ort_tensors_column_count(s->from) && status == 0; i++)
        status = screen_value(stdout, ort_tensors_column(s->from, i),
                              ort_tensors_column_name(s->from, i), 16);
    for (size_t i = 0; i < s->wanted_count && status == 0; i++) {
        ort_value *value = NULL;
        status = expression_value(&s->wanted[i], s->session, outputs, &value);
        if (status == 0)
            status = screen_value(stdout, ort_value_item(value, 0), s->wanted[i].text, 16);
        ort_value_free(value);
    }
    return status;
}

int sink_write(sink *s, ort_value *const *outputs)
{
    int status = 0;
    for (size_t i = 0; i < s->options->saves.count && status == 0; i++)
        status = write_target(s, i, outputs);
    if (status == 0 && s->print)
        status = print_outputs(s, outputs);
    if (status == 0 && s->to_stdout && s->options->saves.count == 0) {
        ort_tensors *list = NULL;
        status = collect(s, outputs, NULL, &list);
        if (status == 0)
            status = write_stdout(s, list);
        ort_tensors_free(list);
    }
    s->written++;
    return status;
}

int sink_close(sink *s, bool ok)
{
    int status = 0;
    for (size_t i = 0; s->gathered != NULL && i < s->options->saves.count; i++) {
        if (ok && status == 0 && s->gathered[i].count > 0)
            status = write_gathered(s, i);
        gather_release(&s->gathered[i]);
        if (s->direct != NULL && s->direct[i] != NULL)
            status = whole_file_close(s->direct[i], status);
    }
    return status;
}

void sink_release(sink *s)
{
    for (size_t i = 0; i < s->wanted_count; i++)
        expression_release(&s->wanted[i]);
    free(s->wanted);
    free(s->gathered);
    free(s->direct);
}
