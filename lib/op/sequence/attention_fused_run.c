/* attention_fused_run.c - the pipeline of the attention operators of com.microsoft.
 *
 * Queries are always gathered into [B, heads, S, D] floats (bias, norm and rotation on the way),
 * keys and values into caches [B, heads, T, size]: the present outputs when these are float,
 * workspace otherwise. A present cache that lies where its past lies (op.h: ort_appends) keeps its
 * rows and gets the new ones. Masks of any form become one float tensor that is added to the
 * scores.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/number.h"
#include "op/sequence/attention_fused.h"
#include "op/sequence/rotary.h"
#include "op/shared/matrix.h"

#define MAX_HEAD 1024 /* elements of one head that rotation and norms can hold */

typedef struct fused_job {
    const ort_call *call;
    const ort_fused *f;
    const ort_fused_plan *p;
    const float *projection;
    int64_t *start, *valid; /* [B] */
    bool first;             /* GroupQueryAttention: the first prompt */
    float *q, *k, *v;
    const ort_tensor *bias, *cos, *sin, *positions, *q_norm, *k_norm;
    ort_attention_run run;
} fused_job;

static void *space(const fused_job *j, size_t offset)
{
    return offset == ORT_FUSED_NONE ? NULL : (char *)j->call->workspace + offset;
}

static const ort_tensor *input(const fused_job *j, int slot)
{
    return slot < 0 ? NULL : ort_call_in(j->call, slot);
}

/* ---- one head vector */

static void load(const fused_job *j, const ort_fused_source *from, int64_t b, int64_t s, int64_t h,
                 int64_t n, float *out)
{
    int64_t at = from->offset + b * from->batch + s * from->row + h * from->head;
    if (from->input < 0)
        memcpy(out, j->projection + at, (size_t)n * sizeof *out);
    else
        ort_tensor_to_f32(ort_call_in(j->call, from->input), at, n, out);
    if (from->bias < 0)
        return;
    for (int64_t i = 0; i < n; i++)
        out[i] += (float)ort_tensor_get_f64(j->bias, from->bias + h * n + i);
}

static void normalize(const fused_job *j, const ort_tensor *weight, float *v)
{
    float scale[MAX_HEAD];
    ort_tensor_to_f32(weight, 0, j->p->D, scale);
    j->call->k->math.rms_norm(v, scale, v, (size_t)j->p->D, j->f->norm_epsilon, NULL);
}

static int64_t position(const fused_job *j, int64_t b, int64_t s)
{
    if (!j->positions)
        return j->start[b] + s;
    if (j->first)
        return ort_tensor_get_i64(j->positions, 0) + s; /* first of some: counted before */
    return ort_tensor_get_i64(j->positions, b * j->p->S + s);
}

/* Attention has no table of angles: element pair i of a token turns by position / 10000^(i/half)
 * (RoFormer, arXiv:2104.09864). All sequences of a batch are at the same position. */
static void make_turns(const fused_job *j)
{
    const ort_fused_plan *p = j->p;
    float *turn = space(j, p->turns);
    for (int64_t s = 0; s < p->S && p->B > 0; s++, turn += 2 * p->half)
        for (int64_t i = 0; i < p->half; i++) {
            double angle = (double)(j->start[0] + s) / pow(10000, (double)i / (double)p->half);
            turn[i] = (float)cos(angle);
            turn[p->half + i] = (float)sin(angle);
        }
}

static void rotate(const fused_job *j, int64_t b, int64_t s, float *v)
{
    float cos[MAX_HEAD], sin[MAX_HEAD], in[MAX_HEAD];
    if (j->f->kind == ORT_FUSED_PACKED) {
        const float *turn = (const float *)space(j, j->p->turns) + 2 * s * j->p->half;
        memcpy(in, v, (size_t)(2 * j->p->half) * sizeof *in);
        ort_rotary_rotate(in, turn, turn + j->p->half, j->p->half, false, v);
        return;
    }
    int64_t half = j->cos->shape.dim[1], row = position(j, b, s) * half;
    ort_tensor_to_f32(j->cos, row, half, cos);
    ort_tensor_to_f32(j->sin, row, half, sin);
    memcpy(in, v, (size_t)(2 * half) * sizeof *in);
    ort_rotary_rotate(in, cos, sin, half, j->f->interleaved, v);
}

