/* attention.c - Attention of ONNX: heads, caches, masks and types around the typed cores.
 *
 * float, float16 and bfloat16 compute in float; in double where Q or V is double: V may be of
 * another type than Q. New keys and values are appended to the past ones in the present outputs (or
 * in workspace when those aren't wanted), which the core then reads. A present that lies where its
 * past lies gets the new rows alone. Tensors of another type than the core's pass through the
 * workspace.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/sequence/attention_common.h"

enum { IN_Q, IN_K, IN_V, IN_MASK, IN_PAST_K, IN_PAST_V, IN_VALID };
enum { OUT_Y, OUT_K, OUT_V, OUT_SCORES };

typedef struct attention {
    int64_t q_heads, kv_heads; /* 0: from the shapes */
    double scale;              /* 0: 1 / sqrt(D) */
    double softcap;
    bool causal;
    int64_t left, right;
    int64_t mode;
    ort_dtype dtype;   /* of Q, K, Y and the scores */
    ort_dtype v_dtype; /* of V and its cache */
    ort_dtype real;    /* of the core: FLOAT or DOUBLE, what the wider of the two needs */
    const ort_attention_core *core;
} attention;

static const ort_bind attention_bind[] = {
    ORT_BIND_AS(attention, q_heads, "q_num_heads", ORT_FROM(0), ORT_MAYBE),
    ORT_BIND_AS(attention, kv_heads, "kv_num_heads", ORT_FROM(0), ORT_MAYBE),
    ORT_BIND(attention, scale, ORT_MAYBE), ORT_BIND(attention, softcap),
    ORT_BIND_AS(attention, causal, "is_causal"),
    ORT_BIND_AS(attention, left, "left_window_size", ORT_ELSE(-1)),
    ORT_BIND_AS(attention, right, "right_window_size", ORT_ELSE(-1)),
    ORT_BIND_AS(attention, mode, "qk_matmul_output_mode", ORT_WITHIN(0, 3)), {0}};

/* ---- infer */

static ort_dim head_dim(const ort_infer *x, const ort_type *t, int64_t heads)
{
    if (t->rank == 4)
        return t->dim[3];
    return heads > 0 ? ort_dim_div(x->dims, t->dim[2], ort_dim_of(heads)) : ort_dim_unknown();
}

static ort_dim head_count(const ort_type *t, int64_t heads)
{
    return t->rank == 4 ? t->dim[1] : heads > 0 ? ort_dim_of(heads) : ort_dim_unknown();
}

static ort_status need_34(const ort_infer *x, int input, ort_error *err)
{
    if (!ort_infer_in_ranked(x, input))
        return ORT_OK;
    int rank = x->in[input]->type.rank;
    if (rank != 3 && rank != 4)
        return ort_infer_fail(x, err, "input %d has %d dims, needs 3 or 4", input, rank);
    return ORT_OK;
}

/* Past rows have the batch, the heads and the sizes of new ones. */
static ort_status need_past(const ort_infer *x, int input, const ort_dim *fresh, ort_error *err)
{
    static const char *const what[] = {"batch", "number of heads", "rows", "size of a head"};
    if (!ort_infer_in_ranked(x, input))
        return ORT_OK;
    const ort_dim *past = x->in[input]->type.dim;
    for (int i = 0; i < 4; i++)
        if (i != 2 && ort_dim_known(past[i]) && ort_dim_known(fresh[i]) &&
            past[i].size != fresh[i].size)
            return ort_infer_fail(x, err,
                                  "input %d has %lld as its %s, what is appended to it %lld", input,
                                  (long long)past[i].size, what[i], (long long)fresh[i].size);
    return ORT_OK;
}

