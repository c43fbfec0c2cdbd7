/* runs.c - the runs of ort-run: a loop of feed, carry, run, sink over the records of inputs, and
 * timed runs of each.
 */
#include <stdlib.h>
#include <string.h>

#include "common/misfit.h"
#include "common/progress.h"
#include "run.h"

static int64_t warmup_runs(const run_options *o)
{
    return o->warmup != UNSET_WARMUP ? o->warmup : 2;
}

/* Outputs of a recurrence belong to its binding. */
void drop_outputs(runner *r)
{
    for (size_t i = 0; i < r->outputs; i++) {
        if (r->carry.binding == NULL)
            ort_value_free(r->out[i]);
        r->out[i] = NULL;
    }
}

/* Those that somebody reads: a state that grows in place is copied for that. */
static void borrow_outputs(runner *r, bool told)
{
    const run_options *o = &r->options;
    bool all = told && (o->expect.count > 0 || o->hash || o->report != NULL || o->settings.json);
    for (size_t i = 0; r->carry.binding != NULL && i < r->outputs; i++)
        if (all || sink_wants(&r->sink, i) || carry_reads(&r->carry, r->session, i))
            r->out[i] = ort_binding_output(r->carry.binding, i);
}

static int run_failed(const runner *r, ort_error *err)
{
    misfit_explain(r->session, r->in, err);
    return tool_fail_in(r->model_path, err);
}

/* index: of the runs here; number: of those of all parts. */
static int run_once(runner *r, size_t index, size_t number, bool many, bool told)
{
    ort_error err = {0};
    dump d;
    int status = dump_open(&d, &r->options, number, many);
    ort_run_options options = r->how;
    if (d.index != NULL) {
        options.on_value = dump_value;
        options.callback_arg = &d;
    }
    drop_outputs(r);
    if (status == 0) {
        ort_binding *binding = r->carry.binding;
        double begin = tool_now_ms();
        if ((binding != NULL ? ort_binding_run(binding, &options, &err)
                             : ort_session_run(r->session, NULL, r->in,
                                               ort_session_input_count(r->session), NULL, r->out,
                                               ort_session_output_count(r->session), &options,
                                               &err)) !=
            ORT_OK)
            status = run_failed(r, &err);
        else if (index == 0)
            r->timing.first_ms = tool_now_ms() - begin;
    }
    if (status == 0)
        borrow_outputs(r, told);
    int closed = dump_close(&d);
    return status != 0 ? status : closed;
}

static int one_step(runner *r, size_t index, size_t number, bool many, bool told)
{
    int status = carry_before(&r->carry, r->session, r->in);
    if (status == 0)
        status = run_once(r, index, number, many, told);
    if (status == 0)
        status = carry_after(&r->carry, r->session, r->out);
    if (status == 0)
        status = sink_write(&r->sink, r->out);
    return status;
}

/* ---- timed runs */

/* Between two runs, not inside one; the share of --repeat or of --seconds. */
static void show_measured(progress *p, const run_options *o, int64_t done, double start)
{
    double share = o->repeat > 0 ? (double)done / (double)o->repeat : 0;
    if (o->seconds > 0 && (tool_now_ms() - start) / (o->seconds * 1e3) > share)
        share = (tool_now_ms() - start) / (o->seconds * 1e3);
    progress_share(p, (uint64_t)done, share);
}

/* One more step of the recurrence, of which the run alone is timed. */
static int measure_step(runner *r, double *ms)
{
    ort_error err = {0};
    int status = carry_before(&r->carry, r->session, r->in);
    double begin = tool_now_ms();
    if (status == 0 && ort_binding_run(r->carry.binding, &r->how, &err) != ORT_OK)
        status = tool_fail_in(r->model_path, &err);
    *ms = tool_now_ms() - begin;
    if (status != 0)
        return status;
    borrow_outputs(r, true);
    return carry_after(&r->carry, r->session, r->out);
}

static int measure_steps(runner *r)
{
    const run_options *o = &r->options;
    double ms = 0, start = 0;
    int status = 0;
    progress p;
    progress_begin(&p, "timed runs", o->settings.no_progress || o->settings.quiet);
    for (int64_t i = -warmup_runs(o); status == 0; i++) {
        if (i == 0)
            start = tool_now_ms();
        status = measure_step(r, &ms);
        if (status == 0 && i >= 0)
            timing_add(&r->timing, ms);
        if ((o->repeat > 0 && i + 1 >= o->repeat) ||
            (i >= 0 && o->seconds > 0 && tool_now_ms() - start >= o->seconds * 1e3))
            break;
        if (i >= 0)
            show_measured(&p, o, i + 1, start);
    }
    progress_end(&p);
    return status;
}

