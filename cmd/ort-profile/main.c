/* main.c - ort-profile: runs a model and says what the time goes into.
 *
 * The walk: options, environment, model, session; inputs; the first run, warm-up, measured runs
 * into one profile; then its reports: tables or JSON on standard output, the trace in a file.
 */
#include <stdlib.h>
#include <string.h>

#include "common/whole_file.h"
#include "profile_tool.h"

static const option_row profile_rows[] = {
#define OPTION_TARGET profile_options
#define OPTION OPTION_ROW
#define GROUP OPTION_HEADING
#define ROWS OPTION_ROWS
#include "options.def"
    {0},
};

static const option_row *const groups[] = {profile_rows, settings_run_rows, settings_talk_rows,
                                           NULL};
static const option_table table = {
    "MODEL [INPUT...]",
    "Runs an ONNX model and says what its time goes into.",
    groups,
    "Examples:\n"
    "  ort-profile net.onnx\n"
    "  ort-profile net.onnx -i test_data_set_0 --by node --top 10\n"
    "  ort-profile net.onnx --repeat 100 -o trace.json\n"
    "  ort-profile net.onnx --json | jq '.operators[0]'\n"
    "  ort-profile net.onnx --sweep batch\n"
    "  ORT_CACHE=cache ort-profile net.onnx --tune-opencl\n",
    .common = "input|repeat|seconds|by|top|output|threads|dim|level|json",
};

typedef struct profiler {
    profile_options options;
    const char *model_path;
    ort_env *env;
    ort_model *model;
    ort_session *session;
    ort_profile *profile;
    ort_peak peak;
    feed feed;
    tune_state tuning;
} profiler;

static int check_options(const profile_options *o, const string_list *files)
{
    if (o->kernels && files->count > 0)
        return tool_usage("--kernels takes no MODEL");
    if (files->count == 0 && !o->kernels)
        return tool_usage("no MODEL given");
    if (o->sweep && (files->count > 1 || !strcmp(files->items[0], "-")))
        return tool_usage("--sweep reads one MODEL again and again; its inputs come by -i, or are "
                          "made up");
    if (count_dashes(files) + count_dashes(&o->inputs) > 1)
        return tool_usage("the model and the tensors can't both come from stdin");
    const char *unseen = o->settings.json ? "--json" : o->by ? "--by" : NULL;
    unseen = unseen == NULL && o->top >= 0 ? "--top" : unseen;
    if (o->trace != NULL && !strcmp(o->trace, "-") && unseen != NULL)
        return tool_usage("-o - leaves stdout to the trace and %s is about the report: -o FILE "
                          "takes the trace out of its way", unseen);
    return 0;
}

static int make_session(profiler *p)
{
    const settings *s = &p->options.settings;
    ort_session_options options;
    ort_profile_options profile = {.size = sizeof profile, .cycles = p->options.cycles};
    ort_error err = {0};
    double begin = profile_now_s();
    int status = settings_load_model(s, p->env, p->model_path, LOAD_ALL, &p->model);
    if (status != 0)
        return status;
    profile.load_ns = (uint64_t)((profile_now_s() - begin) * 1e9);
    settings_session_options(s, &options);
    if (p->options.tune_opencl) {
        options.providers = p->tuning.list;
        options.strict = true; /* a device that is missing or fails has no times */
    }
    progress waiting;
    progress_wait(&waiting, "preparing", s->no_progress || s->quiet);
    ort_status made = ort_session_new(p->env, p->model, &options, &p->session, &err);
    progress_end(&waiting);
    if (made != ORT_OK ||
        ort_profile_new(p->session, &profile, &p->profile, &err) != ORT_OK)
        return tool_fail_in(p->model_path, &err);
    return 0;
}

/* One set of inputs, borrowed from the feed. */
static int take_inputs(profiler *p, const string_list *files, ort_value **inputs)
{
    const profile_options *o = &p->options;
    bool made_up = o->random == NULL && o->inputs.count == 0 && files->count == 0;
    const feed_options from = {.inputs = &o->inputs, .random = made_up ? "1" : o->random};
    bool end;
    int status = feed_open(&p->feed, &from, p->session, files);
    if (status == 0 && p->feed.files.count > 0)
        return tool_usage("%zu files for one input: a profile is of one set of inputs",
                          p->feed.files.count);
    return status == 0 ? feed_next(&p->feed, inputs, &end) : status;
}

static int write_trace(const profiler *p)
{
    ort_out_file *file = NULL;
    ort_error err = {0};
    int status = whole_file_open(&file, p->options.trace);
    if (status != 0)
        return status;
    if (ort_profile_trace(p->profile, ort_out_file_stream(file), &err) != ORT_OK)
        status = tool_fail(&err);
    return whole_file_close(file, status);
}

/* Measure into p->peak, which keeps the best of what is seen: a neighbour of this core may slow one
 * moment and not another. */
