/* automatic.h - --auto: which codes each node is to have. */
#ifndef ORT_QUANTIZE_AUTOMATIC_H
#define ORT_QUANTIZE_AUTOMATIC_H

#include "quantize.h"

/* The quantizer has seen `total` samples, and is of no use behind this. *overrides: the assignment
 * ("ort-overrides/1"), which the caller frees. q->frontier is filled. EXIT_GATE: none holds. */
int automatic(quantizing *q, ort_quantizer *quantizer, size_t total, char **overrides);

#endif
