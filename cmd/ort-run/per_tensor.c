/* per_tensor.c - ort-run --compare MODEL --per-tensor: how far each value of a quantized model is
 * from the same value of the float one, the worst first.
 *
 * A run of the float model keeps its common values until the run of the other one has shown its
 * own; then only sums are kept, so that memory doesn't depend on the number of runs.
 */
#include "per_tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/misfit.h"
#include "common/nearness.h"
#include "common/table.h"

/* ---- sessions */

static int new_session(per_tensor *t, party *p, const string_list *watched)
{
    const settings *s = &t->options->settings;
    ort_session_options options;
    ort_error err = {0};
    settings_session_options(s, &options);
    options.level = s->level_number < 0 ? 0 : s->level_number;
    options.watched = watched ? watched->items : NULL;
    ort_session_free(p->session);
    p->session = NULL;
    if (ort_session_new(t->env, p->model, &options, &p->session, &err) != ORT_OK)
        return tool_fail_in(p->path, &err);
    return 0;
}

static void open_places(party *p)
{
    p->inputs = ort_session_input_count(p->session);
    p->outputs = ort_session_output_count(p->session);
    p->in = tool_alloc((p->inputs + 1) * sizeof *p->in);
    p->out = tool_alloc((p->outputs + 1) * sizeof *p->out);
    memset(p->in, 0, (p->inputs + 1) * sizeof *p->in);
    memset(p->out, 0, (p->outputs + 1) * sizeof *p->out);
}

static int open_all(per_tensor *t)
{
    const settings *s = &t->options->settings;
    string_list watched[2] = {{0}, {0}};
    int status = settings_load_model(s, t->env, t->a.path, LOAD_ALL, &t->a.model);
    if (status == 0)
        status = settings_load_model(s, t->env, t->b.path, LOAD_ALL, &t->b.model);
    if (status == 0)
        status = pairs_read(&t->a);
    if (status == 0)
        status = pairs_read(&t->b);
    if (status == 0)
        status = new_session(t, &t->a, NULL);
    if (status != 0)
        return status;
    status = pairs_find(t);
    for (size_t i = 0; i < t->count; i++) {
        if (t->values[i].seen) /* a weight */
            continue;
        if (pairs_has(&t->a.names, t->values[i].name))
            string_list_add(&watched[0], t->values[i].name);
        string_list_add(&watched[1], t->values[i].other);
    }
    if (status == 0)
        status = new_session(t, &t->a, watched[0].count ? &watched[0] : NULL);
    if (status == 0)
        status = new_session(t, &t->b, watched[1].count ? &watched[1] : NULL);
    string_list_release(&watched[0]);
    string_list_release(&watched[1]);
    if (status == 0) {
        open_places(&t->a);
        open_places(&t->b);
    }
    return status;
}

/* ---- runs */

static common_value *find(common_value **sorted, size_t count, const common_value *key,
                          int (*order)(const void *, const void *))
{
    common_value **found = bsearch(&key, sorted, count, sizeof *sorted, order);
    return found ? *found : NULL;
}

static void keep(common_value *v, const ort_value *value)
{
    ort_error err = {0};
    if (v->kept || v->why)
        return;
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR ||
        ort_value_dtype(value) == ORT_DTYPE_STRING) {
        v->why = "it is no tensor of numbers";
        return;
    }
    if (ort_value_new_tensor(ort_value_dtype(value), ort_value_rank(value), ort_value_dims(value),
                             &v->kept, &err) != ORT_OK)
        v->why = "there is no memory to keep it";
    else if (ort_value_bytes(value) > 0)
        memcpy(ort_value_data(v->kept), ort_value_data((ort_value *)value),
               ort_value_bytes(value));
}

static void keep_value(void *arg, const char *name, const ort_value *value)
{
    per_tensor *t = arg;
    common_value key = {.name = (char *)name}, *v = find(t->by_name, t->count, &key, pairs_by_name);
    if (v)
        keep(v, value);
}

/* Codes as the numbers that they stand for. */
static ort_value *of_codes(const common_value *v, const ort_value *value)
{
    ort_value *made = NULL;
    double scale = ort_value_get_double(v->scale, 0), zero = ort_value_get_double(v->zero, 0);
    if (ort_value_new_tensor(ORT_DTYPE_FLOAT, ort_value_rank(value), ort_value_dims(value), &made,
                             NULL) != ORT_OK)
        return NULL;
    for (int64_t i = 0; i < ort_value_count(value); i++)
        ort_value_set_double(made, i, (ort_value_get_double(value, i) - zero) * scale);
    return made;
}

