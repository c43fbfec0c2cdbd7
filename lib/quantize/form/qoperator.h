/* qoperator.h - the other form: operators on codes instead of float operators between
 * DequantizeLinear and QuantizeLinear.
 */
#ifndef ORT_QUANTIZE_QOPERATOR_H
#define ORT_QUANTIZE_QOPERATOR_H

#include "base/log.h"
#include "op/op.h"

/* Of a model that ort_qdq_write wrote. What no operator on codes is for stays between the two. */
ort_status ort_qoperator_fold(ort_model *model, const ort_registry *registry, const ort_log *log,
                              ort_error *err);

#endif
