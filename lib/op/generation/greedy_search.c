/* greedy_search.c - com.microsoft GreedySearch and Sampling: one sequence per prompt grows by the
 * best token, or by one drawn from the likely ones, until every sequence has met its end or is
 * full (generation.h has the steps).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/generation/generation.h"
#include "op/number.h"

static ort_status greedy_infer(ort_infer *x, ort_error *err)
{
    ort_dim length = ort_dim_unknown();
    ORT_TRY(ort_generation_infer(x, err));
    if (!ort_infer_int(x, 1, 0, &length))
        length = ort_dim_unknown();
    int64_t vocab = ort_node_attr_int(x->node, "vocab_size");
    ort_dim batch = ort_infer_dim(x, 0, 0);
    ort_infer_set_shape(x, 0, 2, (ort_dim[]){batch, length});
    if (x->out_count > 1)
        ort_infer_set_shape(x, 1, 2,
                            (ort_dim[]){batch, vocab > 0 ? ort_dim_of(vocab) : ort_dim_unknown()});
    return ORT_OK;
}

static int32_t best_token(const float *scores, int64_t vocab)
{
    int64_t best = 0;
    for (int64_t v = 1; v < vocab; v++)
        if (scores[v] > scores[best])
            best = v;
    return (int32_t)best;
}

/* ---- Sampling */

typedef struct ranked {
    float score, sum; /* sum: of the probabilities up to here */
    int32_t token;
} ranked;

typedef struct sampler {
    uint64_t x; /* of the stream */
    const ort_generation_attrs *attrs;
    ranked *order; /* [vocab] */
} sampler;

#define MODULUS 2147483647u

static void seed(sampler *s, uint64_t value)
{
    s->x = value % MODULUS ? value % MODULUS : 1;
}

/* The next number of [0, 1). The stream is x <- 16807 x mod 2^31 - 1, from which two make a number,
 * the first one the low digit: the default engine of the C++ library that onnxruntime is built with
 * on Linux, so that equal seeds give equal texts. */
static double draw(sampler *s)
{
    double base = MODULUS - 1, low, high;
    s->x = s->x * 16807 % MODULUS;
    low = (double)(s->x - 1);
    s->x = s->x * 16807 % MODULUS;
    high = (double)(s->x - 1);
    return fmin((low + high * base) / (base * base), nextafter(1.0, 0.0));
}

static int rising(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? -1 : 1) : x->token - y->token;
}

static int falling(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->score != y->score ? (x->score > y->score ? -1 : 1) : x->token - y->token;
}

static void rank_tokens(sampler *s, const float *scores, int64_t vocab)
{
    float most = scores[best_token(scores, vocab)], sum = 0, before = 0;
    for (int64_t v = 0; v < vocab; v++)
        s->order[v] = (ranked){.score = scores[v], .token = (int32_t)v};
    qsort(s->order, (size_t)vocab, sizeof *s->order, s->attrs->custom ? falling : rising);
    for (int64_t v = 0; v < vocab; v++)
        sum += expf(s->order[v].score - most);
    for (int64_t v = 0; v < vocab; v++)
        before = s->order[v].sum = before + expf(s->order[v].score - most) / sum;
}

/* Unlikely tokens get filter_value: from below those that together have at most 1 - top_p, but
 * never the last min_tokens_to_keep; with custom, from above those behind the one with which the
 * sum exceeds top_p. */
static void filter_tokens(const sampler *s, float *scores, int64_t vocab)
{
    if (!s->attrs->custom) {
        for (int64_t v = 0; v == 0 || v < vocab - s->attrs->keep; v++)
            if (s->order[v].sum <= 1 - s->attrs->top_p)
                scores[s->order[v].token] = s->attrs->filter;
        return;
    }
    for (int64_t v = 0; v + 1 < vocab; v++)
        if (s->order[v].sum > s->attrs->top_p)
            scores[s->order[v + 1].token] = s->attrs->filter;
}

static int32_t draw_token(sampler *s, const float *scores, int64_t vocab)
{
    double most = scores[best_token(scores, vocab)], sum = 0, wanted;
    int64_t v = 0;
    for (int64_t i = 0; i < vocab; i++)
        sum += isfinite(scores[i]) ? exp(scores[i] - most) : 0;
    wanted = draw(s) * sum;
    sum = 0;
    for (; v + 1 < vocab; v++) {
        sum += isfinite(scores[v]) ? exp(scores[v] - most) : 0;
        if (sum > wanted)
            break;
    }
    return (int32_t)v;
}

static int32_t sample_token(sampler *s, float *scores, int64_t vocab)
{
    rank_tokens(s, scores, vocab);
    filter_tokens(s, scores, vocab);
    return draw_token(s, scores, vocab);
}

/* ---- the search */

static ort_status choose(ort_generation *g, sampler *s, bool *done, bool *all_done, ort_error *err)
{
    if (s && !s->order)
        s->order = ort_work_malloc((size_t)g->vocab * sizeof *s->order);
    if (s && !s->order)
        return ort_error_memory(err, (size_t)g->vocab * sizeof *s->order);
    *all_done = true;
    for (int64_t b = 0; b < g->rows; b++) {
        float *scores = g->scores + b * g->vocab;
        int32_t token = s ? sample_token(s, scores, g->vocab) : best_token(scores, g->vocab);
        done[b] = done[b] || token == g->attrs->eos;
        g->from[b] = (int32_t)b;
        g->tokens[b] = done[b] ? (int32_t)g->attrs->pad : token;
        *all_done = *all_done && done[b];
    }
    return ORT_OK;
}

