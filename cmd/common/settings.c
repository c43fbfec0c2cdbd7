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

/* The flag's value, or the variable's, with the source. */
static const char *pick(const char *flag, const char *variable, const char **from)
{
    const char *value = getenv(variable);
    if (flag != NULL) {
        *from = "option";
        return flag;
    }
    if (value != NULL && value[0] != '\0') {
        *from = variable;
        return value;
    }
    *from = "default";
    return NULL;
}

/* What a message blames: the variable that gave the value, or the option. */
static const char *source_name(const char *from, const char *option)
{
    return strncmp(from, "ORT_", 4) == 0 ? from : option;
}

static int check_log(const char *log)
{
    static const char *const words[] = {"warning", "info", "debug"};
    for (size_t i = 0; log != NULL && i < sizeof words / sizeof *words; i++)
        if (strcmp(log, words[i]) == 0)
            return 0;
    return log == NULL ? 0 : tool_usage("ORT_LOG: '%s' is none of warning, info, debug", log);
}

static int check_providers(const char *option, const char *list)
{
    for (const char *name = list; name != NULL;) {
        size_t length = strcspn(name, ",");
        if (length != 3 || strncmp(name, "cpu", 3) != 0)
            return tool_usage("%s: '%.*s' in '%s' is none of cpu", option, (int)length, name,
                              list);
        name = name[length] == ',' ? name + length + 1 : NULL;
    }
    return 0;
}

/* ---- --settings */

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

static void print_number(printer *p, const char *name, int64_t value, const char *from)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    print_text(p, name, text, from);
}

/* 0: none. */
static void print_seconds(printer *p, const char *name, double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%g", seconds);
    print_text(p, name, seconds > 0 ? text : "none", seconds > 0 ? "option" : "default");
}

/* What was given, or the default. */
static void print_choice(printer *p, const char *name, const char *given, const char *otherwise)
{
    print_text(p, name, given != NULL ? given : otherwise, given != NULL ? "option" : "default");
}

/* A line per value; none given: no line. */
static void print_list(printer *p, const char *name, const string_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        print_text(p, name, list->items[i], "option");
}

/* In the order of SETTINGS_RUN. */
static void print_each(const settings *s, printer *p)
{
    print_number(p, "threads", s->thread_count, s->threads_from);
    print_text(p, "provider", s->provider != NULL ? s->provider : "cpu", s->provider_from);
    print_text(p, "isa", s->isa != NULL ? s->isa : "best", s->isa_from);
    print_number(p, "level", s->level_number < 0 ? s->default_level : s->level_number,
                 s->level != NULL ? "option" : "default");
    print_list(p, "disable", &s->disable);
    print_list(p, "dim", &s->dims);
    print_list(p, "shape", &s->shapes);
    print_choice(p, "math", s->math, "fast");
    print_choice(p, "denormals", s->denormals, "flush");
    if (s->max_memory > 0)
        print_number(p, "max-memory", (int64_t)s->max_memory, "option");
    else
        print_text(p, "max-memory", "none", "default");
    print_seconds(p, "timeout", s->timeout);
    print_number(p, "spin-us", s->spin_us < 0 ? ORT_DEFAULT_SPIN_US : s->spin_us,
                 s->spin_us < 0 ? "default" : "option");
    print_choice(p, "pin", s->pin ? "yes" : NULL, "no");
    print_list(p, "ops-lib", &s->ops_libs);
    print_choice(p, "allow-newer", s->allow_newer ? "yes" : NULL, "no");
    print_choice(p, "external-data-root", s->external_root, "none");
    print_choice(p, "strict", s->strict ? "yes" : NULL, "no");
}

static void print_settings(const settings *s)
{
    printer p = {.json = s->json};
    if (s->json) {
        tool_reported();
        printf("{\"schema\": \"%s/1\", \"settings\": [", tool_name());
    }
    print_each(s, &p);
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

int settings_resolve(settings *s)
{
    const char *unused;
    int64_t threads = 0;
    int status;

    tool_set_quiet(s->quiet);
    tool_set_strict(s->strict);
    if ((status = check_passes(&s->disable)) != 0)
        return status;
    s->threads = pick(s->threads, "ORT_THREADS", &s->threads_from);
    s->provider = pick(s->provider, "ORT_PROVIDER", &s->provider_from);
    s->isa = pick(s->isa, "ORT_ISA", &s->isa_from);
    const char *log = pick(NULL, "ORT_LOG", &unused);
    if (log != NULL && s->verbose == 0)
        s->verbose = strcmp(log, "debug") == 0 ? 2 : strcmp(log, "info") == 0 ? 1 : 0;
    if ((status = check_log(log)) != 0 ||
        (status = check_providers(source_name(s->provider_from, "--provider"), s->provider)) != 0)
        return status;
    if (s->threads != NULL &&
        (status = option_parse_int(source_name(s->threads_from, "--threads"), s->threads, 1, 4096,
                                   &threads)) != 0)
        return status;
    s->thread_count = (int)threads;
    s->level_number = s->level != NULL ? s->level[0] - '0' : -1;
    if (s->show_settings) {
        ort_env *env;
        if ((status = settings_new_env(s, &env)) != 0)
            return status;
        s->thread_count = ort_env_threads(env);
        s->isa = ort_env_isa(env);
        ort_env_free(env);
        print_settings(s);
        return -1;
    }
    return 0;
}

static void log_to_stderr(void *arg, ort_log_level level, const char *message)
{
    if (level == ORT_LOG_WARNING)
        tool_set_warned();
    if (level != ORT_LOG_QUIET)
        fprintf(stderr, "%s: %s\n", tool_name(), message);
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
    options.keep_denormals = s->denormals != NULL && strcmp(s->denormals, "keep") == 0;
    options.math_strict = s->math != NULL && strcmp(s->math, "strict") == 0;
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
    for (size_t i = 0; i < s->ops_libs.count; i++)
        if (ort_env_add_ops_library(*env, s->ops_libs.items[i], &err) != ORT_OK) {
            ort_env_free(*env);
            *env = NULL;
            return tool_fail_in("--ops-lib", &err);
        }
    if (s->verbose > 0)
        fprintf(stderr, "%s: threads %d (%s), isa %s (%s), provider cpu (%s)\n", tool_name(),
                ort_env_threads(*env), s->threads_from, ort_env_isa(*env), s->isa_from,
                s->provider_from);
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
        count += strcmp(list->items[i], "-") == 0 ||
                 (length > 1 && strcmp(list->items[i] + length - 2, "=-") == 0);
    }
    return count;
}
