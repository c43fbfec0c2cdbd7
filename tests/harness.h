/* harness.h - what the programs over folders of models share: listing folders, meta.json, the
 * values of a test_data_set_N, and comparison with expected values.
 *
 * Values lie in files PREFIX_K.pb or PREFIX_K.json with K in graph order; graph inputs that have an
 * initializer have no file. A .json file holds a map, or a sequence of maps, whose key and element
 * types are those that the session declares: JSON itself can't say whether "1" is a number.
 * Static functions only, so that each program stays one translation unit.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <dirent.h>
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "run_whole.h"

/* A path or message that is too long is cut, and then not found. */
#ifndef __clang__ /* which doesn't warn of it, and of the name then */
#pragma GCC diagnostic ignored "-Wformat-truncation"
#endif

#define HARNESS_VALUES 2048 /* inputs or outputs of one model */
#define HARNESS_STATIC static __attribute__((unused))

/* Sets `err` and evaluates to `status`, as the library's own helper does. */
#define HARNESS_FAIL(err, code, ...)                                                               \
    (snprintf((err)->message, sizeof (err)->message, __VA_ARGS__), (err)->status = (code),         \
     (err)->count = 1, (code))

typedef struct harness_meta {
    char op[64], domain[64], kind[16], note[240];
    double rtol, atol, bfloat16_rtol; /* the last one where it is larger */
    double of_largest; /* of floats: besides, this share of the largest of their output */
    double atols[HARNESS_VALUES];     /* of each output; `atol` where there are none */
    size_t atol_count;
    double allow; /* tolerances that may be used where one is too little (parity.h), or 0 */
    double share; /* of an output's elements that must be within the tolerance, else 1 */
    int nodes;
    char folder[32];       /* of the onnx package: node, simple, ...; "" when not of it */
    ort_run_options how;   /* the state that random operators start from, when one is recorded */
} harness_meta;

typedef struct harness_worst { /* the largest error of all outputs */
    double abs;
    double tolerances; /* in units of what its element was allowed; above 1 it is too large */
} harness_worst;

typedef struct harness_values {
    ort_value *value[HARNESS_VALUES]; /* NULL where `json` holds the value */
    json_object *json[HARNESS_VALUES];
    ort_tensors *owner[HARNESS_VALUES];
    size_t count;
} harness_values;

HARNESS_STATIC double harness_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

HARNESS_STATIC int harness_compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

HARNESS_STATIC int harness_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

HARNESS_STATIC double harness_median(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, harness_compare_doubles);
    return count == 0 ? 0 : (samples[(count - 1) / 2] + samples[count / 2]) / 2;
}

HARNESS_STATIC bool harness_has(const char *path, const char *folder, const char *name)
{
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/%s/%s", path, folder, name);
    return access(file, F_OK) == 0;
}

/* Sorted names of the folders in `path` that hold model.onnx, or refused.txt in its place (see
 * tests/tools/make_parity.py). Returns their number, or -1. */
HARNESS_STATIC int harness_list_folders(const char *path, char ***names)
{
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    size_t count = 0, capacity = 64;
    char **list = malloc(capacity * sizeof *list);
    for (struct dirent *entry; list && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || (!harness_has(path, entry->d_name, "model.onnx") &&
                                        !harness_has(path, entry->d_name, "refused.txt")))
            continue;
        if (count == capacity)
            list = realloc(list, (capacity *= 2) * sizeof *list);
        if (list)
            list[count++] = strdup(entry->d_name);
    }
    closedir(dir);
    if (list)
        qsort(list, count, sizeof *list, harness_compare_names);
    *names = list;
    return list ? (int)count : -1;
}

HARNESS_STATIC void harness_meta_text(json_object *root, const char *key, char *out, size_t size)
{
    json_object *member;
    if (json_object_object_get_ex(root, key, &member))
        snprintf(out, size, "%s", json_object_get_string(member));
}

HARNESS_STATIC void harness_meta_atols(json_object *root, harness_meta *meta)
{
    json_object *list;
    if (!json_object_object_get_ex(root, "atols", &list))
        return;
    for (; meta->atol_count < json_object_array_length(list); meta->atol_count++)
        if (meta->atol_count < HARNESS_VALUES)
            meta->atols[meta->atol_count] =
                json_object_get_double(json_object_array_get_idx(list, meta->atol_count));
}

