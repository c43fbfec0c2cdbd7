/* winograd_line.h - convolutions of stride 1 along one axis, the first of two or the only one, by
 * Winograd's tiles of that axis (kernel/winograd.inc): six products for `form` outputs of at most
 * 7 - form taps. Longer columns are sums of several such pieces; taps along the other axis, of any
 * stride and dilation, are those of the products.
 */
#ifndef ORT_OP_BLOCKED_WINOGRAD_LINE_H
#define ORT_OP_BLOCKED_WINOGRAD_LINE_H

#include "op/blocked/blocked_op.h"

/* Outputs of a tile for this filter on this input, or 0 where the direct sums, or the tiles of two
 * axes, are as fast. Never when the session's arithmetic is strict. */
int ort_line_pays(const ort_prep *p, const ort_blocked_state *s);
/* Are the extents open till runs, and the filter so small that s keeps both forms? */
bool ort_line_leaves_open(const ort_prep *p, const ort_blocked_state *s);
/* Does an output of this shape come that way, if s->line says that some do? */
bool ort_line_takes(const ort_blocked_state *s, const ort_shape *y);
/* Products that it does over those of the definition. */
double ort_line_share(const ort_blocked_state *s);
/* Transform the filter w, [maps][channels][rows][columns], to s->line_w. */
ort_status ort_line_pack(ort_prep *p, ort_blocked_state *s, const ort_tensor *w, ort_error *err);
ort_status ort_line_shape(ort_shaping *sh, const ort_blocked_dims *in, const ort_blocked_dims *out,
                          const ort_window *w, ort_error *err);
ort_status ort_line_run(ort_call *call, ort_error *err);

#endif
