/* main.c - ort-optimize: rewrites a model ahead of time and shows that its meaning stayed.
 *
 * load, rewrite, verify, write: the file appears only when verification did not say no. Without -o
 * the report tells what would happen.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/progress.h"
#include "optimize.h"

static const option_row optimize_rows[] = {
#define OPTION_TARGET optimize_options
#define OPTION OPTION_ROW
#define GROUP OPTION_HEADING
#define ROWS OPTION_ROWS
#include "options.def"
    {0},
};

static const option_row *const groups[] = {optimize_rows, settings_run_rows, settings_talk_rows,
                                           NULL};
static const option_table table_of_options = {
    "MODEL",
    "Rewrites an ONNX model ahead of time and verifies that its meaning stayed.",
    groups,
    "Examples:\n"
    "  ort-optimize net.onnx -o fast.onnx\n"
    "  ort-optimize net.onnx --dim batch=1 --max-growth 10x -o fast.onnx\n"
    "  ort-optimize net.onnx -i test_data_set_0 --strict -o - | ort-run - x.npy\n"
    "  ort-optimize net.onnx --contrib --level 2 -v\n",
    .common = "output|input|level|dim|opset|fp16|pack|passes|no-verify|json",
};

typedef struct optimizer {
    optimize_options options;
    const char *path;
    ort_env *env;
    ort_model *original, *model; /* original: what to verify against, or NULL */
    samples samples;
    report report;
    uint64_t near_miss_ns;
    progress progress;
} optimizer;

/* ---- options */

static void list_passes(bool json)
{
    const char *name, *doc;
    int level;
    if (json)
        printf("{\n \"schema\": \"ort-optimize/1\",\n \"passes\": [");
    for (int i = 0; (name = ort_pass_name(i, &level, &doc)); i++) {
        if (json)
            printf("%s\n  {\"name\": \"%s\", \"level\": %d, \"exact\": %s, \"doc\": \"%s\"}",
                   i ? "," : "", name, level, ort_pass_is_exact(name) ? "true" : "false", doc);
        else
            printf("%d  %-24s %s\n", level, name, doc);
    }
    if (json)
        printf("\n ]\n}\n");
}

static int check_options(const optimize_options *o, const string_list *files)
{
    if (files->count > 1)
        return tool_usage("one MODEL at a time; -o %s writes the optimized one there",
                          files->items[1]);
    if (files->count == 0)
        return tool_usage("no MODEL given");
    if (count_dashes(files) + count_dashes(&o->inputs) > 1)
        return tool_usage("the model and the samples can't both come from stdin");
    if (o->settings.level_number == 0 && !o->passes.count && o->functions &&
        !strcmp(o->functions, "inline"))
        return tool_usage("--functions inline needs a level above 0, or --passes");
    if (o->settings.level_number == 3)
        return tool_usage("--level 3 is for sessions: a file holds at most level 2");
    if (o->settings.json && o->output && !strcmp(o->output, "-"))
        return tool_usage("the model and the JSON report can't both go to stdout");
    return form_check(o);
}

/* A factor as 10x or 10, or a size as 10M that is added. */
static int parse_growth(const char *text, double *factor, size_t *bytes)
{
    *factor = 0;
    *bytes = 0;
    size_t length = text ? strlen(text) : 0;
    char last = length ? text[length - 1] : '\0';
    if (!text)
        return 0;
    if (last && strchr("kKMGB", last))
        return option_parse_size("--max-growth", text, bytes);
    char *end;
    *factor = strtod(text, &end);
    end += *end == 'x' || *end == 'X';
    if (end == text || *end || !isdigit((unsigned char)*text) || !(*factor >= 1))
        return tool_usage("--max-growth: '%s' is no factor of 1 or more, as 10x, and no size, "
                          "as 10M", text);
    return 0;
}

/* ---- the stages */

static void on_pass(void *arg, const char *pass, int changes, uint64_t ns)
{
    report_add_pass(arg, pass, changes, (double)ns * 1e-6);
}

static void on_near_miss(void *arg, const char *pass, const char *node, const char *condition)
{
    report_add_near_miss(arg, pass, node, condition);
}

