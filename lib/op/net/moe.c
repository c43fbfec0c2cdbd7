/* moe.c - com.microsoft MoE and QMoE: per token, the weighted sum of k experts, each a small net
 * act(x * W1 + b1) * W2 + b2.
 *
 * Tokens are sorted by expert, so each expert's weights are read once for all of its tokens, and
 * widened from 16-bit floats, or 2, 4 and 8 bits with scales, piece by piece. Experts run one
 * after the other and add to the output in their order, so results don't depend on the number of
 * threads. Weights are [experts][rows][depth] as the model has them.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/halves.h"
#include "op/shared/matrix.h"
#include "op/shared/widened.h"

typedef enum moe_act { ACT_RELU, ACT_GELU, ACT_SILU, ACT_IDENTITY, ACT_SWIGLU } moe_act;
enum { FC1, FC2, FC3, FC_COUNT };

typedef struct moe_slots { /* inputs, -1: none */
    int weight, bias, scale, zero;
} moe_slots;

static const moe_slots float_slots[FC_COUNT] = {{2, 3, -1, -1}, {4, 5, -1, -1}, {6, 7, -1, -1}};
static const moe_slots bits_slots[FC_COUNT] = {{2, 4, 3, 11}, {5, 7, 6, 12}, {8, 10, 9, 13}};

typedef struct moe_state {
    bool quantized, normalize;
    const moe_slots *slots;
    moe_act act;
    float alpha, beta, limit;
    int64_t k, block, fusion, bits[FC_COUNT]; /* block 0: one scale per row */
    int64_t bits_of_all, prepacked; /* bits where an fc says none */
    ort_string quant_type;
    bool mixes;
} moe_state;

typedef struct moe_plan {
    int64_t tokens, hidden, inter, experts;
    int64_t rows[FC_COUNT], depth[FC_COUNT];
    size_t probs, expert, weight, order, start, gathered, up, gate, mid, sum; /* workspace */
} moe_plan;

/* ---- prepare */

#define MOE_BINDINGS                                                                               \
    ORT_BIND(moe_state, k, ORT_FROM(1)),                                                           \
        ORT_BIND_AS(moe_state, normalize, "normalize_routing_weights"),                            \
        ORT_BIND_AS(moe_state, fusion, "swiglu_fusion", ORT_WITHIN(0, 2)),                         \
        ORT_BIND_AS(moe_state, alpha, "activation_alpha", ORT_ELSE(1)),                            \
        ORT_BIND_AS(moe_state, beta, "activation_beta", ORT_MAYBE),                                \
        ORT_BIND_AS(moe_state, limit, "swiglu_limit", ORT_ELSE(INFINITY)),                         \
        ORT_BIND_AS(moe_state, mixes, "use_sparse_mixer"),                                         \
        ORT_BIND_AS(moe_state, act, "activation_type",                                             \
                    ORT_WORDS("relu gelu silu identity swiglu"))
static const ort_bind moe_bind[] = {MOE_BINDINGS, {0}};
static const ort_bind qmoe_bind[] = {
    MOE_BINDINGS, ORT_BIND_AS(moe_state, bits_of_all, "expert_weight_bits"),
    ORT_BIND_AS(moe_state, bits[0], "fc1_expert_weight_bits", ORT_MAYBE),
    ORT_BIND_AS(moe_state, bits[1], "fc2_expert_weight_bits", ORT_MAYBE),
    ORT_BIND_AS(moe_state, bits[2], "fc3_expert_weight_bits", ORT_MAYBE),
    ORT_BIND_AS(moe_state, block, "block_size", ORT_MAYBE), ORT_BIND(moe_state, quant_type),
    ORT_BIND_AS(moe_state, prepacked, "weights_prepacked"), {0}};

static ort_status check_mixer(const moe_state *s, ort_error *err)
{
    if (s->mixes)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "use_sparse_mixer isn't implemented");
    return ORT_OK;
}

static ort_status moe_prepare(ort_prep *p, ort_error *err)
{
    moe_state *s = p->state;
    s->slots = float_slots;
    return check_mixer(s, err);
}

