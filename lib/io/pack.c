/* pack.c - reading pack files (pack.h). Nothing of the file is believed before its place, size and
 * digest were checked; payload is only looked at by ort_pack_verify. */
#include "io/pack.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hashmap.h"
#include "io/file_map.h"
#include "io/wire.h"
#include "source_id.h"

enum { METADATA_FIELD = 14, KEY_FIELD = 1, VALUE_FIELD = 2 };

const char *ort_pack_library(void)
{
#define QUOTE(x) #x
#define TEXT(x) QUOTE(x)
    return TEXT(ORT_VERSION_MAJOR) "." TEXT(ORT_VERSION_MINOR) "." TEXT(ORT_VERSION_PATCH) "+"
           ORT_SOURCE_ID;
}

uint64_t ort_pack_page_digest(const ort_pack_page *page)
{
    ort_pack_page copy = *page;
    copy.header.digest = 0;
    return ort_hash_bytes(copy.bytes, sizeof copy.bytes, ORT_PACK_FORMAT);
}

/* ---- opening */

static ort_status damaged(const char *what, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_MODEL, "damaged: %s", what);
}

static bool inside(const ort_blob *blob, uint64_t offset, uint64_t bytes)
{
    return offset >= ORT_PACK_PAGE && offset <= blob->count && bytes <= blob->count - offset;
}