static int optimize_settings(optimizer *x, ort_optimize_options *options)
{
    const optimize_options *o = &x->options;
    ort_optimize_options_init(options);
    options->level = o->settings.level_number;
    options->passes = o->passes.count ? o->passes.items : NULL;
    options->disable = o->settings.disable.items;
    options->contrib = o->contrib;
    options->keep_functions = o->functions && !strcmp(o->functions, "keep");
    options->on_pass = on_pass;
    if (o->settings.json || o->settings.verbose || (o->passes.count && !o->settings.quiet))
        options->on_near_miss = on_near_miss;
    options->near_miss_ns = &x->near_miss_ns;
    options->arg = &x->report;
    return parse_growth(o->max_growth, &options->max_growth, &options->growth_bytes);
}

static int load(optimizer *x)
{
    const optimize_options *o = &x->options;
    ort_error err = {0};
    bool runs = !o->no_verify || o->fp16 || o->bf16;
    int status = settings_load_model(&o->settings, x->env, x->path,
                                     runs ? LOAD_ALL : LOAD_AS_STORED, &x->model);
    if (status != 0 || o->no_verify)
        return status;
    x->original = x->model;
    x->model = NULL;
    if (ort_model_copy(x->original, &x->model, &err) != ORT_OK)
        status = tool_fail_in(x->path, &err);
    return status;
}

static int rewrite_once(optimizer *x, const ort_optimize_options *options)
{
    ort_error err = {0};
    int status = 0;
    if (ort_model_follow(x->model, x->options.keep_float.items, &err) != ORT_OK)
        status = tool_fail_in(x->path, &err);
    if (status == 0)
        status = form_before(&x->options, x->env, x->model);
    if (status == 0)
        status = form_opset(&x->options, x->env, x->model, x->path);
    bool narrows = x->options.fp16 || x->options.bf16;
    ort_optimize_options wide = *options;
    if (narrows) /* the passes run again behind it, on the Casts: near-misses are theirs to tell */
        wide.on_near_miss = NULL;
    if (status == 0 && ort_model_optimize(x->env, x->model, &wide, &err) != ORT_OK)
        status = tool_fail_in(x->path, &err);
    if (status == 0 && narrows)
        status = narrow_model(&x->options, x->env, x->model, x->path, &x->samples);
    if (status == 0 && narrows && ort_model_optimize(x->env, x->model, options, &err) != ORT_OK)
        status = tool_fail_in(x->path, &err);
    if (status == 0)
        form_after(&x->options, x->model);
    return status;
}

/* Twice, where expanded functions turn out to make the file grow. */
static int rewrite(optimizer *x, ort_optimize_options *options)
{
    calls own;
    bool again = false;
    int status = calls_begin(&own, &x->options, x->model, x->path);
    progress_wait(&x->progress, "optimizing",
                  x->options.settings.no_progress || x->options.settings.quiet);
    if (status == 0)
        status = rewrite_once(x, options);
    if (status == 0)
        status = calls_judge(&own, options, &x->model, &again, x->path);
    if (status == 0 && again) {
        report_forget_passes(&x->report);
        options->keep_functions = true;
        status = rewrite_once(x, options);
    }
    progress_end(&x->progress);
    calls_end(&own);
    return status;
}

static void on_run(void *arg, int run, int runs)
{
    progress_step(arg, (uint64_t)run, (uint64_t)runs);
}

/* Was nothing done but by passes that change no bit? Other sizes may take another kernel. */
static bool all_exact(const optimizer *x)
{
    if (x->options.opset)
        return false;
    if (x->options.settings.level_number == 0 && !x->options.passes.count)
        return true;
    for (size_t i = 0; i < x->report.pass_count; i++)
        if (x->report.passes[i].changes && !ort_pass_is_exact(x->report.passes[i].name))
            return false;
    return x->options.dynamic.count == 0;
}

/* ort-optimize(1) derives these: a rewritten layer rounds once where it did not, or the other way
 * about (level 1: scaled weights; level 2: kernels in place of chains, or another opset's chains),
 * 2^-24 each; 170 layers in a row, enlarged tenfold by norms and softmax, make 1e-4. 16 bits: forty
 * roundings, 2^-11 or 2^-8 each. */
