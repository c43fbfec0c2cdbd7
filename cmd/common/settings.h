/* settings.h - the options that all tools share, their environment variables, and what is made
 * from them: an environment, a loaded model, session options. A flag beats its variable beats the
 * default.
 */
#ifndef COMMON_SETTINGS_H
#define COMMON_SETTINGS_H

#include "common/options.h"

typedef struct settings {
    int verbose;
    bool quiet, json, no_progress, show_settings, force, pin, strict, allow_newer;
    const char *threads, *provider, *isa, *level, *math, *denormals, *external_root;
    size_t max_memory;
    double timeout; /* seconds; 0: none */
    int64_t spin_us;
    string_list disable, dims, shapes, ops_libs;
    /* resolved by settings_resolve, with where each came from */
    int thread_count, level_number;
    int default_level; /* what level -1 stands for in this tool */
    uint32_t from_variable; /* by row of SETTINGS_RUN */
} settings;

void settings_init(settings *s);

/* Lists of providers. */
extern const option_words settings_providers;

/* Rows for a tool's table whose options struct has a `settings` member. Of a setting given again,
 * as behind a shell's alias, the last value holds. */
#define SETTINGS_TALK(type, member)                                                                \
    {'v', "verbose", NULL, OPTION_COUNT, offsetof(type, member.verbose),                           \
     .doc = "say what is done (-vv: more)"},                                                       \
    {'q', "quiet", NULL, OPTION_FLAG, offsetof(type, member.quiet),                                \
     .doc = "no warnings"},                                                                        \
    {0, "json", NULL, OPTION_FLAG, offsetof(type, member.json),                                    \
     .doc = "reports as JSON"},                                                                    \
    {0, "no-progress", NULL, OPTION_FLAG, offsetof(type, member.no_progress),                      \
     .doc = "no progress on the terminal"},                                                        \
    {0, "force", NULL, OPTION_FLAG, offsetof(type, member.force),                                  \
     .doc = "write binary data to a terminal all the same"}
#define SETTINGS_RUN(type, member)                                                                 \
    {0, "threads", "N", OPTION_STRING, offsetof(type, member.threads),                             \
     .doc = "threads of the whole process (ORT_THREADS)", .variable = "ORT_THREADS",               \
     .again = AGAIN_LAST_HOLDS},                                                                   \
    {0, "provider", "LIST", OPTION_STRING, offsetof(type, member.provider),                        \
     .doc = "providers in order of preference (ORT_PROVIDER)", .words = &settings_providers,       \
     .variable = "ORT_PROVIDER", .again = AGAIN_LAST_HOLDS},                                       \
    {0, "isa", "NAME", OPTION_STRING, offsetof(type, member.isa),                                  \
     .doc = "kernel tier: scalar, avx2, avx512, vnni (ORT_ISA)", .variable = "ORT_ISA",            \
     .again = AGAIN_LAST_HOLDS},                                                                   \
    {0, "level", "0|1|2|3", OPTION_STRING, offsetof(type, member.level),                           \
     .doc = "optimization: 0 none, 1 basic, 2 extended, 3 layout",                                 \
     .choices = "0|1|2|3", .again = AGAIN_LAST_HOLDS},                                             \
    {0, "disable", "PASS", OPTION_SPLIT, offsetof(type, member.disable),                           \
     .doc = "leave out a pass (repeatable)"},                                                      \
    {0, "dim", "NAME=N", OPTION_LIST, offsetof(type, member.dims),                                 \
     .doc = "fix a symbolic dimension", .key = '='},                                               \
    {0, "shape", "NAME:DIMS", OPTION_LIST, offsetof(type, member.shapes),                          \
     .doc = "declare an input's shape, as x:1x3x224x224", .key = ':'},                             \
    {0, "math", "strict|fast", OPTION_STRING, offsetof(type, member.math),                         \
     .doc = "strict: no algorithm that reassociates sums",                                         \
     .choices = "strict|fast", .otherwise = "fast", .again = AGAIN_LAST_HOLDS},                    \
    {0, "denormals", "flush|keep", OPTION_STRING, offsetof(type, member.denormals),                \
     .doc = "denormal floats (default: flush)",                                                    \
     .choices = "flush|keep", .otherwise = "flush", .again = AGAIN_LAST_HOLDS},                    \
    {0, "max-memory", "SIZE", OPTION_SIZE, offsetof(type, member.max_memory),                      \
     .doc = "most that loading or a run may take beside the weights, as 512M",                     \
     .positive = true, .again = AGAIN_LAST_HOLDS},                                                 \
    {0, "timeout", "S", OPTION_DOUBLE, offsetof(type, member.timeout),                             \
     .doc = "longest that loading, checking, rewriting or one run may take",                       \
     .positive = true, .again = AGAIN_LAST_HOLDS},                                                 \
    {0, "spin-us", "N", OPTION_INT, offsetof(type, member.spin_us),                                \
     .doc = "longest spin of a worker inside a run", .max = 1e9, .again = AGAIN_LAST_HOLDS},       \
    {0, "pin", NULL, OPTION_FLAG, offsetof(type, member.pin),                                      \
     .doc = "bind workers to processors"},                                                         \
    {0, "ops-lib", "LIB.so", OPTION_LIST, offsetof(type, member.ops_libs),                         \
     .doc = "load an operator library; its code runs (repeatable)"},                               \
    {0, "allow-newer", NULL, OPTION_FLAG, offsetof(type, member.allow_newer),                      \
     .doc = "read a model of a newer opset or IR than this build knows"},                          \
    {0, "external-data-root", "DIR", OPTION_STRING, offsetof(type, member.external_root),          \
     .doc = "external data may lie in this folder too, or links lead there",                       \
     .again = AGAIN_LAST_HOLDS},                                                                   \
    {0, "strict", NULL, OPTION_FLAG, offsetof(type, member.strict),                                \
     .doc = "what would be a warning is an error", .gate = true},                                  \
    {0, "settings", NULL, OPTION_FLAG, offsetof(type, member.show_settings),                       \
     .doc = "print the settings with their sources and exit"}

/* Read the environment variables, check names and numbers. Returns 0, -1 (settings printed: exit
 * 0), or an exit status after saying why. */
int settings_resolve(settings *s);
/* The providers that were named, or the default. */
const char *settings_provider(const settings *s);
/* An environment made from the settings, with its operator libraries (log to stderr at -v, after a
 * line on the settings).
 * Returns 0 or an exit status. */
int settings_new_env(const settings *s, ort_env **env);
/* What is read of weights: all of them, aligned; none; as they are stored (ort_load_options). */
typedef enum load_weights { LOAD_ALL, LOAD_SKELETON, LOAD_AS_STORED } load_weights;
/* Load a model and apply --dim and --shape; with --strict, say what the check warns of. */
int settings_load_model(const settings *s, ort_env *env, const char *path, load_weights weights,
                        ort_model **model);
/* What a session is made with, as the settings say. */
void settings_session_options(const settings *s, ort_session_options *options);
/* With --strict the same warnings, for those who leave loading to a session. */
int settings_check_file(const settings *s, ort_env *env, const char *path);
/* "name=value" split at the first '='; false when there is none, or nothing before it. *name is a
 * new string. */
bool split_assignment(const char *text, char **name, const char **value);
/* How many items are "-" or NAME=-: standard input or output. */
size_t count_dashes(const string_list *list);

#endif
