/* join.c - tensors of several records as one (join.h).
 *
 * Whole bytes are copied in runs; strings and elements smaller than a byte go one by one.
 */
#include "common/join.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DIMS = 16 };

static void describe(const ort_value *v, char *text, size_t size)
{
    if (ort_value_get_kind(v) != ORT_VALUE_TENSOR) {
        snprintf(text, size, "no tensor");
        return;
    }
    snprintf(text, size, "%s[", ort_dtype_name(ort_value_dtype(v)));
    for (int i = 0; i < ort_value_rank(v); i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%lld", i > 0 ? "," : "",
                 (long long)ort_value_dims(v)[i]);
    }
    size_t used = strlen(text);
    snprintf(text + used, size - used, "]");
}

/* `axis` counted from the front, JOIN_NEW as it is; -1: the rank has no such axis. */
static int64_t front_axis(int64_t axis, int rank)
{
    if (axis == JOIN_NEW)
        return rank < MOST_DIMS ? axis : -1;
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? axis : -1;
}

static bool same_but_axis(const ort_value *a, const ort_value *b, int64_t axis)
{
    if (ort_value_get_kind(b) != ORT_VALUE_TENSOR || ort_value_dtype(a) != ort_value_dtype(b) ||
        ort_value_rank(a) != ort_value_rank(b))
        return false;
    for (int i = 0; i < ort_value_rank(a); i++)
        if (i != axis && ort_value_dims(a)[i] != ort_value_dims(b)[i])
            return false;
    return true;
}

bool join_fits(ort_value *const *values, size_t count, int64_t axis, char *why, size_t why_size)
{
    char first[200], other[200];
    if (ort_value_get_kind(values[0]) != ORT_VALUE_TENSOR) {
        if (why != NULL)
            snprintf(why, why_size, "sequences, maps and absent values are no tensors");
        return false;
    }
    int64_t at = front_axis(axis, ort_value_rank(values[0]));
    describe(values[0], first, sizeof first);
    if (at == -1) {
        if (why != NULL)
            snprintf(why, why_size, "%s has no axis %lld", first, (long long)axis);
        return false;
    }
    for (size_t i = 1; i < count; i++) {
        if (same_but_axis(values[0], values[i], at))
            continue;
        describe(values[i], other, sizeof other);
        if (why != NULL)
            snprintf(why, why_size, "record 1 is %s, record %zu is %s", first, i + 1, other);
        return false;
    }
    return true;
}

static int copy_elements(const ort_value *from, int64_t at, int64_t count, ort_value *to,
                         int64_t place)
{
    ort_error err = {0};
    ort_dtype dtype = ort_value_dtype(from);
    int bits = ort_dtype_bits(dtype);
    if (dtype != ORT_DTYPE_STRING && bits % 8 == 0) {
        size_t width = (size_t)bits / 8;
        if (count > 0)
            memcpy((char *)ort_value_data(to) + (size_t)place * width,
                   (const char *)ort_value_data((ort_value *)from) + (size_t)at * width,
                   (size_t)count * width);
        return 0;
    }
    for (int64_t i = 0; i < count; i++) {
        size_t length;
        if (dtype != ORT_DTYPE_STRING) {
            ort_value_set_double(to, place + i, ort_value_get_double(from, at + i));
            continue;
        }
        const char *text = ort_value_string(from, at + i, &length);
        if (ort_value_set_string(to, place + i, text, length, &err) != ORT_OK)
            return tool_fail(&err);
    }
    return 0;
}

