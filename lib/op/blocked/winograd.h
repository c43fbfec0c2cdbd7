/* winograd.h - 3x3 convolutions of stride 1 in the blocked layout by Winograd's F(4x4, 3x3)
 * (kernel/winograd.inc): 36 products for 16 outputs instead of 144, for 4 times the weights.
 */
#ifndef ORT_OP_BLOCKED_WINOGRAD_H
#define ORT_OP_BLOCKED_WINOGRAD_H

#include "op/blocked/blocked_op.h"

/* Does it pay for this filter on this input? Never when the session's arithmetic is strict: the
 * transforms reassociate sums. Unknown extents count as middling ones. */
bool ort_winograd_pays(const ort_prep *p, const ort_blocked_state *s);
/* Products that it does over those of the definition, for a blocked output of this shape. */
double ort_winograd_share(const ort_type *y);
/* Transform the filter w, [maps][channels][3][3], to s->w. */
ort_status ort_winograd_pack(ort_prep *p, ort_blocked_state *s, const ort_tensor *w,
                             ort_error *err);
ort_status ort_winograd_shape(ort_shaping *sh, const ort_blocked_dims *in,
                              const ort_blocked_dims *out, const ort_window *w, ort_error *err);
ort_status ort_winograd_run(ort_call *call, ort_error *err);

#endif
