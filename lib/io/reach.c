/* reach.c - files that a model names (reach.h). Links are followed here, not by the kernel: so the
 * folder in which a file lies is at hand as a descriptor, and what lies above it is asked by "..",
 * folder by folder, which no link can bend. */
#include "io/reach.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum {
    MOST_LINKS = 40, /* as many as Linux follows */
    AS_FOLDER = O_PATH | O_DIRECTORY | O_CLOEXEC,
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_folder(const ort_folder *folder, const struct stat *info)
{
    return folder->device == (uint64_t)info->st_dev && folder->inode == (uint64_t)info->st_ino;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "" of a path without folders. False: too long. */
static bool folder_of(const char *path, char *folder)
{
    size_t length = (size_t)(base_of(path) - path);
    if (length >= PATH_MAX)
        return false;
    memcpy(folder, path, length);
    folder[length] = '\0';
    return true;
}

static size_t without_slashes(const char *folder)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return length;
}

static int open_folder(const char *path)
{
    return open(*path ? path : ".", AS_FOLDER);
}

static bool add(ort_reach *reach, int fd, const char *path)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return false;
    char *copy = *path ? strndup(path, without_slashes(path)) : strdup(".");
    const ort_folder folder = {copy, (uint64_t)info.st_dev, (uint64_t)info.st_ino};
    if (copy && ort_vec_push(&reach->folders, folder))
        return true;
    free(copy);
    return false;
}

void ort_reach_release(ort_reach *reach)
{
    for (size_t i = 0; i < reach->folders.count; i++)
        free((void *)(uintptr_t)reach->folders.data[i].path);
    ort_vec_release(&reach->folders);
}

ort_status ort_reach_add(ort_reach *reach, const char *path, ort_error *err)
{
    int fd = open_folder(path);
    if (fd < 0)
        return ort_error_set(err, ORT_ERROR_IO, "folder %s of external data can't be opened: %s",
                             path, strerror(errno));
    bool added = add(reach, fd, path);
    close(fd);
    return added ? ORT_OK : ort_error_memory(err, strlen(path));
}

const ort_external_file *ort_reach_given(const ort_reach *reach, const char *name)
{
    for (size_t i = 0; reach && i < reach->file_count; i++)
        if (!strcmp(reach->files[i].name, name))
            return &reach->files[i];
    return NULL;
}

static ort_status copy_files(const ort_reach *reach, ort_arena *arena, ort_reach *copy,
                             ort_error *err)
{
    ort_external_file *files = ort_arena_array(arena, reach->file_count + 1, sizeof *files);
    if (!files)
        return ort_error_memory(err, reach->file_count * sizeof *files);
    for (size_t i = 0; i < reach->file_count; i++) {
        files[i] = reach->files[i];
        files[i].name = ort_arena_strdup(arena, reach->files[i].name);
        if (!files[i].name)
            return ort_error_memory(err, 1);
    }
    copy->files = files;
    copy->file_count = reach->file_count;
    return ORT_OK;
}

ort_status ort_reach_copy(const ort_reach *reach, ort_arena *arena, ort_reach *copy,
                          ort_error *err)
{
    size_t count = reach->folders.count;
    *copy = (ort_reach){0};
    copy->folders.data = ort_arena_array(arena, count + 1, sizeof *copy->folders.data);
    if (!copy->folders.data)
        return ort_error_memory(err, count * sizeof *copy->folders.data);
    for (size_t i = 0; i < count; i++) {
        copy->folders.data[i] = reach->folders.data[i];
        copy->folders.data[i].path = ort_arena_strdup(arena, reach->folders.data[i].path);
        if (!copy->folders.data[i].path)
            return ort_error_memory(err, 1);
    }
    copy->folders.count = copy->folders.capacity = count;
    return copy_files(reach, arena, copy, err);
}

/* ---- the folders of a model */

