/* feed_parts.c - what both opening a feed and its runs need: a file read for inputs, its values
 * spread over them, and what the command line does to a value.
 */
#include "common/feed_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/folder.h"
#include "common/spool.h"

/* Values without names go to the inputs that are still open, in order. */
ort_purpose *feed_open_purposes(const feed *f)
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
void feed_choose_columns(feed *f, ort_read_options *options)
{
    const feed_options *o = f->options;
    options->keep = o->ids != NULL && o->ids->count > 0 ? o->ids->items : NULL;
    options->drop = o->drops != NULL && o->drops->count > 0 ? o->drops->items : NULL;
    f->tables = true;
}

int feed_load(feed *f, const char *path, ort_tensors **tensors)
{
    ort_error err = {0};
    if (f->ahead != NULL) { /* this file's; a pipe can't be read again */
        *tensors = f->ahead;
        f->ahead = NULL;
        return 0;
    }
    bool folder = folder_is(path);
    ort_purpose *open = folder ? NULL : feed_open_purposes(f);
    ort_read_options options = {.size = sizeof options,
                                .format = folder ? ORT_FORMAT_AUTO : f->options->format,
                                .purposes = folder ? f->purposes : open,
                                .purpose_count = f->count};
    if (!folder)
        feed_choose_columns(f, &options);
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
bool feed_wants_value(const feed *f, ort_value *const *slots, size_t index)
{
    for (size_t k = 0; k < f->column_count; k++)
        if (f->columns[k].input == index)
            return false;
    return slots[index] == NULL && f->fixed[index] == NULL &&
           !ort_session_input_optional(f->session, index);
}

/* One of the two would be lost. */
int feed_given_twice(const feed *f, size_t index, const char *label)
{
    const char *name = ort_session_input_name(f->session, index);
    return tool_usage("'%s' is given twice, the second time by %s: give it once "
                      "(ort-tensor FILE --select NAMES keeps the other values of a file)", name,
                      label);
}

static int find_input(const ort_session *session, const char *name)
{
    for (size_t i = 0; i < ort_session_input_count(session); i++)
        if (!strcmp(ort_session_input_name(session, i), name))
            return (int)i;
    return -1;
}

/* Spread the values of one file over `slots` (borrowed references). */
int feed_assign(feed *f, const ort_tensors *tensors, const char *label, ort_value **slots)
{
    size_t count = ort_tensors_count(tensors), matched = 0, open = 0;
    for (size_t k = 0; k < count; k++) {
        int i = find_input(f->session, ort_tensors_name(tensors, k));
        if (i < 0)
            continue;
        if (f->fixed[i] != NULL)
            return feed_given_twice(f, (size_t)i, label);
        slots[i] = ort_tensors_value(tensors, k);
        matched++;
    }
    if (matched > 0)
        return 0;
    for (size_t i = 0; i < f->count; i++)
        open += feed_wants_value(f, slots, i);
    if (count > open)
        return tool_usage(
            "%s: holds %zu arrays, none named after an input, and the model waits for "
            "%zu; name them with -i NAME=FILE",
            label, count, open);
    for (size_t i = 0, k = 0; i < f->count && k < count; i++)
        if (feed_wants_value(f, slots, i))
            slots[i] = ort_tensors_value(tensors, k++);
    return 0;
}

int feed_fix(feed *f, size_t index, ort_value *value)
{
    ort_error err = {0};
    if ((f->held == NULL && ort_tensors_new(&f->held, &err) != ORT_OK) ||
        ort_tensors_add(f->held, ort_session_input_name(f->session, index), value, &err) != ORT_OK)
        return tool_fail(&err);
    f->fixed[index] = value;
    return 0;
}

/* A table by name is that input's value as a whole: its header names nothing. */
int feed_load_named(feed *f, size_t index, const char *path, ort_tensors **tensors)
{
    ort_error err = {0};
    const char *copy = NULL;
    if (folder_is(path))
        return feed_load(f, path, tensors);
    if (f->options->samples && spool_is_needed(path)) {
        int status = spool_file(path, &copy);
        if (status != 0)
            return status;
    }
    ort_format format = f->options->format != ORT_FORMAT_AUTO ? f->options->format
                                                              : ort_format_of_path(path);
    bool table = ort_format_traits(format, NULL) & ORT_FORMAT_ROWS;
    const ort_purpose purpose = {table ? "" : ort_session_input_name(f->session, index),
                                 ort_session_input_type(f->session, index)};
    ort_read_options options = {.size = sizeof options, .format = f->options->format,
                                .label = copy != NULL ? path : NULL, .purposes = &purpose,
                                .purpose_count = 1};
    if (table)
        feed_choose_columns(f, &options);
    return ort_tensors_load(copy != NULL ? copy : path, &options, tensors, &err) == ORT_OK
               ? 0
               : tool_fail(&err);
}

int feed_pick(const feed *f, const ort_tensors *tensors, size_t index, const char *path,
              ort_value **value)
{
    const char *name = ort_session_input_name(f->session, index);
    int at = ort_tensors_count(tensors) == 1 ? 0 : -1;
    for (size_t k = 0; k < ort_tensors_count(tensors); k++)
        if (!strcmp(ort_tensors_name(tensors, k), name))
            at = (int)k;
    if (at < 0)
        return tool_usage("%s: holds several arrays and none is named '%s'", path, name);
    *value = ort_tensors_value(tensors, (size_t)at);
    return 0;
}

int feed_change(const feed *f, const ort_tensors *from, const char *place, const ort_value *value,
                ort_value **changed)
{
    operations *o = f->options->operations;
    *changed = NULL;
    if (o == NULL)
        return 0;
    o->rate = ort_tensors_sample_rate(from);
    o->place = place;
    return operations_apply(o, value, changed);
}

int feed_open_stream(feed *f, const char *path)
{
    bool is_stdin = !strcmp(path, "-");
    const char *copy = path;
    int status = 0;
    f->label = is_stdin ? "standard input" : path;
    f->in_stream = 0;
    if (f->options->samples && spool_is_needed(path))
        status = spool_file(path, &copy);
    if (status != 0)
        return status;
    f->stream = is_stdin && copy == path ? stdin : fopen(copy, "rb");
    if (f->stream == NULL)
        return tool_error(ORT_ERROR_IO, "%s: can't be opened: %s", path, strerror(errno));
    return 0;
}
