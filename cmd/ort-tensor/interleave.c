/* interleave.c - what ort-run --shard parted, in its order again (--interleave): the records of
 * several files in turn, or the rows of one record of each.
 *
 * Part k of n holds the runs k, k + n, k + 2n, ... So a turn takes one of each part, and only the
 * last turn may end early, behind some part. Anything else is a part that lacks, was cut short or
 * stands in the wrong place, and would give an order that no single run has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/join.h"
#include "tensor_tool.h"

typedef struct part {
    const char *path;
    FILE *stream;
    ort_read_options options;
    int64_t dims[16];
    size_t records;
} part;

static int out_of_turn(const char *ended, size_t count, const char *longer)
{
    return tool_error(ORT_ERROR_DATA, "--interleave: %s ends behind %zu, and %s goes on: a part is "
                      "missing or cut short, or the files aren't in the order of the parts", ended,
                      count, longer);
}

/* ---- records in turn */

static int open_part(const tool *t, const char *path, part *p)
{
    p->path = !strcmp(path, "-") ? "standard input" : path;
    p->stream = !strcmp(path, "-") ? stdin : fopen(path, "rb");
    if (p->stream == NULL)
        return tool_error(ORT_ERROR_IO, "%s: can't open: %s", path, strerror(errno));
    return record_options(t, path, p->dims, &p->options);
}

/* The next record of a part; NULL at its end. */
static int read_part(part *p, ort_tensors **record)
{
    ort_error err = {0};
    char *place = tool_printf("%s, record %zu", p->path, p->records + 1);
    p->options.label = p->records > 0 ? place : p->path;
    ort_status status = ort_tensors_read(p->stream, &p->options, record, &err);
    p->records += *record != NULL;
    p->options.label = p->path;
    free(place);
    return status == ORT_OK ? 0 : tool_fail(&err);
}

/* One record of each. *ended: the part that had none, if any, behind which none may have one. */
static int take_turn(tool *t, part *parts, size_t count, const part **ended)
{
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        ort_tensors *record = NULL;
        status = read_part(&parts[i], &record);
        if (status == 0 && record == NULL && *ended == NULL)
            *ended = &parts[i];
        if (status == 0 && record != NULL) {
            t->place = parts[i].path;
            status = *ended != NULL ? out_of_turn((*ended)->path, (*ended)->records, parts[i].path)
                                    : record_handle(t, record);
        }
        ort_tensors_free(record);
    }
    return status;
}

static int interleave_records(tool *t, const string_list *files)
{
    part *parts = tool_alloc(files->count * sizeof *parts);
    const part *ended = NULL;
    int status = 0;
    memset(parts, 0, files->count * sizeof *parts);
    for (size_t i = 0; i < files->count && status == 0; i++)
        status = open_part(t, files->items[i], &parts[i]);
    while (status == 0 && ended == NULL)
        status = take_turn(t, parts, files->count, &ended);
    if (status == 0 && parts[0].records == 0)
        status = tool_error(ORT_ERROR_DATA, "%s: is empty", parts[0].path);
    /* The parts in front of the one that ended have had their last record, too. */
    for (size_t i = 0; i < files->count && status == 0; i++) {
        ort_tensors *record = NULL;
        status = read_part(&parts[i], &record);
        if (status == 0 && record != NULL)
            status = out_of_turn(ended->path, ended->records, parts[i].path);
        ort_tensors_free(record);
    }
    for (size_t i = 0; i < files->count; i++)
        if (parts[i].stream != NULL && parts[i].stream != stdin)
            fclose(parts[i].stream);
    free(parts);
    return status;
}

/* ---- rows in turn */

/* The value called as the first record's `index`, of every record. */
static int collect(const string_list *files, ort_tensors *const *records, size_t index,
                   ort_value **values)
{
    const char *name = ort_tensors_name(records[0], index);
    for (size_t r = 0; r < files->count; r++) {
        values[r] = NULL;
        for (size_t i = 0; i < ort_tensors_count(records[r]); i++)
            if (!strcmp(ort_tensors_name(records[r], i), name))
                values[r] = ort_tensors_value(records[r], i);
        if (values[r] == NULL || ort_tensors_count(records[r]) != ort_tensors_count(records[0]))
            return tool_error(ORT_ERROR_DATA, "--interleave rows: %s doesn't hold the values of %s "
                              "('%s' and so on); runs that differ in shape are kept in a file of "
                              "records, such as .jsonl, for --interleave records",
                              files->items[r], files->items[0], name);
    }
    return 0;
}