static void load_query(const fused_job *j, int64_t b, int64_t s, int64_t h, float *out)
{
    load(j, &j->p->q, b, s, h, j->p->D, out);
    if (j->q_norm)
        normalize(j, j->q_norm, out);
    if (j->f->rotary)
        rotate(j, b, s, out);
}

static void load_key(const fused_job *j, int64_t b, int64_t s, int64_t h, float *out)
{
    load(j, &j->p->k, b, s, h, j->p->D, out);
    if (j->k_norm)
        normalize(j, j->k_norm, out);
    if (j->f->rotary)
        rotate(j, b, s, out);
}

/* ---- heads */

static void query_task(void *arg, size_t task, int thread)
{
    const fused_job *j = arg;
    int64_t b = (int64_t)task / j->f->heads, h = (int64_t)task % j->f->heads;
    float *out = j->q + (int64_t)task * j->p->S * j->p->D;
    for (int64_t s = 0; s < j->p->S; s++)
        load_query(j, b, s, h, out + s * j->p->D);
}

/* Scales of one head of a quantized cache. */
static const float *cache_scale(const fused_job *j, int kind, int64_t head, int64_t n)
{
    const ort_fused *f = j->f;
    if (!f->cache.bits)
        return NULL;
    const float *scale = input(j, kind ? f->slots.v_scale : f->slots.k_scale)->data;
    return scale + (f->cache.per_channel ? head % f->kv_heads * n : 0);
}

/* Where rows of a cache lie, in elements; `kind` 0: keys, 1: values. */
static ort_heads cache_heads(const fused_job *j, const ort_tensor *t, int kind)
{
    int64_t stride[ORT_MAX_RANK];
    bool joint = j->p->joint;
    ort_shape_strides(&t->shape, stride);
    const int64_t *s = t->stride ? t->stride : stride;
    return (ort_heads){(const char *)t->data + (joint ? kind * s[0] : 0) *
                                                   (ort_dtype_bits(t->dtype) / 8),
                       s[joint], s[joint + 1], s[joint + 2]};
}

static const ort_tensor *past_of(const fused_job *j, int kind)
{
    return input(j, kind ? j->p->past_v : j->p->past_k);
}

static ort_tensor *present_of(const fused_job *j, int kind)
{
    int out = kind ? j->p->out_v : j->p->out_k;
    return out >= 0 ? ort_call_out(j->call, out) : NULL;
}

static bool in_place(const fused_job *j, int kind)
{
    const ort_tensor *past = past_of(j, kind), *present = present_of(j, kind);
    return past && present && past->data == present->data;
}

/* The cache of one head as it is built: floats. */
static float *cache_at(const fused_job *j, int kind, int64_t b, int64_t h)
{
    const ort_heads *c = kind ? &j->run.v : &j->run.k;
    return (kind ? j->v : j->k) + b * c->batch + h * c->head;
}

/* Old rows of one head of a cache, where they don't lie there already. */
static void load_past(const fused_job *j, int kind, int64_t b, int64_t h, int64_t rows)
{
    const ort_tensor *past = past_of(j, kind);
    int64_t n = kind ? j->p->E : j->p->D;
    bool built_apart = (kind ? j->p->vr : j->p->kr) != ORT_FUSED_NONE;
    if (!past || rows <= 0 || (in_place(j, kind) && !built_apart))
        return;
    ort_heads from = cache_heads(j, past, kind);
    ort_tensor heads = *past;
    heads.data = (void *)(uintptr_t)from.data;
    ort_cache_load(j->f->cache, &heads,
                   (b * from.batch + h * from.head) / ort_cache_row(j->f->cache, n), rows, n,
                   cache_scale(j, kind, h, n), cache_at(j, kind, b, h));
}

/* Rows beyond the new ones are zero; of a buffer that is past and present they are what they
 * were. */
