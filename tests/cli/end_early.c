/* end_early.c - preloaded under a tool: the signal END_WITH arrives when the first file that the
 * tool writes is complete and not yet in its place; with NO_TMPFILE=1 files without a name don't
 * exist, as on NFS or FAT. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if ((flags & O_TMPFILE) == O_TMPFILE && getenv("NO_TMPFILE")) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fclose(FILE *stream)
{
    struct stat info;
    int fd = fileno(stream);
    const char *number = getenv("END_WITH");
    if (number && fd > 2 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY &&
        fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        kill(getpid(), atoi(number));
    return ((int (*)(FILE *))dlsym(RTLD_NEXT, "fclose"))(stream);
}
