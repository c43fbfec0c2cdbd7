/* pool_shape.h - a pool by its shapes: attributes, and the plan of its loops. */
#ifndef ORT_OP_SHARED_POOL_SHAPE_H
#define ORT_OP_SHARED_POOL_SHAPE_H

#include "op/shared/spread.h"

typedef enum pool_kind {
    POOL_MAX,
    POOL_AVERAGE,
    POOL_LP,
} pool_kind;

typedef struct pool_state {
    pool_kind kind;
    ort_window_spec spec;
    bool include_pad, column_major, channels_last;
    int64_t p;               /* LpPool */
} pool_state;

typedef struct pool_plan {
    int64_t planes, in_plane, out_plane;
    ort_window w;            /* three axes */
    ort_spread s;            /* f32 path: of a block of rows */
    int64_t rows, row_blocks;
    const int64_t *offset;   /* [taps] */
    int64_t taps;
    const float *count[3];   /* average: taps that count, per output coordinate of each axis */
    bool apart;              /* f32 windows that hardly overlap: pooling_scalar.c */
    bool whole;              /* f32, one window that is the plane: a plain reduction */
    size_t x_wide, y_wide;
} pool_plan;

#endif
