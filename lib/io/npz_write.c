/* npz_write.c - .npz archives written in one pass (npz.h). Members are stored, without times: the
 * same values give the same bytes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/format.h"
#include "io/npz.h"
#include "io/tensor_json.h"

typedef struct archive_writer {
    FILE *stream;
    uint64_t offset;
    ort_strbuf directory;
    uint64_t count;
    ort_strbuf name; /* of the present member */
} archive_writer;

static void add_u16(ort_strbuf *out, unsigned value)
{
    char bytes[2] = {(char)value, (char)(value >> 8)};
    ort_strbuf_add_bytes(out, bytes, 2);
}

static void add_u32(ort_strbuf *out, uint32_t value)
{
    add_u16(out, value & 0xffff);
    add_u16(out, value >> 16);
}

static void add_u64(ort_strbuf *out, uint64_t value)
{
    add_u32(out, (uint32_t)value);
    add_u32(out, (uint32_t)(value >> 32));
}

/* Fields from "version needed" to the name length, the same in both headers. Times are those of
 * 1980-01-01. */
static void add_common(ort_strbuf *out, uint32_t crc, uint64_t size, bool wide, size_t name_length)
{
    assert(name_length <= 0xffff && (wide || size < ZIP32_LIMIT));
    add_u16(out, wide ? 45 : 20);
    add_u16(out, FLAG_UTF8);
    add_u16(out, METHOD_STORED);
    add_u32(out, 0x00210000);
    add_u32(out, crc);
    add_u32(out, wide ? (uint32_t)ZIP32_LIMIT : (uint32_t)size);
    add_u32(out, wide ? (uint32_t)ZIP32_LIMIT : (uint32_t)size);
    add_u16(out, (unsigned)name_length);
}

static void put(archive_writer *w, const void *bytes, size_t count)
{
    if (count)
        fwrite(bytes, 1, count, w->stream);
    w->offset += count;
}

/* A member of two parts (a header and a payload). */
static ort_status write_member(archive_writer *w, const char *name, const void *first,
                               size_t first_size, const void *second, size_t second_size,
                               ort_error *err)
{
    uint64_t size = (uint64_t)first_size + second_size, offset = w->offset;
    size_t name_length = strlen(name);
    bool wide = size >= ZIP32_LIMIT, far = offset >= ZIP32_LIMIT;
    if (name_length > 0xffff)
        return ort_error_set(err, ORT_ERROR_DATA, "the name of a value has %zu bytes, .npz allows "
                             "65535", name_length);
    uLong crc = crc32_z(0, first, first_size);
    if (second_size)
        crc = crc32_z(crc, second, second_size);
    ort_strbuf head = {0};
    add_u32(&head, SIG_LOCAL);
    add_common(&head, (uint32_t)crc, size, wide, name_length);
    add_u16(&head, wide ? 20 : 0);
    ort_strbuf_add_bytes(&head, name, name_length);
    if (wide) {
        add_u32(&head, 1 | 16 << 16);
        add_u64(&head, size);
        add_u64(&head, size);
    }
    ort_strbuf *d = &w->directory;
    unsigned extra = (wide ? 16 : 0) + (far ? 8 : 0);
    add_u32(d, SIG_CENTRAL);
    add_u16(d, wide || far ? 45 : 20);
    add_common(d, (uint32_t)crc, size, wide, name_length);
    add_u16(d, extra ? extra + 4 : 0);
    add_u64(d, 0); /* comment length, disk, internal attributes, half of the external ones */
    add_u16(d, 0);
    add_u32(d, far ? (uint32_t)ZIP32_LIMIT : (uint32_t)offset);
    ort_strbuf_add_bytes(d, name, name_length);
    if (extra) {
        add_u16(d, 1);
        add_u16(d, extra);
        if (wide) {
            add_u64(d, size);
            add_u64(d, size);
        }
        if (far)
            add_u64(d, offset);
    }
    bool failed = head.failed || d->failed;
    if (!failed) {
        put(w, head.data, head.length);
        put(w, first, first_size);
        put(w, second, second_size);
        w->count++;
    }
    ort_strbuf_release(&head);
    return failed ? ort_error_memory(err, 1024) : ORT_OK;
}

static ort_status write_end(archive_writer *w, ort_error *err)
{
    uint64_t start = w->offset, size = w->directory.length;
    bool wide = start >= ZIP32_LIMIT || size >= ZIP32_LIMIT || w->count >= 0xffff;
    ort_strbuf *d = &w->directory;
    if (wide) {
        add_u32(d, SIG_END64);
        add_u64(d, 44);
        add_u16(d, 45);
        add_u16(d, 45);
        add_u64(d, 0);
        add_u64(d, w->count);
        add_u64(d, w->count);
        add_u64(d, size);
        add_u64(d, start);
        add_u32(d, SIG_LOCATOR64);
        add_u32(d, 0);
        add_u64(d, start + size);
        add_u32(d, 1);
    }
    add_u32(d, SIG_END);
    add_u32(d, 0);
    add_u16(d, w->count < 0xffff ? (unsigned)w->count : 0xffff);
    add_u16(d, w->count < 0xffff ? (unsigned)w->count : 0xffff);
    add_u32(d, size < ZIP32_LIMIT ? (uint32_t)size : (uint32_t)ZIP32_LIMIT);
    add_u32(d, start < ZIP32_LIMIT ? (uint32_t)start : (uint32_t)ZIP32_LIMIT);
    add_u16(d, 0);
    if (d->failed)
        return ort_error_memory(err, (size_t)size);
    put(w, d->data, d->length);
    return ORT_OK;
}

