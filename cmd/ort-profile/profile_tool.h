/* profile_tool.h - the pieces of ort-profile: options, what is measured, the tables. */
#ifndef PROFILE_TOOL_H
#define PROFILE_TOOL_H

#include <time.h>

#include "common/feed.h"
#include "common/gates.h"
#include "common/progress.h"

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

/* measure.c: warm-up and measured runs of a session into a profile; NULL: runs of a device that
 * measures itself. `label` stands in messages. Returns 0 or an exit status. */
int profile_runs(const ort_session *session, const profile_options *o, ort_profile *profile,
                 ort_value *const *inputs, const char *label);
ort_status profile_bind(const ort_session *session, ort_value *const *inputs,
                        ort_binding **binding, ort_error *err);
double profile_now_s(void);

/* "1x3x224x224 64x3x7x7 -> 1x64x112x112" of a row by node; types other than float are named. The
 * caller frees it. */
char *profile_shapes(struct json_object *row);

/* sweep.c: --sweep. Returns an exit status. */
int profile_sweep(const profile_options *o, const char *path);

/* prove.c: is the model faster with the first of these lists of providers than with the second? */
typedef struct prove_setup {
    ort_env *env;
    ort_model *model;
    const profile_options *options;
    char *lists[2];
    ort_value *const *inputs;
    const char *label;
} prove_setup;
typedef struct tune_proof {
    double tuned_ms, shipped_ms; /* medians */
    double ratio, low, high;     /* of pairs, tuned / shipped, with an interval of 99 % */
    int pairs;
} tune_proof;
#define PROFILE_WORTH 0.99 /* a ratio below this is faster */
/* 0 or an exit status. */
int profile_prove(const prove_setup *setup, tune_proof *proof);

/* tune.c: --tune-opencl, in this order. A folder beside ORT_CACHE's files takes its place; a list
 * of providers with opencl, by default its first device, that measures itself; the runs, the proof
 * and the report; the folder goes away. All return 0 or an exit status. */
typedef struct tune_state {
    char *cache, *folder; /* what ORT_CACHE named, and what it names now */
    char *list;           /* for the session */
    int device;
    bool kept; /* the file goes to where it was meant for */
} tune_state;
int profile_tune_begin(tune_state *t, const profile_options *o);
int profile_tune(tune_state *t, const prove_setup *setup, const ort_session *session);
int profile_tune_end(tune_state *t, int status);

/* kernels.c: --kernels. peak may be NULL. */
int profile_kernels(ort_env *env, const profile_options *o, const ort_peak *peak, FILE *stream);

#endif
