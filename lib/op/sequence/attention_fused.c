/* attention_fused.c - Attention, MultiHeadAttention, GroupQueryAttention and SparseAttention of
 * com.microsoft: inference and prepared state. The rest is in attention_fused_shape.c and
 * attention_fused_run.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/sequence/attention_fused.h"
#include "op/shared/integer.h"
#include "op/shared/matrix.h"

/* ---- infer */

static ort_dim scaled(const ort_infer *x, ort_dim dim, int64_t times, int64_t by)
{
    if (by < 1)
        return ort_dim_unknown();
    ort_dim product = ort_dim_mul(x->dims, dim, ort_dim_of(times));
    return ort_dim_div(x->dims, product, ort_dim_of(by));
}

/* Heads of queries, keys and values in one packed projection; 0: none that there can be. */
static int64_t packed_heads(int64_t heads, int64_t kv_heads)
{
    int64_t parts;
    return heads > 0 && kv_heads > 0 && ort_mul_i64(kv_heads, 2, &parts) &&
                   ort_add_i64(parts, heads, &parts)
               ? parts
               : 0;
}

static const ort_type *ranked(const ort_infer *x, int input)
{
    return ort_infer_in_ranked(x, input) ? &x->in[input]->type : NULL;
}

static ort_dtype dtype_of(const ort_infer *x, int input)
{
    const ort_fact *in = ort_infer_in(x, input);
    return in && in->type.kind == ORT_TYPE_TENSOR ? in->type.dtype : ORT_DTYPE_UNDEFINED;
}

static const ort_multi_slots multi_slots = {3, 4, 5, 6, 7, 8, -1, 9};
static const ort_multi_slots one_step_slots = {10, 3, 4, 5, 6, 7, 8, 9};

enum { QUANTIZED = 1, ONE_STEP }; /* variants */

static bool is_one_step(const ort_op *op)
{
    return op->variant == ONE_STEP;
}

/* Rows of the present cache: those of the past and `fresh`. */
static ort_dim total_rows(const ort_infer *x, int past, int axis, ort_dim fresh)
{
    const ort_type *t = ranked(x, past);
    if (!ort_infer_in(x, past))
        return fresh;
    return t && t->rank > axis ? ort_dim_add(x->dims, t->dim[axis], fresh) : ort_dim_unknown();
}

static bool is_quantized(const ort_op *op)
{
    return op->variant == QUANTIZED;
}

static ort_status packed_infer(ort_infer *x, ort_error *err)
{
    bool quantized = is_quantized(x->op);
    int64_t heads = ort_node_attr_int(x->node, "num_heads");
    size_t sizes = 0;
    const int64_t *hidden = ort_node_ints(x->node, "qkv_hidden_sizes", &sizes);
    ort_dim batch = ort_infer_dim(x, 0, 0), steps = ort_infer_dim(x, 0, 1);
    ort_dim packed = ort_dim_merge(ort_infer_dim(x, 1, 1), ort_infer_dim(x, 2, 0)); /* bias */
    ort_dim width = sizes == 3 ? ort_dim_of(hidden[2]) : scaled(x, packed, 1, 3);
    ort_infer_set_shape(x, 0, 3, (ort_dim[]){batch, steps, width});
    ort_dim rows = total_rows(x, quantized ? ORT_QATTENTION_PAST : 4, 3, steps);
    if (ort_infer_in(x, 4) && ort_node_attr_int(x->node, "past_present_share_buffer"))
        rows = ort_infer_dim(x, 4, 3);
    ort_infer_set_shape(x, 1, 5,
                        (ort_dim[]){ort_dim_of(2), batch, ort_dim_of(heads), rows,
                                    scaled(x, width, 1, heads)});
    return ORT_OK;
}

