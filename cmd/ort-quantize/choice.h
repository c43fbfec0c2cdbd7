/* choice.h - of several ways to make codes the one whose model is nearest to float on samples. */
#ifndef ORT_QUANTIZE_CHOICE_H
#define ORT_QUANTIZE_CHOICE_H

#include "quantize.h"

/* What the options leave open. */
typedef struct choice {
    ort_observer observer;
    bool equalize;
    kept_nodes kept;
    bool round; /* codes of weights by what products read */
} choice;

/* Is there something to choose, and is the model small enough for it? */
bool can_choose(const quantizing *q);
/* Are biases corrected though no option says so? */
bool can_correct(const quantizing *q);
/* By models, each run on a few of the samples: which observer, where the options name none;
 * channels equalized, there too, for which all samples are seen once more; which nodes stay float
 * (guard.h), and more of them, or rounding by samples, where a classifier's clear answers change.
 * *ranges are what was seen, and become those of the equalized model where that is chosen. */
int choose(quantizing *q, const ort_quantize_options *options, ort_ranges **ranges, choice *c);

/* What another way than the usual one must bring: less is chance, as few samples judge, and those
 * that ranges come of. */
#define CHOICE_CHANCE_DB 0.5

/* A model of these options, with the nodes in float that are kept. ranges NULL: the samples are
 * seen again, which what is refined needs. */
int choice_make(quantizing *q, const ort_quantize_options *options, const ort_ranges *ranges,
                ort_model **model);

#endif
