/* env.c - the environment: one for the process, its log, and which providers there are.
 *
 * Clients make and release environments freely, some one for each test. The first makes the
 * library's environment; others share it, and it goes with the last of them and of their sessions.
 */
#include "abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static OrtEnv *the_env;

/* ---------------------------------------------------------------------------------------- log */

static int severity_of(ort_log_level level)
{
    return level >= ORT_LOG_DEBUG ? ABI_VERBOSE : level == ORT_LOG_INFO ? ABI_INFO : ABI_WARNING;
}

static ort_log_level level_of(int severity)
{
    return severity <= ABI_VERBOSE   ? ORT_LOG_DEBUG
           : severity == ABI_INFO    ? ORT_LOG_INFO
           : severity == ABI_WARNING ? ORT_LOG_WARNING
                                     : ORT_LOG_QUIET;
}

/* The form of lines that clients look for in a log of stderr. */
static void print(const OrtEnv *env, int severity, const char *message)
{
    struct timespec now;
    struct tm day;
    char stamp[32];
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &day);
    strftime(stamp, sizeof stamp, "%F %T", &day);
    fprintf(stderr, "%s.%09ld [%c:onnxruntime:%s, libort] %s\n", stamp, now.tv_nsec,
            "VIWEF"[severity], env -> log_id, message);
}

/* Of the session that this thread is making, or NULL. */
static _Thread_local const OrtSessionOptions *making;

void abi_log_for(const OrtSessionOptions *options) { making = options; }

static void log_text(const OrtEnv *env, int severity, const char *message)
{
    const OrtSessionOptions *o = making;
    if (severity < (o && o->log_severity >= 0 ? o->log_severity : env->severity))
        return;
    if (o && o->log)
        o->log(o->log_param, severity, "onnxruntime", o->log_id ? o->log_id : env->log_id, "libort",
               message);
    else if (env->log)
        env->log(env->log_param, severity, "onnxruntime", env->log_id, "libort", message);
    else
        print(env, severity, message);
}

