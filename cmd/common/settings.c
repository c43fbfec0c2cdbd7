/* settings.c - resolves the shared options and builds environments and models from them. */
#include "common/settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/progress.h"

void settings_init(settings *s)
{
    memset(s, 0, sizeof *s);
    s->spin_us = -1;
    s->default_level = 3;
}

static int check_log(const char *log)
{
    static const char *const words[] = {"warning", "info", "debug"};
    for (size_t i = 0; log != NULL && i < sizeof words / sizeof *words; i++)
        if (!strcmp(log, words[i]))
            return 0;
    return log == NULL ? 0 : tool_usage("ORT_LOG: '%s' is none of warning, info, debug", log);
}

static void list_providers(char *text, size_t room)
{
    const char *name;
    for (int i = 0; (name = ort_provider_name(i)) != NULL; i++) {
        size_t used = strlen(text);
        snprintf(text + used, room - used, "%s%s", i > 0 ? "|" : "", name);
    }
}

/* Libraries may bring others: check_providers knows when these were opened. */
static bool are_providers(const char *list)
{
    for (;;) {
        size_t length = strcspn(list, ",");
        if (strcspn(list, ",:") == 0)
            return false;
        if (list[length] == '\0')
            return true;
        list += length + 1;
    }
}

const option_words settings_providers = {list_providers, are_providers};

const char *settings_provider(const settings *s)
{
    return s->provider != NULL ? s->provider : ort_provider_name(0);
}

/* ---- the rows: values of the environment, --settings */

#define OPTION_TARGET settings
const option_row settings_run_rows[] = {
#define OPTION OPTION_ROW
#define GROUP OPTION_HEADING
#include "common/settings_run.def"
    {0},
};
enum { ROW_COUNT = sizeof settings_run_rows / sizeof *settings_run_rows - 1 };

const option_row settings_talk_rows[] = {
#define OPTION OPTION_ROW
#define GROUP OPTION_HEADING
#include "common/settings_talk.def"
    {0},
};

static const char *source(const settings *s, const char *name)
{
    for (int i = 0; i < ROW_COUNT; i++)
        if (!strcmp(settings_run_rows[i].name, name) && s->from_variable & 1u << i)
            return settings_run_rows[i].variable;
    return "option";
}

/* Names that nobody has, and their options. Without libraries that is known before any work. */
static int check_providers(const settings *s, const ort_env *env)
{
    ort_error err = ORT_ERROR_INIT;
    const char *path = getenv("ORT_PROVIDER_PATH");
    bool later = s->provider_libs.count > 0 || (path != NULL && path[0] != '\0');
    ort_status status = s->provider == NULL || (env == NULL && later) ? ORT_OK
                        : env != NULL ? ort_env_providers_check(env, s->provider, &err)
                                      : ort_providers_check(s->provider, &err);
    const char *given = source(s, "provider");
    return status == ORT_OK ? 0
                            : tool_usage("%s: %s", strcmp(given, "option") ? given : "--provider",
                                         err.message);
}

static const char *source_or_default(const settings *s, const char *name, const char *value)
{
    return value != NULL ? source(s, name) : "default";
}

/* What no option says, the variable of its row does. */
static int take_variables(settings *s)
{
    for (int i = 0; i < ROW_COUNT; i++) {
        const option_row *row = &settings_run_rows[i];
        const char **value = (const char **)((char *)s + row->offset);
        const char *given = row->variable != NULL ? getenv(row->variable) : NULL;
        if (given == NULL || given[0] == '\0' || *value != NULL)
            continue;
        *value = given;
        s->from_variable |= 1u << i;
        int status = option_check_variable(row, given);
        if (status != 0)
            return status;
    }
    return 0;
}

typedef struct printer {
    bool json;
    int count;
} printer;

/* One line, a width for the longest name; or a member of a JSON list. */
static void print_text(printer *p, const char *name, const char *value, const char *from)
{
    if (!p->json) {
        printf("%-18s %-10s %s\n", name, value, from);
        return;
    }
    printf("%s\n  {\"name\": \"%s\", \"value\": ", p->count++ > 0 ? "," : "", name);
    tool_json_string(stdout, value);
    printf(", \"source\": \"%s\"}", from);
}

