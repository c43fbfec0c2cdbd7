/* rows.c - which values are cut, and where (rows.h). A set of samples stacked into one array is
 * what many projects have; the model says how many of its rows it takes at a time. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "common/join.h"

enum { MOST_DIMS = 16 };

void rows_open(row_cutter *r, size_t inputs)
{
    *r = (row_cutter){.inputs = inputs};
    r->take = tool_alloc((inputs + 1) * sizeof *r->take);
    r->parts = tool_alloc((inputs + 1) * sizeof *r->parts);
}

/* Does the value fit the input but for its first dimension? */
static bool fits_behind(const ort_value *v, const int64_t *dims, int rank)
{
    if (rank != ort_value_rank(v))
        return rank < 0;
    for (int i = 1; i < rank; i++)
        if (dims[i] >= 0 && dims[i] != ort_value_dims(v)[i])
            return false;
    return true;
}

/* Rows of the value in a sample; 0: it is not cut. */
static int64_t rows_taken(const ort_session *session, size_t input, const ort_value *v,
                          int64_t wanted)
{
    int64_t dims[MOST_DIMS];
    if (v == NULL || ort_value_get_kind(v) != ORT_VALUE_TENSOR || ort_value_rank(v) < 1)
        return 0;
    int rank = ort_session_input_dims(session, input, dims, MOST_DIMS);
    if (rank > MOST_DIMS || rank == 0 || !fits_behind(v, dims, rank))
        return 0;
    int64_t take = rank > 0 && dims[0] > 0 ? dims[0] : wanted;
    return take > 0 && ort_value_dims(v)[0] > take ? take : 0;
}

static int check_multiple(const ort_session *session, size_t input, int64_t have, int64_t take,
                          const char *place)
{
    int64_t dims[MOST_DIMS];
    if (have % take == 0 || ort_session_input_dims(session, input, dims, MOST_DIMS) < 1 ||
        dims[0] < 0)
        return 0;
    return tool_error(ORT_ERROR_DATA, "%s: %lld rows for input '%s', which takes %lld at a time: "
                      "leave out %lld", place, (long long)have,
                      ort_session_input_name(session, input), (long long)take,
                      (long long)(have % take));
}

int rows_plan(row_cutter *r, const ort_session *session, ort_value *const *values,
              ort_value *const *shared, int64_t wanted, const char *place)
{
    size_t first = 0;
    r->count = 1;
    r->at = 0;
    for (size_t i = 0; i < r->inputs; i++) {
        bool all = shared != NULL && values[i] == shared[i];
        r->take[i] = all ? 0 : rows_taken(session, i, values[i], wanted);
        if (r->take[i] == 0)
            continue;
        int64_t have = ort_value_dims(values[i])[0];
        int64_t count = have / r->take[i] + (have % r->take[i] != 0);
        int status = check_multiple(session, i, have, r->take[i], place);
        if (status != 0)
            return status;
        if (r->count > 1 && r->count != count)
            return tool_error(ORT_ERROR_DATA, "%s: input '%s' has rows for %lld samples, input "
                              "'%s' for %lld", place, ort_session_input_name(session, first),
                              (long long)r->count, ort_session_input_name(session, i),
                              (long long)count);
        if (r->count == 1)
            first = i;
        r->count = count;
    }
    return 0;
}

static void drop_parts(row_cutter *r)
{
    for (size_t i = 0; i < r->inputs; i++) {
        ort_value_free(r->parts[i]);
        r->parts[i] = NULL;
    }
}

static size_t row_bytes(const ort_value *value)
{
    const int64_t rows = ort_value_dims(value)[0];
    return rows > 0 ? (size_t)(ort_value_count(value) / rows) *
                          (size_t)ort_dtype_bits(ort_value_dtype(value)) / 8
                    : 0;
}

int rows_next(row_cutter *r, ort_value *const *values, ort_value **inputs)
{
    int status = 0;
    drop_parts(r);
    for (size_t i = 0; i < r->inputs && status == 0; i++) {
        inputs[i] = values[i];
        if (r->take[i] == 0)
            continue;
        int64_t begin = r->at * r->take[i], left = ort_value_dims(values[i])[0] - begin;
        status = join_part(values[i], begin, left < r->take[i] ? left : r->take[i], &r->parts[i]);
        inputs[i] = r->parts[i];
        ort_value_forget(values[i], (size_t)begin * row_bytes(values[i]),
                         (size_t)r->take[i] * row_bytes(values[i]));
    }
    r->at++;
    return status;
}

void rows_close(row_cutter *r)
{
    if (r->parts != NULL)
        drop_parts(r);
    free(r->parts);
    free(r->take);
    *r = (row_cutter){0};
}