static ort_status multi_infer(ort_infer *x, ort_error *err)
{
    const ort_type *q = ranked(x, 0), *k = ranked(x, 1), *v = ranked(x, 2);
    int64_t heads = ort_node_attr_int(x->node, "num_heads");
    if (q && q->rank != 3 && q->rank != 5)
        return ort_infer_fail(x, err, "the query has %d dims, needs 3 or 5", q->rank);
    if (heads < 1 || heads > INT32_MAX)
        return ort_infer_fail(x, err, "num_heads is %lld", (long long)heads);
    ort_infer_set_dtype(x, 3, dtype_of(x, 0));
    if (!q)
        return ORT_OK;
    const ort_multi_slots *slots = is_one_step(x->op) ? &one_step_slots : &multi_slots;
    ort_dim N = ort_dim_of(heads), D, E, L = ort_dim_unknown();
    D = E = ort_dim_unknown();
    if (q->rank == 5) {
        D = E = q->dim[4];
        L = q->dim[1];
    } else if (!ort_infer_in(x, 1) && is_one_step(x->op)) {
        D = E = scaled(x, q->dim[2], 1, 3 * heads);
        L = q->dim[1];
    } else if (k) {
        D = scaled(x, q->dim[2], 1, heads);
        L = k->rank == 4 ? k->dim[2] : k->dim[1];
        E = k->rank == 5 ? k->dim[4] : v && v->rank == 4 ? v->dim[3]
            : v && v->rank == 3 ? scaled(x, v->dim[2], 1, heads) : E;
    }
    ort_dim width = ort_dim_mul(x->dims, N, E);
    ort_dim rows = total_rows(x, slots->past_k, 2, L), total = rows, filled;
    if (ort_infer_in(x, slots->past_k) && ort_infer_in(x, slots->length)) {
        rows = ort_infer_dim(x, slots->past_k, 2);
        total = ort_infer_int(x, slots->length, 0, &filled) ? ort_dim_add(x->dims, filled, L)
                                                            : ort_dim_unknown();
    }
    ort_infer_set_shape(x, 0, 3, (ort_dim[]){q->dim[0], q->dim[1], width});
    ort_infer_set_shape(x, 3, 4, (ort_dim[]){q->dim[0], N, q->dim[1], total});
    ort_infer_set_shape(x, 1, 4, (ort_dim[]){q->dim[0], N, rows, D});
    ort_infer_set_shape(x, 2, 4, (ort_dim[]){q->dim[0], N, rows, E});
    return ORT_OK;
}

static ort_status group_infer(ort_infer *x, ort_error *err)
{
    const ort_type *q = ranked(x, 0), *past = ranked(x, 3);
    int64_t heads = ort_node_attr_int(x->node, "num_heads");
    int64_t kv_heads = ort_node_attr_int(x->node, "kv_num_heads");
    ort_dim rows = ort_dim_unknown();
    for (int i = 1; i < 3 && !ort_infer_in(x, 3); i++)
        ort_infer_set_dtype(x, i, dtype_of(x, 0));
    if (!q)
        return ORT_OK;
    bool packed = !ort_infer_in(x, 1);
    int64_t parts = packed ? packed_heads(heads, kv_heads) : heads;
    ort_dim D = scaled(x, q->dim[2], 1, parts);
    ort_dim width = packed ? ort_dim_mul(x->dims, D, ort_dim_of(heads)) : q->dim[2];
    if (!ort_infer_int(x, 6, 0, &rows))
        rows = ort_dim_unknown();
    ort_dim total = rows;
    if (ort_infer_in(x, 3))
        rows = past && past->rank == 4 ? ort_dim_max(x->dims, past->dim[2], rows)
                                       : ort_dim_unknown();
    ort_infer_set_shape(x, 0, 3, (ort_dim[]){q->dim[0], q->dim[1], width});
    if (dtype_of(x, 3) == ORT_DTYPE_UINT8) /* two elements a byte */
        D = past && past->rank == 4 ? past->dim[3] : ort_dim_unknown();
    for (int i = 1; i < 3; i++)
        ort_infer_set_shape(x, i, 4, (ort_dim[]){q->dim[0], ort_dim_of(kv_heads), rows, D});
    ort_infer_set_shape(x, 3, 4, (ort_dim[]){q->dim[0], ort_dim_of(heads), q->dim[1], total});
    return ORT_OK;
}

