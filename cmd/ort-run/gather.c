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
    g->records = realloc(g->records, (g->count + 1) * sizeof *g->records);
    if (g->records == NULL)
        tool_alloc(SIZE_MAX / 2);
    g->records[g->count++] = own;
    return status;
}

static bool holds_many(ort_format format)
{
    return format == ORT_FORMAT_NPZ || format == ORT_FORMAT_SAFETENSORS ||
           format == ORT_FORMAT_JSON;
}

static int add_numbered(const gathering *g, size_t index, ort_tensors *all)
{
    ort_error err = {0};
    for (size_t r = 0; r < g->count; r++) {
        const ort_tensors *record = g->records[r];
        char *name = tool_printf("%s.%04zu", ort_tensors_name(record, index), r);
        ort_status status = ort_tensors_add(all, name, ort_tensors_value(record, index), &err);
        free(name);
        if (status != ORT_OK)
            return tool_fail(&err);
    }
    return 0;
}

/* Value `index` of every record. */
static int add_column(const gathering *g, size_t index, const gather_how *how, ort_tensors *all)
{
    ort_error err = {0};
    char why[600] = "";
    ort_value **values = tool_alloc(g->count * sizeof *values), *joined = NULL;
    for (size_t r = 0; r < g->count; r++)
        values[r] = ort_tensors_value(g->records[r], index);
    /* Rows of a table go on. */
    bool rows = how->format == ORT_FORMAT_CSV && ort_value_rank(values[0]) > 0;
    int64_t axis = how->concat ? how->axis : rows ? 0 : JOIN_NEW;
    int status = 0;
    if (join_fits(values, g->count, axis, why, sizeof why)) {
        status = join_values(values, g->count, axis, &joined);
        if (status == 0 && ort_tensors_add(all, ort_tensors_name(g->records[0], index), joined,
                                           &err) != ORT_OK)
            status = tool_fail(&err);
    } else if (how->concat) {
        status = tool_error(ORT_ERROR_DATA, "--concat %lld: '%s': %s", (long long)axis,
                            ort_tensors_name(g->records[0], index), why);
    } else if (holds_many(how->format)) {
        status = add_numbered(g, index, all);
    } else {
        status = tool_error(ORT_ERROR_DATA, "%s: '%s': %s; .npz, .safetensors and .json hold them "
                            "one by one, -o - is a stream of records, --concat AXIS joins them",
                            how->path, ort_tensors_name(g->records[0], index), why);
    }
    ort_value_free(joined);
    free(values);
    return status;
}

int gather_finish(const gathering *g, const gather_how *how, ort_tensors **all)
{
    ort_error err = {0};
    if (ort_tensors_new(all, &err) != ORT_OK)
        return tool_fail(&err);
    int status = 0;
    for (size_t i = 0; i < ort_tensors_count(g->records[0]) && status == 0; i++)
        status = add_column(g, i, how, *all);
    for (size_t r = 0; r < g->count && status == 0; r++)
        for (size_t i = 0; i < ort_tensors_source_count(g->records[r]) && status == 0; i++)
            if (ort_tensors_add_source(*all, ort_tensors_source(g->records[r], i), &err) != ORT_OK)
                status = tool_fail(&err);
    return status;
}

void gather_release(gathering *g)
{
    for (size_t r = 0; r < g->count; r++)
        ort_tensors_free(g->records[r]);
    free(g->records);
    *g = (gathering){0};
}
