/* npz.c - zip archives of .npy members, read front to back so that they can come through a pipe.
 *
 *     (local header, member)* central header* [zip64 end, its locator] end
 *
 * Reading stops behind the end record: the next archive of a stream follows. Members are stored or
 * deflated, with sizes in front or behind (numpy writing to a pipe). The member __ort__.json names
 * what numpy can't say: {"schema": "ort-npz/1", "members": {"x": {"dtype": "int4", "shape": [3]}},
 * "sources": ["a.png"], "columns": ["id"]}: members that are no values but go with their rows.
 * Sequences, maps and absent values are members NAME.json in the form of tensor_json.c. */
#include <assert.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/hashmap.h"
#include "io/format.h"
#include "io/npz.h"
#include "io/tensor_json.h"

enum { CHUNK = 1 << 15 };

/* ---------------------------------------------------------------------- one member, inflated -- */

typedef struct member {
    ort_input *archive;
    char name[512];
    unsigned flags, method;
    bool sized;              /* compressed size known in front */
    bool wide_descriptor;    /* the descriptor behind has 64-bit sizes */
    uint64_t packed, size;   /* bytes in the archive, and unpacked */
    uint32_t crc;
    uint64_t packed_done, size_done;
    uint32_t crc_done;
    z_stream z;
    bool ended, failed;
    unsigned char chunk[CHUNK];
} member;

/* The next compressed bytes; a member without a size in front is read byte by byte, since nothing
 * behind it may be taken from the stream. */
static size_t refill(member *m)
{
    assert(!m->sized || m->packed_done <= m->packed);
    uint64_t left = m->sized ? m->packed - m->packed_done : 1;
    size_t wanted = left < CHUNK ? (size_t)left : CHUNK;
    size_t got = wanted ? ort_input_read(m->archive, m->chunk, wanted) : 0;
    m->packed_done += got;
    return got;
}

static size_t pull_deflated(member *m, void *bytes, size_t count)
{
    size_t done = 0;
    while (done < count && !m->ended && !m->failed) {
        if (m->z.avail_in == 0) {
            m->z.next_in = m->chunk;
            m->z.avail_in = (uInt)refill(m);
            if (m->z.avail_in == 0)
                break;
        }
        uInt room = count - done > (1u << 30) ? 1u << 30 : (uInt)(count - done);
        m->z.next_out = (Bytef *)bytes + done;
        m->z.avail_out = room;
        int result = inflate(&m->z, Z_NO_FLUSH);
        done += room - m->z.avail_out;
        m->ended = result == Z_STREAM_END;
        m->failed = result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR;
    }
    assert(done <= count);
    return done;
}

static size_t pull_stored(member *m, void *bytes, size_t count)
{
    assert(!m->sized || m->packed_done <= m->packed);
    if (m->sized && count > m->packed - m->packed_done)
        count = (size_t)(m->packed - m->packed_done);
    size_t done = ort_input_read(m->archive, bytes, count);
    m->packed_done += done;
    return done;
}

static size_t pull_member(void *arg, void *bytes, size_t count)
{
    member *m = arg;
    size_t done = m->method == METHOD_DEFLATED ? pull_deflated(m, bytes, count)
                                               : pull_stored(m, bytes, count);
    m->crc_done = (uint32_t)crc32_z(m->crc_done, bytes, done);
    m->size_done += done;
    return done;
}

/* Sizes of the zip64 extra field, in the order of the fields that are all ones. */
static void apply_zip64(member *m, const unsigned char *extra, size_t length)
{
    for (size_t at = 0; at + 4 <= length;) {
        unsigned id = ort_load_u16(extra + at);
        size_t size = ort_load_u16(extra + at + 2);
        at += 4;
        if (size > length - at)
            return;
        if (id == 1) {
            const unsigned char *p = extra + at, *end = p + size;
            m->wide_descriptor = true;
            if (m->size == ZIP32_LIMIT && end - p >= 8) {
                m->size = ort_load_u64(p);
                p += 8;
            }
            if (m->packed == ZIP32_LIMIT && end - p >= 8)
                m->packed = ort_load_u64(p);
            return;
        }
        at += size;
    }
}

