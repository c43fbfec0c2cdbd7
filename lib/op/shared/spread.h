/* spread.h - an input plane laid out so that every window tap is one constant offset.
 *
 * The plane is padded and split by stride phases: phase (pz, py, px) holds the padded elements
 * whose coordinates are p modulo the stride. In that layout the input of output position (z, y, x)
 * under tap t lies at
 *
 *     tap_offset(t) + flat(z, y, x),   flat = (z * extent[1] + y) * extent[2] + x
 *
 * for any stride and dilation: a convolution is a matrix product whose B is read at offsets,
 * without im2col, and a pooling is a sum or maximum over shifted rows. Flat positions with x >=
 * out[2] or y >= out[1] are junk between rows. Only phases that some tap needs exist.
 *
 * stride 2, kernel 3, pad 1:   . a b c d e f g .   ->  phase 0: . b d f .     tap 0, 2 (offset +
 * 1)
 *                                                           phase 1: a c e g       tap 1
 */
#ifndef ORT_OP_SHARED_SPREAD_H
#define ORT_OP_SHARED_SPREAD_H

#include "op/shared/window.h"

typedef struct ort_spread {
    ort_window w;             /* three axes */
    int64_t phases[3];        /* used per axis */
    const int64_t *phase[3];  /* their values */
    const int64_t *tap_phase[3]; /* [kernel]: index into phase */
    int64_t extent[3];
    int64_t channel;          /* elements of one plane in this layout */
    int64_t length;           /* flat positions up to the last output, junk included */
    bool direct;              /* the layout is the input itself */
    bool dense;               /* no junk: flat positions are the output itself */
} ort_spread;

ort_status ort_spread_build(const ort_window *window, ort_arena *arena, ort_spread *spread,
                            ort_error *err);
int64_t ort_spread_tap(const ort_spread *s, int64_t kz, int64_t ky, int64_t kx);
/* Neighbouring planes in[0] x in[1] x in[2] into `out` (channel elements each), for outputs from
 * row `row` on. */
void ort_spread_f32(const ort_kernels *k, const ort_spread *s, int64_t planes, const float *plane,
                    int64_t row, float pad, float *out);

/* Where the rows of one phase come from: rows [first_row, first_row + rows) hold, from element
 * `first` on, `count` elements of the input, row r of them starting at from + r * in_row. All else
 * is padding. */
typedef struct ort_spread_part {
    int64_t first_row, rows, first, count, from, in_row;
} ort_spread_part;
void ort_spread_rows(const ort_spread *s, int64_t pz, int64_t py, int64_t px, int64_t zq,
                     int64_t row, ort_spread_part *part);

/* Walk the runs of real outputs inside flat positions [first, last): `*at` is where to start
 * looking (first, then what was left there); gives the flat start, the output index and the
 * length. */
bool ort_spread_next(const ort_spread *s, int64_t last, int64_t *at, int64_t *flat, int64_t *index,
                     int64_t *count);

#endif
