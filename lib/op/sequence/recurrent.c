/* recurrent.c - what recent language models use instead of attention, or around it:
 * LinearAttention, CausalConvWithState, SwiGLU.
 *
 * All compute in float, row by row, converting 16-bit rows as they come. A head (or channel) of one
 * batch entry is a task and walks through time alone; its state lives in the task's scratch.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/op.h"

/* ---- LinearAttention */

enum { IN_QUERY, IN_KEY, IN_VALUE, IN_STATE, IN_DECAY, IN_BETA };

typedef struct linear_state {
    int64_t q_heads, kv_heads;
    float scale; /* 0: 1 / sqrt(size of a key) */
    enum { RULE_LINEAR, RULE_GATED, RULE_DELTA, RULE_GATED_DELTA } rule;
    int64_t window;
    bool gated, delta;
} linear_state;

static const ort_bind linear_bind[] = {
    ORT_BIND_AS(linear_state, q_heads, "q_num_heads", ORT_FROM(1)),
    ORT_BIND_AS(linear_state, kv_heads, "kv_num_heads", ORT_FROM(1)), ORT_BIND(linear_state, scale),
    ORT_BIND_AS(linear_state, rule, "update_rule", ORT_WORDS("linear gated delta gated_delta")),
    ORT_BIND_AS(linear_state, window, "state_window", ORT_MAYBE), {0}};

static ort_status linear_prepare(ort_prep *p, ort_error *err)
{
    linear_state *s = p->state;
    s->gated = s->rule == RULE_GATED || s->rule == RULE_GATED_DELTA;
    s->delta = s->rule >= RULE_DELTA;
    bool microsoft = !strcmp(p->op->domain, MS); /* allows fewer heads of queries, too */
    if (s->q_heads % s->kv_heads != 0 && !(microsoft && s->kv_heads % s->q_heads == 0))
        return ort_prep_fail(p, err, "q_num_heads must be a positive multiple of kv_num_heads");
    if (s->window)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "state_window isn't implemented, only the "
                             "state after the last token");
    return ORT_OK;
}

static ort_status linear_infer(ort_infer *x, ort_error *err)
{
    int64_t q_heads = ort_node_attr_int(x->node, "q_num_heads");
    int64_t kv_heads = ort_node_attr_int(x->node, "kv_num_heads");
    if (!ort_infer_in(x, IN_STATE)) /* its type is the state's, else the query's */
        ort_infer_set_dtype(x, 1, x->out[0].type.dtype);
    ort_dim batch = ort_infer_dim(x, IN_QUERY, 0), steps = ort_infer_dim(x, IN_QUERY, 1);
    ort_dim heads = ort_dim_unknown(), key = heads, value = heads, width = heads;
    if (kv_heads >= 1 && q_heads >= 1) {
        heads = ort_dim_of(kv_heads);
        key = ort_dim_div(x->dims, ort_infer_dim(x, IN_QUERY, 2), ort_dim_of(q_heads));
        value = ort_dim_div(x->dims, ort_infer_dim(x, IN_VALUE, 2), heads);
        width = ort_dim_mul(x->dims, value, ort_dim_of(ort_max_i64(q_heads, kv_heads)));
    }
    ort_infer_set_shape(x, 0, 3, (ort_dim[]){batch, steps, width});
    ort_infer_set_shape(x, 1, 4, (ort_dim[]){batch, heads, key, value});
    return ORT_OK;
}

typedef struct linear_walk {
    const ort_call *call;
    const linear_state *s;
    const ort_tensor *in[6];
    ort_tensor *y, *state;
    int64_t B, T, K, V; /* sizes of a key and of a value */
    int64_t k_heads;    /* of keys; com.microsoft: several heads of values may share one */
    int64_t decays, betas; /* last dims of decay and beta */
    float scale;
} linear_walk;

static ort_status linear_shape(ort_shaping *s, ort_error *err)
{
    const linear_state *l = s->state;
    size_t keys, values, bytes;
    if (s->in_count < 3 || !s->in[0] || !s->in[2] || s->in[0]->shape.rank != 3 ||
        s->in[2]->shape.rank != 3)
        return ort_error_set(err, ORT_ERROR_RUN, "query, key and value must have 3 dims");
    keys = (size_t)(s->in[0]->shape.dim[2] / l->q_heads);
    values = (size_t)(s->in[2]->shape.dim[2] / l->kv_heads);
    if (!ort_mul_size(keys + 2, values + 2, &bytes) ||
        !ort_mul_size(bytes + 3 * keys + 64, sizeof(float), &s->thread_bytes))
        return ort_error_memory(err, keys);
    return ORT_OK;
}