static void clear_rest(const fused_job *j, int kind, int64_t b, int64_t h, int64_t old)
{
    const ort_fused_plan *p = j->p;
    int64_t n = kind ? p->E : p->D, at = j->start[b];
    float *cache = cache_at(j, kind, b, h);
    for (int64_t r = in_place(j, kind) ? p->past : old; r < p->T; r++)
        if (r < at || r >= at + p->L)
            memset(cache + r * n, 0, (size_t)n * sizeof *cache);
}

static void cache_task(void *arg, size_t task, int thread)
{
    const fused_job *j = arg;
    const ort_fused_plan *p = j->p;
    int64_t b = (int64_t)task / j->f->kv_heads, h = (int64_t)task % j->f->kv_heads;
    float *k = cache_at(j, 0, b, h), *v = cache_at(j, 1, b, h);
    int64_t at = j->start[b], old = p->length >= 0 ? p->past : ort_min_i64(p->past, at);
    for (int kind = 0; kind < 2; kind++) {
        load_past(j, kind, b, h, in_place(j, kind) ? p->past : old);
        clear_rest(j, kind, b, h, old);
    }
    for (int64_t s = 0; s < p->L; s++) {
        load_key(j, b, s, h, k + (at + s) * p->D);
        load(j, &p->v, b, s, h, p->E, v + (at + s) * p->E);
    }
    const float *k_scale = cache_scale(j, 0, h, p->D), *v_scale = cache_scale(j, 1, h, p->E);
    ort_cache_round(j->f->cache, p->L, p->D, k_scale, k + at * p->D); /* as later calls see them */
    ort_cache_round(j->f->cache, p->L, p->E, v_scale, v + at * p->E);
}

/* The rows that cache_indirection names, of the beams of the same sequence, for one head. */
static void gather_task(void *arg, size_t task, int thread)
{
    const fused_job *j = arg;
    const ort_fused_plan *p = j->p;
    const ort_tensor *from = input(j, p->indirection);
    int64_t b = (int64_t)task / j->f->kv_heads, h = (int64_t)task % j->f->kv_heads;
    int64_t most = from->shape.dim[2];
    const int32_t *beam = (const int32_t *)from->data + b * most; /* [batch * beams][most] */
    float *k = (float *)space(j, p->gathered_k) + (int64_t)task * p->T * p->D;
    float *v = (float *)space(j, p->gathered_v) + (int64_t)task * p->T * p->E;
    for (int64_t t = 0; t < j->valid[b]; t++) {
        int64_t row = t < j->start[b] ? b / p->beams * p->beams + beam[t] : b;
        memcpy(k + t * p->D, cache_at(j, 0, row, h) + t * p->D, (size_t)p->D * sizeof *k);
        memcpy(v + t * p->E, cache_at(j, 1, row, h) + t * p->E, (size_t)p->E * sizeof *v);
    }
    for (int64_t t = j->valid[b]; t < p->T; t++) {
        memset(k + t * p->D, 0, (size_t)p->D * sizeof *k);
        memset(v + t * p->E, 0, (size_t)p->E * sizeof *v);
    }
}

static void gather(fused_job *j)
{
    ort_call_parallel(j->call, (size_t)(j->p->B * j->f->kv_heads), gather_task, j);
    const ort_fused_plan *p = j->p;
    int64_t heads = j->f->kv_heads;
    j->run.k = (ort_heads){space(j, p->gathered_k), heads * p->T * p->D, p->T * p->D, p->D};
    j->run.v = (ort_heads){space(j, p->gathered_v), heads * p->T * p->E, p->T * p->E, p->E};
}

/* ---- positions, masks */