static double default_tolerance(const optimizer *x)
{
    const optimize_options *o = &x->options;
    if (o->fp16 || o->bf16)
        return o->fp16 ? 40 * 0x1p-11 : 40 * 0x1p-8;
    return all_exact(x) ? 0 : 1e-4;
}

static int verify_settings(optimizer *x, ort_verify_options *options)
{
    const optimize_options *o = &x->options;
    ort_verify_options_init(options);
    if (made_up_seed(o, &options->seed) != 0)
        return EXIT_USAGE;
    options->samples = (const ort_tensors *const *)x->samples.sets;
    options->sample_count = x->samples.count;
    options->tolerance = o->tolerance >= 0 ? o->tolerance : default_tolerance(x);
    x->report.tolerance = options->tolerance;
    if (o->tolerance >= 0)
        options->code_tolerance = o->tolerance;
    options->timeout_s = o->settings.timeout;
    options->on_run = on_run;
    options->arg = &x->progress;
    return 0;
}

/* Is `model` no longer what the original is? Then the step `name` is to blame. */
static ort_status blame(optimizer *x, const ort_model *model, const char *name,
                        const ort_verify_options *options, ort_error *err)
{
    ort_verification result = ORT_VERIFICATION_INIT;
    ort_status status = ort_models_verify(x->env, x->original, model, options, &result, err);
    if (status == ORT_OK && result.verdict == ORT_DIFFERENT)
        x->report.bisected = name;
    return status;
}

/* --make-dynamic and --opset come before the passes, --fp16 and --bf16 after them: steps of their
 * own. */
static int bisect(optimizer *x, const ort_optimize_options *optimize,
                  const ort_verify_options *options)
{
    const optimize_options *o = &x->options;
    ort_model *start = NULL;
    ort_error err = {0};
    int status = 0;
    ort_status done = ort_model_copy(x->original, &start, &err);
    if (!done && o->dynamic.count) {
        status = form_before(o, x->env, start);
        if (status == 0)
            done = blame(x, start, "make_dynamic", options, &err);
    }
    if (!done && status == 0 && !x->report.bisected && o->opset) {
        done = ort_model_set_opset(x->env, start, atoi(o->opset), optimize->keep_functions, NULL,
                                   NULL, &err);
        if (!done)
            done = blame(x, start, "opset", options, &err);
    }
    if (!done && status == 0 && !x->report.bisected)
        done = ort_model_bisect(x->env, start, optimize, options, &x->report.bisected, &err);
    if (!done && status == 0 && (!x->report.bisected || !*x->report.bisected))
        x->report.bisected = o->fp16 ? "fp16" : o->bf16 ? "bf16" : NULL;
    ort_model_free(start);
    return done ? tool_fail_in(x->path, &err) : status;
}

/* 0, EXIT_GATE when the models differ (or, with --strict, when that can't be told). */
static int verify(optimizer *x, const ort_optimize_options *optimize)
{
    const optimize_options *o = &x->options;
    ort_verification *v = &x->report.verification;
    ort_verify_options options;
    ort_error err = {0};
    int status = verify_settings(x, &options);
    if (status != 0)
        return status;
    x->report.verified = true;
    ort_verification_init(v);
    progress_begin(&x->progress, "verifying", o->settings.no_progress || o->settings.quiet);
    ort_status done = ort_models_verify(x->env, x->original, x->model, &options, v, &err);
    if (done) {
        samples_explain(&x->samples, x->env, x->original, &err);
        status = tool_fail_in(x->path, &err);
    } else if (v->verdict == ORT_DIFFERENT && o->bisect)
        status = bisect(x, optimize, &options);
    progress_end(&x->progress);
    if (status != 0)
        return status;
    if (v->verdict == ORT_DIFFERENT) {
        snprintf(err.message, sizeof err.message, "the rewritten model differs: %s%s%s%s", v->text,
                 x->report.bisected ? "; first wrong after pass " : "",
                 x->report.bisected ? x->report.bisected : "",
                 x->report.bisected || o->bisect ? "" : " (--bisect names the pass)");
        tool_fail_in(x->path, &err);
        return EXIT_GATE;
    }
    if (v->verdict == ORT_NOT_VERIFIED && (o->settings.strict || !o->settings.quiet)) {
        snprintf(err.message, sizeof err.message, "not verified: %s", v->text);
        tool_fail_in(x->path, &err);
    }
    return v->verdict == ORT_NOT_VERIFIED && o->settings.strict ? EXIT_GATE : 0;
}