/* Rows that fit one another, as many as the turns want of each part. */
static int check_rows(const string_list *files, ort_value *const *values, const char *name)
{
    char why[600];
    if (!join_fits(values, files->count, 0, why, sizeof why))
        return tool_error(ORT_ERROR_DATA, "--interleave rows: '%s': %s", name, why);
    for (size_t r = 1; r < files->count; r++) {
        int64_t rows = ort_value_dims(values[r])[0], most = ort_value_dims(values[0])[0];
        int64_t before = ort_value_dims(values[r - 1])[0];
        if (rows > before)
            return out_of_turn(files->items[r - 1], (size_t)before, files->items[r]);
        if (rows < most - 1)
            return out_of_turn(files->items[r], (size_t)rows, files->items[0]);
    }
    return 0;
}

static int join_rows(const string_list *files, ort_tensors *const *records, ort_tensors *all)
{
    ort_error err = {0};
    ort_value **values = tool_alloc(files->count * sizeof *values);
    int status = 0;
    for (size_t i = 0; i < ort_tensors_count(records[0]) && status == 0; i++) {
        const char *name = ort_tensors_name(records[0], i);
        ort_value *joined = NULL;
        status = collect(files, records, i, values);
        if (status == 0)
            status = check_rows(files, values, name);
        if (status == 0)
            status = join_turns(values, files->count, &joined);
        if (status == 0 && ort_tensors_add(all, name, joined, &err) != ORT_OK)
            status = tool_fail(&err);
        ort_value_free(joined);
    }
    for (size_t c = 0; c < ort_tensors_column_count(records[0]) && status == 0; c++) {
        const char *name = ort_tensors_column_name(records[0], c);
        ort_value *joined = NULL;
        for (size_t r = 0; r < files->count && status == 0; r++)
            if (c >= ort_tensors_column_count(records[r]) ||
                strcmp(ort_tensors_column_name(records[r], c), name))
                status = tool_error(ORT_ERROR_DATA, "--interleave rows: %s has no column '%s', "
                                    "which %s has", files->items[r], name, files->items[0]);
            else
                values[r] = ort_tensors_column(records[r], c);
        if (status == 0)
            status = check_rows(files, values, name);
        if (status == 0)
            status = join_turns(values, files->count, &joined);
        if (status == 0 && ort_tensors_add_column(all, name, joined, &err) != ORT_OK)
            status = tool_fail(&err);
        ort_value_free(joined);
    }
    free(values);
    return status;
}

/* The names of files that the rows were made of. */
static int join_sources(const string_list *files, ort_tensors *const *records, ort_tensors *all)
{
    ort_error err = {0};
    for (size_t turn = 0; turn < ort_tensors_source_count(records[0]); turn++)
        for (size_t r = 0; r < files->count; r++)
            if (turn < ort_tensors_source_count(records[r]) &&
                ort_tensors_add_source(all, ort_tensors_source(records[r], turn), &err) != ORT_OK)
                return tool_fail(&err);
    return 0;
}

static int load_parts(tool *t, const string_list *files, ort_tensors **records)
{
    for (size_t r = 0; r < files->count; r++) {
        ort_error err = {0};
        ort_read_options options;
        int64_t dims[16];
        int status = record_options(t, files->items[r], dims, &options);
        if (status != 0)
            return status;
        if (ort_tensors_load(files->items[r], &options, &records[r], &err) != ORT_OK)
            return tool_fail(&err);
    }
    return 0;
}

static int interleave_rows(tool *t, const string_list *files)
{
    ort_error err = {0};
    ort_tensors **records = tool_alloc(files->count * sizeof *records), *all = NULL;
    memset(records, 0, files->count * sizeof *records);
    int status = load_parts(t, files, records);
    if (status == 0 && ort_tensors_new(&all, &err) != ORT_OK)
        status = tool_fail(&err);
    if (status == 0)
        status = join_rows(files, records, all);
    if (status == 0)
        status = join_sources(files, records, all);
    t->place = files->items[0];
    if (status == 0)
        status = record_handle(t, all);
    ort_tensors_free(all);
    for (size_t r = 0; r < files->count; r++)
        ort_tensors_free(records[r]);
    free(records);
    return status;
}

int interleave_run(tool *t, const string_list *files)
{
    if (files->count == 0)
        return tool_usage("--interleave needs the files of all parts, in their order");
    return !strcmp(t->interleave, "rows") ? interleave_rows(t, files)
                                          : interleave_records(t, files);
}