static bool is_rows(const ort_tensor *t, int64_t B, int64_t T)
{
    return t->shape.rank == 3 && t->shape.dim[0] == B && t->shape.dim[1] == T;
}

static ort_status linear_init(ort_call *call, linear_walk *w, ort_error *err)
{
    const linear_state *s = call->state;
    *w = (linear_walk){.call = call, .s = s, .y = ort_call_out(call, 0),
                       .state = ort_call_out(call, 1)};
    for (int i = 0; i < 6; i++)
        w->in[i] = ort_call_in(call, i);
    const ort_shape *q = &w->in[0]->shape;
    w->B = q->dim[0];
    w->T = q->dim[1];
    w->K = q->dim[2] / s->q_heads;
    w->V = w->in[IN_VALUE]->shape.dim[2] / s->kv_heads;
    bool fits = (w->in[IN_DECAY] != NULL) == s->gated && (w->in[IN_BETA] != NULL) == s->delta;
    for (int i = 0; fits && i < 6; i++)
        fits = i == IN_STATE || !w->in[i] || is_rows(w->in[i], w->B, w->T);
    w->k_heads = fits && w->K > 0 ? w->in[IN_KEY]->shape.dim[2] / w->K : s->kv_heads;
    fits = fits && q->dim[2] == w->K * s->q_heads && w->k_heads > 0 &&
           w->in[IN_KEY]->shape.dim[2] == w->K * w->k_heads && s->kv_heads % w->k_heads == 0 &&
           (w->k_heads == s->kv_heads || !strcmp(call->node->domain, MS)) &&
           w->in[IN_VALUE]->shape.dim[2] == w->V * s->kv_heads &&
           (!w->in[IN_STATE] ||
            ort_tensor_count(w->in[IN_STATE]) == w->B * s->kv_heads * w->K * w->V);
    w->decays = fits && s->gated ? w->in[IN_DECAY]->shape.dim[2] : 0;
    w->betas = fits && s->delta ? w->in[IN_BETA]->shape.dim[2] : 0;
    fits = fits && (!s->gated || w->decays == s->kv_heads || w->decays == s->kv_heads * w->K) &&
           (!s->delta || w->betas == s->kv_heads || w->betas == 1);
    if (!fits)
        return ort_call_fail(call, err, "the shapes of its inputs, or those that update_rule asks "
                             "for, don't fit together");
    w->scale = s->scale != 0 ? s->scale : 1 / sqrtf((float)ort_max_i64(w->K, 1));
    return ORT_OK;
}

/* Row `at` (of `size` elements each) of an input as floats. */
static void load_row(const ort_tensor *t, int64_t at, int64_t size, float *out)
{
    ort_tensor_to_f32(t, at * size, size, out);
}

/* S = exp(g) * S, by key element or for the whole head. */
static void decay_state(const linear_walk *w, int64_t token, int64_t h, float *state, float *row)
{
    const linear_state *s = w->s;
    bool each = w->decays != s->kv_heads;
    load_row(w->in[IN_DECAY], token * s->kv_heads + h, each ? w->K : 1, row);
    for (int64_t k = 0; k < w->K; k++) {
        float factor = expf(row[each ? k : 0]);
        for (int64_t v = 0; v < w->V; v++)
            state[k * w->V + v] *= factor;
    }
}

static void linear_step(const linear_walk *w, int64_t token, int64_t h, float *state,
                        float *scratch)
{
    const linear_state *s = w->s;
    float *key = scratch, *value = key + w->K, *seen = value + w->V, *query = seen + w->V;
    float beta = 1;
    if (s->gated)
        decay_state(w, token, h, state, key);
    load_row(w->in[IN_KEY], token * w->k_heads + h * w->k_heads / s->kv_heads, w->K, key);
    load_row(w->in[IN_VALUE], token * s->kv_heads + h, w->V, value);
    if (s->delta) {
        load_row(w->in[IN_BETA], w->betas == 1 ? token : token * s->kv_heads + h, 1, &beta);
        memset(seen, 0, (size_t)w->V * sizeof *seen);
        for (int64_t k = 0; k < w->K; k++)
            w->call->k->math.axpy(seen, state + k * w->V, (size_t)w->V, key[k]);
        for (int64_t v = 0; v < w->V; v++)
            value[v] = beta * (value[v] - seen[v]);
    }
    for (int64_t k = 0; k < w->K; k++)
        w->call->k->math.axpy(state + k * w->V, value, (size_t)w->V, key[k]);
    int64_t heads = ort_max_i64(s->q_heads, s->kv_heads), group = heads / s->kv_heads;
    for (int64_t g = 0; g < group; g++) {
        int64_t head = h * group + g, at = token * heads + head;
        load_row(w->in[IN_QUERY], token * s->q_heads + head * s->q_heads / heads, w->K, query);
        memset(seen, 0, (size_t)w->V * sizeof *seen);
        for (int64_t k = 0; k < w->K; k++)
            w->call->k->math.axpy(seen, state + k * w->V, (size_t)w->V, query[k] * w->scale);
        if (w->y)
            ort_tensor_from_f32(seen, w->y, at * w->V, w->V);
    }
}

