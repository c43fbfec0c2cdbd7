/* results.h - weights that a model gives as results, too. */
#ifndef ORT_QUANTIZE_RESULTS_H
#define ORT_QUANTIZE_RESULTS_H

#include "graph/graph.h"

/* Is the constant an output of the model, as it is or turned? */
bool ort_quantize_is_result(const ort_graph *graph, ort_id id);
/* Why what multiplies by it stays float. */
extern const char ort_quantize_result_stays[];

#endif
