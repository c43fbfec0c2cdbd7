/* bisect.h - which pass changed what a model computes. */
#ifndef ORT_VERIFY_BISECT_H
#define ORT_VERIFY_BISECT_H

#include "exec/env.h"
#include "pass/optimize.h"

/* The pass of these options after which the model first differs from the original, as
 * ort_models_verify tells; NULL when it is none of them. options->limit is not used. */
ort_status ort_bisect_passes(ort_env *env, const ort_model *original,
                             const ort_pass_options *options, bool keep_functions,
                             const ort_verify_options *verify, const ort_pass **pass,
                             ort_error *err);

#endif