/* Where a link leads, as a path. False: it is none, or too long. */
static bool read_link(int folder_fd, const char *folder, const char *name, char *target)
{
    char text[PATH_MAX];
    ssize_t length = readlinkat(folder_fd, name, text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    size_t above = *text == '/' ? 0 : strlen(folder);
    if (above + (size_t)length >= PATH_MAX)
        return false;
    memcpy(target, folder, above);
    memcpy(target + above, text, (size_t)length + 1);
    return true;
}

/* From the link `path` to the model that was opened: adds the folders on the way. False: the way
 * ends elsewhere (it was changed meanwhile, or leads where names don't). */
static bool follow(ort_reach *reach, char path[PATH_MAX], const struct stat *model)
{
    char folder[PATH_MAX];
    for (int links = 0; links <= MOST_LINKS && folder_of(path, folder); links++) {
        struct stat info;
        const char *name = base_of(path);
        char next[PATH_MAX] = "";
        int fd = open_folder(folder);
        if (fd < 0)
            return false;
        bool linked = read_link(fd, folder, name, next);
        bool arrived = !linked && fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                       is_same(&info, model);
        bool added = (linked || arrived) && add(reach, fd, folder);
        close(fd);
        if (!added || arrived)
            return arrived;
        memcpy(path, next, sizeof next);
    }
    return false;
}

static void add_linked_folders(ort_reach *reach, const char *path, int model_fd)
{
    struct stat model;
    char at[PATH_MAX];
    size_t own = reach->folders.count;
    if (fstat(model_fd, &model) != 0 || strlen(path) >= sizeof at)
        return;
    memcpy(at, path, strlen(path) + 1);
    if (follow(reach, at, &model))
        return;
    assert(reach->folders.count >= own);
    while (reach->folders.count > own)
        free((void *)(uintptr_t)ort_vec_pop(&reach->folders).path);
}

int ort_reach_open_model(ort_reach *reach, const char *path)
{
    char folder[PATH_MAX];
    struct stat link;
    if (!folder_of(path, folder) || !*base_of(path))
        return open(path, O_RDONLY | O_CLOEXEC);
    int at = open_folder(folder);
    if (at < 0)
        return -1;
    int fd = openat(at, base_of(path), O_RDONLY | O_CLOEXEC), saved = errno;
    if (fd >= 0 && !add(reach, at, folder)) {
        close(fd);
        fd = -1, saved = ENOMEM;
    }
    if (fd >= 0 && fstatat(at, base_of(path), &link, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(link.st_mode))
        add_linked_folders(reach, path, fd);
    close(at);
    errno = saved;
    return fd;
}

/* ---- what lies below what */

/* `at` becomes the folder above it. False: there is none, or none to be seen. */
static bool climb(int *at)
{
    struct stat here, above;
    int up = openat(*at, "..", AS_FOLDER);
    if (up < 0)
        return false;
    bool higher = fstat(*at, &here) == 0 && fstat(up, &above) == 0 && !is_same(&here, &above);
    close(*at);
    *at = up;
    return higher;
}

/* Is the open folder one of these, or below one of them? */
static bool is_below(int fd, const ort_folder *folders, size_t count)
{
    struct stat info;
    bool found = false;
    int at = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (at < 0)
        return false;
    do {
        bool known = fstat(at, &info) == 0;
        for (size_t i = 0; known && i < count && !found; i++)
            found = is_folder(&folders[i], &info);
    } while (!found && climb(&at));
    close(at);
    return found;
}

/* The folder as it was when it was added, or -1. */
static int open_known(const ort_folder *folder)
{
    struct stat info;
    int fd = open_folder(folder->path);
    if (fd >= 0 && (fstat(fd, &info) != 0 || !is_folder(folder, &info))) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

/* Climbs from `at`, whose path is `path`, to the cache of one model in which it lies: the nearest
 * folder models--NAME that has blobs, from snapshots/REVISION below. Each name is one that the
 * folder above knows this very folder by. */
static bool climb_to_cache(int *at, char *path, struct stat *cache)
{
    const char *child = "";
    for (int depth = 0; strlen(path) > 1; depth++) {
        struct stat here, named, blobs;
        char *name = strrchr(path, '/');
        if (!name || fstat(*at, &here) != 0)
            return false;
        *name++ = '\0';
        bool is_model = !strncmp(name, "models--", 8) && !strcmp(child, "snapshots") && depth >= 2;
        bool stores = is_model && fstatat(*at, "blobs", &blobs, AT_SYMLINK_NOFOLLOW) == 0 &&
                      S_ISDIR(blobs.st_mode);
        if (!climb(at) || fstatat(*at, name, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
            !is_same(&named, &here))
            return false;
        *cache = here;
        if (stores)
            return true;
        child = name;
    }
    return false;
}

static bool find_cache(const ort_folder *folder, ort_folder *cache)
{
    struct stat info;
    char *path = realpath(folder->path, NULL);
    int at = path ? open_known(folder) : -1;
    bool found = at >= 0 && climb_to_cache(&at, path, &info);
    if (found)
        *cache = (ort_folder){NULL, (uint64_t)info.st_dev, (uint64_t)info.st_ino};
    if (at >= 0)
        close(at);
    free(path);
    return found;
}

static bool may_reach(const ort_reach *reach, int folder_fd)
{
    ort_folder cache;
    if (is_below(folder_fd, reach->folders.data, reach->folders.count))
        return true;
    for (size_t i = 0; i < reach->folders.count; i++)
        if (find_cache(&reach->folders.data[i], &cache) && is_below(folder_fd, &cache, 1))
            return true;
    return false;
}

/* ---- the way to a file */

typedef struct walk {
    int at;    /* the folder reached */
    int links; /* followed so far */
    char rest[PATH_MAX];
} walk;

/* The folder `part` in place of the present one. */
static int enter(walk *w, const char *part)
{
    int next = openat(w->at, part, AS_FOLDER | O_NOFOLLOW);
    if (next < 0)
        return errno;
    close(w->at);
    w->at = next;
    return 0;
}

/* The link `fd`, named on the way: its text comes before what is left to go. */
static int splice_link(walk *w, int fd)
{
    char text[PATH_MAX];
    ssize_t length = readlinkat(fd, "", text, sizeof text - 1);
    if (length < 0)
        return errno;
    if (++w->links > MOST_LINKS)
        return ELOOP;
    size_t rest = strlen(w->rest), between = rest ? 1 : 0;
    if ((size_t)length + between + rest >= sizeof w->rest)
        return ENAMETOOLONG;
    memmove(w->rest + (size_t)length + between, w->rest, rest + 1);
    assert(w->rest[(size_t)length + between + rest] == '\0');
    if (between)
        w->rest[length] = '/';
    memcpy(w->rest, text, (size_t)length);
    return w->rest[0] == '/' ? enter(w, "/") : 0;
}

/* Cuts the next part of the way off. *last: nothing follows it, not even a slash. */
static int cut_part(walk *w, char *part, bool *last)
{
    const char *from = w->rest + strspn(w->rest, "/");
    size_t length = strcspn(from, "/");
    if (length > NAME_MAX)
        return ENAMETOOLONG;
    memcpy(part, from, length);
    part[length] = '\0';
    from += length;
    *last = !*from;
    from += strspn(from, "/");
    memmove(w->rest, from, strlen(from) + 1);
    return 0;
}

/* A regular file in the folder reached. Opened without waiting: a pipe may have been put there. */
static int open_file(const walk *w, const char *name, int *fd)
{
    struct stat info;
    *fd = openat(w->at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd < 0)
        return errno;
    if (fstat(*fd, &info) == 0 && S_ISREG(info.st_mode))
        return 0;
    close(*fd);
    *fd = -1;
    return EINVAL;
}

/* One part of the way. 0: there is more to go; *fd >= 0: the end of it. EINVAL: no regular file. */
static int step(walk *w, int *fd)
{
    char part[NAME_MAX + 1];
    struct stat info;
    bool last;
    int error = cut_part(w, part, &last);
    if (error)
        return error;
    assert(!strchr(part, '/')); /* one name: openat leads nowhere else */
    bool ends = !*w->rest;
    if (!*part || !strcmp(part, ".") || !strcmp(part, ".."))
        return ends ? EINVAL : *part && part[1] ? enter(w, part) : 0;
    int named = openat(w->at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (named < 0)
        return errno;
    if (fstat(named, &info) != 0)
        error = errno;
    else if (S_ISLNK(info.st_mode))
        error = splice_link(w, named);
    else if (!ends || S_ISDIR(info.st_mode))
        error = ends ? EINVAL : enter(w, part);
    else if (!S_ISREG(info.st_mode) || !last)
        error = last ? EINVAL : ENOTDIR;
    else
        error = open_file(w, part, fd);
    close(named);
    return error;
}

/* *fd: the file; w->at: the folder in which it lies, to be closed. */
static int walk_to(const ort_folder *from, const char *name, walk *w, int *fd)
{
    int error = 0;
    *fd = -1;
    *w = (walk){.at = open_known(from)};
    if (w->at < 0)
        return errno;
    if (strlen(name) >= sizeof w->rest)
        return ENAMETOOLONG;
    memcpy(w->rest, name, strlen(name) + 1);
    while (!error && *fd < 0)
        error = step(w, fd);
    return error;
}

/* ---- why not */

/* For messages: the way as names tell it now. */
static ort_status refuse(const ort_folder *from, const char *name, ort_error *err)
{
    char path[PATH_MAX], folder[PATH_MAX];
    bool fits = snprintf(path, sizeof path, "%s/%s", from->path, name) < (int)sizeof path;
    char *end = fits ? realpath(path, NULL) : NULL;
    bool told = end && folder_of(end, folder);
    ort_status status = ort_error_set(
        err, ORT_ERROR_MODEL, "%s leads through a link to %s, outside of the model's folder "
        "(--external-data-root %.*s allows that)", name, told ? end : "another folder",
        told ? (int)without_slashes(folder) : 3, told ? folder : "DIR");
    free(end);
    return status;
}

static ort_status explain(const ort_folder *from, const char *name, int error, ort_error *err)
{
    if (error == EINVAL)
        return ort_error_set(err, ORT_ERROR_MODEL, "%s/%s is no regular file", from->path, name);
    if (error == ELOOP)
        return ort_error_set(err, ORT_ERROR_MODEL, "%s/%s is a loop of links", from->path, name);
    return ort_error_set(err, ORT_ERROR_IO,
                         "%s/%s can't be opened: %s (it belongs beside the model; "
                         "--external-data-root DIR looks in another folder as well)",
                         from->path, name, strerror(error));
}

ort_status ort_reach_open(const ort_reach *reach, const char *name, int *fd, ort_error *err)
{
    const ort_folder *from = NULL;
    int error = ENOENT;
    bool allowed = false;
    *fd = -1;
    for (size_t i = 0; i < reach->folders.count && error == ENOENT; i++) {
        walk w;
        from = &reach->folders.data[i];
        error = walk_to(from, name, &w, fd);
        allowed = error == 0 && may_reach(reach, w.at);
        if (w.at >= 0)
            close(w.at);
    }
    assert((error == 0) == (*fd >= 0));
    if (allowed)
        return ORT_OK;
    if (!from)
        return ort_error_set(err, ORT_ERROR_IO, "%s is in no folder", name);
    if (error)
        return explain(error == ENOENT ? reach->folders.data : from, name, error, err);
    close(*fd);
    *fd = -1;
    return refuse(from, name, err);
}