static void linear_task(void *arg, size_t task, int thread)
{
    const linear_walk *w = arg;
    int64_t b = (int64_t)task / w->s->kv_heads, h = (int64_t)task % w->s->kv_heads;
    float *state = ort_call_scratch(w->call, thread);
    int64_t size = w->K * w->V;
    if (w->in[IN_STATE])
        load_row(w->in[IN_STATE], (int64_t)task, size, state);
    else
        memset(state, 0, (size_t)size * sizeof *state);
    for (int64_t t = 0; t < w->T; t++)
        linear_step(w, b * w->T + t, h, state, state + size);
    if (w->state)
        ort_tensor_from_f32(state, w->state, (int64_t)task * size, size);
}

static ort_status linear_run(ort_call *call, ort_error *err)
{
    linear_walk w;
    ORT_TRY(linear_init(call, &w, err));
    ort_call_parallel(call, (size_t)(w.B * w.s->kv_heads), linear_task, &w);
    return ORT_OK;
}

static const ort_op_impl linear_impl = {
    .state = sizeof(linear_state), .bind = linear_bind,
    .rule = "[_,_,_] [_,_,_] [_,_,_]",
    .infer = linear_infer, .prepare = linear_prepare, .shape = linear_shape, .run = linear_run,
};

/* ---- CausalConvWithState */

typedef struct causal_state {
    bool silu, last; /* last: [batch, length, channels...] */
    int64_t dilation, axes, window;
} causal_state;

static const ort_bind causal_bind[] = {
    ORT_BIND_AS(causal_state, silu, "activation", ORT_WORDS("none silu|swish")),
    ORT_BIND_AS(causal_state, last, "channels_last", ORT_MAYBE),
    ORT_BIND(causal_state, dilation, ORT_WITHIN(1, INT32_MAX), ORT_ELSE(1)),
    ORT_BIND_AS(causal_state, axes, "ndim", ORT_ELSE(1)),
    ORT_BIND_AS(causal_state, window, "state_window", ORT_MAYBE), {0}};

typedef struct causal_walk {
    const ort_call *call;
    const causal_state *s;
    const ort_tensor *x, *weight, *bias, *past;
    ort_tensor *y, *present;
    int64_t channels, length, taps, kept; /* kept: elements of state per channel */
} causal_walk;

static ort_status causal_prepare(ort_prep *p, ort_error *err)
{
    const causal_state *s = p->state;
    if (s->axes != 1 || s->window)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "only ndim = 1 and the state after the "
                             "last position (state_window = 0) are implemented");
    return ORT_OK;
}

static ort_status causal_infer(ort_infer *x, ort_error *err)
{
    char text[41];
    const char *activation = ort_node_attr_text(x->node, "activation", text, sizeof text);
    bool last = ort_node_attr_int(x->node, "channels_last") != 0;
    if (!last)
        ORT_TRY(ort_infer_need_rank(x, 0, 3, err));
    if (strcmp(activation, "none") && strcmp(activation, "silu") && strcmp(activation, "swish"))
        return ort_infer_fail(x, err, "activation '%s' must be none, silu or swish", activation);
    ort_dim dilation = ort_dim_of(ort_op_has_attr(x->op, "dilation")
                                        ? ort_node_attr_int(x->node, "dilation") : 1);
    ort_dim kept = ort_dim_sub(x->dims, ort_infer_dim(x, 1, 2), ort_dim_of(1));
    kept = ort_dim_mul(x->dims, kept, dilation);
    if (last) { /* any number of axes for the channels */
        ort_type state = x->out[0].type;
        if (state.rank >= 3) {
            state.dim[1] = kept;
            ort_infer_set_shape(x, 1, state.rank, state.dim);
        }
        return ORT_OK;
    }
    ort_dim batch = ort_dim_merge(ort_infer_dim(x, 0, 0), ort_infer_dim(x, 3, 0));
    ort_dim channels = ort_infer_dim(x, 0, 1);
    for (int i = 1; i <= 3; i++) /* weight and bias begin with it, the past has it second */
        channels = ort_dim_merge(channels, ort_infer_dim(x, i, i == 3));
    kept = ort_dim_merge(kept, ort_infer_dim(x, 3, 2));
    ort_infer_set_shape(x, 0, 3, (ort_dim[]){batch, channels, ort_infer_dim(x, 0, 2)});
    ort_infer_set_shape(x, 1, 3, (ort_dim[]){batch, channels, kept});
    return ORT_OK;
}

