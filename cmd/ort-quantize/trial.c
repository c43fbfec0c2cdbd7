/* trial.c - the float model's answers to a few samples, and how near others come. */
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char trial_tier[] = "avx2"; /* that of calibration, ort_quantizer_calibrate */

static int open_env(trial *t)
{
    ort_env_options options = ORT_ENV_OPTIONS_INIT;
    ort_error err = {0};
    const char *tiers[8];
    int count = ort_isa_list(tiers, 8);
    for (int i = 0; i < count; i++)
        if (!strcmp(tiers[i], trial_tier))
            options.isa = trial_tier;
    options.threads = t->q->options.settings.thread_count;
    return ort_env_new(&options, &t->env, &err) == ORT_OK ? 0 : tool_fail(&err);
}

/* Evenly among all. */
static ort_status keep_sample(void *arg, ort_value *const *inputs, size_t count, ort_error *err)
{
    trial *t = arg;
    size_t at = t->q->samples.at - 1, kept = t->samples;
    size_t wanted = t->total < TRIAL_SAMPLES ? t->total : TRIAL_SAMPLES;
    (void)err;
    if (kept >= wanted || at < kept * t->total / wanted)
        return ORT_OK;
    t->inputs = count;
    t->in[kept] = tool_alloc((count + 1) * sizeof *t->in[kept]);
    for (size_t i = 0; i < count; i++)
        t->in[kept][i] = inputs[i] ? ort_value_retain(inputs[i]) : NULL;
    t->samples++;
    return ORT_OK;
}

static int run_sample(const trial *t, const ort_session *session, size_t sample, ort_value **out)
{
    ort_error err = {0};
    return ort_session_run(session, NULL, t->in[sample], t->inputs, NULL, out, t->outputs, NULL,
                           &err) == ORT_OK
               ? 0
               : tool_fail_in(t->q->path, &err);
}

static int open_session(const trial *t, ort_model *model, ort_session **session)
{
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    ort_error err = {0};
    options.no_pack = true;
    return ort_session_new(t->env, model, &options, session, &err) == ORT_OK
               ? 0
               : tool_fail_in(t->q->path, &err);
}

static int run_float(trial *t)
{
    ort_session *session = NULL;
    int status = open_session(t, t->q->original, &session);
    if (status == 0)
        t->outputs = ort_session_output_count(session);
    for (size_t i = 0; i < t->samples && status == 0; i++) {
        t->out[i] = calloc(t->outputs + 1, sizeof *t->out[i]);
        status = t->out[i] ? run_sample(t, session, i, t->out[i])
                           : tool_error(ORT_ERROR_MEMORY, "no memory for %zu outputs", t->outputs);
    }
    ort_session_free(session);
    return status;
}

int trial_open(trial *t, quantizing *q, size_t total)
{
    *t = (trial){.q = q, .total = total};
    int status = open_env(t);
    if (status == 0)
        status = each_sample(q, "reading samples", keep_sample, t);
    return status == 0 ? run_float(t) : status;
}

/* Outputs of one number a sample say as much as others; text, and what has no SQNR, nothing. */
static void take_worst(nearness_to_float *near, const ort_distance *d)
{
    double sqnr = ort_distance_sqnr_db(d), cosine = ort_distance_cosine(d);
    double top1 = ort_distance_top1(d);
    if (sqnr < near->sqnr_db)
        near->sqnr_db = sqnr;
    if (cosine < near->cosine)
        near->cosine = cosine;
    if (top1 < near->top1)
        near->top1 = top1;
}

int trial_run(const trial *t, ort_model *model, nearness_to_float *near)
{
    ort_session *session = NULL;
    ort_error err = {0};
    ort_distance *distances = tool_alloc((t->outputs + 1) * sizeof *distances);
    ort_value **out = tool_alloc((t->outputs + 1) * sizeof *out);
    int status = open_session(t, model, &session);
    for (size_t k = 0; k < t->outputs; k++)
        distances[k] = (ort_distance)ORT_DISTANCE_INIT;
    for (size_t i = 0; i < t->samples && status == 0; i++) {
        memset(out, 0, t->outputs * sizeof *out);
        status = run_sample(t, session, i, out);
        for (size_t k = 0; k < t->outputs; k++) {
            if (status == 0 && out[k] && ort_value_get_kind(out[k]) == ORT_VALUE_TENSOR &&
                ort_value_dtype(out[k]) != ORT_DTYPE_STRING &&
                ort_distance_add(&distances[k], t->out[i][k], out[k], &err) != ORT_OK)
                status = tool_fail_in(t->q->path, &err);
            ort_value_free(out[k]);
        }
    }
    *near = (nearness_to_float){INFINITY, 1, 1};
    for (size_t k = 0; k < t->outputs; k++)
        take_worst(near, &distances[k]);
    ort_session_free(session);
    free(distances);
    free(out);
    return status;
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
    ort_env_free(t->env);
}