/* A value that was given, as text; NULL: none was. */
static const char *value_text(const option_row *row, const settings *s, char text[32])
{
    const void *at = (const char *)s + row->offset;
    text[0] = '\0';
    switch (row->kind) {
    case OPTION_FLAG:
        return *(const bool *)at ? "yes" : NULL;
    case OPTION_STRING:
        return *(const char *const *)at;
    case OPTION_SIZE:
        if (*(const size_t *)at > 0)
            snprintf(text, 32, "%zu", *(const size_t *)at);
        break;
    case OPTION_INT:
        if (*(const int64_t *)at >= 0)
            snprintf(text, 32, "%" PRId64, *(const int64_t *)at);
        break;
    default:
        if (*(const double *)at > 0)
            snprintf(text, 32, "%g", *(const double *)at);
        break;
    }
    return text[0] != '\0' ? text : NULL;
}

/* A line; of a list, one for each of its values. `shown` has what no option said, too. */
static void print_row(printer *p, const option_row *row, const settings *s, const settings *shown)
{
    char text[32], otherwise[32];
    if (row->kind == OPTION_LIST || row->kind == OPTION_SPLIT) {
        const string_list *list = (const void *)((const char *)s + row->offset);
        for (size_t i = 0; i < list->count; i++)
            print_text(p, row->name, list->items[i], "option");
        return;
    }
    const char *given = value_text(row, s, text), *value = value_text(row, shown, otherwise);
    if (value == NULL)
        value = row->otherwise != NULL ? row->otherwise : row->kind == OPTION_FLAG ? "no" : "none";
    print_text(p, row->name, value, source_or_default(s, row->name, given));
}

/* What is resolved: by the environment that was made, by the tool. */
static void print_each(const settings *s, const ort_env *env, printer *p)
{
    settings shown = *s;
    char threads[24], level[24];
    snprintf(threads, sizeof threads, "%d", ort_env_threads(env));
    snprintf(level, sizeof level, "%d", s->level_number < 0 ? s->default_level : s->level_number);
    shown.threads = threads;
    shown.provider = settings_provider(s);
    shown.isa = ort_env_isa(env);
    shown.level = level;
    shown.spin_us = s->spin_us < 0 ? ORT_DEFAULT_SPIN_US : s->spin_us;
    for (int i = 0; i < ROW_COUNT; i++)
        if (settings_run_rows[i].kind != OPTION_GROUP &&
            settings_run_rows[i].offset != offsetof(settings, show_settings))
            print_row(p, &settings_run_rows[i], s, &shown);
}

static void print_settings(const settings *s, const ort_env *env)
{
    printer p = {.json = s->json};
    if (s->json) {
        tool_reported();
        printf("{\"schema\": \"%s/1\", \"settings\": [", tool_name());
    }
    print_each(s, env, &p);
    if (s->json)
        printf("\n]}\n");
}

enum { MOST_PASSES = 256 };

static int unknown_pass(const char *given)
{
    const char *names[MOST_PASSES];
    char meant[300];
    size_t count = 0;
    while (count < MOST_PASSES && ort_pass_name((int)count, NULL, NULL) != NULL) {
        names[count] = ort_pass_name((int)count, NULL, NULL);
        count++;
    }
    return tool_usage("no pass is named '%s'%s; ort-optimize --list-passes lists them", given,
                      ort_did_you_mean(given, names, count, meant, sizeof meant));
}

/* A name that no pass has, also where no pass is run. */
static int check_passes(const string_list *names)
{
    for (size_t i = 0; i < names->count; i++) {
        const char *name;
        int at = 0;
        while ((name = ort_pass_name(at, NULL, NULL)) != NULL && strcmp(name, names->items[i]))
            at++;
        if (name == NULL)
            return unknown_pass(names->items[i]);
    }
    return 0;
}

