/* main.c - ort-run: runs a model on tensors; times it, checks it, streams it, carries state.
 *
 * The walk: options, environment, model, session; then a loop of feed, carry, run, sink; then the
 * reports. Every step returns an exit status and has already said why when it is not 0.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/formats.h"
#include "common/progress.h"
#include "run.h"

#define UNSET (-1.0) /* a tolerance that nobody gave */

static const option_row run_rows[] = {
#define OPTION_TARGET run_options
#define OPTION OPTION_ROW
#define GROUP OPTION_HEADING
#define ROWS OPTION_ROWS
#include "options.def"
    {0},
};

static const option_row *const groups[] = {run_rows, settings_run_rows, settings_talk_rows, NULL};
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
    .common = "input|output|outputs|random|expect|compare|repeat|carry|steps|json|threads",
};

/* Does anything but a model with --save-optimized - go to stdout? */
static bool uses_stdout(const run_options *o)
{
    return count_dashes(&o->saves) > 0 || o->saves.count == 0 || reports(o) || o->time;
}

/* Models, inputs, stream, expected outputs: one of them at most. */
static int check_stdin(const run_options *o, const string_list *files)
{
    bool streams = o->stream && files->count == 1, other = o->compare && !strcmp(o->compare, "-");
    if (other && !strcmp(files->items[0], "-"))
        return tool_usage("only one of the models can come from stdin");
    if (count_dashes(files) + count_dashes(&o->inputs) + count_dashes(&o->expect) + streams +
            other <= 1)
        return 0;
    if (other)
        return tool_usage("the model of --compare and the tensors can't both come from stdin");
    return tool_usage(!strcmp(files->items[0], "-")
                          ? "the model and the tensors can't both come from stdin"
                          : "inputs and expected outputs can't both come from stdin");
}

static int check_options(run_options *o, const string_list *files)
{
    int status = o->shard != NULL
                     ? option_parse_shard("--shard", o->shard, &o->part, &o->parts) : 0;
    if (status == 0 && files->count == 0)
        return tool_usage("no MODEL given");
    if (status == 0)
        status = check_stdin(o, files);
    if (status != 0)
        return status;
    if (o->save_optimized && !strcmp(o->save_optimized, "-") && uses_stdout(o))
        return tool_usage("--save-optimized - leaves stdout to the model: name a file for it, or "
                          "-o FILE for the outputs and no report");
    if (o->stack && files->count < 2)
        return tool_usage("--stack needs the files that become a batch: ort-run MODEL FILE...");
    if (o->format != NULL && o->saves.count == 0 && reports(o))
        return tool_usage("--format needs -o: a report goes to stdout, no tensors");
    return 0;
}

/* --seed and --timeout, as the library takes them. */
static int set_how(const run_options *o, ort_run_options *how)
{
    ort_run_options_init(how);
    char text[64];
    int64_t seed = 0, skip = 0;
    how->timeout_s = o->settings.timeout;
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
    bool direct = !o->settings.dims.count && !o->settings.shapes.count && !o->save_optimized &&
                  !(o->settings.strict && !strcmp(r->model_path, "-"));
    if (direct) {
        status = settings_check_file(&o->settings, r->env, r->model_path);
    } else {
        double begin = tool_now_ms();
        note_unused_pack(o, r->model_path);
        status = settings_load_model(&o->settings, r->env, r->model_path, LOAD_ALL, &r->model);
        r->timing.model_ms = tool_now_ms() - begin;
    }
    if (status != 0)
        return status;
    settings_session_options(&o->settings, &options);
    options.keep_all = o->dumps.count > 0;
    extra_outputs(o, &extra);
    if (extra.count > 0)
        options.extra_outputs = extra.items;
    options.no_pack = o->no_pack;
    progress p;
    progress_wait(&p, "preparing", o->settings.no_progress || o->settings.quiet);
    ort_status made = direct
                          ? ort_session_load(r->env, r->model_path, &options, &r->session, &err)
                          : ort_session_new(r->env, r->model, &options, &r->session, &err);
    progress_end(&p);
    if (made != ORT_OK)
        status = tool_fail_in(r->model_path, &err);
    string_list_release(&extra);
    status = status != 0 ? status : tool_strict_status();
    return status == 0 && o->save_optimized != NULL ? save_optimized(r) : status;
}

static int write_file_report(const run_report *report)
{
    run_options as_json = *report->options;
    run_report copy = *report;
    ort_out_file *file = NULL;
    int status = whole_file_open(&file, as_json.report);
    if (status != 0)
        return status;
    as_json.settings.json = true;
    copy.options = &as_json;
    report_print(&copy, ort_out_file_stream(file));
    return whole_file_close(file, 0);
}

static int write_report(runner *r)
{
    const run_options *o = &r->options;
    int status = 0;
    if (r->outputs_list != NULL)
        fflush(r->outputs_list);
    const run_report report = {o, r->env, r->model_path, &r->timing, &r->expect, r->output_text,
                               r->records, &r->gates};
    if (o->report != NULL)
        status = write_file_report(&report);
    else if (measures(o) || o->settings.json)
        report_print(&report, run_talk(r));
    if (o->time)
        report_phases(r->session, &r->timing, &r->carry, stderr);
    return status;
}

/* What runs tell of their outputs goes where the report is made from. */
static int open_report(runner *r)
{
    const run_options *o = &r->options;
    int status = expect_open(&r->expect, o, r->session, &r->sink);
    if (status == 0 && (o->settings.json || o->report != NULL)) {
        r->outputs_list = open_memstream(&r->output_text, &r->output_bytes);
        if (r->outputs_list == NULL)
            status = tool_error(ORT_ERROR_MEMORY, "out of memory");
    }
    return status;
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
    r->from = run_feed(o);
    status = feed_open(&r->feed, &r->from, r->session, &data);
    if (status == 0)
        status = carry_open(&r->carry, &o->carries, &o->counts, r->session);
    bool many = o->stream || r->feed.files.count > 1 || o->steps > 1;
    if (status == 0)
        status = sink_open(&r->sink, o, r->session, many, reports(o));
    if (status == 0)
        status = open_report(r);
    if (status == 0)
        status = run_records(r);
    int verdict = status == 0 ? expect_finish(&r->expect) : 0;
    if (verdict != EXIT_GATE)
        status = status != 0 ? status : verdict;
    int closed = sink_close(&r->sink, status == 0);
    if (status != 0 || closed != 0 || r->records == 0)
        return status != 0 ? status : closed;
    report_judge(&r->timing, &o->limits, &r->gates);
    status = write_report(r);
    int held = gates_say(&r->gates);
    return status != 0 ? status : verdict != 0 ? verdict : held;
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
    if (status == 0 && r.options.per_tensor) {
        status = compare_per_tensor(&r.options, &r.how, &files);
    } else if (status == 0 && (r.options.compare || r.options.compare_levels ||
                               r.options.compare_providers)) {
        status = compare_models(&r.options, &r.how, &files);
    } else if (status == 0) {
        r.model_path = files.items[0];
        status = run(&r, &files);
        drop_outputs(&r);
        expect_close(&r.expect);
        if (r.outputs_list != NULL)
            fclose(r.outputs_list);
        free(r.output_text);
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
