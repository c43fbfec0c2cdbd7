/* samples.c - inputs for verification: each -i FILE is a set of inputs, each FOLDER one or as
 * many as it has files, all -i NAME=FILE together are one; read as those of a run are
 * (common/feed.h), so that names and places are known.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/feed.h"
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

/* The values of a run under the names of its inputs. */
static int name_values(const ort_session *session, ort_value **values, const char *what,
                       ort_tensors *set)
{
    ort_error err = {0};
    for (size_t i = 0; i < ort_session_input_count(session); i++) {
        const char *name = ort_session_input_name(session, i);
        if (values[i] == NULL && !ort_session_input_optional(session, i))
            return tool_usage("-i %s: there is no value for input '%s'", what, name);
        if (values[i] != NULL && ort_tensors_add(set, name, values[i], &err) != ORT_OK)
            return tool_fail(&err);
    }
    return 0;
}

static int take_set(samples *s, const ort_session *session, ort_value **values, const char *what)
{
    ort_error err = {0};
    ort_tensors *set = NULL;
    if (ort_tensors_new(&set, &err) != ORT_OK)
        return tool_fail(&err);
    int status = name_values(session, values, what, set);
    if (status == 0)
        add_set(s, set);
    else
        ort_tensors_free(set);
    return status;
}

/* One set of inputs, or those of a folder. */
static int load_sets(samples *s, const ort_session *session, const string_list *inputs)
{
    feed f = {0};
    bool end = false;
    const string_list no_files = {0};
    const feed_options from = {.inputs = inputs};
    ort_value **values = tool_alloc((ort_session_input_count(session) + 1) * sizeof *values);
    int status = feed_open(&f, &from, session, &no_files);
    while (status == 0 && (status = feed_next(&f, values, &end)) == 0 && !end)
        status = take_set(s, session, values, inputs->items[0]);
    feed_close(&f);
    free(values);
    return status;
}

static bool is_named(const char *item)
{
    struct stat info;
    const char *equals = strchr(item, '=');
    return equals != NULL && equals != item && stat(item, &info) != 0;
}

int samples_load(samples *s, const string_list *inputs, ort_env *env, ort_model *model,
                 const char *path)
{
    ort_session_options options;
    ort_session *session = NULL;
    ort_error err = {0};
    string_list named = {0};
    int status = 0;
    if (inputs->count == 0)
        return 0;
    ort_session_options_init(&options);
    options.level = 0;
    if (ort_session_new(env, model, &options, &session, &err) != ORT_OK)
        return tool_fail_in(path, &err);
    for (size_t i = 0; i < inputs->count && status == 0; i++) {
        const string_list one = {inputs->items + i, 1, 0};
        if (is_named(inputs->items[i]))
            string_list_add(&named, inputs->items[i]);
        else
            status = load_sets(s, session, &one);
    }
    if (status == 0 && named.count > 0)
        status = load_sets(s, session, &named);
    string_list_release(&named);
    ort_session_free(session);
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
                !strcmp(ort_tensors_name(set, k), ort_session_input_name(session, i)))
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
