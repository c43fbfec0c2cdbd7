/* rotary.c - RotaryEmbedding of ONNX and of com.microsoft, MRotaryEmbedding.
 *
 * Both rotate pairs of elements of every head by angles that belong to the token's position; they
 * differ in the order of their inputs and in how positions are given. A token of MRotaryEmbedding
 * has three positions (time, height, width), and each angle follows one of them. Pairs are
 * neighbours when interleaved, else element i and i + half. What lies beyond the rotary size is
 * copied.
 */
#include <string.h>

#include "base/checked.h"
#include "op/op.h"
#include "op/sequence/rotary.h"

#define PIECE 512 /* half of the largest rotary size */

typedef struct rotary {
    bool microsoft, interleaved, woven; /* woven: mrope_layout 1, sections alternate */
    ort_ints section;
    int64_t heads, size; /* 0: not given; all of the head */
    int cos, sin, positions;
    int8_t stream[PIECE]; /* MRotaryEmbedding: which of three positions each angle follows */
    int64_t streams;      /* how many angles have one; 0: a token has one position */
    float scale;
} rotary;

enum { OF_ONNX, OF_MICROSOFT };

#define ROTARY_BINDINGS                                                                            \
    ORT_BIND(rotary, interleaved), ORT_BIND_AS(rotary, heads, "num_heads", ORT_MAYBE),             \
        ORT_BIND_AS(rotary, size, "rotary_embedding_dim")
static const ort_bind rotary_bind[] = {ROTARY_BINDINGS, {0}};
static const ort_bind multi_bind[] = {
    ROTARY_BINDINGS, ORT_BIND_AS(rotary, section, "mrope_section"),
    ORT_BIND_AS(rotary, woven, "mrope_layout", ORT_WITHIN(0, 1)), ORT_BIND(rotary, scale), {0}};

static ort_status rotary_prepare(ort_prep *p, ort_error *err)
{
    rotary *r = p->state;
    r->microsoft = p->op->variant == OF_MICROSOFT;
    r->positions = r->microsoft ? 1 : 3;
    r->cos = r->microsoft ? 2 : 1;
    r->sin = r->cos + 1;
    if (!r->section.ptr)
        r->scale = 1.0f;
    return ORT_OK;
}

/* The angles of a token with positions in time, height and width: in three runs, or (layout 1) in
 * turns as long as there are angles of height and width left, and time for the rest. */
static ort_status multi_prepare(ort_prep *p, ort_error *err)
{
    ORT_TRY(rotary_prepare(p, err));
    rotary *r = p->state;
    const int64_t *section = r->section.ptr;
    if (r->section.count != 3)
        return ort_prep_fail(p, err, "mrope_section needs 3 numbers");
    for (int i = 0; i < 3; i++) {
        if (section[i] < 0 || section[i] > PIECE - r->streams)
            return ort_prep_fail(p, err, "mrope_section[%d] is %lld: together they are at most %d",
                                 i, (long long)section[i], PIECE);
        for (int64_t k = 0; k < section[i]; k++)
            r->stream[r->streams++] = r->woven ? 0 : (int8_t)i;
    }
    for (int8_t i = 1; r->woven && i < 3; i++)
        for (int64_t k = i; k < ort_min_i64(3 * section[i], r->streams); k += 3)
            r->stream[k] = i;
    return ORT_OK;
}

typedef struct rotary_walk {
    const rotary *r;
    const ort_tensor *x, *cos, *sin, *positions;
    ort_tensor *y;
    int64_t batch, heads, steps, size, half; /* size: of a head */
    bool heads_first;
    bool offset; /* com.microsoft: one position for the first token */
    bool direct; /* caches are [batch, steps, half] */
} rotary_walk;