static bool terminated(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

static ort_status read_header(const ort_blob *blob, ort_pack_page *page, ort_error *err)
{
    const ort_pack_header *h = &page->header;
    if (blob->count < ORT_PACK_PAGE)
        return damaged("shorter than its header", err);
    memcpy(page, blob->bytes, sizeof *page);
    if (memcmp(h->magic, ORT_PACK_MAGIC, sizeof h->magic))
        return ort_error_set(err, ORT_ERROR_MODEL, "isn't a pack file");
    if (h->format != ORT_PACK_FORMAT || h->byte_order != ORT_PACK_BYTE_ORDER)
        return ort_error_set(err, ORT_ERROR_MODEL, "has format %u, this library reads %d",
                             h->format, ORT_PACK_FORMAT);
    if (h->digest != ort_pack_page_digest(page))
        return damaged("its header's digest differs", err);
    if (h->file_bytes != blob->count)
        return ort_error_set(err, ORT_ERROR_MODEL, "damaged: has %zu bytes, was written with %llu",
                             blob->count, (unsigned long long)h->file_bytes);
    if (!terminated(h->stamp.library, sizeof h->stamp.library) ||
        !terminated(h->stamp.isa, sizeof h->stamp.isa) ||
        !terminated(h->stamp.data_file, sizeof h->stamp.data_file))
        return damaged("its stamp", err);
    return ORT_OK;
}

static bool entry_fits(const ort_blob *blob, const ort_pack_entry *e)
{
    return e->offset % 64 == 0 && inside(blob, e->offset, e->bytes) &&
           terminated(e->kind, sizeof e->kind);
}

static ort_status read_sections(const ort_pack_header *h, ort_pack *pack, ort_error *err)
{
    const ort_blob *blob = pack->blob;
    uint64_t most = blob->count / sizeof *pack->entries;
    if (!inside(blob, h->graph_offset, h->graph_bytes) || h->table_count > most ||
        !inside(blob, h->table_offset, h->table_count * sizeof *pack->entries) ||
        h->table_offset % _Alignof(ort_pack_entry))
        return damaged("a section lies outside of the file", err);
    pack->graph = blob->bytes + h->graph_offset;
    pack->graph_bytes = h->graph_bytes;
    pack->entries = (const ort_pack_entry *)(const void *)(blob->bytes + h->table_offset);
    pack->entry_count = h->table_count;
    if (ort_hash_bytes(pack->graph, pack->graph_bytes, 0) != h->graph_digest)
        return damaged("the digest of its graph differs", err);
    if (ort_hash_bytes(pack->entries, pack->entry_count * sizeof *pack->entries, 0) !=
        h->table_digest)
        return damaged("the digest of its table differs", err);
    for (size_t i = 0; i < pack->entry_count; i++)
        if (!entry_fits(blob, &pack->entries[i]))
            return damaged("an entry lies outside of the file", err);
    return ORT_OK;
}

/* Takes the blob of `pack`. */
static ort_status read_pack(ort_pack *pack, ort_error *err)
{
    ort_pack_page page;
    ort_status status = read_header(pack->blob, &page, err);
    if (status == ORT_OK)
        status = read_sections(&page.header, pack, err);
    if (status != ORT_OK) {
        ort_pack_release(pack);
        return status;
    }
    pack->stamp = page.header.stamp;
    pack->absent_bytes = page.header.absent_bytes;
    return ORT_OK;
}

ort_status ort_pack_open(const char *path, ort_pack *pack, ort_error *err)
{
    *pack = (ort_pack){0};
    ORT_TRY(ort_file_map(path, 0, &pack->blob, err));
    return read_pack(pack, err);
}

ort_status ort_pack_open_fd(int fd, const char *label, ort_pack *pack, ort_error *err)
{
    *pack = (ort_pack){0};
    ORT_TRY(ort_file_map_fd(fd, label, 0, &pack->blob, err));
    return read_pack(pack, err);
}

void ort_pack_release(ort_pack *pack)
{
    ort_blob_release(pack->blob);
    *pack = (ort_pack){0};
}

/* ---- reading everything */

static bool all_zero(const uint8_t *bytes, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        if (bytes[from])
            return false;
    return true;
}

/* Is entry `i` an earlier block again, for another step? */
static bool repeats(const ort_pack *pack, const ort_hashmap *blocks, size_t i)
{
    const ort_pack_entry *e = &pack->entries[i], *first;
    uint64_t index;
    if (!ort_hashmap_get(blocks, (const char *)&e->offset, sizeof e->offset, &index))
        return false;
    first = &pack->entries[index];
    return e->bytes == first->bytes && e->digest == first->digest;
}

/* Entries follow each other in the file, with zeros between them, but for those that repeat one.
 * blocks receives the others, by offset. */
static ort_status check_gaps(const ort_pack *pack, ort_hashmap *blocks, ort_error *err)
{
    uint64_t at = ORT_PACK_PAGE, graph = (uint64_t)(pack->graph - pack->blob->bytes);
    const uint8_t *bytes = pack->blob->bytes, *table = (const uint8_t *)pack->entries;
    uint64_t table_end = (uint64_t)(table - bytes) + pack->entry_count * sizeof *pack->entries;
    assert(table_end <= pack->blob->count && graph + pack->graph_bytes <= pack->blob->count);
    for (size_t i = 0; i < pack->entry_count; i++) {
        const ort_pack_entry *e = &pack->entries[i];
        assert(entry_fits(pack->blob, e)); /* as it was opened */
        if (repeats(pack, blocks, i))
            continue;
        if (e->offset < at || !all_zero(bytes, at, e->offset))
            return damaged("bytes between blocks", err);
        if (!ort_hashmap_put(blocks, (const char *)&e->offset, sizeof e->offset, i))
            return ort_error_memory(err, sizeof *e);
        at = e->offset + e->bytes;
    }
    if (graph < at || !all_zero(bytes, at, graph) ||
        !all_zero(bytes, graph + pack->graph_bytes, (uint64_t)(table - bytes)) ||
        !all_zero(bytes, table_end, pack->blob->count))
        return damaged("bytes between sections", err);
    return ORT_OK;
}

static size_t piece_count(uint64_t bytes)
{
    return (size_t)((bytes + ORT_PACK_PIECE - 1) / ORT_PACK_PIECE);
}

static size_t piece_bytes(uint64_t bytes, size_t piece)
{
    assert(piece < piece_count(bytes));
    uint64_t left = bytes - piece * ORT_PACK_PIECE;
    return left < ORT_PACK_PIECE ? (size_t)left : ORT_PACK_PIECE;
}

static uint64_t join(uint64_t sum, uint64_t piece)
{
    const uint64_t pair[2] = {sum, piece};
    return ort_digest(pair, sizeof pair);
}

uint64_t ort_pack_digest(const void *bytes, size_t count)
{
    uint64_t sum = count;
    for (size_t i = 0; i < piece_count(count); i++)
        sum = join(sum, ort_digest((const char *)bytes + i * ORT_PACK_PIECE,
                                   piece_bytes(count, i)));
    return sum;
}

typedef struct piece {
    const ort_pack_entry *entry;
    size_t index;
    uint64_t digest;
} piece;

typedef struct reading {
    const ort_pack *pack;
    piece *pieces;
} reading;

static void read_piece(void *arg, size_t task, int thread)
{
    const reading *r = arg;
    piece *p = &r->pieces[task];
    size_t count = piece_bytes(p->entry->bytes, p->index);
    const uint8_t *bytes = r->pack->blob->bytes + p->entry->offset + p->index * ORT_PACK_PIECE;
    p->digest = ort_digest(bytes, count);
    if (ort_pack_is_table(p->entry))
        ort_blobs_forget(&r->pack->blob, 1, bytes, count);
}

static ort_status compare(const ort_pack *pack, const ort_hashmap *blocks, const piece *pieces,
                          ort_error *err)
{
    for (size_t b = 0; b < blocks->count; b++) {
        size_t i = (size_t)blocks->entries[b].value;
        const ort_pack_entry *e = &pack->entries[i];
        uint64_t sum = e->bytes;
        for (size_t k = 0; k < piece_count(e->bytes); k++)
            sum = join(sum, pieces++->digest);
        if (sum != e->digest)
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "damaged: the digest of block %zu (%s, %llu bytes at %llu) "
                                 "differs", i, e->kind, (unsigned long long)e->bytes,
                                 (unsigned long long)e->offset);
    }
    return ORT_OK;
}

