/* evaluation.h - a float model and the quantized one on the same samples: how near their outputs
 * are, what of the second computes on integers here, sizes, times; and the gates on these.
 */
#ifndef ORT_QUANTIZE_EVALUATION_H
#define ORT_QUANTIZE_EVALUATION_H

#include <json-c/json.h>

#include "common/parts.h"
#include "reference.h"

enum { FLOAT_SIDE, INTEGER_SIDE, SIDES, TIMED_RUNS = 31 };

typedef struct side { /* one of the two models */
    const char *path;
    ort_model *model;
    ort_session *session; /* NULL: the float one's, which is the reference's */
    string_list input_names, output_names;
    size_t inputs, outputs;
    ort_value **in, **out; /* of the present sample */
    double bytes;          /* of the file, with what lies beside it; 0: not known */
    double weight_bytes;
    json_object *weights;  /* rows of ORT_REPORT_INITIALIZERS, largest first */
    double ms[TIMED_RUNS];
    double median_ms;      /* of runs on the first sample; NaN without one */
    int64_t correct;       /* of labels */
} side;

typedef struct measured_output {
    const char *name;
    size_t place;           /* among the outputs of the quantized model */
    ort_distance distance;  /* the float model's is the reference */
    part_sums parts;
    int64_t classes, alike; /* of integers, which are classes: how many, how many equal */
    const char *why;        /* nothing was measured; or NULL */
    bool misfit;            /* and that is no good: the two models give other shapes */
} measured_output;

typedef struct gate_verdict {
    const char *name, *unit; /* of its keys in JSON: "_db"; "" */
    const char *place;       /* the output where the worst was measured, or NULL */
    double measured, allowed;
    bool passed;
} gate_verdict;

enum { GATE_COUNT = 7 };

typedef struct evaluation {
    quantizing *q;
    side sides[SIDES];
    reference reference; /* runs the float model */
    measured_output *measured;
    size_t count;        /* of outputs */
    size_t samples;
    bool made_up;        /* these */
    int timed;
    ort_tensors *labels; /* of --labels, or NULL */
    int64_t labelled;    /* rows that had one */
    json_object *steps;  /* "nodes" of the profile of one run of the quantized model */
    json_object *nodes;  /* rows of ORT_REPORT_NODES of its file */
    gate_verdict gates[GATE_COUNT];
    int gate_count;
} evaluation;

/* Both models in q->env, on q's samples; made-up ones where there are none. The
 * report is printed; EXIT_GATE when a gate said no. `path` is where the quantized file lies now,
 * `name` what it is called in the report. q->original is the float model. */
int evaluate_file(quantizing *q, const char *path, const char *name);

/* ---- labels.c */
/* What comes from a pipe becomes a file, which several processes read; before the first of them.
 * 0 or an exit status, as of the next. */
int labels_spool(const char *path);
/* path NULL: none. Free what is read. */
int labels_read(const char *path, ort_tensors **labels);
/* How many classes a row of a result tells: scores of each along the last axis, or 1: their
 * numbers; 0: neither. */
int64_t labels_classes(const ort_value *v);
/* What a row says: its number where rows are numbers, the best class where they are scores. */
int64_t labels_said(const ort_value *v, int64_t row, int64_t classes);
int labels_open(evaluation *e);
/* The present sample's rows beside the next labels. */
ort_status labels_judge(evaluation *e, ort_error *err);
/* Were there as many as rows? 0 or an exit status. */
int labels_finish(const evaluation *e);

/* ---- computed.c */
/* What products of the quantized file compute on, in the session of this machine. */
typedef struct computed {
    int products, integer_products; /* steps that multiply */
    double macs, integer_macs;
    int pairs_left;                 /* QuantizeLinear and DequantizeLinear that runs still do */
    double pairs_ms, all_ms;
} computed;
computed computed_sum(const evaluation *e);
bool step_multiplies(json_object *step);
bool step_is_integer(json_object *step);
/* Its node's, or that of its first output where that has none. */
const char *step_name(json_object *step);
bool step_is_pair(json_object *step); /* QuantizeLinear, DequantizeLinear */
/* Why a product's step is none of integers, by what it reads and gives in the file. */
const char *step_why_float(const evaluation *e, json_object *step, char *text, size_t room);
/* Runs the quantized model once more, with a profile. */
ort_status computed_take(evaluation *e, ort_error *err);

/* ---- saturation.c */
/* Of a node of the file, the share of the pairs of products that may exceed 16 bits where a runtime
 * adds them there; 0 for a node that multiplies no uint8 by int8. */
double saturation_share(const evaluation *e, json_object *node);
/* Had the model that was given these codes already? */
bool saturation_is_old(const evaluation *e, json_object *node);

/* ---- copies.c */
typedef struct weight_copies {
    const char *name; /* of the weight in the float model */
    size_t codes;     /* copies of it in codes in the quantized file */
    bool floats;      /* and one in floats */
    double bytes;     /* of all of them */
} weight_copies;
/* Weights with several copies, the largest first; the list is the caller's to free. */
size_t copies_find(const evaluation *e, weight_copies **found);

/* ---- judged.c */
void gates_of_evaluation(evaluation *e);
/* Each that said no, on stderr; EXIT_GATE, or 0. */
int gates_tell(const evaluation *e);

/* ---- report_text.c, report_json.c */
void evaluation_text(const evaluation *e, FILE *out);
void evaluation_json(const evaluation *e, FILE *out);

#endif
