/* calibration.h - ranges seen in a process of its own. */
#ifndef ORT_QUANTIZE_CALIBRATION_H
#define ORT_QUANTIZE_CALIBRATION_H

#include "choice.h"
#include "ranges.h"

/* What a quantizer with these options sees of all samples. The memory of its runs is gone when this
 * returns. chooses: *c becomes what suits the model (choice.h); else it is
 * what the options say. 0 or an exit status; free *ranges either way. */
int calibration_apart(quantizing *q, const ort_quantize_options *options, bool chooses,
                      choice *c, ort_ranges **ranges);

#endif
