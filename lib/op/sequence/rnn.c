/* rnn.c - LSTM, GRU and RNN, with weights of 8 bits too (rnn_coded.c), and DynamicQuantizeLSTM of
 * com.microsoft (whose products are those of bytes, rnn_bytes.c): shapes, and the way from prepared
 * weights (rnn_prepare.c) to the typed cores.
 *
 * float, float16 and bfloat16 compute in float (16-bit tensors are converted at the borders),
 * double in double. Constant weights are packed once; others are packed into the workspace of each
 * run. The workspace is laid out by `shape` and addressed by offsets.
 */
#include <string.h>

#include "base/checked.h"
#include "op/sequence/rnn_prepare.h"

static bool is_quantized(const ort_op *op)
{
    return op->variant == ORT_RNN_DYNAMIC_LSTM;
}

static int directions_of(const ort_node *node)
{
    return ort_node_attr_is(node, "direction", "bidirectional") ? 2 : 1;
}

/* ---- infer */

ort_status ort_rnn_infer(ort_infer *x, ort_error *err)
{
    bool batch_first = ort_node_attr_int(x->node, "layout") != 0;
    int64_t hidden = ort_node_attr_int(x->node, "hidden_size");
    ort_dim D = ort_dim_of(directions_of(x->node)), H = ort_dim_unknown();
    ort_dim T = ort_dim_unknown(), B = ort_dim_unknown();
    const ort_fact *in = ort_infer_in(x, ORT_RNN_X);
    if (ort_infer_in_ranked(x, ORT_RNN_X)) {
        T = in->type.dim[batch_first ? 1 : 0];
        B = in->type.dim[batch_first ? 0 : 1];
    }
    if (hidden <= 0 && ort_node_has(x->node, "hidden_size"))
        return ort_infer_fail(x, err, "hidden_size is %lld, needs to be 1 or more",
                              (long long)hidden);
    if (hidden > 0)
        H = ort_dim_of(hidden);
    if (ort_infer_in_ranked(x, ORT_RNN_R)) {
        ort_dim given = x->in[ORT_RNN_R]->type.dim[is_quantized(x->op) ? 1 : 2];
        if (hidden > 0 && ort_dim_differ(given, H))
            return ort_infer_fail(x, err, "hidden_size is %lld, R has another", (long long)hidden);
        H = hidden > 0 ? H : given;
    }
    if (batch_first) {
        ort_infer_set_shape(x, 0, 4, (ort_dim[]){B, T, D, H});
        ort_infer_set_shape(x, 1, 3, (ort_dim[]){B, D, H});
        ort_infer_set_shape(x, 2, 3, (ort_dim[]){B, D, H});
    } else {
        ort_infer_set_shape(x, 0, 4, (ort_dim[]){T, D, B, H});
        ort_infer_set_shape(x, 1, 3, (ort_dim[]){D, B, H});
        ort_infer_set_shape(x, 2, 3, (ort_dim[]){D, B, H});
    }
    return ORT_OK;
}

static void rnn_cost(const ort_infer *x, ort_cost *cost)
{
    double macs = (double)ort_rnn_kind_of(x->op) * directions_of(x->node);
    if (!ort_infer_in_ranked(x, ORT_RNN_X) || !ort_infer_in_ranked(x, ORT_RNN_R))
        return;
    const ort_dim *in = x->in[ORT_RNN_X]->type.dim;
    const ort_dim hidden = x->in[ORT_RNN_R]->type.dim[is_quantized(x->op) ? 1 : 2];
    if (!ort_dim_known(in[0]) || !ort_dim_known(in[1]) || !ort_dim_known(in[2]) ||
        !ort_dim_known(hidden))
        return;
    macs *= (double)in[0].size * (double)in[1].size * (double)hidden.size;
    cost->macs = macs * (double)(in[2].size + hidden.size);
    cost->flops = macs * 10;
    cost->of_bytes = is_quantized(x->op) || !strcmp(x->op->domain, ORT_INTERNAL);
}

/* ---- shape */

