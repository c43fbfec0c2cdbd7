/* blocked_op.h - operators on the blocked channel layout (kernel/blocked.h).
 *
 * A tensor [N, C, spatial...] is held as [N, ceil(C / B), spatial..., B]: channel c lies in block
 * c / B at place c % B. Inside a session that is its honest shape, one axis more than before, so
 * every elementwise operator works on it as it is. The operators of com.microsoft.nchwc keep four
 * axes, [N, C rounded up to B, H, W], over the same memory: there B isn't told by the shape.
 */
#ifndef ORT_OP_BLOCKED_BLOCKED_OP_H
#define ORT_OP_BLOCKED_BLOCKED_OP_H

#include "op/bind.h"
#include "op/shared/fused.h"
#include "op/shared/window.h"

#define NCHWC "com.microsoft.nchwc"

typedef struct ort_blocked_state {
    ort_window_spec spec;
    const ort_blocked_kernels *k;
    int64_t block;
    bool inner;           /* the block is an axis of its own, the last */
    /* Conv */
    bool plain, depthwise;  /* plain: the input isn't blocked */
    bool few;               /* output channels: w is that of conv_few */
    bool winograd;          /* w holds transformed filters */
    int line;               /* line_w does, of tiles of so many outputs along one axis; 0: not so */
    bool either;            /* w holds the filter itself, too: extents decide (winograd_line.h) */
    bool tiled;             /* w holds thirds of bfloat16 (conv_tiled.h) */
    bool tiled_floats;      /* ... or floats in their place */
    bool crossed;           /* sums are (kernel/crossed.h), and w is followed by what these take: of
                               each sum_channels what each output begins with, and their exponent */
    int64_t group, maps, channels; /* channels of one group; maps: real outputs, all groups */
    int64_t kernel[2];
    ort_epilogue epilogue;
    bool affine;            /* then y * scale + shift */
    float scale, shift;
    const float *w, *line_w;
    bool finite;          /* w and line_w are */
    const float *bias;    /* for whole blocks; or NULL */
    ort_floats slopes;    /* of PRelu, per output; none: another activation */
    const float *slope;   /* the same for whole blocks; or NULL */
    int64_t group_floats; /* of w, per group */
    int64_t sum_channels; /* of one call: w holds [group][these channels][panel].. */
    /* pooling */
    bool maximum, include_pad;
} ort_blocked_state;

/* Extents of a blocked tensor; spatial axes as a window of two has them. */
typedef struct ort_blocked_dims {
    int64_t n, blocks, rank, in[2], plane;
} ort_blocked_dims;

/* Blocks that hold so many channels. */
static inline int64_t ort_blocked_count(int64_t channels, int64_t block)
{
    return (channels + block - 1) / block;
}
/* False when the shape isn't one of a blocked tensor of one or two spatial axes. */
bool ort_blocked_read(const ort_blocked_state *s, const ort_shape *shape, ort_blocked_dims *dims);
const ort_blocked_kernels *ort_blocked_kernels_of(const ort_kernels *k, int64_t block);
/* Is the block an axis of its own in this node's tensors? */
bool ort_blocked_inner(const ort_node *node);
/* The block of this node's tensors: its attribute, or what the nodes of a file reveal. */
int64_t ort_blocked_size(const ort_node *node, const ort_graph *graph);
/* The output of a conversion into the layout. */
ort_status ort_blocked_infer(ort_infer *x, ort_error *err);
/* What attributes don't tell of the blocks of a node's state: where they lie, their kernels. */
ort_status ort_blocked_prepare(ort_prep *p, ort_error *err);
/* Numbers per channel for whole blocks, zeros behind the last; in the node's arena. None: NULL. */
ort_status ort_blocked_fill(ort_prep *p, const ort_floats *numbers, int64_t channels,
                            const float **whole, ort_error *err);
/* Part of a block of channels, between a plain tensor and a blocked one: `count` pixels of
 * `channels` planes; where it begins in either, in elements. */
typedef struct ort_blocked_part {
    int64_t channels, count, plane;
    int64_t plain, blocked;
} ort_blocked_part;
typedef void ort_blocked_move_fn(ort_call *call, const ort_blocked_part *part);
/* Runs a conversion of input 0 into or out of a layout of such blocks, part by part. */
ort_status ort_blocked_convert(ort_call *call, bool into, ort_blocked_move_fn *move,
                               ort_error *err);
/* Tasks of a product: output rows by vectors of output channels. */
typedef struct ort_blocked_cut {
    int64_t vectors, task_vectors, vector_blocks; /* all; of a task; tasks along them */
    int64_t rows, row_blocks;                     /* of a task; tasks along them */
} ort_blocked_cut;
/* Cut until `units` times the tasks are `wanted`, which depends on sizes only, not on threads: one
 * of rows and vectors first, down to the least ones, then the other. */
void ort_blocked_cut_tasks(ort_blocked_cut *cut, int64_t all_rows, int64_t units, int64_t wanted,
                           bool by_rows, int64_t least_rows, int64_t least_vectors);
