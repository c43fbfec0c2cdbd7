/* main.c - ort-run: runs a model on tensors; times it, checks it, streams it, carries state.
 *
 * The walk: options, environment, model, session; then a loop of feed, carry, run, sink; then the
 * reports. Every step returns an exit status and has already said why when it is not 0.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/progress.h"
#include "run.h"

#define O(member) offsetof(run_options, member)
#define UNSET (-1.0) /* a tolerance that nobody gave */
#define UNSET_WARMUP INT64_MIN

/* A comparison of models takes inputs, tolerances and --json, and no other output or check. */
#define ALONE                                                                                      \
    "repeat|seconds|hash|expect|carry|output|count|dump|outputs|format|save-optimized|report|time"
#define JUDGED "expect|compare|compare-levels"

static const option_row run_rows[] = {
    {0, "", NULL, OPTION_GROUP, 0, .doc = "Inputs and outputs"},
    {'i', "input", "[NAME=]FILE", OPTION_LIST, O(inputs),
     .doc = "an input (npy, npz, pb, safetensors, json, ...), or a folder test_data_set_N",
     .key = '='},
    {'o', "output", "[NAME=]FILE", OPTION_LIST, O(saves), .doc = "where outputs go; '-' is stdout"},
    {0, "outputs", "NAMES", OPTION_SPLIT, O(outputs),
     .doc = "values to give out: any name in the graph, or argmax(NAME)"},
    {0, "format", "NAME", OPTION_STRING, O(format), .doc = "format of what -o - and streams write",
     .choices = "npy|npz|pb|safetensors|json|csv|raw"},
    {0, "random", "SEED", OPTION_STRING, O(random), .doc = "made-up values for inputs without one"},
    {0, "seed", "SEED[:SKIP]", OPTION_STRING, O(seed),
     .doc = "random operators draw from numpy's RandomState(SEED), SKIP numbers on"},
    {0, "stream", NULL, OPTION_FLAG, O(stream),
     .doc = "read records from stdin (or FILE) to the end, one run each", .excludes = "stack"},
    {0, "stack", NULL, OPTION_FLAG, O(stack), .doc = "several files are one batch"},
    {0, "dump", "GLOB", OPTION_LIST, O(dumps), .doc = "write intermediate values by name"},
    {0, "dump-dir", "DIR", OPTION_STRING, O(dump_dir),
     .doc = "where --dump writes (default: dump)",
     .needs = "dump"},
    {0, "", NULL, OPTION_GROUP, 0, .doc = "Recurrence"},
    {0, "carry", "OUT=IN", OPTION_LIST, O(carries),
     .doc = "feed an output back: 'present_*=past_*', 'argmax(logits)=input_ids'"},
    {0, "count", "NAME", OPTION_SPLIT, O(counts), .doc = "an input that counts positions up",
     .needs = "carry"},
    {0, "steps", "N", OPTION_INT, O(steps), .doc = "steps of the recurrence",
     .needs = "carry", .positive = true},
    {0, "", NULL, OPTION_GROUP, 0, .doc = "Checks and measurements"},
    {0, "expect", "FILE", OPTION_STRING, O(expect),
     .doc = "compare with expected outputs (file or folder); exit 1 when they differ",
     .gate = true},
    {0, "compare", "MODEL", OPTION_STRING, O(compare),
     .doc = "run that model on the same inputs; name the first value that differs (exit 1)",
     .excludes = "compare-levels|" ALONE, .gate = true},
    {0, "compare-levels", NULL, OPTION_FLAG, O(compare_levels),
     .doc = "the same between level 0 and each optimization level",
     .excludes = ALONE, .gate = true},
    {0, "rtol", "X", OPTION_DOUBLE, O(rtol),
     .doc = "relative tolerance (default 1e-3, comparing models 1e-4)", .needs = JUDGED},
    {0, "atol", "X", OPTION_DOUBLE, O(atol),
     .doc = "absolute tolerance (default 1e-5, comparing models 0)", .needs = JUDGED},
    {0, "hash", NULL, OPTION_FLAG, O(hash), .doc = "print a digest per output"},
    {0, "repeat", "N", OPTION_INT, O(repeat), .doc = "time N runs", .positive = true},
    {0, "warmup", "N", OPTION_INT, O(warmup), .doc = "untimed runs before (default 2)",
     .needs = "repeat|seconds"},
    {0, "seconds", "S", OPTION_DOUBLE, O(seconds), .doc = "time runs for S seconds",
     .positive = true},
    {0, "report", "FILE", OPTION_STRING, O(report), .doc = "write the JSON report there"},
    {0, "time", NULL, OPTION_FLAG, O(time), .doc = "times of the phases and passes on stderr"},
    {0, "timeout", "S", OPTION_DOUBLE, O(timeout), .doc = "stop a run after S seconds (exit 4)",
     .positive = true},
    {0, "no-pack", NULL, OPTION_FLAG, O(no_pack), .doc = "leave MODEL.pack alone"},
    {0, "save-optimized", "FILE", OPTION_STRING, O(save_optimized),
     .doc = "save the graph after the portable passes"},
    {0},
};

