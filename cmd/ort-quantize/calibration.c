/* calibration.c - a child runs the samples and hands over their ranges as the text that calibrate
 * writes, which gives the same bits again; before it stand the observer, the number of samples and
 * their digest.
 */
#include "calibration.h"

#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "common/apart.h"

typedef struct seeing {
    quantizing *q;
    const ort_quantize_options *options;
    bool chooses;
} seeing;

static int hand_over(const seeing *s, const ort_quantizer *quantizer, FILE *result)
{
    quantizing *q = s->q;
    ort_ranges *ranges = NULL;
    ort_observer observer = s->options->observer;
    ort_error err = {0};
    char *text = NULL;
    int status = 0;
    if (ort_ranges_new(&ranges, &err) != ORT_OK ||
        ort_quantizer_ranges(quantizer, ranges, &err) != ORT_OK ||
        ort_ranges_write(ranges, &text, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    if (status == 0 && s->chooses)
        status = choose_observer(q, s->options, ranges, &observer);
    if (status == 0) {
        fprintf(result, "%d\n", (int)observer);
        samples_write(&q->samples, result);
    }
    if (status == 0 && fputs(text, result) == EOF)
        status = tool_error(ORT_ERROR_IO, "ranges can't be handed over");
    ort_text_free(text);
    ort_ranges_free(ranges);
    return status;
}

static int see(void *arg, FILE *result)
{
    const seeing *s = arg;
    quantizing *q = s->q;
    ort_quantizer *quantizer = NULL;
    ort_error err = {0};
    int status = settings_new_env(&q->options.settings, &q->env);
    if (status != 0)
        return status;
    if (ort_quantizer_new(q->env, q->original, s->options, &quantizer, &err) != ORT_OK)
        return tool_fail_in(q->path, &err);
    status = ranges_learn(q, quantizer);
    return status == 0 ? hand_over(s, quantizer, result) : status;
}

static int take_over(quantizing *q, FILE *result, ort_observer *observer, ort_ranges **ranges)
{
    ort_error err = {0};
    int number;
    if (fscanf(result, "%d ", &number) != 1 || !samples_read(&q->samples, result))
        return tool_error(ORT_ERROR_RUN, "calibration handed over nothing");
    *observer = (ort_observer)number;
    q->samples.random = q->options.random != NULL;
    if (ort_ranges_new(ranges, &err) != ORT_OK)
        return tool_fail(&err);
    return ranges_read(result, "calibration", *ranges);
}

int calibration_apart(quantizing *q, const ort_quantize_options *options, bool chooses,
                      ort_observer *observer, ort_ranges **ranges)
{
    FILE *result = NULL;
    *ranges = NULL;
    int status = spool_samples(q);
    if (status == 0)
        status = make_up_samples(q);
    if (status == 0)
        status = apart("calibration", see, &(seeing){q, options, chooses}, &result);
    if (status == 0)
        status = take_over(q, result, observer, ranges);
    if (result != NULL)
        fclose(result);
    return status;
}