static ort_status causal_shape(ort_shaping *s, ort_error *err)
{
    const causal_state *state = s->state;
    const ort_shape *x = &s->in[0]->shape, *w = &s->in[1]->shape;
    bool ranked = state->last ? x->rank >= 3 : x->rank == 3;
    int64_t channels = !ranked ? 0 : state->last ? ort_shape_count_range(x, 2, x->rank) : x->dim[1];
    int64_t length = ranked ? x->dim[state->last ? 1 : 2] : 0, kept;
    if (!ranked || w->rank != 3 || w->dim[0] != channels || w->dim[1] != 1 || w->dim[2] < 1)
        return ort_error_set(err, ORT_ERROR_RUN, "its weight must be [channels, 1, k] for an input "
                             "of [batch, channels, length], or of [batch, length, channels] when "
                             "channels_last is 1");
    if (!ort_mul_i64(w->dim[2] - 1, state->dilation, &kept) || kept > INT64_MAX / 16)
        return ort_error_memory(err, SIZE_MAX);
    s->thread_bytes = (size_t)(2 * length + w->dim[2] + kept) * sizeof(float);
    return ORT_OK;
}

/* `n` elements of one channel of [batch][n][channels], or of [batch * channels][n]. */
static void load_line(const causal_walk *w, const ort_tensor *t, int64_t task, int64_t n,
                      float *out)
{
    int64_t b = task / w->channels, c = task % w->channels;
    if (!w->s->last) {
        ort_tensor_to_f32(t, task * n, n, out);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        ort_tensor_to_f32(t, (b * n + i) * w->channels + c, 1, out + i);
}

static void store_line(const causal_walk *w, const float *from, ort_tensor *t, int64_t task,
                       int64_t n)
{
    int64_t b = task / w->channels, c = task % w->channels;
    if (!t)
        return;
    if (!w->s->last)
        ort_tensor_from_f32(from, t, task * n, n);
    for (int64_t i = 0; w->s->last && i < n; i++)
        ort_tensor_from_f32(from + i, t, (b * n + i) * w->channels + c, 1);
}

static void causal_task(void *arg, size_t task, int thread)
{
    const causal_walk *w = arg;
    const ort_kernels *k = w->call->k;
    int64_t c = (int64_t)task % w->channels, kept = w->kept;
    float *line = ort_call_scratch(w->call, thread), *weight = line + kept + w->length;
    float *out = weight + w->taps, bias = 0;
    if (w->past)
        load_line(w, w->past, (int64_t)task, kept, line);
    else
        memset(line, 0, (size_t)kept * sizeof *line);
    load_line(w, w->x, (int64_t)task, w->length, line + kept);
    ort_tensor_to_f32(w->weight, c * w->taps, w->taps, weight);
    if (w->bias)
        ort_tensor_to_f32(w->bias, c, 1, &bias);
    for (int64_t t = 0; t < w->length; t++)
        out[t] = bias;
    for (int64_t j = 0; j < w->taps; j++)
        k->math.axpy(out, line + j * w->s->dilation, (size_t)w->length, weight[j]);
    if (w->s->silu)
        k->math.unary[ORT_UNARY_SWISH](out, out, (size_t)w->length, 1, 0);
    store_line(w, out, w->y, (int64_t)task, w->length);
    store_line(w, line + w->length, w->present, (int64_t)task, kept);
}

static ort_status causal_run(ort_call *call, ort_error *err)
{
    causal_walk w = {.call = call, .s = call->state, .x = ort_call_in(call, 0),
                     .weight = ort_call_in(call, 1), .bias = ort_call_in(call, 2),
                     .past = ort_call_in(call, 3), .y = ort_call_out(call, 0),
                     .present = ort_call_out(call, 1)};
    w.channels = w.weight->shape.dim[0];
    w.length = w.x->shape.dim[w.s->last ? 1 : 2];
    w.taps = w.weight->shape.dim[2];
    w.kept = (w.taps - 1) * w.s->dilation;
    int64_t rows = w.x->shape.dim[0] * w.channels;
    if ((w.bias && ort_tensor_count(w.bias) != w.channels) ||
        (w.past && ort_tensor_count(w.past) != rows * w.kept))
        return ort_call_fail(call, err, "its bias or past_state doesn't fit %lld channels",
                             (long long)w.channels);
    ort_call_parallel(call, (size_t)rows, causal_task, &w);
    return ORT_OK;
}

static const ort_op_impl causal_impl = {
    .state = sizeof(causal_state), .bind = causal_bind, .rule = "[..] [_,_,_] -> [..]",
    .infer = causal_infer, .prepare = causal_prepare, .shape = causal_shape, .run = causal_run,
};

/* ---- SwiGLU */

#define PIECE 512
#define GRAIN (PIECE * 16)

typedef struct glu_walk {
    const ort_call *call;
    const ort_tensor *a, *b;
    ort_tensor *y;
    float alpha;
} glu_walk;

static void glu_double(const glu_walk *w, int64_t first, int64_t last)
{
    const double *a = w->a->data, *b = w->b->data;
    for (int64_t i = first; i < last; i++)
        ((double *)w->y->data)[i] = a[i] / (1 + exp(-(double)w->alpha * a[i])) * b[i];
}

static void glu_task(void *arg, int64_t first, int64_t end, int thread)
{
    const glu_walk *w = arg;
    const ort_kernels *k = w->call->k;
    float a[PIECE], b[PIECE];
    if (w->y->dtype == ORT_DTYPE_DOUBLE) {
        glu_double(w, first, end);
        return;
    }
    for (; first < end; first += PIECE) {
        size_t n = (size_t)ort_min_i64(PIECE, end - first);
        ort_tensor_to_f32(w->a, first, (int64_t)n, a);
        ort_tensor_to_f32(w->b, first, (int64_t)n, b);
        k->math.unary[ORT_UNARY_SWISH](a, a, n, w->alpha, 0);
        k->math.binary[ORT_BINARY_MUL](a, b, a, n, ORT_FORM_VV);
        ort_tensor_from_f32(a, w->y, first, (int64_t)n);
    }
}

typedef struct glu_state {
    float alpha;
} glu_state;

static const ort_bind glu_bind[] = {ORT_BIND(glu_state, alpha), {0}};

static ort_status glu_run(ort_call *call, ort_error *err)
{
    glu_walk w = {call, ort_call_in(call, 0), ort_call_in(call, 1), ort_call_out(call, 0),
                  ((const glu_state *)call->state)->alpha};
    if (!ort_shape_equal(&w.a->shape, &w.b->shape))
        return ort_call_fail(call, err, "A and B must have the same shape");
    ort_call_range(call, ort_tensor_count(w.a), GRAIN, glu_task, &w);
    return ORT_OK;
}

static const ort_op_impl glu_impl = {
    .state = sizeof(glu_state), .bind = glu_bind, .rule = "[A..] [A..] -> [A..]", .run = glu_run,
};

/* ---- rows */

const ort_op ort_ops_recurrent[] = {
    {ONNX, "LinearAttention", 27,
     "query:T,key:T,value:T,past_state?:S,decay?:T,beta?:T -> output:T,present_state:S",
     "T:f16,bf16,f32 S:f16,bf16,f32",
     "chunk_size:i=64 kv_num_heads:i! q_num_heads:i! scale:f=0 update_rule:s=gated_delta", 0,
     &linear_impl},
    {ONNX, "CausalConvWithState", 27,
     "input:T,weight:T,bias?:T,past_state?:T -> output:T,present_state:T",
     "T:f32,f16,bf16",
     "activation:s=none", 0, &causal_impl},
    {ONNX, "SwiGLU", 28, "A:T,B:T -> Y:T",
     "T:F,bf16",
     "alpha:f=1", ORT_TRAIT_ELEMENTWISE, &glu_impl},
    {MS, "LinearAttention", 1,
     "query:T,key:T,value:T,past_state?:S,decay?:T,beta?:T -> output:T,present_state:S",
     "T:f16,bf16,f32 S:f16,bf16,f32",
     "chunk_size:i=64 kv_num_heads:i! q_num_heads:i! scale:f=0 state_window:i=0 "
     "update_rule:s=gated_delta", 0, &linear_impl},
    {MS, "CausalConvWithState", 1,
     "input:T,weight:T,bias?:T,past_state?:T -> output:T,present_state:T", "T:f32,f16,bf16",
     "activation:s=none channels_last:i=0 dilation:i=1 ndim:i=1 state_window:i=0", 0, &causal_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