static int show_settings(const settings *s)
{
    ort_env *env;
    int status = settings_new_env(s, &env);
    if (status != 0)
        return status;
    print_settings(s, env);
    ort_env_free(env);
    return -1;
}

int settings_resolve(settings *s)
{
    int64_t threads = 0;
    int status;
    tool_set_quiet(s->quiet);
    tool_set_strict(s->strict);
    const char *log = getenv("ORT_LOG");
    log = log != NULL && log[0] != '\0' ? log : NULL;
    if ((status = check_passes(&s->disable)) != 0 || (status = take_variables(s)) != 0 ||
        (status = check_log(log)) != 0 || (status = check_providers(s, NULL)) != 0)
        return status;
    if (log != NULL && s->verbose == 0)
        s->verbose = !strcmp(log, "debug") ? 2 : !strcmp(log, "info") ? 1 : 0;
    const char *from = source(s, "threads");
    if (s->threads != NULL &&
        (status = option_parse_int(!strcmp(from, "option") ? "--threads" : from, s->threads, 1,
                                   4096, &threads)) != 0)
        return status;
    s->thread_count = (int)threads;
    s->level_number = s->level != NULL ? s->level[0] - '0' : -1;
    return s->show_settings ? show_settings(s) : 0;
}

static void log_to_stderr(void *arg, ort_log_level level, const char *message)
{
    static char last[1024]; /* a warning of each model that is tried says no more than the first */
    const bool warns = level == ORT_LOG_WARNING;
    flockfile(stderr);
    if (warns)
        tool_set_warned();
    if (level != ORT_LOG_QUIET && !(warns && !strncmp(last, message, sizeof last - 1)))
        fprintf(stderr, "%s: %s\n", tool_name(), message);
    if (warns)
        snprintf(last, sizeof last, "%s", message);
    funlockfile(stderr);
}

static int add_libraries(const settings *s, ort_env *env)
{
    ort_error err = ORT_ERROR_INIT;
    for (size_t i = 0; i < s->ops_libs.count; i++)
        if (ort_env_add_ops_library(env, s->ops_libs.items[i], &err) != ORT_OK)
            return tool_fail_in("--ops-lib", &err);
    for (size_t i = 0; i < s->provider_libs.count; i++)
        if (ort_env_add_provider_library(env, s->provider_libs.items[i], &err) != ORT_OK)
            return tool_fail_in("--provider-lib", &err);
    if (ort_env_find_providers(env, s->provider, &err) != ORT_OK)
        return tool_fail_in("ORT_PROVIDER_PATH", &err);
    return check_providers(s, env);
}

int settings_new_env(const settings *s, ort_env **env)
{
    ort_env_options options;
    ort_error err = {0};
    ort_env_options_init(&options);
    options.threads = s->thread_count;
    options.pin = s->pin;
    options.spin_us = (int)s->spin_us;
    options.isa = s->isa;
    options.keep_denormals = s->denormals != NULL && !strcmp(s->denormals, "keep");
    options.math_strict = s->math != NULL && !strcmp(s->math, "strict");
    options.math_fast = s->math != NULL && !strcmp(s->math, "fast");
    options.max_memory_bytes = s->max_memory;
    options.limit_all = true;
    options.log = log_to_stderr;
    options.log_level = s->quiet          ? s->strict ? ORT_LOG_WARNING : ORT_LOG_QUIET
                        : s->verbose == 0 ? ORT_LOG_WARNING
                        : s->verbose == 1 ? ORT_LOG_INFO
                                          : ORT_LOG_DEBUG;
    if (ort_env_new(&options, env, &err) != ORT_OK)
        return tool_fail(&err);
    ort_env_limit_loading(*env, s->timeout, NULL);
    int status = add_libraries(s, *env);
    if (status != 0) {
        ort_env_free(*env);
        *env = NULL;
        return status;
    }
    if (s->verbose > 0)
        fprintf(stderr, "%s: threads %d (%s), isa %s (%s), provider %s (%s)\n", tool_name(),
                ort_env_threads(*env), source_or_default(s, "threads", s->threads),
                ort_env_isa(*env), source_or_default(s, "isa", s->isa), settings_provider(s),
                source_or_default(s, "provider", s->provider));
    return 0;
}