/* The local header behind its signature. */
static ort_status open_member(ort_input *archive, member *m, ort_error *err)
{
    unsigned char head[26], extra[65536];
    m->archive = archive;
    ORT_TRY(ort_input_need(archive, head, sizeof head, "a zip member's header", err));
    m->flags = ort_load_u16(head + 2);
    m->method = ort_load_u16(head + 4);
    m->crc = ort_load_u32(head + 10);
    m->packed = ort_load_u32(head + 14);
    m->size = ort_load_u32(head + 18);
    size_t name_length = ort_load_u16(head + 22), extra_length = ort_load_u16(head + 24);
    if (name_length >= sizeof m->name)
        return ort_error_set(err, ORT_ERROR_DATA, "at byte %llu: a member's name has %zu bytes",
                             (unsigned long long)archive->offset, name_length);
    ORT_TRY(ort_input_need(archive, m->name, name_length, "a zip member's name", err));
    m->name[name_length] = '\0';
    ORT_TRY(ort_input_need(archive, extra, extra_length, "a zip member's header", err));
    apply_zip64(m, extra, extra_length);
    m->sized = !(m->flags & FLAG_DESCRIPTOR) || m->packed != 0;
    if (m->flags & FLAG_ENCRYPTED)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "member '%s' is encrypted", m->name);
    if (m->method != METHOD_STORED && m->method != METHOD_DEFLATED)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "member '%s' is compressed by method %u; "
                             "only stored and deflated members are read", m->name, m->method);
    if (m->method == METHOD_DEFLATED && inflateInit2(&m->z, -MAX_WBITS) != Z_OK)
        return ort_error_memory(err, CHUNK);
    return ORT_OK;
}

/* Checksum and sizes behind the data. The signature is optional and so is the width of the sizes:
 * the sizes themselves are known by now and tell. */
static ort_status read_descriptor(member *m, ort_error *err)
{
    unsigned char word[20];
    ORT_TRY(ort_input_need(m->archive, word, 4, "a zip member's checksum", err));
    if (ort_load_u32(word) == SIG_DESCRIPTOR)
        ORT_TRY(ort_input_need(m->archive, word, 4, "a zip member's checksum", err));
    m->crc = ort_load_u32(word);
    ORT_TRY(ort_input_need(m->archive, word, 8, "a zip member's sizes", err));
    bool narrow = !m->wide_descriptor && ort_load_u32(word) == (uint32_t)m->packed_done &&
                  ort_load_u32(word + 4) == (uint32_t)m->size_done;
    if (!narrow)
        ORT_TRY(ort_input_need(m->archive, word, 8, "a zip member's sizes", err));
    m->size = m->size_done;
    return ORT_OK;
}

/* Read what the member's reader left, then compare sizes and checksum. */
static ort_status close_member(member *m, ort_input *in, ort_error *err)
{
    unsigned char rest[256];
    bool open_end = m->method == METHOD_STORED && !m->sized;
    uint64_t before = in->offset;
    while (!open_end && ort_input_read(in, rest, sizeof rest) > 0)
        continue;
    if (m->failed)
        return ort_error_set(err, ORT_ERROR_DATA, "the compressed data is damaged near byte %llu",
                             (unsigned long long)m->archive->offset);
    if ((m->method == METHOD_DEFLATED && !m->ended) || (m->sized && m->packed_done < m->packed))
        return ort_error_set(err, ORT_ERROR_DATA, "truncated at byte %llu, inside the data",
                             (unsigned long long)m->archive->offset);
    if (in->offset != before)
        return ort_error_set(err, ORT_ERROR_DATA, "has %llu bytes behind its array",
                             (unsigned long long)(in->offset - before));
    if (m->flags & FLAG_DESCRIPTOR)
        ORT_TRY(read_descriptor(m, err));
    if (m->size != m->size_done || m->crc != m->crc_done)
        return ort_error_set(err, ORT_ERROR_DATA, "size or checksum doesn't match: the archive is "
                             "damaged");
    return ORT_OK;
}

/* ------------------------------------------------------------------------- names and values -- */

static bool is_json(const char *member_name)
{
    return !strcmp(ort_path_extension(member_name), "json");
}

