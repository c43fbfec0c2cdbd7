/* misfit.h - what to do about an input that isn't what the model wants. */
#ifndef COMMON_MISFIT_H
#define COMMON_MISFIT_H

#include "ort.h"

/* Adds the remedy, in words of the tools, to an error of a run (behind "; "): another element type,
 * channels last, a dimension that lacks, no value at all. Other errors stay as they are. */
void misfit_explain(const ort_session *session, ort_value *const *inputs, ort_error *err);

#endif
