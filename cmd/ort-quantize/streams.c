/* streams.c - what comes from standard input and goes to standard output: one thing of each. */
#include <string.h>

#include "quantize.h"

static bool is_dash(const char *path)
{
    return path != NULL && !strcmp(path, "-");
}

bool takes_stdout(const quantize_options *o)
{
    return is_dash(o->output) || is_dash(o->assignment) || is_dash(o->plot);
}

int check_streams(const quantizing *q)
{
    const quantize_options *o = &q->options;
    const int beside = is_dash(o->labels) + is_dash(o->include_from) + is_dash(o->exclude_from) +
                       is_dash(o->overrides);
    if (count_dashes(&q->files) + count_dashes(&o->inputs) + count_dashes(&o->ranges) +
            (size_t)beside > 1)
        return tool_usage(beside > 0 || o->ranges.count > 0
                              ? "only one of the model, samples and files of options comes "
                                "from stdin"
                              : "the model and the samples can't both come from stdin");
    if (is_dash(o->output) + is_dash(o->assignment) + is_dash(o->plot) > 1)
        return tool_usage("only one of the model, --assignment and --plot goes to stdout");
    if (o->settings.json && takes_stdout(o))
        return tool_usage("%s and the JSON report can't both go to stdout",
                          is_dash(o->output) ? "the model"
                          : is_dash(o->plot) ? "--plot" : "--assignment");
    return 0;
}