static ort_status qmoe_prepare(ort_prep *p, ort_error *err)
{
    moe_state *s = p->state;
    s->quantized = true;
    s->slots = bits_slots;
    for (int i = 0; i < FC_COUNT; i++) {
        s->bits[i] = s->bits[i] ? s->bits[i] : s->bits_of_all;
        if (s->bits[i] != 2 && s->bits[i] != 4 && s->bits[i] != 8)
            return ort_prep_fail(p, err, "weights of %lld bits; 2, 4 and 8 exist",
                                 (long long)s->bits[i]);
    }
    if (s->block < 0 || (s->block > 0 && (s->block < 16 || (s->block & (s->block - 1)))))
        return ort_prep_fail(p, err, "block_size %lld is no power of two from 16 on",
                             (long long)s->block);
    if (s->quant_type.length != 3 || memcmp(s->quant_type.ptr, "int", 3))
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "quant_type '%.*s' isn't implemented, "
                             "only 'int'", (int)ort_min_i64((int64_t)s->quant_type.length, 40),
                             s->quant_type.ptr);
    if (s->prepacked > 0)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "weights_prepacked is another program's private layout of the weight");
    return check_mixer(s, err);
}

/* ---- shape */

static const ort_tensor *slot(const ort_shaping *s, int input)
{
    return input >= 0 && input < s->in_count ? s->in[input] : NULL;
}

/* The tensor has the dims a, b and, unless it is 0, c. */
static ort_status need_dims(const ort_tensor *t, const char *what, int fc, int64_t a, int64_t b,
                            int64_t c, ort_error *err)
{
    char text[128];
    const ort_shape *s = &t->shape;
    int64_t count = a * b * (c ? c : 1);
    if (s->rank >= 2 && s->dim[0] == a && ort_shape_count(s) == count)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_MODEL, "fc%d %s has shape %s, needs %lldx%lldx%lld", fc + 1,
                         what, ort_shape_format(s, text, sizeof text), (long long)a, (long long)b,
                         (long long)(c ? c : 1));
}

static ort_status check_matrix(const ort_shaping *s, const moe_plan *p, int fc, ort_error *err)
{
    const moe_state *state = s->state;
    const moe_slots *in = &state->slots[fc];
    const ort_tensor *scale = slot(s, in->scale), *zero = slot(s, in->zero);
    const ort_tensor *bias = slot(s, in->bias);
    int64_t bits = state->quantized ? state->bits[fc] : 8, rows = p->rows[fc], depth = p->depth[fc];
    int64_t blocks = state->block ? depth / state->block : 1;
    if (depth * bits % 8 || (state->block && depth % state->block))
        return ort_error_set(err, ORT_ERROR_MODEL, "rows of %lld weights don't divide into whole "
                             "bytes and blocks", (long long)depth);
    ORT_TRY(need_dims(slot(s, in->weight), "weights", fc, p->experts, rows, depth * bits / 8, err));
    if (bias)
        ORT_TRY(need_dims(bias, "bias", fc, p->experts, rows, 0, err));
    if (!state->quantized)
        return ORT_OK;
    if (!scale)
        return ort_error_set(err, ORT_ERROR_MODEL, "fc%d has no scales", fc + 1);
    ORT_TRY(need_dims(scale, "scales", fc, p->experts, rows, blocks, err));
    if (zero && state->block)
        return need_dims(zero, "zero points", fc, p->experts, rows, (blocks * bits + 7) / 8, err);
    return zero ? need_dims(zero, "zero points", fc, p->experts, (rows * bits + 7) / 8, 0, err)
                : ORT_OK;
}

