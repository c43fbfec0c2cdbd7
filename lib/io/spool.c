/* spool.c - each room is a mapping of its own, shared with the file: pages that were written can be
 * dropped and come back (spool.h). */
#define _GNU_SOURCE 1
#include "io/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"

enum {
    LEAST_BYTES = 64 << 10, /* smaller ones aren't worth a mapping */
    HELD_BYTES = 24 << 20,  /* so much stays in memory */
    PAGE = 64 << 10,        /* a multiple of every machine's */
};

struct ort_spool {
    char *folder;
    int fd; /* -1: not open */
    size_t held, used;
};

ort_status ort_spool_new(const char *folder, ort_spool **spool, ort_error *err)
{
    ort_spool *s = calloc(1, sizeof *s);
    char *copy = s ? strdup(folder) : NULL;
    *spool = NULL;
    if (!copy) {
        free(s);
        return ort_error_memory(err, sizeof *s + strlen(folder));
    }
    *s = (ort_spool){.folder = copy, .fd = -1};
    *spool = s;
    return ORT_OK;
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

/* The disk has these bytes from now on. */
static ort_status lengthen(ort_spool *s, size_t bytes, ort_error *err)
{
    if (s->fd < 0)
        s->fd = open_nameless(s->folder);
    int failed = s->fd < 0 ? errno : posix_fallocate(s->fd, (off_t)s->used, (off_t)bytes);
    return failed ? ort_error_set(err, ORT_ERROR_IO, "can't keep %zu bytes of weights in '%s': %s",
                                  bytes, s->folder, strerror(failed))
                  : ORT_OK;
}

ort_status ort_spool_room(ort_spool *s, size_t bytes, ort_blob **blob, ort_error *err)
{
    *blob = NULL;
    if (bytes < LEAST_BYTES)
        return ORT_OK;
    if (s->held + bytes <= HELD_BYTES) {
        s->held += bytes;
        return ORT_OK;
    }
    return ort_spool_share(s, bytes, blob, err);
}

ort_status ort_spool_share(ort_spool *s, size_t bytes, ort_blob **blob, ort_error *err)
{
    const size_t room = ort_round_up(bytes, PAGE);
    *blob = NULL;
    ORT_TRY(lengthen(s, room, err));
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, (off_t)s->used);
    if (map == MAP_FAILED)
        return ort_error_memory(err, bytes);
    s->used += room;
    return ort_blob_new(ORT_BLOB_MAPPED, map, bytes, blob, err);
}

void ort_spool_free(ort_spool *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->folder);
    free(s);
}
