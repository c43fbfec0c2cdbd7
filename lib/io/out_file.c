/* out_file.c - write beside, then rename. A symbolic link stays: the file it points to is
 * replaced. */
#define _GNU_SOURCE 1
#include "io/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ort_status io_error(ort_error *err, const char *path, const char *verb, int number)
{
    return ort_error_set(err, ORT_ERROR_IO, "%s: can't %s: %s", path, verb, strerror(number));
}

static ort_status open_direct(ort_out_file *file, const char *path, ort_error *err)
{
    file->stream = fopen(path, "wbe");
    if (!file->stream)
        return io_error(err, path, "open for writing", errno);
    file->path = strdup(path);
    if (file->path)
        return ORT_OK;
    ort_out_file_abort(file);
    return ort_error_memory(err, strlen(path));
}

/* A new file of an unused name in the folder of `file->path`. */
static ort_status open_temporary(ort_out_file *file, ort_error *err)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        if (asprintf(&file->temporary, "%s.%ld.%d.tmp", file->path, (long)getpid(), attempt) < 0) {
            file->temporary = NULL;
            return ort_error_memory(err, strlen(file->path));
        }
        int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            file->stream = fdopen(fd, "wb");
            if (file->stream)
                return ORT_OK;
            close(fd);
            unlink(file->temporary);
        }
        int reason = errno;
        free(file->temporary);
        file->temporary = NULL;
        if (reason != EEXIST)
            return io_error(err, file->path, "create", reason);
    }
    return io_error(err, file->path, "create", EEXIST);
}

ort_status ort_out_file_open(ort_out_file *file, const char *path, ort_error *err)
{
    memset(file, 0, sizeof *file);
    if (strcmp(path, "-") == 0) {
        file->stream = stdout;
        return ORT_OK;
    }
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return io_error(err, path, "write", EISDIR);
    if (exists && !S_ISREG(info.st_mode))
        return open_direct(file, path, err);
    if (exists && access(path, W_OK) != 0)
        return io_error(err, path, "write", errno);
    file->path = exists ? realpath(path, NULL) : strdup(path);
    if (!file->path)
        return ort_error_memory(err, strlen(path));
    ort_status status = open_temporary(file, err);
    if (status != ORT_OK)
        ort_out_file_abort(file);
    else if (exists)
        (void)!fchmod(fileno(file->stream), info.st_mode & 07777);
    return status;
}

ort_status ort_out_file_check(FILE *stream, const char *label, ort_error *err)
{
    bool failed = ferror(stream) != 0;
    errno = 0;
    if (fflush(stream) == 0 && !failed)
        return ORT_OK;
    if (errno == 0) {
        /* The reason of an earlier failure is gone: one more byte asks for it. */
        clearerr(stream);
        if (fputc(0, stream) != EOF)
            fflush(stream);
    }
    return io_error(err, label, "write", errno ? errno : EIO);
}

ort_status ort_out_file_commit(ort_out_file *file, bool sync, ort_error *err)
{
    const char *label = file->path ? file->path : "stdout";
    ort_status status = ort_out_file_check(file->stream, label, err);
    if (!file->path) {
        file->stream = NULL;
        return status;
    }
    if (status == ORT_OK && sync && file->temporary && fsync(fileno(file->stream)) != 0)
        status = io_error(err, label, "write", errno);
    if (fclose(file->stream) != 0 && status == ORT_OK)
        status = io_error(err, label, "write", errno);
    file->stream = NULL;
    if (status == ORT_OK && file->temporary && rename(file->temporary, file->path) != 0)
        status = io_error(err, label, "rename the finished file", errno);
    if (status == ORT_OK) {
        free(file->temporary);
        file->temporary = NULL;
    }
    ort_out_file_abort(file);
    return status;
}

void ort_out_file_abort(ort_out_file *file)
{
    if (file->stream && file->stream != stdout)
        fclose(file->stream);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    memset(file, 0, sizeof *file);
}
