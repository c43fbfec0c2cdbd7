/* optimize.h - the offline walk from a loaded model to one worth saving. */
#ifndef ORT_PASS_OPTIMIZE_H
#define ORT_PASS_OPTIMIZE_H

#include "pass/pass.h"

/* Check, expand functions (at level 0 and with keep_functions they stay), infer, run the passes. */
ort_status ort_model_rewrite(ort_model *model, const ort_pass_options *options,
                             bool keep_functions, ort_error *err);
/* Bytes of the initializers of the main graph. */
size_t ort_model_weight_bytes(const ort_model *model);

#endif
