/* blob.c - reference-counted bytes (blob.h). */
#include "io/blob.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/budget.h"
#include "base/error.h"

static void drop(ort_blob_kind kind, const void *bytes, size_t count)
{
    if (kind == ORT_BLOB_HEAP)
        free((void *)(uintptr_t)bytes);
    else if (kind == ORT_BLOB_MAPPED && count)
        munmap((void *)(uintptr_t)bytes, count);
}

ort_status ort_blob_new(ort_blob_kind kind, const void *bytes, size_t count, ort_blob **blob,
                        ort_error *err)
{
    assert(bytes || !count);
    *blob = malloc(sizeof **blob);
    if (!*blob) {
        drop(kind, bytes, count);
        return ort_error_memory(err, sizeof **blob);
    }
    **blob = (ort_blob){.bytes = bytes, .count = count, .kind = kind, .references = 1};
    return ORT_OK;
}

ort_blob *ort_blob_retain(ort_blob *blob)
{
    assert(!blob || __atomic_load_n(&blob->references, __ATOMIC_RELAXED) > 0);
    if (blob)
        __atomic_add_fetch(&blob->references, 1, __ATOMIC_RELAXED);
    return blob;
}

void ort_blob_release(ort_blob *blob)
{
    int left = blob ? __atomic_sub_fetch(&blob->references, 1, __ATOMIC_ACQ_REL) : 1;
    assert(left >= 0);
    if (left > 0)
        return;
    drop(blob->kind, blob->bytes, blob->count);
    ort_account_refund(blob->account, blob->count);
    ort_account_release(blob->account);
    free(blob);
}

void ort_blob_in_pieces(const ort_blob *blob)
{
#ifdef MADV_NOHUGEPAGE
    if (blob->kind == ORT_BLOB_MAPPED && blob->count)
        (void)madvise((void *)(uintptr_t)blob->bytes, blob->count, MADV_NOHUGEPAGE);
#endif
}

/* The kernel maps what lies around a byte that is touched, too: so much on either side goes with
 * it. Whoever reads there gets it back. */
enum { AROUND = 2 << 20 };

void ort_blobs_forget(ort_blob *const *blobs, size_t blob_count, const void *bytes, size_t count)
{
    const uintptr_t page = 4096; /* at most the machine's: a longer one keeps its ends */
    for (size_t i = 0; i < blob_count && count; i++) {
        const ort_blob *b = blobs[i];
        const uintptr_t start = (uintptr_t)b->bytes, stop = start + b->count;
        uintptr_t begin = (uintptr_t)bytes, end = begin + count;
        begin = begin > start ? begin : start;
        end = end < stop ? end : stop;
        if (b->kind != ORT_BLOB_MAPPED || begin >= end)
            continue;
        begin = begin / AROUND * AROUND;
        end = (end + AROUND - 1) / AROUND * AROUND;
        begin = begin > start ? begin : (start + page - 1) / page * page;
        end = end < stop ? end : stop / page * page;
        if (begin < end)
            (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}
