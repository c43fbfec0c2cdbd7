/* nchwc.c - the operators of com.microsoft.nchwc: what onnxruntime writes when it saves a model
 * that it has optimized for this processor. Tensors are [N, C rounded up to the block, H, W] over
 * blocked memory; nchwc_file.c says what the block is. Both blocks run on every tier.
 */
#include <string.h>

#include "base/checked.h"
#include "op/blocked/blocked_op.h"
#include "op/shared/unary_apply.h"

/* ---- infer */

static bool planes_of(const ort_infer *x, int input)
{
    return ort_infer_in_ranked(x, input) && x->in[input]->type.rank == 4;
}

static ort_status conv_infer(ort_infer *x, ort_error *err)
{
    ort_window_spec spec;
    ort_dim out[4];
    ORT_TRY(ort_window_read(x->node, &spec, err));
    if (!planes_of(x, 0) || !planes_of(x, 1))
        return ORT_OK;
    const ort_type *tx = &x->in[0]->type, *tw = &x->in[1]->type;
    ORT_TRY(ort_window_infer(x, &spec, 2, tx->dim + 2, tw->dim + 2, out + 2, err));
    out[0] = tx->dim[0];
    out[1] = tw->dim[0];
    ort_infer_set_shape(x, 0, 4, out);
    return ORT_OK;
}

static ort_status window_infer(ort_infer *x, ort_error *err)
{
    return ort_window_infer_pool(x, 2, 0, err);
}

static ort_status input_infer(ort_infer *x, ort_error *err)
{
    if (!planes_of(x, 0))
        return ORT_OK;
    const ort_type *t = &x->in[0]->type;
    int last = ort_node_attr_int(x->node, "channels_last") != 0;
    ort_dim channels = t->dim[last ? 3 : 1];
    ort_dim block = ort_dim_of(ort_nchwc_block(x->graph));
    ort_dim padded = ort_dim_mul(x->dims, ort_dim_ceil_div(x->dims, channels, block), block);
    ort_dim out[4] = {t->dim[0], padded, t->dim[last ? 1 : 2], t->dim[last ? 2 : 3]};
    ort_infer_set_shape(x, 0, 4, out);
    return ORT_OK;
}

static ort_status output_infer(ort_infer *x, ort_error *err)
{
    int64_t channels = ort_node_attr_int(x->node, "channels");
    if (channels < 1)
        return ort_infer_fail(x, err, "attribute channels is %lld", (long long)channels);
    if (!planes_of(x, 0))
        return ORT_OK;
    const ort_type *t = &x->in[0]->type;
    ort_dim c = ort_dim_of(channels);
    ort_dim first[4] = {t->dim[0], c, t->dim[2], t->dim[3]};
    ort_dim last[4] = {t->dim[0], t->dim[2], t->dim[3], c};
    ort_infer_set_shape(x, 0, 4, ort_node_attr_int(x->node, "channels_last") ? last : first);
    return ORT_OK;
}

/* ---- ReorderInput, ReorderOutput */

typedef struct reorder_state {
    const ort_blocked_kernels *k;
    int64_t block;
    bool last, out; /* channels of the plain side stand last; from blocks to planes */
} reorder_state;

typedef struct reorder_job {
    const reorder_state *s;
    int64_t channels, blocks, plane;
    const float *from;
    float *to;
} reorder_job;

enum { REORDER_INPUT, REORDER_OUTPUT };

static const ort_bind reorder_bind[] = {ORT_BIND_AS(reorder_state, last, "channels_last"), {0}};

static ort_status reorder_prepare(ort_prep *p, ort_error *err)
{
    reorder_state *s = p->state;
    s->block = ort_nchwc_block(p->graph);
    s->k = ort_blocked_kernels_of(p->k, s->block);
    s->out = p->op->variant == REORDER_OUTPUT;
    return ORT_OK;
}

static void copy_last(const reorder_job *j, const float *from, float *to, int64_t channels)
{
    int64_t block = j->s->block;
    for (int64_t i = 0; i < j->plane; i++) {
        const float *x = from + i * (j->s->out ? block : j->channels);
        float *y = to + i * (j->s->out ? j->channels : block);
        memcpy(y, x, (size_t)channels * sizeof *y);
        if (!j->s->out)
            memset(y + channels, 0, (size_t)(block - channels) * sizeof *y);
    }
}

