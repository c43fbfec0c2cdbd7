/* body_run.h - running bodies of control flow, whose values may stay on devices between runs. */
#ifndef ORT_EXEC_BODY_RUN_H
#define ORT_EXEC_BODY_RUN_H

#include "exec/frame.h"

/* Run the body for a step of the frame that it is called in. inputs: the formal ones. outputs:
 * references, of values on a device only among those that are handed on. */
ort_status ort_body_run(ort_exec_call *call, ort_program *body, ort_value *const *inputs,
                        ort_value **outputs, ort_handed handed, ort_error *err);

#endif