HARNESS_STATIC bool harness_read_meta(const char *folder, harness_meta *meta)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/meta.json", folder);
    *meta = (harness_meta){.rtol = 1e-3, .atol = 1e-7, .share = 1,
                            .how = ORT_RUN_OPTIONS_INIT};
    json_object *root = json_object_from_file(path), *member;
    if (!root)
        return false;
    harness_meta_text(root, "op", meta->op, sizeof meta->op);
    harness_meta_text(root, "domain", meta->domain, sizeof meta->domain);
    harness_meta_text(root, "kind", meta->kind, sizeof meta->kind);
    harness_meta_text(root, "note", meta->note, sizeof meta->note);
    harness_meta_atols(root, meta);
    if (json_object_object_get_ex(root, "allow", &member))
        meta->allow = json_object_get_double(member);
    if (json_object_object_get_ex(root, "share", &member))
        meta->share = json_object_get_double(member);
    if (json_object_object_get_ex(root, "rtol", &member))
        meta->rtol = json_object_get_double(member);
    if (json_object_object_get_ex(root, "atol", &member))
        meta->atol = json_object_get_double(member);
    if (json_object_object_get_ex(root, "nodes", &member))
        meta->nodes = json_object_get_int(member);
    harness_meta_text(root, "folder", meta->folder, sizeof meta->folder);
    if (json_object_object_get_ex(root, "random", &member)) {
        meta->how.one_stream = true;
        meta->how.seed = (uint64_t)json_object_get_int64(json_object_object_get(member, "seed"));
        meta->how.stream_skip =
            (uint64_t)json_object_get_int64(json_object_object_get(member, "skip"));
    }
    json_object_put(root);
    return true;
}

HARNESS_STATIC void harness_values_free(harness_values *values)
{
    for (size_t k = 0; k < values->count; k++) {
        if (values->json[k])
            json_object_put(values->json[k]);
        if (values->owner[k])
            ort_tensors_free(values->owner[k]);
        else
            ort_value_free(values->value[k]);
    }
    *values = (harness_values){0};
}

/* Read PREFIX_K.pb or PREFIX_K.json for K = 0, 1, ... Outputs may be left out (an entry without a
 * value); a gap of more than GAP ends the search. */
HARNESS_STATIC ort_status harness_load_values(const char *folder, const char *prefix,
                                              harness_values *values, ort_error *err)
{
    enum { GAP = 8 };
    *values = (harness_values){0};
    for (size_t k = 0; k < HARNESS_VALUES && k < values->count + GAP; k++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s_%zu.json", folder, prefix, k);
        if (access(path, F_OK) == 0) {
            values->json[k] = json_object_from_file(path);
            values->count = k + 1;
            if (!values->json[k])
                return HARNESS_FAIL(err, ORT_ERROR_DATA, "%s: not valid JSON", path);
            continue;
        }
        snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, prefix, k);
        if (access(path, F_OK) != 0)
            continue;
        ort_read_options options = {.size = sizeof options, .format = ORT_FORMAT_PB};
        ort_status status = ort_tensors_load(path, &options, &values->owner[k], err);
        if (status != ORT_OK)
            return status;
        values->count = k + 1;
        if (ort_tensors_count(values->owner[k]) != 1)
            return HARNESS_FAIL(err, ORT_ERROR_DATA, "%s: does not hold one value", path);
        values->value[k] = ort_tensors_value(values->owner[k], 0);
    }
    return ORT_OK;
}

/* One JSON object as a map of the type that `type` ("map(int64,double)") names. */
HARNESS_STATIC ort_status harness_json_map(json_object *json, const char *type, ort_value **map,
                                           ort_error *err)
{
    bool text_keys = strstr(type, "map(string") != NULL;
    ort_dtype dtype = strstr(type, ",double") ? ORT_DTYPE_DOUBLE : ORT_DTYPE_FLOAT;
    int64_t count = json_object_object_length(json), k = 0;
    ort_value *keys = NULL, *numbers = NULL;
    ort_status status = ort_value_new_tensor(text_keys ? ORT_DTYPE_STRING : ORT_DTYPE_INT64, 1,
                                             &count, &keys, err);
    if (status == ORT_OK)
        status = ort_value_new_tensor(dtype, 1, &count, &numbers, err);
    json_object_object_foreach(json, key, member)
    {
        if (status != ORT_OK)
            break;
        if (text_keys)
            status = ort_value_set_string(keys, k, key, strlen(key), err);
        else
            ((int64_t *)ort_value_data(keys))[k] = strtoll(key, NULL, 10);
        ort_value_set_double(numbers, k++, json_object_get_double(member));
    }
    if (status == ORT_OK)
        status = ort_value_new_map(keys, numbers, map, err);
    ort_value_free(keys);
    ort_value_free(numbers);
    return status;
}

