/* opencl_attention.c - attention: scores by one product, softmax under what masks them, a product
 * of probabilities and values. Scores are whole: [batch, heads, rows, keys].
 */
#include <math.h>
#include <string.h>

#include "provider/opencl/opencl_parts.h"

typedef struct mask { /* of scores; kinds as in rows.cl */
    int kind, buffer;
    int64_t batch, head, row, key, keys; /* strides, and how many keys it has */
    double filler;                       /* added where a number of kind INTS is 0 */
} mask;

enum { NO_MASK, FLOATS, BOOLS, INTS };

typedef struct heads {
    /* Each of `shared` heads of queries behind one another reads one of `heads` of keys. */
    int64_t batch, heads, shared, rows, keys, size, value_size;
    ort_cl_matrix q, k, v, out; /* batch1: batch; batch2: head; rows, elements of a head */
    mask mask;
    bool causal;
    int64_t past; /* the position of row 0 among the keys */
    double scale, softcap;
} heads;

/* One product for all heads of keys and one of the queries that share them. */
static void score(ort_cl_step *s, const heads *h, int scores, int64_t head)
{
    int64_t square = h->rows * h->keys;
    ort_cl_product p = {.batch1 = h->batch, .batch2 = h->heads, .m = h->rows, .n = h->keys,
                        .k = h->size, .a = h->q, .b = h->k, .b_input = -1,
                        .c = ort_cl_no_matrix(), .alpha = h->scale};
    p.a.start += head * h->q.batch2;
    p.a.batch2 *= h->shared;
    p.b.row = h->k.column; /* transposed */
    p.b.column = h->k.row;
    p.y = (ort_cl_matrix){scores, head * square, h->heads * h->shared * square, h->shared * square,
                          h->keys, 1};
    ort_cl_multiply(s, &p);
}

static void weigh(ort_cl_step *s, const heads *h, int scores, int64_t head)
{
    int64_t square = h->rows * h->keys;
    ort_cl_product p = {.batch1 = h->batch, .batch2 = h->heads, .m = h->rows, .n = h->value_size,
                        .k = h->keys, .b = h->v, .b_input = -1, .c = ort_cl_no_matrix(),
                        .y = h->out, .alpha = 1};
    p.a = (ort_cl_matrix){scores, head * square, h->heads * h->shared * square, h->shared * square,
                          h->keys, 1};
    p.y.start += head * h->out.batch2;
    p.y.batch2 *= h->shared;
    ort_cl_multiply(s, &p);
}

static void attend(ort_cl_step *s, const heads *h)
{
    int64_t all = h->batch * h->heads * h->shared * h->rows;
    int scores = ort_cl_scratch(s, all * h->keys);
    const int64_t grid[3] = {all, 1, 1};
    for (int64_t i = 0; i < h->shared; i++)
        score(s, h, scores, i);
    ort_cl_launch_grid(s, "rows", "attend", grid, NULL, "bbiiiiiiiiiiiff", scores,
                       h->mask.kind ? h->mask.buffer : scores, (int64_t)h->mask.kind, h->rows,
                       h->heads * h->shared, h->keys, h->mask.batch, h->mask.head, h->mask.row,
                       h->mask.key, h->mask.kind ? h->mask.keys : h->keys, (int64_t)h->causal,
                       h->past, h->softcap, h->mask.filler);
    for (int64_t i = 0; i < h->shared; i++)
        weigh(s, h, scores, i);
}

/* ---- Attention of ONNX */

enum { IN_MASK = 3, IN_PAST_K, IN_PAST_V, IN_VALID, OUT_K = 1, OUT_V, OUT_SCORES };

static bool claim_onnx(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "scores as a result, and a number of keys for each batch, have no kernel";
    if (ort_cl_gives(node, OUT_SCORES) || ort_cl_has(node, IN_VALID))
        return false;
    *why = "a window has no kernel";
    if (ort_node_int(node, "left_window_size", -1) >= 0 ||
        ort_node_int(node, "right_window_size", -1) >= 0)
        return false;
    *why = "the element types have no kernel";
    for (int i = 0; i < node->input_count; i++)
        if (ort_cl_has(node, i) && ort_cl_type(graph, node, i) != ORT_DTYPE_FLOAT &&
            (i != IN_MASK || ort_cl_type(graph, node, i) != ORT_DTYPE_BOOL))
            return false;
    *why = "a mask of more than four axes has no kernel";
    return !ort_cl_has(node, IN_MASK) || ort_cl_rank(graph, node, IN_MASK) <= 4;
}

/* Where the heads of Q, K, V or Y lie. */
static ort_cl_matrix heads_at(int buffer, const ort_fact *fact, int64_t count, int64_t rows,
                              int64_t size)
{
    if (fact->type.rank == 4)
        return (ort_cl_matrix){buffer, 0, count * rows * size, rows * size, size, 1};
    return (ort_cl_matrix){buffer, 0, rows * count * size, size, count * size, 1};
}

