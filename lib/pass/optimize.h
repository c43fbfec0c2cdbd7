/* optimize.h - the offline walk from a loaded model to one worth saving. */
#ifndef ORT_PASS_OPTIMIZE_H
#define ORT_PASS_OPTIMIZE_H

#include "pass/pass.h"

/* Check, expand functions (at level 0 and with keep_functions they stay), infer, run the passes. */
ort_status ort_model_rewrite(ort_model *model, const ort_pass_options *options,
                             bool keep_functions, ort_error *err);
/* What the public options mean for this model: portable passes, the growth budget in bytes. */
ort_pass_options ort_rewrite_options(const ort_model *model, const ort_optimize_options *options,
                                     const ort_registry *registry, const ort_log *log);

/* ---- the beginning of each walk over a model that is written */

/* Everything that ort_model_check finds, as one error. */
ort_status ort_rewrite_check(const ort_model *model, const ort_registry *registry, ort_error *err);
/* Expand all functions; the model has none then. */
ort_status ort_rewrite_inline(ort_model *model, ort_error *err);

/* A default that a caller may override is no constant: passes must not see it. */
typedef struct ort_hidden_default {
    ort_id value; /* an input of the main graph */
    const ort_tensor *tensor;
} ort_hidden_default;
typedef struct ort_hidden_defaults { /* of ort_pass_options */
    ORT_VEC(ort_hidden_default) list;
} ort_hidden_defaults;
ort_status ort_rewrite_hide_defaults(ort_graph *graph, ort_hidden_defaults *hidden,
                                     ort_error *err);
/* Of those that are inputs still. */
void ort_rewrite_restore_defaults(ort_graph *graph, ort_hidden_defaults *hidden);

#endif
