/* opset_attention.c - Attention and RotaryEmbedding spelled in products, softmax and slices, below
 * opset 23. Shapes in comments: B batch, H heads, L positions, D numbers of a head.
 */
#include <math.h>
#include <string.h>

#include "opset/opset.h"

/* [B, L, H D] as [B, H, L, D]; four dims are that already. */
static ort_id split_heads(ort_opset_step *s, ort_id x, int64_t heads)
{
    if (ort_opset_rank(s, x) == 4)
        return x;
    return ort_emit_formula(&s->g, "(Transpose (Reshape x [0 0 $heads -1]) perm=0,2,1,3)",
                            "x $heads", x, (double)heads);
}

static ort_id join_heads(ort_opset_step *s, ort_id x)
{
    return ort_emit_formula(&s->g, "(Reshape (Transpose x perm=0,2,1,3) [0 0 -1])", "x", x);
}

static ort_id concat(ort_opset_step *s, ort_id a, ort_id b, int64_t axis)
{
    return ort_emit_formula(&s->g, "(Concat a b axis=$axis)", "a b $axis", a, b, (double)axis);
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
    return ort_opset_rank(s, x) == 4 ? ort_opset_dim(s, x, 1) : ort_node_attr_int(s->node, attr);
}

static bool read_attention(ort_opset_step *s, attention *a)
{
    int64_t mode = ort_node_attr_int(s->node, "qk_matmul_output_mode");
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
    if (a->q_heads == a->kv_heads)
        return x;
    return ort_emit_formula(&s->g, "(Reshape (Expand (Unsqueeze x [2]) [1 1 $times 1 1]) "
                            "(Concat (Dims x 0 1) [$heads] (Dims x 2 4) axis=0))",
                            "x $times $heads", x, (double)(a->q_heads / a->kv_heads),
                            (double)a->q_heads);
}

/* q k^T, each scaled by the root of the scale. */
static void scores(ort_opset_step *s, attention *a)
{
    int64_t size = ort_opset_dim(s, a->q, 3);
    double scale = (double)ort_node_attr_float(s->node, "scale");
    if (scale == 0 && size <= 0) {
        ort_opset_block(s, "the size of its heads isn't known, nor its scale given");
        return;
    }
    if (scale == 0)
        scale = 1 / sqrt((double)size);
    a->scores = ort_emit_formula(
        &s->g, "(MatMul (q * $root) ((Transpose k perm=0,1,3,2) * $root))", "q k $root", a->q,
        repeat_heads(s, a, a->k), sqrt(scale));
}

/* 0 where `kept`, else minus infinity, added to the scores. */
static ort_id keep(ort_opset_step *s, ort_id x, ort_id kept)
{
    return ort_emit_formula(&s->g, "x + (Where kept 0 $least)", "x kept $least", x, kept,
                            (double)-INFINITY);
}

/* Query i sees keys up to i, and all that came before. */
static ort_id causal(ort_opset_step *s, const attention *a, ort_id x)
{
    ort_emit *g = &s->g;
    ort_id rows = ort_opset_positions(s, a->q, 2), columns = ort_opset_positions(s, a->k, 2);
    if (a->past != ORT_ID_NONE)
        rows = ort_emit_formula(g, "rows + (Dims past 2 3)", "rows past", rows, a->past);
    return keep(s, x, ort_emit_formula(g, "(Not (Greater columns (Unsqueeze rows [1])))",
                                       "columns rows", columns, rows));
}

static void weights(ort_opset_step *s, attention *a)
{
    ort_emit *g = &s->g;
    ort_id mask = ort_opset_in(s, 3), x = a->scores;
    float cap = ort_node_attr_float(s->node, "softcap");
    if (cap != 0)
        x = ort_emit_formula(g, "$cap * (Tanh (x / $cap))", "x $cap", x, (double)cap);
    if (ort_node_attr_int(s->node, "is_causal"))
        x = causal(s, a, x);
    if (mask != ORT_ID_NONE) {
        a->masked = ort_opset_dtype(s, mask) == ORT_DTYPE_BOOL;
        x = a->masked ? keep(s, x, mask) : ort_emit_formula(g, "x + m", "x m", x, mask);
    }
    x = ort_emit_formula(g, "(Softmax x axis=-1)", "x", x);
    if (a->masked) /* a row without any key is zero */
        x = ort_emit_formula(g, "(Where (IsNaN x) 0 x)", "x", x);
    a->weights = x;
}