/* Timed runs through a binding: the steady state allocates nothing. */
static int measure(runner *r)
{
    const run_options *o = &r->options;
    ort_binding *binding = NULL;
    ort_error err = {0};
    progress p;
    if (ort_binding_new(r->session, &binding, &err) != ORT_OK)
        return tool_fail(&err);
    progress_begin(&p, "timed runs", o->settings.no_progress || o->settings.quiet);
    for (size_t i = 0; i < r->inputs; i++)
        if (r->in[i] != NULL &&
            ort_binding_set_input(binding, ort_session_input_name(r->session, i), r->in[i], &err) !=
                ORT_OK)
            goto fail;
    for (int64_t i = 0; i < warmup_runs(o); i++)
        if (ort_binding_run(binding, &r->how, &err) != ORT_OK)
            goto fail;
    double start = tool_now_ms();
    for (int64_t i = 0; o->repeat > 0 ? i < o->repeat : true; i++) {
        double begin = tool_now_ms();
        if (ort_binding_run(binding, &r->how, &err) != ORT_OK)
            goto fail;
        double end = tool_now_ms();
        timing_add(&r->timing, end - begin);
        if (o->seconds > 0 && end - start >= o->seconds * 1e3)
            break;
        show_measured(&p, o, i + 1, start);
    }
    progress_end(&p);
    ort_binding_free(binding);
    return 0;
fail:
    progress_end(&p);
    ort_binding_free(binding);
    return run_failed(r, &err);
}

/* ---- records */

static int judge(runner *r, const run_place *at)
{
    bool lines = !r->options.settings.json || r->options.report != NULL;
    return expect_judge(&r->expect, at, r->out, lines ? run_talk(r) : NULL);
}

/* Behind the last run of a record: digests as lines, JSON for the report. */
static int tell(runner *r, const run_place *at)
{
    const run_options *o = &r->options;
    int status = 0;
    if (o->hash && (!o->settings.json || o->report != NULL))
        status = report_hash(&r->sink, at, r->out, run_talk(r));
    if (status == 0 && r->outputs_list != NULL)
        report_outputs(at, r->session, r->out, r->outputs_list);
    return status;
}

/* Runs of all steps over all files; 0 where nobody knows: of a stream. */
static uint64_t expected_runs(const runner *r)
{
    const size_t parts = r->options.parts > 0 ? (size_t)r->options.parts : 1;
    const size_t others = parts - (r->options.parts > 0 ? (size_t)r->options.part : 1);
    const size_t files = (r->feed.files.count + others) / parts;
    uint64_t steps = r->options.steps > 0 ? (uint64_t)r->options.steps : files > 0, total;
    if (r->options.stream || __builtin_mul_overflow(steps, files > 0 ? files : 1, &total))
        return 0;
    return total;
}

static int all_steps(runner *r, run_place *at, bool many, size_t *index, progress *p)
{
    const run_options *o = &r->options;
    int64_t steps = o->steps > 0 ? o->steps : 1;
    bool by_step;
    int status = expect_steps(&r->expect, &by_step);
    for (int64_t s = 1; s <= steps && status == 0; s++) {
        size_t number = (at->record - 1) * (size_t)steps + (size_t)s - 1;
        at->step = by_step ? s : 0;
        status = one_step(r, (*index)++, number, many, by_step || s == steps);
        if (status == 0 && by_step)
            status = judge(r, at);
        progress_step(p, *index, expected_runs(r));
    }
    return status;
}

/* More parts than runs: no failure, the other parts have them all. */
static void note_nothing(const runner *r)
{
    if (!r->options.settings.quiet)
        fprintf(stderr, "%s: --shard %s: none of the %lld runs is in this part: nothing is "
                "written\n", tool_name(), r->options.shard, (long long)r->feed.number);
}

int run_records(runner *r)
{
    const run_options *o = &r->options;
    bool batch = o->stream || r->feed.files.count > 1, end = false;
    size_t index = 0;
    progress p;
    int status = 0;
    if (r->carry.binding != NULL && batch && measures(o))
        return tool_usage("--repeat and --seconds time one set of inputs where --carry is given");
    progress_begin(&p, "runs", o->settings.no_progress || o->settings.quiet);
    while (status == 0) {
        status = feed_next(&r->feed, r->in, &end);
        if (status != 0 || end)
            break;
        r->records++;
        run_place at = {.record = (size_t)r->feed.number, .many = batch};
        if (r->feed.files.count > 0)
            at.path = r->feed.files.items[r->feed.next_file - 1];
        r->sink.from = feed_record(&r->feed);
        r->sink.path = at.path;
        status = all_steps(r, &at, batch || o->steps > 1, &index, &p);
        if (status == 0 && at.step == 0) /* before timed runs, which take a recurrence further */
            status = judge(r, &at);
        if (status == 0 && measures(o))
            status = r->carry.binding != NULL ? measure_steps(r) : measure(r);
        if (status == 0)
            status = tell(r, &at);
    }
    progress_end(&p);
    if (status == 0 && r->records == 0 && r->feed.number > 0)
        note_nothing(r);
    else if (status == 0 && r->records == 0 && reports(o))
        status = tool_error(ORT_ERROR_DATA, "%s: is empty: nothing was run",
                            r->feed.label != NULL ? r->feed.label : "the inputs");
    return status;
}
