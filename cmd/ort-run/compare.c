/* compare.c - ort-run --compare, --compare-levels, --compare-providers: the first value where two
 * models, two optimization levels of one, or two lists of providers part on the same inputs. */
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/misfit.h"
#include "common/screen.h"
#include "run.h"

enum { LEVELS = 4 };

typedef struct rival { /* what the reference is compared with */
    char *label;       /* "level 2", or the model's path */
    ort_model *model;  /* ours, or NULL */
    ort_session *session;
} rival;

typedef struct contest {
    const run_options *options;
    const ort_run_options *how;
    ort_env *env;
    const char *path;
    ort_model *model;
    ort_session *session; /* the reference */
    rival rivals[LEVELS];
    int rival_count;
    json_object *json; /* rows of the report, or NULL */
    bool differs, blank; /* a run that gave nothing to compare */
} contest;

/* providers: NULL for those of the settings. */
static int open_session(contest *c, ort_model *model, const char *path, int level,
                        const char *providers, ort_session **session)
{
    ort_session_options options;
    ort_error err = {0};
    settings_session_options(&c->options->settings, &options);
    options.level = level;
    options.keep_computed = true;
    if (providers != NULL)
        options.providers = providers;
    return ort_session_new(c->env, model, &options, session, &err) == ORT_OK
               ? 0
               : tool_fail_in(path, &err);
}

/* What every provider is given: the graph without anybody's own forms. */
static int shared_level(const run_options *o)
{
    int level = o->settings.level_number;
    return level < 0 || level > 2 ? 2 : level;
}

static int open_providers(contest *c)
{
    const char *list = c->options->compare_providers;
    ort_error err = {0};
    if (ort_env_find_providers(c->env, list, &err) != ORT_OK ||
        ort_env_providers_check(c->env, list, &err) != ORT_OK)
        return tool_fail_in("--compare-providers", &err);
    c->rival_count = 1;
    c->rivals->label = tool_strdup(list);
    return open_session(c, c->model, c->path, shared_level(c->options), list,
                        &c->rivals->session);
}

static int open_rivals(contest *c)
{
    const settings *s = &c->options->settings;
    int level = s->level_number, status = 0;
    rival *r = c->rivals;
    if (c->options->compare) {
        c->rival_count = 1;
        r->label = tool_strdup(c->options->compare);
        status = settings_load_model(s, c->env, r->label, LOAD_ALL, &r->model);
        return status != 0 ? status : open_session(c, r->model, r->label, level < 0 ? 0 : level,
                                                   NULL, &r->session);
    }
    if (c->options->compare_providers)
        return open_providers(c);
    for (int i = 1; i <= (level < 0 ? 3 : level) && status == 0; i++) {
        r = &c->rivals[c->rival_count++];
        r->label = tool_printf("level %d", i);
        status = open_session(c, c->model, c->path, i, NULL, &r->session);
    }
    return status;
}

/* ---- report */

/* Outputs that show nothing agree with anything of that kind. */
static bool is_blank(const ort_first_difference *d)
{
    return !d->differs && d->compared > 0 && d->telling == 0;
}

static const char *why_blank(const ort_first_difference *d, char *text, size_t size)
{
    snprintf(text, size, *d->blank ? "output '%s' is NaN or infinite all over on these inputs"
                                   : "%severy output is empty on these inputs", d->blank);
    return text;
}

static json_object *result_json(const char *label, size_t run, const ort_first_difference *d)
{
    json_object *j = json_object_new_object(), *first = NULL;
    json_object_object_add(j, "with", json_object_new_string(label));
    json_object_object_add(j, "run", json_object_new_int64((int64_t)run));
    json_object_object_add(j, "differs", json_object_new_boolean(d->differs));
    json_object_object_add(j, "compared", json_object_new_int(d->compared));
    json_object_object_add(j, "outputs_compared", json_object_new_int(d->telling));
    json_object_object_add(j, "by_structure", json_object_new_int(d->by_structure));
    json_object_object_add(j, "alone", json_object_new_int(d->alone));
    json_object_object_add(j, "max_abs", /* JSON has no infinity */
                           isfinite(d->max_abs) ? json_object_new_double(d->max_abs) : NULL);
    json_object_object_add(j, "max_abs_value", json_object_new_string(d->worst));
    if (is_blank(d) || (*d->blank && !d->differs)) {
        char why[400];
        why_blank(d, why, sizeof why);
        json_object_object_add(j, "not_compared", json_object_new_string(why));
    }
    if (d->differs) {
        first = json_object_new_object();
        json_object_object_add(first, "value", json_object_new_string(d->name));
        json_object_object_add(first, "other_value", json_object_new_string(d->other));
        json_object_object_add(first, "node", json_object_new_string(d->node));
        json_object_object_add(first, "is_output", json_object_new_boolean(d->is_output));
        json_object_object_add(first, "text", json_object_new_string(d->text));
    }
    json_object_object_add(j, "first", first);
    return j;
}