static ort_status search(ort_generation *g, sampler *s, bool *done, ort_error *err)
{
    bool all_done = g->rows == 0;
    for (bool first = true; g->length < g->max && !all_done; first = false) {
        ORT_TRY(first ? ort_generation_start(g, err) : ort_generation_next(g, err));
        ORT_TRY(ort_generation_scores(g, err));
        ORT_TRY(choose(g, s, done, &all_done, err));
        ort_generation_append(g);
    }
    return ORT_OK;
}

/* What the last step drew from. onnxruntime declares this output, but never writes it. */
static ort_status write_filtered(ort_generation *g, ort_error *err)
{
    ort_shape shape = {2, {g->batch, g->vocab}};
    ORT_TRY(ort_call_output(g->call, 1, ORT_DTYPE_FLOAT, &shape, err));
    if (ort_call_out(g->call, 1) && g->scores)
        memcpy(ort_call_out(g->call, 1)->data, g->scores,
               (size_t)(g->batch * g->vocab) * sizeof *g->scores);
    return ORT_OK;
}

static ort_status search_begun(ort_generation *g, sampler *s, ort_error *err)
{
    ort_shape shape = {2, {g->batch, g->max}};
    if (g->form != &ort_generation_gpt)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "only decoders like GPT-2 (model_type 0) "
                             "are implemented here; BeamSearch takes others");
    ORT_TRY(ort_call_output(g->call, 0, ORT_DTYPE_INT32, &shape, err));
    bool *done = ort_work_calloc((size_t)g->rows + 1, sizeof *done);
    if (!done)
        return ort_error_memory(err, (size_t)g->rows + 1);
    ort_status status = search(g, s, done, err);
    ort_work_free(done);
    if (status != ORT_OK)
        return status;
    if (s && g->call->out_count > 1)
        ORT_TRY(write_filtered(g, err));
    int32_t *ids = ort_call_out(g->call, 0)->data;
    for (int64_t b = 0; b < g->rows; b++)
        for (int64_t t = 0; t < g->max; t++)
            ids[b * g->max + t] = t < g->length ? g->ids[b * g->max + t] : (int32_t)g->attrs->pad;
    return ORT_OK;
}

static ort_status greedy_run(ort_call *call, ort_error *err)
{
    static const ort_generation_slots slots = {.min = 2, .penalty = 3, .vocab = 4, .prefix = 5,
                                               .mask = 6, .presence = -1, .begin = -1,
                                               .temperature = -1};
    ort_generation g;
    ort_status status = ort_generation_begin(&g, call, 1, &slots, err);
    if (status == ORT_OK)
        status = search_begun(&g, NULL, err);
    ort_generation_free(&g);
    return status;
}

static ort_status sample_begun(ort_generation *g, sampler *s, ort_error *err)
{
    const ort_generation_attrs *a = g->attrs;
    int64_t from = (int64_t)g->call->seed;
    ORT_TRY(ort_call_i64(g->call, 8, &from, err));
    g->temperature = a->temperature;
    s->attrs = a;
    seed(s, ort_call_in(g->call, 8) ? (uint32_t)from : (uint64_t)from);
    if (!(g->temperature > 0.0f) || a->keep < 0)
        return ort_call_fail(g->call, err, "temperature %g or min_tokens_to_keep %lld is out of "
                             "range", (double)g->temperature, (long long)a->keep);
    return search_begun(g, s, err);
}

static ort_status sampling_run(ort_call *call, ort_error *err)
{
    static const ort_generation_slots slots = {.min = 2, .penalty = 3, .vocab = 4, .prefix = 5,
                                               .mask = 6, .presence = 7, .begin = -1,
                                               .temperature = -1};
    ort_generation g;
    sampler s = {0};
    ort_status status = ort_generation_begin(&g, call, 1, &slots, err);
    if (status == ORT_OK)
        status = sample_begun(&g, &s, err);
    ort_generation_free(&g);
    ort_work_free(s.order);
    return status;
}

static const ort_op_impl greedy_impl = {
    .state = sizeof(ort_generation_attrs), .bind = ort_generation_bind, .infer = greedy_infer,
    .run = greedy_run, .numbers = 0xe,
};
static const ort_op_impl sampling_impl = {
    .state = sizeof(ort_generation_attrs), .bind = ort_generation_bind, .infer = greedy_infer,
    .run = sampling_run, .numbers = 0x10e,
};

const ort_op ort_ops_greedy_search[] = {
    {MS, "GreedySearch", 1,
     "input_ids:I,max_length:I,min_length?:I,repetition_penalty?:T,vocab_mask?:I,"
     "prefix_vocab_mask?:I,attention_mask?:I -> sequences:I", "T:f32 I:i32",
     "decoder:g! decoder_start_token_id:i=-1 encoder:g eos_token_id:i! init_decoder:g "
     "model_type:i=0 no_repeat_ngram_size:i=0 pad_token_id:i! vocab_size:i=-1",
     ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC, &greedy_impl},
    {MS, "Sampling", 1,
     "input_ids:I,max_length:I,min_length?:I,repetition_penalty?:T,vocab_mask?:I,"
     "prefix_vocab_mask?:I,attention_mask?:I,presence_mask?:I,seed?:I -> "
     "sequences:I,filtered_logits?:T", "T:f32 I:i32",
     "custom:i=0 decoder:g! decoder_start_token_id:i=-1 encoder:g eos_token_id:i! "
     "filter_value:f=-1e20 init_decoder:g min_tokens_to_keep:i=0 model_type:i=0 "
     "no_repeat_ngram_size:i=0 pad_token_id:i! presence_penalty:f=0 temperature:f=1 top_p:f=0 "
     "vocab_size:i=-1",
     ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC | ORT_TRAIT_RANDOM, &sampling_impl},
    {0},
};