/* A buffer that past and present share: past_sequence_length says how much of it is filled. */
static ort_status shared_positions(fused_job *j, ort_error *err)
{
    const ort_fused_plan *p = j->p;
    const ort_tensor *length = input(j, p->length), *from = input(j, p->indirection);
    const ort_tensor *width = input(j, j->f->multi.beam_width);
    int64_t filled = -1, beams = from ? p->beams : 1, given = beams;
    ort_tensor_one_i64(length, &filled);
    if (filled < 0 || filled > p->T - p->L)
        return ort_call_fail(j->call, err, "past_sequence_length %lld doesn't fit %lld new tokens "
                             "and a cache of %lld", (long long)filled, (long long)p->L,
                             (long long)p->T);
    for (int64_t b = 0; b < p->B; b++) {
        j->start[b] = filled;
        j->valid[b] = filled + p->L;
    }
    j->run.valid = j->valid;
    if (width && (!ort_tensor_one_i64(width, &given) || given != beams))
        return ort_call_fail(j->call, err, "beam_width has to be one number, the %lld beams of "
                             "cache_indirection", (long long)beams);
    bool fits = !from || from->shape.dim[2] >= filled;
    for (int64_t b = 0; fits && from && b < p->B; b++)
        for (int64_t t = 0; fits && t < filled; t++) {
            int32_t beam = ((const int32_t *)from->data)[b * from->shape.dim[2] + t];
            fits = beam >= 0 && beam < p->beams;
        }
    return fits ? ORT_OK : ort_call_fail(j->call, err, "cache_indirection names no beam for some "
                                         "of %lld past tokens", (long long)filled);
}

static ort_status group_positions(fused_job *j, ort_error *err)
{
    const ort_fused_plan *p = j->p;
    const ort_group_slots *slots = &j->f->slots;
    const ort_tensor *lengths = ort_call_in(j->call, slots->lengths);
    int64_t total = 0;
    ORT_TRY(ort_call_i64(j->call, slots->total, &total, err));
    j->first = total == p->S;
    for (int64_t b = 0; b < p->B; b++) {
        int64_t length = ort_tensor_get_i64(lengths, b) + slots->length_offset;
        j->start[b] = j->first ? 0 : length - p->S;
        j->valid[b] = j->first ? p->S : length;
        if (length < 1 || length > p->T || j->start[b] < 0 || j->start[b] > p->T - p->S)
            return ort_call_fail(j->call, err,
                                 "the length of sequence %lld, %lld, doesn't fit %lld new tokens "
                                 "and a cache of %lld", (long long)b, (long long)length,
                                 (long long)p->S, (long long)p->T);
    }
    j->run.valid = j->valid;
    return ORT_OK;
}

static ort_status check_rotation(const fused_job *j, ort_error *err)
{
    const ort_fused_plan *p = j->p;
    if ((j->q_norm || j->f->rotary) && p->D > MAX_HEAD)
        return ort_call_fail(j->call, err, "heads of more than %d elements can't be rotated",
                             MAX_HEAD);
    if ((j->q_norm && ort_tensor_count(j->q_norm) != p->D) ||
        (j->k_norm && (p->D > MAX_HEAD || ort_tensor_count(j->k_norm) != p->D)))
        return ort_call_fail(j->call, err, "q_norm_weight and k_norm_weight need one value per "
                             "element of a head");
    if (!j->f->rotary || j->f->kind == ORT_FUSED_PACKED)
        return ORT_OK;
    if (j->cos->shape.rank != 2 || !ort_shape_equal(&j->cos->shape, &j->sin->shape) ||
        2 * j->cos->shape.dim[1] > p->D ||
        (j->positions && ort_tensor_count(j->positions) < 1) ||
        (j->positions && !j->first && ort_tensor_count(j->positions) != p->B * p->S))
        return ort_call_fail(j->call, err, "cos_cache, sin_cache or position_ids don't fit");
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t s = 0; s < p->S; s++) {
            int64_t at = position(j, b, s);
            if (at < 0 || at >= j->cos->shape.dim[0])
                return ort_call_fail(j->call, err,
                                     "position %lld is outside cos_cache of %lld rows",
                                     (long long)at, (long long)j->cos->shape.dim[0]);
        }
    return ORT_OK;
}

/* May query row s of batch b see key t, by the mask input? */
static bool sees(const fused_job *j, const ort_tensor *mask, int64_t b, int64_t s, int64_t t)
{
    const ort_shape *m = &mask->shape;
    if (m->rank == 1) {
        int64_t end = ort_tensor_get_i64(mask, b);
        int64_t begin = m->dim[0] == 2 * j->p->B ? ort_tensor_get_i64(mask, j->p->B + b) : 0;
        return t >= begin && t < end;
    }
    if (m->rank == 2) { /* of the new keys only when it is shorter */
        int64_t at = j->p->length >= 0 ? t : t - (j->p->T - m->dim[1]);
        return at < 0 || at >= m->dim[1] || ort_tensor_get_i64(mask, b * m->dim[1] + at) != 0;
    }
    return t >= m->dim[2] ||
           ort_tensor_get_i64(mask, (b * j->p->S + s) * m->dim[2] + t) != 0;
}

