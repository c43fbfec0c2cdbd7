/* opencl_attention_fused.c - Attention and MultiHeadAttention of com.microsoft. They differ in
 * where queries, keys and values lie (op/sequence/attention_fused.h): here these are brought into
 * the one form of opencl_attention.h.
 */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "provider/opencl/sequence/opencl_attention.h"

/* ---- Attention, which projects its input itself; past and present hold keys, then values */

enum { MASK = 3, PAST = 4, BIAS = 5, LENGTH = 6 };

static bool claim_packed(const ort_graph *graph, const ort_node *node, const char **why)
{
    size_t sizes = 0;
    bool shared = ort_node_int(node, "past_present_share_buffer", 0);
    ort_node_ints(node, "qkv_hidden_sizes", &sizes);
    if (!ort_cl_types_fit(graph, node, 1u << MASK | 1u << LENGTH, why))
        return false;
    *why = "this form of attention has no kernel";
    return (!sizes || sizes == 3) && ort_node_int(node, "num_heads", 0) > 0 &&
           (!shared || !ort_cl_has(node, PAST) || ort_cl_has(node, LENGTH)) &&
           ort_cl_has_rank(graph, node, 0, 3, 3) && ort_cl_has_rank(graph, node, 1, 2, 2) &&
           ort_cl_has_rank(graph, node, 2, 1, 1) && ort_cl_has_rank(graph, node, MASK, 1, 3) &&
           ort_cl_has_rank(graph, node, PAST, 5, 5) && ort_cl_has_rank(graph, node, BIAS, 4, 4);
}

/* Columns of Q, K and V in the projection. */
static bool packed_sizes(const ort_cl_step *s, int64_t *hidden)
{
    size_t sizes = 0;
    const int64_t *given = ort_node_ints(s->node, "qkv_hidden_sizes", &sizes);
    int64_t all = ort_cl_dim(ort_cl_in(s, 1), 1), heads = ort_node_int(s->node, "num_heads", 1);
    for (int i = 0; i < 3; i++)
        hidden[i] = sizes ? given[i] : all / 3;
    return hidden[0] == hidden[1] && hidden[0] > 0 && hidden[2] > 0 && !(hidden[0] % heads) &&
           !(hidden[2] % heads) && hidden[0] + hidden[1] + hidden[2] == all;
}

static int project(ort_cl_step *s, const ort_cl_heads *h)
{
    int64_t all = ort_cl_dim(ort_cl_in(s, 1), 1), depth = ort_cl_dim(ort_cl_in(s, 1), 0);
    int to = ort_cl_scratch(s, h->batch * h->rows * all);
    ort_cl_product p = {.batch1 = 1, .batch2 = 1, .m = h->batch * h->rows, .n = all, .k = depth,
                        .c = ort_cl_no_matrix(), .alpha = 1, .beta = 1, .b_input = 1};
    p.a = (ort_cl_matrix){ort_cl_read(s, 0), 0, 0, 0, depth, 1};
    p.b = (ort_cl_matrix){0, 0, 0, 0, all, 1};
    if (ort_cl_has(s->node, 2))
        p.c = (ort_cl_matrix){ort_cl_read(s, 2), 0, 0, 0, 0, 1};
    p.y = (ort_cl_matrix){to, 0, 0, 0, all, 1};
    ort_cl_multiply(s, &p);
    return to;
}

/* Element pair i of the token at place t turns by t / 10000^(i / half_size): tables of all keys. */
static ort_status angles(ort_cl_step *s, const ort_cl_heads *h, ort_cl_taking *t, ort_error *err)
{
    int64_t count = h->keys * t->half_size;
    float *table = malloc((size_t)(2 * count + 1) * sizeof *table);
    if (!table)
        return ort_error_memory(err, (size_t)count * 2 * sizeof *table);
    for (int64_t i = 0; i < count; i++) {
        double place = (double)(i / t->half_size), pair = (double)(i % t->half_size);
        double angle = place / pow(10000, pair / (double)t->half_size);
        table[i] = (float)cos(angle);
        table[count + i] = (float)sin(angle);
    }
    t->cosines = ort_cl_numbers(s, table, count);
    t->sines = ort_cl_numbers(s, table + count, count);
    t->table_rows = h->keys;
    free(table);
    return ORT_OK;
}

