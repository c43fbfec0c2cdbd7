/* unroll.c - a recurrence becomes samples that know nothing of it: the float model runs step by
 * step, and what each step read, its caches too, is a sample of its own for whoever calibrates or
 * judges.
 *
 * So all that looks at samples looks at caches as they are when they have grown, and each step of
 * the quantized model is judged on what float handed on, not on what its own errors made of it. The
 * runs are those of the calibration tier, since they decide what is seen.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/apart.h"
#include "common/carry.h"
#include "quantize.h"

typedef struct unrolling {
    quantizing *q;
    ort_session *session;
    ort_types *inputs, *outputs; /* of the model, with the names of its dimensions */
    carry carry;
    size_t count, output_count;
    int *source;        /* [count] the output that a state's next value is; -1: it is no state */
    ort_value **in;     /* [count] of the present step; borrowed */
    ort_value **out;    /* [output_count] of the last one; borrowed from the binding */
    ort_value **state;  /* [count] states as the present step reads them; owned */
    size_t steps;       /* all that were kept */
    FILE *file;
} unrolling;

/* ---- what a first step starts with */

/* Zeros, shaped as what the step gave, without rows along an axis whose size has another name in
 * the output: ort_binding_set_state. */
static int zero_state(unrolling *u, size_t input, ort_value **zero)
{
    ort_error err = {0};
    const ort_value *next = u->out[u->source[input]];
    const ort_type_info *before = ort_types_info(u->inputs, input);
    const ort_type_info *after = ort_types_info(u->outputs, (size_t)u->source[input]);
    const int rank = ort_value_rank(next);
    int64_t dims[16];
    for (int i = 0; i < rank && i < 16; i++) {
        const bool known = before->rank == rank && after->rank == rank;
        const char *was = known ? before->symbols[i] : NULL;
        const char *is = known ? after->symbols[i] : NULL;
        dims[i] = known && before->dims[i] >= 0 ? before->dims[i] : ort_value_dims(next)[i];
        if (was != NULL && is != NULL && strcmp(was, is))
            dims[i] = 0;
    }
    return ort_value_new_tensor(ort_value_dtype(next), rank, dims, zero, &err) == ORT_OK
               ? 0
               : tool_fail(&err);
}

/* What this step read of states: given by the sample, or from the step before, or nothing yet. */
static int fill_states(unrolling *u, bool first)
{
    int status = 0;
    for (size_t i = 0; i < u->count && status == 0; i++) {
        if (u->source[i] < 0)
            continue;
        if (u->state[i] == NULL && !(first && u->in[i] != NULL))
            status = zero_state(u, i, &u->state[i]);
        if (u->state[i] != NULL)
            u->in[i] = u->state[i];
    }
    return status;
}

/* ---- steps */

static int copy_of(const ort_value *value, ort_value **copy)
{
    ort_error err = {0};
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR)
        return tool_error(ORT_ERROR_DATA, "--carry: a state is no tensor");
    return ort_value_new_tensor(ort_value_dtype(value), ort_value_rank(value),
                                ort_value_dims(value), copy, &err) == ORT_OK &&
                   ort_value_copy(*copy, value, &err) == ORT_OK
               ? 0
               : tool_fail(&err);
}

/* States of the next step, which the binding's own memory won't hold for long. */
static int keep_states(unrolling *u)
{
    int status = 0;
    for (size_t i = 0; i < u->count && status == 0; i++) {
        if (u->source[i] < 0)
            continue;
        ort_value_free(u->state[i]);
        u->state[i] = NULL;
        status = copy_of(u->out[u->source[i]], &u->state[i]);
    }
    return status;
}

static int write_step(unrolling *u, int64_t step, bool numbered)
{
    const samples *s = &u->q->samples;
    char *place = numbered ? tool_printf("%s, step %lld", s->place, (long long)step + 1)
                           : tool_strdup(s->place);
    int status = samples_keep(u->file, place, u->in, u->count)
                     ? 0
                     : tool_error(ORT_ERROR_IO, "steps can't be kept: %s", strerror(errno));
    free(place);
    u->steps += status == 0;
    return status;
}

static int one_step(unrolling *u, int64_t step, bool first, bool numbered)
{
    ort_error err = {0};
    const samples *s = &u->q->samples;
    int status = carry_before(&u->carry, u->session, u->in);
    if (status == 0 && ort_binding_run(u->carry.binding, NULL, &err) != ORT_OK)
        return samples_fail(s, u->q->path, &err);
    for (size_t i = 0; i < u->output_count; i++)
        u->out[i] = ort_binding_output(u->carry.binding, i);
    if (status == 0)
        status = fill_states(u, first);
    if (status == 0)
        status = write_step(u, step, numbered);
    if (status == 0)
        status = keep_states(u);
    return status == 0 ? carry_after(&u->carry, u->session, u->out) : status;
}

