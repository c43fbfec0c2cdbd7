/* blocked_patch.h - what windows see in the blocked layout, put side by side, of some output
 * pixels: [kernel row][kernel column][block][pixel][B]. A convolution of it is one of single
 * pixels, of taps times the channels, which sums the same numbers in the same order; the weights
 * lie as they did.
 */
#ifndef ORT_OP_BLOCKED_PATCH_H
#define ORT_OP_BLOCKED_PATCH_H

#include "op/shared/window.h"

/* Of `count` output pixels from `first` on, in rows of `row` pixels each. x: the first of `blocks`
 * planes of w->in; what lies outside of them is zero. */
void ort_blocked_patch(const ort_window *w, int64_t row, int64_t block, const float *x,
                       int64_t blocks, int64_t first, int64_t count, float *to);

#endif
