/* opencl_attention_group.c - GroupQueryAttention: sequences of a batch have lengths of their own,
 * which stay on the device and are looked at there.
 */
#include "base/error.h"
#include "provider/opencl/sequence/opencl_attention.h"
#include "tensor/scalar.h"

enum { LENGTHS = 5, TOTAL, COSINES, SINES, POSITIONS, ADD, SINK, K_SCALE, V_SCALE, Q_NORM, K_NORM };

static bool claim_group(const ort_graph *graph, const ort_node *node, const char **why)
{
    int64_t heads = ort_node_int(node, "num_heads", 0);
    int64_t kv_heads = ort_node_int(node, "kv_num_heads", 0);
    *why = "scores as a result, and a cache of codes or that slides, have no kernel";
    if (ort_cl_gives(node, 3) || ort_cl_has(node, K_SCALE) || ort_cl_has(node, V_SCALE) ||
        ort_node_int(node, "sliding_window_cache", 0))
        return false;
    *why = "the element types have no kernel";
    for (int i = 0; i < node->input_count; i++)
        if (ort_cl_has(node, i) &&
            ort_cl_type(graph, node, i) != (i == LENGTHS || i == TOTAL ? ORT_DTYPE_INT32
                                            : i == POSITIONS           ? ORT_DTYPE_INT64
                                                                       : ORT_DTYPE_FLOAT))
            return false;
    *why = "total_sequence_length isn't known when a plan is made";
    if (!ort_cl_has(node, TOTAL) || !ort_cl_is_given(graph, node, TOTAL))
        return false;
    *why = "this form of attention has no kernel";
    const struct {
        int input, rank;
    } ranks[] = {{1, 3}, {2, 3}, {3, 4}, {4, 4}, {COSINES, 2}, {SINES, 2}, {ADD, 4}};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (!ort_cl_has_rank(graph, node, ranks[i].input, ranks[i].rank, ranks[i].rank))
            return false;
    bool turns = ort_node_int(node, "do_rotary", 0);
    return kv_heads > 0 && heads > 0 && heads % kv_heads == 0 && ort_cl_has(node, LENGTHS) &&
           ort_cl_has(node, 1) == ort_cl_has(node, 2) &&
           ort_cl_has(node, 3) == ort_cl_has(node, 4) &&
           (!turns || (ort_cl_has(node, COSINES) && ort_cl_has(node, SINES)));
}

static bool group_sources(ort_cl_step *s, ort_cl_heads *h)
{
    const ort_fact *q = ort_cl_in(s, 0), *k = ort_cl_in(s, 1), *v = ort_cl_in(s, 2);
    int64_t count = h->heads * h->shared, parts = k ? count : count + 2 * h->heads;
    if (q->type.rank != 3 || ort_cl_dim(q, 2) % parts)
        return false;
    h->batch = ort_cl_dim(q, 0);
    h->rows = h->fresh = ort_cl_dim(q, 1);
    h->size = h->value_size = ort_cl_dim(q, 2) / parts;
    h->q = ort_cl_heads_at(ort_cl_read(s, 0), q, parts, h->rows, h->size);
    if (k) {
        int64_t all = h->batch * h->rows * h->heads * h->size;
        h->k = ort_cl_heads_at(ort_cl_read(s, 1), k, h->heads, h->rows, h->size);
        h->v = ort_cl_heads_at(ort_cl_read(s, 2), v, h->heads, h->rows, h->size);
        return ort_cl_count(k) == all && ort_cl_count(v) == all &&
               ort_cl_dim(k, 1) == h->rows && ort_cl_dim(v, 1) == h->rows;
    }
    h->k = h->v = h->q;
    h->k.start = count * h->size;
    h->v.start = (count + h->heads) * h->size;
    return true;
}

/* How many keys there are, and where the new ones begin. */
static ort_status group_keys(ort_cl_step *s, ort_cl_heads *h, int64_t *past_rows, bool *first,
                             ort_error *err)
{
    const ort_fact *k = ort_cl_in(s, 3), *v = ort_cl_in(s, 4);
    int64_t total;
    ORT_TRY(ort_cl_known(s, TOTAL, err));
    if (!ort_tensor_one_i64(ort_cl_in(s, TOTAL)->value, &total))
        return ort_cl_misfit(err);
    *past_rows = k ? ort_cl_dim(k, 2) : 0;
    *first = total == h->rows;
    h->keys = total > *past_rows ? total : *past_rows;
    int64_t old = h->batch * h->heads * *past_rows * h->size;
    if ((k && (ort_cl_count(k) != old || ort_cl_count(v) != old)) || h->keys < h->rows ||
        ort_cl_count(ort_cl_in(s, LENGTHS)) != h->batch)
        return ort_cl_misfit(err);
    ort_cl_find_places(s, h, LENGTHS, *first ? 1 : 0, 1, *first ? 1 : h->rows, h->keys + 1);
    return ORT_OK;
}