static ort_status verify_blocks(const ort_pack *pack, const ort_hashmap *blocks, ort_pool *pool,
                                ort_error *err)
{
    size_t count = 0, at = 0;
    for (size_t b = 0; b < blocks->count; b++) /* no two overlap: fewer than the file's pages */
        count += piece_count(pack->entries[blocks->entries[b].value].bytes);
    reading r = {pack, malloc((count + 1) * sizeof *r.pieces)};
    if (!r.pieces)
        return ort_error_memory(err, count * sizeof *r.pieces);
    for (size_t b = 0; b < blocks->count; b++) {
        const ort_pack_entry *e = &pack->entries[blocks->entries[b].value];
        for (size_t k = 0; k < piece_count(e->bytes); k++)
            r.pieces[at++] = (piece){e, k, 0};
    }
    assert(at == count);
    ort_pool_run(pool, count, read_piece, &r);
    ort_status status = compare(pack, blocks, r.pieces, err);
    free(r.pieces);
    return status;
}

ort_status ort_pack_verify(const ort_pack *pack, ort_pool *pool, ort_error *err)
{
    ort_hashmap blocks = {0};
    ort_status status = check_gaps(pack, &blocks, err);
    if (status == ORT_OK)
        status = verify_blocks(pack, &blocks, pool, err);
    ort_hashmap_release(&blocks);
    return status;
}

/* ---- stamps */

/* The value of a metadata property, where it is the digest's. */
static bool read_digest(const uint8_t *bytes, size_t count, uint64_t *digest)
{
    ort_wire_field part, key = {0}, value = {0};
    char text[32];
    for (size_t at = 0; ort_wire_next(bytes, count, &at, &part);) {
        if (part.tag >> 3 == KEY_FIELD)
            key = part;
        if (part.tag >> 3 == VALUE_FIELD)
            value = part;
    }
    size_t length = value.end - value.value;
    if (key.end - key.value != strlen(ORT_PACK_DIGEST_KEY) ||
        memcmp(bytes + key.value, ORT_PACK_DIGEST_KEY, key.end - key.value) || !value.end ||
        length >= sizeof text)
        return false;
    memcpy(text, bytes + value.value, length);
    text[length] = '\0';
    *digest = strtoull(text, NULL, 16);
    return true;
}

/* The digest that a skeleton's metadata states; 0 when none does. */
static uint64_t stated_weights(const uint8_t *bytes, size_t count)
{
    ort_wire_field property;
    uint64_t digest = 0;
    for (size_t at = 0; ort_wire_next(bytes, count, &at, &property);)
        if (property.tag >> 3 == METADATA_FIELD)
            read_digest(bytes + property.value, property.end - property.value, &digest);
    return digest;
}

ort_status ort_pack_stamp_of(const uint8_t *bytes, size_t count, ort_pack_stamp *stamp,
                             ort_error *err)
{
    ort_wire wire;
    ORT_TRY(ort_wire_split(ORT_WIRE_MODEL, bytes, count, false, &wire, err));
    uint64_t digest = ort_hash_bytes(wire.skeleton, wire.skeleton_count, 0);
    for (size_t i = 0; i < wire.payloads.count; i++) {
        const ort_wire_payload *p = &wire.payloads.data[i];
        const uint64_t sizes[2] = {p->count, p->field};
        digest = ort_hash_bytes(sizes, sizeof sizes, digest);
        if (p->elements)
            digest = ort_hash_bytes(p->bytes, p->count, digest);
    }
    stamp->model_bytes = count;
    stamp->skeleton = digest;
    stamp->weights = stated_weights(wire.skeleton, wire.skeleton_count);
    ort_wire_release(&wire);
    return ORT_OK;
}

const char *ort_pack_stamp_differs(const ort_pack_stamp *pack, const ort_pack_stamp *model)
{
    if (strcmp(pack->library, model->library))
        return "library version";
    if (strcmp(pack->isa, model->isa))
        return "kernel tier";
    if (pack->weights != model->weights || !pack->weights)
        return "weights";
    if (pack->skeleton != model->skeleton || pack->model_bytes != model->model_bytes)
        return "model";
    if (strcmp(pack->data_file, model->data_file) || pack->data_bytes != model->data_bytes)
        return "external data";
    return NULL;
}
