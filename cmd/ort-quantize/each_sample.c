/* each_sample.c - every sample handed to one function, with progress. */
#include <stdio.h>
#include <string.h>

#include "common/spool.h"
#include "quantize.h"

static int open_samples(quantizing *q)
{
    quantize_options *o = &q->options;
    o->operations.settings = &o->settings;
    const sample_options options = {
        .from = {.inputs = &o->inputs, .random = o->random, .stream = o->stream,
                 .format = o->from != NULL ? ort_format_parse(o->from) : ORT_FORMAT_AUTO,
                 .drops = &o->drops, .operations = &o->operations},
        .most = o->samples, .kept = q->sample_file, .kept_count = q->sample_count,
        .verbose = o->settings.verbose > 0,
        .partial = q->unrolling, .rows = o->rows, .part = q->part, .parts = q->parts};
    return samples_open(&q->samples, &options, q->env, q->original, q->path);
}

int next_sample(quantizing *q, bool *end)
{
    int status = q->samples.session == NULL ? open_samples(q) : 0;
    return status != 0 ? status : samples_next(&q->samples, end);
}

int spool_samples(quantizing *q)
{
    const string_list *inputs = &q->options.inputs;
    int status = 0;
    progress_wait(&q->progress, "reading samples", is_quiet(q));
    for (size_t i = 0; i < inputs->count && status == 0; i++) {
        const char *copy, *equals = strchr(inputs->items[i], '=');
        const char *path = equals != NULL ? equals + 1 : inputs->items[i];
        if (spool_is_needed(path))
            status = spool_file(path, &copy);
    }
    progress_end(&q->progress);
    return status;
}

int each_sample(quantizing *q, const char *what, sample_fn *fn, void *arg)
{
    ort_error err = {0};
    bool end = false;
    int status = 0;
    if (q->samples.session == NULL)
        status = open_samples(q);
    progress_wait(&q->progress, what, is_quiet(q));
    while (status == 0 && (status = samples_next(&q->samples, &end)) == 0 && !end) {
        if (fn(arg, q->samples.given, q->samples.given_count, &err) != ORT_OK)
            status = samples_fail(&q->samples, q->path, &err);
        progress_share(&q->progress, q->samples.at, samples_share(&q->samples));
    }
    progress_end(&q->progress);
    if (status == 0 && q->options.settings.verbose > 0)
        fprintf(stderr, "%s: %zu samples, digest %s\n", what, q->samples.at,
                samples_digest(&q->samples));
    return status;
}