/* Vectors of heads over the root of their mean square, times a weight. */
static ort_cl_matrix normalize(ort_cl_step *s, const ort_cl_heads *h, ort_cl_matrix from,
                               int64_t heads, int input)
{
    const ort_cl_taking plain = {.bias = -1};
    const ort_cl_matrix to = ort_cl_take_heads(s, h, from, heads, h->rows, h->size, &plain);
    const int64_t grid[3] = {h->batch * heads * h->rows, 1, 1};
    int weight = ort_cl_read(s, input);
    ort_cl_launch_grid(s, "rows", "rms_norm", grid, NULL, "bbbbbb|iiiiif", to.buffer, to.buffer,
                       weight, weight, to.buffer, to.buffer, (int64_t)0, (int64_t)0, (int64_t)0,
                       (int64_t)0, h->size,
                       (double)ort_node_float(s->node, "qk_norm_epsilon", 1e-6f));
    return to;
}

static ort_status turn_group(ort_cl_step *s, ort_cl_heads *h, bool first, ort_error *err)
{
    const ort_fact *table = ort_cl_in(s, COSINES), *positions = ort_cl_in(s, POSITIONS);
    if (!ort_node_int(s->node, "do_rotary", 0))
        return ORT_OK;
    int64_t count = positions ? ort_cl_count(positions) : 0;
    ort_cl_taking t = {.bias = -1, .half_size = ort_cl_dim(table, 1),
                       .table_rows = ort_cl_dim(table, 0),
                       .positions = positions ? POSITIONS : -1,
                       .how = !positions ? 0 : first ? 2 : 1,
                       .interleaved = ort_node_int(s->node, "rotary_interleaved", 0)};
    if (ort_cl_count(table) != ort_cl_count(ort_cl_in(s, SINES)) || 2 * t.half_size > h->size ||
        (positions && (count < 1 || (!first && count != h->batch * h->rows))))
        return ort_cl_misfit(err);
    /* Tables of angles stay floats. */
    t.cosines = ort_cl_read_value(s->plan, s->node->inputs[COSINES], false);
    t.sines = ort_cl_read_value(s->plan, s->node->inputs[SINES], false);
    h->q = ort_cl_take_heads(s, h, h->q, h->heads * h->shared, h->rows, h->size, &t);
    h->k = ort_cl_take_heads(s, h, h->k, h->heads, h->rows, h->size, &t);
    return ORT_OK;
}

static ort_status prepare_heads(ort_cl_step *s, ort_cl_heads *h, bool first, ort_error *err)
{
    for (int i = Q_NORM; i <= K_NORM; i++)
        if (ort_cl_has(s->node, i) && ort_cl_count(ort_cl_in(s, i)) != h->size)
            return ort_cl_misfit(err);
    if (ort_cl_has(s->node, Q_NORM))
        h->q = normalize(s, h, h->q, h->heads * h->shared, Q_NORM);
    if (ort_cl_has(s->node, K_NORM))
        h->k = normalize(s, h, h->k, h->heads, K_NORM);
    return turn_group(s, h, first, err);
}

static void find_sinks(ort_cl_step *s, ort_cl_heads *h)
{
    bool given = ort_cl_has(s->node, SINK);
    if (given && ort_cl_count(ort_cl_in(s, SINK)) == h->heads * h->shared) {
        h->has_sinks = ORT_CL_SINKS;
        h->sinks = ort_cl_read(s, SINK);
    } else if (given || ort_node_int(s->node, "smooth_softmax", 0) == 1) {
        h->has_sinks = ORT_CL_ZERO_SINKS;
    }
}

static ort_status emit_group(ort_cl_step *s, ort_error *err)
{
    int64_t window = ort_node_int(s->node, "local_window_size", -1), past_rows = 0;
    ort_cl_heads h = {.heads = ort_node_int(s->node, "kv_num_heads", 1),
                      .left = window > 0 ? window - 1 : -1, .right = -1,
                      .causal = ort_node_int(s->node, "causal", 1),
                      .softcap = ort_node_float(s->node, "softcap", 0)};
    bool first = false;
    h.shared = ort_node_int(s->node, "num_heads", 1) / h.heads;
    if (!group_sources(s, &h))
        return ort_cl_misfit(err);
    ORT_TRY(group_keys(s, &h, &past_rows, &first, err));
    ORT_TRY(prepare_heads(s, &h, first, err));
    const ort_cl_cache keys = {3, 1, past_rows, h.size, 0, 0, false};
    const ort_cl_cache values = {4, 2, past_rows, h.size, 0, 0, false};
    h.k = ort_cl_whole(s, &h, h.k, &keys, ort_cl_cache_place(s, &h, &keys));
    h.v = ort_cl_whole(s, &h, h.v, &values, ort_cl_cache_place(s, &h, &values));
    ORT_TRY(ort_cl_find_mask(s, &h, -1, ADD, false, err));
    find_sinks(s, &h);
    ort_cl_attend_side_by_side(s, &h);
    return ORT_OK;
}

const ort_cl_row ort_cl_attention_group_rows[] = {
    {MS, "GroupQueryAttention", claim_group, emit_group, .half = true},
    {0},
};
