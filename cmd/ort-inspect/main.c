/* main.c - ort-inspect: shows and checks models: reports, pictures, differences, cut-outs.
 *
 * One action per call. Reports come from the library as JSON; without --json they are printed as
 * text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/settings.h"
#include "common/screen.h"
#include "common/whole_file.h"
#include "inspect.h"

typedef struct inspect_options {
    settings settings;
#define OPTION OPTION_MEMBER /* a member for each option that has a value */
#define GROUP OPTION_NO_MEMBER
#define ROWS OPTION_NO_MEMBER
#include "options.def"
} inspect_options;

static const option_row inspect_rows[] = {
#define OPTION_TARGET inspect_options
#define OPTION OPTION_ROW
#define GROUP OPTION_HEADING
#define ROWS OPTION_ROWS
#include "options.def"
    {0},
};

static const option_row *const groups[] = {inspect_rows, settings_run_rows, settings_talk_rows,
                                           NULL};
static const option_table table_of_options = {
    "MODEL [MODEL]",
    "Shows and checks ONNX models.",
    groups,
    "Examples:\n"
    "  ort-inspect net.onnx\n"
    "  ort-inspect net.onnx --check && ort-inspect net.onnx --ops\n"
    "  ort-inspect net.onnx --shapes --dim batch=1\n"
    "  ort-inspect net.onnx --svg -o net.svg\n"
    "  ort-inspect net.onnx --extract x:features -o - | ort-run - -i x.npy\n"
    "  ort-inspect --diff old.onnx new.onnx\n",
    .common = "nodes|io|shapes|costs|check|ops|diff|svg|extract|json",
};

typedef struct inspector {
    inspect_options options;
    string_list files;
    ort_env *env;
    ort_model *model;
} inspector;

/* ---- writing text */

static int io_failed(const char *path)
{
    ort_error err = {.status = ORT_ERROR_IO};
    snprintf(err.message, sizeof err.message, "%s: can't be written: %s", path, strerror(errno));
    return tool_fail(&err);
}

static int write_text(const char *path, const char *text)
{
    ort_out_file *file = NULL;
    tool_reported();
    int status = whole_file_open(&file, path);
    if (status != 0)
        return status;
    fputs(text, ort_out_file_stream(file));
    return whole_file_close(file, 0);
}

typedef int text_maker(void *arg, FILE *stream);

static int write_made(const char *path, text_maker *make, void *arg)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return io_failed("memory");
    if (path == NULL || !strcmp(path, "-"))
        screen_stand_for(memory, stdout);
    int status = make(arg, memory);
    screen_stand_for(NULL, NULL);
    if (fclose(memory) != 0 && status == 0)
        status = io_failed("memory");
    if (status == 0)
        status = write_text(path, text);
    free(text);
    return status;
}

/* ---- reports */

typedef struct report_text {
    ort_report report;
    const char *json, *grep;
} report_text;

static int make_report(void *arg, FILE *stream)
{
    const report_text *r = arg;
    return text_report(r->report, r->json, r->grep, stream);
}

static int make_supports(void *arg, FILE *stream)
{
    const report_text *r = arg;
    return text_supports(r->json, r->grep, stream);
}

static int make_page(void *arg, FILE *stream)
{
    const report_text *r = arg;
    return markdown_supports(r->json, r->grep, stream);
}

static int load(inspector *x, const char *path, bool skeleton, ort_model **model)
{
    return settings_load_model(&x->options.settings, x->env, path,
                               skeleton ? LOAD_SKELETON : LOAD_ALL, model);
}

static bool needs_weights(ort_report report)
{
    return report == ORT_REPORT_INITIALIZERS || report == ORT_REPORT_MEMORY;
}

/* Memory is that of the session which --level and --disable make. */
static ort_status ask_report(inspector *x, ort_report report, char **json, ort_error *err)
{
    ort_session_options options;
    if (report != ORT_REPORT_MEMORY)
        return ort_model_report(x->model, report, json, err);
    settings_session_options(&x->options.settings, &options);
    return ort_memory_report(x->env, x->model, &options, json, err);
}