static ort_status sparse_infer(ort_infer *x, ort_error *err)
{
    const ort_type *q = ranked(x, 0);
    int64_t heads = ort_node_attr_int(x->node, "num_heads");
    int64_t parts = packed_heads(heads, ort_node_attr_int(x->node, "kv_num_heads"));
    if (q && ort_infer_in(x, 1)) /* else the query holds keys and values, too */
        ort_infer_set_shape(x, 0, 3, q->dim);
    else if (q)
        ort_infer_set_shape(x, 0, 3,
                            (ort_dim[]){q->dim[0], q->dim[1], scaled(x, q->dim[2], heads, parts)});
    for (int i = 1; i < 3; i++) {
        if (ranked(x, i + 2) && i < x->out_count)
            x->out[i].type = *ranked(x, i + 2);
    }
    return ORT_OK;
}

/* ---- prepare */

/* Of those with as many heads of keys as of queries. */
static const ort_bind even_bind[] = {
    ORT_BIND_AS(ort_fused, heads, "num_heads"),
    ORT_BIND_AS(ort_fused, kv_heads, "num_heads"),
    ORT_BIND(ort_fused, scale, ORT_MAYBE),
    ORT_BIND_AS(ort_fused, mask_value, "mask_filter_value"),
    ORT_BIND_AS(ort_fused, causal, "unidirectional", ORT_MAYBE),
    ORT_BIND_AS(ort_fused, hidden_sizes, "qkv_hidden_sizes", ORT_MAYBE),
    ORT_BIND_AS(ort_fused, rotary, "do_rotary", ORT_MAYBE),
    ORT_BIND_AS(ort_fused, rotary_dim, "rotary_embedding_dim", ORT_MAYBE),
    ORT_BIND_AS(ort_fused, shared, "past_present_share_buffer", ORT_MAYBE), {0}};

#define CACHE_WORDS ORT_WORDS("NONE PER_TENSOR PER_CHANNEL")

static const ort_bind group_bind[] = {
    ORT_BIND_AS(ort_fused, heads, "num_heads"),
    ORT_BIND_AS(ort_fused, kv_heads, "kv_num_heads"),
    ORT_BIND(ort_fused, scale, ORT_MAYBE),
    ORT_BIND(ort_fused, softcap, ORT_MAYBE),
    ORT_BIND(ort_fused, causal, ORT_ELSE(1)),
    ORT_BIND_AS(ort_fused, window, "local_window_size", ORT_MAYBE),
    ORT_BIND_AS(ort_fused, rotary, "do_rotary"),
    ORT_BIND_AS(ort_fused, interleaved, "rotary_interleaved"),
    ORT_BIND_AS(ort_fused, norm_epsilon, "qk_norm_epsilon", ORT_MAYBE),
    ORT_BIND_AS(ort_fused, qk_mode, "qk_output", ORT_MAYBE),
    ORT_BIND_AS(ort_fused, k_quant, "k_quant_type", ORT_MAYBE, CACHE_WORDS),
    ORT_BIND_AS(ort_fused, v_quant, "v_quant_type", ORT_MAYBE, CACHE_WORDS),
    ORT_BIND_AS(ort_fused, sparse_block, "sparse_block_size", ORT_MAYBE), {0}};

static ort_status read_common(ort_prep *p, ort_fused_kind kind, ort_error *err)
{
    ort_fused *f = p->state;
    f->kind = kind;
    f->qk_output = -1;
    f->quantized = is_quantized(p->op);
    f->dtype = ort_prep_dtype(p, f->quantized ? 2 : 0);
    if (f->heads < 1 || f->heads > INT32_MAX)
        return ort_prep_fail(p, err, "num_heads must be positive, below 2^31");
    if (f->dtype != ORT_DTYPE_FLOAT && f->dtype != ORT_DTYPE_FLOAT16 &&
        f->dtype != ORT_DTYPE_BFLOAT16)
        return ort_prep_unsupported_dtype(p, 0, err);
    return ORT_OK;
}

