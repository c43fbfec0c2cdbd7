/* reference.c - questions of one byte and their answers (reference.h): 'n' for the next sample, 't'
 * for another run of the present one. Answers begin with 'y', or with 'e' and an error.
 */
#include "reference.h"

#include <stdlib.h>
#include <string.h>

#include "common/value_stream.h"

/* ---- in the process */

typedef struct running {
    quantizing *q;
    ort_session *session;
    size_t outputs;
    ort_value **out;
    FILE *answers;
} running;

static void say_error(FILE *answers, const ort_error *err)
{
    fputc('e', answers);
    fwrite(err, sizeof *err, 1, answers);
}

static void say_name(FILE *answers, const char *name)
{
    const size_t length = strlen(name);
    fwrite(&length, sizeof length, 1, answers);
    fwrite(name, 1, length, answers);
}

static void say_names(const running *r)
{
    const size_t inputs = ort_session_input_count(r->session);
    fputc('y', r->answers);
    fwrite(&inputs, sizeof inputs, 1, r->answers);
    for (size_t i = 0; i < inputs; i++)
        say_name(r->answers, ort_session_input_name(r->session, i));
    fwrite(&r->outputs, sizeof r->outputs, 1, r->answers);
    for (size_t i = 0; i < r->outputs; i++)
        say_name(r->answers, ort_session_output_name(r->session, i));
}

static void drop(running *r)
{
    for (size_t i = 0; i < r->outputs; i++) {
        ort_value_free(r->out[i]);
        r->out[i] = NULL;
    }
}

static ort_status run(running *r, double *ms, ort_error *err)
{
    const samples *s = &r->q->samples;
    drop(r);
    double begin = tool_now_ms();
    ort_status status = ort_session_run(r->session, NULL, s->given, s->given_count, NULL, r->out,
                                        r->outputs, NULL, err);
    *ms = tool_now_ms() - begin;
    return status;
}

/* The caller has read the same sample: it has said what is wrong with it. */
static ort_status take_next(running *r, ort_error *err)
{
    bool end = false;
    double ms;
    if (next_sample(r->q, &end) == 0 && !end)
        return run(r, &ms, err);
    err->status = ORT_ERROR_DATA;
    err->count = 1;
    snprintf(err->message, sizeof err->message, "the samples can't be read a second time");
    return err->status;
}

static void answer(running *r, int question)
{
    ort_error err = {0};
    double ms = 0;
    ort_status status = question == 'n' ? take_next(r, &err) : run(r, &ms, &err);
    if (status != ORT_OK) {
        say_error(r->answers, &err);
        return;
    }
    fputc('y', r->answers);
    if (question == 't')
        fwrite(&ms, sizeof ms, 1, r->answers);
    for (size_t i = 0; i < r->outputs && question == 'n'; i++)
        (void)value_write(r->answers, r->out[i]); /* what isn't there, the reader misses */
}

static ort_status open_session(running *r, ort_error *err)
{
    ort_session_options options;
    quantizing *q = r->q;
    settings_session_options(&q->options.settings, &options);
    ort_status status = ort_session_new(q->env, q->original, &options, &r->session, err);
    r->outputs = status == ORT_OK ? ort_session_output_count(r->session) : 0;
    r->out = tool_alloc((r->outputs + 1) * sizeof *r->out);
    memset(r->out, 0, (r->outputs + 1) * sizeof *r->out);
    return status;
}

static void serve(void *arg, FILE *questions, FILE *answers)
{
    running r = {.q = arg, .answers = answers};
    ort_error err = {0};
    settings *own = &r.q->options.settings;
    own->quiet = own->no_progress = true;
    own->verbose = 0;
    samples_close(&r.q->samples);
    samples_mute();
    if (settings_new_env(own, &r.q->env) != 0)
        return;
    if (open_session(&r, &err) != ORT_OK) {
        say_error(answers, &err);
        return;
    }
    say_names(&r);
    fflush(answers);
    for (int question; (question = fgetc(questions)) != EOF;) {
        answer(&r, question);
        fflush(answers);
    }
}

/* ---- for the caller */

/* Is the answer a good one? */
static ort_status hear(reference *r, ort_error *err)
{
    const int begin = fgetc(r->partner.answers);
    if (begin == 'y')
        return ORT_OK;
    if (begin != 'e' || fread(err, sizeof *err, 1, r->partner.answers) != 1)
        return partner_lost(&r->partner, err);
    return err->status;
}

static bool hear_names(FILE *answers, string_list *names)
{
    size_t count = 0, length = 0;
    bool ok = fread(&count, sizeof count, 1, answers) == 1;
    for (size_t i = 0; i < count && ok; i++) {
        ok = fread(&length, sizeof length, 1, answers) == 1;
        char *name = tool_alloc(length + 1);
        ok = ok && fread(name, 1, length, answers) == length;
        name[ok ? length : 0] = '\0';
        string_list_add(names, name);
        free(name);
    }
    return ok;
}

int reference_open(reference *r, quantizing *q)
{
    ort_error err = {0};
    *r = (reference){.partner = {.line = -1}};
    int status = partner_start(&r->partner, "the run of the float model", serve, q);
    if (status != 0)
        return status;
    ort_status heard = hear(r, &err);
    if (heard == ORT_OK && (!hear_names(r->partner.answers, &r->inputs) ||
                            !hear_names(r->partner.answers, &r->outputs)))
        heard = partner_lost(&r->partner, &err);
    return heard == ORT_OK ? 0 : tool_fail_in(q->path, &err);
}

ort_status reference_next(reference *r, ort_value **out, ort_error *err)
{
    partner_ask(&r->partner, 'n');
    ort_status status = hear(r, err);
    for (size_t i = 0; i < r->outputs.count && status == ORT_OK; i++)
        if (value_read(r->partner.answers, &out[i], err) != ORT_OK)
            status = feof(r->partner.answers) ? partner_lost(&r->partner, err) : err->status;
    return status;
}

ort_status reference_time(reference *r, double *ms, ort_error *err)
{
    partner_ask(&r->partner, 't');
    ort_status status = hear(r, err);
    if (status == ORT_OK && fread(ms, sizeof *ms, 1, r->partner.answers) != 1)
        status = partner_lost(&r->partner, err);
    return status;
}

void reference_close(reference *r)
{
    partner_end(&r->partner);
    string_list_release(&r->inputs);
    string_list_release(&r->outputs);
}