static int run_report(inspector *x, ort_report report)
{
    const inspect_options *o = &x->options;
    ort_error err = {0};
    char *json = NULL;
    bool overrides = o->settings.dims.count || o->settings.shapes.count;
    bool limited = o->settings.max_memory || o->settings.timeout > 0;
    bool plain = report == ORT_REPORT_SUMMARY && !overrides && !limited && !o->settings.strict;
    if (plain) {
        if (ort_summary_report(x->files.items[0], &json, &err) != ORT_OK)
            return tool_fail(&err);
    } else {
        int status = load(x, x->files.items[0], !needs_weights(report), &x->model);
        if (status != 0)
            return status;
        if (ask_report(x, report, &json, &err) != ORT_OK)
            return tool_fail(&err);
    }
    report_text text = {report, json, o->grep};
    int status = o->settings.json ? write_text(o->output, json)
                                  : write_made(o->output, make_report, &text);
    if (status == 0 && report == ORT_REPORT_OPS && report_gaps(json) > 0)
        status = EXIT_GATE;
    ort_text_free(json);
    return status;
}

static int make_division(void *arg, FILE *stream)
{
    return text_division(arg, stream);
}

typedef struct division_picture {
    const char *json;
    bool svg;
} division_picture;

static int make_division_picture(void *arg, FILE *stream)
{
    const division_picture *p = arg;
    return picture_division(p->json, p->svg, stream);
}

/* The division between providers, or what these are. */
static int run_division(inspector *x)
{
    const inspect_options *o = &x->options;
    ort_session_options options;
    ort_error err = {0};
    char *json = NULL;
    int status = o->partition ? load(x, x->files.items[0], false, &x->model) : 0;
    if (status != 0)
        return status;
    settings_session_options(&o->settings, &options);
    if ((o->partition ? ort_partition_report(x->env, x->model, &options, &json, &err)
                      : ort_env_providers_report(x->env, &json, &err)) != ORT_OK)
        return tool_fail(&err);
    division_picture picture = {json, o->svg};
    bool drawn = o->partition && (o->dot || o->svg);
    status = o->settings.json ? write_text(o->output, json)
             : drawn          ? write_made(o->output, make_division_picture, &picture)
                              : write_made(o->output, make_division, json);
    ort_text_free(json);
    return status;
}

static int run_supports(inspector *x)
{
    const inspect_options *o = &x->options;
    ort_error err = {0};
    char *json = NULL;
    if (ort_supports_report(x->env, &json, &err) != ORT_OK)
        return tool_fail(&err);
    report_text text = {ORT_REPORT_OPS, json, o->grep};
    int status = o->settings.json ? write_text(o->output, json)
                                  : write_made(o->output, o->markdown ? make_page : make_supports,
                                               &text);
    ort_text_free(json);
    return status;
}

/* ---- the pack */

static int make_pack(void *arg, FILE *stream)
{
    return text_pack(((const report_text *)arg)->json, stream);
}

static int run_pack(inspector *x)
{
    const inspect_options *o = &x->options;
    ort_error err = {0};
    char *json = NULL;
    bool fits = false;
    if (!strcmp(x->files.items[0], "-"))
        return tool_usage("a pack lies beside a file: a model from stdin has none");
    const ort_load_options load = {.size = sizeof load,
                                   .external_root = o->settings.external_root};
    if (ort_pack_report_with(x->env, x->files.items[0], &load, o->verify_pack, &fits, &json,
                             &err) != ORT_OK)
        return tool_fail(&err);
    report_text text = {ORT_REPORT_SUMMARY, json, NULL};
    int status = o->settings.json ? write_text(o->output, json)
                                  : write_made(o->output, make_pack, &text);
    ort_text_free(json);
    return status == 0 && !fits ? EXIT_GATE : status;
}

/* ---- check */

typedef struct check_text {
    const ort_findings *findings;
    const char *model;
    bool json;
} check_text;

static const char *severity_name(ort_severity severity)
{
    return severity == ORT_FINDING_ERROR     ? "error"
           : severity == ORT_FINDING_WARNING ? "warning"
                                             : "note";
}

static int make_check(void *arg, FILE *stream)
{
    const check_text *c = arg;
    size_t count = ort_findings_count(c->findings);
    if (c->json) {
        fputs("{\n \"schema\": \"ort-inspect/1\",\n \"report\": \"check\",\n \"model\": ", stream);
        tool_json_string(stream, c->model);
        fprintf(stream, ",\n \"errors\": %zu,\n \"findings\": [", ort_findings_errors(c->findings));
    }
    for (size_t i = 0; i < count; i++) {
        const char *severity = severity_name(ort_findings_severity(c->findings, i));
        const char *message = ort_findings_message(c->findings, i);
        if (!c->json) {
            fprintf(stream, "%s: %s\n", severity, message);
            continue;
        }
        fprintf(stream, "%s\n  {\"severity\": \"%s\", \"message\": ", i ? "," : "", severity);
        tool_json_string(stream, message);
        fputc('}', stream);
    }
    if (c->json)
        fputs(count ? "\n ]\n}\n" : "]\n}\n", stream);
    else if (count == 0)
        fprintf(stream, "%s: no problems found\n", c->model);
    return 0;
}

