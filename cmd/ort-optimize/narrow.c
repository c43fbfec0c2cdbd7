/* narrow.c - --fp16 and --bf16: what runs over the samples shows which values leave the range of
 * the type; the nodes around them stay float, as do those that --keep-float names. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optimize.h"

#define FLOAT16_MAX 65504.0
#define BFLOAT16_MAX 0x1.fep127 /* the lowest float, a common mask, would be infinite */

typedef struct range {
    const char *path;
    string_list *keep; /* what was asked for, then values beyond the range */
    double most; /* largest number of the type */
    bool verbose;
    ort_run_options run; /* of each run */
    uint64_t seed;       /* of made-up inputs */
} range;

static bool listed(const string_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->items[i], name))
            return true;
    return false;
}

static void watch(void *arg, const char *name, const ort_value *value)
{
    range *r = arg;
    double most = 0;
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR ||
        ort_value_dtype(value) != ORT_DTYPE_FLOAT || listed(r->keep, name))
        return;
    for (int64_t i = 0; i < ort_value_count(value); i++) {
        double x = fabs(ort_value_get_double(value, i));
        if (isfinite(x) && x > most)
            most = x;
    }
    if (most <= r->most)
        return;
    tool_warn("%s: value '%s' reaches %g, beyond %g: the nodes around it stay float", r->path,
              name, most, r->most);
    string_list_add(r->keep, name);
}

/* The values of a set for the session's inputs, in order; borrowed. */
static void take_set(const ort_session *session, const ort_tensors *set, ort_value **inputs)
{
    size_t count = ort_session_input_count(session);
    for (size_t i = 0; i < count; i++) {
        inputs[i] = NULL;
        for (size_t k = 0; k < ort_tensors_count(set); k++)
            if (!strcmp(ort_tensors_name(set, k), ort_session_input_name(session, i)) ||
                (count == 1 && ort_tensors_count(set) == 1))
                inputs[i] = ort_tensors_value(set, k);
    }
}

static ort_status run_watched(range *r, const ort_session *session, ort_value **inputs,
                              ort_error *err)
{
    size_t count = ort_session_output_count(session);
    ort_value **outputs = tool_alloc((count + 1) * sizeof *outputs);
    memset(outputs, 0, (count + 1) * sizeof *outputs);
    ort_status status = ort_session_run(session, NULL, inputs, ort_session_input_count(session),
                                        NULL, outputs, count, &r->run, err);
    for (size_t i = 0; i < count; i++)
        ort_value_free(outputs[i]);
    free(outputs);
    return status;
}

/* Made-up inputs say little of real ranges, but what overflows on them overflows. A model that
 * doesn't run on them is narrowed all the same. */
static void run_made_up(range *r, const ort_session *session, ort_value **inputs)
{
    ort_error err = {0};
    size_t count = ort_session_input_count(session);
    memset(inputs, 0, (count + 1) * sizeof *inputs);
    if (ort_session_random_inputs(session, r->seed, inputs, count, &err) != ORT_OK ||
        run_watched(r, session, inputs, &err) != ORT_OK)
        tool_warn("%s: ranges were not checked: %s", r->path, err.message);
    for (size_t i = 0; i < count; i++)
        ort_value_free(inputs[i]);
}

static int check_range(range *r, ort_env *env, ort_model *model, const samples *sets)
{
    ort_session_options options;
    ort_session *session = NULL;
    ort_error err = {0};
    int status = 0;
    ort_session_options_init(&options);
    options.level = 0;
    options.keep_computed = true;
    if (ort_session_new(env, model, &options, &session, &err) != ORT_OK)
        return tool_fail_in(r->path, &err);
    size_t count = ort_session_input_count(session);
    ort_value **inputs = tool_alloc((count + 1) * sizeof *inputs);
    if (sets->count == 0)
        run_made_up(r, session, inputs);
    for (size_t s = 0; s < sets->count && status == 0; s++) {
        take_set(session, sets->sets[s], inputs);
        if (run_watched(r, session, inputs, &err) != ORT_OK)
            status = tool_fail_in(r->path, &err);
    }
    free(inputs);
    ort_session_free(session);
    return status;
}

static void on_kept(void *arg, const char *node, const char *why)
{
    const range *r = arg;
    if (r->verbose)
        fprintf(stderr, "%s: %s: %s stays float: %s\n", tool_name(), r->path, node, why);
}

int narrow_model(const optimize_options *o, ort_env *env, ort_model *model, const char *path,
                 const samples *sets)
{
    string_list keep = {0};
    range r = {.path = path, .keep = &keep, .most = o->fp16 ? FLOAT16_MAX : BFLOAT16_MAX,
               .verbose = o->settings.verbose > 0};
    ort_error err = {0};
    int status = made_up_seed(o, &r.seed);
    ort_run_options_init(&r.run);
    r.run.on_value = watch;
    r.run.timeout_s = o->settings.timeout;
    r.run.callback_arg = &r;
    r.run.seed = r.seed;
    for (size_t i = 0; i < o->keep_float.count; i++)
        string_list_add(&keep, o->keep_float.items[i]);
    if (status == 0 && !o->no_verify)
        status = check_range(&r, env, model, sets);
    ort_narrow_options options = {.size = sizeof options,
                                  .dtype = o->fp16 ? ORT_DTYPE_FLOAT16 : ORT_DTYPE_BFLOAT16,
                                  .keep = keep.count ? keep.items : NULL,
                                  .on_kept = on_kept,
                                  .arg = &r};
    if (status == 0 && ort_model_narrow(env, model, &options, &err) != ORT_OK)
        status = tool_fail_in(path, &err);
    string_list_release(&keep);
    return status;
}
