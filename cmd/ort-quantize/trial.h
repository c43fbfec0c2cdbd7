/* trial.h - a few samples kept, with what the float model makes of them, so that many models can be
 * held against it quickly. All run on one kernel tier: what is decided by them is the same on every
 * machine that has it.
 */
#ifndef ORT_QUANTIZE_TRIAL_H
#define ORT_QUANTIZE_TRIAL_H

#include "quantize.h"
#include "squashed.h"

/* As many as take some memory, at least 16 of them, or 4 that have 128 rows together. */
enum { TRIAL_SAMPLES = 64, TRIAL_LEAST = 16, TRIAL_ROWS = 128, TRIAL_BYTES = 8 << 20 };

/* Of samples, at most: what was fitted to all but one is judged on that one. Fitted to them, every
 * refinement looks better than it is. */
enum { TRIAL_PARTS = 4 };

typedef struct trial {
    quantizing *q;
    ort_env *env;
    size_t total;            /* samples there are; every so many is kept */
    size_t inputs, outputs;  /* of the float model's sessions */
    string_list names;       /* of its inputs; weights among them are no inputs of others */
    squashed inside;         /* what is compared instead of outputs */
    string_list inner;       /* names of it that are no outputs */
    bool *left_out, *centered, *feature, *answer; /* [outputs] of inside.replaced, .rows, .features,
                                                   * .answers */
    size_t samples, most;    /* kept, of so many */
    size_t rows;             /* of the first sample, where outputs have as many: a batch; else 1 */
    size_t at[TRIAL_SAMPLES]; /* which of all */
    ort_value **in[TRIAL_SAMPLES], **out[TRIAL_SAMPLES];
} trial;

typedef struct nearness_to_float { /* the worst of all outputs */
    double sqnr_db, cosine, top1;
    double drop; /* of the accuracy on --labels; NaN: none were given */
    double outer_db; /* sqnr_db without features (squashed.h) */
    double clear;    /* of probabilities inside, the share of clear answers that stay; 1: too few */
    bool scaled;     /* features have other numbers here, and count for nothing */
} nearness_to_float;

/* A model whose features have other numbers is compared by logits. */
static inline double trial_db(const nearness_to_float *near, bool scaled)
{
    return scaled ? near->outer_db : near->sqnr_db;
}

/* What of one output was compared so far. Classes, as integers, are counted where they are equal:
 * their difference is no noise. */
typedef struct trial_tally {
    ort_distance distance;
    int64_t classes, alike;
} trial_tally;

/* Of `total` samples that a pass before has counted. 0 or an exit status. */
int trial_open(trial *t, quantizing *q, size_t total);
/* To choose between models made as `other` was: where an output is a Softmax or Sigmoid of a value
 * that both have, that value is compared (squashed.h). */
int trial_open_inside(trial *t, quantizing *q, size_t total, ort_model *other);
/* Made in q->env. */
int trial_run(const trial *t, ort_model *model, nearness_to_float *near);
/* On at most so many rows of the samples, or one sample. */
int trial_glance(const trial *t, ort_model *model, size_t rows, nearness_to_float *near);
/* Numbers that the float model gives for those that q->fold holds out, of the output that has least
 * of them: the worst output is what counts. */
size_t trial_held_out_numbers(const trial *t);
/* On these. */
int trial_held_out(const trial *t, ort_model *model, nearness_to_float *near);
/* The same on all samples, and with --labels: what gates are judged on. */
int trial_judge(const trial *t, ort_model *model, nearness_to_float *near);
void trial_close(trial *t);

/* Empty, of each output; the caller frees. */
trial_tally *trial_tallies(const trial *t);
void trial_worst(const trial *t, const trial_tally *tallies, nearness_to_float *near);

/* ---- for trial_judge.c */

int trial_session(const trial *t, ort_model *model, ort_session **session);
/* The float model's inputs, in its order, given by name; `out` as the float model has them. */
ort_status trial_session_run(const trial *t, const ort_session *session, ort_value *const *inputs,
                             ort_value **out, ort_error *err);
int trial_add(const trial *t, trial_tally *tallies, ort_value *const *floats,
              ort_value *const *others);

#endif