static void attention_down(ort_opset_step *s)
{
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
    ort_id y = ort_emit_formula(&s->g, "(MatMul w v)", "w v", a.weights,
                                repeat_heads(s, &a, a.v));
    ort_id values[] = {a.flat ? join_heads(s, y) : y, a.k, a.v,
                       ort_node_attr_int(s->node, "qk_matmul_output_mode") ? a.weights : a.scores};
    ort_opset_replace(s, values, 4);
}

/* ---- RotaryEmbedding */

static ort_id slice(ort_opset_step *s, ort_id x, int64_t first, int64_t end, int64_t step)
{
    const char *text = step == 1 ? "(Slice x [$first] [$end] [3])"
                                 : "(Slice x [$first] [$end] [3] [$step])";
    return ort_emit_formula(&s->g, text, "x $first $end $step", x, (double)first, (double)end,
                            (double)step);
}

/* Angles of each position as [B, L, 1, D / 2]. */
static ort_id angles(ort_opset_step *s, int slot)
{
    ort_id at = ort_opset_in(s, 3);
    return ort_emit_formula(&s->g, at == ORT_ID_NONE ? "(Unsqueeze cache [2])"
                                                     : "(Unsqueeze (Gather cache at) [2])",
                            "cache at", s->node->inputs[slot], at);
}

/* x: [B, L, H, size], its numbers as pairs turned by their angles. */
static ort_id turn(ort_opset_step *s, ort_id x, int64_t size)
{
    ort_emit *g = &s->g;
    bool woven = ort_node_attr_int(s->node, "interleaved") != 0;
    ort_id cosine = angles(s, 1), sine = angles(s, 2);
    ort_id a = woven ? slice(s, x, 0, size, 2) : slice(s, x, 0, size / 2, 1);
    ort_id b = woven ? slice(s, x, 1, size, 2) : slice(s, x, size / 2, size, 1);
    return ort_emit_formula(
        g, woven ? "re = c * a - s * b; im = s * a + c * b;"
                   "(Reshape (Concat (Unsqueeze re [4]) (Unsqueeze im [4]) axis=4) [0 0 0 $size])"
                 : "(Concat (c * a - s * b) (s * a + c * b) axis=3)",
        "c s a b $size", cosine, sine, a, b, (double)size);
}

static void rotary_down(ort_opset_step *s)
{
    ort_emit *g = &s->g;
    ort_id x = s->node->inputs[0];
    int rank = ort_opset_rank(s, x);
    if (rank != 4 && (rank != 3 || ort_node_attr_int(s->node, "num_heads") <= 0)) {
        ort_opset_block(s, "its input is of unknown rank, or the number of heads isn't given");
        return;
    }
    x = ort_emit_formula(g, rank == 4 ? "(Transpose x perm=0,2,1,3)"
                                      : "(Reshape x [0 0 $num_heads -1])", "x", x);
    int64_t total = ort_opset_dim(s, x, 3);
    int64_t size = ort_node_attr_int(s->node, "rotary_embedding_dim");
    if (total <= 0 && size <= 0) {
        ort_opset_block(s, "the size of its heads isn't known");
        return;
    }
    bool part = size > 0 && size != total;
    size = size > 0 ? size : total;
    ort_id y = turn(s, part ? slice(s, x, 0, size, 1) : x, size);
    if (part)
        y = concat(s, y, slice(s, x, size, INT32_MAX, 1), 3);
    ort_opset_replace_by(s, ort_emit_formula(g, rank == 4 ? "(Transpose y perm=0,2,1,3)"
                                                          : "(Reshape y [0 0 -1])", "y", y));
}

const ort_opset_rule ort_opset_attention[] = {
    {"Attention", 23, NULL, attention_down},
    {"RotaryEmbedding", 23, NULL, rotary_down},
    {0},
};
