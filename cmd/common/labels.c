/* labels.c - names of classes from a file (labels.h). */
#include "common/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int labels_load(const char *path, string_list *labels)
{
    if (path == NULL)
        return 0;
    const bool is_stdin = !strcmp(path, "-");
    const char *name = is_stdin ? "standard input" : path;
    FILE *file = is_stdin ? stdin : fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    if (file == NULL)
        return tool_error(ORT_ERROR_IO, "%s: can't be opened: %s", name, strerror(errno));
    while ((length = getline(&line, &size, file)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        string_list_add(labels, line);
    }
    int status = ferror(file) == 0 ? 0
                                   : tool_error(ORT_ERROR_IO, "%s: can't be read: %s", name,
                                                strerror(errno));
    free(line);
    if (!is_stdin)
        fclose(file);
    return status;
}