static float added(const fused_job *j, const ort_tensor *add, int64_t b, int64_t h, int64_t s,
                   int64_t t)
{
    const ort_shape *a = &add->shape;
    int64_t row = ((a->dim[0] == 1 ? 0 : b) * a->dim[1] + (a->dim[1] == 1 ? 0 : h)) * a->dim[2] + s;
    return t < a->dim[3] ? (float)ort_tensor_get_f64(add, row * a->dim[3] + t) : 0.0f;
}

/* Allow the key blocks that the layout of head h lists for the block of the query. */
static void sparse_row(const fused_job *j, int64_t b, int64_t h, int64_t s, float *row)
{
    const ort_tensor *rows = ort_call_in(j->call, ORT_SPARSE_ROWS);
    const ort_tensor *columns = ort_call_in(j->call, ORT_SPARSE_COLUMNS);
    int64_t block = j->f->sparse_block, layout = h % rows->shape.dim[0], T = j->p->T;
    const int32_t *r = (const int32_t *)rows->data + layout * rows->shape.dim[1];
    const int32_t *c = (const int32_t *)columns->data + layout * columns->shape.dim[1];
    int64_t at = (j->start[b] + s) / block;
    for (int64_t t = 0; t < T; t++)
        row[t] = -INFINITY;
    for (int32_t i = r[at]; i < r[at + 1]; i++)
        for (int64_t t = c[i] * block; t < ort_min_i64((c[i] + 1) * block, T); t++)
            row[t] = 0.0f;
}

static ort_status check_sparse(const fused_job *j, ort_error *err)
{
    const ort_tensor *rows = ort_call_in(j->call, ORT_SPARSE_ROWS);
    const ort_tensor *columns = ort_call_in(j->call, ORT_SPARSE_COLUMNS);
    int64_t blocks = rows->shape.dim[1] - 1, most = columns->shape.dim[1];
    for (int64_t l = 0; l < rows->shape.dim[0]; l++) {
        const int32_t *r = (const int32_t *)rows->data + l * (blocks + 1);
        const int32_t *c = (const int32_t *)columns->data + l * most;
        bool fits = r[0] == 0 && r[blocks] <= most;
        for (int64_t i = 0; fits && i < blocks; i++)
            fits = r[i] <= r[i + 1];
        for (int64_t i = 0; fits && i < r[blocks]; i++)
            fits = c[i] >= 0 && c[i] < blocks;
        if (!fits)
            return ort_call_fail(j->call, err, "block_row_indices or block_col_indices of layout "
                                 "%lld name no blocks of a %lld x %lld mask", (long long)l,
                                 (long long)blocks, (long long)blocks);
    }
    for (int64_t b = 0; b < j->p->B; b++)
        if ((j->start[b] + j->p->S - 1) / j->f->sparse_block >= blocks)
            return ort_call_fail(j->call, err, "sequence %lld goes beyond the %lld blocks of the "
                                 "mask", (long long)b, (long long)blocks);
    return ORT_OK;
}

static void mask_task(void *arg, size_t task, int thread)
{
    const fused_job *j = arg;
    const ort_fused_plan *p = j->p;
    const ort_tensor *mask = input(j, p->mask), *add = input(j, p->add);
    int64_t s = (int64_t)task % p->mask_rows, head = (int64_t)task / p->mask_rows;
    int64_t h = head % p->mask_heads, b = head / p->mask_heads;
    float *row = (float *)space(j, p->maskr) + (int64_t)task * p->T;
    if (j->f->sparse_block) {
        sparse_row(j, b, h, s, row);
        return;
    }
    for (int64_t t = 0; t < p->T; t++) {
        row[t] = mask && !sees(j, mask, b, s, t) ? j->f->mask_value : 0.0f;
        if (add)
            row[t] += added(j, add, b, h, s, t);
    }
}