static ort_status refuse(ort_error *err, const char *what)
{
    return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "%s isn't implemented", what);
}

static bool gives(const ort_prep *p, int input)
{
    return input < p->in_count && p->in[input];
}

/* Scale or zero point: absent where it may be, one number, or one per column. */
static bool fits_columns(const ort_tensor *t, int64_t columns)
{
    return !t || ort_tensor_count(t) == 1 || ort_tensor_count(t) == columns;
}

static ort_status pack_bytes(ort_prep *p, ort_fused *f, const ort_tensor *w, ort_error *err)
{
    const ort_tensor *scale = ort_prep_constant(p, ORT_QATTENTION_W_SCALE);
    const ort_tensor *zero = ort_prep_constant(p, ORT_QATTENTION_W_ZERO);
    size_t bytes;
    bool fill;
    if (gives(p, ORT_QATTENTION_W_ZERO) && !zero)
        return ORT_OK;
    if (!fits_columns(scale, w->shape.dim[1]) || !fits_columns(zero, w->shape.dim[1]))
        return ort_prep_fail(p, err, "weight_scale or weight_zero_point has a wrong size");
    if (!ort_integer_fours_bytes(p->k, w->shape.dim[0], w->shape.dim[1], &bytes))
        return ort_prep_fail(p, err, "its weights are too large");
    void *packed = ort_prep_pack(p, "bytes", ort_prep_constants(p), bytes, &fill);
    if (!packed)
        return ort_error_memory(err, bytes);
    const ort_bytes b = ort_bytes_of(w, w->shape.dim[1], 1);
    const ort_zeros zeros = ort_zeros_of(zero);
    if (fill)
        ort_integer_pack_fours(p->k, w->shape.dim[0], w->shape.dim[1], &b, &zeros, packed);
    f->weights = packed;
    ort_prep_absorb(p, 1);
    return ORT_OK;
}

static ort_status pack_floats(ort_prep *p, ort_fused *f, const ort_tensor *w, ort_error *err)
{
    size_t bytes;
    bool fill;
    if (!ort_matrix_packed_bytes_f32(p->k, w->shape.dim[0], w->shape.dim[1], &bytes))
        return ort_prep_fail(p, err, "its weights are too large");
    float *packed = ort_prep_pack(p, "projection", ort_prep_constants(p), bytes, &fill);
    if (!packed)
        return ort_error_memory(err, bytes);
    f->weights = packed;
    ort_prep_absorb(p, 1);
    if (!fill)
        return ORT_OK;
    float *plain = malloc((size_t)ort_tensor_count(w) * sizeof *plain + 1);
    if (!plain)
        return ort_error_memory(err, (size_t)ort_tensor_count(w) * sizeof *plain);
    ort_tensor_to_f32(w, 0, ort_tensor_count(w), plain);
    ort_matrix_pack_f32(p->k, w->shape.dim[0], w->shape.dim[1], plain, w->shape.dim[1], 1, packed);
    free(plain);
    return ORT_OK;
}

static ort_status pack_projection(ort_prep *p, ort_fused *f, ort_error *err)
{
    const ort_tensor *w = ort_prep_constant(p, 1);
    if (!w || w->shape.rank != 2)
        return ORT_OK;
    f->weight_rows = w->shape.dim[0];
    f->weight_columns = w->shape.dim[1];
    return f->quantized ? pack_bytes(p, f, w, err) : pack_floats(p, f, w, err);
}

/* row_inputs: masks, and what counts rows. */
static const ort_appends packed_appends = {
    .count = 1, .pair = {{4, 1, 3}}, .row_inputs = 1u << 3 | 1u << 5 | 1u << ORT_ATTENTION_LENGTH};
