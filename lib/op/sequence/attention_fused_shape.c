/* attention_fused_shape.c - the forms in which queries, keys, values, caches and masks may come to
 * the attention operators of com.microsoft, and the workspace they need.
 */
#include <string.h>

#include "base/checked.h"
#include "op/sequence/attention_fused.h"
#include "op/shared/matrix.h"
#include "tensor/scalar.h"

static const ort_tensor *given(const ort_shaping *s, int index)
{
    return index >= 0 && index < s->in_count ? s->in[index] : NULL;
}

static const ort_tensor *wanted(const ort_shaping *s, int index)
{
    return index >= 0 && index < s->out_count ? s->out[index] : NULL;
}

static ort_status misfit(ort_error *err, const char *what)
{
    return ort_error_set(err, ORT_ERROR_RUN, "the shape of its %s doesn't fit the others", what);
}

/* [B, rows, heads * size], heads side by side. */
static ort_fused_source flat(int input, int64_t rows, int64_t width, int64_t size, int64_t bias)
{
    return (ort_fused_source){input, 0, rows * width, width, size, bias};
}

static bool fits_columns(const ort_tensor *t, int64_t columns)
{
    return !t || ort_tensor_count(t) == 1 || ort_tensor_count(t) == columns;
}

static ort_status packed_sources(const ort_shaping *s, const ort_fused *f, ort_fused_plan *p,
                                 ort_error *err)
{
    const ort_shape *x = &given(s, 0)->shape, *w = &given(s, 1)->shape;
    const ort_tensor *bias = given(s, 2);
    if (x->rank != 3 || w->rank != 2 || x->dim[2] != w->dim[0])
        return misfit(err, "input and weights");
    int64_t third = w->dim[1] / 3;
    int64_t hidden[3] = {f->hidden[0] ? f->hidden[0] : third, f->hidden[1] ? f->hidden[1] : third,
                         f->hidden[2] ? f->hidden[2] : third};
    if (hidden[0] != hidden[1] || hidden[0] < 1 || hidden[2] < 1 ||
        hidden[0] + hidden[1] + hidden[2] != w->dim[1] || hidden[0] % f->heads ||
        hidden[2] % f->heads || (bias && ort_tensor_count(bias) != w->dim[1]))
        return misfit(err, "weights, bias or qkv_hidden_sizes");
    p->B = x->dim[0];
    p->S = p->L = x->dim[1];
    p->D = hidden[0] / f->heads;
    p->E = hidden[2] / f->heads;
    p->q = flat(-1, p->S, w->dim[1], p->D, -1);
    p->k = p->q;
    p->k.offset = hidden[0];
    p->v = flat(-1, p->S, w->dim[1], p->E, -1);
    p->v.offset = hidden[0] + hidden[1];
    int past = f->quantized ? ORT_QATTENTION_PAST : 4;
    int mask = f->quantized ? ORT_QATTENTION_MASK : 3;
    p->past_k = p->past_v = given(s, past) ? past : -1;
    p->out_k = p->out_v = wanted(s, 1) ? 1 : -1;
    p->mask = given(s, mask) ? mask : -1;
    p->add = !f->quantized && given(s, 5) ? 5 : -1;
    p->length = f->shared && given(s, past) ? ORT_ATTENTION_LENGTH : -1;
    p->half = !f->rotary ? 0 : (f->rotary_dim ? f->rotary_dim : p->D) / 2;
    if (f->rotary && (f->rotary_dim < 0 || f->rotary_dim % 2 || p->D % 2 || 2 * p->half > p->D))
        return misfit(err, "heads (or rotary_embedding_dim)");
    if (f->quantized) {
        const ort_tensor *scale = given(s, ORT_QATTENTION_W_SCALE);
        const ort_tensor *zero = given(s, ORT_QATTENTION_W_ZERO);
        const ort_tensor *x_scale = given(s, ORT_QATTENTION_X_SCALE);
        const ort_tensor *x_zero = given(s, ORT_QATTENTION_X_ZERO);
        if (!fits_columns(scale, w->dim[1]) || !fits_columns(zero, w->dim[1]) ||
            ort_tensor_count(x_scale) != 1 || (x_zero && ort_tensor_count(x_zero) != 1))
            return misfit(err, "scales or zero points");
    }
    p->joint = true;
    return ORT_OK;
}

