/* adaptive_rounding.h - codes of a layer's weight that change its result least on what it reads.
 *
 * Nagel et al., "Up or Down? Adaptive Rounding for Post-Training Quantization" (ICML 2020): the
 * squared error of a filter's results is the quadratic form of its errors in the mean of products
 * of what it reads. There a relaxed form is minimized by gradient descent; here codes go up or down
 * one at a time while that lowers the form, which needs no step sizes and ends the same everywhere.
 * Where a bias takes up what errors add on average, products are those of differences from means.
 */
#ifndef ORT_QUANTIZE_ADAPTIVE_ROUNDING_H
#define ORT_QUANTIZE_ADAPTIVE_ROUNDING_H

#include "quantize/effort/layer.h"

/* Codes fitted to fewer rows than numbers of a filter fit these rows and no others. */
static inline int64_t ort_rounding_rows(const ort_layer *layer)
{
    return 2 * layer->length;
}

/* Of a layer that has read rows, enough of them; `centered`: its bias will be corrected;
 * full_range: codes of int8 needn't fit in pairs. */
ort_status ort_adapt_rounding(ort_layer *layer, bool centered, bool full_range, ort_pool *pool,
                              ort_error *err);

#endif
