/* bytes_tiled.h - convolutions of the layout of bytes on tiers that multiply whole tiles
 * (bytes_tiled.c). */
#ifndef ORT_OP_BLOCKED_BYTES_TILED_H
#define ORT_OP_BLOCKED_BYTES_TILED_H

#include "op/blocked/bytes_conv.h"

typedef struct ort_bytes_tiling ort_bytes_tiling;

/* What a run reads and writes. */
typedef struct ort_bytes_values {
    const uint8_t *x;
    uint8_t flip; /* of a plain input */
    uint8_t *y;
    const int32_t *bias;
    const float *scale;
    int x_zero;
    const ort_bytes_after_job *after; /* NULL: nothing follows */
} ort_bytes_values;

/* The plan, NULL where the other kernels are as fast. */
ort_status ort_bytes_tiled_shape(ort_shaping *sh, const bytes_state *s, const ort_blocked_dims *in,
                                 const ort_blocked_dims *out, const ort_window *w,
                                 ort_bytes_tiling **plan, ort_error *err);
void ort_bytes_tiled_run(ort_call *call, const bytes_state *s, const ort_bytes_tiling *plan,
                         const ort_bytes_values *values);

#endif