/* Name of the value in a member: without .npy or .json; "" for numpy's arr_N. */
static void value_name(const char *member_name, char *name, size_t size)
{
    snprintf(name, size, "%s", member_name);
    if (is_json(name) || !strcmp(ort_path_extension(name), "npy"))
        *strrchr(name, '.') = '\0';
    if (!strncmp(name, "arr_", 4) && name[4] && !name[4 + strspn(name + 4, "0123456789")])
        name[0] = '\0';
}

typedef struct archive_reader {
    ort_input *in;
    const ort_read_options *options;
    ort_tensors *tensors;
    ort_hashmap members; /* name to index of its value, or NO_VALUE */
    ort_arena names;
    unsigned char *types; /* text of __ort__.json, or NULL */
    size_t types_length;
} archive_reader;

static const uint64_t NO_VALUE = UINT64_MAX;

static ort_status read_content(archive_reader *r, member *m, ort_input *in, ort_value **value,
                               ort_error *err)
{
    if (!strcmp(m->name, TYPES_MEMBER)) {
        free(r->types);
        r->types = NULL;
        return ort_input_all(in, &r->types, &r->types_length, err);
    }
    if (!is_json(m->name))
        return ort_npy_read_value(in, r->options->dtype, value, err);
    unsigned char *text = NULL;
    size_t length;
    ORT_TRY(ort_input_all(in, &text, &length, err));
    ort_status status = ort_tensor_json_parse((const char *)text, length, ORT_DTYPE_UNDEFINED,
                                              value, err);
    free(text);
    return status;
}

static ort_status note_member(archive_reader *r, const char *name, uint64_t index, ort_error *err)
{
    char *copy = ort_arena_strdup(&r->names, name);
    if (!copy || !ort_hashmap_put_str(&r->members, copy, index))
        return ort_error_memory(err, strlen(name));
    return ORT_OK;
}

static ort_status read_member(archive_reader *r, ort_error *err)
{
    member *m = calloc(1, sizeof *m);
    if (!m)
        return ort_error_memory(err, sizeof *m);
    ort_value *value = NULL;
    ort_status status = open_member(r->in, m, err);
    if (status == ORT_OK && m->method == METHOD_STORED && !m->sized && is_json(m->name))
        status = ort_error_set(err, ORT_ERROR_UNSUPPORTED, "member '%s' is stored without its size "
                               "in front: compress it, or write the archive to a file", m->name);
    if (status == ORT_OK) {
        ort_input in;
        ort_input_init(&in, pull_member, m);
        status = read_content(r, m, &in, &value, err);
        ort_error damage = {0};
        /* A damaged archive explains whatever its content looked like. */
        if (status == ORT_OK || (m->failed && m->method == METHOD_DEFLATED)) {
            ort_status closed = close_member(m, &in, &damage);
            if (closed != ORT_OK && err)
                *err = damage;
            status = closed != ORT_OK ? closed : status;
        }
        if (status != ORT_OK)
            status = ort_error_wrap(err, status, "member '%s'", m->name);
    }
    if (status == ORT_OK && strcmp(m->name, TYPES_MEMBER)) {
        char name[sizeof m->name];
        value_name(m->name, name, sizeof name);
        size_t index = r->tensors->list.count;
        status = note_member(r, m->name, index, err);
        if (status == ORT_OK) {
            status = ort_tensors_add_take(r->tensors, name, value, err);
            value = NULL;
        }
        if (status == ORT_OK && r->tensors->list.count == index)
            status = ort_error_set(err, ORT_ERROR_DATA, "two members are named '%s'", name);
    } else if (status == ORT_OK) {
        status = note_member(r, m->name, NO_VALUE, err);
    }
    ort_value_free(value);
    if (m->method == METHOD_DEFLATED)
        inflateEnd(&m->z);
    free(m);
    return status;
}

/* -------------------------------------------------------------------- element types by name -- */

