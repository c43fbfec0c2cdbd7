/* opset_attention.c - Attention and RotaryEmbedding spelled in products, softmax and slices, below
 * opset 23. Shapes in comments: B batch, H heads, L positions, D numbers of a head.
 */
#include <math.h>
#include <string.h>

#include "opset/opset.h"

/* [B, L, H D] as [B, H, L, D]; four dims are that already. */
static ort_id split_heads(ort_opset_step *s, ort_id x, int64_t heads)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    const int64_t apart[] = {0, 0, heads, -1};
    if (ort_opset_rank(s, x) == 4)
        return x;
    x = ort_emit_reshape(&s->g, x, ort_emit_ints(&s->g, apart, 4));
    return ort_emit_transpose(&s->g, x, perm, 4);
}

static ort_id join_heads(ort_opset_step *s, ort_id x)
{
    static const int64_t perm[] = {0, 2, 1, 3}, joined[] = {0, 0, -1};
    x = ort_emit_transpose(&s->g, x, perm, 4);
    return ort_emit_reshape(&s->g, x, ort_emit_ints(&s->g, joined, 3));
}

static ort_id concat(ort_opset_step *s, ort_id a, ort_id b, int64_t axis)
{
    ort_attr along = ort_emit_int_attr("axis", axis);
    return ort_emit_op(&s->g, "Concat", (const ort_id[]){a, b}, 2, &along, 1);
}

/* ---- Attention */

typedef struct attention {
    ort_id q, k, v;           /* [B, H, L, D] */
    ort_id past;              /* past keys, or ORT_ID_NONE */
    int64_t q_heads, kv_heads;
    bool flat;                /* inputs were [B, L, H D] */
    bool masked;              /* rows may be masked as a whole */
    ort_id scores, weights;
} attention;

static int64_t heads_of(const ort_opset_step *s, int slot, const char *attr)
{
    ort_id x = s->node->inputs[slot];
    return ort_opset_rank(s, x) == 4 ? ort_opset_dim(s, x, 1) : ort_node_int(s->node, attr, 0);
}

static bool read_attention(ort_opset_step *s, attention *a)
{
    int64_t mode = ort_node_int(s->node, "qk_matmul_output_mode", 0);
    int rank = ort_opset_rank(s, s->node->inputs[0]);
    *a = (attention){.past = ort_opset_in(s, 4)};
    a->q_heads = heads_of(s, 0, "q_num_heads");
    a->kv_heads = heads_of(s, 1, "kv_num_heads");
    a->flat = rank == 3;
    if (rank != 3 && rank != 4)
        ort_opset_block(s, "its input is of unknown rank");
    else if (a->q_heads <= 0 || a->kv_heads <= 0 || a->q_heads % a->kv_heads)
        ort_opset_block(s, "the number of its heads isn't known");
    else if (ort_opset_has_output(s, 3) && mode != 0 && mode != 3)
        ort_opset_block(s, "'qk_matmul_output_mode' %lld has no older form", (long long)mode);
    return !s->blocked;
}

/* Each head of keys or values serves several of queries: [B, Hkv, L, D] as [B, Hq, L, D]. */
static ort_id repeat_heads(ort_opset_step *s, const attention *a, ort_id x)
{
    static const int64_t between[] = {2};
    const int64_t times[] = {1, 1, a->q_heads / a->kv_heads, 1, 1};
    if (a->q_heads == a->kv_heads)
        return x;
    ort_id wide = ort_emit_unsqueeze(&s->g, x, between, 1);
    wide = ort_emit_op2(&s->g, "Expand", wide, ort_emit_ints(&s->g, times, 5));
    ort_id parts[] = {ort_emit_dims(&s->g, x, 0, 1), ort_emit_ints(&s->g, &a->q_heads, 1),
                      ort_emit_dims(&s->g, x, 2, 4)};
    return ort_emit_reshape(&s->g, wide, ort_emit_concat(&s->g, parts, 3));
}

