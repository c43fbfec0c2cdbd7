/* whole_file.c - output files that appear whole or not at all (whole_file.h). */
#include "common/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool.h"

static int io_failed(const char *path)
{
    ort_error err = {.status = ORT_ERROR_IO};
    snprintf(err.message, sizeof err.message, "%s: can't be written: %s", path, strerror(errno));
    return tool_fail(&err);
}

int whole_file_open(whole_file *f, const char *path)
{
    struct stat info;
    *f = (whole_file){.path = path, .stream = stdout};
    if (path == NULL || strcmp(path, "-") == 0) {
        f->path = "standard output";
        return 0;
    }
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        f->temporary = tool_printf("%s.%ld.tmp", path, (long)getpid());
    f->stream = fopen(f->temporary != NULL ? f->temporary : path, "wb");
    if (f->stream != NULL)
        return 0;
    free(f->temporary);
    f->temporary = NULL;
    return io_failed(path);
}

int whole_file_close(whole_file *f, int status)
{
    bool failed = false;
    if (f->stream != stdout) { /* tool_finish looks after that one */
        failed = ferror(f->stream);
        failed = fclose(f->stream) != 0 || failed;
    }
    if (status == 0 && !failed && f->temporary != NULL)
        failed = rename(f->temporary, f->path) != 0;
    if (status == 0 && failed)
        status = io_failed(f->path);
    if (status != 0 && f->temporary != NULL)
        unlink(f->temporary);
    free(f->temporary);
    *f = (whole_file){0};
    return status;
}