static ort_status turn_packed(ort_cl_step *s, ort_cl_heads *h, ort_error *err)
{
    int64_t turned = ort_node_int(s->node, "rotary_embedding_dim", 0);
    ort_cl_taking t = {.bias = -1, .positions = -1, .half_size = (turned ? turned : h->size) / 2};
    if (!ort_node_int(s->node, "do_rotary", 0))
        return ORT_OK;
    if (turned < 0 || turned % 2 || h->size % 2 || 2 * t.half_size > h->size)
        return ort_cl_misfit(err);
    ORT_TRY(angles(s, h, &t, err));
    h->q = ort_cl_take_heads(s, h, h->q, h->heads, h->rows, h->size, &t);
    h->k = ort_cl_take_heads(s, h, h->k, h->heads, h->rows, h->size, &t);
    return ORT_OK;
}

static void extend_packed(ort_cl_step *s, ort_cl_heads *h, int64_t past_rows)
{
    int64_t old = h->batch * h->heads * past_rows * h->size;
    int64_t now = h->batch * h->heads * h->keys * h->size;
    const bool wanted = ort_cl_gives(s->node, 1);
    const ort_cl_cache keys = {PAST, 1, past_rows, h->size, 0, 0, true};
    const ort_cl_cache values = {PAST, 1, past_rows, h->value_size, old, wanted ? now : 0, true};
    int to = ort_cl_cache_place(s, h, &keys);
    int to_values = wanted ? to : ort_cl_cache_place(s, h, &values);
    h->k = ort_cl_whole(s, h, h->k, &keys, to);
    h->v = ort_cl_whole(s, h, h->v, &values, to_values);
}

static ort_status read_packed(const ort_cl_step *s, ort_cl_heads *h, int64_t *past_rows,
                              ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0), *w = ort_cl_in(s, 1), *past = ort_cl_in(s, PAST);
    const ort_fact *bias = ort_cl_in(s, 2);
    int64_t hidden[3];
    bool shared = past && ort_node_int(s->node, "past_present_share_buffer", 0);
    *past_rows = past ? ort_cl_dim(past, 3) : 0;
    h->batch = ort_cl_dim(x, 0);
    h->rows = h->fresh = ort_cl_dim(x, 1);
    h->keys = shared ? *past_rows : *past_rows + h->fresh;
    h->past = shared ? 0 : *past_rows;
    if (!packed_sizes(s, hidden) || ort_cl_dim(x, 2) != ort_cl_dim(w, 0) ||
        (bias && ort_cl_count(bias) != ort_cl_dim(w, 1)) || h->keys < h->fresh)
        return ort_cl_misfit(err);
    h->size = hidden[0] / h->heads;
    h->value_size = hidden[2] / h->heads;
    if ((past || ort_cl_gives(s->node, 1)) && h->size != h->value_size)
        return ort_cl_misfit(err);
    return !past || ort_cl_count(past) == 2 * h->batch * h->heads * *past_rows * h->size
               ? ORT_OK : ort_cl_misfit(err);
}

static ort_status emit_packed(ort_cl_step *s, ort_error *err)
{
    int64_t all = ort_cl_dim(ort_cl_in(s, 1), 1), past_rows;
    ort_cl_heads h = {.heads = ort_node_int(s->node, "num_heads", 1), .shared = 1, .left = -1,
                      .right = -1, .causal = ort_node_int(s->node, "unidirectional", 0)};
    ORT_TRY(read_packed(s, &h, &past_rows, err));
    bool shared = ort_cl_has(s->node, PAST) && h.keys == past_rows;
    if (shared)
        ort_cl_find_places(s, &h, LENGTH, 2, 0, 0, h.keys - h.fresh + 1);
    int joined = project(s, &h);
    h.q = (ort_cl_matrix){joined, 0, h.rows * all, h.size, all, 1};
    h.k = (ort_cl_matrix){joined, h.heads * h.size, h.rows * all, h.size, all, 1};
    h.v = (ort_cl_matrix){joined, 2 * h.heads * h.size, h.rows * all, h.value_size, all, 1};
    ORT_TRY(turn_packed(s, &h, err));
    extend_packed(s, &h, past_rows);
    ORT_TRY(ort_cl_find_mask(s, &h, MASK, BIAS, shared, err));
    ort_cl_attend_side_by_side(s, &h);
    return ORT_OK;
}

/* ---- MultiHeadAttention, and DecoderMaskedMultiHeadAttention of one token */

typedef struct slots { /* inputs */
    int bias, mask, add, past_k, past_v, length;
} slots;

static const slots multi_slots = {3, 4, 5, 6, 7, 8}, one_step_slots = {10, 3, 4, 5, 6, 7};
enum { INDIRECTION = 9 };

