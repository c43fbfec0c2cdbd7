/* value_stream.c - a head of fixed size says what follows (value_stream.h). */
#include "common/value_stream.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DIMS = 32 };

typedef struct head {
    int32_t kind, dtype, rank, unused;
    int64_t count; /* items of a sequence */
    int64_t dims[MOST_DIMS];
} head;

/* ---- writing */

static bool put(FILE *file, const void *bytes, size_t count)
{
    return count == 0 || fwrite(bytes, 1, count, file) == count;
}

static bool write_strings(FILE *file, const ort_value *v)
{
    bool ok = true;
    for (int64_t i = 0; i < ort_value_count(v) && ok; i++) {
        size_t length = 0;
        const char *text = ort_value_string(v, i, &length);
        ok = put(file, &length, sizeof length) && put(file, text, length);
    }
    return ok;
}

static bool write_items(FILE *file, const ort_value *v, int64_t count)
{
    bool ok = true;
    for (int64_t i = 0; i < count && ok; i++)
        ok = value_write(file, ort_value_item(v, (size_t)i));
    return ok;
}

bool value_write(FILE *file, const ort_value *v)
{
    head h = {.kind = v ? (int32_t)ort_value_get_kind(v) : ORT_VALUE_NONE};
    if (h.kind == ORT_VALUE_TENSOR) {
        h.dtype = (int32_t)ort_value_dtype(v);
        h.rank = ort_value_rank(v);
        if (h.rank > MOST_DIMS)
            return false;
        memcpy(h.dims, ort_value_dims(v), (size_t)h.rank * sizeof *h.dims);
    } else if (h.kind == ORT_VALUE_SEQUENCE) {
        h.count = ort_value_count(v);
    }
    if (!put(file, &h, sizeof h))
        return false;
    if (h.kind == ORT_VALUE_SEQUENCE)
        return write_items(file, v, h.count);
    if (h.kind == ORT_VALUE_MAP)
        return write_items(file, v, 2);
    if (h.kind != ORT_VALUE_TENSOR)
        return true;
    return h.dtype == ORT_DTYPE_STRING
               ? write_strings(file, v)
               : put(file, ort_value_data((ort_value *)(uintptr_t)v), ort_value_bytes(v));
}

/* ---- reading */

static ort_status fail(ort_error *err)
{
    if (err) {
        err->status = ORT_ERROR_RUN;
        err->count = 1;
        snprintf(err->message, sizeof err->message, "the other process of the tool ended early");
    }
    return ORT_ERROR_RUN;
}

static bool get(FILE *file, void *bytes, size_t count)
{
    return count == 0 || fread(bytes, 1, count, file) == count;
}

static ort_status read_strings(FILE *file, ort_value *v, ort_error *err)
{
    for (int64_t i = 0; i < ort_value_count(v); i++) {
        size_t length = 0;
        char *text;
        if (!get(file, &length, sizeof length))
            return fail(err);
        ort_status status = ort_value_resize_string(v, i, length, &text, err);
        if (status != ORT_OK)
            return status;
        if (!get(file, text, length))
            return fail(err);
    }
    return ORT_OK;
}

static ort_status read_tensor(FILE *file, const head *h, ort_value **value, ort_error *err)
{
    ort_status status = ort_value_new_tensor((ort_dtype)h->dtype, h->rank, h->dims, value, err);
    if (status != ORT_OK)
        return status;
    if (h->dtype == ORT_DTYPE_STRING)
        return read_strings(file, *value, err);
    return get(file, ort_value_data(*value), ort_value_bytes(*value)) ? ORT_OK : fail(err);
}

static ort_status read_sequence(FILE *file, int64_t count, ort_value **value, ort_error *err)
{
    ort_status status = ort_value_new_sequence(value, err);
    for (int64_t i = 0; i < count && status == ORT_OK; i++) {
        ort_value *item = NULL;
        status = value_read(file, &item, err);
        if (status == ORT_OK)
            status = ort_value_append(*value, item, err);
        ort_value_free(item);
    }
    return status;
}

static ort_status read_map(FILE *file, ort_value **value, ort_error *err)
{
    ort_value *parts[2] = {NULL, NULL};
    ort_status status = value_read(file, &parts[0], err);
    if (status == ORT_OK)
        status = value_read(file, &parts[1], err);
    if (status == ORT_OK)
        status = ort_value_new_map(parts[0], parts[1], value, err);
    ort_value_free(parts[0]);
    ort_value_free(parts[1]);
    return status;
}

ort_status value_read(FILE *file, ort_value **value, ort_error *err)
{
    head h;
    ort_status status = ORT_OK;
    *value = NULL;
    if (!get(file, &h, sizeof h))
        return fail(err);
    if (h.kind == ORT_VALUE_TENSOR)
        status = read_tensor(file, &h, value, err);
    else if (h.kind == ORT_VALUE_SEQUENCE)
        status = read_sequence(file, h.count, value, err);
    else if (h.kind == ORT_VALUE_MAP)
        status = read_map(file, value, err);
    if (status != ORT_OK) {
        ort_value_free(*value);
        *value = NULL;
    }
    return status;
}
