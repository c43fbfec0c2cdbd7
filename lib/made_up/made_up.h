/* made_up.h - sizes of made-up inputs (the rule of ort-formats(5)): a shape for every input of a
 * session. A free axis is 1 in front, 64 for images, else 8. Where a model refuses these, trials
 * 1, 2, ... choose others: the same size for all free axes but the first, from a ladder, with one
 * of them 1; at last more rows than one. Nothing here runs the model.
 *
 * A model of many free axes would take gigabytes of made-up numbers, in one trial or in all: they
 * have room for so many values.
 */
#ifndef ORT_MADE_UP_MADE_UP_H
#define ORT_MADE_UP_MADE_UP_H

#include "exec/plan.h"
#include "exec/session.h"

enum { ORT_SIZES_SYMBOLS = 64 };

/* Other sizes to compare models at: all free axes larger, all but the first, the first alone. */
typedef enum ort_sizes_variant {
    ORT_SIZES_USUAL,
    ORT_SIZES_LARGER,
    ORT_SIZES_LONGER,
    ORT_SIZES_MORE,
    ORT_SIZES_VARIANTS,
} ort_sizes_variant;

typedef struct ort_sizes {
    const ort_session *session;
    int variant; /* an ort_sizes_variant */
    int rung;    /* of the ladder; 0: the default sizes */
    int64_t batch; /* of free first axes */
    int single;  /* which free axis is 1: -1 none, -2 those without a name after the first input */
    int free_count, input; /* free axes so far, the input at hand */
    struct { uint32_t expr; int64_t size; } symbols[ORT_SIZES_SYMBOLS];
    int symbol_count;
} ort_sizes;

void ort_sizes_init(ort_sizes *sizes, const ort_session *session, int variant, int trial);
/* The shape of an input; all inputs must be asked for in order. */
ort_shape ort_sizes_choose(ort_sizes *sizes, int input);
/* The values that all inputs of a trial hold, and how many may be made up in a search for sizes:
 * 2^26, or four times what the axes that aren't free ask for. */
double ort_sizes_values(const ort_session *session, int variant, int trial);
double ort_sizes_room(const ort_session *session);
/* Trials worth making; 1 when nothing is free. */
int ort_sizes_trials(const ort_session *session);
/* A plan for such shapes, by input of the session: an error where they don't fit the model. */
ort_status ort_sizes_plan(const ort_session *session, const ort_shape *shapes, ort_plan **plan,
                          ort_error *err);
/* The first trial whose shapes fit, as far as a plan tells without running; 0 when none does. */
int ort_sizes_fit(const ort_session *session);

#endif