typedef struct rnn_plan {
    ort_rnn_sizes s;
    size_t gates, h, c, spare, weights, scratch; /* offsets into the workspace */
    size_t codes;
    size_t x, y;                        /* of 16-bit tensors in float; SIZE_MAX: not converted */
} rnn_plan;

static bool reserve(size_t *total, size_t count, size_t size, size_t *offset)
{
    size_t bytes;
    if (!ort_mul_size(count, size, &bytes) || bytes > SIZE_MAX / 4)
        return false;
    *offset = *total;
    return ort_add_size(*total, ort_round_up(bytes, 64), total);
}

static const ort_tensor *input_of(const ort_shaping *s, int index)
{
    return index < s->in_count ? s->in[index] : NULL;
}

/* What inference promised (hidden_size may say so) is what W and R make of it. */
static bool outputs_fit(const ort_shaping *s, const ort_rnn_sizes *z)
{
    int64_t state = z->D * z->B * z->H;
    for (int i = 0; i < s->out_count && i < 3; i++)
        if (s->out[i] && ort_tensor_count(s->out[i]) != (i == 0 ? z->T * state : state))
            return false;
    return true;
}

static ort_status check_inputs(ort_shaping *s, const ort_rnn *rnn, ort_rnn_sizes *z, ort_error *err)
{
    bool lstm = rnn->kind == ORT_RNN_LSTM;
    const ort_tensor *x = input_of(s, ORT_RNN_X), *lens = input_of(s, ORT_RNN_LENS);
    ort_rnn_source w = {input_of(s, ORT_RNN_W), input_of(s, ORT_RNN_R), input_of(s, ORT_RNN_B),
                        lstm ? input_of(s, ORT_RNN_P) : NULL};
    int wrong = !w.W || !w.R ? ORT_RNN_W : -1;
    if (rnn->quantized) {
        *z = rnn->sizes;
        wrong = !ort_rnn_has_shape(w.B, 2, z->D, 2 * z->G * z->H, 0) ? ORT_RNN_B
                : !ort_rnn_has_shape(w.P, 2, z->D, 3 * z->H, 0)      ? ORT_RNN_P : -1;
    } else if (wrong < 0)
        wrong = ort_rnn_weight_sizes(rnn, &w, z);
    if (wrong < 0 && (!x || x->shape.rank != 3 || x->shape.dim[2] != z->I))
        wrong = ORT_RNN_X;
    if (wrong >= 0)
        return ort_error_set(err, ORT_ERROR_RUN, "input %d has a shape that doesn't fit the others",
                             wrong);
    z->T = x->shape.dim[rnn->batch_first ? 1 : 0];
    z->B = x->shape.dim[rnn->batch_first ? 0 : 1];
    int64_t first = rnn->batch_first ? z->B : z->D, second = rnn->batch_first ? z->D : z->B;
    if (!ort_rnn_has_shape(input_of(s, ORT_RNN_H), 3, first, second, z->H) ||
        (lstm && !ort_rnn_has_shape(input_of(s, ORT_RNN_C), 3, first, second, z->H)))
        return ort_error_set(err, ORT_ERROR_RUN, "an initial state has a shape that doesn't fit "
                             "%lld batch rows of %lld hidden units", (long long)z->B,
                             (long long)z->H);
    if (!outputs_fit(s, z))
        return ort_error_set(err, ORT_ERROR_RUN, "hidden_size isn't the %lld that R has",
                             (long long)z->H);
    if (lens && ort_tensor_count(lens) != z->B)
        return ort_error_set(err, ORT_ERROR_RUN, "sequence_lens has %lld entries for %lld batch "
                             "rows", (long long)ort_tensor_count(lens), (long long)z->B);
    return ORT_OK;
}

