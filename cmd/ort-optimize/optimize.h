/* optimize.h - the pieces of ort-optimize: options, samples, the report. */
#ifndef ORT_OPTIMIZE_H
#define ORT_OPTIMIZE_H

#include "common/settings.h"

typedef struct optimize_options {
    settings settings;
#define OPTION OPTION_MEMBER /* a member for each option that has a value */
#define GROUP OPTION_NO_MEMBER
#define ROWS OPTION_NO_MEMBER
#include "options.def"
} optimize_options;

/* ---- form: what changes the model beside the passes, and how it is written */

int form_check(const optimize_options *o);
/* --make-dynamic, before the passes. */
int form_before(const optimize_options *o, ort_env *env, ort_model *model);
/* --opset, before the passes too; all that stands in its way is named. */
int form_opset(const optimize_options *o, ort_env *env, ort_model *model, const char *path);
/* --strip, after them. */
void form_after(const optimize_options *o, ort_model *model);
int form_save(const optimize_options *o, ort_env *env, ort_model *model);

/* ---- calls of the model's own functions, where no option says whether they are expanded */

typedef struct calls {
    ort_model *before; /* a copy of the model; NULL: nothing to decide */
    size_t bytes;      /* of its file */
} calls;

int calls_begin(calls *c, const optimize_options *o, const ort_model *model, const char *path);
/* *model has been rewritten with its functions expanded. *again: its file would be larger than the
 * growth budget allows; *model is what it was, to be rewritten with calls kept. */
int calls_judge(calls *c, const ort_optimize_options *options, ort_model **model, bool *again,
                const char *path);
void calls_end(calls *c);

/* ---- samples: sets of inputs for verification */

typedef struct samples {
    ort_tensors **sets;
    size_t count;
} samples;

/* For the inputs of that model, which `path` names in messages. */
int samples_load(samples *s, const string_list *inputs, ort_env *env, ort_model *model,
                 const char *path);
/* Of the inputs that are made up without any: --random, or 1. */
int made_up_seed(const optimize_options *o, uint64_t *seed);
void samples_release(samples *s);
/* Adds to an error of a run what to do about the sample that the model doesn't take. */
void samples_explain(const samples *s, ort_env *env, ort_model *model, ort_error *err);

/* ---- --fp16 and --bf16, after the passes */

int narrow_model(const optimize_options *o, ort_env *env, ort_model *model, const char *path,
                 const samples *sets);

/* ---- report: what the model was and became */

typedef struct pass_record {
    const char *name;
    int changes;
    double ms;
} pass_record;

typedef struct near_miss_record {
    const char *pass;
    char *node, *condition;
    size_t times; /* in text: places of the same pass and condition, if this is the first */
} near_miss_record;

typedef struct operator_measure {
    char *name; /* "Conv", "com.microsoft.Gelu" */
    double count, macs, weight_bytes; /* weights its nodes read, each once per node */
    bool macs_known;                  /* of all its nodes; macs leaves out the others */
} operator_measure;

typedef struct measure { /* of a model, before and after */
    double nodes, weight_bytes, file_bytes, macs;
    bool macs_known;
    operator_measure *ops;
    size_t op_count;
} measure;

typedef struct stage_times { /* of the stages, as far as they ran */
    double load_ms, optimize_ms, near_miss_ms, verify_ms, save_ms;
} stage_times;

typedef struct report {
    measure before, after;
    stage_times times;
    pass_record *passes;
    size_t pass_count;
    near_miss_record *near_misses; /* of --json, -v and --passes */
    size_t near_miss_count, near_miss_capacity;
    ort_verification verification;
    bool verified; /* verification was asked for */
    double tolerance; /* of it */
    const char *bisected; /* or NULL */
} report;

int measure_take(measure *m, ort_model *model);
/* Sizes of a saved model, its data file included. */
double measure_file(const char *path);
/* Forget the passes and near-misses of a rewrite that is done over. */
void report_forget_passes(report *r);
void report_add_pass(report *r, const char *name, int changes, double ms);
void report_add_near_miss(report *r, const char *pass, const char *node, const char *condition);
void report_text(const report *r, const optimize_options *o, FILE *stream);
void report_json(const report *r, const optimize_options *o, const char *model, FILE *stream);
void report_release(report *r);

#endif
