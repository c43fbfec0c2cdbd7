/* file_map.c - a whole file as bytes (file_map.h). The mapping is private and read-only, so pages
 * that are never looked at are never read: a summary of a 10 GB model costs a few pages. */
#include "io/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "io/input.h"

static ort_status too_large(const char *label, size_t bytes, size_t limit, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_MODEL,
                         "%s: has %zu bytes or more, the limit is %zu (raise it to load this file)",
                         label, bytes, limit);
}

typedef struct descriptor {
    int fd, error;
    size_t taken, most; /* most 0: no limit */
} descriptor;

static size_t pull_descriptor(void *arg, void *bytes, size_t count)
{
    descriptor *d = arg;
    size_t done = 0;
    while (done < count && (!d->most || d->taken <= d->most)) {
        ssize_t got = read(d->fd, (char *)bytes + done, count - done);
        if (got < 0 && errno == EINTR)
            continue;
        d->error = got < 0 ? errno : 0;
        if (got <= 0)
            break;
        done += (size_t)got;
        d->taken += (size_t)got;
    }
    return done;
}

static ort_status read_stream(int fd, const char *label, size_t max_bytes, ort_blob **blob,
                              ort_error *err)
{
    descriptor d = {.fd = fd, .most = max_bytes};
    ort_input in;
    unsigned char *data;
    size_t count;
    ort_input_init(&in, pull_descriptor, &d);
    ORT_TRY(ort_input_all(&in, &data, &count, err));
    bool large = max_bytes && count > max_bytes;
    if (d.error || large) {
        free(data);
        return large ? too_large(label, count, max_bytes, err)
                     : ort_error_set(err, ORT_ERROR_IO, "%s: can't be read: %s", label,
                                     strerror(d.error));
    }
    uint8_t *fitted = realloc(data, count ? count : 1);
    return ort_blob_new(ORT_BLOB_HEAP, fitted ? fitted : data, count, blob, err);
}

ort_status ort_file_map_fd(int fd, const char *label, size_t max_bytes, ort_blob **blob,
                           ort_error *err)
{
    struct stat st;
    *blob = NULL;
    if (fstat(fd, &st) != 0)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't be read: %s", label, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return ort_error_set(err, ORT_ERROR_IO, "%s: is a folder, not a file", label);
    /* A descriptor that someone has read from already is a stream, whatever lies behind it. */
    if (!S_ISREG(st.st_mode) || st.st_size == 0 || lseek(fd, 0, SEEK_CUR) != 0)
        return read_stream(fd, label, max_bytes, blob, err);
    size_t count = (size_t)st.st_size;
    if (max_bytes && count > max_bytes)
        return too_large(label, count, max_bytes, err);
    void *bytes = mmap(NULL, count, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't be mapped (%zu bytes): %s", label, count,
                             strerror(errno));
    ORT_TRY(ort_blob_new(ORT_BLOB_MAPPED, bytes, count, blob, err));
    (*blob)->device = (uint64_t)st.st_dev;
    (*blob)->inode = (uint64_t)st.st_ino;
    return ORT_OK;
}

ort_status ort_file_map(const char *path, size_t max_bytes, ort_blob **blob, ort_error *err)
{
    if (!strcmp(path, "-"))
        return ort_file_map_fd(STDIN_FILENO, "standard input", max_bytes, blob, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *blob = NULL;
    if (fd < 0)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't be opened: %s", path, strerror(errno));
    ort_status status = ort_file_map_fd(fd, path, max_bytes, blob, err);
    close(fd);
    return status;
}