static void build_mask(fused_job *j)
{
    const ort_fused_plan *p = j->p;
    ort_attention_run *r = &j->run;
    if (p->maskr == ORT_FUSED_NONE)
        return;
    ort_call_parallel(j->call, (size_t)(p->B * p->mask_heads * p->mask_rows), mask_task, j);
    r->mask = space(j, p->maskr);
    r->mask_keys = p->T;
    r->mask_row = p->mask_rows > 1 ? p->T : 0;
    r->mask_head = p->mask_heads > 1 ? p->mask_rows * p->T : 0;
    r->mask_batch = p->mask_heads * p->mask_rows * p->T;
}

/* ---- the whole */

static void bind_sink(fused_job *j)
{
    bool group = j->f->kind == ORT_FUSED_GROUP;
    const ort_tensor *sink = group ? input(j, j->f->slots.sink) : NULL;
    float *values = space(j, j->p->sink);
    if (!sink && !j->f->smooth)
        return;
    if (sink && ort_tensor_count(sink) == j->f->heads)
        ort_tensor_to_f32(sink, 0, j->f->heads, values);
    else
        memset(values, 0, (size_t)j->f->heads * sizeof *values);
    j->run.sink = values;
}

/* Where a cache is built: in the present output when that is float. */
static ort_heads cache_place(const fused_job *j, int kind)
{
    const ort_fused_plan *p = j->p;
    size_t offset = kind ? p->vr : p->kr;
    int64_t n = kind ? p->E : p->D;
    if (offset == ORT_FUSED_NONE)
        return cache_heads(j, present_of(j, kind), kind);
    return (ort_heads){space(j, offset), j->f->kv_heads * p->T * n, p->T * n, n};
}

static void store_rows(const fused_job *j, int kind, int64_t b, int64_t h, int64_t first,
                       int64_t end)
{
    ort_tensor heads = *present_of(j, kind);
    int64_t n = kind ? j->p->E : j->p->D, width = ort_cache_row(j->f->cache, n);
    if (n == 0)
        return;
    ort_heads to = cache_heads(j, &heads, kind);
    heads.data = (void *)(uintptr_t)to.data;
    if (first < end)
        ort_cache_store(j->f->cache, cache_at(j, kind, b, h) + first * n, &heads,
                        (b * to.batch + h * to.head) / width + first, end - first, n,
                        cache_scale(j, kind, h, n));
}

/* A cache that was built apart goes to the present output; of one in place, the new rows do. */
static void store_cache(const fused_job *j, int kind)
{
    const ort_fused_plan *p = j->p;
    if (!present_of(j, kind) || (kind ? p->vr : p->kr) == ORT_FUSED_NONE)
        return;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < j->f->kv_heads; h++) {
            bool kept = in_place(j, kind);
            store_rows(j, kind, b, h, kept ? p->past : 0, p->T);
            if (kept)
                store_rows(j, kind, b, h, j->start[b], ort_min_i64(j->start[b] + p->L, p->past));
        }
}

static void bind_run(fused_job *j)
{
    const ort_fused *f = j->f;
    const ort_fused_plan *p = j->p;
    ort_tensor *y = ort_call_out(j->call, 0);
    int64_t width = f->heads * p->E;
    ort_attention_run *r = &j->run;
    *r = (ort_attention_run){
        .call = j->call, .B = p->B, .Hq = f->heads, .Hk = f->kv_heads, .Sq = p->S, .T = p->T,
        .D = p->D, .E = p->E, .softcap = f->softcap, .causal = f->causal, .right = -1,
        .left = f->window > 0 ? f->window - 1 : -1, .past = p->past, .start = j->start,
        .packed = space(j, p->packed), .packed_each = p->packed_each, .block = p->block,
        .q = {j->q, f->heads * p->S * p->D, p->S * p->D, p->D},
        .k = cache_place(j, 0),
        .v = cache_place(j, 1),
        .y = {p->yr == ORT_FUSED_NONE ? y->data : space(j, p->yr), p->S * width, p->E, width}};
    j->k = (float *)(uintptr_t)r->k.data;
    j->v = (float *)(uintptr_t)r->v.data;
    ort_tensor *qk = p->qk >= 0 ? ort_call_out(j->call, p->qk) : NULL;
    if (qk) {
        r->mode = f->qk_mode;
        r->scores = p->qkr == ORT_FUSED_NONE ? qk->data : space(j, p->qkr);
    }
    r->scale = f->scale != 0 ? f->scale : 1 / sqrt((double)ort_max_i64(p->D, 1));
}

