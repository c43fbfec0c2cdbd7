/* qdq.h - a placed graph written with QuantizeLinear and DequantizeLinear around what computes on
 * codes, as ONNX's own operators that every runtime reads.
 */
#ifndef ORT_QUANTIZE_QDQ_H
#define ORT_QUANTIZE_QDQ_H

#include "quantize/code_grid.h"
#include "quantize/place.h"

typedef struct ort_qdq_options {
    ort_codes_range activations, weights;
    bool per_tensor;        /* one scale a weight, not one an output channel */
    bool fit_weights;       /* grids of weights by their squared error, not by their range alone */
    const ort_grid *grids;  /* of activations, by the value that a grid belongs to */
} ort_qdq_options;

/* The model's opset must be 13 at least (10 with per_tensor). */
ort_status ort_qdq_write(ort_graph *graph, const ort_placement *place,
                         const ort_qdq_options *options, ort_error *err);

#endif
