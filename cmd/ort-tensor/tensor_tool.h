/* tensor_tool.h - the pieces of ort-tensor: items that flow, operations on them, judges, outputs.
 *
 * Files become records (named values); the operations of the command line run over every value of a
 * record in the order in which they were written; then the record is printed, judged or written.
 */
#ifndef TENSOR_TOOL_H
#define TENSOR_TOOL_H

#include "common/settings.h"
#include "common/whole_file.h"

typedef struct tool tool;

/* One operation of the command line: turns a value into a new one. The caller frees both. */
typedef struct operation operation;
typedef int operation_fn(tool *t, const operation *op, const ort_value *in, ort_value **out);
struct operation {
    operation_fn *apply;
    const char *option;   /* for messages: "--resize" */
    const char *argument;
};

struct tool {
    settings settings;
#define OPTION OPTION_MEMBER /* a member for each option that has a value */
#define GROUP OPTION_NO_MEMBER
#define ROWS OPTION_NO_MEMBER
#include "options.def"
    ort_env *env; /* made when an operation first needs it */
    operation *operations;
    size_t operation_count;
    const char *mean, *std;
    int normalize_at; /* index of the normalize operation, -1: none yet */
    /* judges */
    string_list label_names;
    int wav_rate; /* of the file being read */
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

/* ---- operation.c */
int tool_env(tool *t, ort_env **env);
/* "--resize: what" with the value's type and shape; EXIT_DATA. */
int bad_value(const operation *op, const ort_value *in, const char *needs);
/* Comma-separated numbers; returns how many, -1 after complaining. "0.5", "1/255". */
int parse_numbers(const char *option, const char *text, double *out, int capacity);

/* ---- image.c: values of HxW, HxWxC, NxHxWxC (uint8) or CxHxW, NxCxHxW (float) */
operation_fn apply_resize, apply_crop, apply_pad, apply_letterbox, apply_layout,
    apply_normalize, apply_scale, apply_gray, apply_bgr;
/* What image formats store: HxWxC uint8 from any of the above. */
int to_image(const ort_value *in, ort_value **out);

/* ---- resample.c */
/* Resize planes of interleaved channels as PIL does (antialiased; uint8 rounds between passes). */
int resample(const void *in, ort_dtype dtype, int64_t height, int64_t width, int64_t channels,
             void *out, int64_t out_height, int64_t out_width, const char *filter);
bool resample_known(const char *filter);

/* ---- algebra.c: through ort_op_run */
operation_fn apply_cast, apply_reshape, apply_transpose, apply_slice, apply_argmax, apply_softmax,
    apply_squeeze, apply_unsqueeze;

/* ---- audio.c */
operation_fn apply_mono, apply_rate;
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

/* ---- report.c: members of the JSON report */
void report_value(tool *t, const char *name, const ort_value *v);
void report_class(tool *t, const char *name, int64_t row, struct json_object *class, double score,
                  const char *label); /* or NULL */
/* distance: NULL where there is none. */
void report_difference(tool *t, const char *name, const ort_difference *d, bool equal,
                       const ort_distance *distance);
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