static const option_row shared_rows[] = {
    {0, "", NULL, OPTION_GROUP, 0, .doc = "Everything else"},
    SETTINGS_RUN(run_options, settings),
    SETTINGS_TALK(run_options, settings),
    {0},
};

static const option_row *const groups[] = {run_rows, shared_rows, NULL};
static const option_table table = {
    "MODEL [INPUT...]",
    "Runs an ONNX model on tensors.",
    groups,
    "Examples:\n"
    "  ort-run net.onnx -i x.npy -o y.npy\n"
    "  ort-tensor photo.jpg --resize 256 --crop 224 --mean 0.485,0.456,0.406 \\\n"
    "    --std 0.229,0.224,0.225 | ort-run net.onnx - | ort-tensor --top 5\n"
    "  ort-run net.onnx --random 1 --repeat 100 --json\n"
    "  ort-run net.onnx -i test_data_set_0 --expect test_data_set_0\n",
};

typedef struct runner {
    run_options options;
    ort_run_options how; /* of every run */
    ort_env *env;
    ort_model *model;
    ort_session *session;
    const char *model_path;
    feed feed;
    carry carry;
    sink sink;
    timing timing;
    size_t inputs, outputs;
    ort_value **in, **out;
    bool ran; /* there are outputs to report on */
} runner;

static bool measures(const run_options *o) { return o->repeat > 0 || o->seconds > 0; }
static bool reports(const run_options *o)
{
    return measures(o) || o->hash || o->expect != NULL || o->settings.json;
}

static int check_compare(const run_options *o, const string_list *files)
{
    if (!o->compare && !o->compare_levels)
        return 0;
    if (o->compare && !strcmp(o->compare, "-") && !strcmp(files->items[0], "-"))
        return tool_usage("only one of the models can come from stdin");
    if (o->compare_levels && o->settings.level_number == 0)
        return tool_usage("--compare-levels needs a level above 0");
    return 0;
}

/* Does anything but a model with --save-optimized - go to stdout? */
static bool uses_stdout(const run_options *o)
{
    for (size_t i = 0; i < o->saves.count; i++) {
        const char *item = o->saves.items[i];
        size_t length = strlen(item);
        if (!strcmp(item, "-") || (length > 1 && !strcmp(item + length - 2, "=-")))
            return true;
    }
    return o->saves.count == 0 || reports(o) || o->time;
}

static int check_options(const run_options *o, const string_list *files)
{
    if (files->count == 0)
        return tool_usage("no MODEL given");
    if (strcmp(files->items[0], "-") == 0 &&
        (files->count > 1 && strcmp(files->items[1], "-") == 0))
        return tool_usage("the model and the tensors can't both come from stdin");
    if (strcmp(files->items[0], "-") == 0 && o->stream && files->count == 1)
        return tool_usage("the model and the stream can't both come from stdin");
    if (o->save_optimized && !strcmp(o->save_optimized, "-") && uses_stdout(o))
        return tool_usage("--save-optimized - leaves stdout to the model: name a file for it, or "
                          "-o FILE for the outputs and no report");
    if (o->format != NULL && o->saves.count == 0 && reports(o))
        return tool_usage("--format needs -o: a report goes to stdout, no tensors");
    return check_compare(o, files);
}

