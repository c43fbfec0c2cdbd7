/* runtime_ours.c - this library as a runtime of the benchmark: a session with its defaults.
 */
#include "../harness.h"
#include "runtime.h"

typedef struct ours {
    ort_env *env;
    ort_session *session;
    ort_value *inputs[HARNESS_VALUES], *outputs[HARNESS_VALUES];
    ort_error err;
} ours;

static bool ours_open(runtime *r, const char *library, const char *model, int threads)
{
    ours *o = r->self = calloc(1, sizeof *o);
    ort_env_options options;
    ort_env_options_init(&options);
    options.threads = threads;
    if (!o || ort_env_new(&options, &o->env, &o->err) ||
        ort_session_load(o->env, model, NULL, &o->session, &o->err))
        return runtime_fail(r, "%s", o ? o->err.message : "no memory");
    for (size_t i = 0; i < ort_session_input_count(o->session) && i < HARNESS_VALUES; i++)
        if (!ort_session_input_optional(o->session, i))
            r->input_names[r->input_count++] = ort_session_input_name(o->session, i);
    r->output_count = ort_session_output_count(o->session);
    return true;
}

static bool ours_bind(runtime *r, ort_value *const *inputs)
{
    ours *o = r->self;
    size_t k = 0;
    for (size_t i = 0; i < ort_session_input_count(o->session) && i < HARNESS_VALUES; i++)
        o->inputs[i] = ort_session_input_optional(o->session, i) ? NULL : inputs[k++];
    return true;
}

static bool ours_run(runtime *r)
{
    ours *o = r->self;
    return !run_whole(o->session, o->inputs, o->outputs, NULL, &o->err) ||
           runtime_fail(r, "%s", o->err.message);
}

static bool ours_view(runtime *r, size_t output, ort_value **value)
{
    ort_value *given = ((ours *)r->self)->outputs[output];
    *value = NULL;
    if (!given || ort_value_get_kind(given) != ORT_VALUE_TENSOR ||
        ort_value_dtype(given) == ORT_DTYPE_STRING)
        return true;
    return runtime_view(r, ort_value_dtype(given), (size_t)ort_value_rank(given),
                        ort_value_dims(given), ort_value_data(given), value);
}

static void ours_release(runtime *r)
{
    harness_free_outputs(((ours *)r->self)->outputs, HARNESS_VALUES);
}

static double number_of(json_object *node, const char *key)
{
    json_object *number;
    return json_object_object_get_ex(node, key, &number) ? json_object_get_double(number) : 0;
}

/* Whether no node before read the first weight of this one. */
static bool is_first(json_object *node, json_object *seen)
{
    json_object *inputs = json_object_object_get(node, "inputs");
    for (size_t i = 0; i < json_object_array_length(inputs); i++) {
        json_object *input = json_object_array_get_idx(inputs, i), *weight, *name;
        if (!json_object_object_get_ex(input, "weight", &weight) ||
            !json_object_get_boolean(weight) || !json_object_object_get_ex(input, "name", &name))
            continue;
        const char *text = json_object_get_string(name);
        bool first = !json_object_object_get_ex(seen, text, NULL);
        json_object_object_add(seen, text, NULL);
        return first;
    }
    return true;
}

/* Sum over the nodes of a profile. Of those without products (a table whose rows are gathered) most
 * weights are never read. */
static bool add_nodes(const char *json, double *gflop, double *weight_mb)
{
    json_object *root = json_tokener_parse(json), *seen = json_object_new_object(), *nodes;
    *gflop = *weight_mb = 0;
    bool ok = root && json_object_object_get_ex(root, "nodes", &nodes);
    for (size_t k = 0; ok && k < json_object_array_length(nodes); k++) {
        json_object *node = json_object_array_get_idx(nodes, k);
        double macs = number_of(node, "macs");
        *gflop += number_of(node, "calls") * 2 * macs / 1e9;
        if (macs > 0 && is_first(node, seen))
            *weight_mb += number_of(node, "weight_bytes") / 1e6;
    }
    json_object_put(seen);
    json_object_put(root);
    return ok;
}

static bool ours_work(runtime *r, double *gflop, double *weight_mb)
{
    ours *o = r->self;
    ort_profile *profile = NULL;
    ort_run_options options = ORT_RUN_OPTIONS_INIT;
    char *json = NULL;
    if (ort_profile_new(o->session, NULL, &profile, &o->err))
        return runtime_fail(r, "%s", o->err.message);
    ort_profile_start(profile);
    options.profile = profile;
    bool ok = !run_whole(o->session, o->inputs, o->outputs, &options, &o->err) &&
              !ort_profile_report(profile, NULL, &json, &o->err) &&
              add_nodes(json, gflop, weight_mb);
    ort_text_free(json);
    ort_profile_free(profile);
    return ok || runtime_fail(r, "%s", o->err.message);
}

const runtime_class runtime_ours = {.name = "ours", .open = ours_open, .bind = ours_bind,
                                    .run = ours_run, .view = ours_view, .release = ours_release,
                                    .work = ours_work};
