/* conv_shape.h - a convolution by its shapes: inference, cost, window, the plan of its loops. */
#ifndef ORT_OP_SHARED_CONV_SHAPE_H
#define ORT_OP_SHARED_CONV_SHAPE_H

#include "op/shared/fused.h"
#include "op/shared/spread.h"

typedef struct conv_state {
    ort_window_spec spec;
    int64_t group;
    ort_epilogue epilogue; /* clamp and activation of FusedConv */
    const float *wide_weights, *wide_bias; /* constants of f16 and bf16, widened */
} conv_state;

typedef struct conv_plan {
    int64_t n, channels, maps, group;       /* images, input channels, output channels */
    int64_t group_channels, group_maps;
    int64_t depth;                          /* k of the product: taps of one output */
    int64_t in_plane, out_plane;            /* elements */
    ort_spread s;
    bool few;                               /* few outputs in a map: dot products */
    bool windows;                           /* few maps per group: window kernel, no product */
    const int64_t *offset;                  /* [depth]: of each k within a group's channels */
    int64_t rows, row_blocks;               /* windows: output rows of one task */
    int64_t groups;                         /* windows: neighbouring groups of one task */
    int64_t map_block, map_blocks, tile, tiles; /* product: grid of one image and group */
    int64_t images;                         /* spread at once */
    size_t x_wide, w_wide, b_wide, y_wide, z_wide, spread_space;
} conv_plan;

/* Dims of X and W to the numbers above and the window (not 3-D yet). */
ort_status ort_conv_window(const ort_window_spec *spec, int64_t group, const ort_shape *x,
                           const ort_shape *w, ort_window *window, ort_error *err);
ort_status ort_conv_infer_shape(ort_infer *x, int x_input, int w_input, ort_error *err);
ort_status ort_conv_infer(ort_infer *x, ort_error *err); /* of inputs 0 and 1 */
void ort_conv_cost(const ort_infer *x, ort_cost *cost);
/* Small planes go several at a time: what was just spread rests a little before it is read at
 * other alignments, which stalls otherwise. The number divides the groups, so that tasks stay in
 * one image. */
int64_t ort_conv_groups(const conv_plan *plan);

#endif
