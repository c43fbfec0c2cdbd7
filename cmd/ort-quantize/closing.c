/* closing.c - what every verb ends with. The model is written into a folder beside its place,
 * loaded again from there as any reader would, made into a session (which binds each of its nodes),
 * and run on every sample. It takes its place when all of that went well.
 */
#include "common/apart.h"
#include "common/scratch.h"
#include "quantize.h"

#include <stdlib.h>
#include <string.h>

static int reopen(quantizing *q, const char *path, ort_model **model, ort_session **session)
{
    ort_session_options options;
    ort_error err = {0};
    settings_session_options(&q->options.settings, &options);
    if (ort_model_load(q->env, path, NULL, model, &err) != ORT_OK ||
        ort_session_new(q->env, *model, &options, session, &err) != ORT_OK)
        return tool_fail_in("the quantized model", &err);
    return 0;
}

static ort_status run_once(void *arg, ort_value *const *inputs, size_t count, ort_error *err)
{
    const ort_session *session = arg;
    size_t outputs = ort_session_output_count(session);
    ort_value **results = calloc(outputs + 1, sizeof *results);
    ort_status status = ORT_ERROR_MEMORY;
    if (results != NULL)
        status = ort_session_run(session, NULL, inputs, count, NULL, results, outputs, NULL, err);
    for (size_t i = 0; i < outputs && results != NULL; i++)
        ort_value_free(results[i]);
    free(results);
    return status;
}

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
    ort_model *model = NULL;
    ort_session *session = NULL;
    samples_close(&q->samples);
    int status = settings_new_env(&q->options.settings, &q->env);
    if (status == 0)
        status = reopen(q, path, &model, &session);
    if (status == 0)
        status = each_sample(q, "checking", run_once, session);
    ort_session_free(session);
    ort_model_free(model);
    return status;
}

int closing_save(quantizing *q)
{
    scratch place = {0};
    ort_error err = {0};
    const char *output = q->options.output;
    if (output && !strcmp(output, "-") &&
        !tool_may_write_binary(stdout, q->options.settings.force))
        return EXIT_USAGE;
    int status = scratch_open(&place, output ? output : "-");
    if (status != 0)
        return status;
    if (ort_model_save(q->made, place.model, NULL, &err) != ORT_OK)
        status = tool_fail(&err);
    ort_model_free(q->made);
    q->made = NULL;
    if (status == 0)
        status = apart("the check of the quantized model", check_file,
                       &(written){q, place.model}, NULL);
    if (output == NULL) /* a trial: nothing is kept */
        return scratch_drop(&place, status);
    return scratch_close(&place, status);
}
