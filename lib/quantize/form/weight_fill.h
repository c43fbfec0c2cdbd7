/* weight_fill.h - a weight becomes codes, one channel after the other. */
#ifndef ORT_QUANTIZE_WEIGHT_FILL_H
#define ORT_QUANTIZE_WEIGHT_FILL_H

#include "quantize/form/qdq_parts.h"

/* Its codes, scales and zero points become constants of the graph, and their pages leave memory
 * where they can come back. */
ort_status ort_weight_fill(ort_qdq_writer *w, ort_qdq_weight *weight, ort_error *err);

#endif