/* Keys or values that were cut into heads already: [B, heads, rows, size]. */
static ort_fused_source cut(int input, int64_t heads, int64_t rows, int64_t size)
{
    return (ort_fused_source){input, 0, heads * rows * size, size, rows * size, -1};
}

/* `parts` vectors of each head side by side: [B, rows, heads, parts, size]. */
static ort_fused_source part(int input, int64_t rows, int64_t heads, int64_t parts, int64_t which,
                             int64_t size, int64_t bias)
{
    int64_t row = heads * parts * size;
    return (ort_fused_source){input, which * size, rows * row, row, parts * size, bias};
}

static ort_status multi_sources(const ort_shaping *s, const ort_fused *f, ort_fused_plan *p,
                                ort_error *err)
{
    const ort_multi_slots *m = &f->multi;
    const ort_tensor *k = given(s, 1), *v = given(s, 2), *bias = given(s, m->bias);
    const ort_shape *q = &given(s, 0)->shape;
    int64_t N = f->heads;
    p->B = q->rank > 1 ? q->dim[0] : 0;
    p->S = q->rank > 1 ? q->dim[1] : 0;
    if (q->rank == 5 && q->dim[2] == N && q->dim[3] == 3) {
        p->D = p->E = q->dim[4];
        p->L = p->S;
        p->q = part(0, p->S, N, 3, 0, p->D, 0);
        p->k = part(0, p->S, N, 3, 1, p->D, N * p->D);
        p->v = part(0, p->S, N, 3, 2, p->D, 2 * N * p->D);
    } else if (q->rank == 3 && q->dim[2] % (3 * N) == 0 && !k && f->one_step) {
        p->D = p->E = q->dim[2] / (3 * N);
        p->L = p->S;
        p->q = flat(0, p->S, q->dim[2], p->D, 0);
        p->k = p->v = p->q;
        p->k.offset = p->k.bias = N * p->D;
        p->v.offset = p->v.bias = 2 * N * p->D;
    } else if (q->rank == 3 && q->dim[2] % N == 0 && k) {
        p->D = q->dim[2] / N;
        p->q = flat(0, p->S, q->dim[2], p->D, 0);
        if (k->shape.rank == 5 && k->shape.dim[3] == 2 && k->shape.dim[2] == N) {
            p->E = k->shape.dim[4];
            p->L = k->shape.dim[1];
            p->k = part(1, p->L, N, 2, 0, p->E, N * p->D);
            p->v = part(1, p->L, N, 2, 1, p->E, 2 * N * p->D);
        } else if (k->shape.rank == 4 && v && v->shape.rank == 4) {
            p->L = k->shape.dim[2];
            p->E = v->shape.dim[3];
            p->k = cut(1, N, p->L, p->D);
            p->v = cut(2, N, p->L, p->E);
        } else if (k->shape.rank == 3 && v && v->shape.rank == 3 && v->shape.dim[2] % N == 0) {
            p->L = k->shape.dim[1];
            p->E = v->shape.dim[2] / N;
            p->k = flat(1, p->L, k->shape.dim[2], p->D, N * p->D);
            p->v = flat(2, p->L, v->shape.dim[2], p->E, 2 * N * p->D);
        } else {
            return misfit(err, "key and value");
        }
        if (k->shape.dim[0] != p->B || (p->v.input == 2 && v->shape.dim[0] != p->B) ||
            (k->shape.rank == 3 && (k->shape.dim[2] != N * p->D || v->shape.dim[1] != p->L)) ||
            (k->shape.rank == 4 && (k->shape.dim[1] != N || v->shape.dim[1] != N)) ||
            ort_tensor_count(k) != p->B * p->L * N * p->D * (k->shape.rank == 5 ? 2 : 1) ||
            (p->v.input == 2 && ort_tensor_count(v) != p->B * p->L * N * p->E))
            return misfit(err, "key and value");
    } else {
        return misfit(err, "query");
    }
    if (!bias)
        p->q.bias = p->k.bias = p->v.bias = -1;
    else if (ort_tensor_count(bias) != N * (2 * p->D + p->E))
        return misfit(err, "bias");
    if (f->one_step && p->S != 1)
        return misfit(err, "query, which needs one token,");
    p->bias = bias ? m->bias : -1;
    p->mask = given(s, m->mask) ? m->mask : -1;
    p->add = given(s, m->add) ? m->add : -1;
    p->past_k = given(s, m->past_k) ? m->past_k : -1;
    p->past_v = given(s, m->past_v) ? m->past_v : -1;
    p->length = p->past_k >= 0 && given(s, m->length) ? m->length : -1;
    p->indirection = p->length >= 0 && given(s, m->indirection) ? m->indirection : -1;
    p->out_k = wanted(s, 1) ? 1 : -1;
    p->out_v = wanted(s, 2) ? 2 : -1;
    return ORT_OK;
}

