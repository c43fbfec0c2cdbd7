/* blocked_patch.c - what windows see, put side by side (blocked_patch.h).
 *
 * Bound: one load and one store for each vector of a pixel and tap.
 */
#include "op/blocked/blocked_patch.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"

/* `count` pixels, `step` floats apart, side by side. */
static void copy_pixels(const float *from, int64_t step, int64_t block, int64_t count, float *to)
{
    if (step == block) {
        memcpy(to, from, (size_t)(count * block) * sizeof *to);
        return;
    }
    for (; count > 0; count--, from += step, to += block)
        for (int64_t i = 0; i < block; i += 8) /* a constant size is no call */
            memcpy(to + i, from + i, 8 * sizeof *to);
}

/* Of one row of outputs from column `left` on: what tap `tap` of them reads in `row`, zeros beside
 * it. */
static void copy_row(const ort_window *w, int64_t tap, int64_t block, const float *row,
                     int64_t left, int64_t count, float *to)
{
    const int64_t stride = w->stride[1];
    int64_t ix = left * stride - w->begin[1] + tap * w->dilation[1];
    int64_t before = ix < 0 ? ort_min_i64((-ix + stride - 1) / stride, count) : 0;
    int64_t inside = w->in[1] > ix ? (w->in[1] - ix + stride - 1) / stride : 0; /* or before */
    inside = ort_max_i64(ort_min_i64(inside, count) - before, 0);
    memset(to, 0, (size_t)(before * block) * sizeof *to);
    if (inside > 0)
        copy_pixels(row + (ix + before * stride) * block, stride * block, block, inside,
                    to + before * block);
    memset(to + (before + inside) * block, 0,
           (size_t)((count - before - inside) * block) * sizeof *to);
}

void ort_blocked_patch(const ort_window *w, int64_t row, int64_t block, const float *x,
                       int64_t blocks, int64_t first, int64_t count, float *to)
{
    assert(block % 8 == 0 && first >= 0 && count > 0);
    for (int64_t tap = 0; tap < w->kernel[0] * w->kernel[1]; tap++) {
        const int64_t down = tap / w->kernel[1], along = tap % w->kernel[1];
        for (int64_t b = 0; b < blocks; b++)
            for (int64_t done = 0, part; done < count; done += part, to += part * block) {
                const int64_t oy = (first + done) / row, left = (first + done) % row;
                const int64_t iy = oy * w->stride[0] - w->begin[0] + down * w->dilation[0];
                part = ort_min_i64(row - left, count - done);
                if (iy < 0 || iy >= w->in[0])
                    memset(to, 0, (size_t)(part * block) * sizeof *to);
                else
                    copy_row(w, along, block, x + (b * w->in[0] + iy) * w->in[1] * block, left,
                             part, to);
            }
    }
}
