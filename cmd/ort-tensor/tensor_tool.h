/* tensor_tool.h - the pieces of ort-tensor: items that flow, operations on them, judges, outputs.
 *
 * Files become records (named values); the operations of the command line run over every value of a
 * record in the order in which they were written; then the record is printed, judged or written.
 */
#ifndef TENSOR_TOOL_H
#define TENSOR_TOOL_H

#include "common/operations.h"
#include "common/parts.h"
#include "common/whole_file.h"

typedef struct tool tool;

struct tool {
    settings settings;
#define OPTION OPTION_MEMBER /* a member for each option that has a value */
#define GROUP OPTION_NO_MEMBER
#define ROWS OPTION_NO_MEMBER
#include "options.def"
    operations operations;
    /* judges */
    string_list label_names;
    size_t records;
    bool many;         /* there may be several: their files' names go with them */
    const char *place; /* the file being read, for messages */
    ort_tensors **gathered; /* --stack: what becomes one batch at the end */
    size_t gathered_count;
    ort_out_file **direct; /* one per -o that is a device or a pipe, which takes all records */
    whole_files waiting;   /* of -o FILE: all take their places behind the last record */
    bool broken;       /* an output can't be written: nothing more makes sense */
    string_list failures; /* --keep-going */
    double judged, correct;   /* accuracy over all records */
    int64_t *matrix;          /* confusion, classes x classes */
    int64_t classes;
    int64_t most_label;       /* of --accuracy */
    ort_tensors *truth;       /* loaded --accuracy labels */
    int gate;                 /* 1 when a judge said no */
    double classless;         /* rows that are no class: NaN */
    bool low_accuracy;
    FILE *expected_stream;    /* of --compare */
    ort_tensors *expected;    /* its present record */
    bool expected_all;        /* it is the only one: all records are compared with it */
    size_t expected_count, compared, differing;
    double least_sqnr, least_cosine; /* of what was compared; NaN: of something there is none */
    size_t measured;                 /* values that have a distance */
    struct json_object *report; /* of --json */
    size_t present;           /* record of its last member, from 1 */
};

/* ---- audio.c */
/* Windows of `chunk` samples, `hop` apart, with `context` samples before: [1, context + chunk]. */
typedef int window_fn(tool *t, const ort_tensors *from, ort_value *window);
int each_window(tool *t, const ort_tensors *from, const ort_value *samples, window_fn *fn);

/* ---- judge.c */
int judge_top(tool *t, const ort_tensors *record, size_t index);
int print_record(tool *t, const ort_tensors *record);

/* ---- gates.c */
int judge_check(const tool *t, const string_list *files);
int judge_compare(tool *t, const ort_tensors *record);
int judge_accuracy(tool *t, const ort_tensors *record);
/* Behind the last record: what was left over, what the gates say, the JSON report. */
int judge_finish(tool *t);
void judge_release(tool *t);

/* ---- records.c */
/* Read all files, apply the operations, hand on the records. */
int records_run(tool *t, const string_list *files);
/* EXIT_DATA when --keep-going left something out. */
int records_close(tool *t);
/* The operations over one record, which is then judged and written. */
int record_handle(tool *t, const ort_tensors *in);
/* What --from, --dtype, --dims and --bytes say of `path`. */
int record_options(const tool *t, const char *path, int64_t dims[16], ort_read_options *options);

/* ---- interleave.c */
/* --interleave: the parts in turn. */
int interleave_run(tool *t, const string_list *files);

/* ---- report.c: members of the JSON report */
void report_value(tool *t, const char *name, const ort_value *v);
void report_class(tool *t, const char *name, int64_t row, struct json_object *class, double score,
                  const char *label); /* or NULL */
/* distance: NULL where there is none. */
void report_difference(tool *t, const char *name, const ort_difference *d, bool equal,
                       const ort_distance *distance, const part_sums *p);
void report_accuracy(tool *t, double accuracy, bool passed);
void report_print(tool *t);
void report_release(tool *t);

/* ---- output.c */
/* Can every -o be written, in a format that is known? Asked before anything is read. */
int output_check(const tool *t);
int output_record(tool *t, const ort_tensors *record);
/* Behind the last record. Returns `status`, or why the last of an output can't be written. */
int output_close(tool *t, int status);

#endif
