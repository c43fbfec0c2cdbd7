/* chosen.c - --exclude, --include, files of both and --overrides: files read, lists joined. */
#include "chosen.h"

#include <errno.h>
#include <inttypes.h>
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
    const bool is_stdin = !strcmp(path, "-");
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    ssize_t length = file ? getdelim(&from, &size, '\0', file) : -1;
    int status = 0;
    if (file == NULL || ferror(file))
        status = tool_error(ORT_ERROR_IO, "%s: can't be read: %s",
                            is_stdin ? "standard input" : path, strerror(errno));
    else
        *text = tool_strdup(length > 0 ? from : "");
    if (file && !is_stdin)
        fclose(file);
    free(from);
    return status;
}

/* FNV-1a, 64 bits: tells texts apart, and is the same on every machine. */
static uint64_t digest(uint64_t before, const char *text)
{
    for (; *text != '\0'; text++)
        before = (before ^ (unsigned char)*text) * 0x100000001b3u;
    return before;
}

static const uint64_t no_text = 0xcbf29ce484222325u;

/* " --NAME a,b", or of lists that nobody reads in a line how many they hold. */
static void tell_names(FILE *out, const char *name, const string_list *names)
{
    enum { LINE = 200 };
    size_t length = 0;
    uint64_t all = no_text;
    for (size_t i = 0; i < names->count; i++) {
        length += strlen(names->items[i]) + 1;
        all = digest(digest(all, names->items[i]), ",");
    }
    if (length > LINE) {
        fprintf(out, " --%s (%zu names, digest %016" PRIx64 ")", name, names->count, all);
        return;
    }
    if (names->count > 0)
        fprintf(out, " --%s ", name);
    for (size_t i = 0; i < names->count; i++)
        fprintf(out, "%s%s", i ? "," : "", names->items[i]);
}

static int tell_choice(const chosen *c, quantizing *q)
{
    size_t size = 0;
    FILE *out = open_memstream(&q->choice, &size);
    if (out == NULL)
        return tool_error(ORT_ERROR_MEMORY, "the choice of nodes can't be told");
    tell_names(out, "include", &c->include);
    tell_names(out, "exclude", &c->exclude);
    if (c->overrides != NULL)
        fprintf(out, " --overrides (digest %016" PRIx64 ")", digest(no_text, c->overrides));
    fclose(out);
    if (size == 0) {
        free(q->choice);
        q->choice = NULL;
    } else {
        memmove(q->choice, q->choice + 1, size); /* the space */
    }
    return 0;
}

void chosen_found(quantizing *q, const char *overrides)
{
    char *before = q->choice;
    q->choice = tool_printf("%s%s--overrides (digest %016" PRIx64 ")", before ? before : "",
                            before ? " " : "", digest(no_text, overrides));
    free(before);
}

int chosen_read(chosen *c, quantizing *q)
{
    const quantize_options *o = &q->options;
    for (size_t i = 0; i < o->exclude.count; i++)
        string_list_add(&c->exclude, o->exclude.items[i]);
    for (size_t i = 0; i < o->include.count; i++)
        string_list_add(&c->include, o->include.items[i]);
    int status = add_names(o->exclude_from, &c->exclude);
    if (status == 0)
        status = add_names(o->include_from, &c->include);
    if (status == 0 && o->include_from && c->include.count == 0) /* which would include all */
        status = tool_error(ORT_ERROR_USAGE, "%s: names nothing to include; without --include-from "
                            "all nodes are",
                            strcmp(o->include_from, "-") ? o->include_from : "standard input");
    if (status == 0)
        status = read_text(o->overrides, &c->overrides);
    return status != 0 ? status : tell_choice(c, q);
}

int chosen_quantizer(const quantizing *q, const ort_quantize_options *options,
                     ort_quantizer **quantizer)
{
    ort_quantize_options own = *options;
    ort_error err = {0};
    bool of_file = false;
    own.overrides_refused = &of_file;
    if (ort_quantizer_new(q->env, q->original, &own, quantizer, &err) == ORT_OK)
        return 0;
    of_file = of_file && q->options.overrides; /* what --auto found has no file */
    return tool_fail_in(of_file ? q->options.overrides : q->path, &err);
}

void chosen_release(chosen *c)
{
    string_list_release(&c->exclude);
    string_list_release(&c->include);
    free(c->overrides);
}