static const ort_appends quantized_appends = {
    .count = 1, .pair = {{ORT_QATTENTION_PAST, 1, 3}}, .row_inputs = 1u << ORT_QATTENTION_MASK};
static const ort_appends multi_appends = {
    .count = 2, .pair = {{6, 1, 2}, {7, 2, 2}},
    .row_inputs = 1u << 4 | 1u << 5 | 1u << 8 | 1u << 9, .row_outputs = 1u << 3};
static const ort_appends one_step_appends = {
    .count = 2, .pair = {{5, 1, 2}, {6, 2, 2}}, .row_inputs = 1u << 7, .row_outputs = 1u << 3};
static const ort_appends group_appends = {
    .count = 2, .pair = {{3, 1, 2}, {4, 2, 2}}, .row_inputs = 1u << 6};
static const ort_appends sparse_appends = {
    .count = 2, .pair = {{3, 1, 2}, {4, 2, 2}}, .row_inputs = 1u << 7};

static ort_status packed_prepare(ort_prep *p, ort_error *err)
{
    ort_fused *f = p->state;
    const size_t sizes = f->hidden_sizes.count;
    ORT_TRY(read_common(p, ORT_FUSED_PACKED, err));
    if (sizes != 0 && sizes != 3)
        return ort_prep_fail(p, err, "qkv_hidden_sizes must hold 3 numbers");
    for (size_t i = 0; i < sizes; i++)
        f->hidden[i] = f->hidden_sizes.ptr[i];
    f->multi = (ort_multi_slots){-1, -1, -1, -1, -1, -1, -1, -1};
    p->appends = f->quantized ? &quantized_appends : &packed_appends;
    if (f->quantized && (f->rotary || f->shared)) /* it has no input for the filled length */
        return refuse(err, "do_rotary or past_present_share_buffer of QAttention");
    if (f->shared && gives(p, 4) && !gives(p, ORT_ATTENTION_LENGTH))
        return ort_prep_fail(p, err, "past_present_share_buffer needs past_sequence_length");
    return pack_projection(p, f, err);
}

static ort_status multi_prepare(ort_prep *p, ort_error *err)
{
    ort_fused *f = p->state;
    ORT_TRY(read_common(p, ORT_FUSED_MULTI, err));
    f->one_step = is_one_step(p->op);
    f->multi = f->one_step ? one_step_slots : multi_slots;
    p->appends = f->one_step ? &one_step_appends : &multi_appends;
    f->qk_output = p->out_count > 3 ? 3 : -1;
    f->qk_mode = 2; /* with mask, before the softmax */
    if (gives(p, f->multi.indirection) && !gives(p, f->multi.length))
        return ort_prep_fail(p, err, "cache_indirection needs past_sequence_length");
    if (f->one_step && gives(p, f->multi.past_k) && !f->shared)
        return ort_prep_fail(p, err, "a past state needs past_present_share_buffer = 1");
    return ORT_OK;
}

/* How GroupQueryAttention stores its cache: as the query's type, or in 8 or 4 bits. */
static ort_status read_cache_format(ort_prep *p, ort_fused *f, ort_error *err)
{
    int64_t bits = ort_node_attr_int(p->node, "kv_cache_bit_width");
    ort_dtype cache = ort_prep_dtype(p, 3);
    if (f->k_quant == ORT_CACHE_PLAIN && f->v_quant == ORT_CACHE_PLAIN) {
        if (gives(p, 3) && cache != f->dtype)
            return refuse(err, "a cache of another type than the query");
        return ORT_OK;
    }
    if (f->k_quant != f->v_quant)
        return refuse(err, "a cache with keys and values quantized in different ways");
    f->cache.per_channel = f->k_quant == ORT_CACHE_PER_CHANNEL;
    f->cache.bits = (int)bits;
    if (bits != 8 && bits != 4)
        return ort_prep_fail(p, err, "kv_cache_bit_width is %lld, needs 8 or 4", (long long)bits);
    if (!gives(p, f->slots.k_scale) || !gives(p, f->slots.v_scale) || !gives(p, 3))
        return ort_prep_fail(p, err, "a quantized cache needs past_key, past_value, k_scale and "
                             "v_scale");
    if (cache != (bits == 8 ? ORT_DTYPE_INT8 : ORT_DTYPE_UINT8))
        return ort_prep_unsupported_dtype(p, 3, err);
    return ORT_OK;
}

