/* gated.c - small fused steps of recent language models, all row by row in float: GatedRMSNorm,
 * BranchwiseRMSNorm, GatedAdd, ScaledSiLU, LinearAttentionGate, and the streams of hyper-connected
 * nets (arXiv:2409.19606): EngramGate, HyperConnectionPreMix, HyperConnectionPostMix.
 *
 * Each operator states its rows and their width, and a function that makes one row. A task makes a
 * few rows; its scratch holds SPACE_ROWS rows.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/op.h"

enum { IN_MAX = 6, SPACE_ROWS = 4, TASK_GRAIN = 16384 };

typedef struct gated_state {
    float epsilon, alpha, reduction; /* alpha: scale of ScaledSiLU; reduction: of PreMix */
    bool sigmoid;         /* GatedRMSNorm: the gate is sigmoid(z), else z * sigmoid(z) */
    int64_t branches;     /* 0: a dim of the input says it */
} gated_state;

static const ort_bind gated_bind[] = {
    ORT_BIND(gated_state, epsilon, ORT_MAYBE), ORT_BIND(gated_state, alpha, ORT_MAYBE),
    ORT_BIND_AS(gated_state, reduction, "reduction_scale", ORT_MAYBE),
    ORT_BIND_AS(gated_state, sigmoid, "activation", ORT_WORDS("silu|swish sigmoid"), ORT_MAYBE),
    ORT_BIND_AS(gated_state, branches, "num_branches", ORT_FROM(0), ORT_MAYBE), {0}};

typedef struct gated_walk {
    const ort_call *call;
    const gated_state *s;
    const ort_tensor *in[IN_MAX];
    ort_tensor *out[2];
    int64_t rows, width;
    int64_t outer, branches; /* streams: outer rows, and how many streams of `width` in each */
    void (*row)(const struct gated_walk *w, int64_t row, float *space);
} gated_walk;

