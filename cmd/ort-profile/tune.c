/* tune.c - --tune-opencl: runs a model on a device of OpenCL whose provider measures itself
 * (tuning=measure), proves that the model is faster by it, and tells what it keeps under ORT_CACHE
 * for sessions to come.
 *
 * The provider decides what is measured and writes the file, into a folder of this process: what
 * other sessions read is there whole and proven, or as it was before.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/look.h"
#include "common/table.h"
#include "profile_tool.h"

/* ---- the list of providers */

/* Of one of the list, without options. */
static bool is_called(const char *item, size_t length, const char *name)
{
    size_t own = strcspn(item, ":,");
    return strlen(name) == own && own <= length && !strncmp(item, name, own);
}

static int number_of_device(const char *item, size_t length)
{
    const char *at = strstr(item, ":device=");
    return at != NULL && at < item + length ? atoi(at + strlen(":device=")) : 0;
}

/* The list with `how` for opencl, which takes all that it can unless the list says of the cost. */
static int list_with(const char *given, const char *how, char **list, int *device)
{
    bool has_opencl = false, has_host = false;
    char *text = tool_strdup("");
    for (const char *item = given != NULL ? given : "opencl"; *item;) {
        size_t length = strcspn(item, ",");
        bool opencl = is_called(item, length, "opencl");
        const char *cost = strstr(item, ":cost=");
        bool priced = cost != NULL && cost < item + length;
        char *more = tool_printf("%s%s%.*s%s%s%s", text, *text ? "," : "", (int)length, item,
                                 opencl ? ":tuning=" : "", opencl ? how : "",
                                 opencl && !priced ? ":cost=off" : "");
        if (opencl)
            *device = number_of_device(item, length);
        has_opencl = has_opencl || opencl;
        has_host = has_host || is_called(item, length, "cpu");
        free(text);
        text = more;
        item += length + (item[length] == ',');
    }
    *list = has_host ? tool_strdup(text) : tool_printf("%s,cpu", text);
    free(text);
    return has_opencl ? 0
                      : tool_usage("--tune-opencl: --provider %s doesn't name opencl", given);
}

/* ---- the folder */

static int check_folder(const char *folder)
{
    struct stat info;
    if (folder == NULL || *folder == '\0')
        return tool_usage("--tune-opencl keeps what it measures in a folder that ORT_CACHE names; "
                          "it isn't set");
    if (stat(folder, &info) == 0 && !S_ISDIR(info.st_mode))
        errno = ENOTDIR;
    else if (access(folder, W_OK | X_OK) == 0)
        return 0;
    return tool_error(ORT_ERROR_DATA, "%s (ORT_CACHE) is no folder to write into: %s", folder,
                      strerror(errno));
}

static bool is_tuning(const char *name)
{
    static const char begin[] = "opencl-tuning-", end[] = ".json";
    size_t length = strlen(name);
    return !strncmp(name, begin, sizeof begin - 1) && length >= sizeof end &&
           !strcmp(name + length - (sizeof end - 1), end);
}

/* For each file of a folder: its name. Stops where `each` returns false. */
static void walk(const char *folder, bool (*each)(void *, const char *name), void *arg)
{
    DIR *entries = opendir(folder);
    for (struct dirent *e; entries != NULL && (e = readdir(entries)) != NULL;)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && !each(arg, e->d_name))
            break;
    if (entries != NULL)
        closedir(entries);
}

/* Files of before are linked: what is measured comes to what they say of other models. One that is
 * written takes the place of the link. */
static bool lend(void *arg, const char *name)
{
    const tune_state *t = arg;
    if (is_tuning(name)) {
        char *from = tool_printf("%s/%s", t->cache, name), *real = realpath(from, NULL);
        char *to = tool_printf("%s/%s", t->folder, name);
        if (real != NULL && symlink(real, to) != 0)
            tool_warn("%s isn't read: %s", from, strerror(errno));
        free(from);
        free(real);
        free(to);
    }
    return true;
}

/* Programs stay: sessions to come build the same ones. */
static bool put_back(void *arg, const char *name)
{
    const tune_state *t = arg;
    struct stat info;
    char *from = tool_printf("%s/%s", t->folder, name), *to = tool_printf("%s/%s", t->cache, name);
    bool written = lstat(from, &info) == 0 && S_ISREG(info.st_mode);
    if (!written || (is_tuning(name) && !t->kept) || rename(from, to) != 0)
        unlink(from);
    free(from);
    free(to);
    return true;
}