static ort_status rnn_shape(ort_shaping *s, ort_error *err)
{
    const ort_rnn *rnn = s->state;
    rnn_plan *plan = ort_arena_alloc(s->arena, sizeof *plan);
    size_t total = 0, real = rnn->core->real_bytes, weights = 0, scratch = 0;
    if (!plan)
        return ort_error_memory(err, sizeof *plan);
    ort_rnn_sizes *z = &plan->s;
    ORT_TRY(check_inputs(s, rnn, z, err));
    bool convert = rnn->dtype != ORT_DTYPE_FLOAT && rnn->dtype != ORT_DTYPE_DOUBLE;
    size_t state = (size_t)(z->D * z->B * z->H), steps = (size_t)(z->T * z->B);
    bool fits = reserve(&total, steps, real * (size_t)(z->D * z->G * z->H), &plan->gates) &&
                reserve(&total, state, real, &plan->h) && reserve(&total, state, real, &plan->c) &&
                reserve(&total, state, real, &plan->spare);
    plan->x = plan->y = plan->codes = SIZE_MAX;
    if (fits && rnn->core->run_bytes)
        fits = rnn->core->run_bytes(s->k, z, &scratch, &s->thread_bytes) &&
               reserve(&total, scratch, 1, &plan->codes);
    if (fits && convert)
        fits = reserve(&total, steps, real * (size_t)z->I, &plan->x) &&
               reserve(&total, steps, real * (size_t)(z->D * z->H), &plan->y);
    if (fits && !rnn->constant)
        fits = rnn->core->weights_bytes(s->k, z, &weights, &scratch) &&
               reserve(&total, weights, 1, &plan->weights) &&
               reserve(&total, scratch, 1, &plan->scratch);
    if (fits && rnn->late)
        fits = rnn->core->late_bytes(z, &weights) && reserve(&total, weights, 1, &plan->weights);
    if (!fits)
        return ort_error_set(err, ORT_ERROR_MEMORY, "the gates of %lld steps are too large",
                             (long long)z->T);
    s->plan_state = plan;
    s->workspace_bytes = total;
    return ORT_OK;
}

/* ---- run */

/* States are [D][B][H] here, and in layout 1 [B][D][H] outside. */
static int64_t outer_slot(const ort_rnn *rnn, const ort_rnn_sizes *s, int64_t d, int64_t b)
{
    return rnn->batch_first ? b * s->D + d : d * s->B + b;
}

static void load_state(const ort_rnn *rnn, const ort_rnn_sizes *s, const ort_tensor *from, void *to)
{
    size_t row = (size_t)s->H * rnn->core->real_bytes, all = (size_t)(s->D * s->B) * row;
    if (!from) {
        if (all > 0)
            memset(to, 0, all);
        return;
    }
    for (int64_t d = 0; d < s->D; d++)
        for (int64_t b = 0; b < s->B; b++) {
            int64_t slot = outer_slot(rnn, s, d, b);
            char *own = (char *)to + (size_t)(d * s->B + b) * row;
            if (rnn->dtype == ORT_DTYPE_DOUBLE)
                memcpy(own, (const char *)from->data + (size_t)slot * row, row);
            else
                ort_tensor_to_f32(from, slot * s->H, s->H, (float *)(void *)own);
        }
}

static void store_state(const ort_rnn *rnn, const ort_rnn_sizes *s, const void *from,
                        ort_tensor *to)
{
    size_t row = (size_t)s->H * rnn->core->real_bytes;
    if (!to)
        return;
    for (int64_t d = 0; d < s->D; d++)
        for (int64_t b = 0; b < s->B; b++) {
            int64_t slot = outer_slot(rnn, s, d, b);
            const char *own = (const char *)from + (size_t)(d * s->B + b) * row;
            if (rnn->dtype == ORT_DTYPE_DOUBLE)
                memcpy((char *)to->data + (size_t)slot * row, own, row);
            else
                ort_tensor_from_f32((const float *)(const void *)own, to, slot * s->H, s->H);
        }
}

static ort_status check_lens(const ort_call *call, const ort_tensor *lens, int64_t steps,
                             ort_error *err)
{
    for (int64_t i = 0; lens && i < ort_tensor_count(lens); i++) {
        int64_t length = ort_tensor_get_i64(lens, i);
        if (length < 0 || length > steps)
            return ort_call_fail(call, err, "sequence_lens[%lld] is %lld, must be in [0, %lld]",
                                 (long long)i, (long long)length, (long long)steps);
    }
    return ORT_OK;
}