static ort_status attention_infer(ort_infer *x, ort_error *err)
{
    int64_t q_heads = ort_node_attr_int(x->node, "q_num_heads");
    int64_t kv_heads = ort_node_attr_int(x->node, "kv_num_heads");
    for (int i = IN_Q; i <= IN_V; i++)
        ORT_TRY(need_34(x, i, err));
    if (!ort_infer_in_ranked(x, IN_Q) || !ort_infer_in_ranked(x, IN_K) ||
        !ort_infer_in_ranked(x, IN_V))
        return ORT_OK;
    const ort_type *tq = &x->in[IN_Q]->type, *tk = &x->in[IN_K]->type, *tv = &x->in[IN_V]->type;
    if (tq->rank == 3 && (q_heads <= 0 || kv_heads <= 0))
        return ort_infer_fail(x, err,
                              "inputs of 3 dims need the attributes q_num_heads and "
                              "kv_num_heads");
    ort_dim B = tq->dim[0], Sq = tq->dim[tq->rank - 2], T = tk->dim[tk->rank - 2];
    ort_dim Hq = head_count(tq, q_heads), Hk = head_count(tk, kv_heads);
    ort_dim D = head_dim(x, tk, kv_heads), E = head_dim(x, tv, kv_heads);
    ORT_TRY(need_past(x, IN_PAST_K, (ort_dim[]){B, Hk, T, D}, err));
    ORT_TRY(need_past(x, IN_PAST_V, (ort_dim[]){B, Hk, T, E}, err));
    if (ort_infer_in(x, IN_PAST_K))
        T = ort_infer_in_ranked(x, IN_PAST_K) && x->in[IN_PAST_K]->type.rank == 4
                ? ort_dim_add(x->dims, x->in[IN_PAST_K]->type.dim[2], T) : ort_dim_unknown();
    if (tq->rank == 4)
        ort_infer_set_shape(x, OUT_Y, 4, (ort_dim[]){B, Hq, Sq, E});
    else
        ort_infer_set_shape(x, OUT_Y, 3, (ort_dim[]){B, Sq, ort_dim_mul(x->dims, Hq, E)});
    ort_infer_set_shape(x, OUT_K, 4, (ort_dim[]){B, Hk, T, D});
    ort_infer_set_shape(x, OUT_V, 4, (ort_dim[]){B, Hk, T, E});
    ort_infer_set_shape(x, OUT_SCORES, 4, (ort_dim[]){B, Hq, Sq, T});
    return ORT_OK;
}

static void attention_cost(const ort_infer *x, ort_cost *cost)
{
    double macs = 2;
    if (!ort_infer_in_ranked(x, IN_Q) || !ort_infer_in_ranked(x, IN_K))
        return;
    const ort_type *q = &x->in[IN_Q]->type, *k = &x->in[IN_K]->type;
    if (k->rank < 2) /* costs are asked of models that did not pass the check, too */
        return;
    for (int i = 0; i < q->rank; i++)
        macs *= ort_dim_known(q->dim[i]) ? (double)q->dim[i].size : 1;
    ort_dim keys = k->dim[k->rank - 2];
    cost->macs = macs * (ort_dim_known(keys) ? (double)keys.size : 1);
}

/* ---- prepare */

static const ort_appends attention_appends = {
    .count = 2,
    .pair = {{IN_PAST_K, OUT_K, 2}, {IN_PAST_V, OUT_V, 2}},
    .row_inputs = 1u << IN_MASK | 1u << IN_VALID,
    .row_outputs = 1u << OUT_SCORES,
};

static ort_status attention_prepare(ort_prep *p, ort_error *err)
{
    attention *a = p->state;
    a->dtype = ort_prep_dtype(p, IN_Q);
    p->appends = &attention_appends;
    a->v_dtype = ort_prep_dtype(p, IN_V);
    ORT_TRY(ort_prep_need_real(p, IN_Q, err));
    ORT_TRY(ort_prep_need_real(p, IN_V, err));
    bool wide = a->dtype == ORT_DTYPE_DOUBLE || a->v_dtype == ORT_DTYPE_DOUBLE;
    a->core = wide ? &ort_attention_core_f64 : &ort_attention_core_f32;
    a->real = wide ? ORT_DTYPE_DOUBLE : ORT_DTYPE_FLOAT;
    return ORT_OK;
}

/* ---- shape */

typedef struct head_form { /* one of Q, K, V as the caller gave it */
    int64_t batch, heads, rows, size;
    bool packed; /* [B, S, H * size] instead of [B, H, S, size] */
} head_form;

typedef struct attention_plan {
    head_form q, k, v;
    int64_t past, T, block;
    size_t key, value;                  /* workspace offsets: typed caches that aren't outputs */
    size_t qr, kr, vr, yr, scores, mask; /* real forms of typed tensors */
    size_t packed, packed_each, start;
} attention_plan;

#define NONE SIZE_MAX

/* Elements of an output; -1 when it isn't wanted. */
static int64_t wanted_count(const ort_shaping *s, int index)
{
    return index < s->out_count && s->out[index] ? ort_tensor_count(s->out[index]) : -1;
}

