/* verdicts.c - what ort-inspect --check and a session say of many models, in one process, for
 * check_models.py.
 *
 * stdin: a path per line. stdout: a line per path, fields separated by tabs: the gravest finding of
 * the check ("none", "note", "warning", "error"; "refused" when the model can't even be read), its
 * message, the status of making a session ("0": made), its message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort.h"

static const char *const severities[] = {"note", "warning", "error"};

/* A message in one field of one line. */
static void put(const char *text)
{
    for (; *text; text++)
        putchar(*text == '\n' || *text == '\t' || *text == '\r' ? ' ' : *text);
}

static void put_check(const ort_model *model)
{
    ort_error err = {0};
    ort_findings *findings = NULL;
    if (ort_model_check(model, &findings, &err) != ORT_OK) {
        printf("refused\t");
        put(err.message);
        return;
    }
    size_t gravest = SIZE_MAX;
    for (size_t i = 0; i < ort_findings_count(findings); i++)
        if (gravest == SIZE_MAX || ort_findings_severity(findings, i) >
                                       ort_findings_severity(findings, gravest))
            gravest = i;
    printf("%s\t", gravest == SIZE_MAX
                       ? "none"
                       : severities[ort_findings_severity(findings, gravest)]);
    if (gravest != SIZE_MAX)
        put(ort_findings_message(findings, gravest));
    ort_findings_free(findings);
}

/* No pass may run: it might take away the node in question. */
static void put_session(ort_env *env, ort_model *model)
{
    ort_error err = {0};
    ort_session_options options;
    ort_session *session = NULL;
    ort_session_options_init(&options);
    options.level = 0;
    ort_status status = ort_session_new(env, model, &options, &session, &err);
    printf("\t%d\t", (int)status);
    put(err.message);
    ort_session_free(session);
}

/* As ort-inspect loads it. */
static void judge(ort_env *env, const char *path)
{
    ort_load_options options = ORT_LOAD_OPTIONS_INIT;
    ort_error err = {0};
    ort_model *model = NULL;
    options.as_stored = true;
    ort_status status = ort_model_load(env, path, &options, &model, &err);
    if (status != ORT_OK) {
        printf("refused\t");
        put(err.message);
        printf("\t%d\t", (int)status);
        put(err.message);
    } else {
        put_check(model);
        put_session(env, model);
    }
    putchar('\n');
    fflush(stdout);
    ort_model_free(model);
}

int main(void)
{
    char path[4096];
    ort_error err = {0};
    ort_env *env = NULL;
    if (ort_env_new(NULL, &env, &err) != ORT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = '\0';
        judge(env, path);
    }
    ort_env_free(env);
    return 0;
}
