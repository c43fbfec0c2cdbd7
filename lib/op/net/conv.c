/* conv.c - Conv and com.microsoft FusedConv: inference, preparation and the choice of the element
 * type's path. f16 and bf16 are widened, computed in f32 and rounded once.
 */
#include "op/net/conv.h"

#include <stdlib.h>

#include "base/checked.h"
#include "op/shared/halves.h"

/* ---- inference */

/* ---- prepare */

static ort_status widen_constant(ort_prep *p, int input, const float **wide, ort_error *err)
{
    const ort_tensor *t = ort_prep_constant(p, input);
    if (!t)
        return ORT_OK;
    size_t bytes = (size_t)ort_tensor_count(t) * sizeof(float);
    bool fill;
    float *to = ort_prep_pack(p, input == 1 ? "wide weights" : "wide bias", 1u << input,
                              bytes + 1, &fill);
    if (!to)
        return ort_error_memory(err, bytes);
    if (fill)
        ort_tensor_to_f32(t, 0, ort_tensor_count(t), to);
    ort_prep_absorb(p, input);
    *wide = to;
    return ORT_OK;
}

static const ort_bind conv_bind[] = {
    ORT_BIND(conv_state, group), ORT_BIND_WINDOW(conv_state), ORT_BIND_EPILOGUE(conv_state), {0}};

static ort_status conv_prepare(ort_prep *p, ort_error *err)
{
    conv_state *state = p->state;
    switch (ort_prep_dtype(p, 0)) {
    case ORT_DTYPE_FLOAT:
    case ORT_DTYPE_DOUBLE:
        return ORT_OK;
    case ORT_DTYPE_FLOAT16:
    case ORT_DTYPE_BFLOAT16:
        ORT_TRY(widen_constant(p, 1, &state->wide_weights, err));
        return widen_constant(p, 2, &state->wide_bias, err);
    default:
        break;
    }
    return ort_prep_unsupported_dtype(p, 0, err);
}

/* ---- shape */

static ort_status take(size_t *total, int64_t count, size_t *offset, ort_error *err)
{
    size_t bytes;
    *offset = *total;
    if (!ort_mul_size((size_t)count, sizeof(float), &bytes) || bytes > SIZE_MAX / 2 ||
        !ort_add_size(*total, ort_round_up(bytes, 64), total))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

static ort_status conv_shape(ort_shaping *s, ort_error *err)
{
    const conv_state *state = s->state;
    const ort_tensor *x = s->in[0], *w = s->in[1], *y = s->out[0];
    const ort_tensor *b = s->in_count > 2 ? s->in[2] : NULL;
    const ort_tensor *z = s->in_count > 3 ? s->in[3] : NULL;
    conv_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    ORT_TRY(ort_conv_window(&state->spec, state->group, &x->shape, &w->shape, &p->s.w, err));
    p->n = x->shape.dim[0];
    p->channels = x->shape.dim[1];
    p->maps = w->shape.dim[0];
    p->group = state->group;
    p->group_channels = w->shape.dim[1];
    p->group_maps = p->maps / p->group;
    p->depth = ort_shape_count_range(&w->shape, 1, w->shape.rank);
    p->in_plane = ort_shape_count_range(&x->shape, 2, x->shape.rank);
    p->out_plane = 1;
    for (int i = 0; i < p->s.w.rank; i++)
        p->out_plane *= p->s.w.out[i];
    if (p->n * p->maps * p->out_plane != ort_tensor_count(y))
        return ort_error_set(err, ORT_ERROR_MODEL, "the output has another shape than the result");
    if (b && (b->shape.rank != 1 || b->shape.dim[0] != p->maps))
        return ort_error_set(err, ORT_ERROR_MODEL, "the bias needs %lld elements",
                             (long long)p->maps);
    if (z && !ort_shape_equal(&z->shape, &y->shape))
        return ort_error_set(err, ORT_ERROR_MODEL, "input Z needs the shape of the output");
    if (ort_tensor_count(y) == 0)
        return ORT_OK;
    if (x->dtype == ORT_DTYPE_DOUBLE) {
        ort_window_to_3d(&p->s.w);
        if (p->s.w.rank == 3)
            return ORT_OK;
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "convolutions over %d spatial axes aren't implemented, only up to 3",
                             p->s.w.rank);
    }
    size_t total = 0;
    if (x->dtype != ORT_DTYPE_FLOAT) {
        ORT_TRY(take(&total, ort_tensor_count(x), &p->x_wide, err));
        ORT_TRY(take(&total, ort_tensor_count(y), &p->y_wide, err));
        if (!state->wide_weights)
            ORT_TRY(take(&total, ort_tensor_count(w), &p->w_wide, err));
        if (b && !state->wide_bias)
            ORT_TRY(take(&total, p->maps, &p->b_wide, err));
        if (z)
            ORT_TRY(take(&total, ort_tensor_count(z), &p->z_wide, err));
    }
    ORT_TRY(ort_conv_plan_f32(s, p, &total, err));
    s->workspace_bytes = total;
    return ORT_OK;
}

/* ---- run */

/* A tensor's floats: its own, those widened in prepare, or widened here into the workspace. */
static const float *floats_of(const ort_call *call, const ort_tensor *t, const float *prepared,
                              size_t space)
{
    if (!t || t->dtype == ORT_DTYPE_FLOAT)
        return t ? t->data : NULL;
    if (prepared)
        return prepared;
    float *wide = (float *)(void *)((char *)call->workspace + space);
    ort_call_widen(call, t, wide);
    return wide;
}

static ort_status conv_run(ort_call *call, ort_error *err)
{
    const conv_state *state = call->state;
    const conv_plan *p = call->plan_state;
    const ort_tensor *x = ort_call_in(call, 0), *w = ort_call_in(call, 1);
    const ort_tensor *b = ort_call_in(call, 2), *z = ort_call_in(call, 3);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    if (x->dtype == ORT_DTYPE_DOUBLE) {
        ort_conv_run_f64(call, &state->epilogue, x->data, w->data, b ? b->data : NULL,
                         z ? z->data : NULL, y->data);
        return ORT_OK;
    }
    const float *xf = floats_of(call, x, NULL, p->x_wide);
    const float *wf = floats_of(call, w, state->wide_weights, p->w_wide);
    const float *bf = floats_of(call, b, state->wide_bias, p->b_wide);
    const float *zf = floats_of(call, z, NULL, p->z_wide);
    bool wide = y->dtype != ORT_DTYPE_FLOAT;
    float *yf = wide ? (float *)(void *)((char *)call->workspace + p->y_wide) : y->data;
    ort_conv_run_f32(call, xf, wf, bf, zf, yf);
    if (wide)
        ort_call_narrow(call, yf, y);
    return ORT_OK;
}

static const ort_op_impl conv_impl = {
    .state = sizeof(conv_state), .bind = conv_bind,
    .infer = ort_conv_infer, .prepare = conv_prepare, .shape = conv_shape, .run = conv_run,
    .cost = ort_conv_cost,
};

#define CONV_ATTRS                                                                                 \
    "auto_pad:s=NOTSET dilations:is group:i=1 kernel_shape:is pads:is strides:is"

const ort_op ort_ops_conv[] = {
    {ONNX, "Conv", 1, "X:T,W:T,B?:T -> Y:T", "T:F", CONV_ATTRS, 0, &conv_impl,
     .history = "11 22:T+bf16"},
    {MS, "FusedConv", 1, "X:T,W:T,B?:T,Z?:T -> Y:T", "T:F",
     "activation:s activation_params:fs " CONV_ATTRS, 0, &conv_impl},
    {0},
};
