/* out_file.c - write without a name or beside, then put in place. A symbolic link stays: the file
 * it points to is replaced. Names that lie in a folder meanwhile stand in `unfinished`, so that a
 * program that a signal ends can remove them. */
#define _GNU_SOURCE 1
#include "io/out_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ort_status io_error(ort_error *err, const char *path, const char *verb, int number)
{
    return ort_error_set(err, ORT_ERROR_IO, "%s: can't %s: %s", path, verb, strerror(number));
}

/* Whoever takes a name out of the table owns it: the writer to free it, a signal handler to unlink
 * it. The table grows by pages, which stay: a handler may be walking them. */
enum { PAGE_NAMES = 32 };
typedef struct name_page name_page;
struct name_page {
    _Atomic(char *) names[PAGE_NAMES];
    _Atomic(name_page *) next;
};
static name_page unfinished;

/* Put `with` where `name` stands. */
static bool swap_name(name_page *page, char *name, char *with)
{
    for (size_t i = 0; i < PAGE_NAMES; i++) {
        char *found = name;
        if (atomic_compare_exchange_strong(&page->names[i], &found, with))
            return true;
    }
    return false;
}

/* The page behind `page`, made where there is none; NULL without memory. */
static name_page *page_behind(name_page *page)
{
    name_page *next = atomic_load(&page->next);
    if (next)
        return next;
    name_page *made = calloc(1, sizeof *made);
    if (!made || atomic_compare_exchange_strong(&page->next, &next, made))
        return made;
    free(made); /* another thread was first */
    return next;
}

/* Without memory for the table the file is written all the same. */
static void remember(char *name)
{
    for (name_page *page = &unfinished; page && !swap_name(page, NULL, name);)
        page = page_behind(page);
}

/* The writer's end of `remember`, which frees the name. One that isn't found is a handler's now,
 * or there was no memory for it: it stays. */
static void forget(char *name)
{
    for (name_page *page = &unfinished; page; page = atomic_load(&page->next))
        if (swap_name(page, name, NULL)) {
            free(name);
            return;
        }
}

void ort_out_file_discard_all(void)
{
    for (name_page *page = &unfinished; page; page = atomic_load(&page->next))
        for (size_t i = 0; i < PAGE_NAMES; i++) {
            char *name = atomic_exchange(&page->names[i], NULL);
            if (name)
                unlink(name);
        }
}

static ort_status open_direct(ort_out_file *file, const char *path, ort_error *err)
{
    file->stream = fopen(path, "wbe");
    if (!file->stream)
        return io_error(err, path, "open for writing", errno);
    file->path = strdup(path);
    return file->path ? ORT_OK : ort_error_memory(err, strlen(path));
}

/* A file of no name in the folder of `file->path`: no end of the process leaves anything of it.
 * False where the file system has none, or /proc, by which it gets its name, isn't there. */
static bool open_nameless(ort_out_file *file)
{
    const char *slash = strrchr(file->path, '/');
    char *folder = slash ? strndup(file->path, (size_t)(slash - file->path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666) : -1;
    free(folder);
    if (fd < 0)
        return false;
    if (asprintf(&file->temporary, "/proc/self/fd/%d", fd) < 0)
        file->temporary = NULL;
    int written = -1;
    if (file->temporary && access(file->temporary, F_OK) == 0)
        written = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (written >= 0 && !(file->stream = fdopen(written, "wb")))
        close(written);
    if (file->stream) {
        file->nameless = fd;
        return true;
    }
    close(fd);
    free(file->temporary);
    file->temporary = NULL;
    return false;
}

/* Try names PATH.PID.N.tmp until `make` took one, which *name becomes: `make` returns 0, or an
 * errno of which EEXIST asks for the next. */
static ort_status make_beside(const ort_out_file *file, int (*make)(void *arg, const char *name),
                              void *arg, char **name, ort_error *err)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        if (asprintf(name, "%s.%ld.%d.tmp", file->path, (long)getpid(), attempt) < 0) {
            *name = NULL;
            return ort_error_memory(err, strlen(file->path));
        }
        int reason = make(arg, *name);
        if (!reason)
            return ORT_OK;
        free(*name);
        *name = NULL;
        if (reason != EEXIST)
            return io_error(err, file->path, "create", reason);
    }
    return io_error(err, file->path, "create", EEXIST);
}

static int create_named(void *arg, const char *name)
{
    ort_out_file *file = arg;
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    file->stream = fdopen(fd, "wb");
    if (file->stream)
        return 0;
    int reason = errno;
    close(fd);
    unlink(name);
    return reason;
}

static ort_status open_named(ort_out_file *file, ort_error *err)
{
    ORT_TRY(make_beside(file, create_named, file, &file->temporary, err));
    remember(file->temporary);
    return ORT_OK;
}

/* Where a chain of symbolic links ends whose last target doesn't exist yet: `path` itself where it
 * is no link. The links stay, as they do before a shell's >. */
