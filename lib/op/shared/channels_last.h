/* channels_last.h - an operator written for [n, channels, spatial...], run on input 0 and output 0
 * of [n, spatial..., channels].
 *
 * Each call hands the inner phase the same node with the channels moved; other inputs stay as they
 * are. The two moved tensors lie at the front of the workspace, the inner operator's behind them.
 */
#ifndef ORT_OP_SHARED_CHANNELS_LAST_H
#define ORT_OP_SHARED_CHANNELS_LAST_H

#include "op/op.h"

ort_status ort_channels_last_infer(ort_infer *x, ort_status (*inner)(ort_infer *, ort_error *),
                                   ort_error *err);
ort_status ort_channels_last_shape(ort_shaping *s, ort_status (*inner)(ort_shaping *, ort_error *),
                                   ort_error *err);
ort_status ort_channels_last_run(ort_call *call, ort_status (*inner)(ort_call *, ort_error *),
                                 ort_error *err);

#endif
