/* blob_weights.c - com.microsoft MatMulBnb4 and MatMulFpQ4: products with weights of 4 bits that
 * lie in a one-dimensional blob.
 *
 * MatMulBnb4: the weight [N][K], flattened, in blocks of block_size with one scale each; a code
 * names one of 16 values in [-1, 1] (FP4, or the normal-float NF4 of arXiv:2305.14314). The first
 * of two neighbours is in the high bits. MatMulFpQ4: column by column, blocks along K of a float
 * scale, a zero point byte where the kind has one, and 16 bytes per 32 elements: byte i holds
 * element i low and element i + 16 high.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/widened.h"

static const float fp4_values[16] = { /* sign, then 3 bits that index the magnitudes */
    0.0f,  5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
static const float nf4_values[16] = { /* quantiles of the normal distribution */
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
    -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
    0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
    0.7229568362236023f, 1.0f};

typedef struct blob_state {
    const float *values; /* MatMulBnb4 */
    int type;            /* 0: FP4, 1: NF4 */
    bool transposed;     /* the output has N columns */
    bool zeros;          /* a MatMulFpQ4 block has a zero point */
    int64_t n, k, block, head; /* head: bytes of a MatMulFpQ4 block before its codes */
} blob_state;

typedef struct blob_plan {
    int64_t m, n, k; /* of the weight */
    int64_t rows, depth;
    size_t y; /* workspace: A as floats, then y as floats, when they aren't */
} blob_plan;

static ort_status infer_columns(ort_infer *x, int64_t depth, ort_dim columns, ort_error *err)
{
    const ort_fact *a = ort_infer_in(x, 0);
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    ort_type y = a->type;
    if (y.rank < 1)
        return ort_infer_fail(x, err, "input A needs rank 1 and more");
    if (depth > 0 && ort_dim_differ(y.dim[y.rank - 1], ort_dim_of(depth)))
        return ort_infer_fail(x, err, "A has %lld columns, the weight %lld rows",
                              (long long)y.dim[y.rank - 1].size, (long long)depth);
    y.dim[y.rank - 1] = columns;
    ort_infer_set_shape(x, 0, y.rank, y.dim);
    return ORT_OK;
}

static ort_status bnb4_infer(ort_infer *x, ort_error *err)
{
    int64_t n = ort_node_attr_int(x->node, "N"), k = ort_node_attr_int(x->node, "K");
    bool transposed = ort_node_attr_int(x->node, "transB") != 0;
    if (n < 1 || k < 1)
        return ort_infer_fail(x, err, "attributes N and K are %lld and %lld", (long long)n,
                              (long long)k);
    return infer_columns(x, transposed ? k : n, ort_dim_of(transposed ? n : k), err);
}

static ort_status fpq4_infer(ort_infer *x, ort_error *err)
{
    int64_t shape[2];
    int count = 0;
    if (!ort_infer_ints(x, 2, shape, 2, &count) || count != 2)
        return infer_columns(x, 0, ort_dim_unknown(), err);
    return infer_columns(x, shape[0], ort_dim_of(shape[1]), err);
}

static const ort_bind bnb4_bind[] = {
    ORT_BIND_AS(blob_state, n, "N", ORT_WITHIN(0, INT32_MAX)),
    ORT_BIND_AS(blob_state, k, "K", ORT_WITHIN(0, INT32_MAX)),
    ORT_BIND_AS(blob_state, block, "block_size"),
    ORT_BIND_AS(blob_state, type, "quant_type", ORT_WITHIN(0, 1)),
    ORT_BIND_AS(blob_state, transposed, "transB"), {0}};

static ort_status bnb4_prepare(ort_prep *p, ort_error *err)
{
    blob_state *s = p->state;
    s->values = s->type == 0 ? fp4_values : nf4_values;
    if (s->block < 16 || (s->block & (s->block - 1)))
        return ort_prep_fail(p, err, "attribute block_size is %lld, needs a power of two from 16 "
                             "on", (long long)s->block);
    return ORT_OK;
}

static const ort_bind fpq4_bind[] = {ORT_BIND_AS(blob_state, zeros, "blk_quant_type"), {0}};

static ort_status fpq4_prepare(ort_prep *p, ort_error *err)
{
    blob_state *s = p->state;
    s->block = 32;
    s->head = s->zeros ? 5 : 4;
    s->transposed = true;
    return ORT_OK;
}

/* ---- shape */

static ort_status check_blob(const ort_shaping *s, const blob_plan *p, ort_error *err)
{
    const blob_state *state = s->state;
    int64_t have = ort_tensor_count(s->in[1]), need = 0;
    if (state->values) {
        int64_t count = p->n * p->k, scales = (count + state->block - 1) / state->block;
        need = (count + 1) / 2;
        if (ort_tensor_count(s->in[2]) < scales)
            return ort_error_set(err, ORT_ERROR_MODEL, "absmax has %lld elements, needs %lld",
                                 (long long)ort_tensor_count(s->in[2]), (long long)scales);
    } else {
        need = p->n * ((p->k + 31) / 32) * (state->head + 16);
    }
    if (have < need)
        return ort_error_set(err, ORT_ERROR_MODEL, "B has %lld bytes, needs %lld", (long long)have,
                             (long long)need);
    return ORT_OK;
}