static ort_status walk_init(ort_call *call, rotary_walk *w, ort_error *err)
{
    const rotary *r = call->state;
    const ort_shape *s = &ort_call_in(call, 0)->shape;
    *w = (rotary_walk){.r = r, .x = ort_call_in(call, 0), .cos = ort_call_in(call, r->cos),
                       .sin = ort_call_in(call, r->sin),
                       .positions = ort_call_in(call, r->positions), .y = ort_call_out(call, 0)};
    const ort_shape *c = &w->cos->shape;
    int64_t width = c->rank > 0 ? c->dim[c->rank - 1] : 0;
    w->batch = s->rank > 0 ? s->dim[0] : 0;
    w->heads_first = s->rank == 4;
    if (s->rank == 4) {
        w->heads = s->dim[1];
        w->steps = s->dim[2];
        w->size = s->dim[3];
    } else if (s->rank == 3) {
        w->steps = s->dim[1];
        w->heads = r->heads;
        if (w->heads == 0 && r->microsoft && r->size == 0 && width > 0)
            w->heads = s->dim[2] / (width * 2);
        w->size = w->heads > 0 ? s->dim[2] / w->heads : 0;
    }
    int64_t rotated = r->size > 0 ? r->size : w->size;
    w->half = rotated / 2;
    w->direct = !w->positions;
    w->offset = w->positions && !r->streams && ort_tensor_count(w->positions) == 1 &&
                w->positions->shape.rank < 2 && r->microsoft;
    bool fits = w->size > 0 && rotated <= w->size && rotated % 2 == 0 && w->half <= PIECE &&
                width == w->half && ort_shape_equal(c, &w->sin->shape) &&
                (s->rank != 3 || w->heads * w->size == s->dim[2]);
    if (fits && w->direct)
        fits = c->rank == 3 && c->dim[0] == w->batch && c->dim[1] == w->steps;
    else if (fits)
        fits = c->rank == 2 && (w->offset ||
                                ort_tensor_count(w->positions) ==
                                    w->batch * w->steps * (r->streams ? 3 : 1));
    if (r->streams && r->streams != w->half)
        return ort_call_fail(call, err, "mrope_section adds up to %lld, a head has %lld angles",
                             (long long)r->streams, (long long)w->half);
    if (!fits)
        return ort_call_fail(call, err, "the input, the cos and sin caches, the positions and the "
                             "number of heads don't fit together");
    return ORT_OK;
}

/* Row of the caches for one token and stream of positions; -1 when its position is outside. */
static int64_t cache_row(const rotary_walk *w, int64_t stream, int64_t b, int64_t t)
{
    if (w->direct)
        return b * w->steps + t;
    int64_t index = (stream * w->batch + b) * w->steps + t;
    int64_t at = w->offset ? ort_tensor_get_i64(w->positions, 0) + t /* first of one: walk_init */
                           : ort_tensor_get_i64(w->positions, index);
    return at >= 0 && at < w->cos->shape.dim[0] ? at : -1;
}

typedef float four __attribute__((vector_size(16)));

static inline four four_at(const float *p)
{
    four v;
    memcpy(&v, p, sizeof v);
    return v;
}

void ort_rotary_rotate(const float *in, const float *cos, const float *sin, int64_t half,
                       bool interleaved, float *out)
{
    int64_t step = interleaved ? 2 : 1, gap = interleaved ? 1 : half, i = 0;
    for (; !interleaved && half - i >= 4; i += 4) { /* the compiler makes one at a time of it */
        const four a = four_at(in + i), b = four_at(in + half + i);
        const four c = four_at(cos + i), s = four_at(sin + i);
        const four low = a * c - b * s, high = b * c + a * s;
        memcpy(out + i, &low, sizeof low);
        memcpy(out + half + i, &high, sizeof high);
    }
    for (; i < half; i++) {
        float a = in[i * step], b = in[i * step + gap];
        out[i * step] = a * cos[i] - b * sin[i];
        out[i * step + gap] = b * cos[i] + a * sin[i];
    }
}

static void rotate(const rotary_walk *w, const float *cos, const float *sin, int64_t first)
{
    const int64_t half = w->half;
    const size_t each = (size_t)ort_dtype_bits(w->x->dtype) / 8;
    if (w->x->dtype == ORT_DTYPE_FLOAT) {
        ort_rotary_rotate((const float *)w->x->data + first, cos, sin, half, w->r->interleaved,
                          (float *)w->y->data + first);
    } else {
        float in[2 * PIECE], out[2 * PIECE];
        ort_tensor_to_f32(w->x, first, 2 * half, in);
        ort_rotary_rotate(in, cos, sin, half, w->r->interleaved, out);
        ort_tensor_from_f32(out, w->y, first, 2 * half);
    }
    if (w->size > 2 * half && w->y->data != w->x->data)
        memcpy((char *)w->y->data + (size_t)(first + 2 * half) * each,
               (const char *)w->x->data + (size_t)(first + 2 * half) * each,
               (size_t)(w->size - 2 * half) * each);
}