/* Their number, of one unit. */
static inline int64_t ort_blocked_tasks(const ort_blocked_cut *cut)
{
    return cut->row_blocks * cut->vector_blocks;
}
/* What a window spans. */
static inline int64_t ort_blocked_reach(const ort_window *w, int axis)
{
    return (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}
/* `window` with two axes: for one, the first is 1. */
ort_status ort_blocked_resolve(const ort_window_spec *spec, const ort_blocked_dims *in,
                              const int64_t *kernel, ort_window *window, ort_error *err);
/* A plane of one column under a window of one column becomes one row, which it is in memory. */
void ort_blocked_turn_column(ort_window *window);
/* The rows of the window inside the input at output row `oy`: their number, the first kernel row
 * and its input row. Also where column 0 starts. */
void ort_blocked_rows(const ort_window *w, int64_t oy, int64_t block, ort_blocked_window *rows,
                      int64_t *first_row, int64_t *in_row);

/* A window over each plane of w->in; x, w, out, first_row and rows are left open. */
void ort_blocked_band_of(const ort_window *w, int64_t block, ort_blocked_band *d);
/* Is there something behind the clamp? */
bool ort_blocked_activates(const ort_blocked_state *s);
/* An activation that is no clamp and the numbers behind it, over the count pixels of each block of
 * outputs. */
void ort_blocked_activate(ort_call *call, const ort_blocked_state *s, const ort_blocked_out *out,
                          int64_t blocks);

/* blocked_conv.c, blocked_pool.c: the phases that both domains share. Poolings have a variant. */
enum { ORT_BLOCKED_MEAN, ORT_BLOCKED_MAX };
extern const ort_bind ort_blocked_conv_bind[], ort_blocked_pool_bind[];
/* Their rows in a session. BlockedConv and BlockedMaxPool, the first, are the stages of chains. */
extern const ort_op ort_ops_blocked_conv[], ort_ops_blocked_pool[];
ort_status ort_blocked_conv_prepare(ort_prep *p, ort_error *err);
/* blocked_pack.c: are weights finite, and what transforms make of them? */
bool ort_blocked_finite(const float *w, int64_t count);
/* The filter, of a state that says how it is computed; the bias of whole blocks. */
ort_status ort_blocked_pack(ort_prep *p, ort_blocked_state *s, const ort_tensor *w, ort_error *err);
/* Of a crossed filter, from this channel on. */
const float *ort_blocked_crossed_at(const ort_blocked_state *s, int64_t channel, int *middle);
ort_status ort_blocked_pack_bias(ort_prep *p, ort_blocked_state *s, ort_error *err);
/* The product of blocked input, by whichever kernel w is packed for. */
void ort_blocked_conv_product(const ort_blocked_state *s, ort_blocked_conv *c);
ort_status ort_blocked_conv_shape(ort_shaping *s, ort_error *err);
ort_status ort_blocked_conv_run(ort_call *call, ort_error *err);
/* Also of BytesConv, whose first two inputs are the same: its output; its products. */
ort_status ort_blocked_conv_infer(ort_infer *x, ort_error *err);
ort_status ort_blocked_conv_infer_plain(ort_infer *x, ort_error *err); /* of a plain output */
double ort_blocked_conv_macs(const ort_infer *x);
void ort_blocked_conv_cost(const ort_infer *x, ort_cost *cost);
ort_status ort_blocked_pool_prepare(ort_prep *p, ort_error *err);
ort_status ort_blocked_window_shape(ort_shaping *s, ort_error *err);
ort_status ort_blocked_window_run(ort_call *call, ort_error *err);
ort_status ort_blocked_global_shape(ort_shaping *s, ort_error *err);
ort_status ort_blocked_global_run(ort_call *call, ort_error *err);

/* How plain input rows lie once they are copied with their padding: [channel][rows][row]. */
typedef struct ort_blocked_rows_plan {
    int64_t row, plane;    /* floats of a padded row and of a channel's rows */
    const int64_t *offset; /* of each tap, channel by channel */
} ort_blocked_rows_plan;

/* Row and plane for `rows` output rows; the floats that they take. */
int64_t ort_blocked_rows_floats(const ort_window *w, int64_t rows, int64_t channels,
                                ort_blocked_rows_plan *plan);
ort_status ort_blocked_rows_offsets(ort_arena *arena, const ort_window *w, int64_t channels,
                                    ort_blocked_rows_plan *plan, ort_error *err);
/* The input rows under output rows [first, last) of the image x, `channels` planes of w->in. */
void ort_blocked_copy_rows(const ort_window *w, const ort_blocked_rows_plan *plan, const float *x,
                           int64_t channels, int64_t first, int64_t last, float *out);

/* nchwc_file.c: the block of a file's com.microsoft.nchwc nodes. graph may be NULL. */
int64_t ort_nchwc_block(const ort_graph *graph);
/* A filter of that domain in ONNX's order, [maps][channels][kernel...]; to->data is the caller's to
 * free. */
ort_status ort_nchwc_weights(const ort_blocked_state *s, const ort_tensor *from, ort_tensor *to,
                             ort_error *err);

#endif