/* Scratch for rows no wider than the last dim of input 0 (ScaledSiLU cuts its own rows). */
static ort_status gated_shape(ort_shaping *s, ort_error *err)
{
    const ort_shape *x = &s->in[0]->shape;
    int64_t width = x->rank > 0 ? x->dim[x->rank - 1] : 1;
    if (!ort_mul_size((size_t)ort_max_i64(width, 1), SPACE_ROWS * sizeof(float), &s->thread_bytes))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

static gated_walk walk_of(ort_call *call)
{
    gated_walk w = {.call = call, .s = call->state};
    for (int i = 0; i < IN_MAX; i++)
        w.in[i] = ort_call_in(call, i);
    for (int i = 0; i < 2; i++)
        w.out[i] = ort_call_out(call, i);
    return w;
}

static void task_rows(void *arg, int64_t first, int64_t end, int thread)
{
    const gated_walk *w = arg;
    for (int64_t r = first; r < end; r++)
        w->row(w, r, ort_call_scratch(w->call, thread));
}

static ort_status walk_rows(gated_walk *w)
{
    ort_call_range(w->call, w->rows, ort_max_i64(TASK_GRAIN / ort_max_i64(w->width, 1), 1),
                   task_rows, w);
    return ORT_OK;
}

static float inverse_rms(const float *x, int64_t n, float epsilon)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return 1.0f / sqrtf((float)(sum / (double)n) + epsilon);
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* `n` values rounded to the type of t and back. */
static void round_to(const ort_tensor *t, float *values, int64_t n)
{
    uint16_t half[64];
    if (t->dtype == ORT_DTYPE_FLOAT)
        return;
    for (int64_t i = 0; i < n; i += 64) {
        int64_t count = ort_min_i64(64, n - i);
        ort_tensor rounded = {.dtype = t->dtype, .shape = {1, {count}}, .data = half};
        ort_tensor_from_f32(values + i, &rounded, 0, count);
        ort_tensor_to_f32(&rounded, 0, count, values + i);
    }
}

/* ---- GatedRMSNorm */

static void gated_norm_row(const gated_walk *w, int64_t row, float *space)
{
    int64_t n = w->width;
    float *x = space, *scale = x + n, *gate = scale + n;
    ort_tensor_to_f32(w->in[0], row * n, n, x);
    ort_tensor_to_f32(w->in[1], 0, n, scale);
    ort_tensor_to_f32(w->in[2], row * n, n, gate);
    float inverse = inverse_rms(x, n, w->s->epsilon);
    for (int64_t i = 0; i < n; i++)
        x[i] *= inverse * scale[i] * sigmoid(gate[i]) * (w->s->sigmoid ? 1.0f : gate[i]);
    ort_tensor_from_f32(x, w->out[0], row * n, n);
}

static ort_status gated_norm_run(ort_call *call, ort_error *err)
{
    gated_walk w = walk_of(call);
    const ort_shape *x = &w.in[0]->shape;
    w.width = ort_tensor_count(w.in[1]);
    w.row = gated_norm_row;
    if (x->rank < 1 || w.width < 1 || x->dim[x->rank - 1] % w.width ||
        !ort_shape_equal(x, &w.in[2]->shape))
        return ort_call_fail(call, err, "the gate needs the input's shape, and the last dim has to "
                             "be a multiple of the %lld scales", (long long)w.width);
    w.rows = ort_shape_count(x) / w.width;
    return walk_rows(&w);
}

/* ---- streams: [..., branches, width], or flattened [..., branches * width] */

static ort_status read_streams(gated_walk *w, ort_error *err)
{
    const ort_shape *x = &w->in[0]->shape;
    bool flat = w->s->branches > 0;
    int need = flat ? 1 : 2;
    if (x->rank < need)
        return ort_call_fail(w->call, err, "the input has rank %d, needs %d", x->rank, need);
    w->branches = flat ? w->s->branches : x->dim[x->rank - 2];
    if (flat && x->dim[x->rank - 1] % w->branches)
        return ort_call_fail(w->call, err, "%lld values don't divide into %lld branches",
                             (long long)x->dim[x->rank - 1], (long long)w->branches);
    w->width = flat ? x->dim[x->rank - 1] / w->branches : x->dim[x->rank - 1];
    w->outer = ort_shape_count_range(x, 0, x->rank - need);
    w->rows = w->outer;
    return ORT_OK;
}

static void branch_norm_row(const gated_walk *w, int64_t row, float *space)
{
    int64_t n = w->width, scales = w->in[1] ? ort_tensor_count(w->in[1]) : 0;
    float *x = space, *scale = x + n;
    ort_tensor_to_f32(w->in[0], row * n, n, x);
    if (scales)
        ort_tensor_to_f32(w->in[1], scales == n ? 0 : row % w->branches * n, n, scale);
    float inverse = inverse_rms(x, n, w->s->epsilon);
    for (int64_t i = 0; i < n; i++)
        x[i] *= inverse * (scales ? scale[i] : 1.0f);
    ort_tensor_from_f32(x, w->out[0], row * n, n);
}

static ort_status branch_norm_run(ort_call *call, ort_error *err)
{
    gated_walk w = walk_of(call);
    ORT_TRY(read_streams(&w, err));
    int64_t scales = w.in[1] ? ort_tensor_count(w.in[1]) : w.width;
    if (scales != w.width && scales != w.width * w.branches)
        return ort_call_fail(call, err, "the scale has %lld elements, needs %lld or %lld",
                             (long long)scales, (long long)w.width,
                             (long long)(w.width * w.branches));
    w.rows *= w.branches;
    w.row = branch_norm_row;
    return walk_rows(&w);
}

/* Gates of branch c of an outer row: one value for all of it, or one each. */
static void load_gates(const gated_walk *w, const ort_tensor *t, int64_t row, int64_t c, float *out)
{
    int64_t at = row * w->branches + c, n = w->width;
    if (n == 0)
        return;
    if (ort_tensor_count(t) == w->outer * w->branches * n && n > 1) {
        ort_tensor_to_f32(t, at * n, n, out);
        return;
    }
    ort_tensor_to_f32(t, at, 1, out);
    for (int64_t i = 1; i < n; i++)
        out[i] = out[0];
}

static bool gates_fit(const gated_walk *w, const ort_tensor *t)
{
    int64_t count = ort_tensor_count(t), each = w->outer * w->branches;
    return count == each || count == each * w->width;
}

static void pre_mix_row(const gated_walk *w, int64_t row, float *space)
{
    int64_t n = w->width;
    float *sum = space, *x = sum + n, *gate = x + n;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t c = 0; c < w->branches; c++) {
        ort_tensor_to_f32(w->in[0], (row * w->branches + c) * n, n, x);
        load_gates(w, w->in[1], row, c, gate);
        for (int64_t i = 0; i < n; i++)
            sum[i] += x[i] * gate[i];
    }
    for (int64_t i = 0; i < n; i++)
        sum[i] *= w->s->reduction;
    ort_tensor_from_f32(sum, w->out[0], row * n, n);
}

