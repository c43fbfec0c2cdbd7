/* bias_correction.h - what errors of codes add to a layer's results on average goes out of its
 * bias.
 *
 * Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction" (ICCV
 * 2019), section 4.2, with means that samples showed: the mean of a result is too large by the sum
 * of errors of its filter times the means of what the filter reads.
 */
#ifndef ORT_QUANTIZE_BIAS_CORRECTION_H
#define ORT_QUANTIZE_BIAS_CORRECTION_H

#include "quantize/effort/layer.h"

/* Can its bias take a correction? It does if it is on codes of its own. */
bool ort_bias_takes(const ort_layer *layer);
/* Of a layer that has read rows, when its codes are final. */
void ort_correct_bias(ort_layer *layer);

#endif
