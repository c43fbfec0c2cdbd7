/* blob.h - reference-counted bytes that hold weights: a mapped file, a buffer read from a stream,
 * a copy made to align a tensor, or the caller's memory. Models and their clones share blobs; the
 * last reference unmaps or frees. Counting is atomic, the bytes never change. */
#ifndef ORT_IO_BLOB_H
#define ORT_IO_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "ort.h"

typedef struct ort_blob ort_blob;

typedef enum ort_blob_kind {
    ORT_BLOB_HEAP,     /* from malloc: freed */
    ORT_BLOB_MAPPED,   /* from mmap: unmapped */
    ORT_BLOB_BORROWED, /* the caller's */
} ort_blob_kind;

struct ort_blob {
    const uint8_t *bytes;
    size_t count;
    ort_blob_kind kind;
    int references; /* atomic */
    uint64_t device, inode; /* of a mapped file, else 0 */
    struct ort_account *account; /* charged for it, or NULL (base/budget.h) */
};

/* Takes `bytes` (also on failure, when heap or mapped memory is released). */
ort_status ort_blob_new(ort_blob_kind kind, const void *bytes, size_t count, ort_blob **blob,
                        ort_error *err);
ort_blob *ort_blob_retain(ort_blob *blob);
void ort_blob_release(ort_blob *blob);
/* These bytes won't be read soon: pages of them that lie in one of the mapped files leave memory,
 * and come back when they are read. Of other memory nothing happens. */
/* Touching a byte of a mapped file brings few pages into memory: the kernel maps 2 MB at once
 * otherwise, where it holds files in pages of that size. */
void ort_blob_in_pieces(const ort_blob *blob);
void ort_blobs_forget(ort_blob *const *blobs, size_t blob_count, const void *bytes, size_t count);

#endif