static int64_t warmup_runs(const run_options *o)
{
    return o->warmup != UNSET_WARMUP ? o->warmup : 2;
}

/* --seed and --timeout, as the library takes them. */
static int set_how(const run_options *o, ort_run_options *how)
{
    char text[64];
    int64_t seed = 0, skip = 0;
    how->timeout_s = o->timeout;
    if (o->seed == NULL)
        return 0;
    const char *colon = strchr(o->seed, ':');
    snprintf(text, sizeof text, "%.*s", colon ? (int)(colon - o->seed) : 60, o->seed);
    if (option_parse_int("--seed", text, 0, INT64_MAX, &seed) != 0 ||
        (colon && option_parse_int("--seed", colon + 1, 0, UINT32_MAX, &skip) != 0))
        return EXIT_USAGE;
    how->one_stream = true;
    how->seed = (uint64_t)seed;
    how->stream_skip = (uint64_t)skip;
    return 0;
}

/* Values of --outputs that need no expression: the session keeps those that are intermediate. */
static void extra_outputs(const run_options *o, string_list *extra)
{
    for (size_t i = 0; i < o->outputs.count; i++) {
        expression e;
        expression_parse(o->outputs.items[i], &e);
        string_list_add(extra, e.name);
        expression_release(&e);
    }
    for (size_t i = 0; i < o->saves.count; i++) {
        char *name;
        const char *path;
        if (split_assignment(o->saves.items[i], &name, &path)) {
            string_list_add(extra, name);
            free(name);
        }
    }
}

/* What passes make of the model for a file; the session's own graph may hold more. */
static int save_optimized(const runner *r)
{
    const run_options *o = &r->options;
    ort_optimize_options options;
    ort_error err = {0};
    ort_model *copy = NULL;
    ort_optimize_options_init(&options);
    options.level = o->settings.level_number < 2 ? o->settings.level_number : 2;
    options.disable = o->settings.disable.items;
    bool failed = ort_model_copy(r->model, &copy, &err) != ORT_OK ||
                  ort_model_optimize(r->env, copy, &options, &err) != ORT_OK ||
                  ort_model_save(copy, o->save_optimized, NULL, &err) != ORT_OK;
    ort_model_free(copy);
    return failed ? tool_fail(&err) : 0;
}

/* As the library says of other settings, for those who ask. */
static void note_unused_pack(const run_options *o, const char *model_path)
{
    char *pack = tool_printf("%s.pack", model_path);
    if (o->settings.verbose > 0 && !o->settings.quiet && !o->no_pack && access(pack, F_OK) == 0)
        fprintf(stderr, "%s: %s: ignored: it holds the model as it is, without --dim, --shape or "
                "--save-optimized\n", tool_name(), pack);
    free(pack);
}

static int make_session(runner *r)
{
    run_options *o = &r->options;
    ort_session_options options;
    ort_error err = {0};
    string_list extra = {0};
    int status = 0;
    /* From the file, with the pack beside it, unless the model is needed or changed. */
    bool direct = !o->settings.dims.count && !o->settings.shapes.count && !o->save_optimized;
    if (!direct) {
        double begin = tool_now_ms();
        note_unused_pack(o, r->model_path);
        status = settings_load_model(&o->settings, r->env, r->model_path, LOAD_ALL, &r->model);
        r->timing.model_ms = tool_now_ms() - begin;
    }
    if (status != 0)
        return status;
    ort_session_options_init(&options);
    options.level = o->settings.level_number;
    options.disable = o->settings.disable.items;
    options.providers = o->settings.provider;
    options.strict = o->settings.strict;
    options.keep_all = o->dumps.count > 0;
    extra_outputs(o, &extra);
    if (extra.count > 0)
        options.extra_outputs = extra.items;
    options.no_pack = o->no_pack;
    if ((direct ? ort_session_load(r->env, r->model_path, &options, &r->session, &err)
                : ort_session_new(r->env, r->model, &options, &r->session, &err)) != ORT_OK)
        status = tool_fail_in(r->model_path, &err);
    string_list_release(&extra);
    status = status ? status : tool_strict_status();
    return status == 0 && o->save_optimized != NULL ? save_optimized(r) : status;
}