/* Cosines or sines of the angles of one token. */
static void load_angles(const rotary_walk *w, const ort_tensor *cache, int64_t b, int64_t t,
                        float *out)
{
    const rotary *r = w->r;
    int64_t half = w->half;
    if (!r->streams) {
        ort_tensor_to_f32(cache, cache_row(w, 0, b, t) * half, half, out);
        return;
    }
    for (int64_t i = 0; i < half; i++) {
        ort_tensor_to_f32(cache, cache_row(w, r->stream[i], b, t) * half + i, 1, out + i);
        out[i] *= r->scale;
    }
}

/* The same where they lie, if they are floats and one row. */
static const float *angles_of(const rotary_walk *w, const ort_tensor *cache, int64_t b, int64_t t,
                              float *space)
{
    if (!w->r->streams && cache->dtype == ORT_DTYPE_FLOAT)
        return (const float *)cache->data + cache_row(w, 0, b, t) * w->half;
    load_angles(w, cache, b, t, space);
    return space;
}

static void token_task(void *arg, size_t task, int thread)
{
    const rotary_walk *w = arg;
    int64_t b = (int64_t)task / w->steps, t = (int64_t)task % w->steps;
    float cos_space[PIECE], sin_space[PIECE];
    const float *cos = angles_of(w, w->cos, b, t, cos_space);
    const float *sin = angles_of(w, w->sin, b, t, sin_space);
    for (int64_t h = 0; h < w->heads; h++) {
        int64_t at = w->heads_first ? (b * w->heads + h) * w->steps + t
                                    : (b * w->steps + t) * w->heads + h;
        rotate(w, cos, sin, at * w->size);
    }
}

static ort_status rotary_run(ort_call *call, ort_error *err)
{
    rotary_walk w;
    ORT_TRY(walk_init(call, &w, err));
    for (int64_t stream = 0; stream < (w.r->streams ? 3 : 1); stream++)
        for (int64_t i = 0; i < w.batch * w.steps; i++)
            if (cache_row(&w, stream, i / w.steps, i % w.steps) < 0)
                return ort_call_fail(call, err, "the position of token %lld is outside the caches "
                                     "of %lld positions", (long long)i,
                                     (long long)w.cos->shape.dim[0]);
    ort_call_parallel(call, (size_t)(w.batch * w.steps), token_task, &w);
    return ORT_OK;
}

static ort_status rotary_infer(ort_infer *x, ort_error *err)
{
    bool ranked = !strcmp(x->op->domain, ONNX) && ort_infer_in_ranked(x, 0);
    int rank = ranked ? x->in[0]->type.rank : 4;
    if (rank != 3 && rank != 4)
        return ort_infer_fail(x, err, "input 0 has %d dims, needs 3 or 4", rank);
    if (rank == 3 && ort_node_attr_int(x->node, "num_heads") <= 0)
        return ort_infer_fail(x, err, "an input of 3 dims needs the attribute num_heads");
    if (ort_node_attr_int(x->node, "rotary_embedding_dim") < 0)
        return ort_infer_fail(x, err, "rotary_embedding_dim is negative (0: all of a head)");
    return ORT_OK;
}

static const ort_op_impl rotary_impl = {
    .state = sizeof(rotary), .bind = rotary_bind,
    .rule = "same", .infer = rotary_infer, .prepare = rotary_prepare, .run = rotary_run,
};

static const ort_op_impl multi_impl = {
    .state = sizeof(rotary), .bind = multi_bind,
    .rule = "same", .prepare = multi_prepare, .run = rotary_run,
};

/* ---- rows */

const ort_op ort_ops_rotary[] = {
    {ONNX, "RotaryEmbedding", 23, "X:T,cos_cache:T,sin_cache:T,position_ids?:M -> Y:T",
     "T:f32,f16,bf16 M:i64",
     "interleaved:i=0 num_heads:i rotary_embedding_dim:i=0", 0, &rotary_impl},
    {MS, "RotaryEmbedding", 1,
     "input:T,position_ids:M,cos_cache:T,sin_cache:T -> output:T",
     "T:f32,f16,bf16 M:i64",
     "interleaved:i=0 is_packed_batching:i=0 num_heads:i=0 rotary_embedding_dim:i=0 scale:f=1", 0,
     &rotary_impl, .variant = OF_MICROSOFT},
    {MS, "MRotaryEmbedding", 1,
     "input:T,position_ids:M,cos_cache:T,sin_cache:T -> output:T",
     "T:f32,f16,bf16 M:i64",
     "interleaved:i=0 is_packed_batching:i=0 mrope_layout:i=0 mrope_section:is! num_heads:i=0 "
     "rotary_embedding_dim:i=0 scale:f=1", 0, &multi_impl, .variant = OF_MICROSOFT},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