static ort_status group_prepare(ort_prep *p, ort_error *err)
{
    ort_fused *f = p->state;
    const int stage = f->qk_mode;
    ORT_TRY(read_common(p, ORT_FUSED_GROUP, err));
    f->slots = (ort_group_slots){.lengths = 5, .total = 6, .cos = 7, .sin = 8, .positions = 9,
                                 .add = 10, .sink = 11, .k_scale = 12, .v_scale = 13, .q_norm = 14,
                                 .k_norm = 15, .length_offset = 1};
    p->appends = &group_appends;
    f->smooth = ort_node_attr_int(p->node, "smooth_softmax") == 1;
    if (f->kv_heads < 1 || f->heads % f->kv_heads != 0)
        return ort_prep_fail(p, err, "num_heads must be a multiple of kv_num_heads");
    if (f->rotary && (!gives(p, 7) || !gives(p, 8)))
        return ort_prep_fail(p, err, "do_rotary needs cos_cache and sin_cache");
    ORT_TRY(read_cache_format(p, f, err));
    if (ort_node_attr_int(p->node, "sliding_window_cache"))
        return refuse(err, "sliding_window_cache");
    if (stage < 0 || stage > 2)
        return ort_prep_fail(p, err, "qk_output is %d, needs 0, 1 or 2", stage);
    f->qk_output = stage && p->out_count > 3 ? 3 : -1;
    f->qk_mode = stage == 2 ? 3 : 2; /* after the softmax, or before it with mask and softcap */
    return ORT_OK;
}

static ort_status sparse_prepare(ort_prep *p, ort_error *err)
{
    ort_fused *f = p->state;
    ORT_TRY(read_common(p, ORT_FUSED_GROUP, err));
    f->slots = (ort_group_slots){.lengths = 8, .total = 7, .cos = 9, .sin = 10, .positions = -1,
                                 .add = -1, .sink = -1, .k_scale = -1, .v_scale = -1, .q_norm = -1,
                                 .k_norm = -1};
    p->appends = &sparse_appends;
    if (f->kv_heads < 1 || f->heads % f->kv_heads != 0)
        return ort_prep_fail(p, err, "num_heads must be a multiple of kv_num_heads");
    if (f->sparse_block < 1 || f->sparse_block > INT32_MAX)
        return ort_prep_fail(p, err, "sparse_block_size is %lld", (long long)f->sparse_block);
    if (f->rotary && (!gives(p, 9) || !gives(p, 10)))
        return ort_prep_fail(p, err, "do_rotary needs cos_cache and sin_cache");
    return ORT_OK;
}

static const ort_op_impl packed_impl = {
    .state = sizeof(ort_fused), .bind = even_bind,
    .rule = "[_,_,_] [_,_]", .infer = packed_infer, .prepare = packed_prepare,
    .shape = ort_fused_shape, .run = ort_fused_run,
};
static const ort_op_impl multi_impl = {
    .state = sizeof(ort_fused), .bind = even_bind, .infer = multi_infer, .prepare = multi_prepare,
    .shape = ort_fused_shape, .run = ort_fused_run,
};
static const ort_op_impl group_impl = {
    .state = sizeof(ort_fused), .bind = group_bind,
    .rule = "[_,_,_]", .infer = group_infer, .prepare = group_prepare,
    .shape = ort_fused_shape, .run = ort_fused_run,
};

static const ort_op_impl sparse_impl = {
    .state = sizeof(ort_fused), .bind = group_bind,
    .rule = "[_,_,_]", .infer = sparse_infer, .prepare = sparse_prepare,
    .shape = ort_fused_shape, .run = ort_fused_run,
};