/* A SequenceProto and an OptionalProto have the same bytes, and are read as a sequence: where the
 * model declares optional(T), the one item is the value. */
HARNESS_STATIC ort_value *harness_unwrap(const char *type, ort_value *value)
{
    bool wrapped = value && !strncmp(type, "optional(", 9) &&
                   ort_value_get_kind(value) == ORT_VALUE_SEQUENCE && ort_value_count(value) == 1;
    return wrapped ? ort_value_item(value, 0) : value;
}

/* The first line of a message that may list many findings. */
HARNESS_STATIC void harness_first_line(char *message)
{
    size_t lines = 0;
    for (const char *c = message; (c = strchr(c, '\n')) && c[1]; c++)
        lines++;
    char *end = message + strcspn(message, "\n");
    if (lines > 0)
        snprintf(end, 40, " (and %zu more)", lines);
    else
        *end = '\0';
}

/* Turn the JSON values of a set into values of the session's input types. `inputs` gets one entry
 * per session input; inputs with an initializer and no file stay NULL. */
HARNESS_STATIC ort_status harness_bind(const ort_session *session, harness_values *values,
                                       ort_value **inputs, ort_error *err)
{
    size_t count = ort_session_input_count(session), k = 0;
    bool all = values->count == count;
    if (count > HARNESS_VALUES)
        return HARNESS_FAIL(err, ORT_ERROR_MODEL, "%zu inputs are more than this test reads",
                            count);
    for (size_t i = 0; i < count; i++) {
        inputs[i] = NULL;
        if (!all && ort_session_input_optional(session, i))
            continue;
        if (k == values->count)
            return HARNESS_FAIL(err, ORT_ERROR_DATA, "no file for input %zu ('%s')", i,
                                ort_session_input_name(session, i));
        if (values->json[k] && !values->value[k]) {
            ort_status status = harness_json_map(
                values->json[k], ort_session_input_type(session, i)->text, &values->value[k], err);
            if (status != ORT_OK)
                return status;
        }
        if (!values->value[k])
            return HARNESS_FAIL(err, ORT_ERROR_DATA, "no file input_%zu", k);
        inputs[i] = harness_unwrap(ort_session_input_type(session, i)->text, values->value[k++]);
    }
    if (k != values->count)
        return HARNESS_FAIL(err, ORT_ERROR_DATA, "%zu input files for %zu inputs", values->count,
                            k);
    return ORT_OK;
}

/* One map against one JSON object: every key on both sides, values within the tolerance. */
HARNESS_STATIC bool harness_same_map(const ort_value *map, json_object *json,
                                     const ort_compare_options *options, ort_difference *diff)
{
    const ort_value *keys = ort_value_item(map, 0), *numbers = ort_value_item(map, 1);
    if (ort_value_count(keys) != json_object_object_length(json)) {
        snprintf(diff->text, sizeof diff->text, "map has %lld keys, expected %d",
                 (long long)ort_value_count(keys), json_object_object_length(json));
        return false;
    }
    for (int64_t k = 0; k < ort_value_count(keys); k++) {
        char name[400];
        size_t length = 0;
        json_object *member;
        if (ort_value_dtype(keys) == ORT_DTYPE_STRING) {
            const char *text = ort_value_string(keys, k, &length);
            snprintf(name, sizeof name, "%.*s", (int)length, text);
        } else {
            snprintf(name, sizeof name, "%.0f", ort_value_get_double(keys, k));
        }
        if (!json_object_object_get_ex(json, name, &member)) {
            snprintf(diff->text, sizeof diff->text, "unexpected key '%.200s'", name);
            return false;
        }
        double a = ort_value_get_double(numbers, k), b = json_object_get_double(member);
        diff->max_abs = fmax(diff->max_abs, fabs(a - b));
        if (!(fabs(a - b) <= options->atol + options->rtol * fabs(b))) {
            snprintf(diff->text, sizeof diff->text, "key '%.200s': %g, expected %g", name, a, b);
            return false;
        }
    }
    return true;
}

