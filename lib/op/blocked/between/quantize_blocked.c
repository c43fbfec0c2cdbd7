/* quantize_blocked.c - QuantizeBlocked: from the blocked layout of floats to that of bytes, where
 * products of bytes follow floats.
 */
#include <string.h>

#include "base/checked.h"
#include "op/blocked/bytes_op.h"
#include "tensor/scalar.h"

typedef struct quantize_job {
    ort_call *call;
    ort_blocked_dims d; /* of Y */
    int64_t wide, blocks; /* of X: channels of a block, and how many of them an image has */
    float scale;
    int zero;
} quantize_job;

static ort_status quantize_infer(ort_infer *x, ort_error *err)
{
    ort_dim out[ORT_MAX_RANK];
    const int64_t channels = ort_node_attr_int(x->node, "channels");
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    const ort_type *t = &x->in[0]->type;
    if (t->rank < 4 || channels < 1)
        return ort_infer_fail(x, err, "the input isn't blocked");
    memcpy(out, t->dim, (size_t)t->rank * sizeof *out);
    out[1] = ort_dim_of(ort_blocked_count(channels, ORT_BYTES_BLOCK));
    out[t->rank - 1] = ort_dim_of(ORT_BYTES_BLOCK);
    ort_infer_set_shape(x, 0, t->rank, out);
    return ORT_OK;
}

/* A block of Y, of one or two of X, whose codes are made one after the other and laid between each
 * other. Where X has no block, channels are nobody's. */
static void task_quantize(void *arg, size_t task, int thread)
{
    enum { PIECE = 64, HALF = ORT_BYTES_BLOCK / 2 };
    const quantize_job *j = arg;
    const int64_t plane = j->d.plane, wide = j->wide, parts = ORT_BYTES_BLOCK / wide;
    const int64_t image = (int64_t)task / j->d.blocks, block = (int64_t)task % j->d.blocks;
    const float *x = ort_call_in(j->call, 0)->data;
    uint8_t *y = ort_call_out(j->call, 0)->data, codes[PIECE * ORT_BYTES_BLOCK];
    for (int64_t at = 0; at < plane; at += PIECE) {
        const int64_t pixels = ort_min_i64(PIECE, plane - at), n = pixels * wide;
        uint8_t *to = y + ((int64_t)task * plane + at) * ORT_BYTES_BLOCK;
        for (int64_t k = 0; k < parts; k++, to += wide) {
            const int64_t from = block * parts + k, at_x = (image * j->blocks + from) * plane + at;
            uint8_t *made = wide == ORT_BYTES_BLOCK ? to : codes;
            if (from < j->blocks)
                j->call->k->math.quantize_u8(x + at_x * wide, made, (size_t)n,
                                             j->scale, j->zero);
            else
                memset(made, j->zero, (size_t)n);
            for (int64_t i = 0; made == codes && i < pixels; i++)
                memcpy(to + i * ORT_BYTES_BLOCK, codes + i * HALF, HALF);
        }
    }
}

static ort_status quantize_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0), *zero = ort_call_in(call, 2);
    quantize_job j = {.call = call, .wide = x->shape.dim[x->shape.rank - 1],
                      .blocks = x->shape.dim[1], .scale = 1,
                      .zero = ort_bytes_zero(zero, ORT_DTYPE_UINT8)};
    if (!ort_bytes_read(&ort_call_out(call, 0)->shape, &j.d) ||
        (j.wide != ORT_BYTES_BLOCK && j.wide != ORT_BYTES_BLOCK / 2))
        return ort_error_set(err, ORT_ERROR_MODEL, "the shape isn't one of a blocked tensor");
    ort_tensor_one_f32(ort_call_in(call, 1), &j.scale);
    ort_call_parallel(call, (size_t)(j.d.n * j.d.blocks), task_quantize, &j);
    return ORT_OK;
}

static const ort_op_impl quantize_impl = {.infer = quantize_infer, .run = quantize_run};

const ort_op ort_ops_quantize_blocked[] = {
    {ORT_INTERNAL, "QuantizeBlocked", 1, "X:f32,scale:f32,zero_point?:T -> Y:u8", "T:u8,i8",
     "block:i! channels:i!", 0, &quantize_impl},
    {0},
};