/* Outputs of a recurrence belong to its binding. */
static void drop_outputs(runner *r)
{
    for (size_t i = 0; i < r->outputs; i++) {
        if (r->carry.binding == NULL)
            ort_value_free(r->out[i]);
        r->out[i] = NULL;
    }
}

/* Those that somebody reads: a state that grows in place is copied for that. */
static void borrow_outputs(runner *r)
{
    const run_options *o = &r->options;
    bool all = o->expect != NULL || o->hash || o->report != NULL || o->settings.json;
    for (size_t i = 0; r->carry.binding != NULL && i < r->outputs; i++)
        if (all || sink_wants(&r->sink, i) || carry_reads(&r->carry, r->session, i))
            r->out[i] = ort_binding_output(r->carry.binding, i);
}

static int run_once(runner *r, size_t index, bool many)
{
    ort_error err = {0};
    dump d;
    int status = dump_open(&d, &r->options, index, many);
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
                             : ort_session_run(r->session, r->in, r->out, &options, &err)) !=
            ORT_OK)
            status = tool_fail_in(r->model_path, &err);
        else if (index == 0)
            r->timing.first_ms = tool_now_ms() - begin;
    }
    r->ran = status == 0;
    if (status == 0)
        borrow_outputs(r);
    int closed = dump_close(&d);
    return status != 0 ? status : closed;
}

static int one_step(runner *r, size_t index, bool many)
{
    int status = carry_before(&r->carry, r->session, r->in);
    if (status == 0)
        status = run_once(r, index, many);
    if (status == 0)
        status = carry_after(&r->carry, r->session, r->out);
    if (status == 0)
        status = sink_write(&r->sink, r->out);
    return status;
}

static int all_runs(runner *r)
{
    const run_options *o = &r->options;
    bool many = o->stream || r->feed.files.count > 1 || o->steps > 1, end = false;
    size_t index = 0;
    progress p;
    int status = 0;
    progress_begin(&p, "runs", o->settings.no_progress || o->settings.quiet);
    while (status == 0) {
        status = feed_next(&r->feed, r->in, &end);
        if (status != 0 || end)
            break;
        int64_t steps = o->steps > 0 ? o->steps : 1;
        for (int64_t s = 0; s < steps && status == 0; s++) {
            status = one_step(r, index++, many);
            progress_step(&p, index, o->steps > 0 ? (uint64_t)o->steps : r->feed.files.count);
        }
    }
    progress_end(&p);
    return status;
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
    borrow_outputs(r);
    return carry_after(&r->carry, r->session, r->out);
}

static int measure_steps(runner *r)
{
    const run_options *o = &r->options;
    double ms = 0, start = 0;
    int status = 0;
    for (int64_t i = -warmup_runs(o); status == 0; i++) {
        if (i == 0)
            start = tool_now_ms();
        status = measure_step(r, &ms);
        if (status == 0 && i >= 0)
            timing_add(&r->timing, ms);
        if ((o->repeat > 0 && i + 1 >= o->repeat) ||
            (i >= 0 && o->seconds > 0 && tool_now_ms() - start >= o->seconds * 1e3))
            break;
    }
    return status;
}

/* Timed runs through a binding: the steady state allocates nothing. */
static int measure(runner *r)
{
    const run_options *o = &r->options;
    ort_binding *binding = NULL;
    ort_error err = {0};
    if (ort_binding_new(r->session, &binding, &err) != ORT_OK)
        return tool_fail(&err);
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
    }
    ort_binding_free(binding);
    return 0;
fail:
    ort_binding_free(binding);
    return tool_fail(&err);
}

static int write_file_report(const runner *r, const char *verdicts)
{
    run_options as_json = r->options;
    ort_out_file file;
    int status = whole_file_open(&file, as_json.report);
    if (status != 0)
        return status;
    as_json.settings.json = true;
    report_print(&as_json, r->env, r->model_path, r->session, &r->timing, r->out, verdicts,
                 file.stream);
    return whole_file_close(&file, 0);
}

