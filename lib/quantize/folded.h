/* folded.h - weights that constants make (Cast of halves, norms of weights, sums of low rank)
 * become constants of the file, so that they can become codes. */
#ifndef ORT_QUANTIZE_FOLDED_H
#define ORT_QUANTIZE_FOLDED_H

#include "pass/pass.h"

/* Does the graph compute this value of constants alone? Not if it is one, as it lies or
 * turned, or dequantized. */
bool ort_quantize_is_computed(const ort_graph *graph, ort_id id);
/* Of passes that run before codes are made: what leads to the weight of a product, convolutions
 * among them, may be larger than what it is computed of. */
extern const ort_growing ort_quantize_growing;
/* Computes weights of products of matrices, if there are any to compute. */
ort_status ort_quantize_fold_weights(ort_model *model, const ort_registry *registry,
                                     const ort_log *log, ort_error *err);

#endif
