/* rotary.c - RotaryEmbedding of ONNX and of com.microsoft.
 *
 * Both rotate pairs of elements of every head by angles that belong to the token's position; they
 * differ in the order of their inputs and in how positions are given. Pairs are neighbours when
 * interleaved, else element i and i + half. What lies beyond the rotary size is copied.
 */
#include <string.h>

#include "base/checked.h"
#include "op/op.h"
#include "op/rotary.h"

#define PIECE 512 /* half of the largest rotary size */

typedef struct rotary {
    bool microsoft, interleaved;
    int64_t heads, size; /* 0: not given; all of the head */
    int cos, sin, positions;
} rotary;

static ort_status rotary_prepare(ort_prep *p, ort_error *err)
{
    rotary *r = ort_prep_state(p, sizeof *r);
    if (!r)
        return ort_error_memory(err, sizeof *r);
    r->microsoft = strcmp(p->op->domain, MS) == 0;
    r->interleaved = ort_node_int(p->node, "interleaved", 0) != 0;
    r->heads = ort_node_int(p->node, "num_heads", 0);
    r->size = ort_node_int(p->node, "rotary_embedding_dim", 0);
    r->positions = r->microsoft ? 1 : 3;
    r->cos = r->microsoft ? 2 : 1;
    r->sin = r->cos + 1;
    if (r->microsoft && ort_node_int(p->node, "is_packed_batching", 0))
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "is_packed_batching isn't implemented; "
                             "pad the batch instead");
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
    w->offset = w->positions && ort_tensor_count(w->positions) == 1 &&
                w->positions->shape.rank < 2 && r->microsoft;
    bool fits = w->size > 0 && rotated <= w->size && rotated % 2 == 0 && w->half <= PIECE &&
                width == w->half && ort_shape_equal(c, &w->sin->shape) &&
                (s->rank != 3 || w->heads * w->size == s->dim[2]);
    if (fits && w->direct)
        fits = c->rank == 3 && c->dim[0] == w->batch && c->dim[1] == w->steps;
    else if (fits)
        fits = c->rank == 2 && (w->offset ||
                                ort_tensor_count(w->positions) == w->batch * w->steps);
    if (!fits)
        return ort_call_fail(call, err, "the input, the cos and sin caches, the positions and the "
                             "number of heads don't fit together");
    return ORT_OK;
}

/* Row of the caches for one token; -1 when its position is outside. */
static int64_t cache_row(const rotary_walk *w, int64_t b, int64_t t)
{
    if (w->direct)
        return b * w->steps + t;
    int64_t at = w->offset ? ort_tensor_get_i64(w->positions, 0) + t
                           : ort_tensor_get_i64(w->positions, b * w->steps + t);
    return at >= 0 && at < w->cos->shape.dim[0] ? at : -1;
}

void ort_rotary_rotate(const float *in, const float *cos, const float *sin, int64_t half,
                       bool interleaved, float *out)
{
    int64_t step = interleaved ? 2 : 1, gap = interleaved ? 1 : half;
    for (int64_t i = 0; i < half; i++) {
        float a = in[i * step], b = in[i * step + gap];
        out[i * step] = a * cos[i] - b * sin[i];
        out[i * step + gap] = b * cos[i] + a * sin[i];
    }
}

static void rotate(const rotary_walk *w, const float *cos, const float *sin, int64_t first)
{
    float in[2 * PIECE], out[2 * PIECE];
    int64_t half = w->half;
    ort_tensor_to_f32(w->x, first, 2 * half, in);
    ort_rotary_rotate(in, cos, sin, half, w->r->interleaved, out);
    ort_tensor_from_f32(out, w->y, first, 2 * half);
    size_t each = (size_t)ort_dtype_bits(w->x->dtype) / 8;
    if (w->size > 2 * half)
        memcpy((char *)w->y->data + (size_t)(first + 2 * half) * each,
               (const char *)w->x->data + (size_t)(first + 2 * half) * each,
               (size_t)(w->size - 2 * half) * each);
}

static void token_task(void *arg, size_t task, int thread)
{
    const rotary_walk *w = arg;
    int64_t b = (int64_t)task / w->steps, t = (int64_t)task % w->steps;
    float cos[PIECE], sin[PIECE];
    int64_t row = cache_row(w, b, t);
    (void)thread;
    ort_tensor_to_f32(w->cos, row * w->half, w->half, cos);
    ort_tensor_to_f32(w->sin, row * w->half, w->half, sin);
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
    for (int64_t i = 0; i < w.batch * w.steps; i++)
        if (cache_row(&w, i / w.steps, i % w.steps) < 0)
            return ort_call_fail(call, err, "the position of token %lld is outside the caches of "
                                 "%lld positions", (long long)i, (long long)w.cos->shape.dim[0]);
    ort_call_parallel(call, (size_t)(w.batch * w.steps), token_task, &w);
    return ORT_OK;
}

static const ort_op_impl rotary_impl = {
    .infer = ort_infer_same, .prepare = rotary_prepare, .run = rotary_run,
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
     &rotary_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
