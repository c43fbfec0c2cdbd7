/* passthrough.c - Identity and Dropout.
 *
 * Identity of a tensor is an alias; of a sequence, map or optional it passes the reference on.
 * Dropout drops only when its training_mode input says so (opset 12 on); before that it is
 * inference.
 */
#include <string.h>

#include "op/number.h"
#include "op/shared/move.h"
#include "op/shared/random_draw.h"
#include "op/shared/unary_apply.h"

/* ---- Identity */

static ort_status identity_infer(ort_infer *x, ort_error *err)
{
    ort_infer_pass_symbolic(x, 0, 0);
    return ORT_OK;
}

static ort_status identity_run(ort_call *call, ort_error *err)
{
    ort_value *in = call->in[0];
    if (!in || in->kind != ORT_KIND_TENSOR || call->out[0] == NULL) {
        ort_call_set_output(call, 0, in ? ort_value_retain(in) : NULL);
        return ORT_OK;
    }
    ort_tensor *out = ort_call_out(call, 0);
    if (out->data != in->tensor.data && ort_tensor_count(out) > 0)
        ort_tensor_copy_data(out, &in->tensor);
    return ORT_OK;
}

static const ort_op_impl identity_impl = {
    .rule = "same", .infer = identity_infer, .run = identity_run,
};

/* ---- Dropout */

typedef struct dropout_state {
    float ratio;
    bool has_mode;
    bool has_seed;
    uint64_t seed;
} dropout_state;

static const ort_bind dropout_bind[] = {
    ORT_BIND_HAS(dropout_state, has_seed, "seed"), ORT_BIND(dropout_state, seed, ORT_MAYBE), {0}};

static ort_status dropout_prepare(ort_prep *p, ort_error *err)
{
    dropout_state *state = p->state;
    state->has_mode = p->op->since >= 12;
    return ORT_OK;
}

/* As numpy has it: kept where RandomState(seed).uniform() reaches the ratio. */
static void drop(const ort_tensor *x, ort_tensor *y, ort_tensor *mask, double ratio,
                 const ort_draw *draw)
{
    int64_t n = ort_tensor_count(x);
    double scale = ratio < 1 ? 1.0 / (1.0 - ratio) : 0.0;
    for (int64_t i = 0; i < n; i++) {
        bool keep = ort_draw_uniform(draw, i) >= ratio;
        if (y)
            ort_tensor_set_f64(y, i, keep ? ort_tensor_get_f64(x, i) * scale : 0.0);
        if (mask)
            ort_tensor_set_i64(mask, i, keep);
    }
}

static ort_status dropout_run(ort_call *call, ort_error *err)
{
    const dropout_state *state = call->state;
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0), *mask = ort_call_out(call, 1);
    int64_t n = ort_tensor_count(x);
    int64_t training = 0;
    double p = 0.5;
    if (state->has_mode) {
        ORT_TRY(ort_call_f64(call, 1, &p, err));
        ORT_TRY(ort_call_i64(call, 2, &training, err));
    }
    if (training && !(p >= 0 && p <= 1))
        return ort_call_fail(call, err, "the ratio is %g, needs 0 to 1", p);
    if (training && p > 0) {
        ort_draw draw;
        ort_draw_begin(&draw, call, state->has_seed, state->seed);
        drop(x, y, mask, p, &draw);
        return ORT_OK;
    }
    if (y && y->data != x->data && n > 0)
        ort_tensor_copy_data(y, x);
    for (int64_t i = 0; mask && i < n; i++)
        ort_tensor_set_i64(mask, i, 1);
    return ORT_OK;
}

static const ort_op_impl dropout_impl = {
    .state = sizeof(dropout_state), .bind = dropout_bind,
    .rule = "[..] [] [] -> [..] [..]", .prepare = dropout_prepare, .run = dropout_run, .numbers = 6,
};

const ort_op ort_ops_passthrough[] = {
    {ONNX, "Identity", 1, "input:T -> output:T", "T:F,I,U,C,str,bool", "", ORT_TRAIT_ALIAS,
     &identity_impl, .history = "13:T+bf16"},
    {ONNX, "Identity", 14, "input:V -> output:V",
     "V:F,I,U,C,bf16,str,bool,seq(F,I,U,C,str,bool)", "", ORT_TRAIT_ALIAS, &identity_impl,
     .history = "16:V+opt(F,I,U,C,str,bool,seq(F,I,U,C,str,bool)) 19:V+F8 21:V+Q4 23:V+f4e2m1 "
                "24:V+f8e8m0 25:V+Q2"},
    {ONNX, "Dropout", 6, "data:T -> output:T,mask?:T", "T:F", "is_test:i=0 ratio:f=0.5", 0,
     &dropout_impl},
    {ONNX, "Dropout", 7, "data:T -> output:T,mask?:T", "T:F", "ratio:f=0.5", 0, &dropout_impl},
    {ONNX, "Dropout", 10, "data:T -> output:T,mask?:T1", "T:F T1:bool", "ratio:f=0.5", 0,
     &dropout_impl},
    {ONNX, "Dropout", 12, "data:T,ratio?:T1,training_mode?:T2 -> output:T,mask?:T2",
     "T:F T1:F T2:bool", "seed:i", ORT_TRAIT_RANDOM, &dropout_impl,
     .history = "13:T+bf16 22:T+F8 T1+F8,bf16"},
    {MS, "SampleOp", 1, "X:T -> Y:T", "T:F,i32,i64,u32,u64", "", ORT_TRAIT_ALIAS, &identity_impl},
    {0},
};
