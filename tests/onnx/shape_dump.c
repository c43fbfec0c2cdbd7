/* shape_dump.c - infers the shapes of many models in one process, for check_shapes.py; --prepare
 * makes a session of each instead, for check_types.py.
 *
 * stdin:  for each model a line with its size in bytes, then its bytes.
 * stdout: for each model a line with the size of an answer in bytes, then the answer: the report
 * ORT_REPORT_SHAPES, or a line that begins with '!' and says why there is none. Errors that the
 * check found (contradictions between shapes among them) follow the report, a line each that begins
 * with '!'. With --prepare the answer is empty when there is a session.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort.h"

/* The size of the next model, -1 at the end. */
static long long read_size(void)
{
    long long size;
    return scanf("%lld", &size) == 1 && getchar() == '\n' ? size : -1;
}

static ort_status describe(ort_env *env, const void *bytes, size_t count, char **report,
                           ort_findings **findings, ort_error *err)
{
    /* for models stripped of their weights */
    const ort_load_options bare = {.size = sizeof bare, .skeleton = true};
    ort_model *model = NULL;
    ort_status status = ort_model_load_memory(env, bytes, count, NULL, &model, err);
    if (status == ORT_ERROR_MODEL)
        status = ort_model_load_memory(env, bytes, count, &bare, &model, err);
    if (status == ORT_OK)
        status = ort_model_report(model, ORT_REPORT_SHAPES, report, err);
    if (status == ORT_OK)
        status = ort_model_check(model, findings, err);
    ort_model_free(model);
    return status;
}

/* No pass may run: it might take away the node in question. */
static ort_status prepare(ort_env *env, const void *bytes, size_t count, ort_error *err)
{
    ort_session_options options;
    ort_model *model = NULL;
    ort_session *session = NULL;
    ort_session_options_init(&options);
    options.level = 0;
    ort_status status = ort_model_load_memory(env, bytes, count, NULL, &model, err);
    if (status == ORT_OK)
        status = ort_session_new(env, model, &options, &session, err);
    ort_session_free(session);
    ort_model_free(model);
    return status;
}

static void put_findings(FILE *out, const ort_findings *findings)
{
    for (size_t i = 0; findings && i < ort_findings_count(findings); i++)
        if (ort_findings_severity(findings, i) == ORT_FINDING_ERROR)
            fprintf(out, "!%s\n", ort_findings_message(findings, i));
}

static void answer(ort_env *env, bool preparing, const void *bytes, size_t count)
{
    ort_error err = {0};
    ort_findings *findings = NULL;
    char *report = NULL, *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        exit(1);
    if (preparing ? prepare(env, bytes, count, &err)
                  : describe(env, bytes, count, &report, &findings, &err))
        fprintf(out, "!%s\n", err.message);
    else if (!preparing)
        fprintf(out, "%s", report);
    put_findings(out, findings);
    fclose(out);
    printf("%zu\n%s", size, text);
    fflush(stdout);
    free(text);
    ort_text_free(report);
    ort_findings_free(findings);
}

int main(int argc, char **argv)
{
    ort_error err = {0};
    ort_env *env = NULL;
    bool preparing = argc > 1 && !strcmp(argv[1], "--prepare");
    if (ort_env_new(NULL, &env, &err)) {
        fprintf(stderr, "shape_dump: %s\n", err.message);
        return 1;
    }
    for (long long size; (size = read_size()) >= 0;) {
        void *bytes = malloc((size_t)size + 1);
        if (!bytes || fread(bytes, 1, (size_t)size, stdin) != (size_t)size) {
            fprintf(stderr, "shape_dump: a model of %lld bytes ends early\n", size);
            return 1;
        }
        answer(env, preparing, bytes, (size_t)size);
        free(bytes);
    }
    ort_env_free(env);
    return 0;
}
