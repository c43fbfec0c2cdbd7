/* run_whole.h - what most tests want of a run: everything, in order. */
#ifndef TESTS_RUN_WHOLE_H
#define TESTS_RUN_WHOLE_H

#include "ort.h"

/* All inputs and outputs of a session, in order. */
static inline ort_status run_whole(const ort_session *session, ort_value *const *inputs,
                                   ort_value **outputs, const ort_run_options *options,
                                   ort_error *err)
{
    return ort_session_run(session, NULL, inputs, ort_session_input_count(session), NULL, outputs,
                           ort_session_output_count(session), options, err);
}

#endif