static ort_status pre_mix_run(ort_call *call, ort_error *err)
{
    gated_walk w = walk_of(call);
    ORT_TRY(read_streams(&w, err));
    if (!gates_fit(&w, w.in[1]))
        return ort_call_fail(call, err, "pre_mix doesn't fit %lld branches of %lld",
                             (long long)w.branches, (long long)w.width);
    w.row = pre_mix_row;
    return walk_rows(&w);
}

static ort_status pre_mix_infer(ort_infer *x, ort_error *err)
{
    int64_t branches = ort_node_attr_int(x->node, "num_branches");
    const ort_fact *in = ort_infer_in(x, 0);
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type y = in->type;
    int need = branches > 0 ? 1 : 2;
    if (y.rank < need)
        return ort_infer_fail(x, err, "the input has rank %d, needs %d", y.rank, need);
    ort_dim last = y.dim[y.rank - 1];
    y.dim[y.rank - need] = branches > 0 ? ort_dim_div(x->dims, last, ort_dim_of(branches)) : last;
    ort_infer_set_shape(x, 0, y.rank - need + 1, y.dim);
    return ORT_OK;
}

/* Row: one stream k of one outer row. */
static void post_mix_row(const gated_walk *w, int64_t row, float *space)
{
    int64_t n = w->width, outer = row / w->branches, k = row % w->branches;
    float *sum = space, *x = sum + n, *gate = x + n;
    ort_tensor_to_f32(w->in[1], outer * n, n, sum);
    load_gates(w, w->in[2], outer, k, gate);
    for (int64_t i = 0; i < n; i++)
        sum[i] *= gate[i];
    for (int64_t c = 0; c < w->branches; c++) {
        float mix = c == k ? 1.0f : 0.0f;
        if (w->in[3])
            ort_tensor_to_f32(w->in[3], (outer * w->branches + c) * w->branches + k, 1, &mix);
        else if (c != k)
            continue;
        ort_tensor_to_f32(w->in[0], (outer * w->branches + c) * n, n, x);
        for (int64_t i = 0; i < n; i++)
            sum[i] += mix * x[i];
    }
    ort_tensor_from_f32(sum, w->out[0], row * n, n);
}

static ort_status post_mix_run(ort_call *call, ort_error *err)
{
    gated_walk w = walk_of(call);
    ORT_TRY(read_streams(&w, err));
    if (ort_tensor_count(w.in[1]) != w.rows * w.width || !gates_fit(&w, w.in[2]) ||
        (w.in[3] && ort_tensor_count(w.in[3]) != w.rows * w.branches * w.branches))
        return ort_call_fail(call, err, "block_output, post_mix or stream_mix doesn't fit %lld "
                             "branches of %lld", (long long)w.branches, (long long)w.width);
    w.rows *= w.branches;
    w.row = post_mix_row;
    return walk_rows(&w);
}

/* ---- GatedAdd: X + round(Y * gate) */

static void gated_add_row(const gated_walk *w, int64_t row, float *space)
{
    int64_t n = w->width;
    float *x = space, *y = x + n, gate;
    ort_tensor_to_f32(w->in[0], row * n, n, x);
    ort_tensor_to_f32(w->in[1], row * n, n, y);
    ort_tensor_to_f32(w->in[2], row, 1, &gate);
    for (int64_t i = 0; i < n; i++)
        y[i] *= gate;
    round_to(w->in[0], y, n);
    for (int64_t i = 0; i < n; i++)
        x[i] += y[i];
    ort_tensor_from_f32(x, w->out[0], row * n, n);
}

static ort_status gated_add_run(ort_call *call, ort_error *err)
{
    gated_walk w = walk_of(call);
    const ort_shape *x = &w.in[0]->shape;
    w.width = x->rank > 0 ? x->dim[x->rank - 1] : 1;
    w.rows = ort_shape_count_range(x, 0, x->rank - 1);
    w.row = gated_add_row;
    if (x->rank < 1 || !ort_shape_equal(x, &w.in[1]->shape) || ort_tensor_count(w.in[2]) != w.rows)
        return ort_call_fail(call, err, "Y needs the shape of X, and the gate one value per row");
    return walk_rows(&w);
}