static void report(contest *c, const rival *r, size_t run, const ort_first_difference *d)
{
    char why[400];
    c->differs = c->differs || d->differs;
    c->blank = c->blank || is_blank(d);
    if (*d->blank && !d->differs && !is_blank(d))
        tool_warn("%s: not compared: %s", r->label, why_blank(d, why, sizeof why));
    if (c->json) {
        json_object_array_add(c->json, result_json(r->label, run, d));
        return;
    }
    if (c->options->settings.quiet)
        return;
    const bool named = !strcmp(d->name, d->other); /* the same in both */
    screen_verdict(stdout, !d->differs && !is_blank(d));
    if (d->differs)
        screen_printf(stdout, "%s: first difference in %s'%s'%s%s%s of %s: %s\n", r->label,
                      d->is_output ? "output " : "", d->name, named ? "" : ", there '",
                      named ? "" : d->other, named ? "" : "',", d->node, d->text);
    else if (is_blank(d))
        screen_printf(stdout, "%s: not compared: %s\n", r->label, why_blank(d, why, sizeof why));
    else
        screen_printf(stdout, "%s: %d values agree; largest difference %.3g%s%s%s\n", r->label,
                      d->compared, d->max_abs, *d->worst ? " in '" : "", d->worst,
                      *d->worst ? "'" : "");
    if (c->options->settings.verbose)
        screen_printf(stderr, "%s: %s: %d values matched, %d of them by structure; %d only in %s\n",
                tool_name(), r->label, d->compared, d->by_structure, d->alone, c->path);
}

static void print_json(contest *c)
{
    json_object *j = json_object_new_object();
    tool_reported();
    json_object_object_add(j, "schema", json_object_new_string("ort-run/1"));
    json_object_object_add(j, "model", json_object_new_string(c->path));
    json_object_object_add(j, "comparisons", json_object_get(c->json));
    printf("%s\n",
           json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                              JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(j);
}

/* ---- the runs */

static int compare_once(contest *c, ort_value *const *inputs, size_t run)
{
    ort_locate_options options;
    ort_error err = {0};
    ort_locate_options_init(&options);
    if (c->options->rtol >= 0)
        options.rtol = c->options->rtol;
    if (c->options->atol >= 0)
        options.atol = c->options->atol;
    options.run = c->how;
    for (int i = 0; i < c->rival_count; i++) {
        ort_first_difference d = ORT_FIRST_DIFFERENCE_INIT;
        if (ort_sessions_compare(c->session, c->rivals[i].session, inputs,
                                 ort_session_input_count(c->session), &options, &d,
                                 &err) != ORT_OK) {
            misfit_explain(c->session, inputs, &err);
            return tool_fail_in(c->options->compare ? c->path : c->rivals[i].label, &err);
        }
        if (d.compared == 0)
            tool_warn("%s: no value of %s matches one of it", c->rivals[i].label, c->path);
        c->differs = c->differs || d.compared == 0;
        report(c, &c->rivals[i], run, &d);
    }
    return 0;
}

static int all_runs(contest *c, const string_list *data)
{
    feed f = {0};
    bool end = false;
    ort_value **inputs = tool_alloc((ort_session_input_count(c->session) + 1) * sizeof *inputs);
    const feed_options from = run_feed(c->options);
    int status = feed_open(&f, &from, c->session, data);
    size_t run = 0;
    while (status == 0) {
        status = feed_next(&f, inputs, &end);
        if (status != 0 || end)
            break;
        status = compare_once(c, inputs, run++);
    }
    if (status == 0 && run == 0)
        status = tool_error(ORT_ERROR_DATA, "%s: is empty: nothing was compared",
                            f.label != NULL ? f.label : "the inputs");
    feed_close(&f);
    free(inputs);
    return status;
}

int compare_models(const run_options *o, const ort_run_options *how, const string_list *files)
{
    contest c = {.options = o, .how = how, .path = files->items[0]};
    string_list data = {files->items + 1, files->count - 1, 0};
    int level = o->compare_providers ? shared_level(o)
                : o->compare && o->settings.level_number > 0 ? o->settings.level_number
                                                             : 0;
    int status = settings_new_env(&o->settings, &c.env);
    if (o->settings.json)
        c.json = json_object_new_array();
    if (status == 0)
        status = settings_load_model(&o->settings, c.env, c.path, LOAD_ALL, &c.model);
    if (status == 0)
        status = open_session(&c, c.model, c.path, level, NULL, &c.session);
    if (status == 0)
        status = open_rivals(&c);
    if (status == 0)
        status = all_runs(&c, &data);
    if (status == 0 && c.json)
        print_json(&c);
    json_object_put(c.json);
    for (int i = 0; i < c.rival_count; i++) {
        ort_session_free(c.rivals[i].session);
        ort_model_free(c.rivals[i].model);
        free(c.rivals[i].label);
    }
    ort_session_free(c.session);
    ort_model_free(c.model);
    ort_env_free(c.env);
    return status != 0 ? status : c.differs || c.blank ? EXIT_GATE : 0;
}
