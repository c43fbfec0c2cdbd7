/* spool.c - copies of streams (spool.h). They are kept by the name that the stream was given under,
 * for the whole process: a stream has no second beginning. */
#include "common/spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool.h"

typedef struct spooled {
    char *path, *copy;
    struct spooled *next;
} spooled;

static spooled *all;

bool spool_is_needed(const char *path)
{
    struct stat st;
    return !strcmp(path, "-") ||
           (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static int write_all(int to, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = write(to, bytes, count);
        if (done < 0 && errno != EINTR)
            return errno;
        bytes += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int copy_all(const char *path, FILE *from, int to)
{
    enum { PART = 1 << 18 };
    char *part = tool_alloc(PART);
    int failed = 0;
    size_t count;
    while (failed == 0 && (count = fread(part, 1, PART, from)) > 0)
        failed = write_all(to, part, count);
    free(part);
    if (failed != 0)
        return tool_error(ORT_ERROR_IO, "can't keep a copy of %s, which is read several times: %s; "
                          "TMPDIR names another place", path, strerror(failed));
    return ferror(from) ? tool_error(ORT_ERROR_IO, "%s: can't read: %s", path, strerror(errno)) : 0;
}

/* A file without a name. */
static int new_file(int *fd)
{
    const char *folder = getenv("TMPDIR");
    char *name = tool_printf("%s/ort-samples-XXXXXX", folder && *folder ? folder : "/tmp");
    *fd = mkstemp(name);
    int status = *fd < 0 ? tool_error(ORT_ERROR_IO, "%s: can't create: %s; TMPDIR names the folder",
                                      name, strerror(errno))
                         : 0;
    if (*fd >= 0)
        unlink(name);
    free(name);
    return status;
}

static int keep(const char *path, FILE *from, const char **copy)
{
    int fd, status = new_file(&fd);
    if (status != 0)
        return status;
    if ((status = copy_all(path, from, fd)) != 0) {
        close(fd);
        return status;
    }
    spooled *s = tool_alloc(sizeof *s);
    *s = (spooled){tool_strdup(path), tool_printf("/proc/self/fd/%d", fd), all};
    *copy = s->copy;
    all = s;
    return 0;
}

int spool_file(const char *path, const char **copy)
{
    for (const spooled *s = all; s != NULL; s = s->next)
        if (!strcmp(s->path, path)) {
            *copy = s->copy;
            return 0;
        }
    bool is_stdin = !strcmp(path, "-");
    FILE *from = is_stdin ? stdin : fopen(path, "rb");
    if (from == NULL)
        return tool_error(ORT_ERROR_IO, "%s: can't open: %s", path, strerror(errno));
    int status = keep(is_stdin ? "standard input" : path, from, copy);
    if (status == 0 && is_stdin) {
        free(all->path);
        all->path = tool_strdup(path);
    }
    if (!is_stdin)
        fclose(from);
    return status;
}