/* Give `t` its real type: stored as unsigned integers of the same size, or packed flat bytes. */
static ort_status retype(ort_tensor *t, struct json_object *entry, const char *name, ort_error *err)
{
    struct json_object *type_json, *shape_json;
    ort_dtype dtype = ORT_DTYPE_UNDEFINED;
    if (json_object_object_get_ex(entry, "dtype", &type_json) &&
        json_object_is_type(type_json, json_type_string))
        dtype = ort_dtype_find(json_object_get_string(type_json));
    if (dtype == ORT_DTYPE_UNDEFINED)
        return ort_error_set(err, ORT_ERROR_DATA, TYPES_MEMBER ": '%s' has an unknown dtype", name);
    if (dtype == t->dtype)
        return ORT_OK;
    ort_shape shape = t->shape;
    if (json_object_object_get_ex(entry, "shape", &shape_json) &&
        json_object_is_type(shape_json, json_type_array)) {
        size_t rank = json_object_array_length(shape_json);
        if (rank > ORT_MAX_RANK)
            return ort_error_set(err, ORT_ERROR_DATA, TYPES_MEMBER ": '%s' has rank %zu", name,
                                 rank);
        shape.rank = (int)rank;
        for (size_t i = 0; i < rank; i++)
            shape.dim[i] = json_object_get_int64(json_object_array_get_idx(shape_json, i));
    }
    size_t bytes = 0;
    if (ort_shape_check(&shape, dtype, NULL) != ORT_OK ||
        !ort_dtype_bytes(dtype, ort_shape_count(&shape), &bytes) || t->dtype == ORT_DTYPE_STRING ||
        dtype == ORT_DTYPE_STRING || bytes != ort_tensor_bytes(t))
        return ort_error_set(err, ORT_ERROR_DATA, TYPES_MEMBER ": '%s' can't be %s of that shape: "
                             "its member has %zu bytes", name, ort_dtype_name(dtype),
                             t->dtype == ORT_DTYPE_STRING ? 0 : ort_tensor_bytes(t));
    t->dtype = dtype;
    t->shape = shape;
    return ORT_OK;
}

static ort_status move_column(ort_tensors *tensors, const char *name, ort_error *err)
{
    for (size_t i = 0; i < tensors->list.count; i++)
        if (!strcmp(tensors->list.data[i].name, name))
            return ort_tensors_add_column_take(tensors, name, ort_tensors_take_at(tensors, i), err);
    return ort_error_set(err, ORT_ERROR_DATA, "member '%s' is missing, which " TYPES_MEMBER
                         " names a column", name);
}

/* Each name of the list `key`, if there is one. */
static ort_status apply_names(archive_reader *r, struct json_object *root, const char *key,
                              ort_status (*apply)(ort_tensors *, const char *, ort_error *),
                              ort_error *err)
{
    struct json_object *list;
    bool there = json_object_object_get_ex(root, key, &list) &&
                 json_object_is_type(list, json_type_array);
    for (size_t i = 0; there && i < json_object_array_length(list); i++) {
        struct json_object *name = json_object_array_get_idx(list, i);
        if (json_object_is_type(name, json_type_string))
            ORT_TRY(apply(r->tensors, json_object_get_string(name), err));
    }
    return ORT_OK;
}

static ort_status apply_root(archive_reader *r, struct json_object *root, ort_error *err)
{
    struct json_object *members;
    if (!root || !json_object_object_get_ex(root, "members", &members) ||
        !json_object_is_type(members, json_type_object))
        return ort_error_set(err, ORT_ERROR_DATA, TYPES_MEMBER " is not the JSON object it should "
                             "be");
    json_object_object_foreach(members, name, entry) {
        char member_name[600];
        uint64_t index;
        snprintf(member_name, sizeof member_name, "%.500s.npy", name);
        if (!ort_hashmap_get_str(&r->members, member_name, &index))
            return ort_error_set(err, ORT_ERROR_DATA, "member '%s' is missing, which "
                                 TYPES_MEMBER " names", member_name);
        assert(index < r->tensors->list.count); /* a member .npy is a tensor */
        ort_value *value = r->tensors->list.data[index].value;
        assert(value->kind == ORT_KIND_TENSOR);
        ORT_TRY(retype(&value->tensor, entry, name, err));
    }
    ORT_TRY(apply_names(r, root, "sources", ort_tensors_add_source, err));
    return apply_names(r, root, "columns", move_column, err);
}