static bool head_form_of(const ort_tensor *t, int64_t heads, head_form *f)
{
    const ort_shape *s = &t->shape;
    f->batch = s->rank > 0 ? s->dim[0] : 0;
    if (s->rank == 4) {
        *f = (head_form){s->dim[0], s->dim[1], s->dim[2], s->dim[3], false};
        return heads == 0 || heads == s->dim[1];
    }
    if (s->rank != 3 || heads <= 0 || s->dim[2] % heads != 0)
        return false;
    *f = (head_form){s->dim[0], heads, s->dim[1], s->dim[2] / heads, true};
    return true;
}

static const ort_tensor *given(const ort_shaping *s, int index)
{
    return index < s->in_count ? s->in[index] : NULL;
}

static bool cache_fits(const ort_tensor *past, const head_form *f, int64_t rows)
{
    const ort_shape *s = &past->shape;
    return s->rank == 4 && s->dim[0] == f->batch && s->dim[1] == f->heads && s->dim[2] == rows &&
           s->dim[3] == f->size;
}

static ort_status check_shapes(const ort_shaping *s, attention_plan *p, ort_error *err)
{
    const attention *a = s->state;
    const ort_tensor *past_k = given(s, IN_PAST_K), *past_v = given(s, IN_PAST_V);
    if (!head_form_of(given(s, IN_Q), a->q_heads, &p->q) ||
        !head_form_of(given(s, IN_K), a->kv_heads, &p->k) ||
        !head_form_of(given(s, IN_V), a->kv_heads, &p->v))
        return ort_error_set(err, ORT_ERROR_RUN, "Q, K or V doesn't have 4 dims, or 3 dims that "
                             "q_num_heads and kv_num_heads divide");
    if (p->k.heads < 1 || p->q.heads % p->k.heads != 0 || p->v.heads != p->k.heads ||
        p->q.size != p->k.size || p->k.rows != p->v.rows || p->k.batch != p->q.batch ||
        p->v.batch != p->q.batch)
        return ort_error_set(err, ORT_ERROR_RUN, "the shapes of Q, K and V don't fit together");
    p->past = past_k && past_k->shape.rank == 4 ? past_k->shape.dim[2] : 0;
    if ((past_k != NULL) != (past_v != NULL) ||
        (past_k && (!cache_fits(past_k, &p->k, p->past) || !cache_fits(past_v, &p->v, p->past))))
        return ort_error_set(err, ORT_ERROR_RUN, "past_key and past_value don't fit K and V");
    if (given(s, IN_VALID) && (past_k || ort_tensor_count(given(s, IN_VALID)) != p->q.batch))
        return ort_error_set(err, ORT_ERROR_RUN, "nonpad_kv_seqlen must have one entry per batch "
                             "row, and no past cache beside it");
    p->T = p->past + p->k.rows;
    return ORT_OK;
}

static bool reserve(size_t *total, size_t count, size_t size, size_t *offset)
{
    size_t bytes;
    if (!ort_mul_size(count, size, &bytes) || bytes > SIZE_MAX / 4)
        return false;
    *offset = *total;
    return ort_add_size(*total, ort_round_up(bytes, 64), total);
}

static bool reserve_all(ort_shaping *s, attention_plan *p, size_t *total)
{
    const attention *a = s->state;
    size_t real = a->core->real_bytes, typed = (size_t)ort_dtype_bits(a->dtype) / 8;
    size_t v_typed = (size_t)ort_dtype_bits(a->v_dtype) / 8;
    bool convert = a->dtype != a->real, convert_v = a->v_dtype != a->real;
    size_t heads = (size_t)(p->q.batch * p->k.heads);
    size_t keys = heads * (size_t)(p->T * p->k.size), values = heads * (size_t)(p->T * p->v.size);
    size_t rows = (size_t)(p->q.batch * p->q.heads * p->q.rows);
    const ort_tensor *mask = given(s, IN_MASK);
    bool fits = true;
    p->key = p->value = p->qr = p->kr = p->vr = p->yr = NONE;
    p->scores = p->mask = p->packed = p->start = NONE;
    if (given(s, IN_PAST_K) && !(s->out_count > OUT_K && s->out[OUT_K]))
        fits = reserve(total, keys, typed, &p->key);
    if (fits && given(s, IN_PAST_V) && !(s->out_count > OUT_V && s->out[OUT_V]))
        fits = reserve(total, values, v_typed, &p->value);
    if (fits && convert)
        fits = reserve(total, rows * (size_t)p->q.size, real, &p->qr) &&
               reserve(total, keys, real, &p->kr) &&
               reserve(total, rows * (size_t)p->v.size, real, &p->yr);
    if (fits && convert_v)
        fits = reserve(total, values, real, &p->vr);
    if (fits && convert && s->out_count > OUT_SCORES && s->out[OUT_SCORES])
        fits = reserve(total, rows * (size_t)p->T, real, &p->scores);
    if (fits && mask && mask->dtype != ORT_DTYPE_BOOL && mask->dtype != a->real)
        fits = reserve(total, (size_t)ort_tensor_count(mask), real, &p->mask);
    if (fits && given(s, IN_VALID))
        fits = reserve(total, (size_t)p->q.batch, sizeof(int64_t), &p->start);
    p->packed_each = a->core->packed_bytes(s->k, p->q.rows, p->T, p->k.size);
    return fits && reserve(total, heads, p->packed_each, &p->packed);
}