static ort_status group_sources(const ort_shaping *s, const ort_fused *f, ort_fused_plan *p,
                                ort_error *err)
{
    const ort_tensor *k = given(s, 1), *v = given(s, 2);
    const ort_shape *q = &given(s, 0)->shape;
    int64_t parts = k ? f->heads : f->heads + 2 * f->kv_heads;
    if (q->rank != 3 || q->dim[2] % parts != 0 || (k != NULL) != (v != NULL))
        return misfit(err, "query");
    p->B = q->dim[0];
    p->S = p->L = q->dim[1];
    p->D = p->E = q->dim[2] / parts;
    p->q = flat(0, p->S, q->dim[2], p->D, -1);
    if (k) {
        int64_t width = f->kv_heads * p->D;
        if (k->shape.rank != 3 || v->shape.rank != 3 || k->shape.dim[2] != width ||
            v->shape.dim[2] != width || k->shape.dim[1] != p->S || v->shape.dim[1] != p->S ||
            k->shape.dim[0] != p->B || v->shape.dim[0] != p->B)
            return misfit(err, "key and value");
        p->k = flat(1, p->S, width, p->D, -1);
        p->v = flat(2, p->S, width, p->D, -1);
    } else {
        p->k = p->v = p->q;
        p->k.offset = f->heads * p->D;
        p->v.offset = (f->heads + f->kv_heads) * p->D;
    }
    const ort_tensor *lengths = given(s, f->slots.lengths), *total = given(s, f->slots.total);
    if (!lengths || ort_tensor_count(lengths) != p->B || !total || ort_tensor_count(total) != 1)
        return misfit(err, "lengths of the sequences or total_sequence_length");
    p->past_k = given(s, 3) ? 3 : -1;
    p->past_v = given(s, 4) ? 4 : -1;
    p->out_k = wanted(s, 1) ? 1 : -1;
    p->out_v = wanted(s, 2) ? 2 : -1;
    p->add = given(s, f->slots.add) ? f->slots.add : -1;
    return ORT_OK;
}

static ort_status check_scales(const ort_shaping *s, const ort_fused *f, const ort_fused_plan *p,
                               ort_error *err)
{
    const ort_tensor *k = given(s, f->slots.k_scale), *v = given(s, f->slots.v_scale);
    int64_t k_count = f->cache.per_channel ? f->kv_heads * p->D : 1;
    int64_t v_count = f->cache.per_channel ? f->kv_heads * p->E : 1;
    if (f->cache.bits && (ort_tensor_count(k) != k_count || ort_tensor_count(v) != v_count))
        return misfit(err, "k_scale or v_scale");
    return ORT_OK;
}

