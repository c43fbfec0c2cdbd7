/* pack_write.c - writing pack files (pack.h): payload first, as it comes; then graph, table, and
 * the header last, over the page kept free for it. The bytes depend on the contents alone. */
#pragma GCC optimize("Os") /* once a session or less */
#include "io/pack.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hashmap.h"

enum { SMALL_ALIGNMENT = 64 };

static ort_status put(ort_pack_writer *w, const void *bytes, size_t count, ort_error *err)
{
    if (count && fwrite(bytes, 1, count, w->file->stream) != count) {
        ORT_TRY(ort_out_file_check(w->file->stream, w->file->path, err));
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't write %zu bytes", w->file->path, count);
    }
    w->at += count;
    return ORT_OK;
}

static ort_status align(ort_pack_writer *w, size_t alignment, ort_error *err)
{
    static const uint8_t zeros[ORT_PACK_PAGE];
    assert(alignment && alignment <= sizeof zeros && (alignment & (alignment - 1)) == 0);
    return put(w, zeros, (size_t)(-w->at % alignment), err);
}

ort_status ort_pack_writer_open(ort_pack_writer *w, const char *path, ort_error *err)
{
    static const uint8_t page[ORT_PACK_PAGE];
    *w = (ort_pack_writer){0};
    ORT_TRY(ort_out_file_open(path, &w->file, err));
    ort_status status = w->file->temporary
                            ? put(w, page, sizeof page, err)
                            : ort_error_set(err, ORT_ERROR_IO,
                                            "%s: a pack is written to a regular file", path);
    if (status != ORT_OK)
        ort_pack_writer_abort(w);
    return status;
}

ort_status ort_pack_writer_add(ort_pack_writer *w, uint32_t step, const char *kind,
                               const void *bytes, size_t count, uint64_t *offset, ort_error *err)
{
    ort_pack_entry entry = {.step = step, .bytes = count,
                            .digest = ort_pack_digest(bytes, count)};
    ORT_TRY(align(w, count >= ORT_PACK_PAGE ? ORT_PACK_PAGE : SMALL_ALIGNMENT, err));
    assert(w->at >= ORT_PACK_PAGE && strlen(kind) < sizeof entry.kind);
    entry.offset = *offset = w->at;
    snprintf(entry.kind, sizeof entry.kind, "%s", kind);
    ORT_TRY(put(w, bytes, count, err));
    return ort_vec_push(&w->entries, entry) ? ORT_OK : ort_error_memory(err, sizeof entry);
}

ort_status ort_pack_writer_repeat(ort_pack_writer *w, uint32_t step, size_t entry, ort_error *err)
{
    assert(entry < w->entries.count);
    ort_pack_entry again = w->entries.data[entry];
    again.step = step;
    return ort_vec_push(&w->entries, again) ? ORT_OK : ort_error_memory(err, sizeof again);
}

ort_status ort_pack_writer_finish(ort_pack_writer *w, const ort_pack_stamp *stamp,
                                  const void *graph, size_t graph_bytes, size_t absent_bytes,
                                  ort_error *err)
{
    ort_pack_page page;
    ort_pack_header *h = &page.header;
    size_t table_bytes = w->entries.count * sizeof *w->entries.data;
    memset(&page, 0, sizeof page);
    memcpy(h->magic, ORT_PACK_MAGIC, sizeof h->magic);
    h->format = ORT_PACK_FORMAT;
    h->byte_order = ORT_PACK_BYTE_ORDER;
    h->stamp = *stamp;
    h->absent_bytes = absent_bytes;
    ORT_TRY(align(w, SMALL_ALIGNMENT, err));
    h->graph_offset = w->at;
    h->graph_bytes = graph_bytes;
    h->graph_digest = ort_hash_bytes(graph, graph_bytes, 0);
    ORT_TRY(put(w, graph, graph_bytes, err));
    ORT_TRY(align(w, SMALL_ALIGNMENT, err));
    assert(w->at % _Alignof(ort_pack_entry) == 0);
    h->table_offset = w->at;
    h->table_count = w->entries.count;
    h->table_digest = ort_hash_bytes(w->entries.data, table_bytes, 0);
    ORT_TRY(put(w, w->entries.data, table_bytes, err));
    h->file_bytes = w->at;
    h->digest = ort_pack_page_digest(&page);
    if (fseek(w->file->stream, 0, SEEK_SET) != 0 ||
        fwrite(&page, 1, sizeof page, w->file->stream) != sizeof page)
        return ort_error_set(err, ORT_ERROR_IO, "%s: its header can't be written", w->file->path);
    return ort_out_file_check(w->file->stream, w->file->path, err);
}

ort_status ort_pack_writer_commit(ort_pack_writer *w, ort_error *err)
{
    ort_vec_release(&w->entries);
    return ort_out_file_commit(w->file, true, err);
}

void ort_pack_writer_abort(ort_pack_writer *w)
{
    ort_vec_release(&w->entries);
    ort_out_file_abort(w->file);
}
