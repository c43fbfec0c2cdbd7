/* trial.h - a few samples kept, with what the float model makes of them, so that many models can be
 * held against it quickly. All run on one kernel tier: what is decided by them is the same on every
 * machine that has it.
 */
#ifndef ORT_QUANTIZE_TRIAL_H
#define ORT_QUANTIZE_TRIAL_H

#include "quantize.h"

enum { TRIAL_SAMPLES = 8 };

typedef struct trial {
    quantizing *q;
    ort_env *env;
    size_t total;            /* samples there are; every so many is kept */
    size_t inputs, outputs;  /* of the float model */
    size_t samples;          /* kept */
    ort_value **in[TRIAL_SAMPLES], **out[TRIAL_SAMPLES];
} trial;

typedef struct nearness_to_float { /* the worst of all outputs */
    double sqnr_db, cosine, top1;
} nearness_to_float;

/* Of `total` samples that a pass before has counted. 0 or an exit status. */
int trial_open(trial *t, quantizing *q, size_t total);
/* Made in q->env. */
int trial_run(const trial *t, ort_model *model, nearness_to_float *near);
void trial_close(trial *t);

#endif
