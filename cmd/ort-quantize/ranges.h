/* ranges.h - what values hold: from samples, or from files that calibrate wrote. */
#ifndef ORT_QUANTIZE_TOOL_RANGES_H
#define ORT_QUANTIZE_TOOL_RANGES_H

#include <stdio.h>

#include "quantize.h"

/* The observers of the library, as words of --observer. */
extern const option_words observer_words;
ort_observer observer_named(const char *word, ort_observer otherwise); /* word may be NULL */

/* Files of ranges, merged. 0 or an exit status; free *ranges either way. */
int ranges_load(const string_list *files, ort_ranges **ranges);
/* One such text, merged into `ranges`; messages call it `name`. */
int ranges_read(FILE *f, const char *name, ort_ranges *ranges);
/* The quantizer sees all samples, or takes on the ranges of --ranges instead. */
int ranges_learn(quantizing *q, ort_quantizer *quantizer);
/* The stamp's words for a model that `ranges` decide. */
void ranges_tell(quantizing *q, const ort_ranges *ranges);

/* Before that, where --smooth says so: all samples say how far channels reach. */
int ranges_smooth(quantizing *q, ort_quantizer *quantizer);

#endif
