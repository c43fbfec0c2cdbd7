/* gather.c - several runs into one file that any reader of its format understands: the records as
 * one array along a new first axis or --concat's, and one by one with numbers in their names where
 * they differ in shape or are no tensors.
 */
#include <stdlib.h>
#include <string.h>

#include "common/join.h"
#include "run.h"

int gather_add(gathering *g, ort_tensors *record)
{
    ort_error err = {0};
    ort_tensors *own = NULL;
    if (ort_tensors_new(&own, &err) != ORT_OK)
        return tool_fail(&err);
    int status = 0;
    for (size_t i = 0; i < ort_tensors_count(record) && status == 0; i++) {
        ort_value *copy = NULL;
        status = join_copy(ort_tensors_value(record, i), &copy);
        if (status == 0 &&
            ort_tensors_add(own, ort_tensors_name(record, i), copy, &err) != ORT_OK)
            status = tool_fail(&err);
        ort_value_free(copy);
    }
    for (size_t i = 0; i < ort_tensors_source_count(record) && status == 0; i++)
        if (ort_tensors_add_source(own, ort_tensors_source(record, i), &err) != ORT_OK)
            status = tool_fail(&err);
    for (size_t i = 0; i < ort_tensors_column_count(record) && status == 0; i++)
        if (ort_tensors_add_column(own, ort_tensors_column_name(record, i),
                                   ort_tensors_column(record, i), &err) != ORT_OK)
            status = tool_fail(&err);
    g->records = realloc(g->records, (g->count + 1) * sizeof *g->records);
    if (g->records == NULL)
        tool_alloc(SIZE_MAX / 2);
    g->records[g->count++] = own;
    return status;
}

/* Its number among the runs of all parts. */
static size_t run_number(const gather_how *how, size_t run)
{
    if (how->parts == 0)
        return run;
    size_t steps = (size_t)how->steps, record = run / steps * (size_t)how->parts;
    return (record + (size_t)how->part - 1) * steps + run % steps;
}

static int add_numbered(const gathering *g, size_t index, const gather_how *how, ort_tensors *all)
{
    ort_error err = {0};
    for (size_t r = 0; r < g->count; r++) {
        const ort_tensors *record = g->records[r];
        char *name = tool_printf("%s.%04zu", ort_tensors_name(record, index),
                                 run_number(how, r));
        ort_status status = ort_tensors_add(all, name, ort_tensors_value(record, index), &err);
        free(name);
        if (status != ORT_OK)
            return tool_fail(&err);
    }
    return 0;
}

/* Maps, or sequences of them, as ZipMap gives them. */
static bool are_maps(ort_value *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ort_value_get_kind(values[i]) != ORT_VALUE_SEQUENCE &&
            ort_value_get_kind(values[i]) != ORT_VALUE_MAP)
            return false;
    return true;
}

static ort_status append_maps(ort_value *all, ort_value *value, ort_error *err)
{
    if (ort_value_get_kind(value) == ORT_VALUE_MAP)
        return ort_value_append(all, value, err);
    ort_status status = ORT_OK;
    for (size_t k = 0; k < (size_t)ort_value_count(value) && status == ORT_OK; k++)
        status = ort_value_append(all, ort_value_item(value, k), err);
    return status;
}

/* Rows of a table that go on. */
static int join_maps(ort_value *const *values, size_t count, ort_value **joined)
{
    ort_error err = {0};
    if (ort_value_new_sequence(joined, &err) != ORT_OK)
        return tool_fail(&err);
    for (size_t i = 0; i < count; i++)
        if (append_maps(*joined, values[i], &err) != ORT_OK)
            return tool_fail(&err);
    return 0;
}

/* Value `index` of every record. */
static int add_output(const gathering *g, size_t index, const gather_how *how, ort_tensors *all)
{
    ort_error err = {0};
    unsigned traits = ort_format_traits(how->format, NULL);
    char why[600] = "", holders[200];
    ort_value **values = tool_alloc(g->count * sizeof *values), *joined = NULL;
    for (size_t r = 0; r < g->count; r++)
        values[r] = ort_tensors_value(g->records[r], index);
    /* Rows of a table go on. */
    bool rows = traits & ORT_FORMAT_ROWS && ort_value_rank(values[0]) > 0;
    int64_t axis = how->concat ? how->axis : rows ? 0 : JOIN_NEW;
    int status = 0;
    bool maps = traits & ORT_FORMAT_ROWS && are_maps(values, g->count);
    if (maps || join_fits(values, g->count, axis, why, sizeof why)) {
        status = maps ? join_maps(values, g->count, &joined)
                      : join_values(values, g->count, axis, &joined);
        if (status == 0 && ort_tensors_add(all, ort_tensors_name(g->records[0], index), joined,
                                           &err) != ORT_OK)
            status = tool_fail(&err);
    } else if (how->concat) {
        status = tool_error(ORT_ERROR_DATA, "--concat %lld: '%s': %s", (long long)axis,
                            ort_tensors_name(g->records[0], index), why);
    } else if (traits & ORT_FORMAT_MANY) {
        status = add_numbered(g, index, how, all);
    } else {
        status = tool_error(ORT_ERROR_DATA, "%s: '%s': %s; %s hold them one by one, -o - is a "
                            "stream of records, --concat AXIS joins them", how->path,
                            ort_tensors_name(g->records[0], index), why,
                            ort_format_list(ORT_FORMAT_MANY, holders, sizeof holders));
    }
    ort_value_free(joined);
    free(values);
    return status;
}

/* Rows that a record adds to a table. */
static size_t table_rows(const ort_tensors *record)
{
    const ort_value *first = ort_tensors_value(record, 0);
    ort_value_kind kind = ort_value_get_kind(first);
    if (kind != ORT_VALUE_TENSOR)
        return kind == ORT_VALUE_SEQUENCE ? (size_t)ort_value_count(first) : 1;
    return ort_value_rank(first) > 0 ? (size_t)ort_value_dims(first)[0] : 1;
}

/* Of a table each row has its source. */
static int add_sources(const ort_tensors *record, bool rows, ort_tensors *all)
{
    ort_error err = {0};
    size_t count = ort_tensors_source_count(record);
    size_t times = rows && count == 1 ? table_rows(record) : 1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < times; k++)
            if (ort_tensors_add_source(all, ort_tensors_source(record, i), &err) != ORT_OK)
                return tool_fail(&err);
    return 0;
}

int gather_finish(const gathering *g, const gather_how *how, ort_tensors **all)
{
    ort_error err = {0};
    if (ort_tensors_new(all, &err) != ORT_OK)
        return tool_fail(&err);
    bool rows = ort_format_traits(how->format, NULL) & ORT_FORMAT_ROWS;
    int status = 0;
    for (size_t i = 0; i < ort_tensors_count(g->records[0]) && status == 0; i++)
        status = add_output(g, i, how, *all);
    if (status == 0)
        status = join_columns(g->records, g->count, *all);
    for (size_t r = 0; r < g->count && status == 0; r++)
        status = add_sources(g->records[r], rows, *all);
    return status;
}

void gather_release(gathering *g)
{
    for (size_t r = 0; r < g->count; r++)
        ort_tensors_free(g->records[r]);
    free(g->records);
    *g = (gathering){0};
}