/* ---- ScaledSiLU: rounds to the type of X after each step */

enum { PIECE = 256 };

static void silu_row(const gated_walk *w, int64_t row, float *space)
{
    float z[PIECE], s[PIECE], scale = w->s->alpha;
    int64_t first = row * PIECE, n = ort_min_i64(PIECE, ort_tensor_count(w->in[0]) - first);
    if (w->in[1])
        ort_tensor_to_f32(w->in[1], 0, 1, &scale);
    ort_tensor_to_f32(w->in[0], first, n, z);
    for (int64_t i = 0; i < n; i++)
        z[i] *= scale;
    round_to(w->in[0], z, n);
    for (int64_t i = 0; i < n; i++)
        s[i] = sigmoid(z[i]);
    round_to(w->in[0], s, n);
    for (int64_t i = 0; i < n; i++)
        z[i] *= s[i];
    ort_tensor_from_f32(z, w->out[0], first, n);
}

static ort_status silu_run(ort_call *call, ort_error *err)
{
    gated_walk w = walk_of(call);
    if (w.in[1] && ort_tensor_count(w.in[1]) != 1)
        return ort_call_fail(call, err, "the scale needs one element");
    w.width = PIECE;
    w.rows = (ort_tensor_count(w.in[0]) + PIECE - 1) / PIECE;
    w.row = silu_row;
    return walk_rows(&w);
}

/* ---- LinearAttentionGate */

static float softplus(float x)
{
    return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}

static void gate_row(const gated_walk *w, int64_t row, float *space)
{
    int64_t n = w->width;
    float *a = space, *bias = a + n, *scale = bias + n;
    if (w->out[0]) {
        ort_tensor_to_f32(w->in[0], row * n, n, a);
        ort_tensor_to_f32(w->in[1], 0, n, bias);
        ort_tensor_to_f32(w->in[2], 0, n, scale);
        for (int64_t i = 0; i < n; i++)
            a[i] = scale[i] * softplus(a[i] + bias[i]);
        ort_tensor_from_f32(a, w->out[0], row * n, n);
    }
    if (w->out[1]) {
        ort_tensor_to_f32(w->in[3], row * n, n, a);
        for (int64_t i = 0; i < n; i++)
            a[i] = sigmoid(a[i]);
        ort_tensor_from_f32(a, w->out[1], row * n, n);
    }
}

static ort_status gate_run(ort_call *call, ort_error *err)
{
    gated_walk w = walk_of(call);
    const ort_shape *a = &w.in[0]->shape;
    w.width = a->rank > 0 ? a->dim[a->rank - 1] : 0;
    w.rows = ort_shape_count_range(a, 0, a->rank - 1);
    w.row = gate_row;
    if (a->rank < 1 || ort_tensor_count(w.in[1]) != w.width ||
        ort_tensor_count(w.in[2]) != w.width ||
        (w.in[3] && !ort_shape_equal(a, &w.in[3]->shape)) || (w.out[1] && !w.in[3]))
        return ort_call_fail(call, err, "dt_bias and decay_scale need %lld elements, and b, which "
                             "beta needs, the shape of a", (long long)w.width);
    return walk_rows(&w);
}

/* ---- EngramGate */

static void engram_row(const gated_walk *w, int64_t row, float *space)
{
    int64_t n = w->width, c = row % w->branches;
    float *key = space, *query = key + n, *scale = query + n, *other = scale + n;
    ort_tensor_to_f32(w->in[0], row * n, n, key);
    ort_tensor_to_f32(w->in[1], row * n, n, query);
    ort_tensor_to_f32(w->in[3], c * n, n, scale);
    ort_tensor_to_f32(w->in[4], c * n, n, other);
    float k = inverse_rms(key, n, w->s->epsilon), q = inverse_rms(query, n, w->s->epsilon);
    float dot = 0.0f;
    for (int64_t i = 0; i < n; i++)
        dot += key[i] * k * scale[i] * (query[i] * q * other[i]);
    dot /= sqrtf((float)n);
    float root = sqrtf(fmaxf(fabsf(dot), 1e-6f));
    float gate = sigmoid(dot > 0.0f ? root : dot < 0.0f ? -root : 0.0f), *value = key;
    ort_tensor_to_f32(w->in[2], row / w->branches * n, n, value);
    for (int64_t i = 0; i < n; i++)
        value[i] *= gate;
    if (w->out[0])
        ort_tensor_from_f32(value, w->out[0], row * n, n);
    if (!w->out[1])
        return;
    ort_tensor_to_f32(w->in[5], c * n, n, scale);
    float inverse = inverse_rms(value, n, w->s->epsilon);
    for (int64_t i = 0; i < n; i++)
        value[i] *= inverse * scale[i];
    ort_tensor_from_f32(value, w->out[1], row * n, n);
}

