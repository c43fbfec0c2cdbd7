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

#endif
