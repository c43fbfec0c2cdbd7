/* bytes_plan.h - how a convolution in the layout of bytes is cut into tasks, by the extents of its
 * input: bytes_plan.c makes it, bytes_conv.c runs by it.
 */
#ifndef ORT_OP_BLOCKED_BYTES_PLAN_H
#define ORT_OP_BLOCKED_BYTES_PLAN_H

#include <string.h>

#include "op/blocked/bytes_conv.h"
#include "op/blocked/bytes_tiled.h"

typedef struct bytes_plan {
    ort_blocked_dims in, out;
    ort_window w;
    bool copies;
    bool window;                   /* depthwise, in place */
    ort_blocked_cut cut;           /* of a group's outputs */
    int64_t pixel, x_row, x_block; /* bytes of a pixel, a row and a block as products read them */
    int64_t copy_row;              /* pixels of a copied row */
    int64_t comb;                  /* from one output row of a task to the next, and from one copied
                                      row to the next; w is of these */
    ort_bytes_runs part[2];
    const int64_t *place;          /* of each word, bytes from the first tap; or NULL */
    int64_t near;                  /* rows whose words are multiplied alike */
    int64_t peaks, space;          /* places in a thread's scratch */
    ort_bytes_tiling *tiling;      /* instead of all that; or NULL */
    int64_t sums;                  /* place of sums that become floats in a thread's scratch */
} bytes_plan;

/* The operator's `shape`: makes a bytes_plan. */
ort_status ort_bytes_conv_shape(ort_shaping *sh, ort_error *err);

/* Input rows under `rows` output rows. */
static inline int64_t rows_under(const ort_window *w, int64_t rows)
{
    return (rows - 1) * w->stride[0] + ort_blocked_reach(w, 0);
}

/* What depthwise kernels read, of any row. */
static inline ort_bytes_band band_of(const bytes_plan *p)
{
    ort_bytes_band d = {.x_row = p->x_row, .out.count = p->w.out[1]};
    memcpy(d.kernel, p->w.kernel, sizeof d.kernel);
    memcpy(d.stride, p->w.stride, sizeof d.stride);
    memcpy(d.dilation, p->w.dilation, sizeof d.dilation);
    return d;
}

enum {
    NEAR_BYTES = 12 << 10, /* of a depthwise task's rows, arranged at a time, */
    NEAR_SUMS = 24 << 10,  /* or of its sums */
};

/* Rows of a depthwise task that are arranged, and finished, at a time; of windows in place, whose
 * sums become floats. */
static inline int64_t near_rows(const bytes_plan *p)
{
    if (p->window)
        return ort_max_i64(1, NEAR_SUMS / (p->w.out[1] * ORT_BYTES_BLOCK * 4) / 2) * 2;
    return ort_max_i64(1, NEAR_BYTES / (p->x_row * p->w.stride[0]));
}

#endif
