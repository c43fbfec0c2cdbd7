/* scratch.c - a folder beside the output (scratch.h), so that renaming puts its files in place. */
#define _GNU_SOURCE 1
#include "common/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool.h"
#include "common/whole_file.h"

/* What a signal's handler removes. */
static struct {
    const char *volatile model, *volatile data, *volatile folder;
} unfinished;

static void discard(void)
{
    if (unfinished.folder == NULL)
        return;
    unlink(unfinished.model);
    unlink(unfinished.data);
    rmdir(unfinished.folder);
}

static int io_failure(const char *path, const char *verb)
{
    return tool_error(ORT_ERROR_IO, "%s: can't %s: %s", path, verb, strerror(errno));
}

static bool is_copied(const char *output)
{
    return !strcmp(output, "-") || whole_file_is_special(output);
}

static char *folder_beside(const char *target)
{
    char *copy = tool_strdup(target);
    char *folder = tool_printf("%s/.ort-XXXXXX", dirname(copy));
    free(copy);
    return folder;
}

static char *temporary_folder(void)
{
    const char *root = getenv("TMPDIR");
    return tool_printf("%s/ort-XXXXXX", root != NULL && *root != '\0' ? root : "/tmp");
}

int scratch_open(scratch *s, const char *output)
{
    *s = (scratch){.output = output};
    if (!is_copied(output)) {
        char *real = realpath(output, NULL); /* NULL: there is no file yet */
        s->target = tool_strdup(real != NULL ? real : output);
        free(real);
    }
    s->folder = s->target != NULL ? folder_beside(s->target) : temporary_folder();
    if (mkdtemp(s->folder) == NULL) {
        int status = io_failure(output, "create");
        free(s->folder);
        free(s->target);
        *s = (scratch){0};
        return status;
    }
    const char *slash = s->target != NULL ? strrchr(s->target, '/') : NULL;
    const char *name = s->target == NULL ? "model.onnx" : slash != NULL ? slash + 1 : s->target;
    s->model = tool_printf("%s/%s", s->folder, name);
    s->data = tool_printf("%s.data", s->model);
    unfinished.model = s->model;
    unfinished.data = s->data;
    unfinished.folder = s->folder;
    tool_on_signal(discard);
    return 0;
}

/* ---- into place */

static int copy_out(const scratch *s)
{
    enum { PIECE = 1 << 16 };
    if (access(s->data, F_OK) == 0)
        return tool_error(ORT_ERROR_IO, "%s: its weights need a file beside the model: -o FILE",
                          !strcmp(s->output, "-") ? "standard output" : s->output);
    FILE *from = fopen(s->model, "rb");
    ort_out_file *to = NULL;
    if (from == NULL)
        return io_failure(s->model, "read");
    int status = whole_file_open(&to, s->output);
    char *piece = tool_alloc(PIECE);
    for (size_t n; status == 0 && (n = fread(piece, 1, PIECE, from)) > 0;)
        if (fwrite(piece, 1, n, ort_out_file_stream(to)) != n)
            status = io_failure(s->output, "write");
    if (status == 0 && ferror(from))
        status = io_failure(s->model, "read");
    fclose(from);
    free(piece);
    return to != NULL ? whole_file_close(to, status) : status;
}

/* The name is on the disk when the folder that holds it is. */
static void sync_folder(const char *path)
{
    char *copy = tool_strdup(path);
    int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
    free(copy);
}

static int move_in(const scratch *s)
{
    char *data = tool_printf("%s.data", s->target);
    int status = 0;
    if (access(s->data, F_OK) == 0 && rename(s->data, data) != 0)
        status = io_failure(data, "write");
    if (status == 0 && rename(s->model, s->target) != 0)
        status = io_failure(s->target, "write");
    if (status == 0)
        sync_folder(s->target);
    free(data);
    return status;
}

int scratch_drop(scratch *s, int status)
{
    if (s->folder == NULL)
        return status;
    discard();
    unfinished.folder = NULL;
    free(s->folder);
    free(s->target);
    free(s->model);
    free(s->data);
    *s = (scratch){0};
    return status;
}

int scratch_close(scratch *s, int status)
{
    if (status == 0 && s->folder != NULL)
        status = s->target != NULL ? move_in(s) : copy_out(s);
    return scratch_drop(s, status);
}

int scratch_try(const char *output)
{
    struct stat info;
    scratch s;
    if (!is_copied(output) && stat(output, &info) == 0 && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return io_failure(output, "write");
    }
    return scratch_drop(&s, scratch_open(&s, output));
}
