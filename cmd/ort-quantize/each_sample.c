/* each_sample.c - every sample handed to one function, with progress. */
#include "quantize.h"

int each_sample(quantizing *q, const char *what, sample_fn *fn, void *arg)
{
    const feed_options from = {.inputs = &q->options.inputs, .random = q->options.random};
    ort_error err = {0};
    bool end = false;
    int status = 0;
    if (q->samples.session == NULL)
        status = samples_open(&q->samples, &from, q->env, q->original, q->path);
    progress_begin(&q->progress, what, is_quiet(q));
    while (status == 0 && (status = samples_next(&q->samples, &end)) == 0 && !end) {
        if (fn(arg, q->samples.inputs, q->samples.count, &err) != ORT_OK)
            status = tool_fail_in(q->path, &err);
        progress_step(&q->progress, q->samples.at, 0);
    }
    progress_end(&q->progress);
    return status;
}