static bool is_one_step(const ort_node *node)
{
    return node->op_type[0] == 'D';
}

static const slots *slots_of(const ort_node *node)
{
    return is_one_step(node) ? &one_step_slots : &multi_slots;
}

static bool claim_multi(const ort_graph *graph, const ort_node *node, const char **why)
{
    const slots *in = slots_of(node);
    bool one_step = is_one_step(node);
    *why = "scores as a result, and beams that share a cache, have no kernel";
    if (ort_cl_gives(node, 3) || ort_cl_has(node, INDIRECTION) ||
        (one_step && ort_cl_has(node, in->length + 1)))
        return false;
    if (!ort_cl_types_fit(graph, node, 1u << in->mask | 1u << in->length, why))
        return false;
    *why = "this form of attention has no kernel";
    if (one_step && ort_cl_has(node, in->past_k) &&
        (!ort_node_int(node, "past_present_share_buffer", 0) || !ort_cl_has(node, in->length)))
        return false;
    return ort_node_int(node, "num_heads", 0) > 0 &&
           ort_cl_has_rank(graph, node, in->bias, 1, 1) &&
           ort_cl_has_rank(graph, node, in->mask, 1, 3) &&
           ort_cl_has_rank(graph, node, in->add, 4, 4) &&
           ort_cl_has_rank(graph, node, in->past_k, 4, 4) &&
           ort_cl_has_rank(graph, node, in->past_v, 4, 4) &&
           ort_cl_has(node, in->past_k) == ort_cl_has(node, in->past_v);
}

/* `parts` vectors of each head side by side: [batch, rows, heads, parts, size]. */
static ort_cl_matrix part(int buffer, int64_t rows, int64_t heads, int64_t parts, int64_t which,
                          int64_t size)
{
    int64_t row = heads * parts * size;
    return (ort_cl_matrix){buffer, which * size, rows * row, parts * size, row, 1};
}

/* Q, K and V in one input: [B, S, heads, 3, D], or (of one token) one behind the other. */
static bool one_source(ort_cl_step *s, ort_cl_heads *h)
{
    const ort_fact *q = ort_cl_in(s, 0);
    int64_t n = h->heads;
    h->fresh = h->rows;
    if (q->type.rank == 5 && ort_cl_dim(q, 2) == n && ort_cl_dim(q, 3) == 3) {
        h->size = h->value_size = ort_cl_dim(q, 4);
        h->q = part(ort_cl_read(s, 0), h->rows, n, 3, 0, h->size);
        h->k = part(h->q.buffer, h->rows, n, 3, 1, h->size);
        h->v = part(h->q.buffer, h->rows, n, 3, 2, h->size);
        return !ort_cl_has(s->node, 1) && !ort_cl_has(s->node, 2);
    }
    if (q->type.rank != 3 || !is_one_step(s->node) || ort_cl_dim(q, 2) % (3 * n))
        return false;
    h->size = h->value_size = ort_cl_dim(q, 2) / (3 * n);
    h->q = ort_cl_heads_at(ort_cl_read(s, 0), q, 3 * n, h->rows, h->size);
    h->k = h->v = h->q;
    h->k.start = n * h->size;
    h->v.start = 2 * n * h->size;
    return true;
}

/* Keys and values: in one input [B, L, heads, 2, D], cut into heads, or [B, L, heads * size]. */
static bool key_sources(ort_cl_step *s, ort_cl_heads *h)
{
    const ort_fact *k = ort_cl_in(s, 1), *v = ort_cl_in(s, 2);
    int64_t n = h->heads;
    int rank = k->type.rank;
    if (rank == 5) {
        h->fresh = ort_cl_dim(k, 1);
        h->value_size = ort_cl_dim(k, 4);
        h->k = part(ort_cl_read(s, 1), h->fresh, n, 2, 0, h->size);
        h->v = part(h->k.buffer, h->fresh, n, 2, 1, h->size);
        return !v && ort_cl_dim(k, 0) == h->batch && ort_cl_dim(k, 2) == n &&
               ort_cl_dim(k, 3) == 2 && h->value_size == h->size;
    }
    if (!v || v->type.rank != rank || (rank != 3 && rank != 4))
        return false;
    h->fresh = ort_cl_dim(k, rank == 4 ? 2 : 1);
    h->value_size = rank == 4 ? ort_cl_dim(v, 3) : ort_cl_dim(v, 2) / n;
    h->k = ort_cl_heads_in(s, 1, n, h->fresh, h->size);
    h->v = ort_cl_heads_in(s, 2, n, h->fresh, h->value_size);
    return ort_cl_dim(k, 0) == h->batch && ort_cl_dim(v, 0) == h->batch &&
           (rank == 3 || (ort_cl_dim(k, 1) == n && ort_cl_dim(v, 1) == n)) &&
           ort_cl_count(k) == h->batch * h->fresh * n * h->size &&
           ort_cl_count(v) == h->batch * h->fresh * n * h->value_size;
}