void abi_log(const OrtEnv *env, int severity, const char *format, ...)
{
    char text[ORT_ERROR_TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    log_text(env, severity, text);
}

static void log_line(void *arg, ort_log_level level, const char *message)
{
    log_text(arg, severity_of(level), message);
}

/* A logger is its environment. */
const OrtLogger *abi_env_logger(const OrtEnv *env) { return (const OrtLogger *)env; }

OrtStatus *abi_Logger_LogMessage(const OrtLogger *logger, int severity, const char *message,
                                 const char *file, int line, const char *function)
{
    const OrtEnv *env = (const OrtEnv *)logger;
    ABI_CHECK(logger && message, "logger or message is NULL");
    ABI_CHECK(severity >= ABI_VERBOSE && severity <= ABI_FATAL, "severity %d is not valid",
              severity);
    if (severity < env->severity)
        return NULL;
    if (!env->log) {
        print(env, severity, message);
        return NULL;
    }
    char place[600];
    snprintf(place, sizeof place, "%s:%d %s", file ? file : "", line, function ? function : "");
    env->log(env->log_param, severity, "onnxruntime", env->log_id, place, message);
    return NULL;
}

OrtStatus *abi_Logger_GetLoggingSeverityLevel(const OrtLogger *logger, int *out)
{
    ABI_CHECK(logger && out, "logger is NULL");
    *out = ((const OrtEnv *)logger)->severity;
    return NULL;
}

/* -------------------------------------------------------------------------------- environments */

static OrtStatus *open_library(OrtEnv *env, int threads, const abi_makers *makers, ort_env **made)
{
    ort_error err = ORT_ERROR_INIT;
    ort_env_options options;
    ort_env_options_init(&options);
    options.threads = threads;
    options.own_threads = makers ? &makers->threads : NULL;
    options.log = log_line;
    options.log_arg = env;
    options.log_level = level_of(env->severity);
    return ort_env_new(&options, made, &err) == ORT_OK ? NULL : abi_from_error(&err);
}

OrtStatus *abi_env_private(OrtEnv *env, int threads, ort_env **made)
{
    return open_library(env, threads ? threads : env->threads, NULL, made);
}

static void free_env(OrtEnv *env)
{
    ort_env_free(env->env);
    free(env->makers);
    free(env->log_id);
    free(env);
}

static OrtStatus *make_env(const OrtEnvCreationOptions *options, OrtEnv **out)
{
    OrtEnv *env = calloc(1, sizeof *env);
    if (env)
        env->log_id = strdup(options->log_id);
    if (!env || !env->log_id) {
        free(env);
        return abi_no_memory();
    }
    const OrtThreadingOptions *threading = options->threading;
    env->threads = threading ? threading->intra_threads : 0;
    env->severity = options->severity;
    env->log = options->log;
    env->log_param = options->log_param;
    OrtStatus *status = threading ? abi_check_affinity(threading) : NULL;
    if (!status && threading)
        status = abi_makers_new(&threading->makers, &env->makers);
    if (!status)
        status = open_library(env, env->threads, env->makers, &env->env);
    if (status)
        free_env(env);
    else
        *out = env;
    return status;
}

OrtStatus *abi_CreateEnvWithOptions(const OrtEnvCreationOptions *options, OrtEnv **out)
{
    ABI_CHECK(options && out, "options is NULL");
    ABI_CHECK(options->log_id, "log_id is NULL");
    OrtStatus *status = NULL;
    pthread_mutex_lock(&lock);
    if (!the_env)
        status = make_env(options, &the_env);
    if (!status) {
        the_env->users++;
        *out = the_env;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void abi_env_retain(OrtEnv *env)
{
    pthread_mutex_lock(&lock);
    env->users++;
    pthread_mutex_unlock(&lock);
}

void abi_ReleaseEnv(OrtEnv *env)
{
    if (!env)
        return;
    pthread_mutex_lock(&lock);
    bool last = !--env->users;
    if (last)
        the_env = NULL;
    pthread_mutex_unlock(&lock);
    if (last)
        free_env(env);
}

OrtStatus *abi_CreateEnvWithCustomLoggerAndGlobalThreadPools(OrtLoggingFunction log, void *param,
                                                             int severity, const char *log_id,
                                                             const OrtThreadingOptions *threading,
                                                             OrtEnv **out)
{
    OrtEnvCreationOptions options = {.version = ABI_VERSION,
                                     .severity = severity,
                                     .log_id = log_id,
                                     .log = log,
                                     .log_param = param,
                                     .threading = threading};
    return abi_CreateEnvWithOptions(&options, out);
}

OrtStatus *abi_CreateEnv(int severity, const char *log_id, OrtEnv **out)
{
    return abi_CreateEnvWithCustomLoggerAndGlobalThreadPools(NULL, NULL, severity, log_id, NULL,
                                                             out);
}

OrtStatus *abi_CreateEnvWithCustomLogger(OrtLoggingFunction log, void *param, int severity,
                                         const char *log_id, OrtEnv **out)
{
    return abi_CreateEnvWithCustomLoggerAndGlobalThreadPools(log, param, severity, log_id, NULL,
                                                             out);
}

OrtStatus *abi_CreateEnvWithGlobalThreadPools(int severity, const char *log_id,
                                              const OrtThreadingOptions *threading, OrtEnv **out)
{
    return abi_CreateEnvWithCustomLoggerAndGlobalThreadPools(NULL, NULL, severity, log_id,
                                                             threading, out);
}

OrtStatus *abi_UpdateEnvWithCustomLogLevel(OrtEnv *env, int severity)
{
    ABI_CHECK(env, "env is NULL");
    env->severity = severity;
    return NULL;
}

/* Nothing is ever sent anywhere. */
OrtStatus *abi_EnableTelemetryEvents(const OrtEnv *env) { return NULL; }

OrtStatus *abi_DisableTelemetryEvents(const OrtEnv *env) { return NULL; }

OrtStatus *abi_SetLanguageProjection(const OrtEnv *env, int projection) { return NULL; }

/* ------------------------------------------------------------------------------ what there is */

OrtStatus *abi_GetAvailableProviders(char ***out, int *count)
{
    char **names = malloc(sizeof *names);
    if (names)
        *names = strdup("CPUExecutionProvider");
    if (!names || !*names) {
        free(names);
        return abi_no_memory();
    }
    *out = names;
    *count = 1;
    return NULL;
}

OrtStatus *abi_ReleaseAvailableProviders(char **names, int count)
{
    for (int i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
    return NULL;
}

#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)

const char *abi_GetBuildInfoString(void)
{
    return "ORT Build Info: ort-tools " TEXT(ORT_VERSION_MAJOR) "." TEXT(
        ORT_VERSION_MINOR) "." TEXT(ORT_VERSION_PATCH) ", ABI of onnxruntime " ABI_VERSION_STRING;
}

/* Training has no table of its own in stock builds either, and no function is experimental here. */
const OrtTrainingApi *abi_GetTrainingApi(uint32_t version) { return NULL; }

abi_function *abi_GetExperimentalFunction(const char *name) { return NULL; }
