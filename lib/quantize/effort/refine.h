/* refine.h - more effort for a quantized model: samples run once more, and codes of weights and
 * biases are chosen by what products read on them.
 */
#ifndef ORT_QUANTIZE_REFINE_H
#define ORT_QUANTIZE_REFINE_H

#include "exec/env.h"
#include "graph/graph.h"
#include "ort.h"

/* Samples that were kept: at most ORT_KEPT_SAMPLES, those of the least digests, so that neither
 * their order nor their number decides more than which. */
enum { ORT_KEPT_SAMPLES = 32 };
typedef struct ort_kept_sample {
    uint64_t digest;
    ort_value **inputs; /* [count], NULL where a default was taken */
} ort_kept_sample;
typedef struct ort_kept_samples {
    ort_kept_sample samples[ORT_KEPT_SAMPLES]; /* by digest */
    int count, inputs;
} ort_kept_samples;

ort_status ort_keep_sample(ort_kept_samples *kept, ort_value *const *inputs, size_t count,
                           ort_error *err);
void ort_kept_release(ort_kept_samples *kept);

typedef struct ort_refining {
    ort_env *env;                   /* of the calibration tier */
    const ort_model *floats;        /* the model that was quantized; nodes keep their numbers */
    const ort_kept_samples *samples;
    bool round, correct; /* adaptive rounding, bias correction */
} ort_refining;

ort_status ort_refine(const ort_refining *refining, ort_model *codes, ort_error *err);

#endif
