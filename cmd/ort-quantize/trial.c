/* trial.c - the float model's answers to a few samples, and how near others come. */
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "squashed.h"

enum { LEAST_CLEAR = 50 }; /* answers that tell a share */

static int open_env(trial *t)
{
    ort_env_options options = ORT_ENV_OPTIONS_INIT;
    ort_error err = {0};
    options.isa = ort_quantize_tier();
    options.threads = t->q->options.settings.thread_count;
    return ort_env_new(&options, &t->env, &err) == ORT_OK ? 0 : tool_fail(&err);
}

static size_t rows_of(const ort_value *v)
{
    const bool has = v != NULL && ort_value_get_kind(v) == ORT_VALUE_TENSOR &&
                     ort_value_rank(v) > 0 && ort_value_dims(v)[0] > 0;
    return has ? (size_t)ort_value_dims(v)[0] : 1;
}

/* Of samples like the first. */
static size_t most_samples(const trial *t, ort_value *const *inputs, size_t count)
{
    size_t bytes = 1, least = TRIAL_ROWS / t->rows;
    for (size_t i = 0; i < count; i++)
        bytes += inputs[i] ? ort_value_bytes(inputs[i]) : 0;
    size_t most = TRIAL_BYTES / bytes;
    least = least < 4 ? 4 : least > TRIAL_LEAST ? TRIAL_LEAST : least;
    most = most < least ? least : most > TRIAL_SAMPLES ? TRIAL_SAMPLES : most;
    return t->total < most ? t->total : most;
}

/* Evenly among all, and as many of each part that q->fold may hold out. */
static ort_status keep_sample(void *arg, ort_value *const *inputs, size_t count, ort_error *err)
{
    trial *t = arg;
    size_t at = t->q->samples.at - 1, kept = t->samples;
    (void)err;
    if (t->most == 0) {
        t->rows = count > 0 ? rows_of(inputs[0]) : 1;
        t->most = most_samples(t, inputs, count);
    }
    if (kept >= t->most || at < kept * t->total / t->most ||
        at % TRIAL_PARTS != kept % TRIAL_PARTS)
        return ORT_OK;
    t->inputs = count;
    t->at[kept] = at;
    t->in[kept] = tool_alloc((count + 1) * sizeof *t->in[kept]);
    for (size_t i = 0; i < count; i++)
        t->in[kept][i] = inputs[i] ? ort_value_retain(inputs[i]) : NULL;
    t->samples++;
    return ORT_OK;
}

/* NULL where the model had no such input, or nobody gave it. */
static ort_value *input_named(const trial *t, ort_value *const *inputs, const char *name)
{
    for (size_t i = 0; i < t->names.count && i < t->inputs; i++)
        if (!strcmp(t->names.items[i], name))
            return inputs[i];
    return NULL;
}

ort_status trial_session_run(const trial *t, const ort_session *session, ort_value *const *inputs,
                             ort_value **out, ort_error *err)
{
    const size_t count = ort_session_input_count(session);
    ort_value **own = tool_alloc((count + 1) * sizeof *own);
    for (size_t i = 0; i < count; i++)
        own[i] = input_named(t, inputs, ort_session_input_name(session, i));
    ort_status status = ort_session_run(session, NULL, own, count, NULL, out, t->outputs, NULL,
                                        err);
    free(own);
    return status;
}

static int run_sample(const trial *t, const ort_session *session, size_t sample, ort_value **out)
{
    ort_error err = {0};
    return trial_session_run(t, session, t->in[sample], out, &err) == ORT_OK
               ? 0
               : tool_fail_in(t->q->path, &err);
}

int trial_session(const trial *t, ort_model *model, ort_session **session)
{
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    ort_error err = {0};
    options.no_pack = true;
    options.extra_outputs = t->inner.count > 0 ? t->inner.items : NULL;
    return ort_session_new(t->env, model, &options, session, &err) == ORT_OK
               ? 0
               : tool_fail_in(t->q->path, &err);
}

static bool is_among(const string_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->items[i], name))
            return true;
    return false;
}

static void note_outputs(trial *t, const ort_session *session)
{
    t->left_out = tool_alloc((t->outputs + 1) * sizeof *t->left_out);
    t->centered = tool_alloc((t->outputs + 1) * sizeof *t->centered);
    t->feature = tool_alloc((t->outputs + 1) * sizeof *t->feature);
    t->answer = tool_alloc((t->outputs + 1) * sizeof *t->answer);
    for (size_t k = 0; k < t->outputs; k++) {
        const char *name = ort_session_output_name(session, k);
        t->left_out[k] = is_among(&t->inside.replaced, name);
        t->answer[k] = is_among(&t->inside.answers, name);
        t->centered[k] = is_among(&t->inside.rows, name);
        t->feature[k] = is_among(&t->inside.features, name) && !t->centered[k];
    }
}