static ort_status attention_shape(ort_shaping *s, ort_error *err)
{
    const attention *a = s->state;
    attention_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    size_t total = 0;
    if (!p)
        return ort_error_memory(err, sizeof *p);
    ORT_TRY(check_shapes(s, p, err));
    if (wanted_count(s, OUT_Y) >= 0 &&
        wanted_count(s, OUT_Y) != p->q.batch * p->q.heads * p->q.rows * p->v.size)
        return ort_error_set(err, ORT_ERROR_RUN, "the shapes of Q and V don't fit the output's");
    p->block = ort_attention_block(s->k, p->q.rows, p->T, a->causal);
    if (!reserve_all(s, p, &total))
        return ort_error_set(err, ORT_ERROR_MEMORY, "attention over %lld keys is too large",
                             (long long)p->T);
    s->plan_state = p;
    s->workspace_bytes = total;
    s->thread_bytes = (size_t)(p->block * (p->T + p->q.size)) * a->core->real_bytes;
    return ORT_OK;
}

/* ---- run */

/* Where the rows of a cache [B, H, rows, size] lie. */
static ort_heads cache_heads(const ort_tensor *t)
{
    const int64_t *dim = t->shape.dim;
    if (t->stride)
        return (ort_heads){t->data, t->stride[0], t->stride[1], t->stride[2]};
    return (ort_heads){t->data, dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3]};
}

/* Append the new rows to the past ones: dst [B, H, T, size] typed. */
static void fill_cache(ort_tensor *dst, const ort_tensor *past, const ort_tensor *fresh,
                       const head_form *f)
{
    size_t each = (size_t)ort_dtype_bits(dst->dtype) / 8, row = (size_t)f->size * each;
    int64_t past_rows = past ? past->shape.dim[2] : 0;
    bool in_place = past && past->data == dst->data;
    ort_heads to_heads = cache_heads(dst);
    ort_heads from_heads = past ? cache_heads(past) : (ort_heads){NULL, 0, 0, 0};
    for (int64_t b = 0; b < f->batch; b++)
        for (int64_t h = 0; h < f->heads; h++) {
            char *to = (char *)dst->data +
                       (size_t)(b * to_heads.batch + h * to_heads.head) * each;
            if (past_rows > 0 && !in_place)
                memcpy(to, (const char *)past->data +
                               (size_t)(b * from_heads.batch + h * from_heads.head) * each,
                       (size_t)past_rows * row);
            to += (size_t)past_rows * row;
            for (int64_t r = 0; r < f->rows; r++, to += row) {
                int64_t at = f->packed ? (b * f->rows + r) * f->heads + h
                                       : (b * f->heads + h) * f->rows + r;
                memcpy(to, (const char *)fresh->data + (size_t)at * row, row);
            }
        }
}

static ort_heads heads_of(const void *data, const head_form *f)
{
    ort_heads h = {data, f->heads * f->rows * f->size, f->rows * f->size, f->size};
    if (f->packed) {
        h.head = f->size;
        h.row = f->heads * f->size;
    }
    return h;
}

typedef struct attention_job {
    ort_call *call;
    const attention *a;
    const attention_plan *p;
    ort_attention_run run;
} attention_job;

static void *space(const attention_job *j, size_t offset)
{
    return offset == NONE ? NULL : (char *)j->call->workspace + offset;
}

