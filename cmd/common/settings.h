/* settings.h - the options that all tools share, their environment variables, and what is made
 * from them: an environment, a loaded model, session options. A flag beats its variable beats the
 * default.
 */
#ifndef COMMON_SETTINGS_H
#define COMMON_SETTINGS_H

#include "common/options.h"

typedef struct settings {
#define OPTION OPTION_MEMBER
#define GROUP OPTION_NO_MEMBER
#include "common/settings_run.def"
#define OPTION OPTION_MEMBER
#define GROUP OPTION_NO_MEMBER
#include "common/settings_talk.def"
    /* resolved by settings_resolve, with where each came from */
    int thread_count, level_number;
    int default_level; /* what level -1 stands for in this tool */
    uint32_t from_variable; /* by row of SETTINGS_RUN */
} settings;

void settings_init(settings *s);

/* Lists of providers. */
extern const option_words settings_providers;

/* For the groups of a tool's table whose options struct begins with its `settings`. Of a setting
 * given again, as behind a shell's alias, the last value holds. */
extern const option_row settings_run_rows[], settings_talk_rows[];

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
