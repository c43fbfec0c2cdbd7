/* external.c - weights in files beside the model. A location comes from a hostile file: it must
 * name a regular file below the model's folder, without ".." or an absolute path (ONNX forbids
 * both), and links may lead only where the model may reach (io/reach.h). Each file is mapped once.
 * The checksum key is a note of the producer and isn't verified: that would read all weights. */
#include "io/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "io/file_map.h"

typedef struct place {
    const char *name; /* of the tensor */
    const char *location;
    uint64_t offset, length;
    bool has_offset, has_length;
} place;

static bool parse_size(const char *text, uint64_t *value)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static ort_status read_place(const Onnx__TensorProto *proto, place *p, ort_error *err)
{
    *p = (place){.name = proto->name ? proto->name : ""};
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const char *key = proto->external_data[i]->key, *value = proto->external_data[i]->value;
        if (!key || !value)
            continue;
        bool ok = true;
        if (!strcmp(key, "location"))
            p->location = value;
        else if (!strcmp(key, "offset"))
            ok = p->has_offset = parse_size(value, &p->offset);
        else if (!strcmp(key, "length"))
            ok = p->has_length = parse_size(value, &p->length);
        if (!ok)
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "tensor '%s': external data %s '%.60s' isn't a number", p->name,
                                 key, value);
    }
    if (!p->location || !*p->location)
        return ort_error_set(err, ORT_ERROR_MODEL, "tensor '%s': external data has no location",
                             p->name);
    return ORT_OK;
}

static ort_status refuse(const place *p, const char *why, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_MODEL,
                         "tensor '%s': external data location '%.200s' %s (files must lie below "
                         "the model's folder)",
                         p->name, p->location, why);
}

/* What can be said without opening anything. */
static ort_status check_location(const place *p, ort_error *err)
{
    if (p->location[0] == '/')
        return refuse(p, "is an absolute path", err);
    for (const char *s = p->location; *s;) {
        size_t length = strcspn(s, "/");
        if (length == 2 && !strncmp(s, "..", 2))
            return refuse(p, "leads outside of the model's folder", err);
        s += length + strspn(s + length, "/");
    }
    return ORT_OK;
}

/* The caller's bytes of that name, or else a file. */
static ort_status open_location(ort_codec *codec, const place *p, ort_blob **blob, ort_error *err)
{
    const ort_external_file *given = ort_reach_given(codec->reach, p->location);
    if (given)
        return ort_blob_new(ORT_BLOB_BORROWED, given->data, given->bytes, blob, err);
    ORT_TRY(check_location(p, err));
    if (!codec->reach || !codec->reach->folders.count)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "tensor '%s' lies in external data '%.200s', which a model that came "
                             "without a folder can't reach: load it from its file, or name the "
                             "folder with --external-data-root DIR",
                             p->name, p->location);
    int fd = -1;
    ort_status status = ort_reach_open(codec->reach, p->location, &fd, err);
    if (status == ORT_OK) {
        status = ort_file_map_fd(fd, p->location, 0, blob, err);
        close(fd);
    }
    if (status != ORT_OK) /* a part of the model that can't be read */
        return ort_error_recast(err, status == ORT_ERROR_IO ? ORT_ERROR_MODEL : status,
                                "tensor '%s': external data", p->name);
    return ORT_OK;
}

static ort_status map_location(ort_codec *codec, const place *p, ort_blob **blob, ort_error *err)
{
    uint64_t index;
    if (ort_hashmap_get_str(&codec->locations, p->location, &index)) {
        assert(index < codec->blobs.count);
        *blob = codec->blobs.data[index];
        return ORT_OK;
    }
    ORT_TRY(open_location(codec, p, blob, err));
    ort_loading_allow_file((*blob)->count);
    if (!ort_vec_push(&codec->blobs, *blob)) {
        ort_blob_release(*blob);
        return ort_error_memory(err, sizeof *blob);
    }
    return ort_hashmap_put_str(&codec->locations, p->location, codec->blobs.count - 1)
               ? ORT_OK
               : ort_error_memory(err, sizeof *blob);
}

/* A block of the pack file that the message lies in; without a place: data that nobody reads. */
static ort_status in_pack(const ort_codec *codec, const place *p, size_t need,
                          const uint8_t **bytes, ort_error *err)
{
    const ort_blob *blob = p->has_offset ? codec->stored : codec->absent;
    uint64_t offset = p->has_offset ? p->offset : 0;
    if (!blob || offset > blob->count || need > blob->count - offset)
        return ort_error_set(err, ORT_ERROR_MODEL, "tensor '%s' lies outside of the pack", p->name);
    *bytes = blob->bytes + offset;
    return ORT_OK;
}

ort_status ort_codec_external(ort_codec *codec, const Onnx__TensorProto *proto, size_t need,
                              const uint8_t **bytes, ort_error *err)
{
    place p;
    ort_blob *blob = NULL;
    ORT_TRY(read_place(proto, &p, err));
    if (codec->stored)
        return in_pack(codec, &p, need, bytes, err);
    if (codec->skeleton)
        return ort_reach_given(codec->reach, p.location) ? ORT_OK : check_location(&p, err);
    ORT_TRY(map_location(codec, &p, &blob, err));
    if (p.has_length && p.length != need)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "tensor '%s': external data has length %llu, its type and shape need "
                             "%zu",
                             p.name, (unsigned long long)p.length, need);
    if (p.offset > blob->count || need > blob->count - p.offset)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "tensor '%s': external data '%.200s' has %zu bytes, the tensor lies "
                             "at %llu to %llu (truncated file?)",
                             p.name, p.location, blob->count, (unsigned long long)p.offset,
                             (unsigned long long)p.offset + need);
    *bytes = blob->bytes + p.offset;
    return ORT_OK;
}