int join_values(ort_value *const *values, size_t count, int64_t axis, ort_value **joined)
{
    ort_error err = {0};
    int rank = ort_value_rank(values[0]);
    int64_t dims[MOST_DIMS], at = front_axis(axis, rank), outer = 1, place = 0;
    bool added = at == JOIN_NEW;
    if (added)
        dims[0] = (int64_t)count;
    for (int i = 0; i < rank; i++)
        dims[i + added] = ort_value_dims(values[0])[i];
    for (size_t i = 1; i < count && !added; i++)
        dims[at] += ort_value_dims(values[i])[at];
    for (int i = 0; i < at; i++)
        outer *= dims[i];
    if (ort_value_new_tensor(ort_value_dtype(values[0]), rank + added, dims, joined, &err) !=
        ORT_OK)
        return tool_fail(&err);
    int status = 0;
    for (int64_t o = 0; o < outer && status == 0; o++)
        for (size_t i = 0; i < count && status == 0; i++) {
            int64_t run = ort_value_count(values[i]) / outer;
            status = copy_elements(values[i], o * run, run, *joined, place);
            place += run;
        }
    return status;
}

int join_copy(ort_value *value, ort_value **copy)
{
    ort_error err = {0};
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR) {
        *copy = ort_value_retain(value);
        return 0;
    }
    if (ort_value_new_tensor(ort_value_dtype(value), ort_value_rank(value), ort_value_dims(value),
                             copy, &err) != ORT_OK)
        return tool_fail(&err);
    return copy_elements(value, 0, ort_value_count(value), *copy, 0);
}

int join_columns(ort_tensors *const *records, size_t count, ort_tensors *all)
{
    ort_error err = {0};
    int status = 0;
    ort_value **values = tool_alloc(count * sizeof *values);
    for (size_t c = 0; c < ort_tensors_column_count(records[0]) && status == 0; c++) {
        const char *name = ort_tensors_column_name(records[0], c);
        char why[600];
        ort_value *joined = NULL;
        for (size_t r = 0; r < count && status == 0; r++) {
            values[r] = ort_tensors_column(records[r], c);
            if (strcmp(ort_tensors_column_name(records[r], c), name))
                status = tool_error(ORT_ERROR_DATA, "record %zu has no column '%s', which the "
                                    "first one has", r + 1, name);
        }
        if (status == 0 && !join_fits(values, count, 0, why, sizeof why))
            status = tool_error(ORT_ERROR_DATA, "column '%s': %s", name, why);
        if (status == 0)
            status = join_values(values, count, 0, &joined);
        if (status == 0 && ort_tensors_add_column(all, name, joined, &err) != ORT_OK)
            status = tool_fail(&err);
        ort_value_free(joined);
    }
    free(values);
    return status;
}

int join_part(const ort_value *value, int64_t begin, int64_t count, ort_value **part)
{
    ort_error err = {0};
    int64_t dims[MOST_DIMS], rows = ort_value_dims(value)[0];
    int rank = ort_value_rank(value);
    int64_t row = rows > 0 ? ort_value_count(value) / rows : 0;
    for (int i = 1; i < rank; i++)
        dims[i] = ort_value_dims(value)[i];
    dims[0] = count;
    if (ort_value_new_tensor(ort_value_dtype(value), rank, dims, part, &err) != ORT_OK)
        return tool_fail(&err);
    return copy_elements(value, begin * row, count * row, *part, 0);
}

int join_turns(ort_value *const *values, size_t count, ort_value **joined)
{
    ort_error err = {0};
    int rank = ort_value_rank(values[0]), status = 0;
    int64_t dims[MOST_DIMS], row = 1, place = 0, turns = ort_value_dims(values[0])[0];
    for (int i = 1; i < rank; i++)
        row *= dims[i] = ort_value_dims(values[0])[i];
    dims[0] = 0;
    for (size_t i = 0; i < count; i++)
        dims[0] += ort_value_dims(values[i])[0];
    if (ort_value_new_tensor(ort_value_dtype(values[0]), rank, dims, joined, &err) != ORT_OK)
        return tool_fail(&err);
    for (int64_t turn = 0; turn < turns && status == 0; turn++)
        for (size_t i = 0; i < count && status == 0; i++) {
            if (turn >= ort_value_dims(values[i])[0])
                continue;
            status = copy_elements(values[i], turn * row, row, *joined, place);
            place += row;
        }
    return status;
}
