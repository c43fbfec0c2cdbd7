/* awq.h - weights scaled by what they are multiplied with, before they are rounded: AWQ (Lin et
 * al., "AWQ: Activation-aware Weight Quantization for LLM Compression and Acceleration", MLSys
 * 2024, section 3.2, equations 4 and 5). For x with channels k, and all matrices W that read it,
 *
 *     x W = (x / s) (s W),    s[k] = m[k]^a,    a in {0, 1/20, ..., 1}
 *
 * with the a whose codes of s W cost the product's result least on samples. The paper takes the
 * mean magnitude of x[k] for m[k]; here it is the root of its mean square, which the moments hold.
 * The error of each a is exact for the columns that are looked at: e^T (X^T X) e, with codes of
 * grids that are fitted by what rows weigh, (X^T X)[k][k] / s[k]^2: the paper's search of clipping
 * ranges, made along with that of factors.
 *
 * Factors go into what computes x where that is possible (channel_move.h), else a Mul divides x.
 */
#ifndef ORT_QUANTIZE_AWQ_H
#define ORT_QUANTIZE_AWQ_H

#include "quantize/weights/weights.h"

/* Weights that samples reached get their factors, and what rows weigh. */
ort_status ort_awq_scale(ort_weights *w, ort_error *err);

#endif