static ort_status read_sizes(const ort_shaping *s, moe_plan *p, ort_error *err)
{
    const moe_state *state = s->state;
    const ort_shape *x = &s->in[0]->shape, *router = &s->in[1]->shape;
    const ort_tensor *w1 = slot(s, state->slots[FC1].weight);
    const ort_tensor *w2 = slot(s, state->slots[FC2].weight);
    const ort_tensor *w3 = slot(s, state->slots[FC3].weight);
    if (x->rank < 2 || x->rank > 3 || router->rank != 2 || w1->shape.rank != 3 ||
        w2->shape.rank != 3)
        return ort_error_set(err, ORT_ERROR_MODEL, "the input needs rank 2 or 3, router_probs 2, "
                             "the weights 3");
    p->hidden = x->dim[x->rank - 1];
    p->tokens = ort_shape_count_range(x, 0, x->rank - 1);
    p->experts = router->dim[1];
    p->rows[FC1] = w1->shape.dim[1];
    p->inter = w2->shape.dim[2] * (state->quantized ? 8 / state->bits[FC2] : 1);
    p->rows[FC2] = p->depth[FC1] = p->depth[FC3] = p->hidden;
    p->depth[FC2] = p->rows[FC3] = p->inter;
    bool fused = state->act == ACT_SWIGLU && !w3;
    if (router->dim[0] != p->tokens)
        return ort_error_set(err, ORT_ERROR_MODEL, "router_probs has %lld rows for %lld tokens",
                             (long long)router->dim[0], (long long)p->tokens);
    if (state->k > p->experts)
        return ort_error_set(err, ORT_ERROR_MODEL, "attribute k is %lld of %lld experts",
                             (long long)state->k, (long long)p->experts);
    if (p->inter > INT32_MAX || p->rows[FC1] != p->inter * (fused ? 2 : 1))
        return ort_error_set(err, ORT_ERROR_MODEL, "fc1 makes %lld values, fc2 takes %lld%s",
                             (long long)p->rows[FC1], (long long)p->inter,
                             fused ? " pairs" : "");
    if (w3 && state->fusion)
        return ort_error_set(err, ORT_ERROR_MODEL, "swiglu_fusion is %lld, but fc3 is given too",
                             (long long)state->fusion);
    const ort_tensor *weights = state->quantized ? slot(s, 14) : NULL;
    if (weights && !ort_shape_equal(&weights->shape, router))
        return ort_error_set(err, ORT_ERROR_MODEL, "router_weights and router_probs differ in "
                             "shape");
    for (int fc = 0; fc < (w3 ? FC_COUNT : FC3); fc++)
        ORT_TRY(check_matrix(s, p, fc, err));
    return ORT_OK;
}

static ort_status take(size_t *total, int64_t a, int64_t b, size_t *offset, ort_error *err)
{
    int64_t count;
    size_t bytes;
    *offset = *total;
    if (!ort_mul_i64(a, b, &count) || !ort_mul_size((size_t)count, 4, &bytes) ||
        bytes > SIZE_MAX / 2 || !ort_add_size(*total, ort_round_up(bytes, 64), total))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

static ort_status moe_shape(ort_shaping *s, ort_error *err)
{
    const moe_state *state = s->state;
    moe_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    ORT_TRY(read_sizes(s, p, err));
    size_t total = 0;
    ORT_TRY(take(&total, p->experts, 1, &p->probs, err));
    ORT_TRY(take(&total, p->tokens, state->k, &p->expert, err));
    ORT_TRY(take(&total, p->tokens, state->k, &p->weight, err));
    ORT_TRY(take(&total, p->tokens, state->k, &p->order, err));
    ORT_TRY(take(&total, p->experts + 1, 1, &p->start, err));
    ORT_TRY(take(&total, p->tokens, p->hidden, &p->gathered, err));
    ORT_TRY(take(&total, p->tokens, p->rows[FC1], &p->up, err));
    ORT_TRY(take(&total, p->tokens, p->inter, &p->gate, err));
    ORT_TRY(take(&total, p->tokens, p->inter, &p->mid, err));
    ORT_TRY(take(&total, p->tokens, s->in[0]->dtype == ORT_DTYPE_FLOAT ? 0 : p->hidden, &p->sum,
                 err));
    s->workspace_bytes = total;
    s->thread_bytes = ort_widened_thread_bytes(s->k);
    return ORT_OK;
}

/* ---- routing */

typedef struct moe_run {
    const ort_call *call;
    const moe_state *s;
    const moe_plan *p;
    float *probs, *weight, *gathered, *up, *gate, *mid, *sum;
    int32_t *expert, *order, *start; /* order: routes (token * k + i) sorted by expert */
    int64_t first, count;            /* routes of the expert at work */
} moe_run;

static float *at(const ort_call *call, size_t offset)
{
    return (float *)(void *)((char *)call->workspace + offset);
}

/* The k best of probs, best first; of equals the later expert. Taken ones become -inf. */
static void pick(const moe_run *r, float *probs, int32_t *expert, float *score)
{
    for (int64_t i = 0; i < r->s->k; i++) {
        int64_t best = -1;
        for (int64_t e = 0; e < r->p->experts; e++) {
            bool taken = false;
            for (int64_t j = 0; j < i && !taken; j++)
                taken = expert[j] == (int32_t)e;
            if (!taken && (best < 0 || probs[e] >= probs[best]))
                best = e;
        }
        expert[i] = (int32_t)best;
        score[i] = probs[best];
    }
}

static void divide_by_sum(float *values, int64_t n)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++)
        sum += values[i];
    for (int64_t i = 0; i < n; i++)
        values[i] *= sum == 0.0f ? 0.0f : 1.0f / sum;
}

