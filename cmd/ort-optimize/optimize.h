/* optimize.h - the pieces of ort-optimize: options, samples, the report. */
#ifndef ORT_OPTIMIZE_H
#define ORT_OPTIMIZE_H

#include "common/settings.h"

typedef struct optimize_options {
    settings settings;
    const char *output, *functions, *max_growth, *random;
    string_list passes, inputs;
    bool list_passes, contrib, no_verify, bisect;
    double tolerance, timeout;
} optimize_options;

/* ---- samples: sets of inputs for verification */

typedef struct samples {
    ort_tensors **sets;
    size_t count;
    ort_tensors *named; /* of NAME=FILE; one of the sets */
} samples;

int samples_load(samples *s, const string_list *inputs);
void samples_release(samples *s);

/* ---- report: what the model was and became */

typedef struct pass_record {
    const char *name;
    int changes;
    double ms;
} pass_record;

typedef struct measure { /* of a model, before and after */
    double nodes, weight_bytes, file_bytes, macs;
    bool macs_known;
    char **ops;     /* "Conv", "com.microsoft.Gelu" */
    double *counts; /* of each */
    size_t op_count;
} measure;

typedef struct report {
    measure before, after;
    pass_record *passes;
    size_t pass_count;
    ort_verification verification;
    bool verified; /* verification was asked for */
    const char *bisected; /* or NULL */
} report;

int measure_take(measure *m, ort_model *model);
/* Sizes of a saved model, its data file included. */
double measure_file(const char *path);
void report_add_pass(report *r, const char *name, int changes, double ms);
void report_text(const report *r, const optimize_options *o, FILE *stream);
void report_json(const report *r, const optimize_options *o, const char *model, FILE *stream);
void report_release(report *r);

#endif