static ort_status apply_types(archive_reader *r, ort_error *err)
{
    if (!r->types)
        return ORT_OK;
    struct json_object *root;
    ORT_TRY(ort_json_parse_object(r->types, r->types_length, &root, err));
    ort_status status = apply_root(r, root, err);
    json_object_put(root);
    return status;
}

/* ------------------------------------------------------------------------ central directory -- */

static ort_status skip(ort_input *in, size_t count, ort_error *err)
{
    unsigned char rest[512];
    while (count > 0) {
        size_t part = count < sizeof rest ? count : sizeof rest;
        ORT_TRY(ort_input_need(in, rest, part, "the zip directory", err));
        count -= part;
    }
    return ORT_OK;
}

/* A central header behind its signature: its member must have been seen. */
static ort_status read_central(archive_reader *r, ort_error *err)
{
    unsigned char head[42];
    char name[512];
    ORT_TRY(ort_input_need(r->in, head, sizeof head, "the zip directory", err));
    size_t length = ort_load_u16(head + 24);
    if (length >= sizeof name)
        return ort_error_set(err, ORT_ERROR_DATA, "a member's name has %zu bytes", length);
    ORT_TRY(ort_input_need(r->in, name, length, "the zip directory", err));
    name[length] = '\0';
    ORT_TRY(skip(r->in, (size_t)ort_load_u16(head + 26) + ort_load_u16(head + 28), err));
    if (!ort_hashmap_get_str(&r->members, name, NULL))
        return ort_error_set(err, ORT_ERROR_DATA, "member '%s' is missing, which the zip directory "
                             "names", name);
    return ORT_OK;
}

static ort_status read_end(ort_input *in, ort_error *err)
{
    unsigned char head[18];
    ORT_TRY(ort_input_need(in, head, sizeof head, "the end of the archive", err));
    return skip(in, ort_load_u16(head + 16), err);
}

static ort_status read_end64(ort_input *in, ort_error *err)
{
    unsigned char head[8];
    ORT_TRY(ort_input_need(in, head, sizeof head, "the end of the archive", err));
    uint64_t size = ort_load_u64(head);
    if (size > 1 << 20)
        return ort_error_set(err, ORT_ERROR_DATA, "the zip64 end record claims %llu bytes",
                             (unsigned long long)size);
    return skip(in, (size_t)size, err);
}

static ort_status read_archive(archive_reader *r, ort_error *err)
{
    for (;;) {
        unsigned char word[4];
        uint64_t at = r->in->offset;
        ORT_TRY(ort_input_need(r->in, word, 4, "the archive's next part", err));
        switch (ort_load_u32(word)) {
        case SIG_LOCAL: ORT_TRY(read_member(r, err)); break;
        case SIG_CENTRAL: ORT_TRY(read_central(r, err)); break;
        case SIG_END64: ORT_TRY(read_end64(r->in, err)); break;
        case SIG_LOCATOR64: ORT_TRY(skip(r->in, 16, err)); break;
        case SIG_END: return read_end(r->in, err);
        default:
            return ort_error_set(err, ORT_ERROR_DATA, "at byte %llu: no part of a zip archive "
                                 "starts here; the file is damaged", (unsigned long long)at);
        }
    }
}

static ort_status read_record(ort_input *in, const ort_read_options *options, ort_tensors *tensors,
                              ort_error *err)
{
    archive_reader r = {.in = in, .options = options, .tensors = tensors};
    ort_status status = read_archive(&r, err);
    if (status == ORT_OK)
        status = apply_types(&r, err);
    ort_hashmap_release(&r.members);
    ort_arena_release(&r.names);
    free(r.types);
    return status;
}

static bool matches(const unsigned char *bytes, size_t count)
{
    return ort_starts_with(bytes, count, "PK\x03\x04", 4) ||
           ort_starts_with(bytes, count, "PK\x05\x06", 4);
}

const ort_format_row ort_format_row_npz = {
    .format = ORT_FORMAT_NPZ,
    .name = "npz",
    .endings = "npz",
    .traits = ORT_FORMAT_MANY | ORT_FORMAT_NESTED | ORT_FORMAT_COLUMNS | ORT_FORMAT_TAKES_DTYPE,
    .has_dtype = ort_format_any_dtype,
    .matches = matches,
    .read_record = read_record,
    .write = ort_npz_write,
};