static ort_status blob_shape(ort_shaping *s, ort_error *err)
{
    const blob_state *state = s->state;
    const ort_tensor *a = s->in[0];
    blob_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    p->n = state->n;
    p->k = state->k;
    if (!state->values) {
        if (!s->in[2]->data || ort_tensor_count(s->in[2]) != 2)
            return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "B_shape has to be a constant of two "
                                 "elements");
        p->k = ort_tensor_get_i64(s->in[2], 0); /* first of two */
        p->n = ort_tensor_get_i64(s->in[2], 1);
    }
    int64_t count;
    if (p->n < 1 || p->k < 1 || !ort_mul_i64(p->n, p->k, &count) || count > INT64_MAX / 64)
        return ort_error_set(err, ORT_ERROR_MODEL, "a weight of %lld x %lld elements",
                             (long long)p->k, (long long)p->n);
    p->rows = state->transposed ? p->n : p->k;
    p->depth = state->transposed ? p->k : p->n;
    if (a->shape.rank < 1 || a->shape.dim[a->shape.rank - 1] != p->depth)
        return ort_error_set(err, ORT_ERROR_MODEL, "A needs %lld columns", (long long)p->depth);
    p->m = ort_shape_count_range(&a->shape, 0, a->shape.rank - 1);
    ORT_TRY(check_blob(s, p, err));
    s->thread_bytes = ort_widened_thread_bytes(s->k);
    if (a->dtype != ORT_DTYPE_FLOAT) {
        p->y = ort_round_up((size_t)(p->m * p->depth) * sizeof(float), 64);
        s->workspace_bytes = p->y + (size_t)(p->m * p->rows) * sizeof(float);
    }
    return ORT_OK;
}

/* ---- run */

typedef struct blob_weight {
    const blob_state *s;
    const blob_plan *p;
    const uint8_t *data;
    const ort_tensor *scale;
} blob_weight;

static void bnb4_row(const void *weight, int64_t row, int64_t first, int64_t n, float *out)
{
    const blob_weight *w = weight;
    const blob_state *s = w->s;
    int64_t step = s->transposed ? 1 : w->p->k;
    int64_t i = s->transposed ? row * w->p->k + first : first * w->p->k + row, block = -1;
    float scale = 0.0f;
    for (int64_t end = i + n * step; i < end; i += step) {
        if (i / s->block != block) {
            block = i / s->block;
            ort_tensor_to_f32(w->scale, block, 1, &scale);
        }
        *out++ = s->values[i % 2 ? w->data[i / 2] & 15 : w->data[i / 2] >> 4] * scale;
    }
}

static void fpq4_row(const void *weight, int64_t row, int64_t first, int64_t n, float *out)
{
    const blob_weight *w = weight;
    int64_t blocks = (w->p->k + 31) / 32, bytes = w->s->head + 16;
    for (int64_t i = first; i < first + n; i++) {
        const uint8_t *block = w->data + (row * blocks + i / 32) * bytes;
        const uint8_t *codes = block + w->s->head;
        float scale, zero = w->s->head == 5 ? (float)block[4] : 8.0f;
        memcpy(&scale, block, sizeof scale);
        int at = (int)(i % 32);
        *out++ = ((float)(at < 16 ? codes[at] & 15 : codes[at - 16] >> 4) - zero) * scale;
    }
}

static ort_status blob_run(ort_call *call, ort_error *err)
{
    const blob_state *s = call->state;
    const blob_plan *p = call->plan_state;
    const ort_tensor *a = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    blob_weight weight = {s, p, ort_call_in(call, 1)->data, ort_call_in(call, 2)};
    ort_widened w = {.m = p->m, .rows = p->rows, .depth = p->depth, .a = a->data, .y = y->data,
                     .row = s->values ? bnb4_row : fpq4_row, .weight = &weight};
    if (a->dtype != ORT_DTYPE_FLOAT) {
        float *wide = call->workspace;
        ort_tensor_to_f32(a, 0, p->m * p->depth, wide);
        w.a = wide;
        w.y = (float *)(void *)((char *)call->workspace + p->y);
    }
    ort_widened_multiply(call, &w);
    if (a->dtype != ORT_DTYPE_FLOAT)
        ort_tensor_from_f32(w.y, y, 0, p->m * p->rows);
    return ORT_OK;
}

/* ---- rows */

static void blob_cost(const ort_infer *x, ort_cost *cost)
{
    const ort_type *a = ort_infer_in_ranked(x, 0) ? &x->in[0]->type : NULL, *y = &x->out[0].type;
    double macs = a && a->rank > 0 ? 1 : 0;
    for (int d = 0; a && d < a->rank; d++)
        macs *= ort_dim_known(a->dim[d]) ? (double)a->dim[d].size : 0;
    if (y->rank > 0 && ort_dim_known(y->dim[y->rank - 1]))
        cost->macs = macs * (double)y->dim[y->rank - 1].size;
}

static const ort_op_impl bnb4_impl = {
    .state = sizeof(blob_state), .bind = bnb4_bind,
    .infer = bnb4_infer, .prepare = bnb4_prepare, .shape = blob_shape, .run = blob_run,
    .cost = blob_cost,
};
static const ort_op_impl fpq4_impl = {
    .state = sizeof(blob_state), .bind = fpq4_bind,
    .infer = fpq4_infer, .prepare = fpq4_prepare, .shape = blob_shape, .run = blob_run,
    .cost = blob_cost,
};

const ort_op ort_ops_blob_weights[] = {
    {MS, "MatMulBnb4", 1, "A:T1,B:T2,absmax:T1 -> Y:T1", "T1:f32,f16,bf16 T2:u8",
     "K:i! N:i! block_size:i! quant_type:i! training_mode:i=0 transB:i=1", 0, &bnb4_impl},
    {MS, "MatMulFpQ4", 1, "A:T1,B:T2,B_shape:T3 -> Y:T1", "T1:f32 T2:u8 T3:i64",
     "blk_quant_type:i=1", 0, &fpq4_impl},
    {0},
};