static int apply_dim(ort_model *model, const char *text)
{
    ort_error err = {0};
    char *name;
    const char *value;
    int64_t size;
    if (!split_assignment(text, &name, &value))
        return tool_usage("--dim: '%s' is not NAME=N", text);
    int status = option_parse_int("--dim", value, 0, INT64_MAX, &size);
    if (status == 0 && ort_model_set_dim(model, name, size, &err) != ORT_OK)
        status = tool_fail(&err);
    free(name);
    return status;
}

static int apply_shape(ort_model *model, const char *text)
{
    ort_error err = {0};
    int64_t dims[16];
    const char *colon = strrchr(text, ':');
    if (colon == NULL)
        return tool_usage("--shape: '%s' is not NAME:1x3x224x224", text);
    int rank = option_parse_dims("--shape", colon + 1, dims, 16);
    if (rank < 0)
        return EXIT_USAGE;
    char *name = tool_strndup(text, (size_t)(colon - text));
    int status = 0;
    if (ort_model_set_shape(model, name, rank, dims, &err) != ORT_OK)
        status = tool_fail(&err);
    free(name);
    return status;
}

/* With --strict what the check warns of is said, and ends the tool with EXIT_GATE. Its errors are
 * those of whoever uses the model next. */
static int warn_of(const settings *s, const char *path, const ort_model *model)
{
    ort_error err = {0};
    ort_findings *findings = NULL;
    if (!s->strict)
        return 0;
    if (ort_model_check(model, &findings, &err) != ORT_OK)
        return tool_fail_in(path, &err);
    for (size_t i = 0; i < ort_findings_count(findings); i++)
        if (ort_findings_severity(findings, i) == ORT_FINDING_WARNING)
            tool_warn("%s: %s", path, ort_findings_message(findings, i));
    ort_findings_free(findings);
    return 0;
}

int settings_check_file(const settings *s, ort_env *env, const char *path)
{
    ort_model *model = NULL;
    int status = s->strict ? settings_load_model(s, env, path, LOAD_AS_STORED, &model) : 0;
    ort_model_free(model);
    return status;
}

int settings_load_model(const settings *s, ort_env *env, const char *path, load_weights weights,
                        ort_model **model)
{
    ort_error err = {0};
    ort_load_options options = {.size = sizeof options,
                                .skeleton = weights == LOAD_SKELETON,
                                .as_stored = weights == LOAD_AS_STORED,
                                .in_pieces = weights == LOAD_AS_STORED,
                                .allow_newer = s->allow_newer,
                                .external_root = s->external_root};
    int status = 0;
    progress p;
    progress_wait(&p, "reading the model", s->no_progress || s->quiet);
    ort_status read = ort_model_load(env, path, &options, model, &err);
    progress_end(&p);
    if (read != ORT_OK)
        return tool_fail_in(path, &err);
    status = warn_of(s, path, *model);
    for (size_t i = 0; i < s->dims.count && status == 0; i++)
        status = apply_dim(*model, s->dims.items[i]);
    for (size_t i = 0; i < s->shapes.count && status == 0; i++)
        status = apply_shape(*model, s->shapes.items[i]);
    if (status != 0) {
        ort_model_free(*model);
        *model = NULL;
    }
    return status;
}

void settings_session_options(const settings *s, ort_session_options *options)
{
    ort_session_options_init(options);
    options->level = s->level_number;
    options->disable = s->disable.items;
    options->providers = s->provider;
    options->strict = s->strict;
    options->allow_newer = s->allow_newer;
    options->external_root = s->external_root;
}

bool split_assignment(const char *text, char **name, const char **value)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return false;
    *name = tool_strndup(text, (size_t)(equals - text));
    *value = equals + 1;
    return true;
}

size_t count_dashes(const string_list *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t length = strlen(list->items[i]);
        count += !strcmp(list->items[i], "-") ||
                 (length > 1 && !strcmp(list->items[i] + length - 2, "=-"));
    }
    return count;
}
