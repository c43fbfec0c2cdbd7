/* main.c - ort-quantize: a float model becomes one of integers, which shows what it lost and gained
 * before its file appears.
 */
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats.h"
#include "common/look.h"
#include "common/scratch.h"
#include "evaluation.h"
#include "ranges.h"

static const option_row quantize_rows[] = {
#define OPTION_TARGET quantize_options
#define OPTION OPTION_ROW
#define GROUP OPTION_HEADING
#define ROWS OPTION_ROWS
#include "options.def"
    {0},
};

static const struct {
    const char *name;
    int (*run)(quantizing *q);
} verbs[] = {
    {"dynamic", verb_dynamic},
    {"static", verb_static},
    {"calibrate", verb_calibrate},
    {"weights", verb_weights},
    {"evaluate", verb_evaluate},
    {"suggest", verb_suggest},
};

static const option_verb verb_rows[] = {
    {"dynamic", "products on bytes whose range is found in each run: no samples"},
    {"static", "products and what lies between them on codes, by ranges seen on samples"},
    {"calibrate", "ranges of values as JSON, which static takes and --merge adds up"},
    {"weights", "weights in 2, 4 or 8 bits by blocks, what they multiply in float"},
    {"evaluate", "a quantized model beside its float one: accuracy, size, time"},
    {"suggest", "tells which of these suits the model, and why"},
    {0},
};

static const option_row *const groups[] = {quantize_rows, settings_run_rows, settings_talk_rows,
                                           NULL};
static const option_table table_of_options = {
    "MODEL",
    "Makes an ONNX model compute with integers, and measures what that costs and brings.",
    groups,
    "Examples:\n"
    "  ort-quantize dynamic bert.onnx -o bert.int8.onnx\n"
    "  ort-quantize static net.onnx -i samples/ -o net.int8.onnx\n"
    "  ort-optimize --level 1 net.onnx -o - | ort-quantize static - -i samples/ -o net.int8.onnx\n",
    .common = "output|input|random|observer|per-tensor|json",
    .verbs = verb_rows,
    .verb = offsetof(quantize_options, verb),
};

static int check_options(quantizing *q)
{
    const quantize_options *o = &q->options;
    if (o->shard && option_parse_shard("--shard", o->shard, &q->part, &q->parts) != 0)
        return EXIT_USAGE;
    if (q->files.count == 0)
        return tool_usage(o->merge ? "no file of ranges given" : "no MODEL given");
    const bool pair = o->verb && !strcmp(o->verb, "evaluate");
    if (pair && q->files.count != 2)
        return tool_usage("evaluate takes two files: the float MODEL and the quantized one");
    if (pair && o->output)
        return tool_usage("evaluate writes no model: leave -o out");
    if (!pair && !o->merge && q->files.count > 1)
        return tool_usage("one MODEL at a time; -o %s writes the quantized one there",
                          q->files.items[1]);
    if (o->verb && (!strcmp(o->verb, "suggest") || !strcmp(o->verb, "calibrate")) &&
        gates_asked(o))
        return tool_usage("%s makes no model, on which a gate could be judged", o->verb);
    if (o->carries.count > 0 && o->shard && o->steps == 0)
        return tool_usage("--shard takes steps of one sequence apart; with --steps N each sample "
                          "is a sequence of its own");
    return check_streams(q);
}

static int run_verb(quantizing *q)
{
    char list[200] = "";
    for (size_t i = 0, at = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (!strcmp(verbs[i].name, q->options.verb))
            return verbs[i].run(q);
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", verbs[i].name);
    }
    return tool_usage("'%s' suits this model, which this version lacks; it has %s",
                      q->options.verb, list);
}

/* Where the model will lie, which has room for it; a pipe says nothing of that. */
static char *folder_of(const char *output)
{
    const char *temporary = getenv("TMPDIR");
    if (output == NULL || !strcmp(output, "-"))
        return tool_strdup(temporary != NULL && *temporary != '\0' ? temporary : "/tmp");
    char *path = tool_strdup(output), *folder = tool_strdup(dirname(path));
    free(path);
    return folder;
}

static int run(quantizing *q)
{
    int status = settings_new_env(&q->options.settings, &q->env);
    q->path = q->files.items[0];
    q->folder = folder_of(q->options.output);
    if (status == 0)
        status = labels_spool(q->options.labels);
    if (status == 0 && q->options.output != NULL)
        status = scratch_try(q->options.output);
    if (status == 0 && q->options.verb == NULL)
        status = suggest_verb(q);
    return status == 0 ? run_verb(q) : status;
}

int main(int argc, char **argv)
{
    quantizing q = {.options = {.min_sqnr = -1, .min_part_sqnr = -1, .min_cosine = -1,
                                .min_top1 = -1, .margin = -1, .max_drop = -1,
                                .keep_sensitive = -1},
                    .rows = quantize_rows};
    tool_init("ort-quantize");
    settings_init(&q.options.settings);
    int status = options_parse(&table_of_options, argc, argv, &q.options, &q.files);
    if (status == 0)
        status = settings_resolve(&q.options.settings);
    if (status == 0)
        status = check_options(&q);
    if (status == 0) {
        status = run(&q);
        samples_close(&q.samples);
        if (q.sample_file != NULL)
            fclose(q.sample_file);
        ort_model_free(q.made);
        ort_model_free(q.original);
        ort_env_free(q.env);
        free(q.folder);
        free(q.choice);
        free(q.kept.index);
        json_object_put(q.kept_float);
        operations_release(&q.options.operations);
    }
    options_release(&table_of_options, &q.options, &q.files);
    return tool_finish(status < 0 ? 0 : status);
}