static const char *unfinished; /* the folder, while there is one */

/* In a signal's handler, which readdir isn't for: entries come of the kernel at once. */
static void discard(void)
{
    static _Alignas(struct dirent64) char entries[1 << 14];
    int folder = open(unfinished, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (ssize_t size; folder >= 0 && (size = getdents64(folder, entries, sizeof entries)) > 0;)
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *e = (const void *)(entries + at);
            unlinkat(folder, e->d_name, 0);
            at += e->d_reclen;
        }
    rmdir(unfinished);
}

int profile_tune_begin(tune_state *t, const profile_options *o)
{
    const char *cache = getenv("ORT_CACHE");
    int status = check_folder(cache);
    if (status == 0)
        status = list_with(o->settings.provider, "measure", &t->list, &t->device);
    if (status != 0)
        return status;
    t->cache = tool_strdup(cache);
    t->folder = tool_printf("%s/opencl-tuning-XXXXXX", cache);
    if (mkdtemp(t->folder) == NULL) {
        status = tool_error(ORT_ERROR_DATA, "%s: %s", t->folder, strerror(errno));
        free(t->folder);
        t->folder = NULL;
        return status;
    }
    unfinished = t->folder;
    tool_on_signal(discard);
    setenv("ORT_CACHE", t->folder, 1);
    walk(t->cache, lend, t);
    return 0;
}

int profile_tune_end(tune_state *t, int status)
{
    if (t->folder != NULL) {
        walk(t->folder, put_back, t);
        tool_on_signal(NULL);
        rmdir(t->folder);
        setenv("ORT_CACHE", t->cache, 1);
    }
    free(t->cache);
    free(t->folder);
    free(t->list);
    return status;
}

/* ---- the file */

/* The name of a device of opencl; the caller frees it. */
static char *device_name(const ort_env *env, int device)
{
    ort_error err = {0};
    char *json = NULL, *name = NULL;
    if (ort_env_providers_report(env, &json, &err) != ORT_OK)
        return NULL;
    json_object *report = json_tokener_parse(json), *rows = member(report, "providers");
    for (size_t i = 0; i < length_of(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i), *list = member(row, "devices");
        if (!strcmp(text_of(row, "name"), "opencl") && (size_t)device < length_of(list))
            name = tool_strdup(text_of(json_object_array_get_idx(list, (size_t)device), "name"));
    }
    json_object_put(report);
    ort_text_free(json);
    return name;
}

typedef struct search {
    const tune_state *state;
    const char *device;
    json_object *found;
} search;

static bool find(void *arg, const char *name)
{
    search *s = arg;
    struct stat info;
    char *path = tool_printf("%s/%s", s->state->folder, name);
    bool written = is_tuning(name) && lstat(path, &info) == 0 && S_ISREG(info.st_mode);
    json_object *tuning = written ? json_object_from_file(path) : NULL;
    free(path);
    if (tuning != NULL && !strcmp(text_of(tuning, "device"), s->device)) {
        char *file = tool_printf("%s/%s", s->state->cache, name);
        json_object_object_add(tuning, "file", json_object_new_string(file));
        free(file);
        s->found = tuning;
        return false;
    }
    json_object_put(tuning);
    return true;
}

/* That of a device, with the path that it is to have as "file"; NULL: nothing was written. */
static json_object *find_file(const tune_state *t, const char *device)
{
    search s = {.state = t, .device = device};
    walk(t->folder, find, &s);
    return s.found;
}

/* ---- the report */