static bool multi_sources(ort_cl_step *s, ort_cl_heads *h)
{
    const ort_fact *q = ort_cl_in(s, 0);
    if (q->type.rank != 3 && q->type.rank != 5)
        return false;
    h->batch = ort_cl_dim(q, 0);
    h->rows = ort_cl_dim(q, 1);
    if (is_one_step(s->node) && h->rows != 1)
        return false;
    if (!ort_cl_has(s->node, 1))
        return one_source(s, h);
    if (q->type.rank != 3 || ort_cl_dim(q, 2) % h->heads)
        return false;
    h->size = ort_cl_dim(q, 2) / h->heads;
    h->q = ort_cl_heads_in(s, 0, h->heads, h->rows, h->size);
    return key_sources(s, h);
}

static bool multi_past(const ort_cl_step *s, const slots *in, ort_cl_heads *h, int64_t *past_rows)
{
    const ort_fact *k = ort_cl_in(s, in->past_k), *v = ort_cl_in(s, in->past_v);
    bool shared = k && ort_cl_has(s->node, in->length);
    *past_rows = k ? ort_cl_dim(k, 2) : 0;
    int64_t rows = h->batch * h->heads * *past_rows;
    h->keys = shared ? *past_rows : *past_rows + h->fresh;
    h->past = shared ? 0 : *past_rows;
    return h->keys >= h->fresh && (!k || (ort_cl_count(k) == rows * h->size &&
                                          ort_cl_count(v) == rows * h->value_size));
}

static void add_bias(ort_cl_step *s, ort_cl_heads *h, int input)
{
    int64_t n = h->heads;
    ort_cl_taking t = {.bias = input};
    h->q = ort_cl_take_heads(s, h, h->q, n, h->rows, h->size, &t);
    t.bias_from = n * h->size;
    h->k = ort_cl_take_heads(s, h, h->k, n, h->fresh, h->size, &t);
    t.bias_from = 2 * n * h->size;
    h->v = ort_cl_take_heads(s, h, h->v, n, h->fresh, h->value_size, &t);
}

static ort_status emit_multi(ort_cl_step *s, ort_error *err)
{
    const slots *in = slots_of(s->node);
    const ort_fact *bias = ort_cl_in(s, in->bias);
    int64_t past_rows;
    ort_cl_heads h = {.heads = ort_node_int(s->node, "num_heads", 1), .shared = 1, .left = -1,
                      .right = -1, .causal = ort_node_int(s->node, "unidirectional", 0)};
    if (!multi_sources(s, &h) || !multi_past(s, in, &h, &past_rows) ||
        (bias && ort_cl_count(bias) != h.heads * (2 * h.size + h.value_size)))
        return ort_cl_misfit(err);
    const ort_cl_cache keys = {in->past_k, 1, past_rows, h.size, 0, 0, true};
    const ort_cl_cache values = {in->past_v, 2, past_rows, h.value_size, 0, 0, true};
    bool shared = ort_cl_has(s->node, in->past_k) && ort_cl_has(s->node, in->length);
    if (shared)
        ort_cl_find_places(s, &h, in->length, 2, 0, 0, h.keys - h.fresh + 1);
    if (bias)
        add_bias(s, &h, in->bias);
    h.k = ort_cl_whole(s, &h, h.k, &keys, ort_cl_cache_place(s, &h, &keys));
    h.v = ort_cl_whole(s, &h, h.v, &values, ort_cl_cache_place(s, &h, &values));
    ORT_TRY(ort_cl_find_mask(s, &h, in->mask, in->add, shared, err));
    ort_cl_attend_side_by_side(s, &h);
    return ORT_OK;
}

const ort_cl_row ort_cl_attention_fused_rows[] = {
    {MS, "Attention", claim_packed, emit_packed, .half = true},
    {MS, "MultiHeadAttention", claim_multi, emit_multi, .half = true},
    {MS, "DecoderMaskedMultiHeadAttention", claim_multi, emit_multi, .half = true},
    {0},
};
