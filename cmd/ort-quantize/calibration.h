/* calibration.h - ranges seen in a process of its own. */
#ifndef ORT_QUANTIZE_CALIBRATION_H
#define ORT_QUANTIZE_CALIBRATION_H

#include "ranges.h"

/* What a quantizer with these options sees of all samples. The memory of its runs is gone when this
 * returns. chooses: *observer becomes the one that suits the model (choice.h).
 * 0 or an exit status; free *ranges either way. */
int calibration_apart(quantizing *q, const ort_quantize_options *options, bool chooses,
                      ort_observer *observer, ort_ranges **ranges);

#endif
