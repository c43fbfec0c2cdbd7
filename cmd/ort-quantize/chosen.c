/* chosen.c - --exclude, --include, --exclude-from and --overrides: files read, lists joined. */
#include "chosen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/labels.h"

/* A name ends at a tab: what stands behind it is for readers. Lines of '#' are comments. */
static int add_names(const char *path, string_list *names)
{
    string_list lines = {0};
    int status = labels_load(path, &lines);
    for (size_t i = 0; i < lines.count; i++) {
        size_t length = strcspn(lines.items[i], "\t");
        if (length == 0 || lines.items[i][0] == '#')
            continue;
        char *name = tool_strndup(lines.items[i], length);
        string_list_add(names, name);
        free(name);
    }
    string_list_release(&lines);
    return status;
}

static int read_text(const char *path, char **text)
{
    char *from = NULL;
    size_t size = 0;
    if (path == NULL)
        return 0;
    FILE *file = fopen(path, "rb");
    ssize_t length = file ? getdelim(&from, &size, '\0', file) : -1;
    int status = 0;
    if (file == NULL || ferror(file))
        status = tool_error(ORT_ERROR_IO, "%s: can't be read: %s", path, strerror(errno));
    else
        *text = tool_strdup(length > 0 ? from : "");
    if (file)
        fclose(file);
    free(from);
    return status;
}

int chosen_read(chosen *c, const quantize_options *o)
{
    for (size_t i = 0; i < o->exclude.count; i++)
        string_list_add(&c->exclude, o->exclude.items[i]);
    int status = add_names(o->exclude_from, &c->exclude);
    return status != 0 ? status : read_text(o->overrides, &c->overrides);
}

void chosen_release(chosen *c)
{
    string_list_release(&c->exclude);
    free(c->overrides);
}