/* Rows of the caches; both must have the form of the heads. */
static ort_status cache_rows(const ort_shaping *s, const ort_fused *f, ort_fused_plan *p,
                             ort_error *err)
{
    const ort_tensor *past_k = given(s, p->past_k), *past_v = given(s, p->past_v);
    int axis = p->joint ? 3 : 2;
    p->past = past_k && past_k->shape.rank > axis ? past_k->shape.dim[axis] : 0;
    int64_t heads = p->B * f->kv_heads * p->past;
    if ((past_k != NULL) != (past_v != NULL) ||
        (past_k && !p->joint &&
         (ort_tensor_count(past_k) != heads * ort_cache_row(f->cache, p->D) ||
          ort_tensor_count(past_v) != heads * ort_cache_row(f->cache, p->E))) ||
        (p->joint && p->out_k >= 0 && p->D != p->E) ||
        (past_k && p->joint && (p->D != p->E || ort_tensor_count(past_k) != 2 * heads * p->D)))
        return misfit(err, "past state");
    p->T = p->length >= 0 ? p->past : p->past + p->L;
    if (p->indirection >= 0) {
        const ort_shape *from = &given(s, p->indirection)->shape;
        p->beams = from->rank == 3 ? from->dim[1] : 0;
        if (p->beams < 1 || from->dim[0] * p->beams != p->B)
            return misfit(err, "cache_indirection");
    }
    if (f->kind != ORT_FUSED_GROUP)
        return ORT_OK;
    int64_t total;
    if (p->out_k >= 0)
        p->T = s->out[p->out_k]->shape.dim[2];
    else if (ort_tensor_one_i64(given(s, f->slots.total), &total))
        p->T = ort_max_i64(p->past, total);
    ORT_TRY(check_scales(s, f, p, err));
    return p->T >= p->S ? ORT_OK : misfit(err, "total_sequence_length");
}

/* A mask of key positions has one form of many; `rows` is S when it differs by query. */
static ort_status mask_form(const ort_shaping *s, const ort_fused *f, ort_fused_plan *p,
                            ort_error *err)
{
    const ort_tensor *mask = given(s, p->mask), *add = given(s, p->add);
    p->mask_heads = p->mask_rows = 1;
    if (f->sparse_block) {
        const ort_shape *rows = &given(s, ORT_SPARSE_ROWS)->shape;
        const ort_shape *columns = &given(s, ORT_SPARSE_COLUMNS)->shape;
        if (rows->rank != 2 || columns->rank != 2 || rows->dim[0] != columns->dim[0] ||
            rows->dim[0] < 1 || rows->dim[1] < 2)
            return misfit(err, "block_row_indices or block_col_indices");
        p->mask_heads = f->heads;
        p->mask_rows = p->S;
    }
    if (add) {
        const ort_shape *a = &add->shape;
        if (a->rank != 4 || (a->dim[0] != 1 && a->dim[0] != p->B) ||
            (a->dim[1] != 1 && a->dim[1] != f->heads) || a->dim[2] != p->S || a->dim[3] > p->T)
            return misfit(err, "attention_bias");
        p->mask_heads = a->dim[1];
        p->mask_rows = p->S;
    }
    if (!mask)
        return ORT_OK;
    const ort_shape *m = &mask->shape;
    bool shared = p->length >= 0; /* masks then end with the filled rows */
    if (m->rank == 1 && (m->dim[0] == p->B || m->dim[0] == 2 * p->B))
        return ORT_OK;
    if (m->rank == 2 && m->dim[0] == p->B && (m->dim[1] == p->T || m->dim[1] == p->L))
        return ORT_OK;
    if (f->kind == ORT_FUSED_PACKED && m->rank == 2 && m->dim[1] == 1 &&
        (m->dim[0] == p->B || m->dim[0] == 1)) { /* one value for all keys masks nothing */
        p->mask = -1;
        return ORT_OK;
    }
    if (m->rank == 2 && m->dim[0] == p->B && m->dim[1] <= p->T && shared)
        return ORT_OK;
    if (m->rank == 3 && m->dim[0] == p->B && m->dim[1] == p->S &&
        (m->dim[2] == p->T || (shared && m->dim[2] < p->T))) {
        p->mask_rows = p->S;
        return ORT_OK;
    }
    return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "a mask of this shape isn't implemented; give "
                         "[batch, keys] or [batch, queries, keys]");
}

static bool reserve(size_t *total, size_t count, size_t size, size_t *offset)
{
    size_t bytes;
    if (!ort_mul_size(count, size, &bytes) || bytes > SIZE_MAX / 4)
        return false;
    *offset = *total;
    return ort_add_size(*total, ort_round_up(bytes, 64), total);
}

