/* number.h - inputs that are one number: a trip count, an axis, a penalty.
 *
 * Invariant: an input that is there has exactly one element when its number is read; one that
 * hasn't is refused by its name. Inference refuses it as soon as its shape says so (ort_op_infer),
 * a run where only the run knows.
 */
#ifndef ORT_OP_SHARED_NUMBER_H
#define ORT_OP_SHARED_NUMBER_H

#include "op/op.h"
#include "tensor/scalar.h"

/* *number stays as it is where the input is absent: set it to the default before. */
ort_status ort_call_i64(const ort_call *call, int input, int64_t *number, ort_error *err);
ort_status ort_call_f64(const ort_call *call, int input, double *number, ort_error *err);
ort_status ort_call_f32(const ort_call *call, int input, float *number, ort_error *err);
/* Those of `inputs` that are there have one element each. */
ort_status ort_call_need_numbers(const ort_call *call, const int *inputs, int count,
                                 ort_error *err);

#endif