/* q k^T, each scaled by the root of the scale. */
static void scores(ort_opset_step *s, attention *a)
{
    static const int64_t swap[] = {0, 1, 3, 2};
    ort_emit *g = &s->g;
    int64_t size = ort_opset_dim(s, a->q, 3);
    double scale = (double)ort_node_float(s->node, "scale", 0);
    if (scale == 0 && size <= 0) {
        ort_opset_block(s, "the size of its heads isn't known, nor its scale given");
        return;
    }
    if (scale == 0)
        scale = 1 / sqrt((double)size);
    ort_id root = ort_emit_number(g, a->q, sqrt(scale));
    ort_id keys = ort_emit_transpose(g, repeat_heads(s, a, a->k), swap, 4);
    a->scores = ort_emit_op2(g, "MatMul", ort_emit_op2(g, "Mul", a->q, root),
                             ort_emit_op2(g, "Mul", keys, root));
}

/* 0 where `kept`, else minus infinity, added to the scores. */
static ort_id keep(ort_opset_step *s, ort_id x, ort_id kept)
{
    ort_id bias = ort_emit_op3(&s->g, "Where", kept, ort_emit_number(&s->g, x, 0),
                               ort_emit_number(&s->g, x, -INFINITY));
    return ort_emit_op2(&s->g, "Add", x, bias);
}

/* Query i sees keys up to i, and all that came before. */
static ort_id causal(ort_opset_step *s, const attention *a, ort_id x)
{
    static const int64_t last[] = {1};
    ort_emit *g = &s->g;
    ort_id rows = ort_opset_positions(s, a->q, 2);
    if (a->past != ORT_ID_NONE)
        rows = ort_emit_op2(g, "Add", rows, ort_emit_dims(g, a->past, 2, 3));
    rows = ort_emit_unsqueeze(g, rows, last, 1);
    ort_id late = ort_emit_op2(g, "Greater", ort_opset_positions(s, a->k, 2), rows);
    return keep(s, x, ort_emit_op1(g, "Not", late));
}

static void weights(ort_opset_step *s, attention *a)
{
    ort_emit *g = &s->g;
    ort_id mask = ort_opset_in(s, 3), x = a->scores;
    float cap = ort_node_float(s->node, "softcap", 0);
    ort_attr axis = ort_emit_int_attr("axis", -1);
    if (cap != 0)
        x = ort_emit_formula(g, "c * (Tanh (x / c))", "xc", x, ort_emit_number(g, x, (double)cap));
    if (ort_node_int(s->node, "is_causal", 0))
        x = causal(s, a, x);
    if (mask != ORT_ID_NONE) {
        a->masked = ort_opset_dtype(s, mask) == ORT_DTYPE_BOOL;
        x = a->masked ? keep(s, x, mask) : ort_emit_op2(g, "Add", x, mask);
    }
    x = ort_emit_op(g, "Softmax", &x, 1, &axis, 1);
    if (a->masked) /* a row without any key is zero */
        x = ort_emit_op3(g, "Where", ort_emit_op1(g, "IsNaN", x), ort_emit_number(g, x, 0), x);
    a->weights = x;
}

static void attention_down(ort_opset_step *s)
{
    ort_emit *g = &s->g;
    attention a;
    if (!read_attention(s, &a))
        return;
    a.q = split_heads(s, s->node->inputs[0], a.q_heads);
    a.k = split_heads(s, s->node->inputs[1], a.kv_heads);
    a.v = split_heads(s, s->node->inputs[2], a.kv_heads);
    if (a.past != ORT_ID_NONE) {
        a.k = concat(s, a.past, a.k, 2);
        a.v = concat(s, ort_opset_in(s, 5), a.v, 2);
    }
    scores(s, &a);
    if (s->blocked)
        return;
    weights(s, &a);
    ort_id y = ort_emit_op2(g, "MatMul", a.weights, repeat_heads(s, &a, a.v));
    ort_id values[] = {a.flat ? join_heads(s, y) : y, a.k, a.v,
                       ort_node_int(s->node, "qk_matmul_output_mode", 0) ? a.weights : a.scores};
    ort_opset_replace(s, values, 4);
}