/* Rows of heads into [batch, heads, rows of both, size], behind `past` of them. */
static void append(ort_cl_step *s, const ort_cl_matrix *from, int to, const heads *h, int64_t past,
                   int64_t rows, int64_t size)
{
    ort_cl_walk w = {{1, 1, h->batch, h->heads, rows, size},
                     {0, 0, from->batch1, from->batch2, from->row, 1},
                     {0, 0, h->heads * h->keys * size, h->keys * size, size, 1}};
    ort_cl_move(s, from->buffer, to, w, 0, past * size);
}

/* Keys or values with those of the past in front, where there are such or the result is wanted. */
static ort_cl_matrix whole(ort_cl_step *s, const heads *h, ort_cl_matrix fresh, int past_input,
                           int output, int64_t size)
{
    bool past = ort_cl_has(s->node, past_input), wanted = ort_cl_gives(s->node, output);
    if (!past && !wanted)
        return fresh;
    int64_t before = past ? ort_cl_dim(ort_cl_in(s, past_input), 2) : 0;
    int to = wanted ? ort_cl_write(s, output)
                    : ort_cl_scratch(s, h->batch * h->heads * h->keys * size);
    if (past) {
        int from = ort_cl_read(s, past_input);
        const ort_cl_matrix old = {from, 0, h->heads * before * size, before * size, size, 1};
        append(s, &old, to, h, 0, before, size);
    }
    append(s, &fresh, to, h, before, h->keys - before, size);
    return (ort_cl_matrix){to, 0, h->heads * h->keys * size, h->keys * size, size, 1};
}

static mask mask_of(ort_cl_step *s, int input)
{
    int64_t stride[4];
    if (!ort_cl_has(s->node, input))
        return (mask){0};
    const ort_type *type = &ort_cl_in(s, input)->type;
    ort_cl_spread(type, 4, stride);
    int64_t keys = type->rank ? type->dim[type->rank - 1].size : 1;
    return (mask){type->dtype == ORT_DTYPE_BOOL ? BOOLS : FLOATS, ort_cl_read(s, input), stride[0],
                  stride[1], stride[2], stride[3], keys, 0};
}

static ort_status emit_onnx(ort_cl_step *s, ort_error *err)
{
    const ort_fact *q = ort_cl_in(s, 0), *k = ort_cl_in(s, 1), *v = ort_cl_in(s, 2);
    const ort_fact *past = ort_cl_in(s, IN_PAST_K);
    bool apart = q->type.rank == 4, kv_apart = k->type.rank == 4, v_apart = v->type.rank == 4;
    int64_t q_heads = apart ? ort_cl_dim(q, 1) : ort_node_int(s->node, "q_num_heads", 1);
    int64_t kv_heads = kv_apart ? ort_cl_dim(k, 1) : ort_node_int(s->node, "kv_num_heads", 1);
    int64_t fresh = ort_cl_dim(k, kv_apart ? 2 : 1);
    heads h = {.batch = ort_cl_dim(q, 0), .heads = kv_heads, .shared = q_heads / kv_heads,
               .rows = ort_cl_dim(q, apart ? 2 : 1), .past = past ? ort_cl_dim(past, 2) : 0,
               .size = apart ? ort_cl_dim(q, 3) : ort_cl_dim(q, 2) / q_heads,
               .value_size = v_apart ? ort_cl_dim(v, 3) : ort_cl_dim(v, 2) / kv_heads,
               .causal = ort_node_int(s->node, "is_causal", 0),
               .softcap = ort_node_float(s->node, "softcap", 0)};
    h.keys = h.past + fresh;
    h.q = heads_at(ort_cl_read(s, 0), q, q_heads, h.rows, h.size);
    h.k = whole(s, &h, heads_at(ort_cl_read(s, 1), k, kv_heads, fresh, h.size), IN_PAST_K, OUT_K,
                h.size);
    h.v = whole(s, &h, heads_at(ort_cl_read(s, 2), v, kv_heads, fresh, h.value_size), IN_PAST_V,
                OUT_V, h.value_size);
    h.out = heads_at(ort_cl_write(s, 0), q, q_heads, h.rows, h.value_size);
    h.mask = mask_of(s, IN_MASK);
    h.scale = ort_node_float(s->node, "scale", 0);
    if (!(h.scale > 0))
        h.scale = 1 / sqrt((double)(h.size ? h.size : 1));
    attend(s, &h);
    return ORT_OK;
}

/* ---- Attention and MultiHeadAttention of com.microsoft, without a past */

static bool has_only(const ort_node *node, const char *inputs)
{
    for (int i = 0; i < node->input_count; i++)
        if (ort_cl_has(node, i) && !strchr(inputs, '0' + i))
            return false;
    return !ort_cl_gives(node, 1) && !ort_cl_gives(node, 2) && !ort_cl_gives(node, 3) &&
           !ort_node_int(node, "do_rotary", 0);
}

