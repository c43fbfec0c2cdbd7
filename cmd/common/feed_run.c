/* feed_run.c - the inputs of one run after the other, out of a feed that is open (feed.h). */
#include "common/feed_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/spool.h"

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
            status = feed_fix(f, i, made[i]);
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

static void drop_run(feed *f)
{
    ort_tensors_free(f->record);
    f->record = NULL;
    for (size_t i = 0; i < f->count; i++) {
        ort_value_free(f->changed[i]);
        f->changed[i] = NULL;
    }
    for (size_t i = 0; i < f->column_count; i++) {
        ort_tensors_free(f->columns[i].record);
        f->columns[i].record = NULL;
    }
}

static void set_place(feed *f, char *place)
{
    free(f->place);
    f->place = place;
}

static void close_stream(feed *f)
{
    if (f->stream != NULL && f->stream != stdin)
        fclose(f->stream);
    f->stream = NULL;
}

/* The next record of the open stream, or of the files behind it; none at the end. */
static int next_record(feed *f)
{
    ort_error err = {0};
    for (int status = 0; status == 0;) {
        set_place(f, f->in_stream++ > 0 ? tool_printf("%s, record %zu", f->label, f->in_stream)
                                        : tool_strdup(f->label));
        ort_purpose *open = feed_open_purposes(f);
        ort_read_options options = {.size = sizeof options, .format = f->options->format,
                                    .label = f->place, .purposes = open,
                                    .purpose_count = f->count};
        feed_choose_columns(f, &options);
        ort_status read = ort_tensors_read(f->stream, &options, &f->record, &err);
        free(open);
        if (read != ORT_OK)
            return tool_fail(&err);
        if (f->record != NULL || f->next_stream >= f->streams.count)
            return 0;
        close_stream(f);
        status = feed_open_stream(f, f->streams.items[f->next_stream++]);
    }
    return 0;
}

/* Is a file of samples read record by record? */
static bool is_stream(const feed *f, const char *path)
{
    return f->options->samples && (f->options->stream || spool_is_needed(path));
}

/* The next file, or record of a stream that stands among them. */
static int next_item(feed *f)
{
    for (;;) {
        if (f->stream != NULL) {
            int status = next_record(f);
            if (status != 0 || f->record != NULL)
                return status;
            close_stream(f);
        }
        if (f->next_file >= f->files.count) {
            f->done = true;
            return 0;
        }
        const char *path = f->files.items[f->next_file++];
        if (!is_stream(f, path)) {
            set_place(f, tool_strdup(path));
            return f->target < 0 ? feed_load(f, path, &f->record)
                                 : feed_load_named(f, (size_t)f->target, path, &f->record);
        }
        int status = feed_open_stream(f, path);
        if (status != 0)
            return status;
    }
}

/* Is the run behind those that were numbered of another part? */
static bool is_foreign(const feed *f)
{
    const feed_options *o = f->options;
    return o->parts > 1 && f->number % o->parts != o->part - 1;
}

/* A file is passed over unread; a record has to be read for its end to be known. */
static int pass_over(feed *f, bool *end)
{
    bool unread = f->stream == NULL && f->next_file < f->files.count &&
                  !is_stream(f, f->files.items[f->next_file]);
    int status = 0;
    if (unread)
        f->next_file++;
    else
        status = next_item(f);
    *end = status == 0 && !unread && f->record == NULL;
    f->number += status == 0 && !*end;
    f->taken += status == 0 && !*end;
    drop_run(f);
    return status;
}

/* The record of the next run of this part; none at the end. */
static int next_own(feed *f)
{
    bool end = false;
    int status = 0;
    while (status == 0 && !end && is_foreign(f))
        status = pass_over(f, &end);
    if (status == 0 && !end)
        status = next_item(f);
    f->number += status == 0 && f->record != NULL;
    return status;
}

/* What the command line makes of the values of this run. */
static int change(feed *f, const ort_tensors *from, const char *place, size_t index,
                  ort_value **inputs)
{
    ort_value *changed = NULL;
    int status = feed_change(f, from, place, inputs[index], &changed);
    if (changed != NULL)
        inputs[index] = f->changed[index] = changed;
    return status;
}

static int take_record(feed *f, ort_value **inputs)
{
    int status = 0;
    if (f->target >= 0)
        status = feed_pick(f, f->record, (size_t)f->target, f->place, &inputs[f->target]);
    else
        status = feed_assign(f, f->record, f->place, inputs);
    for (size_t i = 0; i < f->count && status == 0; i++)
        if (inputs[i] != NULL && inputs[i] != f->fixed[i])
            status = change(f, f->record, f->place, i, inputs);
    return status;
}

