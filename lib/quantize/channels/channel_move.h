/* channel_move.h - factors of channels that move from what computes a value to the weights that
 * multiply it, so that its channels reach equally far and one scale serves all of them:
 *
 *     relu(W1 x + b1) W2  =  relu((W1 x + b1) / s) (s W2)          for s > 0, a number a channel
 *
 * The float results are the same but for rounding. What lies between is homogeneous (f(s x) =
 * s f(x) for s > 0) and keeps channels apart. A source is a product (Conv, Gemm, MatMul and the sum
 * with its bias) or the scale and bias of a norm, as an operator or spelled out; all readers are
 * products with constant weights.
 */
#ifndef ORT_QUANTIZE_CHANNEL_MOVE_H
#define ORT_QUANTIZE_CHANNEL_MOVE_H

#include "base/vec.h"
#include "graph/graph.h"

/* A constant that a factor a channel goes into. */
typedef struct ort_channel_part {
    ort_node *node;
    int slot, axis;
    int64_t groups; /* of a convolution whose axis 1 counts the channels of a group; else 1 */
    bool weight;    /* of a product: what its numbers are counts for the factors */
} ort_channel_part;

typedef ORT_VEC(ort_channel_part) ort_channel_parts;
typedef ORT_VEC(ort_id) ort_channel_ids;

typedef struct ort_channel_move {
    ort_graph *graph;
    ort_id value;        /* what the first reader multiplies */
    int axis;            /* of its channels: 1, or -1 for the last */
    int64_t channels;
    bool foldable;       /* there is a source; else a Mul has to divide the value */
    bool from_product;   /* the source is one */
    ort_channel_parts sources, readers;
    ort_channel_ids *made; /* constants that moves before made, which may change in place */
} ort_channel_move;

/* From a node on: is it a source whose readers all take factors? False also without memory. The
 * caller releases the move in any case. */
bool ort_channel_move_from(ort_graph *graph, ort_node *node, ort_channel_ids *made,
                           ort_channel_move *move);
/* From a value that products read (axis -1: by its last axis) without regard to what computes it:
 * a Mul could stand between. */
bool ort_channel_move_before(ort_graph *graph, ort_id value, ort_channel_ids *made,
                             ort_channel_move *move);
void ort_channel_move_release(ort_channel_move *move);

/* The largest magnitude of each channel in the weights among the parts, or in what else there is
 * (biases). */
void ort_channel_reach(const ort_channel_move *move, const ort_channel_parts *parts, bool weights,
                       float *reach);

/* from^alpha / to^(1 - alpha), rounded to a power of the 16th root of 2, so that the last bits of
 * logarithms decide nothing; 1 where one of them is 0. */
float ort_channel_factor(double from, double to, double alpha);

/* Sources are divided by the factors, readers multiplied. Constants are replaced by copies. Without
 * a source a Mul divides the value before the readers; *mul is it then, or NULL. */
ort_status ort_channel_move_apply(ort_channel_move *move, const float *factors, ort_node **mul,
                                  ort_error *err);

#endif