static char *end_of_links(const char *path, int depth)
{
    char target[4096];
    ssize_t length = depth < 40 ? readlink(path, target, sizeof target - 1) : -1;
    if (length <= 0)
        return depth < 40 ? strdup(path) : NULL;
    target[length] = '\0';
    const char *slash = strrchr(path, '/');
    char *joined = NULL;
    if (*target == '/' || !slash)
        joined = strdup(target);
    else if (asprintf(&joined, "%.*s%s", (int)(slash - path) + 1, path, target) < 0)
        joined = NULL;
    char *end = joined ? end_of_links(joined, depth + 1) : NULL;
    free(joined);
    return end;
}

static ort_status open_file(ort_out_file *file, const char *path, ort_error *err)
{
    if (!strcmp(path, "-")) {
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
    errno = 0;
    file->path = exists ? realpath(path, NULL) : end_of_links(path, 0);
    if (!file->path)
        return io_error(err, path, "write", errno ? errno : ELOOP);
    ort_status status = open_nameless(file) ? ORT_OK : open_named(file, err);
    if (status == ORT_OK && exists)
        (void)!fchmod(fileno(file->stream), info.st_mode & 07777);
    return status;
}

ort_status ort_out_file_open(const char *path, ort_out_file **file, ort_error *err)
{
    if (!path || !file)
        return ort_error_null(err, __func__);
    ort_out_file *f = malloc(sizeof *f);
    *file = NULL;
    if (!f)
        return ort_error_memory(err, sizeof *f);
    *f = (ort_out_file){.nameless = -1};
    ort_status status = open_file(f, path, err);
    if (status != ORT_OK)
        ort_out_file_abort(f);
    else
        *file = f;
    return status;
}

FILE *ort_out_file_stream(const ort_out_file *file)
{
    return file ? file->stream : NULL;
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

static void close_nameless(ort_out_file *file)
{
    if (file->nameless >= 0)
        close(file->nameless);
    file->nameless = -1;
}

/* A file without a name gets one, where it can't replace an existing file at once: beside it. */
static int link_nameless(void *arg, const char *name)
{
    const ort_out_file *file = arg;
    return linkat(AT_FDCWD, file->temporary, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

static ort_status name_beside(ort_out_file *file, ort_error *err)
{
    char *name = NULL;
    assert(file->nameless >= 0 && file->temporary);
    ORT_TRY(make_beside(file, link_nameless, file, &name, err));
    free(file->temporary);
    file->temporary = name;
    close_nameless(file);
    remember(name);
    return ORT_OK;
}

static ort_status place(ort_out_file *file, ort_error *err)
{
    assert(!file->stream && file->path); /* what is put in place is complete */
    if (file->nameless >= 0) {
        if (link_nameless(file, file->path) == 0)
            return ORT_OK;
        ORT_TRY(name_beside(file, err));
    }
    if (rename(file->temporary, file->path) != 0)
        return io_error(err, file->path, "rename the finished file", errno);
    forget(file->temporary);
    file->temporary = NULL;
    return ORT_OK;
}

/* Nothing more is written: what is buffered goes out, to the disk if `sync`. */
static ort_status close_stream(ort_out_file *file, bool sync, ort_error *err)
{
    const char *label = file->path;
    assert(file->stream != stdout);
    ort_status status = ort_out_file_check(file->stream, label, err);
    if (status == ORT_OK && sync && file->temporary && fsync(fileno(file->stream)) != 0)
        status = io_error(err, label, "write", errno);
    if (fclose(file->stream) != 0 && status == ORT_OK)
        status = io_error(err, label, "write", errno);
    file->stream = NULL;
    return status;
}

ort_status ort_out_file_wait(ort_out_file *file, bool sync, ort_error *err)
{
    if (!file)
        return ort_error_null(err, __func__);
    if (!file->path || !file->stream)
        return ORT_OK;
    ORT_TRY(close_stream(file, sync, err));
    return file->nameless >= 0 ? name_beside(file, err) : ORT_OK;
}

ort_status ort_out_file_commit(ort_out_file *file, bool sync, ort_error *err)
{
    if (!file)
        return ort_error_null(err, __func__);
    ort_status status = ORT_OK;
    if (!file->path)
        status = ort_out_file_check(file->stream, "standard output", err);
    else if (file->stream)
        status = close_stream(file, sync, err);
    if (status == ORT_OK && file->temporary)
        status = place(file, err);
    ort_out_file_abort(file);
    return status;
}

void ort_out_file_abort(ort_out_file *file)
{
    if (!file)
        return;
    if (file->stream && file->stream != stdout)
        fclose(file->stream);
    if (file->temporary && file->nameless < 0) {
        unlink(file->temporary);
        forget(file->temporary);
    } else if (file->temporary) {
        close_nameless(file);
        free(file->temporary);
    }
    free(file->path);
    free(file);
}