/* An image without a batch, or a sequence before its batch, has rows of another kind. */
static void check_rows(trial *t)
{
    bool found = false;
    for (size_t k = 0; t->samples > 0 && k < t->outputs; k++)
        found = found || rows_of(t->out[0][k]) == t->rows;
    t->rows = found ? t->rows : 1;
}

/* Answers of the float model. */
static int run_float(trial *t)
{
    ort_session *session = NULL;
    int status = trial_session(t, t->q->original, &session);
    if (status == 0)
        t->outputs = ort_session_output_count(session);
    if (status == 0)
        note_outputs(t, session);
    for (size_t i = 0; status == 0 && i < ort_session_input_count(session); i++)
        string_list_add(&t->names, ort_session_input_name(session, i));
    for (size_t i = 0; i < t->samples && status == 0; i++) {
        t->out[i] = calloc(t->outputs + 1, sizeof *t->out[i]);
        status = t->out[i] ? run_sample(t, session, i, t->out[i])
                           : tool_error(ORT_ERROR_MEMORY, "no memory for %zu outputs", t->outputs);
    }
    if (status == 0)
        check_rows(t);
    ort_session_free(session);
    return status;
}

static int keep_samples(trial *t)
{
    int status = each_sample(t->q, "reading samples", keep_sample, t);
    return status == 0 ? run_float(t) : status;
}

int trial_open(trial *t, quantizing *q, size_t total)
{
    *t = (trial){.q = q, .total = total};
    int status = open_env(t);
    return status == 0 ? keep_samples(t) : status;
}

/* One value may stand for several outputs. */
static void add_inner(trial *t, const string_list *names, const string_list *outputs)
{
    for (size_t i = 0; i < names->count; i++)
        if (!is_among(&t->inner, names->items[i]) && !is_among(outputs, names->items[i]))
            string_list_add(&t->inner, names->items[i]);
}

static int look_inside(trial *t, ort_model *other)
{
    string_list outputs = {0};
    ort_session *session = NULL;
    int status = trial_session(t, t->q->original, &session);
    for (size_t i = 0; status == 0 && i < ort_session_output_count(session); i++)
        string_list_add(&outputs, ort_session_output_name(session, i));
    if (status == 0)
        status = squashed_find(t->q->original, other, &outputs, &t->inside);
    add_inner(t, &t->inside.names, &outputs);
    add_inner(t, &t->inside.features, &outputs);
    string_list_release(&outputs);
    ort_session_free(session);
    return status;
}

int trial_open_inside(trial *t, quantizing *q, size_t total, ort_model *other)
{
    *t = (trial){.q = q, .total = total};
    int status = open_env(t);
    if (status == 0)
        status = look_inside(t, other);
    return status == 0 ? keep_samples(t) : status;
}

trial_tally *trial_tallies(const trial *t)
{
    trial_tally *tallies = tool_alloc((t->outputs + 1) * sizeof *tallies);
    for (size_t k = 0; k < t->outputs; k++) {
        tallies[k] = (trial_tally){.distance = ORT_DISTANCE_INIT};
        if (t->q->options.margin >= 0)
            tallies[k].distance.margin = t->q->options.margin;
    }
    return tallies;
}

static bool is_class(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT64 || dtype == ORT_DTYPE_INT32;
}

static ort_status add_distance(bool centered, ort_distance *d, const ort_value *a,
                               const ort_value *b, ort_error *err)
{
    ort_value *x = centered ? squashed_centered(a) : NULL;
    ort_value *y = x != NULL ? squashed_centered(b) : NULL;
    ort_status status = ort_distance_add(d, y != NULL ? x : a, y != NULL ? y : b, err);
    ort_value_free(x);
    ort_value_free(y);
    return status;
}

/* Text, and what is no tensor, says nothing. */
int trial_add(const trial *t, trial_tally *tallies, ort_value *const *floats,
              ort_value *const *others)
{
    ort_error err = {0};
    for (size_t k = 0; k < t->outputs; k++) {
        const ort_value *a = floats[k], *b = others[k];
        if ((t->left_out[k] && !t->answer[k]) || a == NULL || b == NULL ||
            ort_value_get_kind(b) != ORT_VALUE_TENSOR ||
            ort_value_dtype(b) == ORT_DTYPE_STRING)
            continue;
        if (is_class(ort_value_dtype(b)) && ort_value_count(a) == ort_value_count(b)) {
            tallies[k].classes += ort_value_count(a);
            for (int64_t i = 0; i < ort_value_count(a); i++)
                tallies[k].alike += ort_value_get_double(a, i) == ort_value_get_double(b, i);
        } else if (add_distance(t->centered[k], &tallies[k].distance, a, b, &err) != ORT_OK) {
            return tool_fail_in(t->q->path, &err);
        }
    }
    return 0;
}

/* Features that lie much further off than the logits made of them have other numbers: channels that
 * were made even. */