/* Elements [first, first + count) of the tensor in the core's type. */
static void to_real(const attention_job *j, const ort_tensor *t, int64_t first, int64_t count,
                    void *real)
{
    if (j->a->real == ORT_DTYPE_FLOAT) {
        ort_tensor_to_f32(t, first, count, real);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ((double *)real)[i] = ort_tensor_get_f64(t, first + i);
}

/* The tensor's data in the core's type. */
static const void *real_form(const attention_job *j, const ort_tensor *t, size_t offset)
{
    if (offset == NONE)
        return t->data;
    void *real = space(j, offset);
    to_real(j, t, 0, ort_tensor_count(t), real);
    return real;
}

/* The same of a cache whose heads have room behind their rows. */
static ort_heads real_cache(const attention_job *j, const ort_tensor *t, size_t offset,
                            const head_form *f)
{
    char *real = space(j, offset);
    ort_heads from = cache_heads(t);
    if (!real)
        return from;
    ort_tensor flat = *t; /* places are counted in its memory */
    flat.stride = NULL;
    int64_t count = f->rows * f->size; /* of a head */
    size_t bytes = (size_t)count * j->a->core->real_bytes;
    for (int64_t b = 0; b < f->batch; b++)
        for (int64_t h = 0; h < f->heads; h++)
            to_real(j, &flat, b * from.batch + h * from.head, count,
                    real + (size_t)(b * f->heads + h) * bytes);
    return heads_of(real, f);
}

/* K or V as the core reads it, the cache filled first when there is one. */
static ort_heads source(const attention_job *j, int in, int past, int out, size_t cache,
                        size_t real, const head_form *f)
{
    const ort_tensor *fresh = ort_call_in(j->call, in), *old = ort_call_in(j->call, past);
    ort_tensor *present = ort_call_out(j->call, out);
    ort_tensor typed = *fresh;
    head_form form = *f;
    if (present || cache != NONE) {
        form.rows = j->run.T;
        form.packed = false;
        typed.shape = (ort_shape){4, {f->batch, f->heads, j->run.T, f->size}};
        typed.data = present ? present->data : space(j, cache);
        typed.stride = present ? present->stride : NULL;
        fill_cache(&typed, old, fresh, f);
        if (typed.stride)
            return real_cache(j, &typed, real, &form);
    }
    return heads_of(real_form(j, &typed, real), &form);
}

static ort_status bind_mask(attention_job *j, ort_error *err)
{
    const ort_tensor *mask = ort_call_in(j->call, IN_MASK);
    ort_attention_run *r = &j->run;
    if (!mask)
        return ORT_OK;
    const ort_shape *s = &mask->shape;
    int64_t want[3] = {r->B, r->Hq, r->Sq}, stride = s->rank > 0 ? s->dim[s->rank - 1] : 1;
    int64_t *strides[3] = {&r->mask_batch, &r->mask_head, &r->mask_row};
    if (s->rank < 1 || s->rank > 4 || stride > r->T)
        return ort_call_fail(j->call, err, "attn_mask doesn't broadcast to the scores");
    r->mask_keys = stride;
    for (int k = 2, d = s->rank - 2; k >= 0 && d >= 0; k--, d--) {
        if (s->dim[d] != want[k] && s->dim[d] != 1)
            return ort_call_fail(j->call, err, "attn_mask has %lld in dim %d, needs %lld or 1",
                                 (long long)s->dim[d], d, (long long)want[k]);
        *strides[k] = s->dim[d] == 1 ? 0 : stride;
        stride *= s->dim[d];
    }
    r->mask_is_bool = mask->dtype == ORT_DTYPE_BOOL;
    r->mask = real_form(j, mask, j->p->mask);
    return ORT_OK;
}

static ort_status check_valid(attention_job *j, ort_error *err)
{
    const ort_tensor *valid = ort_call_in(j->call, IN_VALID);
    if (!valid)
        return ORT_OK;
    int64_t *start = space(j, j->p->start);
    j->run.valid = valid->data;
    j->run.start = start;
    for (int64_t b = 0; b < j->run.B; b++) {
        if (j->run.valid[b] < 0 || j->run.valid[b] > j->run.T)
            return ort_call_fail(j->call, err,
                                 "nonpad_kv_seqlen[%lld] is %lld, must be in [0, %lld]",
                                 (long long)b, (long long)j->run.valid[b], (long long)j->run.T);
        start[b] = j->run.valid[b] - j->run.Sq;
    }
    return ORT_OK;
}

static void store_real(const attention_job *j, size_t offset, ort_tensor *t)
{
    if (!t || offset == NONE)
        return;
    if (j->a->real == ORT_DTYPE_FLOAT) {
        ort_tensor_from_f32(space(j, offset), t, 0, ort_tensor_count(t));
        return;
    }
    const double *real = space(j, offset);
    for (int64_t i = 0, count = ort_tensor_count(t); i < count; i++)
        ort_tensor_set_f64(t, i, real[i]);
}

static ort_status attention_run(ort_call *call, ort_error *err)
{
    attention_job j = {.call = call, .a = call->state, .p = call->plan_state};
    const attention *a = j.a;
    const attention_plan *p = j.p;
    ort_attention_run *r = &j.run;
    ort_tensor *y = ort_call_out(call, OUT_Y), *scores = ort_call_out(call, OUT_SCORES);
    const ort_tensor *past_k = ort_call_in(call, IN_PAST_K);
    int64_t past = past_k ? past_k->shape.dim[2] : 0; /* the plan may have been made for more */
    if (past > p->past)
        return ort_call_fail(call, err, "past_key has %lld rows, the plan is for %lld",
                             (long long)past, (long long)p->past);
    if (past_k && ort_call_in(call, IN_PAST_V)->shape.dim[2] != past)
        return ort_call_fail(call, err, "past_key has %lld rows, past_value another number",
                             (long long)past);
    *r = (ort_attention_run){.call = call, .B = p->q.batch, .Hq = p->q.heads, .Hk = p->k.heads,
                             .Sq = p->q.rows, .T = past + p->k.rows, .D = p->q.size,
                             .E = p->v.size, .softcap = a->softcap, .causal = a->causal,
                             .left = a->left, .right = a->right, .past = past, .mode = (int)a->mode,
                             .packed = space(&j, p->packed), .packed_each = p->packed_each,
                             .block = p->block};
    r->scale = a->scale > 0 ? a->scale : 1 / sqrt((double)ort_max_i64(p->q.size, 1));
    r->q = heads_of(real_form(&j, ort_call_in(call, IN_Q), p->qr), &p->q);
    r->k = source(&j, IN_K, IN_PAST_K, OUT_K, p->key, p->kr, &p->k);
    r->v = source(&j, IN_V, IN_PAST_V, OUT_V, p->value, p->vr, &p->v);
    head_form out = p->q;
    out.size = p->v.size;
    r->y = heads_of(p->yr == NONE ? y->data : space(&j, p->yr), &out);
    if (scores)
        r->scores = p->scores == NONE ? scores->data : space(&j, p->scores);
    ORT_TRY(bind_mask(&j, err));
    ORT_TRY(check_valid(&j, err));
    if (r->B * r->Hq * r->Sq > 0)
        a->core->run(r);
    store_real(&j, p->yr, y);
    store_real(&j, p->scores, scores);
    return ORT_OK;
}

static const ort_op_impl attention_impl = {
    .state = sizeof(attention), .bind = attention_bind,
    .rule = "- - - - [_,_,_,_] [_,_,_,_]",
    .infer = attention_infer, .prepare = attention_prepare, .shape = attention_shape,
    .run = attention_run, .cost = attention_cost,
};

/* ---- rows */

const ort_op ort_ops_attention[] = {
    {ONNX, "Attention", 23,
     "Q:T1,K:T1,V:T2,attn_mask?:U,past_key?:T1,past_value?:T2 -> Y:T1,present_key?:T1,"
     "present_value?:T2,qk_matmul_output?:T1",
     "T1:F,bf16 T2:F,bf16 U:F,I,U,bf16,bool",
     "is_causal:i=0 kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i=0 scale:f "
     "softcap:f=0 softmax_precision:i", 0, &attention_impl},
    {ONNX, "Attention", 24,
     "Q:T1,K:T1,V:T2,attn_mask?:U,past_key?:T1,past_value?:T2,nonpad_kv_seqlen?:i64 -> Y:T1,"
     "present_key?:T1,present_value?:T2,qk_matmul_output?:T1",
     "T1:F,bf16 T2:F,bf16 U:F,I,U,bf16,bool",
     "is_causal:i=0 kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i=0 scale:f "
     "softcap:f=0 softmax_precision:i", 0, &attention_impl,
     .history = "25:+left_window_size:i=-1 +right_window_size:i=-1"},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
