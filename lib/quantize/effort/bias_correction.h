/* bias_correction.h - what codes add to a product's results on average goes out of its bias.
 *
 * Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction" (ICCV
 * 2019), the empirical form of its appendix D: means of each channel of results, in float and on
 * codes, over the same samples, product by product in the order in which they run, so that each
 * sees what corrected ones before it give. Unlike sums of errors of a filter times the means of
 * what it reads, this holds what steps of activations and ranges that cut off add, too.
 */
#ifndef ORT_QUANTIZE_BIAS_CORRECTION_H
#define ORT_QUANTIZE_BIAS_CORRECTION_H

#include "graph/graph.h"
#include "quantize/effort/refine.h"

/* Can the bias of a product, its input `slot`, take a correction? It does if it is on codes of its
 * own. */
bool ort_bias_takes(const ort_graph *graph, const ort_node *node, int slot);
/* codes: what became of r->floats; nodes and results have their numbers and names. */
ort_status ort_correct_biases(const ort_refining *r, ort_model *codes, ort_error *err);

#endif