/* Floats but for a mask of integers [batch, keys], or a bias of scores. */
static bool fits(const ort_graph *graph, const ort_node *node, int integers, int bias)
{
    for (int i = 0; i < node->input_count; i++) {
        if (!ort_cl_has(node, i))
            continue;
        bool is_mask = i == integers && ort_cl_type(graph, node, i) == ORT_DTYPE_INT32;
        if (is_mask ? ort_cl_rank(graph, node, i) != 2
                    : ort_cl_type(graph, node, i) != ORT_DTYPE_FLOAT)
            return false;
    }
    return !ort_cl_has(node, bias) ||
           (ort_cl_rank(graph, node, bias) == 4 && !ort_cl_has(node, integers));
}

static bool claim_fused(const ort_graph *graph, const ort_node *node, const char **why)
{
    size_t sizes = 0;
    ort_node_ints(node, "qkv_hidden_sizes", &sizes);
    *why = "this form of attention has no kernel";
    return has_only(node, "01235") && !sizes && fits(graph, node, 3, 5);
}

static void find_scale_and_mask(ort_cl_step *s, heads *h, int integers, int bias)
{
    h->scale = ort_node_float(s->node, "scale", 0);
    h->scale = h->scale != 0 ? h->scale : 1 / sqrt((double)h->size);
    h->causal = ort_node_int(s->node, "unidirectional", 0);
    h->mask = mask_of(s, bias);
    if (ort_cl_has(s->node, integers))
        h->mask = (mask){INTS, ort_cl_read(s, integers), ort_cl_dim(ort_cl_in(s, integers), 1), 0,
                         0, 1, ort_cl_dim(ort_cl_in(s, integers), 1),
                         ort_node_float(s->node, "mask_filter_value", -10000)};
}

static ort_status emit_fused(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0), *w = ort_cl_in(s, 1);
    int64_t batch = ort_cl_dim(x, 0), rows = ort_cl_dim(x, 1), depth = ort_cl_dim(x, 2);
    int64_t all = ort_cl_dim(w, 1), hidden = all / 3;
    int64_t count = ort_node_int(s->node, "num_heads", 1), size = hidden / count;
    int joined = ort_cl_scratch(s, batch * rows * all);
    ort_cl_product p = {.batch1 = 1, .batch2 = 1, .m = batch * rows, .n = all, .k = depth,
                        .c = ort_cl_no_matrix(), .alpha = 1, .beta = 1, .b_input = 1};
    p.a = (ort_cl_matrix){ort_cl_read(s, 0), 0, 0, 0, depth, 1};
    p.b = (ort_cl_matrix){0, 0, 0, 0, all, 1};
    if (ort_cl_has(s->node, 2))
        p.c = (ort_cl_matrix){ort_cl_read(s, 2), 0, 0, 0, 0, 1};
    p.y = (ort_cl_matrix){joined, 0, 0, 0, all, 1};
    ort_cl_multiply(s, &p);
    heads h = {.batch = batch, .heads = count, .shared = 1, .rows = rows, .keys = rows,
               .size = size, .value_size = size};
    h.q = (ort_cl_matrix){joined, 0, rows * all, size, all, 1};
    h.k = (ort_cl_matrix){joined, hidden, rows * all, size, all, 1};
    h.v = (ort_cl_matrix){joined, 2 * hidden, rows * all, size, all, 1};
    h.out = (ort_cl_matrix){ort_cl_write(s, 0), 0, rows * hidden, size, hidden, 1};
    find_scale_and_mask(s, &h, 3, 5);
    attend(s, &h);
    return ORT_OK;
}

static bool claim_multi(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "this form of attention has no kernel";
    if (!has_only(node, "01245") || !fits(graph, node, 4, 5))
        return false;
    for (int i = 0; i < 3; i++)
        if (!ort_cl_has(node, i) || ort_cl_rank(graph, node, i) != 3)
            return false;
    return true;
}

static ort_status emit_multi(ort_cl_step *s, ort_error *err)
{
    const ort_fact *q = ort_cl_in(s, 0), *k = ort_cl_in(s, 1), *v = ort_cl_in(s, 2);
    int64_t count = ort_node_int(s->node, "num_heads", 1);
    heads h = {.batch = ort_cl_dim(q, 0), .heads = count, .shared = 1, .rows = ort_cl_dim(q, 1),
               .keys = ort_cl_dim(k, 1), .size = ort_cl_dim(q, 2) / count,
               .value_size = ort_cl_dim(v, 2) / count};
    h.q = heads_at(ort_cl_read(s, 0), q, count, h.rows, h.size);
    h.k = heads_at(ort_cl_read(s, 1), k, count, h.keys, h.size);
    h.v = heads_at(ort_cl_read(s, 2), v, count, h.keys, h.value_size);
    h.out = heads_at(ort_cl_write(s, 0), q, count, h.rows, h.value_size);
    find_scale_and_mask(s, &h, 4, 5);
    attend(s, &h);
    return ORT_OK;
}

const ort_cl_row ort_cl_attention_rows[] = {
    {ONNX, "Attention", claim_onnx, emit_onnx, .half = true},
    {MS, "Attention", claim_fused, emit_fused, .half = true},
    {MS, "MultiHeadAttention", claim_multi, emit_multi, .half = true},
    {0},
};