/* Verdicts on expected tensors and digests are lines, or members of the JSON report. */
static int write_report(runner *r)
{
    const run_options *o = &r->options;
    FILE *talk = r->sink.to_stdout ? stderr : stdout;
    bool lines = !o->settings.json || o->report != NULL;
    char *verdicts = NULL;
    size_t bytes = 0;
    int status = 0;
    if (o->expect != NULL) {
        FILE *list = open_memstream(&verdicts, &bytes);
        if (list == NULL)
            return tool_error(ORT_ERROR_MEMORY, "out of memory");
        status = report_expect(o, r->session, r->out, lines ? talk : NULL, list);
        fclose(list);
    }
    if (o->hash && lines && (status == 0 || status == EXIT_GATE)) {
        int hashed = report_hash(&r->sink, r->out, talk);
        status = status != 0 ? status : hashed;
    }
    if (status != 0 && status != EXIT_GATE) {
        free(verdicts);
        return status;
    }
    int written = 0;
    if (o->report != NULL)
        written = write_file_report(r, verdicts);
    else if (measures(o) || o->settings.json)
        report_print(o, r->env, r->model_path, r->session, &r->timing, r->out, verdicts, talk);
    free(verdicts);
    if (o->time)
        report_phases(r->session, &r->timing, &r->carry, stderr);
    return written != 0 ? written : status;
}

static int run(runner *r, const string_list *files)
{
    run_options *o = &r->options;
    string_list data = {files->items + 1, files->count - 1, 0};
    double begin = tool_now_ms();
    int status = settings_new_env(&o->settings, &r->env);
    if (status == 0)
        status = make_session(r);
    if (status != 0)
        return status;
    r->timing.load_ms = tool_now_ms() - begin;
    r->inputs = ort_session_input_count(r->session);
    r->outputs = ort_session_output_count(r->session);
    r->in = tool_alloc((r->inputs + 1) * sizeof *r->in);
    r->out = tool_alloc((r->outputs + 1) * sizeof *r->out);
    const feed_options from = run_feed(o);
    status = feed_open(&r->feed, &from, r->session, &data);
    if (status == 0)
        status = carry_open(&r->carry, o, r->session);
    bool many = o->stream || r->feed.files.count > 1 || o->steps > 1;
    if (status == 0)
        status = sink_open(&r->sink, o, r->session, many, reports(o));
    if (status == 0)
        status = all_runs(r);
    int closed = sink_close(&r->sink, status == 0);
    if (status == 0 && closed == 0 && measures(o))
        status = r->carry.binding != NULL ? measure_steps(r) : measure(r);
    if (status == 0 && closed == 0 && r->ran)
        status = write_report(r);
    return status != 0 ? status : closed;
}

int main(int argc, char **argv)
{
    runner r = {.options = {.rtol = UNSET, .atol = UNSET, .warmup = UNSET_WARMUP}};
    string_list files = {0};
    tool_init("ort-run");
    settings_init(&r.options.settings);
    int status = options_parse(&table, argc, argv, &r.options, &files);
    if (r.options.compare)
        r.options.settings.default_level = 0;
    if (status == 0)
        status = settings_resolve(&r.options.settings);
    if (status == 0)
        status = check_options(&r.options, &files);
    if (status == 0)
        status = set_how(&r.options, &r.how);
    if (status == 0 && (r.options.compare || r.options.compare_levels)) {
        status = compare_models(&r.options, &r.how, &files);
    } else if (status == 0) {
        r.model_path = files.items[0];
        status = run(&r, &files);
        drop_outputs(&r);
        carry_close(&r.carry);
        sink_release(&r.sink);
        feed_close(&r.feed);
        ort_session_free(r.session);
        ort_model_free(r.model);
        ort_env_free(r.env);
        free(r.in);
        free(r.out);
        free(r.timing.runs_ms);
    }
    options_release(&table, &r.options, &files);
    return tool_finish(status < 0 ? 0 : status);
}