static void softmax(float *values, int64_t n)
{
    float top = values[0];
    for (int64_t i = 1; i < n; i++)
        top = fmaxf(top, values[i]);
    for (int64_t i = 0; i < n; i++)
        values[i] = expf(values[i] - top);
    divide_by_sum(values, n);
}

/* MoE weighs by the softmax over all experts, QMoE by that over the chosen ones, or by the chosen
 * elements of router_weights. */
static void route_token(const moe_run *r, int64_t token)
{
    int64_t k = r->s->k, experts = r->p->experts;
    const ort_tensor *weights = r->s->quantized ? ort_call_in(r->call, 14) : NULL;
    int32_t *expert = r->expert + token * k;
    float *weight = r->weight + token * k;
    ort_tensor_to_f32(ort_call_in(r->call, 1), token * experts, experts, r->probs);
    if (!r->s->quantized)
        softmax(r->probs, experts);
    pick(r, r->probs, expert, weight);
    if (weights)
        for (int64_t i = 0; i < k; i++)
            ort_tensor_to_f32(weights, token * experts + expert[i], 1, weight + i);
    else if (r->s->quantized)
        softmax(weight, k);
    if (r->s->normalize && (weights || !r->s->quantized))
        divide_by_sum(weight, k);
}

static void route(const moe_run *r)
{
    int64_t routes = r->p->tokens * r->s->k, experts = r->p->experts;
    memset(r->start, 0, (size_t)(experts + 1) * sizeof *r->start);
    for (int64_t t = 0; t < r->p->tokens; t++)
        route_token(r, t);
    for (int64_t i = 0; i < routes; i++)
        r->start[r->expert[i] + 1]++;
    for (int64_t e = 0; e < experts; e++)
        r->start[e + 1] += r->start[e];
    for (int64_t i = 0; i < routes; i++) /* start[e] runs to the end of e ... */
        r->order[r->start[r->expert[i]]++] = (int32_t)i;
    for (int64_t e = experts; e > 0; e--) /* ... which is the start of e + 1 */
        r->start[e] = r->start[e - 1];
    r->start[0] = 0;
}

/* ---- products */

typedef struct moe_matrix { /* of one expert */
    const ort_tensor *weight, *scale, *zero;
    int64_t expert, rows, depth, bits, block;
} moe_matrix;

static float zero_of(const moe_matrix *w, int64_t row, int64_t block)
{
    int64_t bits = w->bits, blocks = w->block ? w->depth / w->block : 1;
    if (!w->zero)
        return (float)(1 << (bits - 1));
    const uint8_t *bytes = w->zero->data;
    int64_t index = block;
    if (w->block) {
        bytes += (w->expert * w->rows + row) * ((blocks * bits + 7) / 8);
    } else {
        bytes += w->expert * ((w->rows * bits + 7) / 8);
        index = row;
    }
    return (float)((bytes[index * bits / 8] >> (index * bits % 8)) & ((1 << bits) - 1));
}