static ort_status engram_run(ort_call *call, ort_error *err)
{
    gated_walk w = walk_of(call);
    const ort_shape *key = &w.in[0]->shape;
    ORT_TRY(read_streams(&w, err));
    int64_t scales = w.branches * w.width;
    if (!ort_shape_equal(key, &w.in[1]->shape) || ort_tensor_count(w.in[2]) != w.rows * w.width ||
        ort_tensor_count(w.in[3]) != scales || ort_tensor_count(w.in[4]) != scales ||
        (w.in[5] && ort_tensor_count(w.in[5]) != scales) || (w.out[1] && !w.in[5]))
        return ort_call_fail(call, err, "query, value and the scales of the norms don't fit a key "
                             "of %lld branches of %lld, or conv_norm_scale is missing",
                             (long long)w.branches, (long long)w.width);
    w.rows *= w.branches;
    w.row = engram_row;
    return walk_rows(&w);
}

/* ---- rows */

#define GATED_IMPL(name, run_fn, ...)                                                              \
    static const ort_op_impl name = {                                                              \
        .state = sizeof(gated_state), .bind = gated_bind,                                          \
        .shape = gated_shape, .run = run_fn, __VA_ARGS__}
GATED_IMPL(gated_norm_impl, gated_norm_run, .rule = "same");
GATED_IMPL(branch_norm_impl, branch_norm_run, .rule = "same");
GATED_IMPL(gated_add_impl, gated_add_run, .rule = "same");
GATED_IMPL(silu_impl, silu_run, .rule = "same");
GATED_IMPL(gate_impl, gate_run, .rule = "[..] -> [..] [..]");
GATED_IMPL(engram_impl, engram_run, .rule = "[..] -> [..] [..]");
GATED_IMPL(pre_mix_impl, pre_mix_run, .infer = pre_mix_infer);
GATED_IMPL(post_mix_impl, post_mix_run, .rule = "same");

#define FLOATS "T:f32,f16,bf16"
#define MIXED "T:f32,f16,bf16 M:f32,f16,bf16"

const ort_op ort_ops_gated[] = {
    {MS, "GatedRMSNorm", 1, "X:T,scale:T,gate:T -> Y:T", FLOATS,
     "activation:s=silu epsilon:f=0.00001", 0, &gated_norm_impl},
    {MS, "BranchwiseRMSNorm", 1, "X:T,scale?:M -> Y:T", MIXED,
     "epsilon:f=0.00001 num_branches:i=0", 0, &branch_norm_impl},
    {MS, "GatedAdd", 1, "X:T,Y:T,gate:T -> output:T", FLOATS, "", 0, &gated_add_impl},
    {MS, "ScaledSiLU", 1, "X:T,scale?:M -> Y:T", MIXED, "alpha:f=1", ORT_TRAIT_ELEMENTWISE,
     &silu_impl},
    {MS, "LinearAttentionGate", 1, "a:T,dt_bias:f32,decay_scale:f32,b?:T -> decay:T,beta?:T",
     FLOATS, "", 0, &gate_impl},
    {MS, "EngramGate", 1,
     "key:T,query:T,value:T,key_norm_scale:T,query_norm_scale:T,conv_norm_scale?:T -> "
     "output:T,gated_value_normed?:T", FLOATS, "epsilon:f=0.00001", 0, &engram_impl},
    {MS, "HyperConnectionPreMix", 1, "streams:T,pre_mix:M -> output:T", MIXED,
     "num_branches:i=0 reduction_scale:f=1", 0, &pre_mix_impl},
    {MS, "HyperConnectionPostMix", 1,
     "streams:T,block_output:T,post_mix:M,stream_mix?:M -> output:T", MIXED, "num_branches:i=0", 0,
     &post_mix_impl},
    {0},
};
