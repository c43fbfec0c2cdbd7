/* conv_tiled.h - float convolutions of the blocked layout on tiers that multiply whole tiles
 * (conv_tiled.c). */
#ifndef ORT_OP_BLOCKED_CONV_TILED_H
#define ORT_OP_BLOCKED_CONV_TILED_H

#include "op/blocked/blocked_op.h"

/* Does it pay for this filter on this input? Never when the session's arithmetic is strict: sums
 * are formed in another order. */
bool ort_conv_tiled_pays(const ort_prep *p, const ort_blocked_state *s);
/* The terms of filter w, [maps][channels][taps], to s->w; s->tiled is false if it has weights that
 * have none. */
ort_status ort_conv_tiled_pack(ort_prep *p, ort_blocked_state *s, const ort_tensor *w,
                               ort_error *err);
ort_status ort_conv_tiled_shape(ort_shaping *sh, const ort_blocked_dims *in,
                                const ort_blocked_dims *out, const ort_window *w, ort_error *err);
ort_status ort_conv_tiled_run(ort_call *call, ort_error *err);

#endif