static int save(optimizer *x)
{
    const optimize_options *o = &x->options;
    if (!o->output)
        return 0;
    if (!strcmp(o->output, "-") && !tool_may_write_binary(stdout, o->settings.force))
        return EXIT_USAGE;
    int status = form_save(o, x->env, x->model);
    if (status == 0 && strcmp(o->output, "-"))
        x->report.after.file_bytes = measure_file(o->output);
    return status;
}

/* The report goes to stdout unless the model does; then it is talk. */
static bool to_stdout(const optimize_options *o)
{
    return !o->output || strcmp(o->output, "-");
}

static bool tells(const optimize_options *o)
{
    return (!o->settings.quiet || o->settings.json) && (to_stdout(o) || o->settings.verbose);
}

static int tell(optimizer *x)
{
    const optimize_options *o = &x->options;
    int status = measure_take(&x->report.after, x->model);
    if (status != 0)
        return status;
    x->report.before.file_bytes = strcmp(x->path, "-") ? measure_file(x->path) : 0;
    tool_reported();
    if (o->settings.json)
        report_json(&x->report, o, x->path, stdout);
    else
        report_text(&x->report, o, to_stdout(o) ? stdout : stderr);
    return 0;
}

/* The time since the clock was read last. */
static double lap(double *clock)
{
    double before = *clock;
    *clock = tool_now_ms();
    return *clock - before;
}

static int run(optimizer *x)
{
    stage_times *times = &x->report.times;
    double clock = tool_now_ms();
    ort_optimize_options options;
    int status = settings_new_env(&x->options.settings, &x->env);
    if (status == 0)
        status = optimize_settings(x, &options);
    lap(&clock);
    if (status == 0)
        status = load(x);
    times->load_ms = lap(&clock);
    if (status == 0) /* of what is verified against: -i and --no-verify exclude each other */
        status = samples_load(&x->samples, &x->options.inputs, x->env, x->original, x->path);
    if (status == 0 && tells(&x->options)) /* now: its passes change the model itself */
        status = measure_take(&x->report.before, x->model);
    lap(&clock);
    if (status == 0)
        status = rewrite(x, &options);
    times->near_miss_ms = (double)x->near_miss_ns * 1e-6;
    times->optimize_ms = lap(&clock) - times->near_miss_ms;
    if (status == 0 && !x->options.no_verify)
        status = verify(x, &options);
    status = status != 0 ? status : tool_strict_status();
    times->verify_ms = lap(&clock);
    if (status == 0)
        status = save(x);
    times->save_ms = lap(&clock);
    if ((status == 0 || status == EXIT_GATE) && tells(&x->options)) {
        int told = tell(x);
        status = status != 0 ? status : told;
    }
    return status;
}

int main(int argc, char **argv)
{
    optimizer x = {.options = {.tolerance = -1}};
    string_list files = {0};
    tool_init("ort-optimize");
    settings_init(&x.options.settings);
    x.options.settings.default_level = 2;
    int status = options_parse(&table_of_options, argc, argv, &x.options, &files);
    if (status == 0 && x.options.list_passes) {
        list_passes(x.options.settings.json);
        status = -1;
    }
    if (status == 0)
        status = settings_resolve(&x.options.settings);
    if (status == 0)
        status = check_options(&x.options, &files);
    if (status == 0) {
        x.path = files.items[0];
        status = run(&x);
        report_release(&x.report);
        samples_release(&x.samples);
        ort_model_free(x.model);
        ort_model_free(x.original);
        ort_env_free(x.env);
    }
    options_release(&table_of_options, &x.options, &files);
    return tool_finish(status < 0 ? 0 : status);
}