static ort_status rnn_compute(ort_call *call, ort_error *err)
{
    const ort_rnn *rnn = call->state;
    const rnn_plan *plan = call->plan_state;
    const ort_rnn_sizes *s = &plan->s;
    bool lstm = rnn->kind == ORT_RNN_LSTM;
    char *space = call->workspace;
    ort_rnn_weights own[2];
    ort_tensor *y = ort_call_out(call, 0);
    const ort_tensor *x = ort_call_in(call, ORT_RNN_X);
    ort_rnn_run run = {.call = call, .rnn = rnn, .weights = rnn->weights, .s = *s,
                       .x = x->data, .lens = ort_call_in(call, ORT_RNN_LENS),
                       .gates = space + plan->gates, .h = space + plan->h, .c = space + plan->c,
                       .spare = space + plan->spare, .y = y ? y->data : NULL};
    ORT_TRY(check_lens(call, run.lens, s->T, err));
    if (plan->codes != SIZE_MAX)
        run.codes = space + plan->codes;
    if (!rnn->constant || rnn->late) {
        ort_rnn_source w = {.W = ort_call_in(call, ORT_RNN_W), .R = ort_call_in(call, ORT_RNN_R),
                            .B = ort_call_in(call, ORT_RNN_B),
                            .P = lstm ? ort_call_in(call, ORT_RNN_P) : NULL};
        memcpy(own, rnn->weights, sizeof own);
        if (rnn->late)
            rnn->core->late_fill(rnn, s, &w, space + plan->weights, own);
        else
            rnn->core->weights_fill(call->k, rnn, s, &w, space + plan->weights,
                                    space + plan->scratch, own);
        run.weights = own;
    }
    if (plan->x != SIZE_MAX) {
        float *converted = (float *)(void *)(space + plan->x);
        ort_tensor_to_f32(x, 0, ort_tensor_count(x), converted);
        run.x = converted;
        run.y = y ? space + plan->y : NULL;
    }
    size_t outputs = (size_t)(s->T * s->B * s->D * s->H);
    if (run.y && run.lens)
        memset(run.y, 0, outputs * rnn->core->real_bytes);
    load_state(rnn, s, ort_call_in(call, ORT_RNN_H), run.h);
    load_state(rnn, s, lstm ? ort_call_in(call, ORT_RNN_C) : NULL, run.c);
    rnn->core->run(&run);
    if (plan->y != SIZE_MAX && y)
        ort_tensor_from_f32((const float *)run.y, y, 0, (int64_t)outputs);
    store_state(rnn, s, run.h, ort_call_out(call, 1));
    store_state(rnn, s, run.c, ort_call_out(call, 2));
    return ORT_OK;
}

static const ort_op_impl rnn_impl = {
    .state = sizeof(ort_rnn), .bind = ort_rnn_bind,
    .rule = "[_,_,_] [_,_,_] [_,_,_]",
    .infer = ort_rnn_infer, .prepare = ort_rnn_prepare, .shape = rnn_shape, .run = rnn_compute,
    .cost = rnn_cost,
};

/* ---- rows */

/* Of com.microsoft's DynamicQuantizeLSTM, and what X is quantized by. */
#define CODED_INPUTS                                                                               \
    "X:T,W:T1,R:T2,B?:f32,sequence_lens?:i32,initial_h?:f32,initial_c?:f32,P?:f32,W_scale:f32,"    \
    "W_zero_point?:T1,R_scale:f32,R_zero_point?:T2,X_scale?:f32,X_zero_point?:T"
#define CODED_TYPES "T:f32,u8,i8 T1:u8,i8 T2:u8,i8"

