/* whole_file.c - output files that appear whole or not at all (whole_file.h). */
#include "common/whole_file.h"

#include <string.h>
#include <sys/stat.h>

#include "common/tool.h"

int whole_file_open(ort_out_file **f, const char *path)
{
    ort_error err = {0};
    if (ort_out_file_open(path != NULL ? path : "-", f, &err) != ORT_OK)
        return tool_fail(&err);
    return 0;
}

int whole_file_close(ort_out_file *f, int status)
{
    ort_error err = {0};
    if (status != 0 || ort_out_file_stream(f) == stdout)
        ort_out_file_abort(f);
    else if (ort_out_file_commit(f, false, &err) != ORT_OK)
        status = tool_fail(&err);
    return status;
}

char *whole_file_numbered(const char *path, size_t number)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) /* a device or a pipe takes them all */
        return tool_strdup(path);
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    if (dot == NULL || (slash != NULL && dot < slash))
        dot = path + strlen(path);
    return number == 0 ? tool_strdup(path)
                       : tool_printf("%.*s_%zu%s", (int)(dot - path), path, number, dot);
}
