/* calibration.c - a child runs the samples and hands over their ranges as the text that calibrate
 * writes, which gives the same bits again; before it stand what was chosen, the number of samples
 * and their digest.
 */
#include "calibration.h"

#include <stdlib.h>
#include <string.h>

#include "chosen.h"
#include "common/apart.h"
#include "guard.h"

typedef struct seeing {
    quantizing *q;
    const ort_quantize_options *options;
    bool chooses;
} seeing;

static void write_choice(const choice *c, FILE *result)
{
    fprintf(result, "%d %d %d %zu", (int)c->observer, c->equalize, c->round, c->kept.count);
    for (size_t i = 0; i < c->kept.count; i++)
        fprintf(result, " %zu", c->kept.index[i]);
    fprintf(result, "\n");
}

static bool read_choice(choice *c, FILE *result)
{
    int observer, equalize, rounded;
    size_t count, index;
    if (fscanf(result, "%d %d %d %zu", &observer, &equalize, &rounded, &count) != 4)
        return false;
    c->observer = (ort_observer)observer;
    c->equalize = equalize != 0;
    c->round = rounded != 0;
    for (size_t i = 0; i < count; i++) {
        if (fscanf(result, "%zu", &index) != 1)
            return false;
        kept_nodes_add(&c->kept, index);
    }
    return true;
}

static int hand_over(const seeing *s, const ort_quantizer *quantizer, FILE *result)
{
    quantizing *q = s->q;
    ort_ranges *ranges = NULL;
    choice c = {.observer = s->options->observer, .equalize = s->options->equalize};
    ort_error err = {0};
    char *text = NULL;
    int status = 0;
    if (ort_ranges_new(&ranges, &err) != ORT_OK ||
        ort_quantizer_ranges(quantizer, ranges, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    if (status == 0 && s->chooses)
        status = choose(q, s->options, &ranges, &c);
    if (status == 0 && ort_ranges_write(ranges, &text, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    if (status == 0) {
        write_choice(&c, result);
        samples_write(&q->samples, result);
    }
    if (status == 0 && fputs(text, result) == EOF)
        status = tool_error(ORT_ERROR_IO, "ranges can't be handed over");
    ort_text_free(text);
    ort_ranges_free(ranges);
    free(c.kept.index);
    return status;
}

static int see(void *arg, FILE *result)
{
    const seeing *s = arg;
    quantizing *q = s->q;
    ort_quantizer *quantizer = NULL;
    settings own = q->options.settings;
    if (own.verbose == 0) { /* who makes the model warns */
        own.quiet = true;
        own.strict = false;
    }
    int status = settings_new_env(&own, &q->env);
    if (status == 0)
        status = chosen_quantizer(q, s->options, &quantizer);
    if (status == 0)
        status = ranges_learn(q, quantizer);
    return status == 0 ? hand_over(s, quantizer, result) : status;
}

static int take_over(quantizing *q, FILE *result, choice *c, ort_ranges **ranges)
{
    ort_error err = {0};
    if (!read_choice(c, result) || !samples_read(&q->samples, result))
        return tool_error(ORT_ERROR_RUN, "calibration handed over nothing");
    q->samples.random = q->options.random != NULL;
    if (ort_ranges_new(ranges, &err) != ORT_OK)
        return tool_fail(&err);
    return ranges_read(result, "calibration", *ranges);
}

int calibration_apart(quantizing *q, const ort_quantize_options *options, bool chooses,
                      choice *c, ort_ranges **ranges)
{
    FILE *result = NULL;
    *ranges = NULL;
    int status = apart("calibration", see, &(seeing){q, options, chooses}, &result);
    if (status == 0)
        status = take_over(q, result, c, ranges);
    if (result != NULL)
        fclose(result);
    return status;
}