/* Inputs of the sample, but those that are carried and were made up with the others. */
static void take_inputs(unrolling *u, bool first)
{
    const samples *s = &u->q->samples;
    for (size_t i = 0; i < u->count; i++) {
        const char *name = ort_session_input_name(u->session, i);
        const bool grows = strstr(name, "attention_mask") != NULL;
        bool counted = false;
        for (size_t k = 0; k < u->carry.counted_count; k++)
            counted = counted || u->carry.counted[k] == (int)i;
        const bool made = s->random && (u->source[i] >= 0 || grows || counted);
        u->in[i] = made || (!first && u->source[i] >= 0) ? NULL : s->given[i];
    }
}

static int start_over(unrolling *u)
{
    for (size_t i = 0; i < u->count; i++) {
        ort_value_free(u->state[i]);
        u->state[i] = NULL;
    }
    return carry_restart(&u->carry, u->session);
}

/* A sample is a step of its file's sequence; with --steps the first of so many. */
static int unroll_one(unrolling *u)
{
    const int64_t steps = u->q->options.steps;
    const bool first = u->q->samples.fresh || steps > 0;
    int status = first ? start_over(u) : 0;
    for (int64_t k = 0; k < (steps > 0 ? steps : 1) && status == 0; k++) {
        take_inputs(u, first && k == 0);
        status = one_step(u, k, first && k == 0, steps > 0);
    }
    return status;
}

static int unroll_all(unrolling *u)
{
    quantizing *q = u->q;
    bool end = false;
    int status = next_sample(q, &end);
    progress_begin(&q->progress, "steps", is_quiet(q));
    while (status == 0 && !end) {
        status = unroll_one(u);
        progress_share(&q->progress, u->steps, samples_share(&q->samples));
        if (status == 0)
            status = next_sample(q, &end);
    }
    progress_end(&q->progress);
    return status;
}

/* ---- the process */

static int open_session(unrolling *u)
{
    quantizing *q = u->q;
    const quantize_options *o = &q->options;
    ort_session_options options;
    ort_error err = {0};
    settings_session_options(&o->settings, &options);
    if (ort_model_types(q->original, ORT_TYPES_INPUTS, &u->inputs, &err) != ORT_OK ||
        ort_model_types(q->original, ORT_TYPES_OUTPUTS, &u->outputs, &err) != ORT_OK ||
        ort_session_new(q->env, q->original, &options, &u->session, &err) != ORT_OK)
        return tool_fail_in(q->path, &err);
    int status = carry_open(&u->carry, &o->carries, &o->counts, u->session);
    u->count = ort_session_input_count(u->session);
    u->output_count = ort_session_output_count(u->session);
    const size_t bytes = (u->count + u->output_count + 1) * sizeof *u->in;
    u->in = tool_alloc(bytes);
    u->out = tool_alloc(bytes);
    u->state = tool_alloc(bytes);
    u->source = tool_alloc((u->count + 1) * sizeof *u->source);
    for (size_t i = 0; i < u->count && status == 0; i++)
        u->source[i] = carry_source(&u->carry, i);
    return status;
}

static void close_all(unrolling *u)
{
    for (size_t i = 0; u->state != NULL && i < u->count; i++)
        ort_value_free(u->state[i]);
    carry_close(&u->carry);
    ort_session_free(u->session);
    ort_types_free(u->inputs);
    ort_types_free(u->outputs);
    free(u->in);
    free(u->out);
    free(u->state);
    free(u->source);
}

static int unroll(void *arg, FILE *file)
{
    unrolling u = {.q = arg, .file = file};
    settings *own = &u.q->options.settings;
    u.q->unrolling = true;
    own->isa = ort_quantize_tier();
    int status = settings_new_env(own, &u.q->env);
    if (status == 0)
        status = open_session(&u);
    if (status == 0)
        status = unroll_all(&u);
    close_all(&u);
    if (status == 0) /* behind the last one, for the caller */
        fwrite(&u.steps, sizeof u.steps, 1, file);
    return status;
}

int unroll_samples(quantizing *q)
{
    FILE *steps = NULL;
    if (q->options.carries.count == 0 || q->unrolling || q->unrolled)
        return 0;
    int status = apart("the run of the steps", unroll, q, &steps);
    if (status == 0 && (fseek(steps, -(long)sizeof q->sample_count, SEEK_END) != 0 ||
                        fread(&q->sample_count, sizeof q->sample_count, 1, steps) != 1))
        status = tool_error(ORT_ERROR_IO, "steps that were kept can't be read: %s",
                            strerror(errno));
    if (q->sample_file != NULL)
        fclose(q->sample_file); /* first steps alone */
    q->sample_file = steps;
    q->unrolled = true;
    samples_close(&q->samples);
    return status;
}