HARNESS_STATIC ort_status harness_compare_json(const ort_value *actual, json_object *json,
                                               const ort_compare_options *options,
                                               ort_difference *diff)
{
    *diff = (ort_difference){.size = sizeof(ort_difference), .equal = true};
    if (json_object_is_type(json, json_type_object)) {
        if (ort_value_get_kind(actual) != ORT_VALUE_MAP)
            snprintf(diff->text, sizeof diff->text, "not a map");
        diff->equal = ort_value_get_kind(actual) == ORT_VALUE_MAP &&
                      harness_same_map(actual, json, options, diff);
        return ORT_OK;
    }
    size_t count = json_object_array_length(json);
    if (ort_value_get_kind(actual) != ORT_VALUE_SEQUENCE ||
        (size_t)ort_value_count(actual) != count) {
        snprintf(diff->text, sizeof diff->text, "not a sequence of %zu items", count);
        diff->equal = false;
        return ORT_OK;
    }
    for (size_t k = 0; k < count && diff->equal; k++)
        diff->equal = ort_value_get_kind(ort_value_item(actual, k)) == ORT_VALUE_MAP &&
                      harness_same_map(ort_value_item(actual, k),
                                       json_object_array_get_idx(json, k), options, diff);
    return ORT_OK;
}

HARNESS_STATIC void harness_note(const ort_difference *diff, const ort_compare_options *options,
                                 harness_worst *worst)
{
    double error = fabs(diff->worst_actual - diff->worst_expected);
    double allowed = options->atol + options->rtol * fabs(diff->worst_expected);
    double tolerances = diff->max_abs == 0 ? 0 : error / allowed;
    worst->abs = fmax(worst->abs, diff->max_abs);
    worst->tolerances = fmax(worst->tolerances, isnan(tolerances) ? INFINITY : tolerances);
}

/* Whether the elements out of tolerance are so few that `share` allows them. Never another type or
 * shape, a NaN or an infinity. */
HARNESS_STATIC bool harness_few(const ort_value *actual, const ort_difference *diff, double share)
{
    double allowed = (1 - share) * (double)ort_value_count(actual);
    return ort_value_get_kind(actual) == ORT_VALUE_TENSOR && isfinite(diff->max_abs) &&
           diff->max_abs > 0 && (double)diff->mismatches <= allowed;
}

HARNESS_STATIC double harness_largest(ort_value *value)
{
    bool floats = value && ort_value_get_kind(value) == ORT_VALUE_TENSOR &&
                  ort_value_dtype(value) == ORT_DTYPE_FLOAT;
    const float *x = floats ? ort_value_data(value) : NULL;
    double largest = 0;
    for (int64_t i = 0; x && i < ort_value_count(value); i++)
        largest = isfinite(x[i]) ? fmax(largest, fabs((double)x[i])) : largest;
    return largest;
}

/* Compare the outputs with the expected values of a set. ORT_ERROR_GATE with the output's name and
 * the difference in `err` when they differ; *worst grows to the largest errors. */
HARNESS_STATIC ort_status harness_check(const ort_session *session, ort_value *const *outputs,
                                        const harness_values *expected, const harness_meta *meta,
                                        harness_worst *worst, ort_error *err)
{
    if (expected->count == 0 || expected->count > ort_session_output_count(session))
        return HARNESS_FAIL(err, ORT_ERROR_DATA, "%zu expected values for %zu outputs",
                            expected->count, ort_session_output_count(session));
    for (size_t k = 0; k < expected->count; k++) {
        if (!expected->json[k] && !expected->value[k])
            continue;
        ort_difference diff = ORT_DIFFERENCE_INIT;
        ort_compare_options options = {.size = sizeof options, .rtol = meta->rtol,
                                       .atol = k < meta->atol_count ? meta->atols[k]
                                                                    : meta->atol};
        if (ort_value_dtype(outputs[k]) == ORT_DTYPE_BFLOAT16)
            options.rtol = fmax(meta->rtol, meta->bfloat16_rtol);
        if (meta->of_largest > 0)
            options.atol = fmax(options.atol,
                                meta->of_largest * harness_largest(expected->value[k]));
        ort_status status =
            expected->json[k]
                ? harness_compare_json(outputs[k], expected->json[k], &options, &diff)
                : ort_value_compare(outputs[k],
                                    harness_unwrap(ort_session_output_type(session, k)->text,
                                                   expected->value[k]),
                                    &options, &diff, err);
        if (status != ORT_OK)
            return status;
        if (worst)
            harness_note(&diff, &options, worst);
        if (!diff.equal && !harness_few(outputs[k], &diff, meta->share))
            return HARNESS_FAIL(err, ORT_ERROR_GATE, "output '%s': %s",
                                ort_session_output_name(session, k), diff.text);
    }
    return ORT_OK;
}

HARNESS_STATIC void harness_free_outputs(ort_value **outputs, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        ort_value_free(outputs[k]);
        outputs[k] = NULL;
    }
}

#endif