static void measure(common_value *v, const ort_value *value)
{
    ort_value *made = NULL;
    if (v->scale && ort_value_get_kind(value) == ORT_VALUE_TENSOR)
        made = of_codes(v, value);
    if (ort_distance_add(&v->distance, v->kept, made ? made : value, NULL) != ORT_OK)
        v->why = "the two have other shapes, or one is no tensor of numbers";
    v->seen = true;
    ort_value_free(made);
    ort_value_free(v->kept);
    v->kept = NULL;
}

static void measure_value(void *arg, const char *name, const ort_value *value)
{
    per_tensor *t = arg;
    common_value key = {.other = (char *)name};
    common_value *v = find(t->by_other, t->count, &key, pairs_by_other);
    if (v && v->kept && !v->why)
        measure(v, value);
}

static int run_party(per_tensor *t, party *p, ort_value_fn *on_value)
{
    ort_run_options how = *t->how;
    ort_error err = {0};
    how.on_value = on_value;
    how.callback_arg = t;
    if (ort_session_run(p->session, NULL, p->in, p->inputs, NULL, p->out, p->outputs, &how,
                        &err) != ORT_OK) {
        misfit_explain(p->session, p->in, &err);
        return tool_fail_in(p->path, &err);
    }
    for (size_t i = 0; i < p->outputs; i++) {
        if (p->out[i]) /* constants come from no step */
            on_value(t, ort_session_output_name(p->session, i), p->out[i]);
        ort_value_free(p->out[i]);
        p->out[i] = NULL;
    }
    return 0;
}

static void share_inputs(per_tensor *t)
{
    for (size_t i = 0; i < t->b.inputs; i++) {
        t->b.in[i] = i < t->a.inputs ? t->a.in[i] : NULL;
        for (size_t k = 0; k < t->a.inputs; k++)
            if (!strcmp(ort_session_input_name(t->b.session, i),
                        ort_session_input_name(t->a.session, k)))
                t->b.in[i] = t->a.in[k];
    }
    for (size_t k = 0; k < t->a.inputs; k++)
        if (t->a.in[k])
            keep_value(t, ort_session_input_name(t->a.session, k), t->a.in[k]);
}

static int run_all(per_tensor *t, const string_list *data)
{
    feed f = {0};
    bool end = false;
    const feed_options from = run_feed(t->options);
    int status = feed_open(&f, &from, t->a.session, data);
    while (status == 0 && (status = feed_next(&f, t->a.in, &end)) == 0 && !end) {
        share_inputs(t);
        status = run_party(t, &t->a, keep_value);
        if (status == 0)
            status = run_party(t, &t->b, measure_value);
        for (size_t i = 0; i < t->count; i++) {
            ort_value_free(t->values[i].kept);
            t->values[i].kept = NULL;
        }
        t->runs++;
    }
    if (status == 0 && t->runs == 0)
        status = tool_error(ORT_ERROR_DATA, "%s: is empty: nothing was compared",
                            f.label != NULL ? f.label : "the inputs");
    feed_close(&f);
    return status;
}

/* ---- report */

static double rank_of(const common_value *v)
{
    double db = ort_distance_sqnr_db(&v->distance);
    return isnan(db) ? INFINITY : db;
}

static int worst_first(const void *x, const void *y)
{
    const common_value *a = *(common_value *const *)x, *b = *(common_value *const *)y;
    double p = rank_of(a), q = rank_of(b);
    return p < q ? -1 : p > q ? 1 : strcmp(a->name, b->name);
}

static const char *why_not(const common_value *v)
{
    return v->why    ? v->why
           : v->seen ? NULL
                     : "no run computes it in both: a constant, or another shape of a value";
}

