/* closing.c - what every verb ends with. The model is written into a folder beside its place,
 * loaded again from there as any reader would, made into a session (which binds each of its nodes),
 * and run on every sample beside the float one, which gives the report. It takes its place when all
 * of that went well and every gate passed.
 */
#include "common/apart.h"
#include "common/scratch.h"
#include "evaluation.h"

#include <stdlib.h>
#include <string.h>

typedef struct written {
    quantizing *q;
    const char *path;
} written;

/* Alone: with an environment of its own, and the model that was made gone. */
static int check_file(void *arg, FILE *result)
{
    const written *w = arg;
    quantizing *q = w->q;
    const char *path = w->path;
    (void)result;
    samples_close(&q->samples);
    int status = settings_new_env(&q->options.settings, &q->env);
    const char *name = q->options.output ? q->options.output : "the quantized model";
    return status != 0 ? status : evaluate_file(q, path, name);
}

int closing_save(quantizing *q)
{
    scratch place = {0};
    ort_error err = {0};
    const char *output = q->options.output;
    if (output && !strcmp(output, "-") &&
        !tool_may_write_binary(stdout, q->options.settings.force))
        return EXIT_USAGE;
    int status = stamp_made(q);
    if (status == 0)
        status = scratch_open(&place, output ? output : "-");
    if (status != 0)
        return status;
    progress_wait(&q->progress, "writing", is_quiet(q));
    if (ort_model_save(q->made, place.model, NULL, &err) != ORT_OK)
        status = tool_fail(&err);
    progress_end(&q->progress);
    ort_model_free(q->made);
    q->made = NULL;
    if (status == 0)
        status = apart("the check of the quantized model", check_file,
                       &(written){q, place.model}, NULL);
    if (status == 0)
        status = tool_strict_status();
    if (output == NULL) /* a trial: nothing is kept */
        return scratch_drop(&place, status);
    return scratch_close(&place, status);
}