/* The value of each input that has a folder of its own. */
static int take_columns(feed *f, ort_value **inputs)
{
    int status = 0;
    for (size_t k = 0; k < f->column_count && status == 0; k++) {
        feed_column *c = &f->columns[k];
        if (f->taken >= c->files.count)
            return tool_error(ORT_ERROR_DATA, "%s: the folder of input '%s' holds nothing for it, "
                              "only %zu files", f->place,
                              ort_session_input_name(f->session, c->input), c->files.count);
        const char *path = c->files.items[f->taken];
        if (inputs[c->input] != NULL)
            return feed_given_twice(f, c->input, path);
        status = feed_load_named(f, c->input, path, &c->record);
        if (status == 0)
            status = feed_pick(f, c->record, c->input, path, &inputs[c->input]);
        if (status == 0)
            status = change(f, c->record, path, c->input, inputs);
    }
    f->taken++;
    return status;
}

/* Files that no run took would be lost. */
static int check_columns_end(const feed *f)
{
    for (size_t k = 0; k < f->column_count; k++)
        if (f->columns[k].files.count != f->taken)
            return tool_error(ORT_ERROR_DATA, "the folder of input '%s' holds %zu files, the other "
                              "inputs are given for %zu runs",
                              ort_session_input_name(f->session, f->columns[k].input),
                              f->columns[k].files.count, f->taken);
    return 0;
}

const ort_tensors *feed_record(const feed *f)
{
    return f->record != NULL ? f->record : f->held;
}

const char *feed_place(const feed *f)
{
    return f->place != NULL ? f->place : "the inputs";
}

/* Text that is no JSON: what the reader of an unnamed stream takes for a table then. */
static bool begins_as_table(const feed *f)
{
    unsigned char start[64];
    ssize_t count = pread(fileno(f->stream), start, sizeof start, 0);
    for (ssize_t i = 0; i < count; i++)
        if (start[i] < ' ' && !strchr("\t\r\n", start[i]))
            return false;
    return count > 0 && !strchr("{[", start[0]) && f->record != NULL &&
           ort_tensors_name(f->record, 0)[0] != '\0';
}

bool feed_is_table(const feed *f)
{
    ort_format format = f->options->format;
    if (f->files.count == 0)
        return false;
    if (format == ORT_FORMAT_AUTO && f->stream != NULL)
        return begins_as_table(f);
    if (format == ORT_FORMAT_AUTO)
        format = ort_format_of_path(f->files.items[f->next_file - 1]);
    return ort_format_traits(format, NULL) & ORT_FORMAT_ROWS;
}

double feed_share(const feed *f)
{
    struct stat st;
    double done = (double)f->next_file;
    if (f->files.count == 0)
        return 1;
    if (f->stream != NULL && fstat(fileno(f->stream), &st) == 0 && st.st_size > 0)
        done += (double)ftello(f->stream) / (double)st.st_size - 1;
    return done / (double)f->files.count;
}

int feed_next(feed *f, ort_value **inputs, bool *end)
{
    int status = 0;
    *end = f->done;
    if (f->done)
        return 0;
    for (size_t i = 0; i < f->count; i++)
        inputs[i] = f->fixed[i];
    if (f->once) {
        f->done = true;
        f->number = 1;
        return fill(f, inputs);
    }
    drop_run(f);
    status = next_own(f);
    *end = f->record == NULL;
    if (status == 0 && *end)
        status = check_columns_end(f);
    if (status != 0 || *end)
        return status;
    status = take_record(f, inputs);
    if (status == 0)
        status = take_columns(f, inputs);
    f->done = f->done || (f->stream == NULL && f->column_count == 0 && !f->options->samples &&
                          f->next_file == f->files.count);
    return status == 0 ? fill(f, inputs) : status;
}

void feed_close(feed *f)
{
    if (f->changed != NULL)
        drop_run(f);
    ort_tensors_free(f->ahead);
    ort_tensors_free(f->record);
    ort_tensors_free(f->held);
    free(f->changed);
    free(f->fixed);
    free(f->purposes);
    free(f->order);
    free(f->place);
    close_stream(f);
    string_list_release(&f->sources);
    string_list_release(&f->streams);
    string_list_release(&f->files);
    for (size_t i = 0; i < f->column_count; i++)
        string_list_release(&f->columns[i].files);
    free(f->columns);
}