static int measure_peak(profiler *p)
{
    ort_peak now = ORT_PEAK_INIT, *best = &p->peak;
    ort_error err = {0};
    if (p->options.no_peak)
        return 0;
    if (ort_env_measure_peak(p->env, &now, &err) != ORT_OK)
        return tool_fail(&err);
    for (int i = 0; i < now.level_count; i++)
        if (best->levels[i].gb_per_s > now.levels[i].gb_per_s)
            now.levels[i].gb_per_s = best->levels[i].gb_per_s;
    now.gflops = best->gflops > now.gflops ? best->gflops : now.gflops;
    now.int8_gops = best->int8_gops > now.int8_gops ? best->int8_gops : now.int8_gops;
    now.tile_gflops = best->tile_gflops > now.tile_gflops ? best->tile_gflops : now.tile_gflops;
    now.ghz = best->ghz > now.ghz ? best->ghz : now.ghz;
    *best = now;
    return 0;
}

/* The library's report, with the gates behind its last member. */
static void print_json(const char *json, const gate_list *gates)
{
    const char *end = strrchr(json, '}');
    tool_reported();
    if (gates->count == 0) {
        printf("%s\n", json);
        return;
    }
    while (end > json && strchr(" \n", end[-1]) != NULL)
        end--;
    printf("%.*s,\n \"gates\": [", (int)(end - json), json);
    gates_print_json(gates, true, stdout);
    printf("\n ]\n}\n");
}

static int make_report(const profiler *p)
{
    const profile_options *o = &p->options;
    ort_error err = {0};
    char *json = NULL;
    gate_list gates;
    int status = 0;
    if (ort_profile_report(p->profile, o->no_peak ? NULL : &p->peak, &json, &err) != ORT_OK)
        return tool_fail(&err);
    profile_judge(json, o, &gates);
    bool printed = o->trace == NULL || strcmp(o->trace, "-");
    if (printed && o->settings.json)
        print_json(json, &gates);
    else if (printed)
        status = profile_print(json, o, stdout);
    ort_text_free(json);
    int held = gates_say(&gates);
    return status != 0 ? status : held;
}

static int kernels(profiler *p)
{
    profile_options *o = &p->options;
    int status = settings_new_env(&o->settings, &p->env);
    if (status == 0)
        status = measure_peak(p);
    if (status != 0)
        return status;
    if (o->repeat == 0 && o->seconds == 0)
        o->seconds = 0.1; /* of each */
    return profile_kernels(p->env, o, o->no_peak ? NULL : &p->peak, stdout);
}

static int measure(profiler *p, ort_value *const *inputs)
{
    const profile_options *o = &p->options;
    int status = measure_peak(p);
    if (status == 0)
        status = profile_runs(p->session, o, p->profile, inputs, p->model_path);
    if (status == 0)
        status = measure_peak(p);
    if (status == 0 && o->trace != NULL)
        status = write_trace(p);
    return status == 0 ? make_report(p) : status;
}

static int tune(profiler *p, ort_value *const *inputs)
{
    const prove_setup setup = {.env = p->env, .model = p->model, .options = &p->options,
                               .inputs = inputs, .label = p->model_path};
    return profile_tune(&p->tuning, &setup, p->session);
}

/* A session, its inputs, and what is done with them. */
static int work(profiler *p, const string_list *files, int (*what)(profiler *, ort_value *const *))
{
    const string_list data = {files->items + 1, files->count - 1, 0};
    int status = settings_new_env(&p->options.settings, &p->env);
    if (status == 0)
        status = make_session(p);
    if (status != 0)
        return status;
    ort_value **inputs =
        tool_alloc((ort_session_input_count(p->session) + 1) * sizeof *inputs);
    status = take_inputs(p, &data, inputs);
    if (status == 0)
        status = what(p, inputs);
    free(inputs);
    return status;
}

static int tune_opencl(profiler *p, const string_list *files)
{
    int status = profile_tune_begin(&p->tuning, &p->options);
    if (status == 0)
        status = work(p, files, tune);
    return profile_tune_end(&p->tuning, status);
}

int main(int argc, char **argv)
{
    profiler p = {.options = {.warmup = 2, .top = -1}, .peak = ORT_PEAK_INIT};
    string_list files = {0};
    tool_init("ort-profile");
    settings_init(&p.options.settings);
    int status = options_parse(&table, argc, argv, &p.options, &files);
    if (status == 0)
        status = settings_resolve(&p.options.settings);
    if (status == 0)
        status = check_options(&p.options, &files);
    if (status == 0) {
        p.model_path = files.count > 0 ? files.items[0] : NULL;
        status = p.options.kernels       ? kernels(&p)
                 : p.options.sweep       ? profile_sweep(&p.options, p.model_path)
                 : p.options.tune_opencl ? tune_opencl(&p, &files)
                                         : work(&p, &files, measure);
        ort_profile_free(p.profile);
        feed_close(&p.feed);
        ort_session_free(p.session);
        ort_model_free(p.model);
        ort_env_free(p.env);
    }
    options_release(&table, &p.options, &files);
    return tool_finish(status < 0 ? 0 : status);
}
