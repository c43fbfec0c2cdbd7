/* refine.h - more effort for a quantized model: samples run once more, and codes of weights and
 * biases are chosen by what products read on them.
 */
#ifndef ORT_QUANTIZE_REFINE_H
#define ORT_QUANTIZE_REFINE_H

#include "exec/env.h"
#include "graph/graph.h"
#include "quantize/effort/kept_samples.h"
#include "quantize/shares.h"

typedef struct ort_refining {
    ort_env *env;                   /* of the calibration tier */
    const ort_model *floats;        /* the model that was quantized; nodes keep their numbers */
    const ort_kept_samples *samples;
    bool round, correct; /* adaptive rounding, bias correction */
    bool full_range;     /* products in pairs needn't fit 16 bits */
    ort_shares *shares;
} ort_refining;

ort_status ort_refine(const ort_refining *refining, ort_model *codes, ort_error *err);

#endif
