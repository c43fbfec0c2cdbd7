/* effort.h - --effort: which refinements a model gets. */
#ifndef ORT_QUANTIZE_TOOL_EFFORT_H
#define ORT_QUANTIZE_TOOL_EFFORT_H

#include "quantize.h"

/* q->made becomes the nearest of models with what --effort does, with equalized channels, too, as
 * samples judge that it didn't learn from; usual: the one that is made without --effort, which
 * stays unless another that does more is clearly nearer. */
int choose_effort(quantizing *q, const ort_quantize_options *options, const ort_ranges *ranges,
                  size_t usual);
/* The one that does these. */
size_t effort_of(bool rounded, bool corrected);

#endif
