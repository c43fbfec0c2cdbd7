/* bytes_winograd.h - quantized 3x3 convolutions of stride 1 in the layout of bytes by Winograd's
 * F(4x4, 3x3) in integers (kernel/blocked_bytes_winograd.inc), exact: 36 products for 16 outputs
 * instead of 144. For tiers that multiply int16.
 */
#ifndef ORT_OP_BLOCKED_BYTES_WINOGRAD_H
#define ORT_OP_BLOCKED_BYTES_WINOGRAD_H

#include "op/blocked/bytes_op.h"

typedef struct ort_bytes_winograd {
    int64_t channels, maps; /* of the filters */
    const int32_t *w;       /* of ort_bytes_winograd_block */
    const int32_t *bias;    /* for whole blocks */
    const float *scale;     /* likewise */
    int x_zero, y_zero;
    bool bounded;           /* as ort_bytes_out's */
    const bool *whole;      /* of each block, as ort_bytes_tiles' */
} ort_bytes_winograd;

/* Does it pay for a filter of these channels and maps, 3x3 with one group, on this node's input?
 * Unknown extents count as middling ones. */
bool ort_bytes_winograd_pays(const ort_prep *p, const ort_bytes_winograd *s,
                             const ort_window_spec *spec);
/* Products that it does over those of the definition, for an output of this shape. */
double ort_bytes_winograd_share(const ort_type *y);
/* int32 of all transformed filters. */
int64_t ort_bytes_winograd_words(const ort_bytes_winograd *s);
/* The 16 filters of a block of maps, [channels of whole blocks][9] each, transformed. */
void ort_bytes_winograd_block(const ort_bytes_kernels *k, const ort_bytes_winograd *s,
                              int64_t block, const int8_t *const *filters, int32_t *words);
ort_status ort_bytes_winograd_shape(ort_shaping *sh, const ort_bytes_winograd *s,
                                    const ort_blocked_dims *in, const ort_blocked_dims *out,
                                    const ort_window *w, ort_error *err);
void ort_bytes_winograd_run(ort_call *call, const ort_bytes_winograd *s);

#endif