static void widen_row(const void *weight, int64_t row, int64_t first, int64_t n, float *out)
{
    const moe_matrix *w = weight;
    int64_t index = w->expert * w->rows + row, bits = w->bits;
    if (!w->scale) {
        ort_tensor_to_f32(w->weight, index * w->depth + first, n, out);
        return;
    }
    const uint8_t *bytes = (const uint8_t *)w->weight->data + index * (w->depth * bits / 8);
    int64_t block = w->block ? w->block : w->depth, blocks = w->depth / block;
    for (int64_t k = first; k < first + n;) {
        int64_t b = k / block, end = ort_min_i64((b + 1) * block, first + n);
        float scale, zero = zero_of(w, row, b);
        ort_tensor_to_f32(w->scale, index * blocks + b, 1, &scale);
        for (; k < end; k++, out++)
            *out = ((float)((bytes[k * bits / 8] >> (k * bits % 8)) & ((1 << bits) - 1)) - zero) *
                   scale;
    }
}

static void multiply(const moe_run *r, int fc, int64_t expert, const float *a, float *y)
{
    const moe_slots *in = &r->s->slots[fc];
    const ort_call *call = r->call;
    moe_matrix w = {.weight = ort_call_in(call, in->weight),
                    .scale = in->scale < 0 ? NULL : ort_call_in(call, in->scale),
                    .zero = in->zero < 0 ? NULL : ort_call_in(call, in->zero), .expert = expert,
                    .rows = r->p->rows[fc], .depth = r->p->depth[fc], .bits = r->s->bits[fc],
                    .block = r->s->block};
    ort_widened product = {.m = r->count, .rows = w.rows, .depth = w.depth, .a = a, .y = y,
                           .row = widen_row, .weight = &w, .bias = ort_call_in(call, in->bias),
                           .bias_first = expert * w.rows};
    ort_widened_multiply(call, &product);
}

/* ---- between and after the products */

static float activate(moe_act act, float x)
{
    switch (act) {
    case ACT_RELU:
        return fmaxf(x, 0.0f);
    case ACT_GELU: /* the form with tanh */
        return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    case ACT_SILU:
        return x / (1.0f + expf(-x));
    default:
        return x;
    }
}

static float swiglu(const moe_state *s, float gate, float linear)
{
    float g = fminf(gate, s->limit), l = fmaxf(fminf(linear, s->limit), -s->limit);
    return g / (1.0f + expf(-s->alpha * g)) * (l + s->beta);
}

static void task_activate(void *arg, size_t task, int thread)
{
    const moe_run *r = arg;
    const moe_state *s = r->s;
    int64_t n = r->p->inter;
    const float *up = r->up + (int64_t)task * r->p->rows[FC1], *gate = r->gate + (int64_t)task * n;
    float *mid = r->mid + (int64_t)task * n;
    bool third = ort_call_in(r->call, s->slots[FC3].weight) != NULL;
    for (int64_t i = 0; i < n; i++)
        if (s->act == ACT_SWIGLU)
            mid[i] = third ? swiglu(s, up[i], gate[i])
                   : s->fusion == 2 ? swiglu(s, up[i], up[n + i])
                                    : swiglu(s, up[2 * i], up[2 * i + 1]);
        else
            mid[i] = activate(s->act, up[i]) * (third ? gate[i] : 1.0f);
}

static void task_gather(void *arg, size_t task, int thread)
{
    const moe_run *r = arg;
    int64_t token = r->order[r->first + (int64_t)task] / r->s->k, n = r->p->hidden;
    ort_tensor_to_f32(ort_call_in(r->call, 0), token * n, n, r->gathered + (int64_t)task * n);
}

static void task_add(void *arg, size_t task, int thread)
{
    const moe_run *r = arg;
    int64_t route = r->order[r->first + (int64_t)task], n = r->p->hidden;
    const float *from = r->gathered + (int64_t)task * n;
    float *to = r->sum + route / r->s->k * n, weight = r->weight[route];
    for (int64_t i = 0; i < n; i++)
        to[i] += weight * from[i];
}

