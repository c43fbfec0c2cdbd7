/* choice.h - of several ways to make codes the one whose model is nearest to float on samples. */
#ifndef ORT_QUANTIZE_CHOICE_H
#define ORT_QUANTIZE_CHOICE_H

#include "quantize.h"

/* Which observer, where the options name none: by models of these ranges, each run on a few of the
 * samples. */
int choose_observer(quantizing *q, const ort_quantize_options *options, const ort_ranges *ranges,
                    ort_observer *best);
/* --effort: q->made becomes the nearest of models with what it does, with equalized channels, too,
 * and without any of it. */
int choose_effort(quantizing *q, const ort_quantize_options *options, const ort_ranges *ranges);

#endif