const ort_op ort_ops_rnn[] = {
    {ONNX, "LSTM", 1,
     "X:T,W:T,R:T,B?:T,sequence_lens?:T1,initial_h?:T,initial_c?:T,P?:T -> Y?:T,Y_h?:T,Y_c?:T",
     "T:F T1:i32",
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s=forward "
     "hidden_size:i input_forget:i=0 output_sequence:i=0", 0, &rnn_impl,
     .variant = ORT_RNN_OP_LSTM},
    {ONNX, "LSTM", 7,
     "X:T,W:T,R:T,B?:T,sequence_lens?:T1,initial_h?:T,initial_c?:T,P?:T -> Y?:T,Y_h?:T,Y_c?:T",
     "T:F T1:i32",
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s=forward "
     "hidden_size:i input_forget:i=0", 0, &rnn_impl,
     .variant = ORT_RNN_OP_LSTM, .history = "14:+layout:i=0 22:T+bf16"},
    {ONNX, "GRU", 3, "X:T,W:T,R:T,B?:T,sequence_lens?:T1,initial_h?:T -> Y?:T,Y_h?:T",
     "T:F T1:i32",
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s=forward "
     "hidden_size:i linear_before_reset:i=0 output_sequence:i=0", 0, &rnn_impl,
     .variant = ORT_RNN_OP_GRU},
    {ONNX, "GRU", 7, "X:T,W:T,R:T,B?:T,sequence_lens?:T1,initial_h?:T -> Y?:T,Y_h?:T",
     "T:F T1:i32",
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s=forward "
     "hidden_size:i linear_before_reset:i=0", 0, &rnn_impl,
     .variant = ORT_RNN_OP_GRU, .history = "14:+layout:i=0 22:T+bf16"},
    {ONNX, "RNN", 1, "X:T,W:T,R:T,B?:T,sequence_lens?:T1,initial_h?:T -> Y?:T,Y_h?:T",
     "T:F T1:i32",
     "activation_alpha:fs activation_beta:fs activations:ss=[Tanh Tanh] clip:f "
     "direction:s=forward hidden_size:i output_sequence:i=0", 0, &rnn_impl,
     .variant = ORT_RNN_OP_RNN},
    {ONNX, "RNN", 7, "X:T,W:T,R:T,B?:T,sequence_lens?:T1,initial_h?:T -> Y?:T,Y_h?:T",
     "T:F T1:i32",
     "activation_alpha:fs activation_beta:fs activations:ss=[Tanh Tanh] clip:f "
     "direction:s=forward hidden_size:i", 0, &rnn_impl,
     .variant = ORT_RNN_OP_RNN, .history = "14:+layout:i=0 22:T+bf16"},
    {ORT_INTERNAL, "CodedLSTM", 1, CODED_INPUTS " -> Y?:f32,Y_h?:f32,Y_c?:f32", CODED_TYPES,
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s=forward "
     "hidden_size:i input_forget:i=0 layout:i=0", 0, &rnn_impl, .variant = ORT_RNN_CODED_LSTM},
    {ORT_INTERNAL, "CodedGRU", 1, CODED_INPUTS " -> Y?:f32,Y_h?:f32", CODED_TYPES,
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s=forward "
     "hidden_size:i linear_before_reset:i=0 layout:i=0", 0, &rnn_impl,
     .variant = ORT_RNN_CODED_GRU},
    {ORT_INTERNAL, "CodedRNN", 1, CODED_INPUTS " -> Y?:f32,Y_h?:f32", CODED_TYPES,
     "activation_alpha:fs activation_beta:fs activations:ss=[Tanh Tanh] clip:f "
     "direction:s=forward hidden_size:i layout:i=0", 0, &rnn_impl,
     .variant = ORT_RNN_CODED_RNN},
    {MS, "DynamicQuantizeLSTM", 1,
     "X:T,W:T2,R:T2,B?:T,sequence_lens?:T1,initial_h?:T,initial_c?:T,P?:T,W_scale:T,"
     "W_zero_point:T2,R_scale:T,R_zero_point:T2 -> Y?:T,Y_h?:T,Y_c?:T",
     "T:f32 T1:i32 T2:i8,u8",
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s=forward "
     "hidden_size:i input_forget:i=0", 0, &rnn_impl, .variant = ORT_RNN_DYNAMIC_LSTM},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
