/* embed_norm.c - EmbedLayerNormalization and QEmbedLayerNormalization of com.microsoft: the input
 * layer of BERT. The quantized one has a scale and a zero point for each table. That of
 * ORT_INTERNAL has tables of 16 bits beside others of float, and the rest in float.
 *
 * Rows of word, position and (optional) segment tables are added and normalized; a token is a task
 * of its own. The mask, when given, is turned into the number of leading ones of each batch row.
 */
#include <string.h>

#include "base/checked.h"
#include "op/op.h"

enum { IN_IDS, IN_SEGMENTS, IN_WORDS, IN_PLACES, IN_SEGMENT_TABLE, IN_GAMMA, IN_BETA, IN_MASK,
       IN_POSITIONS };
/* Quantized: the scale of table input `i` and its zero point. */
#define SCALE_OF(i) ((i) - IN_WORDS + 8)
#define ZERO_OF(i) ((i) - IN_WORDS + 13)

typedef struct embed_walk {
    const ort_call *call;
    const ort_tensor *ids, *segments, *words, *places, *segment_table, *positions;
    ort_tensor *y, *sum;
    const float *gamma, *beta;
    bool quantized;
    int64_t tokens, steps, hidden;
    float epsilon;
} embed_walk;

enum { FLOAT_TABLES, QUANTIZED_TABLES };

typedef struct embed_state {
    float epsilon;
} embed_state;

static const ort_bind embed_bind[] = {ORT_BIND(embed_state, epsilon), {0}};

static ort_status embed_shape(ort_shaping *s, ort_error *err)
{
    const ort_tensor *words = s->in[IN_WORDS];
    if (words->shape.rank != 2 || words->shape.dim[1] > (int64_t)1 << 24)
        return ort_error_set(err, ORT_ERROR_RUN, "word_embedding must be [words, hidden]");
    s->workspace_bytes = (size_t)words->shape.dim[1] * 2 * sizeof(float);
    s->thread_bytes = (size_t)words->shape.dim[1] * 2 * sizeof(float);
    return ORT_OK;
}

/* Row of a table for one token; -1 when the table has no such row. */
static int64_t row_of(const ort_tensor *index, int64_t at, const ort_tensor *table)
{
    int64_t row = ort_tensor_get_i64(index, at);
    return row >= 0 && row < table->shape.dim[0] ? row : -1;
}

static int64_t place_of(const embed_walk *w, int64_t token)
{
    int64_t step = token % w->steps;
    if (!w->positions)
        return step < w->places->shape.dim[0] ? step : -1;
    bool shared = ort_tensor_count(w->positions) == w->steps;
    return row_of(w->positions, shared ? step : token, w->places);
}

/* `count` elements of a table input from `first` on, as floats. */
static void load(const ort_call *call, bool quantized, int input, int64_t first, int64_t count,
                 float *out)
{
    ort_tensor_to_f32(ort_call_in(call, input), first, count, out);
    if (!quantized)
        return;
    float scale = (float)ort_tensor_get_f64(ort_call_in(call, SCALE_OF(input)), 0);
    float zero = (float)ort_tensor_get_f64(ort_call_in(call, ZERO_OF(input)), 0);
    for (int64_t i = 0; i < count; i++)
        out[i] = (out[i] - zero) * scale;
}

/* A row of a table as floats: where it lies, or in `scratch`. */
static const float *row_at(const embed_walk *w, int input, int64_t row, float *scratch)
{
    const ort_tensor *table = ort_call_in(w->call, input);
    if (!w->quantized && table->dtype == ORT_DTYPE_FLOAT)
        return (const float *)table->data + row * w->hidden;
    load(w->call, w->quantized, input, row * w->hidden, w->hidden, scratch);
    return scratch;
}

static void embed_task(void *arg, size_t task, int thread)
{
    const embed_walk *w = arg;
    const ort_kernels *k = w->call->k;
    int64_t token = (int64_t)task;
    size_t n = (size_t)w->hidden;
    float *sum = ort_call_scratch(w->call, thread), *row = sum + w->hidden;
    bool direct = w->y && w->y->dtype == ORT_DTYPE_FLOAT;
    const float *words = row_at(w, IN_WORDS, row_of(w->ids, token, w->words), sum);
    const float *places = row_at(w, IN_PLACES, place_of(w, token), row);
    k->math.binary[ORT_BINARY_ADD](words, places, sum, n, ORT_FORM_VV);
    if (w->segments && w->segment_table) {
        const float *segment = row_at(w, IN_SEGMENT_TABLE,
                                      row_of(w->segments, token, w->segment_table), row);
        k->math.binary[ORT_BINARY_ADD](sum, segment, sum, n, ORT_FORM_VV);
    }
    if (w->sum)
        ort_tensor_from_f32(sum, w->sum, token * w->hidden, w->hidden);
    if (direct)
        row = (float *)w->y->data + token * w->hidden;
    k->math.layer_norm(sum, w->gamma, w->beta, row, n, w->epsilon, NULL, NULL);
    if (w->y && !direct)
        ort_tensor_from_f32(row, w->y, token * w->hidden, w->hidden);
}

static bool is_table(const ort_tensor *t, int64_t hidden)
{
    return !t || (t->shape.rank == 2 && t->shape.dim[1] == hidden);
}

