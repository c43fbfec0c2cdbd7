/* bcast.h - walking tensors that broadcast onto one output.
 *
 * ort_bcast holds the output's axes collapsed to the fewest on which every input is either
 * advancing or standing still: then the innermost axis is a run in which each input has stride 1
 * or 0, and most models' cases (same shape, scalar, trailing vector, per-channel) become one or
 * two axes.
 */
#ifndef ORT_OP_SHARED_BCAST_H
#define ORT_OP_SHARED_BCAST_H

#include "op/op.h"

#define ORT_BCAST_MAX 3

typedef struct ort_bcast {
    int rank, inputs;       /* rank >= 1 */
    int64_t total;          /* elements of the output */
    int64_t dim[ORT_MAX_RANK];
    int64_t stride[ORT_BCAST_MAX][ORT_MAX_RANK]; /* elements; inner one 0 or 1 */
    bool flat;              /* one axis and every input advances on it */
} ort_bcast;

void ort_bcast_make(ort_bcast *b, const ort_shape *out, const ort_shape *const *in, int inputs);

/* `n` output elements from index `out`; input k reads from index in[k], step b->stride[k][rank-1].
 * */
typedef void ort_bcast_fn(void *arg, int64_t out, const int64_t *in, int64_t n);
/* The runs of output elements [first, first + count), in order. */
void ort_bcast_walk(const ort_bcast *b, int64_t first, int64_t count, ort_bcast_fn *fn, void *arg);

#endif
