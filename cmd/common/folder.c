/* folder.c - walks a folder of inputs (folder.h). What would be taken by mistake is refused by
 * name: a second kind of file, a link back to where the walk came from, what is no file. */
#include "common/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 32 };

typedef struct walk {
    size_t inputs;
    string_list sets, files;
    struct {
        dev_t device;
        ino_t number;
    } above[DEEPEST]; /* the folders on the way here */
    int depth;
} walk;

bool folder_is(const char *path)
{
    struct stat st;
    return strcmp(path, "-") && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a folder, but hidden ones. 0 or errno. */
static int read_names(const char *path, string_list *names)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    if (folder == NULL)
        return errno;
    errno = 0;
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            string_list_add(names, entry->d_name);
    int failed = errno;
    closedir(folder);
    return failed;
}

static int names_in(const char *path, string_list *names)
{
    int failed = read_names(path, names);
    if (failed != 0)
        return tool_error(ORT_ERROR_IO, "%s: can't read: %s", path, strerror(failed));
    if (names->count > 0)
        qsort(names->items, names->count, sizeof *names->items, by_name);
    return 0;
}

/* "input_3.pb" and "input3.pb": 3; -1 for other names. */
static long input_number(const char *name)
{
    if (strncmp(name, "input", 5))
        return -1;
    name += name[5] == '_' ? 6 : 5;
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 8 || name[digits] != '.' || strchr(name + digits + 1, '.') ||
        ort_format_of_path(name) == ORT_FORMAT_AUTO)
        return -1;
    return strtol(name, NULL, 10);
}

/* Protobuf under such a name is a set's. Other files are too if none has a number that the model
 * has no input for: those are samples that somebody counted. */
static bool are_set(const string_list *names, size_t inputs)
{
    bool all = names->count > 0;
    for (size_t i = 0; i < names->count; i++) {
        long number = input_number(names->items[i]);
        if (number >= 0 && ort_format_of_path(names->items[i]) == ORT_FORMAT_PB)
            return true;
        all = all && (number >= 0 ? (size_t)number < inputs
                                  : !strncmp(names->items[i], "output", 6));
    }
    return all;
}

bool folder_is_set(const char *path, size_t inputs)
{
    string_list names = {0};
    bool set = read_names(path, &names) != 0 || names.count == 0 || are_set(&names, inputs);
    string_list_release(&names);
    return set;
}

static int visit(walk *w, const char *path);

static int enter(walk *w, const char *path, const struct stat *st)
{
    for (int i = 0; i < w->depth; i++)
        if (w->above[i].device == st->st_dev && w->above[i].number == st->st_ino)
            return tool_error(ORT_ERROR_DATA, "%s: leads back to a folder that it lies in", path);
    if (w->depth == DEEPEST)
        return tool_error(ORT_ERROR_DATA, "%s: lies more than %d folders deep", path, DEEPEST);
    w->above[w->depth].device = st->st_dev;
    w->above[w->depth++].number = st->st_ino;
    int status = visit(w, path);
    w->depth--;
    return status;
}

static int visit_entry(walk *w, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return tool_error(ORT_ERROR_IO, "%s: can't open: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return enter(w, path, &st);
    if (!S_ISREG(st.st_mode))
        return tool_error(ORT_ERROR_DATA, "%s: is no file", path);
    string_list_add(&w->files, path);
    return 0;
}

static int visit(walk *w, const char *path)
{
    string_list names = {0};
    int status = names_in(path, &names);
    bool set = status == 0 && are_set(&names, w->inputs);
    if (set)
        string_list_add(&w->sets, path);
    size_t length = strlen(path);
    const char *between = length > 0 && path[length - 1] == '/' ? "" : "/";
    for (size_t i = 0; i < names.count && status == 0 && !set; i++) {
        char *below = tool_printf("%s%s%s", path, between, names.items[i]);
        status = visit_entry(w, below);
        free(below);
    }
    string_list_release(&names);
    return status;
}

static const char *kind_of(const char *path)
{
    ort_format format = ort_format_of_path(path);
    return format == ORT_FORMAT_AUTO ? "no format of tensors" : ort_format_name(format);
}

/* Two kinds beside each other: which of them is meant? */
static int check_kinds(const char *path, const string_list *files)
{
    for (size_t i = 1; i < files->count; i++) {
        const char *a = files->items[0], *b = files->items[i];
        if (ort_format_of_path(a) != ort_format_of_path(b))
            return tool_error(ORT_ERROR_DATA, "%s: holds files of several kinds, %s (%s) and %s "
                              "(%s): put those that are inputs into a folder of their own", path,
                              a, kind_of(a), b, kind_of(b));
    }
    return 0;
}

static bool is_called_set(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !strncmp(slash != NULL ? slash + 1 : path, "test_data_set", 13);
}

/* Beside sets of ONNX's model zoo lie the model and texts; beside others, no tensors. */
static int check_beside(const char *path, const walk *w)
{
    for (size_t i = 0; i < w->files.count && w->sets.count > 0; i++)
        if (ort_format_of_path(w->files.items[i]) != ORT_FORMAT_AUTO &&
            !is_called_set(w->sets.items[0]))
            return tool_error(ORT_ERROR_DATA, "%s: holds a test data set, %s, and beside it %s: "
                              "name the one that is meant", path, w->sets.items[0],
                              w->files.items[i]);
    return 0;
}

int folder_list(const char *path, size_t inputs, ort_format format, string_list *items)
{
    walk w = {.inputs = inputs};
    int status = visit_entry(&w, path);
    const string_list *found = w.sets.count > 0 ? &w.sets : &w.files;
    if (status == 0)
        status = check_beside(path, &w);
    if (status == 0 && w.sets.count == 0 && format == ORT_FORMAT_AUTO)
        status = check_kinds(path, &w.files);
    if (status == 0 && found->count == 0)
        status = tool_error(ORT_ERROR_DATA, "%s: holds no tensor (input_0.pb, ...), and no file "
                            "that could be an input", path);
    for (size_t i = 0; i < found->count && status == 0; i++)
        string_list_add(items, found->items[i]);
    string_list_release(&w.sets);
    string_list_release(&w.files);
    return status;
}
