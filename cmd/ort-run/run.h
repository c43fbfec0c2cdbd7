/* run.h - the pieces of ort-run: options, recurrence, where outputs go. */
#ifndef ORT_RUN_H
#define ORT_RUN_H

#include "common/carry.h"
#include "common/feed.h"
#include "common/gates.h"
#include "common/whole_file.h"

typedef struct run_options {
    settings settings;
#define OPTION OPTION_MEMBER /* a member for each option that has a value */
#define GROUP OPTION_NO_MEMBER
#define ROWS OPTION_NO_MEMBER
#include "options.def"
    limits limits;
    int64_t part, parts; /* of --shard; 0 without */
} run_options;

/* Where the inputs of runs come from. */
static inline feed_options run_feed(const run_options *o)
{
    return (feed_options){&o->inputs, o->random, o->stream, o->stack,
                          o->from != NULL ? ort_format_parse(o->from) : ORT_FORMAT_AUTO,
                          &o->ids, &o->drops, .part = o->part, .parts = o->parts};
}

/* ---- gather: records of several runs, for a file */

typedef struct gathering {
    ort_tensors **records;
    size_t count;
} gathering;

typedef struct gather_how {
    const char *path;  /* for messages */
    ort_format format; /* what it can hold */
    bool concat;       /* along `axis`, else along a new first one */
    int64_t axis;
    int64_t part, parts; /* records that were counted are every `parts`-th, or 0: all */
    int64_t steps;       /* runs of each */
} gather_how;

/* Keeps a copy: a recurrence writes into the same memory again. */
int gather_add(gathering *g, ort_tensors *record);
/* One set of values of all records; the caller frees it, also after a failure. */
int gather_finish(const gathering *g, const gather_how *how, ort_tensors **all);
void gather_release(gathering *g);

/* ---- sink: where outputs go */

typedef struct sink {
    const run_options *options;
    const ort_session *session;
    expression *wanted;    /* what is written */
    size_t wanted_count;
    gathering *gathered;   /* one per -o, of several runs */
    ort_out_file **direct; /* one per -o that is a device or a pipe, of several runs */
    int64_t concat_axis;
    const ort_tensors *from; /* what the present run was made of: its names go along, or NULL */
    const char *path;        /* the file it was made of, of several; or NULL */
    bool print;            /* human text on a terminal */
    bool to_stdout;        /* tensors go to stdout */
    bool many;             /* several runs: a file gets their records as one */
    size_t written;        /* records that went where they are written one by one */
} sink;

int sink_open(sink *s, const run_options *o, const ort_session *session, bool many, bool report);
/* Is this output of the session written? */
bool sink_wants(const sink *s, size_t output);
int sink_write(sink *s, ort_value *const *outputs);
/* Finish the files (rename into place when `ok`, remove otherwise). */
int sink_close(sink *s, bool ok);
/* Give back the list of what is written; reports read it until then. */
void sink_release(sink *s);

/* ---- report */

/* Which run it is, for people and reports. */
typedef struct run_place {
    size_t record;    /* of inputs, from 1 */
    const char *path; /* of its file, or NULL */
    bool many;        /* there may be others */
    int64_t step;     /* of a recurrence that is judged step by step; 0 */
} run_place;

typedef struct timing {
    double load_ms, first_ms; /* until the session is ready; of the first run */
    double model_ms; /* of the first, the model's own loading where no session loads it; or 0 */
    double *runs_ms;
    size_t count, capacity;
} timing;

void timing_add(timing *t, double ms);
/* ---- expect: outputs beside those that were expected (expect.c) */

typedef struct expectation {
    const run_options *options;
    const ort_session *session;
    const sink *sink;
    size_t next_path;
    FILE *stream;          /* the file whose records are read, or NULL */
    size_t from_stream;    /* records it gave */
    ort_tensors *ahead, *second; /* the next record and, where that was asked, the one behind it */
    const char *label, *second_label; /* where they come from */
    bool steps_known, by_step, warned;
    FILE *list, *left_out; /* members of JSON arrays: verdicts, outputs that nothing was said of */
    char *verdicts, *omissions;
    size_t verdict_bytes, omission_bytes;
    size_t records, compared, differing, not_compared;
} expectation;

/* Read the first expected record: what is missing or empty is said before a run. Without --expect
 * these do nothing. */
int expect_open(expectation *x, const run_options *o, const ort_session *session, const sink *s);
/* Are the steps of a recurrence judged one by one (several expected records), or the last one? */
int expect_steps(expectation *x, bool *by_step);
/* Compare one record; lines go to `text` (or NULL). A difference is no error here. */
int expect_judge(expectation *x, const run_place *at, ort_value *const *outputs, FILE *text);
/* 0, EXIT_GATE after a difference, EXIT_DATA when expected records are left over. */
int expect_finish(expectation *x);
void expect_close(expectation *x);

typedef struct run_report {
    const run_options *options;
    const ort_env *env;
    const char *model;
    const timing *timing;
    const expectation *expect;
    const char *outputs; /* members of a JSON array, of report_outputs */
    size_t records;
    const gate_list *gates;
} run_report;

/* Latency and memory beside the limits of options. */
void report_judge(const timing *t, const limits *l, gate_list *gates);

void report_print(const run_report *r, FILE *stream);
/* The outputs of one record, for the JSON report. */
void report_outputs(const run_place *at, const ort_session *session, ort_value *const *outputs,
                    FILE *list);
int report_hash(const sink *s, const run_place *at, ort_value *const *outputs, FILE *stream);
int report_phases(const ort_session *session, const timing *t, const carry *c, FILE *stream);

/* ---- the walk (main.c) and its runs (runs.c) */

#define UNSET_WARMUP INT64_MIN

typedef struct runner {
    run_options options;
    ort_run_options how; /* of every run */
    ort_env *env;
    ort_model *model;
    ort_session *session;
    const char *model_path;
    feed_options from;
    feed feed;
    carry carry;
    sink sink;
    timing timing;
    size_t inputs, outputs;
    ort_value **in, **out;
    expectation expect;
    FILE *outputs_list; /* members of the JSON report's array, or NULL */
    char *output_text;
    size_t output_bytes;
    size_t records; /* of inputs that ran */
    gate_list gates;
} runner;

static inline bool measures(const run_options *o) { return o->repeat > 0 || o->seconds > 0; }
static inline bool reports(const run_options *o)
{
    return measures(o) || o->hash || o->expect.count > 0 || o->settings.json;
}
/* Where lines of reports go. */
static inline FILE *run_talk(const runner *r) { return r->sink.to_stdout ? stderr : stdout; }

/* Every record of inputs: its runs, where its outputs go, what is told of it, its timed runs. */
int run_records(runner *r);
void drop_outputs(runner *r);

/* ---- compare */

/* --compare and --compare-levels: 0, EXIT_GATE at a difference, or another exit status. */
int compare_models(const run_options *o, const ort_run_options *how, const string_list *files);
/* --per-tensor: the error of every common value (per_tensor.c). */
int compare_per_tensor(const run_options *o, const ort_run_options *how, const string_list *files);

/* ---- dump */

typedef struct dump {
    const run_options *options;
    ort_out_file *file;
    FILE *index; /* its stream */
    char *folder;
    bool *matched; /* [patterns] */
    size_t count;
    int status;
} dump;

int dump_open(dump *d, const run_options *o, size_t run, bool many);
void dump_value(void *arg, const char *name, const ort_value *value);
int dump_close(dump *d);

#endif
