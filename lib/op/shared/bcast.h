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

/* ---- two operands, one function */

typedef struct ort_binary_state {
    ort_binary_fn *fn;      /* NULL where another run function is used */
    ort_dtype dtype;        /* of the operands */
    bool widen;             /* 16-bit floats: fn takes f32 */
    bool bytes_out;         /* fn gives uint8 */
    bool legacy;            /* opset 6: `axis` aligns B */
    bool has_axis;
    int64_t axis;
    int64_t parameter;      /* of the operator */
} ort_binary_state;

/* shape's share: two operands of one element type, or an error that names both. */
ort_status ort_binary_check_types(const ort_tensor *a, const ort_tensor *b, ort_error *err);
/* What impls begin with: the state and the opset-6 attributes. */
#define ORT_BINARY_STATE .state = sizeof(ort_binary_state), .bind = ort_binary_bind
extern const ort_bind ort_binary_bind[];
ort_status ort_binary_prepare(ort_prep *p, ort_error *err);
ort_status ort_binary_shape(ort_shaping *s, ort_error *err); /* plan_state: an ort_bcast */
ort_status ort_binary_run(ort_call *call, ort_error *err);
/* Types and shape (opset 6 included). `boolean`: the output is bool. */
ort_status ort_binary_infer(ort_infer *x, ort_error *err);

#endif