static ort_status moe_run_(ort_call *call, ort_error *err)
{
    const moe_plan *p = call->plan_state;
    const moe_state *s = call->state;
    ort_tensor *y = call->out[0] ? &call->out[0]->tensor : NULL;
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    bool half = y->dtype != ORT_DTYPE_FLOAT;
    moe_run r = {.call = call, .s = s, .p = p, .probs = at(call, p->probs),
                 .weight = at(call, p->weight), .gathered = at(call, p->gathered),
                 .up = at(call, p->up), .gate = at(call, p->gate), .mid = at(call, p->mid),
                 .sum = half ? at(call, p->sum) : y->data, .expert = (void *)at(call, p->expert),
                 .order = (void *)at(call, p->order), .start = (void *)at(call, p->start)};
    route(&r);
    memset(r.sum, 0, (size_t)(p->tokens * p->hidden) * sizeof(float));
    for (int64_t e = 0; e < p->experts; e++) {
        r.first = r.start[e];
        r.count = r.start[e + 1] - r.first;
        if (r.count == 0)
            continue;
        ort_call_parallel(call, (size_t)r.count, task_gather, &r);
        multiply(&r, FC1, e, r.gathered, r.up);
        if (ort_call_in(call, s->slots[FC3].weight))
            multiply(&r, FC3, e, r.gathered, r.gate);
        ort_call_parallel(call, (size_t)r.count, task_activate, &r);
        multiply(&r, FC2, e, r.mid, r.gathered);
        ort_call_parallel(call, (size_t)r.count, task_add, &r);
    }
    if (half)
        ort_call_narrow(call, r.sum, y);
    return ORT_OK;
}

/* ---- rows */

static void moe_cost(const ort_infer *x, ort_cost *cost)
{
    bool quantized = x->op->impl->prepare == qmoe_prepare;
    const moe_slots *slots = quantized ? bits_slots : float_slots;
    const ort_type *y = &x->out[0].type;
    double routes = (double)ort_node_attr_int(x->node, "k");
    double packed = quantized ? 8.0 / (double)ort_node_attr_int(x->node, "expert_weight_bits") : 1;
    for (int d = 0; d < y->rank - 1; d++)
        routes *= ort_dim_known(y->dim[d]) ? (double)y->dim[d].size : 0;
    for (int fc = 0; fc < FC_COUNT && y->rank > 0; fc++) {
        const ort_fact *w = ort_infer_in(x, slots[fc].weight);
        const ort_dim *dim = w ? w->type.dim : NULL;
        if (w && w->type.rank == 3 && ort_dim_known(dim[1]) && ort_dim_known(dim[2]))
            cost->macs += routes * (double)dim[1].size * (double)dim[2].size * packed;
    }
}

static const ort_op_impl moe_impl = {
    .state = sizeof(moe_state), .bind = moe_bind,
    .rule = "same", .prepare = moe_prepare, .shape = moe_shape, .run = moe_run_,
    .cost = moe_cost,
};
static const ort_op_impl qmoe_impl = {
    .state = sizeof(moe_state), .bind = qmoe_bind,
    .rule = "same", .prepare = qmoe_prepare, .shape = moe_shape, .run = moe_run_,
    .cost = moe_cost,
};

#define MOE_ATTRS                                                                                  \
    "activation_alpha:f=1 activation_beta:f=0 activation_type:s=relu k:i=1 "                       \
    "normalize_routing_weights:i=0 swiglu_fusion:i=0 swiglu_limit:f use_sparse_mixer:i=0"

const ort_op ort_ops_moe[] = {
    {MS, "MoE", 1,
     "input:T,router_probs:T,fc1_experts_weights:T,fc1_experts_bias?:T,fc2_experts_weights:T,"
     "fc2_experts_bias?:T,fc3_experts_weights?:T,fc3_experts_bias?:T -> output:T",
     "T:f32,f16,bf16", MOE_ATTRS, 0, &moe_impl},
    {MS, "QMoE", 1,
     "input:T,router_probs:T,fc1_experts_weights:T1,fc1_scales?:T2,fc1_experts_bias?:T,"
     "fc2_experts_weights:T1,fc2_scales?:T2,fc2_experts_bias?:T,fc3_experts_weights?:T1,"
     "fc3_scales?:T2,fc3_experts_bias?:T,fc1_zero_points?:T1,fc2_zero_points?:T1,"
     "fc3_zero_points?:T1,router_weights?:T -> output:T",
     "T:f32,f16,bf16 T1:u8 T2:f32,f16,bf16",
     MOE_ATTRS " accuracy_level:i=0 block_size:i expert_weight_bits:i=4 fc1_expert_weight_bits:i "
     "fc2_expert_weight_bits:i fc3_expert_weight_bits:i quant_type:s=int weights_prepacked:i=-1", 0,
     &qmoe_impl},
    {0},
};
