/* verb_calibrate.c - ort-quantize calibrate: ranges of values as a file, so that several machines
 * see samples and one makes the model.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/whole_file.h"
#include "ranges.h"

static int write_ranges(const quantizing *q, const ort_ranges *ranges)
{
    ort_error err = {0};
    char *text = NULL;
    if (ort_ranges_write(ranges, &text, &err) != ORT_OK)
        return tool_fail(&err);
    int status = whole_file_text(q->options.output, text);
    ort_text_free(text);
    return status;
}

static int see_samples(quantizing *q, ort_ranges *ranges)
{
    ort_quantize_options options;
    ort_quantizer *quantizer = NULL;
    ort_error err = {0};
    ort_quantize_options_init(&options);
    options.observer = observer_named(q->options.observer, options.observer);
    options.without_passes = q->options.no_passes;
    options.keep_fused = q->options.keep_fused;
    options.equalize = q->options.equalize;
    options.threads = q->options.settings.thread_count;
    int status = load_original(q, LOAD_AS_STORED);
    if (status == 0)
        status = prepare_samples(q);
    if (status != 0)
        return status;
    if (ort_quantizer_new(q->env, q->original, &options, &quantizer, &err) != ORT_OK)
        return tool_fail_in(q->path, &err);
    status = ranges_learn(q, quantizer);
    if (status == 0 && ort_quantizer_ranges(quantizer, ranges, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    ort_quantizer_free(quantizer);
    if (q->options.random)
        ort_ranges_set_made_up(ranges);
    return status;
}

int verb_calibrate(quantizing *q)
{
    ort_ranges *ranges = NULL;
    ort_error err = {0};
    int status = 0;
    if (q->options.merge)
        status = ranges_load(&q->files, &ranges);
    else if (q->options.inputs.count == 0 && !q->options.random)
        return tool_usage("calibration takes samples: -i FILE, or --random SEED for made-up ones");
    else if (ort_ranges_new(&ranges, &err) != ORT_OK)
        status = tool_fail(&err);
    else
        status = see_samples(q, ranges);
    if (status == 0)
        status = write_ranges(q, ranges);
    ort_ranges_free(ranges);
    return status;
}
