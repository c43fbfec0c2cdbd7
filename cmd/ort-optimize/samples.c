/* samples.c - inputs for verification: each -i FILE or FOLDER is a set of inputs by name, all -i
 * NAME=FILE together are one. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/misfit.h"
#include "optimize.h"

static void add_set(samples *s, ort_tensors *set)
{
    ort_tensors **sets = tool_alloc((s->count + 1) * sizeof *sets);
    for (size_t i = 0; i < s->count; i++)
        sets[i] = s->sets[i];
    free(s->sets);
    s->sets = sets;
    s->sets[s->count++] = set;
}

static int load(const char *path, ort_tensors **set)
{
    struct stat info;
    ort_error err = {0};
    bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    ort_status status = folder ? ort_tensors_load_folder(path, "input", set, &err)
                               : ort_tensors_load(path, NULL, set, &err);
    return status ? tool_fail(&err) : 0;
}

static int add_named(samples *s, const char *name, const char *path)
{
    ort_error err = {0};
    ort_tensors *file = NULL;
    int status = load(path, &file);
    if (status == 0 && ort_tensors_count(file) != 1)
        status = tool_usage("-i %s=%s: the file holds %zu arrays, needs one", name, path,
                            ort_tensors_count(file));
    if (status == 0 && !s->named) {
        if (ort_tensors_new(&s->named, &err) != ORT_OK)
            status = tool_fail(&err);
        else
            add_set(s, s->named);
    }
    if (status == 0 &&
        ort_tensors_add(s->named, name, ort_tensors_value(file, 0), &err) != ORT_OK)
        status = tool_fail(&err);
    ort_tensors_free(file);
    return status;
}

int samples_load(samples *s, const string_list *inputs)
{
    int status = 0;
    for (size_t i = 0; i < inputs->count && status == 0; i++) {
        char *name;
        const char *path;
        struct stat info;
        if (stat(inputs->items[i], &info) != 0 &&
            split_assignment(inputs->items[i], &name, &path)) {
            status = add_named(s, name, path);
            free(name);
        } else {
            ort_tensors *set = NULL;
            status = load(inputs->items[i], &set);
            if (status == 0)
                add_set(s, set);
        }
    }
    return status;
}

int made_up_seed(const optimize_options *o, uint64_t *seed)
{
    int64_t number = 1;
    int status = o->random ? option_parse_int("--random", o->random, 0, INT64_MAX, &number) : 0;
    *seed = (uint64_t)number;
    return status;
}

/* The values of one set, for the inputs of a session: by name, the only one whatever its name. */
static void place_values(const ort_tensors *set, const ort_session *session, ort_value **inputs)
{
    size_t count = ort_session_input_count(session), given = ort_tensors_count(set);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < given; k++)
            if ((count == 1 && given == 1) ||
                strcmp(ort_tensors_name(set, k), ort_session_input_name(session, i)) == 0)
                inputs[i] = ort_tensors_value(set, k);
}

void samples_explain(const samples *s, ort_env *env, ort_model *model, ort_error *err)
{
    ort_session_options options;
    ort_session *session = NULL;
    size_t length = strlen(err->message);
    ort_session_options_init(&options);
    options.level = 0;
    if (s->count == 0 || ort_session_new(env, model, &options, &session, NULL) != ORT_OK)
        return;
    ort_value **inputs = tool_alloc((ort_session_input_count(session) + 1) * sizeof *inputs);
    for (size_t i = 0; i < s->count && strlen(err->message) == length; i++) {
        memset(inputs, 0, ort_session_input_count(session) * sizeof *inputs);
        place_values(s->sets[i], session, inputs);
        misfit_explain(session, inputs, err);
    }
    free(inputs);
    ort_session_free(session);
}

void samples_release(samples *s)
{
    for (size_t i = 0; i < s->count; i++)
        ort_tensors_free(s->sets[i]);
    free(s->sets);
}