/* ---- rows */

const ort_op ort_ops_attention_fused[] = {
    {MS, "Attention", 1,
     "input:T,weights:T,bias?:T,mask_index?:M,past?:T,attention_bias?:T,past_sequence_length?:M -> "
     "output:T,present?:T",
     "T:f32,f16,bf16 M:i32",
     "do_rotary:i=0 mask_filter_value:f=-10000 num_heads:i! past_present_share_buffer:i=0 "
     "qkv_hidden_sizes:is rotary_embedding_dim:i=0 scale:f unidirectional:i=0", 0, &packed_impl},
    {MS, "QAttention", 1,
     "input:T1,weight:T2,bias:T3,input_scale:T3,weight_scale:T3,mask_index?:T4,"
     "input_zero_point?:T1,weight_zero_point?:T2,past?:T3 -> output:T3,present?:T3",
     "T1:i8,u8 T2:i8,u8 T3:f32,f16 T4:i32",
     "do_rotary:i=0 mask_filter_value:f=-10000 num_heads:i! past_present_share_buffer:i=0 scale:f "
     "unidirectional:i=0", 0, &packed_impl, NULL, QUANTIZED},
    {MS, "MultiHeadAttention", 1,
     "query:T,key?:T,value?:T,bias?:T,key_padding_mask?:M,attention_bias?:T,past_key?:T,"
     "past_value?:T,past_sequence_length?:M,cache_indirection?:M -> "
     "output:T,present_key?:T,present_value?:T,qk?:QK",
     "T:f32,f16,bf16 QK:f32,f16,bf16 M:i32",
     "mask_filter_value:f=-10000 num_heads:i! scale:f unidirectional:i=0", 0, &multi_impl},
    {MS, "DecoderMaskedMultiHeadAttention", 1,
     "query:T,key?:T,value?:T,mask_index?:M,attention_bias?:T,past_key?:T,past_value?:T,"
     "past_sequence_length?:M,beam_width?:M,cache_indirection?:M,bias?:T -> "
     "output:T,present_key?:T,present_value?:T,qk?:QK",
     "T:f32,f16 QK:f32,f16 M:i32",
     "mask_filter_value:f=-10000 num_heads:i! output_qk:i=0 past_present_share_buffer:i=0 scale:f",
     0, &multi_impl, NULL, ONE_STEP},
    {MS, "GroupQueryAttention", 1,
     "query:T,key?:T,value?:T,past_key?:C,past_value?:C,seqlens_k:M,total_sequence_length:M,"
     "cos_cache?:T,sin_cache?:T,position_ids?:i64,attention_bias?:T,head_sink?:T,k_scale?:f32,"
     "v_scale?:f32,q_norm_weight?:T,k_norm_weight?:T -> "
     "output:T,present_key?:C,present_value?:C,output_qk?:T",
     "T:f32,f16,bf16 C:f32,f16,bf16,i8,u8 M:i32",
     "causal:i=1 do_rotary:i=0 k_quant_type:s=NONE kv_cache_bit_width:i=8 kv_num_heads:i! "
     "local_window_size:i=-1 num_heads:i! qk_norm_epsilon:f=1e-06 qk_output:i=0 "
     "rotary_interleaved:i=0 scale:f sliding_window_cache:i=0 smooth_softmax:i=0 softcap:f=0 "
     "v_quant_type:s=NONE", 0, &group_impl},
    {MS, "SparseAttention", 1,
     "query:T,key?:T,value?:T,past_key:T,past_value:T,block_row_indices:M,block_col_indices:M,"
     "total_sequence_length:M,key_total_sequence_lengths:M,cos_cache?:T,sin_cache?:T -> "
     "output:T,present_key:T,present_value:T", "T:f32,f16,bf16 M:i32",
     "do_rotary:i=0 kv_num_heads:i! num_heads:i! rotary_interleaved:i=0 scale:f "
     "sparse_block_size:i!", 0, &sparse_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