static bool needs_json(const ort_value *value)
{
    if (!value || value->kind != ORT_KIND_TENSOR)
        return true;
    if (value->tensor.dtype != ORT_DTYPE_STRING)
        return false;
    const ort_string *s = value->tensor.data; /* numpy drops NUL bytes at the end of a string */
    int64_t count = ort_tensor_count(&value->tensor);
    for (int64_t i = 0; i < count; i++)
        if (s[i].length && s[i].ptr[s[i].length - 1] == '\0')
            return true;
    return false;
}

/* The names that `name` gives, if there are any. */
static void add_names(ort_json *json, const char *key, const ort_tensors *tensors, size_t count,
                      const char *(*name)(const ort_tensors *, size_t))
{
    if (!count)
        return;
    ort_json_key(json, key);
    ort_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        ort_json_string(json, name(tensors, i));
    ort_json_end_array(json);
}

static ort_status write_types(archive_writer *w, const ort_tensors *tensors, ort_error *err)
{
    ort_strbuf text = {0};
    ort_json json;
    char number[32];
    bool any = tensors->sources.count > 0 || tensors->columns.count > 0;
    ort_json_init(&json, &text, 0);
    ort_json_begin_object(&json);
    ort_json_key(&json, "schema");
    ort_json_string(&json, "ort-npz/1");
    ort_json_key(&json, "members");
    ort_json_begin_object(&json);
    for (size_t i = 0; i < tensors->list.count; i++) {
        const ort_value *value = tensors->list.data[i].value;
        if (needs_json(value) || ort_dtype_get(value->tensor.dtype)->numpy)
            continue;
        any = true;
        ort_json_key(&json, ort_tensors_full_name(tensors, i, number));
        ort_json_begin_object(&json);
        ort_tensor_json_add_type(&json, ort_dtype_name(value->tensor.dtype), &value->tensor.shape);
        ort_json_end_object(&json);
    }
    ort_json_end_object(&json);
    add_names(&json, "sources", tensors, tensors->sources.count, ort_tensors_source);
    add_names(&json, "columns", tensors, tensors->columns.count, ort_tensors_column_name);
    ort_json_end_object(&json);
    ort_status status = text.failed ? ort_error_memory(err, text.length) : ORT_OK;
    if (status == ORT_OK && any)
        status = write_member(w, TYPES_MEMBER, text.data, text.length, NULL, 0, err);
    ort_strbuf_release(&text);
    return status;
}

static ort_status write_json_member(archive_writer *w, const char *name, const ort_value *value,
                                    ort_error *err)
{
    ORT_TRY(ort_tensor_json_check(value, err));
    ort_strbuf text = {0};
    ort_json json;
    ort_json_init(&json, &text, 0);
    ort_tensor_json_add(&json, value);
    ort_status status = text.failed ? ort_error_memory(err, text.length)
                                    : write_member(w, name, text.data, text.length, NULL, 0, err);
    ort_strbuf_release(&text);
    return status;
}

static ort_status write_value(archive_writer *w, const char *name, const ort_value *value,
                              ort_error *err)
{
    bool as_json = needs_json(value);
    ort_strbuf_clear(&w->name);
    ort_strbuf_addf(&w->name, "%s%s", name, as_json ? ".json" : ".npy");
    if (w->name.failed)
        return ort_error_memory(err, strlen(name));
    if (as_json)
        return write_json_member(w, ort_strbuf_text(&w->name), value, err);
    ort_npy_bytes bytes;
    ORT_TRY(ort_npy_encode(&value->tensor, true, &bytes, err));
    ort_status status = write_member(w, ort_strbuf_text(&w->name), bytes.header.data,
                                     bytes.header.length, bytes.payload, bytes.payload_bytes, err);
    ort_npy_release(&bytes);
    return status;
}

ort_status ort_npz_write(const ort_tensors *tensors, FILE *stream, const ort_write_options *options,
                         ort_error *err)
{
    archive_writer w = {.stream = stream};
    char number[32];
    ort_status status = write_types(&w, tensors, err);
    for (size_t i = 0; i < tensors->list.count && status == ORT_OK; i++)
        status = write_value(&w, ort_tensors_full_name(tensors, i, number),
                             tensors->list.data[i].value, err);
    for (size_t i = 0; i < tensors->columns.count && status == ORT_OK; i++)
        status = write_value(&w, tensors->columns.data[i].name, tensors->columns.data[i].value,
                             err);
    if (status == ORT_OK)
        status = write_end(&w, err);
    ort_strbuf_release(&w.name);
    ort_strbuf_release(&w.directory);
    return status;
}