static int run_check(inspector *x)
{
    ort_error err = {0};
    ort_findings *findings = NULL;
    /* Whether all weights are there is part of the question; they stay where they lie. */
    settings plain = x->options.settings; /* the check itself tells its warnings */
    plain.strict = false;
    int status = settings_load_model(&plain, x->env, x->files.items[0], LOAD_AS_STORED, &x->model);
    if (status != 0)
        return status;
    if (ort_model_check(x->model, &findings, &err) != ORT_OK)
        return tool_fail(&err);
    for (size_t i = 0; i < ort_findings_count(findings); i++)
        if (ort_findings_severity(findings, i) == ORT_FINDING_WARNING)
            tool_set_warned();
    check_text text = {findings, x->files.items[0], x->options.settings.json};
    status = write_made(x->options.output, make_check, &text);
    if (status == 0 && ort_findings_errors(findings) > 0)
        status = EXIT_MODEL;
    ort_findings_free(findings);
    return status;
}

/* ---- diff, pictures */

typedef struct diff_text {
    const char *a, *b, *text;
    bool equal, json;
} diff_text;

static int make_diff(void *arg, FILE *stream)
{
    const diff_text *d = arg;
    if (!d->json) {
        fputs(d->text, stream);
        if (d->equal)
            fputs("the models are the same but for names of temporaries and the order of nodes\n",
                  stream);
        return 0;
    }
    fputs("{\n \"schema\": \"ort-inspect/1\",\n \"report\": \"diff\",\n \"first\": ", stream);
    tool_json_string(stream, d->a);
    fputs(",\n \"second\": ", stream);
    tool_json_string(stream, d->b);
    fprintf(stream, ",\n \"equal\": %s,\n \"differences\": [", d->equal ? "true" : "false");
    const char *line = d->text;
    for (size_t i = 0; *line; i++) {
        size_t length = strcspn(line, "\n");
        char *copy = tool_strndup(line, length);
        fputs(i ? ",\n  " : "\n  ", stream);
        tool_json_string(stream, copy);
        free(copy);
        line += length + (line[length] == '\n');
    }
    fputs(*d->text ? "\n ]\n}\n" : "]\n}\n", stream);
    return 0;
}

static int run_diff(inspector *x)
{
    ort_error err = {0};
    ort_model *other = NULL;
    char *text = NULL;
    bool equal = false;
    int status = load(x, x->files.items[0], false, &x->model);
    if (status == 0)
        status = load(x, x->files.items[1], false, &other);
    if (status == 0 && ort_model_diff(x->model, other, &equal, &text, &err) != ORT_OK)
        status = tool_fail(&err);
    if (status == 0) {
        diff_text d = {x->files.items[0], x->files.items[1], text, equal, x->options.settings.json};
        status = write_made(x->options.output, make_diff, &d);
    }
    if (status == 0 && !equal)
        status = EXIT_GATE;
    ort_text_free(text);
    ort_model_free(other);
    return status;
}

static int run_draw(inspector *x)
{
    ort_error err = {0};
    char *text = NULL;
    int status = load(x, x->files.items[0], true, &x->model);
    if (status != 0)
        return status;
    if (ort_model_draw(x->model, x->options.svg, &text, &err) != ORT_OK)
        return tool_fail(&err);
    status = write_text(x->options.output, text);
    ort_text_free(text);
    return status;
}

/* ---- parts */

static int save_model(const inspector *x, const ort_model *model)
{
    ort_error err = {0};
    const char *path = x->options.output ? x->options.output : "-";
    if (!strcmp(path, "-") && !tool_may_write_binary(stdout, x->options.settings.force))
        return EXIT_USAGE;
    return ort_model_save(model, path, NULL, &err) == ORT_OK ? 0 : tool_fail(&err);
}

static ort_status extract_at(const inspector *x, const char *colon, ort_model **part,
                             ort_error *err)
{
    string_list inputs = {0}, outputs = {0};
    char *names = tool_strndup(x->options.extract, (size_t)(colon - x->options.extract));
    if (*names)
        string_list_add_split(&inputs, names);
    string_list_add_split(&outputs, colon + 1);
    ort_status status = ort_model_extract(x->model, inputs.items, inputs.count, outputs.items,
                                          outputs.count, part, err);
    string_list_release(&inputs);
    string_list_release(&outputs);
    free(names);
    return status;
}