static void task_reorder(void *arg, size_t task, int thread)
{
    const reorder_job *j = arg;
    const reorder_state *s = j->s;
    int64_t image = (int64_t)task / j->blocks, first = (int64_t)task % j->blocks * s->block;
    int64_t channels = ort_min_i64(s->block, j->channels - first);
    int64_t blocked = (int64_t)task * j->plane * s->block;
    int64_t plain = image * j->channels * j->plane + first * (s->last ? 1 : j->plane);
    const float *from = j->from + (s->out ? blocked : plain);
    float *to = j->to + (s->out ? plain : blocked);
    if (channels <= 0)
        return;
    if (s->last)
        copy_last(j, from, to, channels);
    else if (s->out)
        s->k->scatter(from, j->plane, channels, j->plane, to);
    else
        s->k->gather(from, j->plane, channels, j->plane, to);
}

static ort_status reorder_run(ort_call *call, ort_error *err)
{
    const reorder_state *s = call->state;
    const ort_tensor *x = ort_call_in(call, 0), *y = ort_call_out(call, 0);
    const ort_shape *plain = s->out ? &y->shape : &x->shape;
    const ort_shape *blocked = s->out ? &x->shape : &y->shape;
    reorder_job j = {.s = s, .from = x->data, .to = y->data};
    j.channels = plain->dim[s->last ? 3 : 1];
    j.blocks = blocked->dim[1] / s->block;
    j.plane = blocked->dim[2] * blocked->dim[3];
    if (blocked->dim[1] % s->block || j.channels > blocked->dim[1])
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "%lld channels don't lie in %lld of blocks of %lld",
                             (long long)j.channels, (long long)blocked->dim[1],
                             (long long)s->block);
    ort_call_parallel(call, (size_t)(blocked->dim[0] * j.blocks), task_reorder, &j);
    return ORT_OK;
}

static const ort_op_impl conv_impl = {
    .state = sizeof(ort_blocked_state), .bind = ort_blocked_conv_bind, .infer = conv_infer,
    .prepare = ort_blocked_conv_prepare, .shape = ort_blocked_conv_shape,
    .run = ort_blocked_conv_run, .cost = ort_blocked_conv_cost,
};
static const ort_op_impl window_impl = {
    .state = sizeof(ort_blocked_state), .bind = ort_blocked_pool_bind, .infer = window_infer,
    .prepare = ort_blocked_pool_prepare, .shape = ort_blocked_window_shape,
    .run = ort_blocked_window_run, .cost = ort_window_cost,
};
static const ort_op_impl global_impl = {
    .state = sizeof(ort_blocked_state), .bind = ort_blocked_pool_bind,
    .rule = "[N,C,_,_] -> [N,C,1,1]",
    .prepare = ort_blocked_pool_prepare, .shape = ort_blocked_global_shape,
    .run = ort_blocked_global_run, .cost = ort_reduction_cost,
};
static const ort_op_impl input_impl = {
    .state = sizeof(reorder_state), .bind = reorder_bind, .infer = input_infer,
    .prepare = reorder_prepare, .run = reorder_run,
};
static const ort_op_impl output_impl = {
    .state = sizeof(reorder_state), .bind = reorder_bind, .infer = output_infer,
    .prepare = reorder_prepare, .run = reorder_run,
};

#define POOL_ATTRS                                                                                 \
    "auto_pad:s=NOTSET ceil_mode:i=0 dilations:is kernel_shape:is! pads:is strides:is"

const ort_op ort_ops_nchwc[] = {
    {NCHWC, "Conv", 1, "X:T,W:T,B?:T,Sum?:T -> Y:T", "T:f32",
     "activation:s activation_params:fs auto_pad:s=NOTSET dilations:is group:i=1 kernel_shape:is "
     "pads:is strides:is",
     ORT_TRAIT_PACKS_UNALIGNED, &conv_impl},
    {NCHWC, "MaxPool", 1, "X:T -> Y:T", "T:f32", POOL_ATTRS " storage_order:i=0", 0, &window_impl,
     NULL, ORT_BLOCKED_MAX},
    {NCHWC, "AveragePool", 1, "X:T -> Y:T", "T:f32", "count_include_pad:i=0 " POOL_ATTRS, 0,
     &window_impl},
    {NCHWC, "GlobalMaxPool", 1, "X:T -> Y:T", "T:f32", "", 0, &global_impl, NULL,
     ORT_BLOCKED_MAX},
    {NCHWC, "GlobalAveragePool", 1, "X:T -> Y:T", "T:f32", "", 0, &global_impl},
    {NCHWC, "ReorderInput", 1, "X:T -> Y:T", "T:f32", "channels_last:i=0", 0, &input_impl},
    {NCHWC, "ReorderOutput", 1, "X:T -> Y:T", "T:f32", "channels:i=0 channels_last:i=0", 0,
     &output_impl, NULL, REORDER_OUTPUT},
    {0},
};