static void print_text(json_object *tuning, const tune_proof *proof, bool kept)
{
    static const char *const heads[] = {"shape", "tiles", ">rows", ">us", ">usual us", ">gain",
                                        NULL};
    json_object *rows = member(tuning, "shapes"), *rates = member(tuning, "rates");
    table *t = table_new(heads);
    printf("device    %s, driver %s\n", text_of(tuning, "device"), text_of(tuning, "driver"));
    printf("file      %s\n", kept ? text_of(tuning, "file") : "as before");
    printf("model     %s tuned, ", text_ms(proof->tuned_ms));
    printf("%s as shipped: %.3f (%.3f to %.3f) in %d pairs\n", text_ms(proof->shipped_ms),
           proof->ratio, proof->low, proof->high, proof->pairs);
    printf("rates     launch %s, ", text_ms(number_of(rates, "launch") * 1e3));
    printf("copies %s/s and %s, memory %s/s", text_bytes(number_of(rates, "copy_bytes")),
           text_ms(number_of(rates, "copy") * 1e3), text_bytes(number_of(rates, "bytes")));
    if (has_number(rates, "products"))
        printf(", %.1f GFLOP/s in products", 2e-9 * number_of(rates, "products"));
    printf("\n\n");
    for (size_t i = 0; i < length_of(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        double us = number_of(row, "us"), usual = number_of(row, "usual_us");
        table_cell(t, text_of(row, "shape"));
        table_cell(t, text_of(row, "tiles"));
        table_cell(t, number_of(row, "rows") > 0 ? text_count(number_of(row, "rows")) : "");
        table_cellf(t, "%.1f", us);
        table_cellf(t, "%.1f", usual);
        table_cellf(t, "%.2f", us > 0 ? usual / us : 0);
    }
    if (length_of(rows) > 0)
        table_print(t, stdout);
    table_free(t);
}

static json_object *proof_json(const tune_proof *proof, bool kept)
{
    json_object *j = json_object_new_object();
    json_object_object_add(j, "kept", json_object_new_boolean(kept));
    json_object_object_add(j, "tuned_ms", json_object_new_double(proof->tuned_ms));
    json_object_object_add(j, "shipped_ms", json_object_new_double(proof->shipped_ms));
    json_object_object_add(j, "ratio", json_object_new_double(proof->ratio));
    json_object_object_add(j, "low", json_object_new_double(proof->low));
    json_object_object_add(j, "high", json_object_new_double(proof->high));
    json_object_object_add(j, "pairs", json_object_new_int(proof->pairs));
    return j;
}

static void print_json(json_object *tuning, const tune_proof *proof, bool kept, const char *path)
{
    json_object *j = json_object_new_object();
    tool_reported();
    json_object_object_add(j, "schema", json_object_new_string("ort-profile/1"));
    json_object_object_add(j, "model", json_object_new_string(path));
    json_object_object_add(j, "proof", proof_json(proof, kept));
    json_object_object_add(j, "tuning", json_object_get(tuning));
    printf("%s\n", json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY |
                                                         JSON_C_TO_STRING_SPACED |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(j);
}

static int prove(tune_state *t, const prove_setup *setup, tune_proof *proof)
{
    const char *given = setup->options->settings.provider;
    prove_setup both = *setup;
    int device;
    (void)list_with(given, "on", &both.lists[0], &device);
    (void)list_with(given, "off", &both.lists[1], &device);
    int status = profile_prove(&both, proof);
    free(both.lists[0]);
    free(both.lists[1]);
    t->kept = status == 0 && proof->high < PROFILE_WORTH;
    return status;
}

/* What was measured, and whether it is worth keeping. */
static int settle(tune_state *t, const prove_setup *setup, json_object *measured)
{
    tune_proof proof = {0};
    int status = prove(t, setup, &proof);
    if (status != 0)
        return status;
    if (setup->options->settings.json)
        print_json(measured, &proof, t->kept, setup->label);
    else
        print_text(measured, &proof, t->kept);
    if (t->kept)
        return 0;
    tool_warn("%s: nothing is kept: tuned takes %.3f times (%.3f to %.3f) what it takes as "
              "shipped, which isn't surely less by 1 %%", setup->label, proof.ratio, proof.low,
              proof.high);
    return EXIT_GATE;
}

int profile_tune(tune_state *t, const prove_setup *setup, const ort_session *session)
{
    int status = profile_runs(session, setup->options, NULL, setup->inputs, setup->label);
    if (status != 0)
        return status;
    char *name = device_name(setup->env, t->device);
    json_object *measured = name != NULL ? find_file(t, name) : NULL;
    if (measured != NULL)
        status = settle(t, setup, measured);
    else
        status = tool_error(ORT_ERROR_UNSUPPORTED, "%s: nothing of it ran on the device, so "
                            "nothing was measured", setup->label);
    json_object_put(measured);
    free(name);
    return status;
}
