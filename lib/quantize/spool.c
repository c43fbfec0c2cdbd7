/* spool.c - written by pwrite, so that a full disk is an error and not a signal; read through a
 * mapping, whose pages the kernel takes back when it likes. */
#include "quantize/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "io/blob.h"

enum { ALIGNMENT = 64 };

size_t ort_spool_room(size_t bytes)
{
    return ort_round_up(bytes, ALIGNMENT);
}

/* A file system without nameless files gets one whose name goes at once. */
static int open_nameless(const char *folder)
{
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || snprintf(path, sizeof path, "%s/.ort-XXXXXX", folder) >= (int)sizeof path)
        return fd;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

ort_status ort_spool_open(ort_spool *s, const char *folder, size_t bytes, ort_model *model,
                          ort_error *err)
{
    ort_blob *blob = NULL;
    *s = (ort_spool){.fd = open_nameless(folder), .size = bytes};
    if (s->fd < 0 || ftruncate(s->fd, (off_t)bytes) != 0) {
        ort_spool_close(s);
        return ort_error_set(err, ORT_ERROR_IO, "can't keep %zu bytes of weights in '%s': %s",
                             bytes, folder, strerror(errno));
    }
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, s->fd, 0);
    if (map == MAP_FAILED) {
        ort_spool_close(s);
        return ort_error_memory(err, bytes);
    }
    s->map = map;
    ORT_TRY(ort_blob_new(ORT_BLOB_MAPPED, map, bytes, &blob, err));
    if (ort_vec_push(&model->blobs, blob))
        return ORT_OK;
    ort_blob_release(blob);
    return ort_error_memory(err, sizeof *blob);
}

ort_status ort_spool_put(ort_spool *s, const void *bytes, size_t count, const void **at,
                         ort_error *err)
{
    assert(ort_spool_room(count) <= s->size - s->used);
    *at = s->map + s->used;
    for (size_t done = 0; done < count;) {
        ssize_t some = pwrite(s->fd, (const char *)bytes + done, count - done,
                              (off_t)(s->used + done));
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return ort_error_set(err, ORT_ERROR_IO, "can't keep %zu bytes of weights: %s", count,
                                 some < 0 ? strerror(errno) : "nothing was written");
        done += (size_t)some;
    }
    s->used += ort_spool_room(count);
    return ORT_OK;
}

void ort_spool_close(ort_spool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
