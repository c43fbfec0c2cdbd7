/* qdq.h - a placed graph written with QuantizeLinear and DequantizeLinear around what computes on
 * codes, as ONNX's own operators that every runtime reads.
 */
#ifndef ORT_QUANTIZE_QDQ_H
#define ORT_QUANTIZE_QDQ_H

#include "base/pool.h"
#include "quantize/place/code_plan.h"
#include "quantize/place/place.h"
#include "quantize/shares.h"

/* The grid of a value in this form; asked once for each value that others share one with. */
typedef ort_grid ort_qdq_grid(void *arg, ort_id value, const ort_code_form *form);

typedef struct ort_qdq_options {
    const ort_code_plan *plan; /* settled */
    ort_qdq_grid *grid;
    void *arg;
    ort_pool *pool; /* shares the channels of weights; or NULL */
    ort_shares *shares;
    bool contrib; /* QuantizeLinear and DequantizeLinear of com.microsoft where the model's opset
                   * has none of a type */
} ort_qdq_options;

/* The model's opset must be that of ort_code_plan_opset, but for `contrib`. */
ort_status ort_qdq_write(ort_graph *graph, const ort_placement *place,
                         const ort_qdq_options *options, ort_error *err);

#endif