static ort_status embed_check(const embed_walk *w, ort_error *err)
{
    bool shared = w->positions && ort_tensor_count(w->positions) == w->steps;
    if (w->ids->shape.rank != 2 || !is_table(w->places, w->hidden) ||
        !is_table(w->segment_table, w->hidden) ||
        (w->segments && ort_tensor_count(w->segments) != w->tokens) ||
        (w->positions && !shared && ort_tensor_count(w->positions) != w->tokens))
        return ort_call_fail(w->call, err, "the shapes of its ids and tables don't fit together");
    for (int64_t t = 0; t < w->tokens; t++)
        if (row_of(w->ids, t, w->words) < 0 || place_of(w, t) < 0 ||
            (w->segments && w->segment_table && row_of(w->segments, t, w->segment_table) < 0))
            return ort_call_fail(w->call, err, "an id or position of token %lld is outside its "
                                 "table", (long long)t);
    return ORT_OK;
}

static void count_mask(const ort_call *call, int64_t batch, int64_t steps)
{
    const ort_tensor *mask = ort_call_in(call, IN_MASK);
    ort_tensor *out = ort_call_out(call, 1);
    for (int64_t b = 0; out && b < batch; b++) {
        int64_t length = 0;
        while (mask && length < steps && ort_tensor_get_i64(mask, b * steps + length) == 1)
            length++;
        ort_tensor_set_i64(out, b, length);
    }
}

static bool is_one(const ort_call *call, int input)
{
    const ort_tensor *t = ort_call_in(call, input);
    return t && ort_tensor_count(t) == 1;
}

static ort_status embed_run(ort_call *call, ort_error *err)
{
    const ort_tensor *ids = ort_call_in(call, IN_IDS), *mask = ort_call_in(call, IN_MASK);
    const ort_tensor *gamma = ort_call_in(call, IN_GAMMA), *beta = ort_call_in(call, IN_BETA);
    embed_walk w = {.call = call, .ids = ids, .segments = ort_call_in(call, IN_SEGMENTS),
                    .words = ort_call_in(call, IN_WORDS), .places = ort_call_in(call, IN_PLACES),
                    .segment_table = ort_call_in(call, IN_SEGMENT_TABLE),
                    .quantized = call->node->op->variant == QUANTIZED_TABLES,
                    .y = ort_call_out(call, 0),
                    .sum = ort_call_out(call, 2), .tokens = ort_tensor_count(ids),
                    .epsilon = ((const embed_state *)call->state)->epsilon};
    float *parameters = call->workspace;
    if (!w.quantized)
        w.positions = ort_call_in(call, IN_POSITIONS);
    for (int i = IN_WORDS; w.quantized && i <= IN_BETA; i++)
        if (ort_call_in(call, i) && !(is_one(call, SCALE_OF(i)) && is_one(call, ZERO_OF(i))))
            return ort_call_fail(call, err, "input %d needs one scale and one zero point", i);
    w.hidden = w.words->shape.dim[1];
    w.steps = ids->shape.rank == 2 ? ids->shape.dim[1] : 0;
    if (ort_tensor_count(gamma) != w.hidden || ort_tensor_count(beta) != w.hidden ||
        (mask && ort_tensor_count(mask) != w.tokens))
        return ort_call_fail(call, err, "gamma, beta or the mask has a wrong size");
    load(call, w.quantized, IN_GAMMA, 0, w.hidden, parameters);
    load(call, w.quantized, IN_BETA, 0, w.hidden, parameters + w.hidden);
    w.gamma = parameters;
    w.beta = parameters + w.hidden;
    ORT_TRY(embed_check(&w, err));
    ort_call_parallel(call, (size_t)w.tokens, embed_task, &w);
    count_mask(call, ids->shape.dim[0], w.steps);
    return ORT_OK;
}

static const ort_op_impl embed_impl = {
    .state = sizeof(embed_state), .bind = embed_bind,
    .rule = "[B,S] - [_,H] -> [B,S,H] [B] [B,S,H]", .shape = embed_shape, .run = embed_run,
};

/* ---- rows */

const ort_op ort_ops_embed_norm[] = {
    {MS, "EmbedLayerNormalization", 1,
     "input_ids:T1,segment_ids?:T1,word_embedding:T,position_embedding:T,segment_embedding?:T,"
     "gamma:T,beta:T,mask?:T1,position_ids?:T1 -> output:T,mask_index?:T1,embedding_sum?:T",
     "T1:i32 T:f32,f16", "epsilon:f=1e-12 mask_index_type:i=0", ORT_TRAIT_READS_UNALIGNED,
     &embed_impl},
    {ORT_INTERNAL, "EmbedLayerNormalization", 1,
     "input_ids:T1,segment_ids?:T1,word_embedding:W,position_embedding:P,segment_embedding?:S,"
     "gamma:T,beta:T,mask?:T1,position_ids?:T1 -> output:T,mask_index?:T1,embedding_sum?:T",
     "T1:i32 W:f32,f16,bf16 P:f32,f16,bf16 S:f32,f16,bf16 T:f32",
     "epsilon:f=1e-12 mask_index_type:i=0", ORT_TRAIT_READS_UNALIGNED, &embed_impl},
    {MS, "QEmbedLayerNormalization", 1,
     "input_ids:T1,segment_ids?:T1,word_embedding_quant:T2,position_embedding_quant:T2,"
     "segment_embedding?:T2,gamma_quant:T2,beta_quant:T2,mask?:T1,word_embedding_scale:T,"
     "position_embedding_scale:T,segment_embedding_scale?:T,gamma_scale:T,beta_scale:T,"
     "word_embedding_zero_point:T2,position_embedding_zero_point:T2,"
     "segment_embedding_zero_point?:T2,gamma_zero_point:T2,beta_zero_point:T2 -> "
     "layernorm_out:T,mask_index_out:T1",
     "T1:i32 T2:i8,u8 T:f32", "epsilon:f=1e-12", 0, &embed_impl, .variant = QUANTIZED_TABLES},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