/* ---- RotaryEmbedding */

static ort_id slice(ort_opset_step *s, ort_id x, int64_t first, int64_t end, int64_t step)
{
    ort_emit *g = &s->g;
    static const int64_t axis = 3;
    ort_id in[] = {x, ort_emit_ints(g, &first, 1), ort_emit_ints(g, &end, 1),
                   ort_emit_ints(g, &axis, 1), ort_emit_ints(g, &step, 1)};
    return ort_emit_op(g, "Slice", in, step == 1 ? 4 : 5, NULL, 0);
}

/* Angles of each position as [B, L, 1, D / 2]. */
static ort_id angles(ort_opset_step *s, int slot)
{
    static const int64_t heads[] = {2};
    ort_id cache = s->node->inputs[slot], at = ort_opset_in(s, 3);
    if (at != ORT_ID_NONE)
        cache = ort_emit_op2(&s->g, "Gather", cache, at);
    return ort_emit_unsqueeze(&s->g, cache, heads, 1);
}

/* x: [B, L, H, size], its numbers as pairs turned by their angles. */
static ort_id turn(ort_opset_step *s, ort_id x, int64_t size)
{
    static const int64_t last[] = {4};
    ort_emit *g = &s->g;
    bool woven = ort_node_int(s->node, "interleaved", 0) != 0;
    const int64_t target[] = {0, 0, 0, size};
    ort_id cosine = angles(s, 1), sine = angles(s, 2);
    ort_id a = woven ? slice(s, x, 0, size, 2) : slice(s, x, 0, size / 2, 1);
    ort_id b = woven ? slice(s, x, 1, size, 2) : slice(s, x, size / 2, size, 1);
    ort_id re = ort_emit_formula(g, "c * a - s * b", "csab", cosine, sine, a, b);
    ort_id im = ort_emit_formula(g, "s * a + c * b", "csab", cosine, sine, a, b);
    if (!woven)
        return concat(s, re, im, 3);
    ort_id pairs = concat(s, ort_emit_unsqueeze(g, re, last, 1),
                          ort_emit_unsqueeze(g, im, last, 1), 4);
    return ort_emit_reshape(g, pairs, ort_emit_ints(g, target, 4));
}

static void rotary_down(ort_opset_step *s)
{
    static const int64_t swap[] = {0, 2, 1, 3}, joined[] = {0, 0, -1};
    ort_emit *g = &s->g;
    ort_id x = s->node->inputs[0];
    int rank = ort_opset_rank(s, x);
    const int64_t apart[] = {0, 0, ort_node_int(s->node, "num_heads", 0), -1};
    if (rank != 4 && (rank != 3 || apart[2] <= 0)) {
        ort_opset_block(s, "its input is of unknown rank, or the number of heads isn't given");
        return;
    }
    x = rank == 4 ? ort_emit_transpose(g, x, swap, 4)
                  : ort_emit_reshape(g, x, ort_emit_ints(g, apart, 4));
    int64_t total = ort_opset_dim(s, x, 3), size = ort_node_int(s->node, "rotary_embedding_dim", 0);
    if (total <= 0 && size <= 0) {
        ort_opset_block(s, "the size of its heads isn't known");
        return;
    }
    bool part = size > 0 && size != total;
    size = size > 0 ? size : total;
    ort_id y = turn(s, part ? slice(s, x, 0, size, 1) : x, size);
    if (part)
        y = concat(s, y, slice(s, x, size, INT64_MAX, 1), 3);
    y = rank == 4 ? ort_emit_transpose(g, y, swap, 4)
                  : ort_emit_reshape(g, y, ort_emit_ints(g, joined, 3));
    ort_opset_replace_by(s, y);
}

const ort_opset_rule ort_opset_attention[] = {
    {"Attention", 23, NULL, attention_down},
    {"RotaryEmbedding", 23, NULL, rotary_down},
    {0},
};