static bool reserve_all(ort_shaping *s, const ort_fused *f, ort_fused_plan *p, size_t *total)
{
    size_t each = sizeof(float), bytes;
    size_t queries = (size_t)(p->B * f->heads * p->S), keys = (size_t)(p->B * f->kv_heads * p->T);
    bool fits = reserve(total, queries * (size_t)p->D, each, &p->qr) &&
                reserve(total, (size_t)p->B * 2, sizeof(int64_t), &p->counts) &&
                reserve(total, (size_t)f->heads, each, &p->sink) &&
                reserve(total, (size_t)(2 * p->S * p->half), each, &p->turns);
    p->qkr = p->project = p->project_rows = p->kr = p->vr = p->yr = p->maskr = ORT_FUSED_NONE;
    if (fits && f->kind == ORT_FUSED_PACKED) {
        const ort_shape *w = &s->in[1]->shape;
        size_t rows = (size_t)(p->B * p->S);
        fits = reserve(total, rows * (size_t)w->dim[1], each, &p->project) &&
               ort_fused_project_space(s->k, w, f, p, &bytes, &s->thread_bytes) &&
               reserve(total, bytes, 1, &p->project_rows);
    }
    bool stored = p->convert || f->cache.bits; /* the caches aren't float */
    if (fits && (stored || p->out_k < 0))
        fits = reserve(total, keys * (size_t)p->D, each, &p->kr);
    if (fits && (stored || p->out_v < 0))
        fits = reserve(total, keys * (size_t)p->E, each, &p->vr);
    if (fits && p->indirection >= 0)
        fits = reserve(total, keys * (size_t)p->D, each, &p->gathered_k) &&
               reserve(total, keys * (size_t)p->E, each, &p->gathered_v);
    if (fits && p->convert)
        fits = reserve(total, queries * (size_t)p->E, each, &p->yr);
    if (fits && (p->mask >= 0 || p->add >= 0 || f->sparse_block))
        fits = reserve(total, (size_t)(p->B * p->mask_heads * p->mask_rows * p->T), each,
                       &p->maskr);
    if (fits && p->qk >= 0 && p->convert)
        fits = reserve(total, queries * (size_t)p->T, each, &p->qkr);
    p->packed_each = ort_attention_core_f32.packed_bytes(s->k, p->S, p->T, p->D);
    return fits && reserve(total, (size_t)(p->B * f->kv_heads), p->packed_each, &p->packed);
}

ort_status ort_fused_shape(ort_shaping *s, ort_error *err)
{
    const ort_fused *f = s->state;
    ort_fused_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    size_t total = 0;
    if (!p)
        return ort_error_memory(err, sizeof *p);
    p->past_k = p->past_v = p->out_k = p->out_v = p->mask = p->bias = p->add = -1;
    p->length = p->indirection = -1;
    p->convert = f->dtype != ORT_DTYPE_FLOAT;
    if (f->kind == ORT_FUSED_PACKED)
        ORT_TRY(packed_sources(s, f, p, err));
    else if (f->kind == ORT_FUSED_MULTI)
        ORT_TRY(multi_sources(s, f, p, err));
    else
        ORT_TRY(group_sources(s, f, p, err));
    ORT_TRY(cache_rows(s, f, p, err));
    ORT_TRY(mask_form(s, f, p, err));
    p->qk = wanted(s, f->qk_output) ? f->qk_output : -1;
    if (p->qk >= 0 && ort_tensor_count(s->out[p->qk]) != p->B * f->heads * p->S * p->T)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "the scores as an output need a cache of "
                             "exactly the keys at hand");
    p->block = ort_attention_block(s->k, p->S, p->T, f->causal);
    if (!reserve_all(s, f, p, &total))
        return ort_error_set(err, ORT_ERROR_MEMORY, "attention over %lld keys is too large",
                             (long long)p->T);
    s->plan_state = p;
    s->workspace_bytes = total;
    size_t own = (size_t)(p->block * (p->T + p->D)) * sizeof(float);
    s->thread_bytes = own > s->thread_bytes ? own : s->thread_bytes;
    return ORT_OK;
}
