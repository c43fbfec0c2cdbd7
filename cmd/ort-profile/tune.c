/* tune.c - --tune-opencl: runs a model on a device of OpenCL whose provider measures itself
 * (tuning=measure), then tells what it keeps under ORT_CACHE for sessions to come.
 *
 * The provider decides what is measured and writes the file; here are the runs, and the report.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/look.h"
#include "common/misfit.h"
#include "common/progress.h"
#include "common/table.h"
#include "profile_tool.h"

enum { RUNS = 6 };

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

int profile_tune_list(const char *given, char **list, int *device)
{
    bool has_opencl = false, has_host = false;
    char *text = tool_strdup("");
    for (const char *item = given != NULL ? given : "opencl"; *item;) {
        size_t length = strcspn(item, ",");
        bool opencl = is_called(item, length, "opencl");
        const char *cost = strstr(item, ":cost=");
        bool priced = cost != NULL && cost < item + length;
        char *more = tool_printf("%s%s%.*s%s%s", text, *text ? "," : "", (int)length, item,
                                 opencl ? ":tuning=measure" : "",
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

int profile_tune_check(void)
{
    const char *folder = getenv("ORT_CACHE");
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

/* ---- runs */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static ort_status run_all(ort_binding *binding, const profile_options *o, ort_error *err)
{
    const ort_run_options how = {.size = sizeof how, .timeout_s = o->settings.timeout};
    int64_t most = o->repeat > 0 ? o->repeat : o->seconds > 0 ? INT64_MAX : RUNS;
    ort_status status = ort_binding_run(binding, &how, err); /* the first isn't kept */
    double begin = now_s();
    progress p;
    progress_begin(&p, "tuning", o->settings.no_progress || o->settings.quiet);
    for (int64_t runs = 0; status == ORT_OK && runs < most; runs++) {
        double share = o->seconds > 0 ? (now_s() - begin) / o->seconds : 0;
        double done = (double)runs / (double)most;
        if (runs > 0 && share >= 1)
            break;
        progress_share(&p, (uint64_t)runs, share > done ? share : done);
        status = ort_binding_run(binding, &how, err);
    }
    progress_end(&p);
    return status;
}

static int run(const ort_session *session, const profile_options *o, ort_value *const *inputs,
               const char *label)
{
    ort_binding *binding = NULL;
    ort_error err = {0};
    ort_status status = ort_binding_new(session, &binding, &err);
    for (size_t i = 0; i < ort_session_input_count(session) && status == ORT_OK; i++)
        if (inputs[i] != NULL)
            status = ort_binding_set_input(binding, ort_session_input_name(session, i), inputs[i],
                                           &err);
    if (status == ORT_OK)
        status = run_all(binding, o, &err);
    ort_binding_free(binding);
    if (status != ORT_OK)
        misfit_explain(session, inputs, &err);
    return status != ORT_OK ? tool_fail_in(label, &err) : 0;
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

/* That of a device, with its path as "file"; NULL: there is none that was written since. */
static json_object *find_file(const char *device, const struct timespec *since)
{
    const char *folder = getenv("ORT_CACHE"), *begin = "opencl-tuning-";
    DIR *entries = opendir(folder);
    json_object *found = NULL;
    for (struct dirent *e; entries != NULL && found == NULL && (e = readdir(entries)) != NULL;) {
        struct stat info;
        size_t length = strlen(e->d_name);
        if (strncmp(e->d_name, begin, strlen(begin)) || length < 5 ||
            strcmp(e->d_name + length - 5, ".json"))
            continue;
        char *path = tool_printf("%s/%s", folder, e->d_name);
        json_object *tuning = json_object_from_file(path);
        bool new = stat(path, &info) == 0 && (info.st_mtim.tv_sec > since->tv_sec ||
                                              (info.st_mtim.tv_sec == since->tv_sec &&
                                               info.st_mtim.tv_nsec >= since->tv_nsec));
        if (new && !strcmp(text_of(tuning, "device"), device)) {
            json_object_object_add(tuning, "file", json_object_new_string(path));
            found = tuning;
        } else {
            json_object_put(tuning);
        }
        free(path);
    }
    if (entries != NULL)
        closedir(entries);
    return found;
}

/* ---- the report */

static void print_text(json_object *tuning)
{
    static const char *const heads[] = {"shape", "tiles", ">rows", ">us", ">usual us", ">gain",
                                        NULL};
    json_object *rows = member(tuning, "shapes"), *rates = member(tuning, "rates");
    table *t = table_new(heads);
    printf("device    %s, driver %s\n", text_of(tuning, "device"), text_of(tuning, "driver"));
    printf("file      %s\n", text_of(tuning, "file"));
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

static void print_json(json_object *tuning, const char *path)
{
    json_object *j = json_object_new_object();
    tool_reported();
    json_object_object_add(j, "schema", json_object_new_string("ort-profile/1"));
    json_object_object_add(j, "model", json_object_new_string(path));
    json_object_object_add(j, "tuning", json_object_get(tuning));
    printf("%s\n", json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY |
                                                         JSON_C_TO_STRING_SPACED |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(j);
}

int profile_tune(const ort_env *env, const ort_session *session, const profile_options *o,
                 const tune_target *target, ort_value *const *inputs)
{
    int status = run(session, o, inputs, target->model_path);
    if (status != 0)
        return status;
    char *name = device_name(env, target->device);
    json_object *tuning = name != NULL ? find_file(name, &target->since) : NULL;
    if (tuning == NULL)
        status = tool_error(ORT_ERROR_UNSUPPORTED, "%s: nothing of it ran on the device, so "
                            "nothing was measured", target->model_path);
    else if (o->settings.json)
        print_json(tuning, target->model_path);
    else
        print_text(tuning);
    json_object_put(tuning);
    free(name);
    return status;
}
