/* profile_tool.h - the pieces of ort-profile: options, what is measured, the tables. */
#ifndef PROFILE_TOOL_H
#define PROFILE_TOOL_H

#include <time.h>

#include "common/feed.h"
#include "common/gates.h"

struct json_object;

typedef struct profile_options {
    settings settings;
#define OPTION OPTION_MEMBER /* a member for each option that has a value */
#define GROUP OPTION_NO_MEMBER
#define ROWS OPTION_NO_MEMBER
#include "options.def"
    limits limits;
} profile_options;

/* text.c: tables of a report (the JSON of ort_profile_report). */
int profile_print(const char *json, const profile_options *o, FILE *stream);
/* The latency that the report tells, beside the limits of options. */
void profile_judge(const char *json, const profile_options *o, gate_list *gates);
/* The line about the machine's peaks. */
void profile_print_peak(const ort_peak *peak, const char *isa, FILE *stream);

/* measure.c: warm-up and measured runs of a session into a profile. `label` stands in messages.
 * Returns 0 or an exit status. */
int profile_runs(const ort_session *session, const profile_options *o, ort_profile *profile,
                 ort_value *const *inputs, const char *label);

/* "1x3x224x224 64x3x7x7 -> 1x64x112x112" of a row by node; types other than float are named. The
 * caller frees it. */
char *profile_shapes(struct json_object *row);

/* sweep.c: --sweep. Returns an exit status. */
int profile_sweep(const profile_options *o, const char *path);

/* tune.c: --tune-opencl. Is there a folder to write into? An exit status. */
int profile_tune_check(void);
/* The list of providers with opencl, by default its first device, as one that measures itself, and
 * which device that is. The caller frees it. */
int profile_tune_list(const char *given, char **list, int *device);
typedef struct tune_target {
    const char *model_path;
    int device;
    struct timespec since; /* files that are older are of others */
} tune_target;
int profile_tune(const ort_env *env, const ort_session *session, const profile_options *o,
                 const tune_target *target, ort_value *const *inputs);

/* kernels.c: --kernels. peak may be NULL. */
int profile_kernels(ort_env *env, const profile_options *o, const ort_peak *peak, FILE *stream);

#endif
