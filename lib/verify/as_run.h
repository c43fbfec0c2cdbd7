/* as_run.h - models of codes beside each other as sessions run them.
 *
 * A unit of DequantizeLinear, a float operator and QuantizeLinear rounds where an operator on codes
 * is exact. So a code may flip, and in deep networks flips grow: a model unoptimized is as far from
 * itself in a session, which makes units of it, as from a file that has those units. Such a file is
 * therefore right when sessions of both give the same, and both are near each other unoptimized.
 */
#ifndef ORT_VERIFY_AS_RUN_H
#define ORT_VERIFY_AS_RUN_H

#include "exec/session.h"

typedef struct ort_as_run {
    ort_env *env;
    const ort_model *models[2]; /* original, rewritten */
    ort_session *sessions[2];   /* made when they are first needed */
} ort_as_run;

/* inputs: of each, in order. tolerance: as verify's of codes. unoptimized: outputs of each at level
 * 0; the noise between them must be below a tenth of the signal. False, too, where a session can't
 * be made or run. */
bool ort_as_run_agree(ort_as_run *r, ort_value *const *const inputs[2],
                      ort_value *const *const unoptimized[2], double tolerance);
void ort_as_run_release(ort_as_run *r);

#endif