/* Names may hold colons ("x:0"): the split that names values of the graph is the right one. */
static int run_extract(inspector *x)
{
    ort_error first = {0}, err = {0};
    ort_model *part = NULL;
    const char *colon = strchr(x->options.extract, ':');
    if (!colon)
        return tool_usage("--extract: '%s' is not IN:OUT", x->options.extract);
    int status = load(x, x->files.items[0], false, &x->model);
    if (status != 0)
        return status;
    ort_status done = extract_at(x, colon, &part, &first);
    while (done != ORT_OK && (colon = strchr(colon + 1, ':')) != NULL)
        done = extract_at(x, colon, &part, &err);
    if (done != ORT_OK)
        return tool_fail(&first);
    status = save_model(x, part);
    ort_model_free(part);
    return status;
}

static int run_tensor(inspector *x)
{
    const inspect_options *o = &x->options;
    ort_error err = {0};
    ort_value *value = NULL;
    ort_tensors *tensors = NULL;
    int status = load(x, x->files.items[0], false, &x->model);
    if (status != 0)
        return status;
    if (ort_model_constant(x->model, o->tensor, &value, &err) != ORT_OK)
        return tool_fail(&err);
    ort_status done = ORT_OK;
    if (!o->output) {
        status = screen_value(stdout, value, o->tensor, 64);
    } else {
        done = ort_tensors_new(&tensors, &err);
        if (done == ORT_OK)
            done = ort_tensors_add(tensors, o->tensor, value, &err);
        if (done == ORT_OK && !strcmp(o->output, "-") &&
            !tool_may_write_binary(stdout, o->settings.force))
            status = EXIT_USAGE;
        if (done == ORT_OK && status == 0)
            done = ort_tensors_save(tensors, o->output, NULL, &err);
    }
    ort_tensors_free(tensors);
    ort_value_free(value);
    return done == ORT_OK ? status : tool_fail(&err);
}

/* ---- dispatch */

static int check_usage(const inspector *x)
{
    const inspect_options *o = &x->options;
    size_t wanted = o->supports || o->providers ? 0 : o->diff ? 2 : 1;
    if (o->tensor && o->settings.json)
        return tool_usage("--json is the form of reports, and --tensor makes none: -o FILE.json "
                          "writes the constant as JSON");
    if (x->files.count < wanted)
        return tool_usage(o->diff ? "--diff needs two MODELs" : "no MODEL given");
    if (x->files.count > wanted)
        return tool_usage("'%s' is one argument too many%s", x->files.items[wanted],
                          o->diff ? "" : "; --diff compares two models");
    if (o->diff && !strcmp(x->files.items[0], "-") && !strcmp(x->files.items[1], "-"))
        return tool_usage("only one of two models can come from stdin");
    return 0;
}

static ort_report chosen_report(const inspect_options *o)
{
    return o->nodes          ? ORT_REPORT_NODES
           : o->io           ? ORT_REPORT_IO
           : o->shapes       ? ORT_REPORT_SHAPES
           : o->initializers ? ORT_REPORT_INITIALIZERS
           : o->metadata     ? ORT_REPORT_METADATA
           : o->functions    ? ORT_REPORT_FUNCTIONS
           : o->ops          ? ORT_REPORT_OPS
           : o->costs        ? ORT_REPORT_COST
           : o->memory       ? ORT_REPORT_MEMORY
                             : ORT_REPORT_SUMMARY;
}

static int run(inspector *x)
{
    const inspect_options *o = &x->options;
    if (o->supports)
        return run_supports(x);
    if (o->partition || o->providers)
        return run_division(x);
    if (o->pack || o->verify_pack)
        return run_pack(x);
    if (o->check)
        return run_check(x);
    if (o->diff)
        return run_diff(x);
    if (o->dot || o->svg)
        return run_draw(x);
    if (o->extract)
        return run_extract(x);
    if (o->tensor)
        return run_tensor(x);
    return run_report(x, chosen_report(o));
}

int main(int argc, char **argv)
{
    inspector x;
    memset(&x, 0, sizeof x);
    tool_init("ort-inspect");
    settings_init(&x.options.settings);
    int status = options_parse(&table_of_options, argc, argv, &x.options, &x.files);
    if (status == 0)
        status = settings_resolve(&x.options.settings);
    if (status == 0)
        status = check_usage(&x);
    if (!x.options.ops) /* to look at a model is not to run it; --ops says what would run */
        x.options.settings.allow_newer = true;
    if (status == 0)
        status = settings_new_env(&x.options.settings, &x.env);
    if (status == 0)
        status = run(&x);
    ort_model_free(x.model);
    ort_env_free(x.env);
    options_release(&table_of_options, &x.options, &x.files);
    return tool_finish(status < 0 ? 0 : status);
}