static void worst_feature(const trial *t, const trial_tally *tallies, nearness_to_float *near)
{
    const double much_db = 10;
    near->outer_db = near->sqnr_db;
    for (size_t k = 0; k < t->outputs; k++) {
        const double db = ort_distance_sqnr_db(&tallies[k].distance);
        if (!t->feature[k] || t->left_out[k])
            continue;
        near->scaled = near->scaled || db < near->outer_db - much_db;
        near->sqnr_db = db < near->sqnr_db ? db : near->sqnr_db;
    }
    if (near->scaled)
        near->sqnr_db = near->outer_db;
}

/* Outputs of one number a sample say as much as others; what has no SQNR says nothing. */
void trial_worst(const trial *t, const trial_tally *tallies, nearness_to_float *near)
{
    *near = (nearness_to_float){INFINITY, 1, 1, NAN, INFINITY, 1, false};
    for (size_t k = 0; k < t->outputs; k++) {
        const ort_distance *d = &tallies[k].distance;
        if (t->answer[k] && d->clear_rows >= LEAST_CLEAR)
            near->clear = fmin(near->clear, ort_distance_clear_top1(d));
        if (t->left_out[k] || t->feature[k])
            continue;
        double top1 = t->q->options.margin >= 0 ? ort_distance_clear_top1(d)
                                                : ort_distance_top1(d);
        if (tallies[k].classes > 0)
            top1 = (double)tallies[k].alike / (double)tallies[k].classes;
        if (top1 < near->top1)
            near->top1 = top1;
        if (ort_distance_sqnr_db(d) < near->sqnr_db)
            near->sqnr_db = ort_distance_sqnr_db(d);
        if (d->odd_unlike > 0)
            near->cosine = -1;
        else if (ort_distance_cosine(d) < near->cosine)
            near->cosine = ort_distance_cosine(d);
    }
    worst_feature(t, tallies, near);
}

static int add_run(const trial *t, const ort_session *session, size_t sample,
                   trial_tally *tallies)
{
    ort_value **out = tool_alloc((t->outputs + 1) * sizeof *out);
    memset(out, 0, t->outputs * sizeof *out);
    int status = run_sample(t, session, sample, out);
    if (status == 0)
        status = trial_add(t, tallies, t->out[sample], out);
    for (size_t k = 0; k < t->outputs; k++)
        ort_value_free(out[k]);
    free(out);
    return status;
}

/* Of the first `most` samples those that q->fold holds out, or all. off: others show progress. */
static int run_some(const trial *t, ort_model *model, size_t most, bool held_out, bool off,
                    nearness_to_float *near)
{
    trial_tally *tallies = trial_tallies(t);
    ort_session *session = NULL;
    progress runs;
    most = most < t->samples ? most : t->samples;
    progress_begin(&runs, "running it", off || is_quiet(t->q));
    int status = trial_session(t, model, &session);
    for (size_t i = 0; i < most && status == 0; i++) {
        if (!held_out || is_held_out(t->q, t->at[i]))
            status = add_run(t, session, i, tallies);
        progress_step(&runs, i + 1, most);
    }
    progress_end(&runs);
    trial_worst(t, tallies, near);
    ort_session_free(session);
    free(tallies);
    return status;
}

size_t trial_held_out_numbers(const trial *t)
{
    size_t least = SIZE_MAX;
    for (size_t k = 0; k < t->outputs; k++) {
        size_t count = 0;
        for (size_t i = 0; i < t->samples && !t->left_out[k]; i++)
            if (is_held_out(t->q, t->at[i]) && t->out[i][k] != NULL &&
                ort_value_get_kind(t->out[i][k]) == ORT_VALUE_TENSOR)
                count += (size_t)ort_value_count(t->out[i][k]);
        least = !t->left_out[k] && count < least ? count : least;
    }
    return least;
}

int trial_held_out(const trial *t, ort_model *model, nearness_to_float *near)
{
    return run_some(t, model, t->samples, true, !t->q->whole.heads, near);
}

int trial_run(const trial *t, ort_model *model, nearness_to_float *near)
{
    return run_some(t, model, t->samples, false, !t->q->whole.heads, near);
}

int trial_glance(const trial *t, ort_model *model, size_t rows, nearness_to_float *near)
{
    const size_t most = t->samples > 0 ? rows / t->rows : 0;
    return run_some(t, model, most > 1 ? most : 1, false, true, near);
}

static void drop_values(ort_value **values, size_t count)
{
    for (size_t i = 0; values && i < count; i++)
        ort_value_free(values[i]);
    free(values);
}

void trial_close(trial *t)
{
    for (size_t i = 0; i < t->samples; i++) {
        drop_values(t->in[i], t->inputs);
        drop_values(t->out[i], t->outputs);
    }
    string_list_release(&t->names);
    string_list_release(&t->inner);
    squashed_release(&t->inside);
    free(t->left_out);
    free(t->centered);
    free(t->feature);
    free(t->answer);
    ort_env_free(t->env);
}