/* The scores as an output; keys that may not be seen have 0 instead of -infinity, or the lowest
 * float with MultiHeadAttention. */
static void store_scores(const fused_job *j)
{
    float *scores = j->run.scores;
    int64_t count = j->p->B * j->f->heads * j->p->S * j->p->T;
    float unseen = j->f->kind == ORT_FUSED_MULTI ? -FLT_MAX : 0.0f;
    for (int64_t i = 0; scores && i < count; i++)
        if (scores[i] == -INFINITY)
            scores[i] = unseen;
    if (j->p->qkr != ORT_FUSED_NONE)
        ort_tensor_from_f32(scores, ort_call_out(j->call, j->p->qk), 0, count);
}

/* The plan may have been made for more rows than there are. */
static ort_status take_rows(const fused_job *j, ort_fused_plan *now, ort_error *err)
{
    int axis = now->joint ? 3 : 2;
    const ort_tensor *k = past_of(j, 0), *v = past_of(j, 1);
    if (j->f->kind == ORT_FUSED_GROUP || now->length >= 0 || !k)
        return ORT_OK;
    if (k->shape.dim[axis] > now->past)
        return ort_call_fail(j->call, err, "past key has %lld rows, the plan is for %lld",
                             (long long)k->shape.dim[axis], (long long)now->past);
    now->past = k->shape.dim[axis];
    now->T = now->past + now->L;
    if (v->shape.dim[axis] != now->past)
        return ort_call_fail(j->call, err, "past key and past value have different numbers of "
                             "rows");
    return ORT_OK;
}

ort_status ort_fused_run(ort_call *call, ort_error *err)
{
    ort_fused_plan now = *(const ort_fused_plan *)call->plan_state;
    fused_job j = {.call = call, .f = call->state, .p = &now};
    const ort_fused *f = j.f;
    const ort_fused_plan *p = j.p;
    bool group = f->kind == ORT_FUSED_GROUP;
    ORT_TRY(take_rows(&j, &now, err));
    j.start = space(&j, p->counts);
    j.valid = j.start + p->B;
    j.bias = input(&j, p->bias);
    const ort_group_slots *slots = &f->slots;
    j.cos = group ? input(&j, slots->cos) : NULL;
    j.sin = group ? input(&j, slots->sin) : NULL;
    j.positions = group ? input(&j, slots->positions) : NULL;
    j.q_norm = group ? input(&j, slots->q_norm) : NULL;
    j.k_norm = group ? input(&j, slots->k_norm) : NULL;
    j.q = space(&j, p->qr);
    bind_run(&j);
    for (int64_t b = 0; b < p->B; b++)
        j.start[b] = p->past;
    if (group)
        ORT_TRY(group_positions(&j, err));
    if (p->length >= 0)
        ORT_TRY(shared_positions(&j, err));
    ORT_TRY(check_rotation(&j, err));
    if (f->sparse_block)
        ORT_TRY(check_sparse(&j, err));
    if (f->kind == ORT_FUSED_PACKED)
        ort_fused_project(call, (float *)(uintptr_t)(j.projection = space(&j, p->project)));
    make_turns(&j);
    ort_call_parallel(call, (size_t)(p->B * f->heads), query_task, &j);
    ort_call_parallel(call, (size_t)(p->B * f->kv_heads), cache_task, &j);
    if (p->indirection >= 0)
        gather(&j);
    build_mask(&j);
    bind_sink(&j);
    if (p->B * p->S > 0)
        ort_attention_core_f32.run(&j.run);
    store_cache(&j, 0);
    store_cache(&j, 1);
    store_scores(&j);
    if (p->yr != ORT_FUSED_NONE)
        ort_tensor_from_f32(space(&j, p->yr), ort_call_out(call, 0), 0,
                            p->B * p->S * f->heads * p->E);
    return ORT_OK;
}