static void print_table(const per_tensor *t, common_value *const *sorted, FILE *out)
{
    static const char *const heads[] = {">SQNR dB", ">cosine", ">max abs", "~kind",
                                        "value",    "~there",  NULL};
    char text[24];
    table *list = table_new(heads);
    for (size_t i = 0; i < t->count; i++) {
        const common_value *v = sorted[i];
        double cosine = ort_distance_cosine(&v->distance);
        if (why_not(v))
            continue;
        table_cell(list, nearness_sqnr(ort_distance_sqnr_db(&v->distance), text, sizeof text));
        if (isnan(cosine))
            table_cell(list, "none");
        else
            table_cellf(list, "%.6f", cosine);
        table_cellf(list, "%.4g", v->distance.worst);
        table_cell(list, v->kind);
        table_cell(list, v->name);
        table_cell(list, strcmp(v->name, v->other) ? v->other : "");
    }
    table_print(list, out);
    table_free(list);
    for (size_t i = 0; i < t->count; i++)
        if (sorted[i]->why || (why_not(sorted[i]) && t->options->settings.verbose))
            screen_printf(out, "not compared: %s: %s\n", sorted[i]->name, why_not(sorted[i]));
}

static json_object *value_json(const common_value *v)
{
    json_object *o = json_object_new_object();
    const ort_distance *d = &v->distance;
    json_object_object_add(o, "name", json_object_new_string(v->name));
    json_object_object_add(o, "other_name", json_object_new_string(v->other));
    json_object_object_add(o, "kind", json_object_new_string(v->kind));
    if (why_not(v)) {
        json_object_object_add(o, "not_compared", json_object_new_string(why_not(v)));
        return o;
    }
    nearness_json(o, d);
    json_object_object_add(o, "max_abs", json_object_new_double(d->worst));
    json_object_object_add(o, "worst_run", json_object_new_int64(d->worst_sample));
    json_object_object_add(o, "worst_index", json_object_new_int64(d->worst_index));
    json_object_object_add(o, "elements", json_object_new_int64(d->count));
    json_object_object_add(o, "not_finite_unlike", json_object_new_int64(d->odd_unlike));
    json_object_object_add(o, "codes", json_object_new_boolean(v->scale != NULL));
    return o;
}

static void print_json(const per_tensor *t, common_value *const *sorted)
{
    json_object *j = json_object_new_object(), *rows = json_object_new_array();
    tool_reported();
    json_object_object_add(j, "schema", json_object_new_string("ort-run/1"));
    json_object_object_add(j, "model", json_object_new_string(t->a.path));
    json_object_object_add(j, "compared_with", json_object_new_string(t->b.path));
    json_object_object_add(j, "runs", json_object_new_int64((int64_t)t->runs));
    json_object_object_add(j, "values", rows);
    for (size_t i = 0; i < t->count; i++)
        json_object_array_add(rows, value_json(sorted[i]));
    printf("%s\n",
           json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                 JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(j);
}

static int report(per_tensor *t)
{
    size_t compared = 0;
    common_value **sorted = tool_alloc((t->count + 1) * sizeof *sorted);
    for (size_t i = 0; i < t->count; i++) {
        sorted[i] = &t->values[i];
        compared += why_not(sorted[i]) == NULL;
    }
    qsort(sorted, t->count, sizeof *sorted, worst_first);
    if (t->options->settings.json)
        print_json(t, sorted);
    else if (!t->options->settings.quiet)
        print_table(t, sorted, stdout);
    free(sorted);
    return compared > 0 ? 0
                        : tool_error(ORT_ERROR_GATE, "%s: no value of %s has its like there: "
                                     "nothing was compared", t->b.path, t->a.path);
}

static void close_party(party *p)
{
    ort_session_free(p->session);
    ort_model_free(p->model);
    json_object_put(p->nodes);
    string_list_release(&p->names);
    free(p->in);
    free(p->out);
}

int compare_per_tensor(const run_options *o, const ort_run_options *how, const string_list *files)
{
    per_tensor t = {.options = o, .how = how};
    string_list data = {files->items + 1, files->count - 1, 0};
    t.a.path = files->items[0];
    t.b.path = o->compare;
    int status = settings_new_env(&o->settings, &t.env);
    if (status == 0)
        status = open_all(&t);
    if (status == 0)
        status = run_all(&t, &data);
    if (status == 0)
        status = report(&t);
    close_party(&t.a);
    close_party(&t.b);
    for (size_t i = 0; i < t.count; i++) {
        free(t.values[i].name);
        free(t.values[i].other);
        ort_value_free(t.values[i].kept);
        ort_value_free(t.values[i].scale);
        ort_value_free(t.values[i].zero);
    }
    free(t.values);
    free(t.by_name);
    free(t.by_other);
    ort_env_free(t.env);
    return status;
}
